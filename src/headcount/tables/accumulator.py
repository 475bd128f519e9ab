"""Scores of groups in one pass and bounded memory: small groups exactly, large ones in sketches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.types import Bools, Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.scores.scorer import View, mix_views
from headcount.tables.sketch import Sketch, thinned
from headcount.tables.store import Records, Store


@dataclass(frozen=True, eq=False)
class ScoreLayout:
    """Shape of the scores of items."""

    kind: str  # 'posterior', 'decision' or 'label'
    held: Floats  # scores of labelled items, which set the grid of decision values
    n_folds: int  # classifiers of the folds
    has_whole: bool  # whether scores by a classifier of all labelled items come last
    widths: list[int]  # number of covariate bins of each channel

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.held.shape[1])

    def views(self, scores: Floats) -> list[Floats]:
        """Scores by each fold, by one of these for each item, and by the whole classifier."""
        folds = [scores[:, v] for v in range(self.n_folds)]
        mixed = [mix_views(folds)] if self.n_folds > 1 else []
        return [*folds, *mixed, *([scores[:, -1]] if self.has_whole else [])]

    def part(self, groups: Ints, views: Sequence[View], bins: Floats) -> Part:
        """Groups with what `views` gives."""
        mixed = views[self.n_folds if self.n_folds > 1 else 0]
        whole = views[-1] if self.has_whole else None
        return Part(groups, list(views[: self.n_folds]), mixed, whole, bins)

    def sketches(self) -> list[Sketch]:
        """Empty sketches of all views."""
        n = self.n_folds + (self.n_folds > 1) + self.has_whole
        return [Sketch.of(self.n_classes, self.kind, self.held) for _ in range(n)]


@dataclass(frozen=True, eq=False)
class Part:
    """Scores of some groups."""

    groups: Ints  # numbers of the groups
    folds: list[View]  # scores by each classifier of the folds, with the bags
    mixed: View  # scores of each item by one of these
    whole: View | None  # scores by the classifier of all items, where it gives the estimate
    bins: Floats  # for each group the share of its items in each covariate bin

    def take(self, chosen: Ints) -> Part:
        """Some of the groups."""
        return Part(
            self.groups[chosen],
            [(scores, bags[chosen]) for scores, bags in self.folds],
            (self.mixed[0], self.mixed[1][chosen]),
            None if self.whole is None else (self.whole[0], self.whole[1][chosen]),
            self.bins[chosen],
        )

    @property
    def views(self) -> list[View]:
        """All scores, in the order of `ScoreLayout.views`."""
        mixed = [self.mixed] if len(self.folds) > 1 else []
        return [*self.folds, *mixed, *([self.whole] if self.whole else [])]


@dataclass(frozen=True, eq=False)
class GroupScores:
    """Accumulated scores of groups in the order to show."""

    layout: ScoreLayout
    rows: Ints  # of each group
    weight: Floats  # sum of the weights of the rows
    squares: Floats  # sum of their squares
    position: Ints  # place of each group, by its number while rows were added
    store: Store
    sketched: SketchedGroups

    @property
    def effective(self) -> Floats:
        """Number of unweighted rows that are as informative, for each group (Kish, 1965)."""
        return np.asarray(self.weight**2 / np.maximum(self.squares, 1e-300))

    def parts(self) -> Iterator[Part]:
        """All groups, some at a time."""
        for records in self.store.parts():
            small = ~self.sketched.has(records["group"])
            if small.any():
                yield self._part(records[small])
        if self.sketched.numbers:
            groups = self.position[np.array(self.sketched.numbers)]
            points = [sketch.points() for sketch in self.sketched.sketches]
            bins = self.sketched.bins / self.weight[groups][:, None]
            yield self.layout.part(groups, points, bins)

    def joined(self, owner: Ints) -> tuple[Part, Floats]:
        """Unions of groups by the number of each group's, and their effective sizes."""
        sketches = self.layout.sketches()
        for part in self.parts():
            for sketch, (scores, bags) in zip(sketches, part.views, strict=True):
                each = self.weight[part.groups] / bags.sizes
                own = np.repeat(owner[part.groups], bags.sizes)
                sketch.add(scores[bags.indices], own, np.repeat(each, bags.sizes))
        n = int(owner.max()) + 1
        points = [sketch.points() for sketch in sketches]
        union = self.layout.part(np.arange(n), points, np.zeros((n, 0)))
        # In the order of reading: sums of floats depend on it in the last digit.
        first = np.bincount(owner[self.position], self.weight[self.position])
        second = np.bincount(owner[self.position], self.squares[self.position])
        return union, np.maximum(first**2 / np.maximum(second, 1e-300), 1.0)

    def _part(self, records: Records) -> Part:
        numbers, starts = np.unique(records["group"], return_index=True)
        sizes = np.diff(np.append(starts, len(records)))
        weights = records["weight"].astype(np.float64)
        n = len(records)
        if (weights == 1).all():
            bags = Bags.unchecked(np.append(starts, n), np.arange(n), n)
        else:
            bags = thinned(np.split(weights, starts[1:]), n, 20_000, per_item=20)
        total = np.add.reduceat(weights, starts) if len(sizes) else weights
        own = np.repeat(np.arange(len(numbers)), sizes)
        bins = np.zeros((len(numbers), sum(self.layout.widths)))
        for column in records["bins"].T:
            np.add.at(bins, (own, column), weights)
        views = self.layout.views(_scores_of(records, self.layout))
        groups = self.position[numbers.astype(np.int64)]
        return self.layout.part(groups, [(v, bags) for v in views], bins / total[:, None])


