"""Bags of known prevalence, drawn from bootstrap replicates of the labelled items.

Model: the labelled items of a class are a sample of that class, and only prevalences change. A
simulated bag therefore has two sources of error. The labelled items are resampled within classes
(the nonparametric bootstrap, Efron 1979), and the bag's own items are drawn from that replicate.
Every random number depends on the seed, the name of the step and the number of the replicate. So a
replicate is the same for all bags, and no bag depends on which others are simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.kernels.random import streams

Estimate = Callable[[Bags], Floats]

ITEMS_PER_BATCH = 1 << 21  # simulated items held in memory at once: 16 MB
DIGITS = 9  # shares are rounded to so many digits, so that rounding errors change no item count


@dataclass(frozen=True, eq=False)
class Replicates:
    """Bootstrap replicates of the labelled items.

    Attributes
    ----------
    rows : array of shape (replicates, items)
        Numbers of the resampled items, sorted by class.
    novelty : array of shape (replicates, classes)
        Probability that an item of a class resembles any labelled item, whatever its class. It is
        Beta(1, n): the posterior, under a flat prior, of an event that n items have not shown.
        Without it, classes that are separated perfectly would seem certain to stay so.
    drawn_from : array of shape (classes,)
        Resampled items of a class to draw from: one fewer than there are, because n resampled items
        vary less than n new ones by the factor (n - 1) / n.
    streams : array of shape (replicates,)
        Start states of the generators that draw the items of bags.
    """

    rows: NDArray[np.int32]
    novelty: Floats
    drawn_from: Ints
    streams: NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Simulator:
    """Draw bags of known prevalence from labelled items, and estimate them.

    Parameters
    ----------
    estimate : function from bags over the labelled items to estimates, or to any statistic of bags
    codes : class numbers of the labelled items
    n_classes : int
    seed : int
    """

    estimate: Estimate
    codes: Ints
    n_classes: int
    seed: int = 0

    @property
    def max_size(self) -> int:
        """Largest bag that is simulated; larger ones are extrapolated from it."""
        return min(max(1000, 2 * len(self.codes)), 20_000)

    @cached_property
    def by_class(self) -> tuple[NDArray[np.int32], Ints, Ints]:
        """Items sorted by class, where each class starts, and how many items it has."""
        sizes = np.bincount(self.codes, minlength=self.n_classes)
        order = np.argsort(self.codes, kind="stable").astype(np.int32)
        return order, np.cumsum(sizes) - sizes, sizes

    def replicates(self, n: int, step: str, *, resample: bool = True) -> Replicates:
        """The first `n` bootstrap replicates of a step; without resampling, copies of the items."""
        order, starts, sizes = self.by_class
        numbers = streams(self.seed, step, n)
        if not resample:
            rows, novelty = np.tile(order, (n, 1)), np.zeros((n, self.n_classes))
            return Replicates(rows, novelty, sizes, numbers)
        rng = np.random.default_rng([self.seed, *step.encode()])
        within = (rng.random((n, len(order))) * np.repeat(sizes, sizes)).astype(np.int64)
        novelty = rng.beta(1.0, sizes, size=(n, self.n_classes))
        rows = order[np.repeat(starts, sizes) + within]
        return Replicates(rows, novelty, np.maximum(sizes - 1, 1), numbers)

    def run(
        self, shares: Floats, sizes: Ints, replicates: Replicates, *, evenly: bool = False
    ) -> tuple[Floats, Floats]:
        """Estimates and true prevalences of simulated bags.

        Parameters
        ----------
        shares : array of shape (bags, replicates, classes)
            Prevalences to simulate at; item counts are rounded to them.
        sizes : array of shape (bags,)
        evenly : bool
            Whether the items of a bag are spread evenly over the resampled ones, not drawn.
        """
        n_bags, n_replicates, k = shares.shape
        shares = np.round(shares, DIGITS)
        outcomes: list[Floats] = []
        truths = np.empty_like(shares)
        step = max(1, ITEMS_PER_BATCH // max(1, int(sizes.sum())))
        for start in range(0, n_replicates, step):
            part = np.arange(start, min(start + step, n_replicates))
            lengths = np.repeat(sizes, len(part))
            counts = round_to_counts(shares[:, part].reshape(-1, k), lengths)
            bags = self._bags(replicates, np.tile(part, n_bags), counts, evenly)
            outcomes.append(self.estimate(bags).reshape(n_bags, len(part), -1))
            truths[:, part] = (counts / lengths[:, None]).reshape(n_bags, len(part), k)
        return np.concatenate(outcomes, axis=1), truths

    def _bags(self, replicates: Replicates, replicate: Ints, counts: Ints, evenly: bool) -> Bags:
        from headcount.kernels.compiled.simulate import draw_items, spread_items

        indptr = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
        items = np.empty(indptr[-1], dtype=np.int32)
        if evenly:
            spread_items(replicates.rows, *self.by_class[1:], replicate, counts, items)
        else:
            known = replicates.rows, self.by_class[1], replicates.drawn_from, replicate
            draw_items(*known, replicates.novelty, counts, replicates.streams, items)
        return Bags.unchecked(indptr, items, len(self.codes))


def make_simulator(quantifier: Any, seed: int = 0) -> Simulator:
    """Simulator of bags of held-out items, as a fitted quantifier estimates them."""
    scorer, twin = quantifier.scorer_, quantifier.simulation_twin()
    k = scorer.scores.shape[1]
    return Simulator(lambda bags: twin.estimate([(scorer.scores, bags)]), scorer.codes, k, seed)


def round_to_counts(shares: Floats, sizes: Ints) -> Ints:
    """Item counts of each class by the method of largest remainders."""
    exact = shares * sizes[:, None]
    counts = np.floor(exact + 0.1**DIGITS).astype(np.int64)
    missing = sizes - counts.sum(axis=1)
    rank = np.argsort(np.argsort(counts - exact, axis=1, kind="stable"), axis=1)
    return np.asarray(counts + (rank < missing[:, None]))
