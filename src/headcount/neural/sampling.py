"""Bags to learn from: drawn from labelled items, real ones, and mixtures of two real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from sklearn.base import BaseEstimator

from headcount._core import validation as check
from headcount._core.types import Bools, Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError, choose
from headcount.neural.runtime import mix_seed
from headcount.protocols.artificial import UniformPrevalence

MIXING = ("pooled", "proportion", "union", "neighbours", "rare")
NEARNESS = 0.001  # added to the distance of two bags before its inverse is their weight


class Sampling(BaseEstimator):
    """How the bags of an epoch are drawn.

    Parameters
    ----------
    bag_size : int, optional
        Items in a bag that is drawn; by default the median size of the bags that are given, else
        250.
    bags_per_epoch : int, default 500
    labelled_share : float, default 0.5
        Share of bags from labelled items where there are real bags as well.
    real_share : float, default 0.5
        Share of real bags among the others; the rest are mixtures of two.
    mixing : {'pooled', 'proportion', 'union', 'neighbours', 'rare'}
        How two bags make one. 'pooled': items drawn from both together, with replacement.
        'proportion': the same, at a random proportion. 'union': all items of both. 'neighbours':
        pooled, the second likely to have similar shares. 'rare': pooled, and half of the real
        bags have a class at or below half of an even share.
    classified : float, default 0.6
        Share of the labelled items that the features of a network learn to classify first, where
        they do. Bags are drawn from the others: items that the features know look clearer than
        new ones.
    validation : float, default 0.3
        Share of the real bags, or of the labelled items if there are none, that is held out.
    validation_bags : int, default 200
        Bags drawn from held-out labelled items.

    Examples
    --------
    >>> Sampling(bags_per_epoch=1000, real_share=0.1).mixing
    'pooled'
    """

    def __init__(
        self,
        *,
        bag_size: int | None = None,
        bags_per_epoch: int = 500,
        labelled_share: float = 0.5,
        real_share: float = 0.5,
        mixing: str = "pooled",
        classified: float = 0.6,
        validation: float = 0.3,
        validation_bags: int = 200,
    ):
        self.bag_size = bag_size
        self.bags_per_epoch = bags_per_epoch
        self.labelled_share = labelled_share
        self.real_share = real_share
        self.mixing = mixing
        self.classified = classified
        self.validation = validation
        self.validation_bags = validation_bags

    def check(self) -> None:
        """Refuse impossible settings."""
        if self.bag_size is not None:
            check.whole("bag_size", self.bag_size)
        check.whole("bags_per_epoch", self.bags_per_epoch)
        check.whole("validation_bags", self.validation_bags)
        choose("mixing", self.mixing, MIXING)
        for name in ("labelled_share", "real_share"):
            check.at_least(name, getattr(self, name), 0, 1)
        for name in ("validation", "classified"):
            check.at_least(name, getattr(self, name), 0.01, 0.99)


class Source(Protocol):
    """Where bags come from."""

    def draw(self, n: int, seed: int) -> Bags:
        """Draw `n` bags with known shares."""


@dataclass(frozen=True)
class LabelledItems:
    """Bags with shares uniform on the simplex (Kraemer), of labelled items.

    `rows` are the numbers of the items in a pool of `n_items`, `codes` their classes.
    """

    rows: Ints
    codes: Ints
    n_classes: int
    n_items: int
    size: int

    def draw(self, n: int, seed: int) -> Bags:
        """Draw `n` bags with known shares."""
        protocol = UniformPrevalence(n_bags=n, size=self.size, random_state=seed)
        bags = protocol.draw(self.codes, classes=np.arange(self.n_classes))
        return replace(bags, indices=self.rows[bags.indices], n_items=self.n_items)


@dataclass(frozen=True)
class RealBags:
    """Bags with known shares: some as they are, the others mixed of two."""

    bags: Bags
    size: int
    real_share: float
    mixing: str

    def draw(self, n: int, seed: int) -> Bags:
        """Draw `n` bags with known shares."""
        rng = np.random.default_rng(seed)
        real = rng.random(n) < self.real_share
        picked = self._real_ones(int(real.sum()), rng)
        mixed = [self._mix(rng) for _ in range(n - len(picked))]
        lists = [self.bags.items(s) for s in picked] + [items for items, _ in mixed]
        truth = self._truth()
        shares = [truth[s] for s in picked] + [p for _, p in mixed]
        order = rng.permutation(n)
        bags = Bags.from_lists([lists[i] for i in order], self.bags.n_items)
        return replace(bags, prevalence=np.array([shares[i] for i in order]))

    def _truth(self) -> Floats:
        assert self.bags.prevalence is not None
        return self.bags.prevalence

    def _real_ones(self, n: int, rng: np.random.Generator) -> Ints:
        picked = rng.integers(len(self.bags), size=n)
        rare = np.flatnonzero(self._has_rare_class())
        if self.mixing == "rare" and len(rare):
            forced = rng.random(n) < 0.5
            picked[forced] = rng.choice(rare, size=int(forced.sum()))
        return picked

    def _has_rare_class(self) -> Bools:
        truth = self._truth()
        return np.asarray(truth.min(axis=1) <= 1 / (2 * truth.shape[1]))

    def _mix(self, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Items and shares of a mixture of two bags."""
        truth = self._truth()
        first = int(rng.integers(len(self.bags)))
        weights = None
        if self.mixing == "neighbours":
            weights = 1 / (np.abs(truth - truth[first]).sum(axis=1) + NEARNESS)
            weights[first] = 0
            weights /= weights.sum()
        second = int(rng.choice(len(self.bags), p=weights))
        one, two = self.bags.items(first), self.bags.items(second)
        part = len(one) / (len(one) + len(two))
        if self.mixing == "union":
            return np.concatenate([one, two]), part * truth[first] + (1 - part) * truth[second]
        if self.mixing == "proportion":
            from_first = int(rng.binomial(self.size, rng.random()))
            part = from_first / self.size
        else:
            from_first = int(rng.binomial(self.size, part))
        items = np.concatenate(
            [rng.choice(one, from_first), rng.choice(two, self.size - from_first)]
        )
        return items, part * truth[first] + (1 - part) * truth[second]


