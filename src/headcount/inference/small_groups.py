"""Posteriors of the prevalences of small groups, from the likelihoods of their items.

In a group of three rows a prevalence is 0, 1/3, 2/3 or 1, which a normal error around an estimate
describes poorly. Here each item has a likelihood under every class, the numbers of items of each
class have a Dirichlet-multinomial prior, and their posterior is summed exactly (two classes) or
sampled. Calibrators of bootstrap replicates of the labelled items stand for the labelled error.

The prior is that of the random-effects model (`headcount.inference.random_effects`): a mixture of
Dirichlet distributions around a common mean, one for each between-group variance, and a flat one.
Its weights and mean are learnt from all groups by empirical Bayes (EM, Gelman et al. 2013, section
13.4). Groups take part by their content alone. Where there are very many, those with the smallest
hashes are chosen (bottom-k sampling, Cohen and Kaplan 2007), so the prior depends neither on the
order of rows and groups nor on the chunks in which they come. A group's random numbers come from
its hash, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.inference.draws import Draws
from headcount.inference.labelled_error import LabelledError
from headcount.inference.posteriors import Prior, modes, sample
from headcount.inference.random_effects import BETWEEN_VARIANCES
from headcount.kernels.random import content_keys, streams
from headcount.scores.calibration import POSTERIOR_FLOOR, SoftmaxCalibrator, logits_of, resampled
from headcount.scores.scorer import Scorer, View

N_CALIBRATORS = 5  # bootstrap replicates of the labelled items
DRAWS_PER_CALIBRATOR = 60  # of each group
PRIOR_GROUPS = 400  # distinct groups that a prior is learnt from: weights have errors under 0.025
EM_ROUNDS = 30  # single rows need about twenty until the mean changes by less than 0.01
FLAT_PRIOR_GROUPS = 3.0  # groups that the initial weights count for
LABELLED_PRIOR_ITEMS = 10.0  # items that the labelled prevalences count for in the mean
MAX_ITEMS = 10  # of a group that count in the mean
CONCENTRATIONS = 1.0 / BETWEEN_VARIANCES[::2] - 1.0

Keys = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class _Sample:
    """Distinct groups with the smallest hashes, and how often each occurs."""

    scores: Floats
    bags: Bags
    keys: Keys
    counts: Ints

    @classmethod
    def of(cls, raw: Floats, bags: Bags) -> _Sample:
        """The sample of one chunk."""
        return cls(*_sorted_items(raw, bags), np.ones(len(bags), dtype=np.int64)).reduced()

    def reduced(self) -> _Sample:
        """Equal groups counted, and the rest dropped."""
        keys, first, owner = np.unique(self.keys, return_index=True, return_inverse=True)
        counts = np.bincount(owner.ravel(), self.counts, minlength=len(keys)).astype(np.int64)
        bags = self.bags[first[:PRIOR_GROUPS]]
        ends = np.append(0, np.cumsum(bags.sizes))
        compact = Bags.unchecked(ends, np.arange(ends[-1]), int(ends[-1]))
        scores = self.scores[bags.indices]
        return _Sample(scores, compact, keys[:PRIOR_GROUPS], counts[:PRIOR_GROUPS])

    def merged(self, other: _Sample) -> _Sample:
        """The sample of both."""
        n = len(self.scores)
        ends = np.append(self.bags.indptr, other.bags.indptr[1:] + n)
        scores = np.concatenate([self.scores, other.scores])
        bags = Bags.unchecked(ends, np.arange(len(scores)), len(scores))
        keys = np.append(self.keys, other.keys)
        return _Sample(scores, bags, keys, np.append(self.counts, other.counts)).reduced()


class SmallGroups:
    """Posteriors of the prevalences of small groups, by calibrated scores.

    Parameters
    ----------
    scorer : Scorer
        With held-out scores.
    calibrator : fitted calibrator, optional
        Of the raw scores. By default the scorer's, or else one that is fitted here.
    labelled : LabelledError, optional
        Errors of the replicates of other draws that are to be combined with these; without it the
        error of the labelled items counts as sampling variance.
    random_state : int, default 0
    """

    def __init__(
        self,
        scorer: Scorer,
        calibrator: Any = None,
        labelled: LabelledError | None = None,
        random_state: int = 0,
    ):
        self.kind, self.classes, self.frequency = scorer.kind, scorer.classes, scorer.frequency
        self.labelled, self.random_state = labelled, random_state
        logits = logits_of(scorer.scores, scorer.kind)
        fitted: Any = calibrator or scorer.calibrator
        if fitted is None:
            fitted = SoftmaxCalibrator(bias=True).fit(logits, scorer.codes)
        rng = np.random.default_rng(random_state)
        calibrators = list(resampled(fitted, logits, scorer.codes, N_CALIBRATORS, rng))
        self.calibrators = [(c, c.transform(logits).mean(axis=0)) for c in calibrators]

    def learn_prior(self, chunks: Iterable[View]) -> Prior:
        """Prior of prevalences from all groups, which may come in chunks of raw scores and bags."""
        chosen: _Sample | None = None
        for raw, bags in chunks:
            part = _Sample.of(raw, bags)
            chosen = part if chosen is None else chosen.merged(part)
        n = len(CONCENTRATIONS)
        first = np.array([0.5, *[0.5 / n] * n])
        mean, weights = self.frequency, first
        if chosen is None:
            return self._prior(mean, weights)
        likelihood = self._likelihood(chosen.scores, 0)
        rows = np.minimum(chosen.bags.sizes, MAX_ITEMS) * chosen.counts
        for _ in range(EM_ROUNDS):
            prior = self._prior(mean, weights)
            draws, mix = self._draw(likelihood, chosen.bags, prior, chosen.keys)
            weights = chosen.counts @ mix + FLAT_PRIOR_GROUPS * first
            weights = weights / weights.sum()
            items = rows @ draws.mean(axis=1, dtype=np.float64)
            items = items + LABELLED_PRIOR_ITEMS * self.frequency
            mean = items / items.sum()
        return self._prior(mean, weights)

    def posterior(self, raw: Floats, bags: Bags, prior: Prior) -> Draws:
        """Draws of the prevalences of groups, with posterior means as estimates."""
        scores, ordered, keys = _sorted_items(raw, bags)
        k, n = len(self.classes), N_CALIBRATORS
        means, variances = np.empty((2, n, len(bags), k))
        for number in range(n):
            likelihood = self._likelihood(scores, number)
            drawn = self._draw(likelihood, ordered, prior, keys)[0].astype(np.float64)
            means[number], variances[number] = drawn.mean(axis=1), drawn.var(axis=1)
        between, within = means.var(axis=0, ddof=1), variances.mean(axis=0)
        mean = means.mean(axis=0)
        # Means of finite draws differ for that reason alone.
        from_labels = np.maximum(between - within / DRAWS_PER_CALIBRATOR, 0.0)
        total = within + between
        share = from_labels / np.maximum(total, 1e-300)
        draws = Draws(
            self.classes,
            mean,
            mean,
            total,
            bags.sizes.astype(np.float64),
            np.zeros_like(share) if self.labelled is None else share,
            keys,
            np.ones(len(bags), dtype=bool),
            self.labelled,
            seed=self.random_state,
        )
        if self.labelled is not None:
            return replace(draws, n_replicates=len(self.labelled.effects))
        return draws

    def _likelihood(self, raw: Floats, number: int) -> Floats:
        """Likelihood of items under every class, up to a factor for each item."""
        calibrator, prior = self.calibrators[number]
        return np.asarray(
            np.clip(calibrator.transform(logits_of(raw, self.kind)), POSTERIOR_FLOOR, 1.0) / prior
        )

    def _draw(
        self, likelihood: Floats, bags: Bags, prior: Prior, keys: Keys
    ) -> tuple[NDArray[np.float32], Floats]:
        starts = modes(likelihood, bags, (prior[0][:1], prior[1][:1]))
        seeds = keys ^ streams(self.random_state, "small groups", 1)
        return sample(likelihood, bags, prior, DRAWS_PER_CALIBRATOR, seeds, starts)

    def _prior(self, mean: Floats, weights: Floats) -> Prior:
        """A flat component, and one around the mean for each concentration."""
        alpha = np.vstack([np.ones(len(mean)), CONCENTRATIONS[:, None] * mean])
        return np.maximum(alpha, 1e-3), np.log(weights)


def _sorted_items(raw: Floats, bags: Bags) -> tuple[Floats, Bags, Keys]:
    """Items of each group sorted by their scores, with the groups and their hashes."""
    scores = np.asarray(raw[bags.indices], dtype=np.float64)
    owner = np.repeat(np.arange(len(bags)), bags.sizes)
    order = np.lexsort((*scores.T, owner))
    ends = np.append(0, np.cumsum(bags.sizes))
    sorted_bags = Bags.unchecked(ends, np.arange(len(scores)), len(scores))
    return scores[order], sorted_bags, content_keys(raw, bags.indptr, bags.indices)
