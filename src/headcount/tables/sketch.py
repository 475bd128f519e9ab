"""What is kept of a group's scores, however many there are: a summary of bounded size.

For two classes it is a fine histogram of the log odds with the mean of every cell, from which an
estimate differs in the fifth digit. For more classes it is a sample with weights that is thinned
whenever it grows: neighbours, by best class and its score, are paired and one of each pair stands
for both (the compactors of Karnin, Lang and Liberty, 2016). The mean scores, the mean roots of
scores and the numbers of items by best class are kept exactly, and in the end the weights are
moved a little so that the sample has the same, as survey statisticians do with known totals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError

CELLS = 2048
KEPT = 40_000  # rows of a level
POINTS = 20_000  # items that stand for a group of two classes in the end
MANY_POINTS = 400_000  # and for one of more classes
MOST = 20_000  # groups


class Sketch(ABC):
    """Scores by group: add parts in any number, then get a pool and bags of bounded size."""

    @abstractmethod
    def add(self, scores: Floats, groups: Ints) -> None:
        """Add items with their scores and group numbers; new numbers make new groups."""

    @abstractmethod
    def points(self) -> tuple[Floats, Bags]:
        """Scores, and for each group the ones that stand for it, as often as they should."""

    @staticmethod
    def of(n_classes: int, kind: str) -> Sketch:
        """Sketch for scores of this kind (posterior, decision or label)."""
        return _TwoClasses(kind) if n_classes == 2 else _ManyClasses(kind)


class _TwoClasses(Sketch):
    def __init__(self, kind: str):
        self.posterior = kind != "decision"
        self.counts = np.zeros((8, CELLS), dtype=np.int64)
        self.sums = np.zeros((8, CELLS))
        self.n_groups = 0

    def add(self, scores: Floats, groups: Ints) -> None:
        from headcount.kernels.compiled.sketch import add_two

        self.n_groups = max(self.n_groups, _enough(groups))
        while len(self.counts) < self.n_groups:
            self.counts = np.concatenate([self.counts, np.zeros_like(self.counts)])
            self.sums = np.concatenate([self.sums, np.zeros_like(self.sums)])
        first, second = scores[:, 0], scores[:, 1]
        bad = add_two(first, second, groups, self.posterior, self.counts, self.sums)
        if bad >= 0:
            raise InputError(
                f"{scores[bad].tolist()} is no pair of scores: posteriors lie between 0 and 1 and "
                "sum to 1."
            )

    def points(self) -> tuple[Floats, Bags]:
        counts, sums = self.counts[: self.n_groups], self.sums[: self.n_groups]
        used = counts > 0
        second = sums[used] / counts[used]
        first = 1 - second if self.posterior else -second / 2
        pool = np.column_stack([first, second if self.posterior else second / 2])
        weights = [counts[g][used[g]] for g in range(self.n_groups)]
        return pool, _thinned(weights, len(pool))


class _ManyClasses(Sketch):
    def __init__(self, kind: str):
        self.posterior = kind != "decision"
        self.levels: list[list[list[NDArray[np.float32]]]] = []
        self.totals: list[Floats] = []  # sums of the features that are kept exactly
        self.rng = np.random.default_rng(0)

    def add(self, scores: Floats, groups: Ints) -> None:
        _enough(groups)
        order = np.argsort(groups, kind="stable")
        numbers, starts = np.unique(groups[order], return_index=True)
        rows = np.asarray(scores, dtype=np.float32)[order]
        for group, part in zip(numbers, np.split(rows, starts[1:]), strict=True):
            while len(self.levels) <= group:
                self.levels.append([[]])
                self.totals.append(np.zeros(3 * rows.shape[1]))
            self.totals[group] += _features(part).sum(axis=0)
            self.levels[group][0].append(part)
            self._thin(self.levels[group])

    def _thin(self, levels: list[list[NDArray[np.float32]]]) -> None:
        for i, parts in enumerate(levels):
            if sum(len(part) for part in parts) < 2 * KEPT:
                continue
            rows = np.concatenate(parts)
            best = rows.argmax(axis=1)
            rows = rows[np.lexsort((rows.max(axis=1), best))]
            even = len(rows) // 2 * 2
            levels[i] = [rows[even:]]
            if i + 1 == len(levels):
                levels.append([])
            pick = np.arange(0, even, 2) + self.rng.integers(2, size=even // 2)
            levels[i + 1].append(rows[pick])

    def points(self) -> tuple[Floats, Bags]:
        pools, weights = [], []
        for levels, totals in zip(self.levels, self.totals, strict=True):
            rows = [np.concatenate(parts) for parts in levels if parts]
            sizes = [2**i for i, parts in enumerate(levels) if parts]
            each = [np.full(len(r), s) for r, s in zip(rows, sizes, strict=True)]
            pool = np.concatenate(rows).astype(np.float64)
            order = np.lexsort((pool.max(axis=1), pool.argmax(axis=1)))
            pools.append(pool[order])
            weight = np.concatenate(each)[order].astype(float)
            weights.append(weight if len(levels) == 1 else _raked(weight, pools[-1], totals))
        pool = np.concatenate(pools)
        if self.posterior:  # four bytes a score do not sum to 1 closely enough
            pool /= pool.sum(axis=1, keepdims=True)
        return pool, _thinned(weights, len(pool), MANY_POINTS)


def _features(rows: NDArray[Any]) -> Floats:
    """Scores, which is the best, and their roots, which tell more of small ones."""
    best = np.eye(rows.shape[1])[rows.argmax(axis=1)]
    scores = rows.astype(np.float64)
    return np.hstack([scores, best, np.sqrt(np.abs(scores))])


def _raked(weight: Floats, rows: Floats, totals: Floats) -> Floats:
    """Weights with the known totals, as near as can be to the ones that are given."""
    features = _features(rows)
    total = weight.sum()
    middle = weight @ features / total
    centred = features - middle
    spread = (centred * weight[:, None]).T @ centred / total
    tilt = np.linalg.pinv(spread, rcond=1e-9) @ (totals / total - middle)
    return np.asarray(weight * np.maximum(1.0 + centred @ tilt, 0.0))


def _thinned(weights: list[Any], n_items: int, most: int = POINTS) -> Bags:
    """Bags of points in proportion to their weights, at even steps through the order they are in.

    A group of no more items than that is represented exactly.
    """
    indices, sizes, start = [], [], 0
    for weight in weights:
        total = float(weight.sum())
        if total <= most and (weight == np.round(weight)).all():
            chosen = np.repeat(np.arange(len(weight)), np.round(weight).astype(np.int64))
        else:
            steps = (np.arange(most) + 0.5) * (total / most)
            chosen = np.searchsorted(np.cumsum(weight), steps, side="right")
            chosen = np.minimum(chosen, len(weight) - 1)
        indices.append(start + chosen)
        sizes.append(len(chosen))
        start += len(weight)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return Bags(indptr, np.concatenate(indices), n_items)


def _enough(groups: Ints) -> int:
    """Number of groups so far; too many are refused."""
    n = int(groups.max()) + 1 if len(groups) else 0
    if n > MOST:
        raise InputError(
            f"more than {MOST:,} groups: group by something coarser, such as the month."
        )
    return n
