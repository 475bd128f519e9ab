"""Protocols that take the bags as the world gives them: at random, by group, by period."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from headcount._core import validation as check
from headcount.bags import Bags
from headcount.kernels.random import as_seed, streams
from headcount.protocols.artificial import fill_bags


@dataclass(frozen=True, kw_only=True)
class NaturalPrevalence:
    """Bags drawn at random from the pool, whatever classes they get (NPP).

    Parameters
    ----------
    n_bags : int, default 1000
    size : int, default 100
    random_state : int, generator or None

    Examples
    --------
    >>> bags = NaturalPrevalence(n_bags=200, size=50, random_state=0).draw([0] * 700 + [1] * 300)
    >>> bags.prevalence.mean(axis=0).round(1)
    array([0.7, 0.3])
    """

    n_bags: int = 1000
    size: int = 100
    random_state: int | np.random.Generator | np.random.RandomState | None = None

    def __post_init__(self) -> None:
        check.whole("n_bags", self.n_bags)
        check.whole("size", self.size)

    def count(self, n_classes: int) -> int:  # noqa: ARG002 - the same for any number
        """Tell how many bags there will be."""
        return self.n_bags

    def draw(self, y: ArrayLike, *, classes: ArrayLike | None = None) -> Bags:
        """Draw bags from a pool with labels `y`, as one class would be drawn."""
        array = check.labels(y)
        everything = np.zeros(len(array), dtype=np.int64)
        counts = np.full((self.n_bags, 1), self.size)
        states = streams(as_seed(self.random_state), "items", self.n_bags)
        bags = fill_bags(counts, everything, np.array([len(array)]), states, None)
        return bags.with_truth(array, classes)


@dataclass(frozen=True, eq=False)
class ByGroup:
    """One bag for each value of a column: a product, a region, an event.

    Examples
    --------
    >>> ByGroup(["spring", "autumn", "spring"]).draw(["neg", "pos", "pos"]).prevalence.tolist()
    [[0.0, 1.0], [0.5, 0.5]]
    """

    groups: Any

    def draw(self, y: ArrayLike | None = None, *, classes: ArrayLike | None = None) -> Bags:
        """Group the pool; with labels `y`, the true prevalences come along."""
        bags = Bags.from_groups(self.groups)
        return bags if y is None else bags.with_truth(y, classes)


@dataclass(frozen=True, eq=False)
class ByTime:
    """One bag for each period of a time column: year, month, week, day or hour.

    Examples
    --------
    >>> ByTime(["2026-01-31", "2026-02-01", "2026-01-02"]).draw().ids.astype(str).tolist()
    ['2026-01', '2026-02']
    """

    times: Any
    every: str = "month"

    def draw(self, y: ArrayLike | None = None, *, classes: ArrayLike | None = None) -> Bags:
        """Cut the pool into periods; with labels `y`, the true prevalences come along."""
        bags = Bags.from_time(self.times, every=self.every)
        return bags if y is None else bags.with_truth(y, classes)
