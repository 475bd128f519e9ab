"""Small groups: the exact posterior of how many of a few items are of each class.

Simulated bags tell where the shares of hundreds of items may be; of three items the shares are
0, 1/3, 2/3 or 1, and a normal error around an estimate is no answer. Here each item has its
likelihood under every class, shares have a prior, and what follows for the numbers of items is
drawn (for two classes: summed up). How far the shares of groups lie apart is learnt from the
groups themselves where there are several.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.inference.bounds import bounds
from headcount.inference.intervals import Interval
from headcount.inference.posteriors import Draws, Prior, modes, sample
from headcount.inference.spread import Request
from headcount.kernels.random import streams
from headcount.scores.calibration import POSTERIOR_FLOOR, SoftmaxCalibrator, logits_of, resampled
from headcount.scores.scorer import Scorer

DRAWS = 60, 240  # of a group in each world, at least and at most: of few, the shortest is too short
NUMBERS = 1 << 24  # of draws of all groups, from which on there are fewer of each
WORLDS = 5  # resamplings of the labelled items
ROUNDS = 8  # of learning how far groups lie apart
SEVERAL = 400  # groups that are enough to learn it from
SPREADS = (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)  # concentrations around the middle of the groups
DOUBT = 3.0  # groups' worth of belief that all shares are equally likely
AT_ONCE = 10_000  # groups


class SmallGroups:
    """Posteriors of the shares of small groups, learnt from held-out scores.

    Parameters
    ----------
    scorer : Scorer
        With held-out scores.
    calibrator : fitted calibrator, optional
        Of the raw scores; one is fitted where there is none.
    """

    def __init__(self, scorer: Scorer, calibrator: Any = None):
        self.kind, self.classes, self.frequency = scorer.kind, scorer.classes, scorer.frequency
        logits = logits_of(scorer.scores, scorer.kind)
        fresh: Any = calibrator or scorer.calibrator
        if fresh is None:
            fresh = SoftmaxCalibrator(bias=True).fit(logits, scorer.codes)
        rng = np.random.default_rng(0)
        several = list(resampled(fresh, logits, scorer.codes, WORLDS, rng))
        self.worlds = [(c, c.transform(logits).mean(axis=0)) for c in several]

    def bound(self, raw: Floats, bags: Bags, request: Request) -> Interval:
        """Estimates (posterior means) and bounds from raw scores."""
        likelihoods = [
            np.clip(c.transform(logits_of(raw, self.kind)), POSTERIOR_FLOOR, 1.0) / prior
            for c, prior in self.worlds
        ]
        prior = self._learn_prior(likelihoods[0], bags)
        n_draws = int(np.clip(NUMBERS // (len(bags) * len(self.classes) * WORLDS), *DRAWS))
        if len(bags) > AT_ONCE:  # a hundredth more or less is no matter of thousands of groups
            likelihoods, n_draws = likelihoods[:2], 40
        parts = []
        for start in range(0, len(bags), AT_ONCE):
            some = bags if len(bags) <= AT_ONCE else bags[slice(start, start + AT_ONCE)]
            draws = [_draw(likelihood, some, prior, n_draws)[0] for likelihood in likelihoods]
            parts.append(_bounded(np.concatenate(draws, axis=1), some.sizes, request))
        mean, low, high, variance = (np.concatenate(c) for c in zip(*parts, strict=True))
        return Interval(self.classes, mean, low, high, variance, request.level)

    def _learn_prior(self, likelihood: Floats, bags: Bags) -> Prior:
        """Where the shares of groups lie, and how far apart, by the likelihood of the groups.

        Half a belief that all shares are equally likely stands against a handful of groups.
        """
        k = len(self.classes)
        if len(bags) > SEVERAL:
            chosen = np.random.default_rng(0).choice(len(bags), SEVERAL, replace=False)
            bags = bags[np.sort(chosen)]
        middle = self.frequency
        spreads = np.array([k, *SPREADS])
        first = np.array([0.5, *[0.5 / len(SPREADS)] * len(SPREADS)])
        weights = first
        for _ in range(ROUNDS):
            around = np.vstack([np.full(k, 1 / k), np.tile(middle, (len(SPREADS), 1))])
            prior = np.maximum(around * spreads[:, None], 1e-3), np.log(weights)
            draws, mix = _draw(likelihood, bags, prior, DRAWS[0])
            weights = (mix.sum(axis=0) + DOUBT * first) / (len(bags) + DOUBT)
            counts = (draws.mean(axis=1) * np.minimum(bags.sizes, 10)[:, None]).sum(axis=0)
            middle = (counts + 10 * self.frequency) / (counts.sum() + 10)
        return prior[0], np.log(weights)


def _draw(likelihood: Floats, bags: Bags, prior: Prior, n_draws: int) -> tuple[Draws, Floats]:
    numbers = np.repeat(streams(0, "small", 1), len(bags))
    starts = modes(likelihood, bags, (prior[0][:1], prior[1][:1]))
    return sample(likelihood, bags, prior, n_draws, numbers, starts)


def _bounded(draws: Draws, sizes: Ints, request: Request) -> tuple[Floats, ...]:
    """Mean, the shortest interval of the level, and variance."""
    exact = draws.astype(np.float64)
    mean, variance = exact.mean(axis=1), exact.var(axis=1)
    if request.target == "population":
        variance = variance + (mean * (1 - mean)) / (sizes[:, None] + 2)
        low, high = bounds(mean, variance, request.level)
        return mean, low, high, variance
    ordered = np.sort(exact, axis=1)
    inside = int(np.ceil(request.level * exact.shape[1]))
    widths = ordered[:, inside - 1 :] - ordered[:, : exact.shape[1] - inside + 1]
    first = np.argmin(widths, axis=1)[:, None]
    low = np.take_along_axis(ordered, first, axis=1)[:, 0]
    high = np.take_along_axis(ordered, first + inside - 1, axis=1)[:, 0]
    return mean, np.minimum(low, mean), np.maximum(high, mean), variance
