"""Intervals for prevalences: the shares that could have led to the estimate that was made.

The answer is found by making bags whose shares are known. The labelled items that the classifier
had not seen stand for the classes; each simulated world draws them anew with replacement (what is
not known about the classes), then a bag of the same size from it (the luck of the bag), and the
quantifier estimates that bag as it did the real one (`headcount.inference.spread`). Averaged over
equally likely shares the interval covers as promised.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from headcount._core.frame import Frame
from headcount._core.types import Floats, Ints
from headcount.inference.blind import tells_apart
from headcount.inference.bounds import bounds
from headcount.inference.halves import FEWEST, widening_of
from headcount.inference.simulation import make_simulator
from headcount.inference.spread import Request, Spread, spread_of
from headcount.scores.scorer import Scorer, View

FEW = 100_000  # held-out scores, in numbers, up to which curves of several classes bend to them


class Scored(Protocol):
    """A fitted quantifier that works on scores, as far as intervals are concerned."""

    scorer_: Scorer
    flat_: Floats | None

    def estimate(self, views: Sequence[View]) -> Floats:
        """Estimates of bags from raw scores."""

    def quick_twin(self) -> Any:
        """A copy that is fast enough for simulated bags."""

    def method_tags(self) -> Any:
        """What the method is like."""


@dataclass(frozen=True, eq=False)
class Interval:
    """Shares of each class with bounds: a vector for one set, a row a bag for many."""

    classes: NDArray[Any]
    prevalence: Floats
    low: Floats
    high: Floats
    variance: Floats
    level: float

    @property
    def worth(self) -> Floats:
        """Number of items to label by hand, drawn at random, that would tell as much."""
        unsure = np.maximum(self.variance, 1e-12).sum(axis=-1)
        known = (self.prevalence * (1 - self.prevalence)).sum(axis=-1)
        return np.asarray(np.maximum(known / unsure, 1.0))

    @property
    def middle(self) -> Floats:
        """Middles of the intervals, made to sum to 1."""
        middle = (self.low + self.high) / 2
        return np.asarray(middle / np.maximum(middle.sum(axis=-1, keepdims=True), 1e-12))

    def to_frame(self, ids: Any = None) -> Frame:
        """One row a bag and class."""
        k = len(self.classes)
        rows = np.atleast_2d(self.prevalence)
        ids = np.arange(len(rows)) if ids is None else np.asarray(ids)
        return Frame(
            {
                "bag": np.repeat(ids, k),
                "class": np.tile(self.classes, len(rows)),
                "share": rows.ravel(),
                "low": np.atleast_2d(self.low).ravel(),
                "high": np.atleast_2d(self.high).ravel(),
            }
        )

    @classmethod
    def from_spread(
        cls, classes: NDArray[Any], estimates: Floats, spread: Spread, level: float
    ) -> Interval:
        """Bounds that hold what is likely, and the estimate itself where that is outside."""
        low, high = bounds(spread.mean, spread.variance, spread.levels[:, None])
        return cls(
            classes,
            estimates,
            np.minimum(low, estimates),
            np.maximum(high, estimates),
            spread.variance,
            level,
        )

    @classmethod
    def unknown(cls, classes: NDArray[Any], estimates: Floats, level: float) -> Interval:
        """Everything is possible: nothing was learnt that could narrow it down."""
        nothing = np.zeros_like(estimates)
        return cls(classes, estimates, nothing, nothing + 1, nothing + 1 / 12, level)

    def first(self) -> Interval:
        """Same for the first bag alone, as vectors."""
        return Interval(
            self.classes,
            self.prevalence[0],
            self.low[0],
            self.high[0],
            self.variance[0],
            self.level,
        )

    def widened(self, factor: Floats) -> Interval:
        """Same estimates with intervals that are wider by a factor for each bag, to both sides."""
        more = (np.asarray(factor)[:, None] - 1) * (self.high - self.low) / 2
        return replace(
            self,
            low=np.clip(self.low - more, 0.0, 1.0),
            high=np.clip(self.high + more, 0.0, 1.0),
            variance=self.variance * np.asarray(factor)[:, None] ** 2,
        )

    def loosened(self, off: Floats) -> Interval:
        """Intervals that allow for errors of this standard deviation on top, for bag and class."""
        more = (norm.ppf((1 + self.level) / 2) * off) ** 2
        low = self.prevalence - np.sqrt((self.prevalence - self.low) ** 2 + more)
        high = self.prevalence + np.sqrt((self.high - self.prevalence) ** 2 + more)
        return replace(
            self,
            low=np.clip(low, 0.0, 1.0),
            high=np.clip(high, 0.0, 1.0),
            variance=self.variance + off**2,
        )

    def around(self, estimates: Floats) -> Interval:
        """Same bounds for other estimates, reaching to them where they are outside."""
        low, high = np.minimum(self.low, estimates), np.maximum(self.high, estimates)
        return replace(self, prevalence=estimates, low=low, high=high)


def simulate_interval(
    quantifier: Scored, views: Sequence[View], sizes: Ints, request: Request
) -> Interval:
    """Estimates of bags, from raw scores by each classifier, with bounds by simulation.

    Parameters
    ----------
    quantifier : fitted quantifier that works on scores
    views : raw scores of the pool by each classifier, each with its bags
    sizes : number of items that each bag stands for
    request : Request
    """
    estimates, scorer = quantifier.estimate(views), quantifier.scorer_
    blind = request.doubt and not tells_apart(scorer.scores, scorer.codes)
    if blind or quantifier.flat_ is not None:
        return Interval.unknown(scorer.classes, estimates, request.level)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # simulated bags have nothing to tell the user
        found = spread_of(make_simulator(quantifier), estimates, sizes, request)
        interval = Interval.from_spread(scorer.classes, estimates, found, request.level)
        if request.tried and _is_easier(quantifier):
            factor = _widening(quantifier, request)
            interval = interval.widened(np.full(len(sizes), factor))
    return interval


def _is_easier(quantifier: Scored) -> bool:
    """Whether a method knows the items that simulated bags are made of better than others."""
    tags, scorer = quantifier.method_tags(), quantifier.scorer_
    if tags.remembers or not tags.bends:
        return bool(tags.remembers)
    counts = np.bincount(scorer.codes)
    return len(counts) > 2 and scorer.scores.size <= FEW and bool(counts.min() >= FEWEST)


def _widening(quantifier: Scored, request: Request) -> float:
    """By how much halves of the labelled items ask to widen; found once for a fitted quantifier."""
    known: dict[tuple[float, int], float] = vars(quantifier).setdefault("widenings_", {})
    asked = request.level, request.random_state
    if asked not in known:
        known[asked] = widening_of(quantifier, request)
    return known[asked]
