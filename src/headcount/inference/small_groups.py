"""Small groups: the exact posterior of how many of a few items belong to each class.

The shares of three items are 0, 1/3, 2/3 or 1, and a normal error around an estimate does not
describe them. Here every item has a likelihood under each class (its calibrated posterior over the
labelled prevalence), the prevalences of groups have a prior, and the realised shares are drawn from
their posterior (`headcount.inference.posteriors`; for two classes an exact sum). The prior is a
random-effects model: a mixture of Dirichlet distributions around the mean of the groups, whose mean
and weights maximise the marginal likelihood of all groups of a call (empirical Bayes, Efron and
Morris 1975). It is symmetric in the groups. Given the prior, each group is handled alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.inference.draws import Draws
from headcount.inference.posteriors import PosteriorDraws, Prior, modes, sample
from headcount.kernels.random import content_keys
from headcount.scores.calibration import (
    POSTERIOR_FLOOR,
    SoftmaxCalibrator,
    logits_of,
    resampled,
)
from headcount.scores.scorer import Scorer, View, in_own_order

# Bootstrap replicates of the calibrator, for the error of the labelled items, and draws of a group
# in each: 300 in all, the default of `predict_interval`.
N_GROUP_REPLICATES = 5
N_GROUP_DRAWS = 60
GROUPS_FOR_PRIOR = 400  # of different content: the standard error of a mean share is a twentieth
EM_STEPS = 8  # after which weights of the mixture change by less than their sampling error
# Items that Dirichlet components around the mean count for: from flat to hardly any variance.
CONCENTRATIONS = (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
# Groups that the initial mixture counts for; half of it is the flat prior (convention).
PRIOR_GROUPS = 3.0
PRIOR_ITEMS = 10.0  # items of a group that count in the mean, and of the labelled ones (convention)


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
        each = list(resampled(fresh, logits, scorer.codes, N_GROUP_REPLICATES, rng))
        self.replicates = [(c, c.transform(logits).mean(axis=0)) for c in each]

    def learn_prior(self, views: Iterable[View]) -> Prior:
        """Prior of the prevalences of groups, from all groups of a call, some at a time.

        Groups of equal content have equal posteriors and count as often as there are such groups.
        Of very many contents, those with the smallest hashes are used.
        """
        sample, number = _join_samples([_sample_contents(view) for view in views])
        parts = [(self._likelihoods(s.raw)[0], s.bags, s.keys) for s in sample]
        order = np.argsort(np.concatenate([s.keys for s in sample]))
        sizes = np.concatenate([s.bags.sizes for s in sample])[order]
        k = len(self.classes)
        mean, totals = self.frequency, np.array([k, *CONCENTRATIONS])
        n = len(CONCENTRATIONS)
        initial = np.array([0.5, *[0.5 / n] * n])
        weights = initial
        for _ in range(EM_STEPS):
            around = np.vstack([np.full(k, 1 / k), np.tile(mean, (n, 1))])
            prior = np.maximum(around * totals[:, None], 1e-3), np.log(weights)
            drawn = [_draw(*part, prior) for part in parts]
            shares = np.concatenate([d.mean(axis=1) for d, _ in drawn])[order]
            mix = np.concatenate([m for _, m in drawn])[order]
            weights = number @ mix + PRIOR_GROUPS * initial
            weights /= weights.sum()
            counts = (number * np.minimum(sizes, PRIOR_ITEMS)) @ shares
            mean = (counts + PRIOR_ITEMS * self.frequency) / (counts.sum() + PRIOR_ITEMS)
        return prior[0], np.log(weights)

    def posterior(self, raw: Floats, bags: Bags, prior: Prior) -> Draws:
        """Draws of the realised shares of groups; their means are the estimates."""
        keys = _keys((raw, bags))
        likelihoods = self._likelihoods(raw)
        drawn = [_draw(likelihood, bags, keys, prior)[0] for likelihood in likelihoods]
        values = np.concatenate(drawn, axis=1)
        draws = Draws.of_values(self.classes, values.mean(axis=1, dtype=float), values, bags.sizes)
        return replace(draws, keys=keys, discrete=True)

    def _likelihoods(self, raw: Floats) -> list[Floats]:
        """Likelihoods of items under each class, by each replicate of the calibrator."""
        logits = logits_of(raw, self.kind)
        return [
            np.clip(calibrator.transform(logits), POSTERIOR_FLOOR, 1.0) / prior
            for calibrator, prior in self.replicates
        ]


class _Sample(NamedTuple):
    """Groups of different content, and how many groups have each content."""

    raw: Floats
    bags: Bags
    keys: NDArray[np.uint64]
    number: Ints


def _sample_contents(view: View) -> _Sample:
    """The contents with the smallest hashes, without the rest of the pool."""
    raw, bags = view
    keys, first, number = np.unique(_keys(view), return_index=True, return_counts=True)
    chosen = slice(0, GROUPS_FOR_PRIOR)
    some = bags[first[chosen]]
    total = int(some.sizes.sum())
    indptr = np.concatenate([[0], np.cumsum(some.sizes)])
    own = Bags.unchecked(indptr, np.arange(total), total)
    return _Sample(raw[some.indices], own, keys[chosen], number[chosen])


def _join_samples(samples: Sequence[_Sample]) -> tuple[list[_Sample], Ints]:
    """Samples without repeated contents, and the number of groups of each by increasing hash."""
    keys = np.concatenate([s.keys for s in samples])
    every, first, place = np.unique(keys, return_index=True, return_inverse=True)
    number = np.bincount(place, np.concatenate([s.number for s in samples])).astype(np.int64)
    is_used = np.zeros(len(keys), dtype=bool)
    is_used[first[:GROUPS_FOR_PRIOR]] = True
    ends = np.cumsum([len(s.keys) for s in samples])[:-1]
    used = [np.flatnonzero(part) for part in np.split(is_used, ends)]
    kept = [
        _Sample(s.raw, s.bags[own], s.keys[own], s.number[own])
        for s, own in zip(samples, used, strict=True)
        if len(own)
    ]
    return kept, number[: min(len(every), GROUPS_FOR_PRIOR)]


def _keys(view: View) -> Any:
    raw, bags = view
    return content_keys(raw, bags.indptr, bags.indices)


def _draw(likelihood: Floats, bags: Bags, keys: Any, prior: Prior) -> tuple[PosteriorDraws, Floats]:
    """Draws of groups, and the probability of each component of the prior."""
    scores, ordered = in_own_order(likelihood, bags)  # chains go through the items
    starts = modes(scores, ordered, (prior[0][:1], prior[1][:1]))
    return sample(scores, ordered, prior, N_GROUP_DRAWS, keys, starts)
