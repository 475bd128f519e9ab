"""What is kept of a heap while it is read: small groups as they are, large ones summed up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.scores.scorer import View, mix_views
from headcount.tables.model import Model
from headcount.tables.sketch import Sketch, thinned
from headcount.tables.store import Records, Store

EXACT = {
    True: 8192,
    False: 80_000,
}  # rows of a group that stay as they are, for two classes or more
MOST = 2_000_000  # groups


@dataclass(frozen=True, eq=False)
class Part:
    """Some groups of a heap.

    Attributes
    ----------
    groups : their numbers
    folds : scores by each classifier of the folds, with the bags
    mixed : scores of each item by one of these
    whole : scores by the classifier of all labelled items, where it gives the estimate
    looks : for each group the share of its items in each cell of each channel
    """

    groups: Ints
    folds: list[View]
    mixed: View
    whole: View | None
    looks: Floats

    def take(self, chosen: Ints) -> Part:
        """Some of the groups."""
        return Part(
            self.groups[chosen],
            [(scores, bags[chosen]) for scores, bags in self.folds],
            (self.mixed[0], self.mixed[1][chosen]),
            None if self.whole is None else (self.whole[0], self.whole[1][chosen]),
            self.looks[chosen],
        )


class Kept:
    """Scores of the rows of groups: add parts of a heap, then get groups, some at a time."""

    def __init__(self, model: Model):
        scorer, channels = model.scorer, model.channels
        self.model = model
        self.k = len(scorer.classes)
        self.one = self.k == 2 and scorer.kind != "decision"  # the second of two scores is enough
        self.n_folds = max(1, len(scorer.folds)) if model.inputs.kind != "scores" else 1
        self.has_whole = bool(
            model.quantifier.uses_whole() and scorer.whole is not None and scorer.folds
        )
        self.widths = [] if channels is None else channels.widths
        shape = (self.n_folds + self.has_whole, 1 if self.one else self.k)
        fields: list[Any] = [("group", np.int32), ("weight", np.float32)]
        fields += [("scores", np.float64, shape), ("cells", np.uint16, (len(self.widths),))]
        self.store = Store(np.dtype(fields))
        self.rows = np.zeros(0, dtype=np.int64)
        self.weight = np.zeros(0)
        self.squares = np.zeros(0)  # sums of squared weights
        self.large = _Large(self, scorer.scores)

    def add(self, items: Any, groups: Ints, weights: Floats | None = None) -> None:
        """Score items and keep what is needed of them."""
        self._count(groups, weights)
        views = self.model.views(items)
        if self.has_whole:
            views += self.model.views(items, whole=True)
        scores = np.stack(views, axis=1)
        channels = self.model.channels
        cells = np.zeros((len(groups), 0)) if channels is None else channels.cells(items)
        weights = np.ones(len(groups)) if weights is None else weights
        large = self.rows[groups] > EXACT[self.k == 2]
        if large.any():
            self.large.add(scores[large], cells[large], groups[large], weights[large])
        if not large.all():
            small = ~large
            records = np.empty(int(small.sum()), dtype=self.store.dtype)
            records["group"], records["weight"] = groups[small], weights[small]
            records["scores"] = scores[small, :, 1:] if self.one else scores[small]
            records["cells"] = cells[small]
            self.store.add(records)

    def effective(self) -> Floats:
        """Rows that tell as much as the weighted ones, for each group."""
        return np.asarray(self.weight**2 / np.maximum(self.squares, 1e-300))

    def parts(self) -> Iterator[Part]:
        """All groups, some at a time."""
        for records in self.store.parts():
            late = self.large.has(records["group"])
            if late.any() and not self.large.is_whole:
                some = records[late]
                self.large.add(self._scores(some), some["cells"], some["group"], some["weight"])
            if not late.all():
                yield self._part(records[~late])
        self.large.is_whole = True
        if self.large.numbers:
            yield self.large.part()

    def together(self, owner: Ints) -> tuple[Part, Floats]:
        """Groups joined into larger ones, and how many equal rows these are worth.

        Parameters
        ----------
        owner : for each group, the number of the one that it goes to
        """
        kind, held = self.model.scorer.kind, self.model.scorer.scores
        several = self.n_folds + 1 + self.has_whole
        sketches = [Sketch.of(self.k, kind, held) for _ in range(several)]
        for part in self.parts():
            views = [*part.folds, part.mixed, *([part.whole] if part.whole else [])]
            for sketch, (scores, bags) in zip(sketches, views, strict=True):
                each = self.weight[part.groups] / bags.sizes
                own = np.repeat(owner[part.groups], bags.sizes)
                sketch.add(scores[bags.indices], own, np.repeat(each, bags.sizes))
        points = [sketch.points() for sketch in sketches]
        n = int(owner.max()) + 1
        joined = Part(
            np.arange(n),
            points[: self.n_folds],
            points[self.n_folds],
            points[-1] if self.has_whole else None,
            np.zeros((n, 0)),
        )
        weight, squares = (np.bincount(owner, w) for w in (self.weight, self.squares))
        return joined, np.maximum(weight**2 / np.maximum(squares, 1e-300), 1.0)

    def _count(self, groups: Ints, weights: Floats | None) -> None:
        n = max(len(self.rows), int(groups.max()) + 1)
        if n > MOST:
            raise InputError(
                f"more than {MOST:,} groups: group by something coarser, such as the month."
            )
        more = n - len(self.rows)
        counts = np.bincount(groups, minlength=n)
        self.rows = np.pad(self.rows, (0, more)) + counts
        sums = counts if weights is None else np.bincount(groups, weights, minlength=n)
        self.weight = np.pad(self.weight, (0, more)) + sums
        sums = counts if weights is None else np.bincount(groups, weights**2, minlength=n)
        self.squares = np.pad(self.squares, (0, more)) + sums

    def _scores(self, records: Records) -> Floats:
        """Scores of shape (n, views, k)."""
        scores = records["scores"]
        return np.concatenate([1 - scores, scores], axis=2) if self.one else scores

    def _part(self, records: Records) -> Part:
        numbers, starts = np.unique(records["group"], return_index=True)
        sizes = np.diff(np.append(starts, len(records)))
        weights = records["weight"].astype(np.float64)
        if (weights == 1).all():
            rows = len(records)
            bags = Bags.unchecked(np.append(starts, rows), np.arange(rows), rows)
        else:
            bags = thinned(np.split(weights, starts[1:]), len(records), each=20)
        scores = self._scores(records)
        views = [scores[:, v] for v in range(scores.shape[1])]
        folds = views[: self.n_folds]
        total = np.add.reduceat(weights, starts) if len(sizes) else weights
        own = np.repeat(np.arange(len(numbers)), sizes)
        looks = np.zeros((len(numbers), sum(self.widths)))
        for column in records["cells"].T:
            np.add.at(looks, (own, column), weights)
        return Part(
            numbers.astype(np.int64),
            [(v, bags) for v in folds],
            (mix_views(folds), bags),
            (views[-1], bags) if self.has_whole else None,
            looks / total[:, None],
        )


class _Large:
    """Groups of many rows, in sketches."""

    def __init__(self, kept: Kept, held: Floats):
        self.kept = kept
        kind = kept.model.scorer.kind
        several = kept.n_folds + kept.has_whole
        self.sketches = [Sketch.of(kept.k, kind, held) for _ in range(several)]
        self.mixed = Sketch.of(kept.k, kind, held) if kept.n_folds > 1 else self.sketches[0]
        self.slots = np.zeros(0, dtype=np.int64)  # by group number, -1 for the small ones
        self.numbers: list[int] = []
        self.is_whole = False  # whether it has the rows that came before its groups were large
        self.looks = np.zeros((0, sum(kept.widths)))

    def has(self, groups: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of the groups are here."""
        self.slots = np.pad(
            self.slots, (0, max(0, len(self.kept.rows) - len(self.slots))), constant_values=-1
        )
        return np.asarray(self.slots[groups] >= 0)

    def add(self, scores: Floats, cells: Any, groups: Ints, weights: Floats) -> None:
        for g in np.unique(groups[~self.has(groups)]).tolist():
            self.slots[g] = len(self.numbers)
            self.numbers.append(g)
        own = self.slots[groups]
        for v, sketch in enumerate(self.sketches):
            sketch.add(scores[:, v], own, weights)
        folds = [scores[:, v] for v in range(self.kept.n_folds)]
        if self.mixed is not self.sketches[0]:
            self.mixed.add(mix_views(folds), own, weights)
        width = self.looks.shape[1]
        grown = np.zeros((len(self.numbers), width))
        grown[: len(self.looks)] = self.looks
        for column in np.asarray(cells).T:
            places = own * width + column
            grown += np.bincount(places, weights, minlength=grown.size).reshape(grown.shape)
        self.looks = grown

    def part(self) -> Part:
        points = [sketch.points() for sketch in self.sketches]
        folds = points[: self.kept.n_folds]
        numbers = np.array(self.numbers)
        mixed = self.mixed.points() if self.kept.n_folds > 1 else folds[0]
        looks = self.looks / self.kept.weight[numbers][:, None]
        return Part(numbers, folds, mixed, points[-1] if self.kept.has_whole else None, looks)
