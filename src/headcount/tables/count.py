"""Counting a heap of rows, group by group, in one pass and bounded memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headcount._core.types import Floats, Ints
from headcount.data.groups import MISSING, UNREADABLE, Grouping
from headcount.data.stream import Source, batches, columns_of
from headcount.data.tables import as_names
from headcount.exceptions import HeadcountWarning, InputError
from headcount.inference.diagnostics import Diagnosis, FitTest, diagnose_scores
from headcount.inference.intervals import Interval
from headcount.inference.spread import Request
from headcount.scores.scorer import View, mix_views
from headcount.tables.channels import Channels
from headcount.tables.learn import label_names
from headcount.tables.model import Model
from headcount.tables.notes import Note
from headcount.tables.result import Count
from headcount.tables.sketch import Sketch

SCORED = 1 << 16  # rows that are scored at once


def count(
    model: Model,
    found: Sequence[Source],
    *,
    by: str | None = None,
    truth: str | None = None,
    level: float = 0.95,
    target: str = "bag",
    encoding: str = "utf8",
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
    level : float
        Of the intervals.
    target : {'bag', 'population'}
        Shares among these very rows, or among all that might have been in their place.
    """
    scorer = model.quantifier
    scorer.check_intervals()
    request = Request(level=level, target=target)
    grouping = Grouping.parse(by)
    wanted = dict(model.inputs.wanted)
    for extra, kind in ((grouping.column, grouping.kind), (truth, "name")):
        if extra is not None:
            wanted.setdefault(extra, kind)  # a column that is looked at too stays as it is
    looks_at = _Views(model)
    tally = _Tally(len(scorer.classes_))
    looks = _Looks(model.channels)
    names = as_names(scorer.classes_)
    strange_labels: set[str] = set()
    for source, batch in batches(found, wanted, encoding=encoding, progress=progress):
        items, there = model.inputs.of(batch)
        tally.left_out += int((~there).sum())
        if not there.any():
            continue
        column = None if grouping.column is None else batch.column(grouping.column)
        if column is not None and not there.all():
            column = column.filter(pa.array(there))
        groups = grouping.numbers(column, int(there.sum()))
        for start in range(0, len(groups), SCORED):
            part = slice(start, start + SCORED)
            try:
                looks_at.add(items[part], groups[part])
            except InputError as error:
                raise InputError(f"{source.name}: {error}") from None
        tally.add(groups)
        looks.add(items, groups)
        if truth is not None:
            cells = label_names(batch.column(truth))[there]
            strange_labels |= tally.add_truth(cells, names, groups)
    _check_answerable(tally, grouping, truth, names)
    notes = _notes(tally, grouping, strange_labels, truth, model, found, encoding)
    return _estimated(looks_at, tally, looks, grouping, request, truth is not None, notes)


def _check_answerable(
    tally: _Tally, grouping: Grouping, truth: str | None, names: NDArray[Any]
) -> None:
    """Refuse what has no answer: no rows, no dates where dates were asked for, no true labels."""
    if not tally.total:
        raise InputError(
            "there is nothing to count: "
            + (f"all {tally.left_out} rows are empty." if tally.left_out else "no rows.")
        )
    if grouping.unreadable == tally.total:
        raise InputError(
            f"no cell of {grouping.column!r} could be read as a date: ISO dates such as 2026-11-30 "
            "are expected."
        )
    if truth is not None and not tally.labelled:
        raise InputError(
            f"{truth!r} holds none of the classes {names.tolist()[:10]}: is it the column of true "
            "labels?"
        )


def _estimated(
    seen: _Views,
    tally: _Tally,
    looks: _Looks,
    grouping: Grouping,
    request: Request,
    with_truth: bool,
    notes: list[Note],
) -> Count:
    order, every = grouping.order(), grouping.names()
    sizes = tally.sizes[order]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        interval, counted = seen.bound(order, sizes, request)
    notes += [
        Note("warning", subject=str(w.message))
        for w in caught
        if issubclass(w.category, HeadcountWarning)
    ]
    diagnosis = replace(seen.diagnose(order, sizes), drift=looks.p_values(order, sizes))
    truth = tally.truth(order) if with_truth else None
    names = [every[g] for g in order]

    def bound(target: str) -> Interval:
        return seen.bound(order, sizes, replace(request, target=target))[0]

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
        seen.model,
        bound if request.target == "bag" else None,
    )


