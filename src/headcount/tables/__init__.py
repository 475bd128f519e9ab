"""The practitioner's way: labelled rows in a table, a heap of rows in others, shares per month.

`learn` fits a quantifier to columns of a table, `count` reads a heap of any length in one pass and
gives the share of every class in every group, with bounds and with what to be careful about, and
`changes` tells which groups differ from a reference by more than chance.
"""

from headcount.tables.change import changes, first_group
from headcount.tables.count import Count, count
from headcount.tables.learn import learn, quality
from headcount.tables.model import Inputs, Model
from headcount.tables.notes import Note

__all__ = [
    "Count",
    "Inputs",
    "Model",
    "Note",
    "changes",
    "count",
    "first_group",
    "learn",
    "quality",
]
