"""The interface for users: fit a model, estimate shares, report on them and monitor changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from headcount._core.frame import Frame
from headcount.data.stream import sources_of
from headcount.exceptions import InputError
from headcount.tables.changes import changes
from headcount.tables.counting import count
from headcount.tables.estimation import of_population
from headcount.tables.inputs import BOTH, Inputs
from headcount.tables.learn import learn
from headcount.tables.model import FittedModel
from headcount.tables.notes import Note, Notify
from headcount.tables.page import Page, make_page
from headcount.tables.result import GroupShares
from headcount.tables.settings import EstimateSettings, FitSettings, ReadSettings, collect

Columns = str | Sequence[str]
Record = TypeVar("Record")


@dataclass(frozen=True, eq=False, repr=False)
class Count(GroupShares):
    """Shares of every class in every group, with intervals, notes and flags."""

    @cached_property
    def of_population(self) -> Count:
        """Shares in the populations that the rows were drawn from, for comparisons."""
        return _as(Count, of_population(self))

    def monitor(self, reference: str | Sequence[str] | None = None) -> Frame:
        """Groups that differ from a reference by more than chance, as in `changes`.

        `reference` names groups, as a list or as one text (``a,b`` or ``first..last``).
        """
        return changes(self, reference)

    def report(self, title: str = "How many", only: str | None = None) -> Page:
        """Page for decision makers: current shares, what changed, and whether to trust it."""
        return make_page(self, title, only)


@dataclass(frozen=True, eq=False, repr=False)
class Model(FittedModel):
    """A fitted quantifier, and the columns that it was fitted to."""

    def estimate(self, data: Any, by: str | None = None, **settings: Any) -> Count:
        """Shares of every class in every group of rows.

        Parameters
        ----------
        data : data frame (pandas, polars, Arrow, DuckDB), name of a file or pattern, or several
        by : str, optional
            A column, or a period and a column of dates, such as ``month:date``.
        settings
            As in `EstimateSettings` and `ReadSettings`; ``kind`` for the kind of the files.
        """
        sources = sources_of(data, settings.pop("kind", None))
        what, how = collect({"by": by, **settings}, EstimateSettings, ReadSettings)
        with threadpool_limits(1, user_api="blas"):  # as in `fit`
            return _as(Count, count(self, sources, what, how))

    def report(
        self,
        data: Any,
        by: str | None = None,
        *,
        title: str = "How many",
        only: str | None = None,
        **settings: Any,
    ) -> Page:
        """Page about the rows of `data`, as in `Count.report`."""
        return self.estimate(data, by, **settings).report(title, only)

    def monitor(self, data: Any, by: str, reference: Any = None, **settings: Any) -> Frame:
        """Groups that changed since a reference, as in `Count.monitor`."""
        return self.estimate(data, by, **settings).monitor(reference)


def fit(
    data: Any,
    *,
    label: str,
    text: str | None = None,
    features: Columns | None = None,
    scores: Columns | None = None,
    by: str | None = None,
    on_note: Notify = lambda _: None,
    **settings: Any,
) -> Model:
    """Fit a model to labelled rows.

    Parameters
    ----------
    data : data frame (pandas, polars, Arrow, DuckDB), name of a file or pattern, or several
    label : column of labels
    text, features, scores : columns that items are made of
        One column of texts, columns of numbers and categories, both together, or the scores of a
        classifier on rows that it was not trained on.
    by : column, or period and column of dates, whose groups will be asked about
        Their labelled rows are used, and the model is validated on groups that it has not seen.
    on_note : function that is called with each note at once
    settings
        As in `FitSettings` and `ReadSettings`: ``method='SLD'``, ``measure='rae'``, ...; ``kind``
        for the kind of the files; ``groups`` is another name of `by`, as in quantifiers.

    Returns
    -------
    Model
        With `estimate`, `report`, `monitor` and `save`.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = [1, 2, 2, 3, 4, 3, 4, 5, 5, 6] * 4
    >>> rows = pd.DataFrame({"score": scores, "y": list("nnnnnyyyyy") * 4})
    >>> model = fit(rows, features="score", label="y", method="SLD")
    >>> model.estimate(rows).groups
    ['all']
    """
    inputs = _inputs(text, features, scores)
    groups, kind = settings.pop("groups", None), settings.pop("kind", None)
    if by is not None and groups is not None:
        raise InputError("by and groups mean the same: give one of them.")
    how, reading = collect(settings, FitSettings, ReadSettings)
    notes: list[Note] = []

    def notify(note: Note) -> None:
        notes.append(note)
        on_note(note)

    known: Any = {"by": groups if by is None else by, "settings": how, "reading": reading}
    # Products are many and small: threads of BLAS cost more than they save on a busy machine.
    with threadpool_limits(1, user_api="blas"):
        fitted = learn(sources_of(data, kind), inputs, label, **known, notify=notify)
    return _as(Model, fitted, notes=tuple(notes))


def _as(kind: type[Record], record: Any, **changed: Any) -> Record:
    """A record of a base class as one of its subclass."""
    return kind(**{f.name: getattr(record, f.name) for f in fields(record)} | changed)


def _inputs(text: str | None, features: Columns | None, scores: Columns | None) -> Inputs:
    if bool(text or features) == bool(scores):
        raise InputError("give text, features, both of these, or scores: what to look at.")
    if scores:
        return Inputs("scores", _names(scores))
    if not features:
        return Inputs("text", (str(text),))
    if not text:
        return Inputs("features", _names(features))
    return Inputs(BOTH, (str(text), *_names(features)))


def _names(columns: Columns) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(map(str, columns))
