"""The practitioner's way: labelled rows in a table, a heap of rows in others, shares per month.

`fit` learns from labelled rows of a data frame or of files. The model that it gives estimates the
share of every class in every group of other rows (`Model.estimate`), with bounds and with what to
be careful about; the result makes a page (`Count.report`) and tells which groups differ from a
reference by more than chance (`Count.monitor`). The commands call the same functions.
"""

from headcount.tables.change import changes, first_group
from headcount.tables.count import count
from headcount.tables.fitting import fit
from headcount.tables.inputs import Inputs
from headcount.tables.learn import learn
from headcount.tables.model import Model
from headcount.tables.notes import Note
from headcount.tables.page import Page
from headcount.tables.quality import quality
from headcount.tables.result import Count

__all__ = [
    "Count",
    "Inputs",
    "Model",
    "Note",
    "Page",
    "changes",
    "count",
    "first_group",
    "fit",
    "learn",
    "quality",
]
