"""Shares of classes in tables: labelled rows in one table, unlabelled rows in others.

`fit` learns from labelled rows of a data frame or of files. The model that it returns estimates the
share of every class in every group of other rows (`Model.estimate`), with intervals and warnings;
the result makes a page (`Count.report`) and finds groups that differ from a reference by more than
chance (`Count.monitor`). The commands call the same functions.
"""

from headcount.tables.api import Count, Model, fit
from headcount.tables.changes import changes, first_group
from headcount.tables.inputs import Inputs
from headcount.tables.notes import Note
from headcount.tables.page import Page

__all__ = ["Count", "Inputs", "Model", "Note", "Page", "changes", "first_group", "fit"]
