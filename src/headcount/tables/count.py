"""Counting a heap of rows, group by group, in one pass and bounded memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headcount._core.types import Bools, Floats, Ints
from headcount.data.groups import MISSING, Grouping
from headcount.data.stream import Reading, Source, batches, columns_of
from headcount.data.tables import as_names
from headcount.exceptions import HeadcountWarning, InputError
from headcount.inference.intervals import Interval
from headcount.inference.spread import Request
from headcount.tables.answer import adjust, bound_groups, bound_together, diagnose_groups
from headcount.tables.kept import Kept
from headcount.tables.labelled import label_names, look_at_dates
from headcount.tables.model import Model
from headcount.tables.notes import Note, reading_notes
from headcount.tables.result import Count

SCORED = 1 << 16  # rows that are scored at once


def count(
    model: Model,
    found: Sequence[Source],
    *,
    by: str | None = None,
    truth: str | None = None,
    weight: str | None = None,
    level: float = 0.95,
    target: str = "bag",
    encoding: str = "utf8",
    date_format: str | None = None,
    time_zone: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Count:
    """Count the classes in a heap of rows, group by group, in one pass and bounded memory.

    Parameters
    ----------
    model : what `learn` gave, or `Model.load`
    found : sources of rows
    by : str, optional
        A column, or a period and a column of dates, such as ``month:date``.
    truth : str, optional
        Column of true labels, to compare the estimates with.
    weight : str, optional
        Column of row weights: shares are then shares of weight, and intervals are those of as
        many equal rows as the weighted ones are worth. Rows without a weight are left out.
    level : float
        Of the intervals.
    target : {'bag', 'population'}
        Shares among these very rows, or among all that might have been in their place.
    date_format, time_zone : optional
        How to read dates, as in `DateReader`.
    """
    scorer = model.quantifier
    scorer.check_intervals()
    request = Request(level=level, target=target)
    grouping = Grouping.parse(by, date_format, time_zone)
    look_at_dates(grouping, found, encoding)
    wanted = dict(model.inputs.wanted)
    _check_columns(model, found, encoding, weight)
    extras = ((grouping.column, grouping.kind), (truth, "name"), (weight, "number"))
    for extra, kind in extras:
        if extra is not None:
            wanted.setdefault(extra, kind)  # a column that is looked at too stays as it is
    kept = Kept(model)
    tally = _Tally(len(scorer.classes_))
    names = as_names(scorer.classes_)
    strange_labels: set[str] = set()
    reading = Reading()
    told: Any = {"encoding": encoding, "progress": progress, "reading": reading}
    for source, batch in batches(found, wanted, **told):
        items, there = model.inputs.of(batch)
        weights = None
        tally.left_out += int((~there).sum())
        if weight is not None:
            full = int(there.sum())
            items, there, weights = _weighted(items, there, batch.column(weight), weight)
            tally.weightless += full - int(there.sum())
        if not there.any():
            continue
        column = None if grouping.column is None else batch.column(grouping.column)
        if column is not None and not there.all():
            column = column.filter(pa.array(there))
        groups = grouping.numbers(column, int(there.sum()))
        for start in range(0, len(groups), SCORED):
            part = slice(start, start + SCORED)
            try:
                kept.add(items[part], groups[part], None if weights is None else weights[part])
            except InputError as error:
                raise InputError(f"{source.name}: {error}") from None
        tally.total += len(groups)
        if truth is not None:
            cells = model.known_labels(label_names(batch.column(truth))[there])
            strange_labels |= tally.add_truth(cells, names, groups, len(kept.rows), weights)
    _check_answerable(tally, grouping, truth, names)
    notes = reading_notes(reading)
    notes += _notes(tally, grouping, strange_labels, truth, model, found, encoding)
    return _estimated(kept, tally, grouping, request, truth is not None, notes)


def _check_columns(
    model: Model, found: Sequence[Source], encoding: str, weight: str | None
) -> None:
    """Say which column is missing that the model looks at, though nobody named it here."""
    if weight in model.inputs.columns:
        raise InputError(f"the model looks at {weight!r}: weights are in another column.")
    for source in found:
        there = columns_of(source, encoding)
        lacking = [c for c in model.inputs.columns if c not in there]
        if there and lacking:
            near = get_close_matches(lacking[0], there, n=1)
            hint = f" Is it {near[0]!r}?" if near else ""
            raise InputError(
                f"{source.name} has no column {lacking[0]!r}, which the model looks at.{hint} It "
                f"has: {', '.join(map(repr, there[:30]))}."
            )


def _weighted(items: Any, there: Bools, column: Any, name: str) -> tuple[Any, Bools, Floats]:
    """Items that have a weight, which rows these are, and their weights."""
    weights = np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    weights[np.isnan(weights)] = 0.0
    if weights.min(initial=0.0) < 0:
        raise InputError(f"{name!r} holds {weights.min():g}: weights cannot be negative.")
    if np.isinf(weights).any():
        raise InputError(f"{name!r} holds an infinite weight: weights are finite numbers.")
    both = there & (weights > 0)
    return items[both[there]], both, weights[both]


def _check_answerable(
    tally: _Tally, grouping: Grouping, truth: str | None, names: NDArray[Any]
) -> None:
    """Refuse what has no answer: no rows, no dates where dates were asked for, no true labels."""
    if not tally.total:
        why = f"all {tally.left_out:,} rows are empty." if tally.left_out else "no rows."
        if tally.weightless:
            why = f"{tally.weightless:,} rows have no weight above 0."
        raise InputError(f"there is nothing to count: {why}")
    if grouping.unreadable == tally.total:
        raise InputError(
            f"no cell of {grouping.column!r} could be read as a date such as 2026-11-30 (they are "
            f"like {grouping.example!r}): say how they are written, or, if they name periods "
            "already, group by the column itself.",
            setting="date-format",
        )
    if truth is not None and not tally.labelled:
        raise InputError(
            f"{truth!r} holds none of the classes {names.tolist()[:10]}: is it the column of true "
            "labels?"
        )


def _estimated(
    kept: Kept,
    tally: _Tally,
    grouping: Grouping,
    request: Request,
    with_truth: bool,
    notes: list[Note],
) -> Count:
    order, every = grouping.order(), grouping.names()
    names, sizes = [every[g] for g in order], kept.rows[order]
    groups = kept.model.groups(grouping)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        interval, counted = bound_groups(kept, order, request)
    notes += [
        Note("warning", subject=text)
        for text in dict.fromkeys(
            str(w.message) for w in caught if issubclass(w.category, HeadcountWarning)
        )
    ]
    diagnosis = diagnose_groups(kept, order)
    if groups is not None:
        diagnosis = groups.sized(diagnosis, names)
    interval = adjust(interval, diagnosis, groups, names, sizes, request.target)
    truth = tally.truth(order) if with_truth else None

    def bound(target: str) -> Interval:
        found = bound_groups(kept, order, replace(request, target=target))[0]
        return adjust(found, diagnosis, groups, names, sizes, target)

    def together(owner: Ints) -> Interval:
        return bound_together(kept, order, owner, request)

    return Count(
        names,
        sizes,
        interval,
        diagnosis,
        counted,
        grouping,
        tally.left_out,
        truth,
        tuple(notes),
        kept.model,
        bound if request.target == "bag" else None,
        np.maximum(kept.effective()[order], 1.0),
        together if groups is None else None,
    )


class _Tally:
    """Numbers of rows by group, and of true labels."""

    def __init__(self, n_classes: int):
        self.n_classes = n_classes
        self.left_out = 0
        self.weightless = 0
        self.total = 0
        self.labelled = 0
        self._truth = np.zeros((0, n_classes))

    def add_truth(
        self,
        cells: NDArray[Any],
        names: NDArray[Any],
        groups: Ints,
        n_groups: int,
        weights: Floats | None,
    ) -> set[str]:
        """Count true labels; gives those that are no class of the model."""
        order = np.argsort(names)
        codes = order[np.minimum(np.searchsorted(names[order], cells), len(names) - 1)]
        known = names[codes] == cells
        grown = np.zeros((n_groups, self.n_classes))
        grown[: len(self._truth)] = self._truth
        self.labelled += int(known.sum())
        np.add.at(grown, (groups[known], codes[known]), 1 if weights is None else weights[known])
        self._truth = grown
        return set(np.unique(cells[~known]).tolist())

    def truth(self, order: list[int]) -> Floats:
        """True shares among the labelled rows of a group; NaN where there is none."""
        counts = self._truth[order]
        totals = counts.sum(axis=1, keepdims=True)
        return np.where(totals > 0, counts / np.where(totals > 0, totals, 1), np.nan)


def _notes(
    tally: _Tally,
    grouping: Grouping,
    strange: set[str],
    truth: str | None,
    model: Model,
    found: Sequence[Source],
    encoding: str,
) -> list[Note]:
    column = grouping.column or ""
    notes = []
    if grouping.dates.said():
        notes.append(Note("dates", subject=column, names=(str(grouping.dates.said()),)))
    if tally.left_out:
        notes.append(Note("no item", tally.left_out, model.inputs.kind))
    if tally.weightless:
        notes.append(Note("no weight", tally.weightless))
    if grouping.unreadable:
        shown = (grouping.example,) if grouping.example else ()
        kind = "no date" if shown else "empty date"
        notes.append(Note(kind, grouping.unreadable, column, shown))
    if MISSING in grouping.names():
        notes.append(Note("no group", subject=column))
    unknown = sorted(strange - {""})
    if unknown:
        notes.append(Note("unknown truth", len(unknown), truth or "", tuple(unknown)))
    rare = model.summary.get("rare")
    if rare:
        kind = "rare joined" if rare["as"] else "rare dropped"
        notes.append(Note(kind, rare["rows"], rare["as"] or "", tuple(rare["classes"])))
    told = model.summary.get("columns") or []
    if column in told and grouping.period is None and model.summary.get("by") is None:
        notes.append(Note("groups at fitting", subject=column))
    if truth is None and model.label in columns_of(found[0], encoding):
        notes.append(Note("truth is there", subject=model.label))
    return notes
