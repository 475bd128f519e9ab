"""`fit`: from labelled rows in a data frame or in files to a model, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from threadpoolctl import threadpool_limits

from headcount.data.stream import sources_of
from headcount.exceptions import InputError
from headcount.tables.inputs import BOTH, Inputs
from headcount.tables.labelled import Say
from headcount.tables.learn import learn
from headcount.tables.model import Model
from headcount.tables.notes import Note

Columns = str | Sequence[str]


def fit(
    data: Any,
    *,
    label: str,
    text: str | None = None,
    features: Columns | None = None,
    scores: Columns | None = None,
    by: str | None = None,
    groups: str | None = None,
    kind: str | None = None,
    say: Say = lambda _: None,
    **settings: Any,
) -> Model:
    """Learn from labelled rows how to count the classes of others.

    Parameters
    ----------
    data : data frame (pandas, polars, Arrow, DuckDB), name of a file or pattern, or several
    label : column of labels
    text, features, scores : what to look at
        One column of texts, columns of numbers and categories, both together, or the scores of a
        classifier on rows that it was not trained on.
    by : column, or period and column of dates, whose groups will be asked about
        Their labelled rows are used, and the model is tried on groups that it had not seen.
    groups : another name of `by`, as quantifiers have it
    kind : csv, tsv, parquet, jsonl or xlsx, where the name of a file does not tell
    say : function that is told what was left out or decided, at once
    settings
        As in `learn`: ``method='SLD'``, ``measure='rae'``, ``budget=60``, ...

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
    inputs = chosen_inputs(text, features, scores)
    if by is not None and groups is not None:
        raise InputError("by and groups mean the same: give one of them.")
    notes: list[Note] = []

    def keep(note: Note) -> None:
        notes.append(note)
        say(note)

    by = groups if by is None else by
    # Products are many and small: threads of BLAS cost more than they bring on a busy machine.
    with threadpool_limits(1, user_api="blas"):
        model = learn(sources_of(data, kind), inputs, label, by=by, say=keep, **settings)
    return replace(model, notes=tuple(notes))


def chosen_inputs(text: str | None, features: Columns | None, scores: Columns | None) -> Inputs:
    """What to look at, from the settings that are given."""
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