class Accumulator:
    """Adds batches of scored rows to groups, which `finish` returns."""

    max_groups = 2_000_000  # bounds the memory of counts and results

    def __init__(self, layout: ScoreLayout):
        self.layout = layout
        shape = layout.n_folds + layout.has_whole, 1 if _is_single(layout) else layout.n_classes
        fields: list[Any] = [("group", np.int32), ("weight", np.float32)]
        fields += [("scores", np.float64, shape), ("bins", np.uint16, (len(layout.widths),))]
        self.store = Store(np.dtype(fields))
        self.rows = np.zeros(0, dtype=np.int64)
        self.weight, self.squares = np.zeros((2, 0))
        self.sketched = SketchedGroups(layout)
        # Rows that stay exact: four for each cell of the histogram of two classes, and as many as a
        # sketch of more classes keeps before it is halved.
        self.max_exact = 8192 if layout.n_classes == 2 else 80_000

    def add(self, scores: Floats, bins: Any, groups: Ints, weights: Floats | None = None) -> None:
        """Add rows with their scores of shape (n, views, k), bins, group numbers and weights."""
        self._count(groups, weights)
        weights = np.ones(len(groups)) if weights is None else weights
        large = self.rows[groups] > self.max_exact
        if large.any():
            self.sketched.add(scores[large], bins[large], groups[large], weights[large])
        if not large.all():
            small = ~large
            records = np.empty(int(small.sum()), dtype=self.store.dtype)
            records["group"], records["weight"] = groups[small], weights[small]
            records["scores"] = scores[small, :, 1:] if _is_single(self.layout) else scores[small]
            records["bins"] = bins[small]
            self.store.add(records)

    def finish(self, order: Sequence[int] | None = None) -> GroupScores:
        """Groups in this order of their numbers; nothing is to be added afterwards."""
        for records in self.store.parts():  # rows that came before their group was large
            late = self.sketched.has(records["group"])
            if late.any():
                some = records[late]
                scores = _scores_of(some, self.layout)
                self.sketched.add(scores, some["bins"], some["group"], some["weight"])
        numbers = np.arange(len(self.rows)) if order is None else np.asarray(order)
        position = np.empty(len(numbers), dtype=np.int64)
        position[numbers] = np.arange(len(numbers))
        sums = self.rows[numbers], self.weight[numbers], self.squares[numbers]
        return GroupScores(self.layout, *sums, position, self.store, self.sketched)

    def _count(self, groups: Ints, weights: Floats | None) -> None:
        n = max(len(self.rows), int(groups.max()) + 1)
        if n > self.max_groups:
            raise InputError(
                f"more than {self.max_groups:,} groups: group by something coarser, such as the "
                "month."
            )
        counts = np.bincount(groups, minlength=n)
        sums, squares = counts, counts
        if weights is not None:
            sums = np.bincount(groups, weights, minlength=n)
            squares = np.bincount(groups, weights**2, minlength=n)
        more = (0, n - len(self.rows))
        self.rows = np.pad(self.rows, more) + counts
        self.weight = np.pad(self.weight, more) + sums
        self.squares = np.pad(self.squares, more) + squares


class SketchedGroups:
    """Groups of many rows, in sketches."""

    def __init__(self, layout: ScoreLayout):
        self.layout, self.sketches = layout, layout.sketches()
        self.slots = np.zeros(0, dtype=np.int64)  # by group number, -1 for the small ones
        self.numbers: list[int] = []
        self.bins = np.zeros((0, sum(layout.widths)))

    def has(self, groups: NDArray[Any]) -> Bools:
        """Which of the groups are here."""
        more = max(0, int(groups.max(initial=-1)) + 1 - len(self.slots))
        self.slots = np.pad(self.slots, (0, more), constant_values=-1)
        return np.asarray(self.slots[groups] >= 0)

    def add(self, scores: Floats, bins: Any, groups: Ints, weights: Floats) -> None:
        """Add rows to groups; new numbers make new groups."""
        for g in np.unique(groups[~self.has(groups)]).tolist():
            self.slots[g] = len(self.numbers)
            self.numbers.append(g)
        own = self.slots[groups]
        for sketch, view in zip(self.sketches, self.layout.views(scores), strict=True):
            sketch.add(view, own, weights)
        width = self.bins.shape[1]
        grown = np.zeros((len(self.numbers), width))
        grown[: len(self.bins)] = self.bins
        for column in np.asarray(bins).T:
            counts = np.bincount(own * width + column, weights, minlength=grown.size)
            grown += counts.reshape(grown.shape)
        self.bins = grown


def _is_single(layout: ScoreLayout) -> bool:
    """Whether the second of two scores is enough."""
    return layout.n_classes == 2 and layout.kind != "decision"


def _scores_of(records: Records, layout: ScoreLayout) -> Floats:
    """Scores of shape (n, views, k)."""
    scores = records["scores"]
    return np.concatenate([1 - scores, scores], axis=2) if _is_single(layout) else scores
