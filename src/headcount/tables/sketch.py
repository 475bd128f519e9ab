"""Scores of a large group as a summary of bounded size.

For two classes it is a fine histogram of the log odds with the mean of every cell, from which
estimates differ in the fifth digit. For more classes it is a weighted sample that is halved
whenever it grows: neighbours, by best class and its score, are paired and one of each pair
represents both (compactors: Karnin, Lang and Liberty, 2016). The mean scores, the mean roots of
scores and the number of items by best class are kept exactly, and the final weights are calibrated
to these known totals, as in survey statistics (Deville and Sarndal, 1992).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError


class Sketch(ABC):
    """Scores by group: add batches, then get a pool and bags of bounded size."""

    @abstractmethod
    def add(self, scores: Floats, groups: Ints, weights: Floats | None = None) -> None:
        """Add items with their scores and group numbers; new numbers make new groups."""

    @abstractmethod
    def points(self) -> tuple[Floats, Bags]:
        """Scores, and for each group those that represent it, repeated by their weight."""

    @staticmethod
    def of(n_classes: int, kind: str, held: Floats | None = None) -> Sketch:
        """Sketch for scores of this kind (posterior, decision or label), if known like `held`."""
        return _TwoClasses(kind, held) if n_classes == 2 else _ManyClasses(kind)


class _TwoClasses(Sketch):
    n_cells = 2048  # as in `headcount.kernels.compiled.sketch`
    max_points = 20_000  # of a group: an estimate of 500,000 rows moves by less than 5e-4

    def __init__(self, kind: str, held: Floats | None):
        self.posterior = kind != "decision"
        self.counts = np.zeros((8, self.n_cells))
        self.sums = np.zeros((8, self.n_cells, 2))
        self.n_groups = 0
        self.centre, self.scale = 0.0, 5.0
        if held is not None and not self.posterior:
            margin = held[:, 1] - held[:, 0]
            self.centre = float(np.median(margin))
            self.scale = max(float(np.quantile(np.abs(margin - self.centre), 0.95)), 1e-12)

    def add(self, scores: Floats, groups: Ints, weights: Floats | None = None) -> None:
        from headcount.kernels.compiled.sketch import add_two

        self.n_groups = max(self.n_groups, int(groups.max(initial=-1)) + 1)
        while len(self.counts) < self.n_groups:
            self.counts = np.concatenate([self.counts, np.zeros_like(self.counts)])
            self.sums = np.concatenate([self.sums, np.zeros_like(self.sums)])
        weights = np.ones(len(groups)) if weights is None else weights
        grid = (self.posterior, self.centre, self.scale)
        bad = add_two(scores[:, 0], scores[:, 1], groups, weights, *grid, self.counts, self.sums)
        if bad >= 0:
            raise InputError(
                f"{scores[bad].tolist()} is no pair of scores: posteriors lie between 0 and 1 and "
                "sum to 1."
            )

    def points(self) -> tuple[Floats, Bags]:
        counts, sums = self.counts[: self.n_groups], self.sums[: self.n_groups]
        used = counts > 0
        pool = sums[used] / counts[used][:, None]
        weights = [counts[g][used[g]] for g in range(self.n_groups)]
        return pool, thinned(weights, len(pool), self.max_points)


class _ManyClasses(Sketch):
    rows_per_level = 40_000  # memory of a group grows with the logarithm of its rows
    max_points = 400_000  # of a group: an estimate of 500,000 rows moves by less than 1e-3

    def __init__(self, kind: str):
        self.posterior = kind != "decision"
        self.levels: list[list[list[NDArray[np.float32]]]] = []  # of rows: scores, then a weight
        self.totals: list[Floats] = []  # sums of the features that are kept exactly
        self.rng = np.random.default_rng(0)

    def add(self, scores: Floats, groups: Ints, weights: Floats | None = None) -> None:
        weights = np.ones(len(groups)) if weights is None else weights
        order = np.argsort(groups, kind="stable")
        numbers, starts = np.unique(groups[order], return_index=True)
        rows = np.column_stack([scores, weights]).astype(np.float32)[order]
        for group, part in zip(numbers, np.split(rows, starts[1:]), strict=True):
            while len(self.levels) <= group:
                self.levels.append([[]])
                self.totals.append(np.zeros(3 * scores.shape[1]))
            self.totals[group] += part[:, -1] @ _features(part[:, :-1])
            self.levels[group][0].append(part)
            self._thin(self.levels[group])

    def _thin(self, levels: list[list[NDArray[np.float32]]]) -> None:
        for i, parts in enumerate(levels):
            if sum(len(part) for part in parts) < 2 * self.rows_per_level:
                continue
            rows = np.concatenate(parts)
            scores = rows[:, :-1]
            rows = rows[np.lexsort((scores.max(axis=1), scores.argmax(axis=1)))]
            even = len(rows) // 2 * 2
            levels[i] = [rows[even:]]
            if i + 1 == len(levels):
                levels.append([])
            pairs = rows[:even].reshape(even // 2, 2, -1)
            both = pairs[:, :, -1].sum(axis=1)
            second = self.rng.random(even // 2) * both >= pairs[:, 0, -1]
            chosen = pairs[np.arange(even // 2), second.astype(int)]
            chosen[:, -1] = both
            levels[i + 1].append(chosen)

    def points(self) -> tuple[Floats, Bags]:
        pools, weights = [], []
        for levels, totals in zip(self.levels, self.totals, strict=True):
            rows = np.concatenate([part for parts in levels for part in parts]).astype(np.float64)
            pool, weight = rows[:, :-1], rows[:, -1]
            order = np.lexsort((pool.max(axis=1), pool.argmax(axis=1)))
            pools.append(pool[order])
            weight = weight[order]
            weights.append(weight if len(levels) == 1 else _raked(weight, pools[-1], totals))
        pool = np.concatenate(pools)
        if self.posterior:  # four bytes a score do not sum to 1 closely enough
            pool /= pool.sum(axis=1, keepdims=True)
        return pool, thinned(weights, len(pool), self.max_points)


def _features(rows: NDArray[Any]) -> Floats:
    """Scores, the best class, and roots of scores, which resolve small ones."""
    best = np.eye(rows.shape[1])[rows.argmax(axis=1)]
    scores = rows.astype(np.float64)
    return np.hstack([scores, best, np.sqrt(np.abs(scores))])


def _raked(weight: Floats, rows: Floats, totals: Floats) -> Floats:
    """Weights nearest to the given ones that have the known totals of features."""
    features = _features(rows)
    total = weight.sum()
    middle = weight @ features / total
    centred = features - middle
    spread = (centred * weight[:, None]).T @ centred / total
    tilt = np.linalg.pinv(spread, rcond=1e-9) @ (totals / total - middle)
    return np.asarray(weight * np.maximum(1.0 + centred @ tilt, 0.0))


def thinned(
    weights: Sequence[Floats], n_items: int, max_points: int, *, per_item: int | None = None
) -> Bags:
    """Bags of points in proportion to their weights, at even steps through their order.

    A group of at most `max_points` items of whole weights is represented exactly. With `per_item`,
    others get that many points for every item.
    """
    indices, sizes, start = [], [], 0
    for weight in weights:
        n = max_points if per_item is None else min(max_points, per_item * len(weight))
        total = float(weight.sum())
        if total <= n and (weight == np.round(weight)).all():
            chosen = np.repeat(np.arange(len(weight)), np.round(weight).astype(np.int64))
        else:
            steps = (np.arange(n) + 0.5) * (total / n)
            chosen = np.searchsorted(np.cumsum(weight), steps, side="right")
            chosen = np.minimum(chosen, len(weight) - 1)
        indices.append(start + chosen)
        sizes.append(len(chosen))
        start += len(weight)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return Bags(indptr, np.concatenate(indices), n_items)
