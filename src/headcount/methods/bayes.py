"""Posteriors of a bag's shares, and the estimate that is best for a measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError, choose
from headcount.inference.draws import Draws
from headcount.inference.goodness_of_fit import misfit_of
from headcount.inference.posteriors import (
    BURN,
    FLAT,
    MEASURES,
    PosteriorDraws,
    Prior,
    component_shares,
    concentrations,
    decide,
    modes,
    prior_around,
    sample,
)
from headcount.inference.sampling import DrawSettings, keys_of
from headcount.kernels import affinity
from headcount.kernels.random import as_seed, streams
from headcount.measures import Measure, measure
from headcount.methods.base import Tags
from headcount.methods.scored import ScoreQuantifier
from headcount.scores.calibration import (
    POSTERIOR_FLOOR,
    Calibrator,
    logits_of,
    resampled,
    resampled_rows,
)
from headcount.scores.calibrators import make_calibrator
from headcount.scores.scorer import Held, Scorer, View, in_own_order

LIKELIHOODS = ["posteriors", "histograms", "kernels"]
NEXT_BURN = 5  # sweeps that are not used when a chain goes on in another world
NUMBERS_AT_ONCE = 1 << 25  # of draws


@dataclass(eq=False, repr=False, kw_only=True)
class BayesQuantifier(ScoreQuantifier):
    """The posterior of each bag's shares, and the estimate with the least expected error.

    Other methods maximise a likelihood or match moments, whatever the measure. Here shares are
    drawn from their posterior given the scores, under a prior of how far they may have changed and
    for calibrators of bootstrap resamples of the labelled items. The estimate minimises the
    expected error by `measure` over these draws.

    Parameters
    ----------
    classifier : scikit-learn classifier, optional
        New items are scored by the classifiers of the folds, as held-out items were.
    measure : {'ae', 'rae', 'se', 'kld', 'nmd'}, default 'ae'
        Error measure to minimise. 'nmd' is for ordered classes.
    expect : {'learn', 'any shift', 'mild shift', 'no shift'} or mapping, default 'learn'
        What is known about the shares before a bag is seen: that all are equally likely, that they
        lie around the training shares, or that they are nearly the same. 'learn' mixes these with
        equal weights, which each bag updates; `learn_shift` learns the weights from other bags. A
        mapping gives weights to concentrations of a Dirichlet distribution around the training
        shares; 0 stands for the flat one.
    drift : float, default 0
        How much the items of a class may have changed, in addition to the shares. 0 assumes no such
        change. Otherwise the worse a mixture of the classes explains the scores of a bag, the fewer
        items it counts for. With 1, the change has the same variance in the directions in which
        shares move the scores, where it is invisible, as in the others; other values are multiples
        of that variance.
    likelihood : {'posteriors', 'histograms', 'kernels'}, default 'posteriors'
        How likely a score is in each class: calibrated posteriors over their mean on held-out
        items; histograms, for two classes; or Gaussian kernels on the calibrated posteriors.
    n_bins : int, default 20
        Of the histograms; both classes together fill them evenly.
    bandwidth : float, default 0.1
        Of the kernels.
    n_worlds : int, default 10
        Bootstrap resamples of the held-out items; 0 ignores the error of what was learnt from them.
    n_draws : int, default 500
        Draws from the posterior of each bag.
    calibrator : str, calibrator or None, default 'curves'
    cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Notes
    -----
    Two classes: the exact posterior (a Poisson-binomial times the prior). More classes: Gibbs
    sampling. Bags of more than 50,000 items: the normal approximation of log-ratios. Errors that
    are absolute or relative are least at quantiles that lie equally far, in weight, from their
    medians and sum to one; squared error and KLD at the mean; NMD at medians of cumulated shares.

    `drift`: the misfit of a bag is the squared distance between the histogram of its scores and the
    nearest mixture of the classes, less the mean and two standard deviations of that distance for
    simulated mixtures, over that mean. An item counts for 1 / (1 + drift misfit). The less a bag
    counts, the nearer the estimate is to counting calibrated posteriors, and the wider is the
    posterior.

    Draws and intervals are those of the posterior if `expect` excludes the flat prior or `drift` is
    not 0. Otherwise they are simulated as for every method on scores, with calibrated width, to
    cover whatever the shares are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(2, 1000, p=[0.8, 0.2])
    >>> x = rng.normal(size=1000) + 2 * y
    >>> posterior = 1 / (1 + 4 * np.exp(2 - 2 * x))
    >>> bayes = BayesQuantifier(expect="any shift").fit_scores(posterior, y)
    >>> bayes.predict_scores(posterior[y == 1]).round(1)
    array([0., 1.])
    """

    measure: str | Measure = "ae"
    expect: str | Mapping[float, float] = "learn"
    drift: float = 0.0
    likelihood: str = "posteriors"
    n_bins: int = 20
    bandwidth: float = 0.1
    n_worlds: int = 10
    n_draws: int = 500
    calibrator: str | Calibrator | None = "curves"

    def method_tags(self) -> Tags:
        """Calibration is per replicate; histograms and kernels memorise items."""
        remembers = self.likelihood != "posteriors"
        return Tags(own_calibration=True, remembers=remembers)

    def check_params(self) -> None:
        """Validate parameters."""
        super().check_params()
        choose("measure", measure(self.measure).name, MEASURES)
        choose("likelihood", self.likelihood, LIKELIHOODS)
        concentrations(self.expect)
        check.at_least("drift", self.drift, 0)
        check.whole("n_bins", self.n_bins, 2)
        check.at_least("bandwidth", self.bandwidth, 1e-3)
        check.whole("n_worlds", self.n_worlds, 0)
        check.whole("n_draws", self.n_draws, 20)

    def learn(self, held: Held) -> None:
        """Learn the worlds: calibrators, histograms or kernels of resampled held-out items."""
        scores, codes, frequency = held.scores, held.codes, held.frequency
        self.prior_: Prior = prior_around(self.expect, frequency)
        self.seed_ = as_seed(self.random_state)
        rng = np.random.default_rng(self.seed_)
        self.kind_ = held.kind
        self.main_calibrator_ = make_calibrator(self.calibrator)
        if self.main_calibrator_ is not None:
            self.main_calibrator_.fit(logits_of(scores, held.kind), codes)
        if self.likelihood == "posteriors":
            self.worlds_ = self._calibrators(scores, codes, rng)
            return
        rows = [np.arange(len(codes))]
        if self.n_worlds:
            rows = [resampled_rows(codes, rng) for _ in range(self.n_worlds)]
        scores = self._calibrated(scores)
        if self.likelihood == "kernels":
            self.worlds_ = [(scores[r], codes[r]) for r in rows]
            return
        if len(frequency) > 2:
            raise InputError(
                f"likelihood='histograms' is for two classes, and there are {len(frequency)}: use "
                "'kernels' or 'posteriors'."
            )
        edges = _balanced_edges(scores[:, 1], codes, self.n_bins)
        cells = np.searchsorted(edges, scores[:, 1], side="right")
        self.worlds_ = [(edges, _table(cells[r], codes[r], self.n_bins)) for r in rows]

    def learn_shift(self, X: Any, bags: Bags) -> Self:
        """Learn from bags how far shares tend to move, and expect the same of others.

        Parameters
        ----------
        X : items, or scores for a quantifier that was fitted on scores
        bags : Bags
            Such as those of past months. Where their true prevalences are known these are used,
            otherwise what their scores tell.
        """
        check_is_fitted(self, "classes_")
        if self.flat_ is not None:  # nothing can be told from the scores
            return self
        alpha, log_weights = self.prior_
        weights = np.exp(log_weights)
        if not isinstance(bags, Bags) or not len(bags):
            raise InputError("bags must be Bags, at least one: see Bags.from_lists.")
        if bags.prevalence is not None and bags.prevalence.shape[1] != alpha.shape[1]:
            raise InputError(
                f"the bags have shares of {bags.prevalence.shape[1]} classes, and the quantifier "
                f"knows {alpha.shape[1]}: make them with classes=quantifier.classes_."
            )
        views = None if bags.prevalence is not None else self.views(X, bags)
        for _ in range(20):
            prior = alpha, np.log(weights)
            if views is None:
                mix = component_shares(np.asarray(bags.prevalence), bags.sizes, prior)
            else:
                mix = np.vstack([part for _, _, part in self._posteriors(views, prior)])
            before, weights = weights, (mix.sum(axis=0) + 0.1) / (len(mix) + 0.1 * len(alpha))
            if np.abs(weights - before).max() < 1e-3:
                break
        self.prior_ = alpha, np.log(weights)
        return self

    def _calibrators(self, held: Floats, codes: Ints, rng: np.random.Generator) -> list[Any]:
        """Calibrators of resampled items, with the mean posterior of the held-out items by each."""
        several: list[Any] = [self.main_calibrator_]
        if self.n_worlds and self.main_calibrator_ is not None:
            logits = logits_of(held, self.kind_)
            several = list(resampled(self.main_calibrator_, logits, codes, self.n_worlds, rng))
        return [(c, self._posterior_by(c, held).mean(axis=0)) for c in several]

    def _posterior_by(self, calibrator: Calibrator | None, raw: Floats) -> Floats:
        if calibrator is None:
            return np.clip(raw, POSTERIOR_FLOOR, 1.0)
        return np.clip(calibrator.transform(logits_of(raw, self.kind_)), POSTERIOR_FLOOR, 1.0)

    def _calibrated(self, raw: Floats) -> Floats:
        known = self.main_calibrator_
        return raw if known is None else np.asarray(known.transform(logits_of(raw, self.kind_)))

    def _likelihood(self, world: Any, raw: Floats) -> Floats:
        """Likelihoods of scores under each class, as one world has it; only ratios matter."""
        if self.likelihood == "posteriors":
            calibrator, prior = world
            found = self._posterior_by(calibrator, raw) / prior
        elif self.likelihood == "histograms":
            edges, table = world
            found = table[np.searchsorted(edges, self._calibrated(raw)[:, 1], side="right")]
        else:
            scores, codes = world
            groups = affinity.by_class(scores, codes, len(self.classes_))
            means = affinity.gaussian_means(self._calibrated(raw), groups, self.bandwidth)
            found = np.maximum(means, 1e-10)
        return np.asarray(found / found.max(axis=1, keepdims=True))

    def aggregate(self, scores: Floats, bags: Bags) -> Floats:
        """Best answers, from raw scores by one classifier."""
        return self.estimate([(scores, bags)])

    def estimate(self, views: Sequence[View]) -> Floats:
        """Best answers under the draws of all classifiers together."""
        sizes = views[0][1].sizes
        if self.flat_ is not None:
            return np.tile(self.flat_, (len(sizes), 1))
        which, jobs, parts = self.measure, self.n_jobs, self._posteriors(views, self.prior_)
        return np.concatenate([decide(drawn, which, sizes[s], jobs) for s, drawn, _ in parts])

    def _posteriors(
        self, views: Sequence[View], prior: Prior
    ) -> Iterator[tuple[slice, PosteriorDraws, Floats]]:
        """Some bags at a time, draws of their shares, and how likely components of the prior are.

        A world goes with one classifier; there are at least as many of them.
        """
        worlds = self.worlds_ * -(-len(views) // len(self.worlds_))
        each = -(-self.n_draws // len(worlds))
        n_bags, k = len(views[0][1]), len(self.classes_)
        worth = self._worth(views)
        if k > 2:  # chains go through the items
            views = [in_own_order(*view) for view in views]
        step = max(1, NUMBERS_AT_ONCE // (each * len(worlds) * k))
        for at in range(0, n_bags, step):
            part = slice(at, at + step)
            size = len(range(n_bags)[part])
            draws = np.empty((size, each * len(worlds), k), dtype=np.float32)
            mix = np.zeros((size, len(prior[1])))
            starts: Floats | None = None
            for w, world in enumerate(worlds):
                scores, bags = views[w % len(views)]
                some = bags if size == n_bags else bags[part]
                likelihood = self._likelihood(world, scores)
                if starts is None:
                    starts = modes(likelihood, some, prior, self.n_jobs)
                # The same for all bags: an answer must not depend on which others are asked for.
                numbers = np.repeat(streams(self.seed_, f"world {w}", 1), size)
                # Worlds differ little: the chain of one goes on where that of the last has ended.
                burn = BURN if w == 0 else NEXT_BURN
                drawn, own = sample(
                    likelihood, some, prior, each, numbers, starts, self.n_jobs, burn, worth[part]
                )
                draws[:, w * each : (w + 1) * each] = drawn
                mix += own / len(worlds)
            yield part, draws, mix

    def _worth(self, views: Sequence[View]) -> Floats:
        """What part of an item each item of a bag counts for, if classes may have changed."""
        if not self.drift:
            return np.ones(len(views[0][1]))
        return 1.0 / (1.0 + self.drift * misfit_of(self.scorer_, views))

    @property
    def has_own_posterior(self) -> bool:
        """Whether draws are those of the posterior, not simulated ones."""
        return bool(self.drift) or FLAT not in concentrations(self.expect)

    def simulation_twin(self) -> _MaximumLikelihood:
        """Maximum likelihood with the same likelihoods, whose errors are those of the posterior."""
        replicate = self.worlds_[0]
        if self.likelihood == "posteriors":
            mean = self._posterior_by(self.main_calibrator_, self.scorer_.scores).mean(axis=0)
            replicate = self.main_calibrator_, mean
        return _MaximumLikelihood(self, replicate)

    def fit_copy(self, scorer: Scorer) -> Self:
        """A copy that learns from another classifier pass, for its twin alone."""
        fresh: Self = clone(self).set_params(calibrate_width=False, n_worlds=0)
        return fresh.fit_scorer(scorer)

    def draw(self, views: Sequence[View], sizes: Any, settings: DrawSettings) -> Draws:
        """Draws of the posterior where the prior is narrow; otherwise simulated.

        Under a prior that allows for any prevalences, the posterior given the calibrators is too
        narrow: it covers 80 to 90 % with 500 labelled items, because ten resampled calibrators do
        not contain the whole error of the labelled sample.
        """
        if self.flat_ is not None or not self.has_own_posterior:
            return super().draw(views, sizes, settings)
        alpha, log_weights = self.prior_
        # Items that represent several: the prior must not weigh more against them.
        fewer = min(1.0, float(np.median(views[0][1].sizes / sizes)))
        prior = alpha * fewer, log_weights
        worth = views[0][1].sizes if fewer < 1 else sizes
        parts = []
        for bags, values, _ in self._posteriors(views, prior):
            answers = decide(values, self.measure, worth[bags], self.n_jobs)
            parts.append(Draws.of_values(self.classes_, answers, values, worth[bags]))
        return replace(Draws.concatenate(parts), keys=keys_of(views), seed=settings.random_state)


class _MaximumLikelihood:
    """Prevalences of maximum likelihood, as a stand-in for the posterior of a `BayesQuantifier`."""

    def __init__(self, bayes: BayesQuantifier, replicate: Any):
        self.bayes, self.replicate = bayes, replicate
        k = len(bayes.classes_)
        self.prior: Prior = np.ones((1, k)), np.zeros(1)

    def estimate(self, views: Sequence[View]) -> Floats:
        """Modes of the posterior under a flat prior, averaged over the classifiers."""
        likelihoods = ((self.bayes._likelihood(self.replicate, raw), bags) for raw, bags in views)
        each = [modes(like, bags, self.prior, self.bayes.n_jobs) for like, bags in likelihoods]
        return np.asarray(np.mean(each, axis=0))


def _balanced_edges(scores: Floats, codes: Ints, n_bins: int) -> Floats:
    """Inner edges of bins that both classes, weighing the same, fill evenly."""
    even = np.linspace(0.0005, 0.9995, 1000)
    both = np.concatenate([np.quantile(scores[codes == c], even) for c in (0, 1)])
    return np.asarray(np.quantile(both, np.arange(1, n_bins) / n_bins))


def _table(cells: Ints, codes: Ints, n_bins: int) -> Floats:
    """Share of each class's items in every cell, with half an item added to each."""
    counts = [np.bincount(cells[codes == c], minlength=n_bins) + 0.5 for c in (0, 1)]
    return np.column_stack([c / c.sum() for c in counts])
