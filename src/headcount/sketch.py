"""What is kept of a group's scores, however many there are: a summary of bounded size.

For two classes it is a fine histogram of the log odds with the mean of every cell, from which an
estimate differs in the sixth digit. For more classes it is a sample with weights that is thinned
whenever it grows: neighbours, by best class and its score, are paired and one of each pair stands
for both (the compactors of Karnin, Lang and Liberty, 2016).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from headcount.bags import Bags
from headcount.exceptions import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CELLS = 2048
KEPT = 20_000  # rows of a level
POINTS = 20_000  # items that stand for a group in the end
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
        self.rng = np.random.default_rng(0)

    def add(self, scores: Floats, groups: Ints) -> None:
        _enough(groups)
        order = np.argsort(groups, kind="stable")
        numbers, starts = np.unique(groups[order], return_index=True)
        rows = np.asarray(scores, dtype=np.float32)[order]
        for group, part in zip(numbers, np.split(rows, starts[1:]), strict=True):
            while len(self.levels) <= group:
                self.levels.append([[]])
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
        for levels in self.levels:
            rows = [np.concatenate(parts) for parts in levels if parts]
            sizes = [2**i for i, parts in enumerate(levels) if parts]
            pools.append(np.concatenate(rows).astype(np.float64))
            each = [np.full(len(r), s) for r, s in zip(rows, sizes, strict=True)]
            best = np.lexsort((pools[-1].max(axis=1), pools[-1].argmax(axis=1)))
            pools[-1] = pools[-1][best]
            weights.append(np.concatenate(each)[best])
        pool = np.concatenate(pools)
        if self.posterior:  # four bytes a score do not sum to 1 closely enough
            pool /= pool.sum(axis=1, keepdims=True)
        return pool, _thinned(weights, len(pool))


def _thinned(weights: list[Ints], n_items: int) -> Bags:
    """Bags of points in proportion to their weights, at even steps through the order they are in.

    A group of no more than `POINTS` items is represented exactly.
    """
    indices, sizes, start = [], [], 0
    for weight in weights:
        total = int(weight.sum())
        if total <= POINTS:
            chosen = np.repeat(np.arange(len(weight)), weight)
        else:
            steps = (np.arange(POINTS) + 0.5) * (total / POINTS)
            chosen = np.searchsorted(np.cumsum(weight), steps, side="right")
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