@dataclass(frozen=True)
class Both:
    """Bags of two sources, shuffled."""

    first: Source
    second: Source
    share: float

    def draw(self, n: int, seed: int) -> Bags:
        """Draw `n` bags with known shares."""
        n_first = round(self.share * n)
        parts = [
            source.draw(m, mix_seed(seed, i))
            for i, (source, m) in enumerate([(self.first, n_first), (self.second, n - n_first)])
            if m
        ]
        return join(parts)[np.random.default_rng(seed).permutation(n)]


def join(parts: Sequence[Bags]) -> Bags:
    """All bags of several, over one pool."""
    lists = [items for bags in parts for items in bags]
    truth = np.concatenate([bags.prevalence for bags in parts if bags.prevalence is not None])
    return replace(Bags.from_lists(lists, parts[0].n_items), prevalence=truth)


def split_bags(bags: Bags, share: float, seed: int) -> tuple[Bags, Bags]:
    """Bags to learn from and bags to hold out, at random."""
    n_held = round(share * len(bags))
    if not 1 <= n_held < len(bags):
        raise InputError(
            f"{len(bags)} bags cannot be split into some to learn from and a share of {share:g} "
            "to hold out: pass more bags, or set validation of the sampling."
        )
    order = np.random.default_rng(seed).permutation(len(bags))
    return bags[np.sort(order[n_held:])], bags[np.sort(order[:n_held])]


def split_items(codes: Ints, share: float, seed: int) -> tuple[Ints, Ints]:
    """Items to learn from and items to hold out, at least one of every class in each."""
    rng = np.random.default_rng(seed)
    learnt, held = [], []
    for code in np.unique(codes):
        rows = rng.permutation(np.flatnonzero(codes == code))
        if len(rows) < 2:
            raise InputError(
                f"class number {code} has one labelled item, and at least two are needed: one to "
                "learn from, one to hold out. Add some, or leave the class out."
            )
        n_held = min(max(1, round(share * len(rows))), len(rows) - 1)
        held.append(rows[:n_held])
        learnt.append(rows[n_held:])
    return np.sort(np.concatenate(learnt)), np.sort(np.concatenate(held))


def divide_items(codes: Ints, share: float, seed: int) -> tuple[Ints, Ints]:
    """Items in two parts, the first with this share; the only item of a class is in both."""
    lonely = np.flatnonzero(np.bincount(codes)[codes] == 1)
    others = np.setdiff1d(np.arange(len(codes)), lonely)
    if not len(others):
        return lonely, lonely
    first, second = split_items(codes[others], 1 - share, seed)
    return np.union1d(others[first], lonely), np.union1d(others[second], lonely)