class _Views:
    """What is kept of the scores of groups, by each classifier that scores new items."""

    def __init__(self, model: Model):
        self.model, self.quantifier = model, model.quantifier
        scorer = model.scorer
        self.whole = self.quantifier.uses_whole() and scorer.whole is not None
        several = max(1, len(scorer.folds)) if model.inputs.kind != "scores" else 1
        self.folds = [self._sketch() for _ in range(several)]
        self.mixed = self._sketch() if several > 1 else self.folds[0]
        self.of_whole = self._sketch() if self.whole and scorer.folds else None

    def _sketch(self) -> Sketch:
        return Sketch.of(len(self.quantifier.classes_), self.model.scorer.kind)

    def add(self, items: Any, groups: Ints) -> None:
        """Score items and add them to their groups."""
        views = self.model.views(items)
        for sketch, scores in zip(self.folds, views, strict=True):
            sketch.add(scores, groups)
        if self.mixed is not self.folds[0]:
            self.mixed.add(mix_views(views), groups)
        if self.of_whole is not None:
            self.of_whole.add(self.model.views(items, whole=True)[0], groups)

    def bound(self, order: list[int], sizes: Ints, request: Request) -> tuple[Interval, Floats]:
        """Estimates with bounds of groups in this order, and the shares by plain counting."""
        views = [_points(sketch, order) for sketch in self.folds]
        found = self.quantifier.bound(views, sizes, request)
        if self.of_whole is not None:
            views = [_points(self.of_whole, order)]
            found = found.around(self.quantifier.estimate(views))
        k = len(self.quantifier.classes_)
        counted = [bags.shares(pool.argmax(axis=1), k) for pool, bags in views]
        return found, np.asarray(np.mean(counted, axis=0))

    def diagnose(self, order: list[int], sizes: Ints) -> Diagnosis:
        """What to know about the estimates of groups in this order."""
        return diagnose_scores(self.model.scorer, [_points(self.mixed, order)], sizes)


def _points(sketch: Sketch, order: list[int]) -> View:
    pool, bags = sketch.points()
    return pool, bags[order]


class _Looks:
    """Histograms of what the items of groups look like."""

    def __init__(self, channels: Channels | None):
        self.channels = channels
        width = 0 if channels is None else sum(channels.widths)
        self.counts = np.zeros((0, width), dtype=np.int64)

    def add(self, items: Any, groups: Ints) -> None:
        if self.channels is None:
            return
        cells = self.channels.cells(items)
        width = self.counts.shape[1]
        n_groups = max(len(self.counts), int(groups.max()) + 1)
        grown = np.zeros((n_groups, width), dtype=np.int64)
        grown[: len(self.counts)] = self.counts
        for column in cells.T:
            places = groups * width + column
            grown += np.bincount(places, minlength=n_groups * width).reshape(n_groups, width)
        self.counts = grown

    def p_values(self, order: list[int], sizes: Ints) -> Floats:
        if self.channels is None:
            return np.full(len(order), np.nan)
        test = FitTest(self.channels.cells_, self.channels.widths, self.channels.codes_)
        return test.p_values(self.counts[order] / sizes[:, None], sizes)


class _Tally:
    """Numbers of rows by group, and of true labels."""

    def __init__(self, n_classes: int):
        self.n_classes = n_classes
        self.left_out = 0
        self.total = 0
        self.labelled = 0
        self.sizes = np.zeros(0, dtype=np.int64)
        self._truth = np.zeros((0, n_classes), dtype=np.int64)

    def add(self, groups: Ints) -> None:
        self.total += len(groups)
        found = np.bincount(groups, minlength=len(self.sizes))
        found[: len(self.sizes)] += self.sizes
        self.sizes = found

    def add_truth(self, cells: NDArray[Any], names: NDArray[Any], groups: Ints) -> set[str]:
        """Count true labels; gives those that are no class of the model."""
        order = np.argsort(names)
        codes = order[np.minimum(np.searchsorted(names[order], cells), len(names) - 1)]
        known = names[codes] == cells
        grown = np.zeros((len(self.sizes), self.n_classes), dtype=np.int64)
        grown[: len(self._truth)] = self._truth
        self.labelled += int(known.sum())
        np.add.at(grown, (groups[known], codes[known]), 1)
        self._truth = grown
        return set(np.unique(cells[~known]).tolist())

    def truth(self, order: list[int]) -> Floats:
        """True shares among the labelled rows of a group; NaN where there is none."""
        counts = self._truth[order].astype(float)
        totals = counts.sum(axis=1, keepdims=True)
        return np.where(totals > 0, counts / np.maximum(totals, 1), np.nan)


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
    if tally.left_out:
        notes.append(Note("no item", tally.left_out, model.inputs.kind))
    if grouping.unreadable:
        notes.append(Note("no date", grouping.unreadable, column, (UNREADABLE,)))
    if MISSING in grouping.names():
        notes.append(Note("no group", subject=column, names=(MISSING,)))
    unknown = sorted(strange - {""})
    if unknown:
        notes.append(Note("unknown truth", len(unknown), truth or "", tuple(unknown)))
    if truth is None and model.label in columns_of(found[0], encoding):
        notes.append(Note("truth is there", subject=model.label))
    return notes
