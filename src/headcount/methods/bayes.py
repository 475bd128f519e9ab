"""Posteriors of a bag's shares, and the answer that is best for a measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError, choose
from headcount.inference.intervals import Interval, Request, Spread, joint_level
from headcount.inference.posteriors import (
    BURN,
    FLAT,
    MEASURES,
    Draws,
    Prior,
    concentrations,
    decide,
    modes,
    prior_around,
    sample,
    told,
)
from headcount.inference.simulation import Simulator
from headcount.kernels import affinity
from headcount.kernels.random import as_seed, streams
from headcount.measures import Measure, measure
from headcount.methods.base import ScoreQuantifier
from headcount.scores.calibration import (
    FLOOR,
    Calibrator,
    logits_of,
    resampled,
    resampled_rows,
)
from headcount.scores.crossfit import ScorePass

LIKELIHOODS = ["posteriors", "histograms", "kernels"]
NEXT = 5  # sweeps that are not used when a chain goes on in another world
QUICK = 60  # draws for a simulated bag
HELD = 1 << 25  # numbers of draws that are held at once


class BayesQuantifier(ScoreQuantifier):
    """The posterior of each bag's shares, and the answer with the least expected error.

    Other methods maximise a likelihood or match moments, whatever the measure. Here the shares
    that the scores leave possible are drawn, under a prior that says how far shares may have
    moved and for calibrators of resampled labelled items, and the answer is the one that is best
    for `measure` on average over them: it differs between measures. Intervals come with it.

    Parameters
    ----------
    classifier : scikit-learn classifier, optional
        Items are scored by the classifiers of the folds, each of which saw part of the labelled
        ones, because held-out items were: the scores then mean the same.
    measure : {'ae', 'rae', 'se', 'kld', 'nmd'}, default 'ae'
        What the answer is judged by. 'nmd' is for ordered classes.
    expect : {'learn', 'any shift', 'mild shift', 'no shift'} or mapping, default 'learn'
        What is known about the shares before a bag is seen: that all are equally likely, that they
        lie around the training shares, or that they are nearly the same. 'learn' allows for each
        of these and lets the bag tell, and `learn_shift` lets other bags tell. A mapping gives
        weights to concentrations of a Dirichlet distribution around the training shares; 0 stands
        for the flat one.
    likelihood : {'posteriors', 'histograms', 'kernels'}, default 'posteriors'
        How likely a score is in each class: calibrated posteriors over their mean on held-out
        items; histograms, for two classes; or Gaussian kernels on the calibrated posteriors.
    n_bins : int, default 20
        Of the histograms; both classes together fill them evenly.
    bandwidth : float, default 0.1
        Of the kernels.
    n_worlds : int, default 10
        Resamplings of the held-out items; 0 takes what was learnt from them as certain.
    n_draws : int, default 500
        Draws from the posterior of each bag.
    calibrator : str, calibrator or None, default 'curves'
    cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Notes
    -----
    Two classes: the exact posterior (a Poisson-binomial times the prior). More classes: Gibbs
    sampling. Bags of more than 50,000 items: the normal approximation of log-ratios. Errors that
    are absolute or relative are least at quantiles that lie equally far, in weight, from their
    medians and sum to one; squared error and KLD at the mean; NMD at medians of cumulated shares.

    Intervals are those of the posterior where `expect` narrows the shares down. Otherwise they are
    made by simulation as for every method, since they must hold whatever the shares are.

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

    _flat_to_prior = True
    prior_: Prior

    def __init__(
        self,
        classifier: Any = None,
        *,
        measure: str | Measure = "ae",
        expect: str | Mapping[float, float] = "learn",
        likelihood: str = "posteriors",
        n_bins: int = 20,
        bandwidth: float = 0.1,
        n_worlds: int = 10,
        n_draws: int = 500,
        calibrator: str | Calibrator | None = "curves",
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            classifier, calibrator=calibrator, cv=cv, n_jobs=n_jobs, random_state=random_state
        )
        self.measure = measure
        self.expect = expect
        self.likelihood = likelihood
        self.n_bins = n_bins
        self.bandwidth = bandwidth
        self.n_worlds = n_worlds
        self.n_draws = n_draws

    def _check_params(self) -> None:
        super()._check_params()
        choose("measure", measure(self.measure).name, MEASURES)
        choose("likelihood", self.likelihood, LIKELIHOODS)
        concentrations(self.expect)
        check.whole("n_bins", self.n_bins, 2)
        check.at_least("bandwidth", self.bandwidth, 1e-3)
        check.whole("n_worlds", self.n_worlds, 0)
        check.whole("n_draws", self.n_draws, 20)

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
        if self._flat is not None:  # nothing can be told from the scores
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
        raw = None if bags.prevalence is not None else self._raw(X, bags)
        for _ in range(20):
            if raw is None:
                mix = told(np.asarray(bags.prevalence), bags.sizes, (alpha, np.log(weights)))
            else:
                self.prior_ = alpha, np.log(weights)
                mix = np.vstack([part for _, _, part in self._posteriors(raw, bags)])
            before, weights = weights, (mix.sum(axis=0) + 0.1) / (len(mix) + 0.1 * len(alpha))
            if np.abs(weights - before).max() < 1e-3:
                break
        self.prior_ = alpha, np.log(weights)
        return self

    def _run_pass(self, X: Any, y: Any, held_out: bool | None, **options: Any) -> ScorePass:
        return super()._run_pass(X, y, held_out, **{**options, "keep_folds": True})

    def _pass_key(self) -> str | None:
        key = super()._pass_key()
        return None if key is None else f"{key} with folds"

    def _learn(self, scores: Floats | None, codes: Ints | None, frequency: Floats) -> None:
        assert scores is not None and codes is not None
        self.prior_ = prior_around(self.expect, frequency)
        self.seed_ = as_seed(self.random_state)
        rng = np.random.default_rng(self.seed_)
        if self.likelihood == "posteriors":
            self.worlds_ = self._calibrators(codes, rng)
            return
        rows = [np.arange(len(codes))]
        if self.n_worlds:
            rows = [resampled_rows(codes, rng) for _ in range(self.n_worlds)]
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

    def _calibrators(self, codes: Ints, rng: np.random.Generator) -> list[Any]:
        """Calibrators of resampled items, with the mean posterior of the held-out items by each."""
        held = self.held_scores_
        assert held is not None
        several: list[Any] = [self.calibrator_]
        if self.n_worlds and self.calibrator_ is not None:
            logits = logits_of(held, self.score_kind_)
            several = list(resampled(self.calibrator_, logits, codes, self.n_worlds, rng))
        return [(c, self._posterior_by(c, held).mean(axis=0)) for c in several]

    def _posterior_by(self, calibrator: Calibrator | None, raw: Floats) -> Floats:
        if calibrator is None:
            return np.clip(raw, FLOOR, 1.0)
        return np.clip(calibrator.transform(logits_of(raw, self.score_kind_)), FLOOR, 1.0)

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

    def _estimate(self, raw: Floats, bags: Bags) -> Floats:
        if self._flat is not None:
            return np.tile(self._flat, (len(bags), 1))
        return self._aggregate(raw, bags)

    def _aggregate(self, scores: Floats, bags: Bags) -> Floats:
        """Best answers; `scores` come from the classifier, since every world calibrates anew."""
        parts = [
            decide(draws, self.measure, bags.sizes[some], self.n_jobs)
            for some, draws, _ in self._posteriors(scores, bags)
        ]
        return np.concatenate(parts)

    def _posteriors(self, raw: Floats, bags: Bags) -> Iterator[tuple[slice, Draws, Floats]]:
        """Some bags at a time, draws of their shares, and how likely components of the prior are.

        A world goes with one classifier; there are at least as many of them.
        """
        views = self._views(raw)
        worlds = self.worlds_ * -(-len(views) // len(self.worlds_))
        each = -(-self.n_draws // len(worlds))
        shape = each * len(worlds), len(self.classes_)
        step = max(1, HELD // (shape[0] * shape[1]))
        for at in range(0, len(bags), step):
            some = bags[at : at + step]
            draws = np.empty((len(some), *shape), dtype=np.float32)
            mix = np.zeros((len(some), len(self.prior_[1])))
            for w, world in enumerate(worlds):
                likelihood = self._likelihood(world, views[w % len(views)])
                if w == 0:
                    starts = modes(likelihood, some, self.prior_, self.n_jobs)
                # The same for all bags: an answer must not depend on which others are asked for.
                numbers = np.repeat(streams(self.seed_, f"world {w}", 1), len(some))
                # Worlds differ little: the chain of one goes on where that of the last has ended.
                burn = BURN if w == 0 else NEXT
                part, own = sample(
                    likelihood, some, self.prior_, each, numbers, starts, self.n_jobs, burn
                )
                draws[:, w * each : (w + 1) * each] = part
                mix += own / len(worlds)
            yield slice(at, at + step), draws, mix

    def _simulator(self, held: Floats, codes: Ints) -> Simulator:
        """Simulated bags are many: one calibrator and fewer draws are enough for them."""
        quick = copy(self)
        quick.n_draws = QUICK
        if self.likelihood == "posteriors":
            mean = self._posterior_by(self.calibrator_, held).mean(axis=0)
            quick.worlds_ = [(self.calibrator_, mean)]
        else:
            quick.worlds_ = self.worlds_[:1]
        return Simulator(lambda bags: quick._estimate(held, bags), codes, len(self.classes_))

    @property
    def _remembers(self) -> bool:  # type: ignore[override]
        return self.likelihood != "posteriors"

    def _counted(self, raw: Floats, bags: Bags, sizes: Ints, request: Request) -> Interval:
        if self._flat is not None:
            return Interval.unknown(self.classes_, self._estimate(raw, bags), request.level)
        if FLAT in concentrations(self.expect):  # whatever the shares, intervals must hold them
            return super()._counted(raw, bags, sizes, request)
        fewer = float(np.median(bags.sizes / sizes))
        if fewer < 1:  # items stand for several: the prior must not weigh more against them
            alpha, log_weights = self.prior_
            scaled = copy(self)
            scaled.prior_ = alpha * fewer, log_weights
            return scaled._counted(raw, bags, bags.sizes, request)
        parts: list[tuple[Floats, ...]] = []
        for some, draws, _ in self._posteriors(raw, bags):
            answer = decide(draws, self.measure, sizes[some], self.n_jobs)
            parts.append((answer, *_spread(draws, sizes[some], request)))
        estimates, mean, variance, levels = (np.concatenate(c) for c in zip(*parts, strict=True))
        spread = Spread(mean, variance, levels)
        return Interval.around(self.classes_, estimates, spread, request.level)


def _spread(draws: Draws, sizes: Ints, request: Request) -> tuple[Floats, Floats, Floats]:
    """Mean and variance of the shares, and the level that each class needs."""
    exact = draws.astype(np.float64)
    mean, variance = exact.mean(axis=1), exact.var(axis=1)
    if request.target == "population":
        variance = variance + (exact * (1 - exact)).mean(axis=1) / sizes[:, None]
    levels = np.full(len(draws), request.level)
    if request.simultaneous:
        weight = np.full_like(exact, 1 / exact.shape[1])
        levels = joint_level(weight, exact, mean, variance, request.level)
    return mean, variance, levels


def _balanced_edges(scores: Floats, codes: Ints, n_bins: int) -> Floats:
    """Inner edges of bins that both classes, weighing the same, fill evenly."""
    even = np.linspace(0.0005, 0.9995, 1000)
    both = np.concatenate([np.quantile(scores[codes == c], even) for c in (0, 1)])
    return np.asarray(np.quantile(both, np.arange(1, n_bins) / n_bins))


def _table(cells: Ints, codes: Ints, n_bins: int) -> Floats:
    """Share of each class's items in every cell, with half an item added to each."""
    counts = [np.bincount(cells[codes == c], minlength=n_bins) + 0.5 for c in (0, 1)]
    return np.column_stack([c / c.sum() for c in counts])
