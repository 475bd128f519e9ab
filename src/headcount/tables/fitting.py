"""`fit`: from labelled rows in a data frame or in files to a model, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headcount.data.stream import sources_of
from headcount.exceptions import InputError
from headcount.tables.labelled import Say
from headcount.tables.learn import learn
from headcount.tables.model import Inputs, Model
from headcount.tables.notes import Note

Columns = str | Sequence[str]


def fit(
    data: Any,
    *,
    label: str,
    text: str | None = None,
    features: Columns | None = None,
    scores: Columns | None = None,
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
        One column of texts, columns of numbers and categories, or the scores of a classifier on
        rows that it was not trained on.
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
    notes: list[Note] = []

    def keep(note: Note) -> None:
        notes.append(note)
        say(note)

    model = learn(sources_of(data, kind), inputs, label, say=keep, **settings)
    return replace(model, notes=tuple(notes))


def chosen_inputs(text: str | None, features: Columns | None, scores: Columns | None) -> Inputs:
    """What to look at, from the settings of which one is given."""
    given = {"text": text, "features": features, "scores": scores}
    chosen = {name: value for name, value in given.items() if value}
    if len(chosen) != 1:
        raise InputError("give one of text, features and scores: what to look at.")
    ((name, value),) = chosen.items()
    single = name == "text" or isinstance(value, str)
    return Inputs(name, (str(value),) if single else tuple(map(str, value or ())))
