"""Bags of known shares, made out of labelled items: what intervals and tests are learnt from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.types import Floats, Ints
from headcount.bags import Bags

Rows = NDArray[np.int32]
Estimate = Callable[[Bags], Floats]

ITEMS_AT_ONCE = 1 << 21  # simulated
DRAWS = 60  # simulated bags that tell how much the labelled items add to the error


@dataclass(frozen=True, eq=False)
class Simulator:
    """Makes bags of known shares out of labelled items, and has them estimated.

    Parameters
    ----------
    estimate : function from bags over the labelled items to estimates, or to anything of a bag
    codes : class numbers of the labelled items
    n_classes : int
    resample : bool
        Whether each simulated bag lives in a world of its own, in which the labelled items were
        drawn anew; False takes them as all there is.
    """

    estimate: Estimate
    codes: Ints
    n_classes: int
    resample: bool = True

    @property
    def enough(self) -> int:
        """Size from which on larger bags are told from smaller ones."""
        return min(max(1000, 2 * len(self.codes)), 20_000)

    def run(
        self,
        shares: Floats,
        sizes: Ints,
        rng: np.random.Generator,
        target: str,
    ) -> tuple[Floats, Floats]:
        """Estimates and true shares of bags, for proposed shares of shape (S, T, k)."""
        n_bags, n_draws, k = shares.shape
        worlds = self._worlds(n_draws, rng)
        outcomes: list[Floats] = []
        truths = np.empty_like(shares)
        step = max(1, ITEMS_AT_ONCE // max(1, int(sizes.sum())))
        for start in range(0, n_draws, step):
            draws = np.arange(start, min(start + step, n_draws))
            some = shares[:, draws].reshape(-1, k)
            lengths = np.repeat(sizes, len(draws))
            counts = _counts(some, lengths, rng, target)
            bags = self._bags(worlds, np.tile(draws, n_bags), counts, rng)
            outcomes.append(self.estimate(bags).reshape(n_bags, len(draws), -1))
            truth = counts / lengths[:, None] if target == "bag" else some
            truths[:, draws] = truth.reshape(n_bags, len(draws), k)
        return np.concatenate(outcomes, axis=1), truths

    def _worlds(self, n_draws: int, rng: np.random.Generator) -> tuple[Rows, Floats]:
        """Resampled labelled items by class, and how often a class is unlike its labelled items.

        The latter, Beta(1, n), is what n items that never showed something leave open: without
        it classes that were told apart perfectly would seem to be so for certain.
        """
        order = np.argsort(self.codes, kind="stable").astype(np.int32)
        if not self.resample:
            return np.tile(order, (n_draws, 1)), np.zeros((n_draws, self.n_classes))
        starts, sizes = self._by_class()
        within = (rng.random((n_draws, len(order))) * np.repeat(sizes, sizes)).astype(np.int64)
        unlike = rng.beta(1.0, sizes, size=(n_draws, self.n_classes))
        return order[np.repeat(starts, sizes) + within], unlike

    def _by_class(self) -> tuple[Ints, Ints]:
        """Where the items of each class start when sorted by class, and how many there are."""
        sizes = np.bincount(self.codes, minlength=self.n_classes)
        return np.cumsum(sizes) - sizes, sizes

    def _bags(
        self, worlds: tuple[Rows, Floats], world: Ints, counts: Ints, rng: np.random.Generator
    ) -> Bags:
        from headcount.kernels.compiled.simulate import draw_items

        rows, unlike = worlds
        starts, sizes = self._by_class()
        if self.resample:  # n items drawn from n vary by a part of n less than n items do
            sizes = np.maximum(sizes - 1, 1)
        indptr = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
        items = np.empty(indptr[-1], dtype=np.int32)
        seed = rng.integers(2**63, dtype=np.uint64)
        draw_items(rows, starts, sizes, world, unlike, counts, seed, items)
        return Bags.unchecked(indptr, items, len(self.codes))


def make_simulator(quantifier: Any) -> Simulator:
    """Simulator of bags made of the held-out items, as a fitted quantifier sees them."""
    scorer, quick = quantifier.scorer_, quantifier.quick_twin()
    k = scorer.scores.shape[1]
    return Simulator(lambda bags: quick.estimate([(scorer.scores, bags)]), scorer.codes, k)


def labelled_part(
    simulator: Simulator,
    shares: Floats,
    sizes: Ints,
    rng: np.random.Generator,
    target: str = "bag",
) -> Floats:
    """Share of the error's variance, for each class, that comes from the labelled items.

    The rest is the luck of a bag's own items, which is what is left where no items are drawn anew.
    """
    proposals = np.repeat(shares[:, None, :], DRAWS, axis=1)
    variances = []
    for world in (simulator, replace(simulator, resample=False)):
        found, truths = world.run(proposals, sizes, rng, target)
        variances.append((found - truths).var(axis=1).mean(axis=0))
    whole, bag = variances
    return np.asarray(np.clip(1.0 - bag / np.maximum(whole, 1e-18), 0.0, 1.0))


def _counts(shares: Floats, sizes: Ints, rng: np.random.Generator, target: str) -> Ints:
    """How many items of each class, rounded so as to sum to the size, or drawn."""
    if target == "population":
        return rng.multinomial(sizes, shares / shares.sum(axis=1, keepdims=True))
    exact = shares * sizes[:, None]
    whole = np.floor(exact).astype(np.int64)
    missing = sizes - whole.sum(axis=1)
    rank = np.argsort(np.argsort(whole - exact, axis=1), axis=1)
    return np.asarray(whole + (rank < missing[:, None]))
