"""Many quantifiers at once: ensembles over training prevalences, and the median of methods."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError, choose
from headcount.kernels.random import as_seed, uniforms
from headcount.kernels.simplex import clip_and_normalise
from headcount.measures import DEFINITIONS, measure
from headcount.methods.adjusting import PACC
from headcount.methods.base import (
    Quantifier,
    check_pool,
    check_quantifier_type,
    count_items,
    without_calibration,
)
from headcount.methods.distances import EDy
from headcount.methods.histograms import DMy
from headcount.methods.likelihood import SLD
from headcount.methods.meta import ListsQuantifiers, MetaQuantifier
from headcount.methods.scored import ScoreQuantifier
from headcount.methods.sharing import SharedPasses
from headcount.protocols.artificial import round_counts

POLICIES = ["average", "ptr", "ds"]
# Errors of a single bag, for which less is better.
ERRORS = [name for name in DEFINITIONS if measure(name).is_error]


@dataclass(eq=False, repr=False)
class Ensemble(MetaQuantifier):
    """Average quantifiers that were trained at different prevalences: E(Q).

    Each member is trained on a sample of the training items with prevalences drawn uniformly from
    the simplex, without an item twice (a sample is smaller where a class would run out), so that
    cross-fitting stays honest. Pérez-Gállego, Quevedo and del Coz (2017, 2019).

    Parameters
    ----------
    quantifier : quantifier, default PACC
        Cloned for every member.
    size : int, default 50
        Number of members.
    keep : int, default 25
        Number of members that a selective policy averages.
    policy : str, default 'average'
        'average' takes all. 'ptr' takes, for each bag, those trained nearest to a first answer.
        The name of a measure, such as 'ae' or 'rae', takes those with the least error on the
        other members' training samples, once and for all: E(PACC)_AE. 'ds' takes, for each bag,
        those whose training scores have the most similar histogram (two classes).
    sample_size : int, default 1000
        Items in a member's training sample, at most as many as there are.
    min_per_class : int, default 5
        Least number of items of each class in such a sample.
    n_jobs : int, optional
        Members fitted at once.
    random_state : int, generator or None, default 0

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> Ensemble(size=5, keep=3, sample_size=60).fit(X, y).predict(X[:100]).round(1)
    array([0.5, 0.5, 0. ])
    """

    quantifier: Any = None
    _: KW_ONLY
    size: int = 50
    keep: int = 25
    policy: str = "average"
    sample_size: int = 1000
    min_per_class: int = 5
    n_jobs: int | None = None
    random_state: Any = 0

    def parts(self) -> list[Quantifier]:
        """Unfitted quantifiers that this one is made of."""
        return [PACC() if self.quantifier is None else self.quantifier]

    def fit(self, X: Any, y: Any) -> Self:
        """Draw the members' samples and fit a clone of the quantifier on each."""
        for name in ("size", "keep", "sample_size", "min_per_class"):
            check.whole(name, getattr(self, name))
        choose("policy", self.policy, [*POLICIES, *ERRORS])
        array = check.labels(y)
        n = _num_samples(X)
        check.same_length(n, array)
        self.classes_, codes = check.encode(array)
        check.two_or_more(self.classes_)
        if self.policy == "ds" and len(self.classes_) > 2:
            raise InputError("policy='ds' is for two classes; use 'ptr' or a measure for more.")
        self.samples_ = self._draw(codes)
        (base,) = self.parts()
        check_quantifier_type(base)
        base = without_calibration(base)
        X = X.tocsr() if issparse(X) else X
        self.members_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_member)(clone(base), X, array, items) for items in self.samples_
        )
        kept = np.arange(self.size)
        if self.policy in ERRORS:
            kept = np.argsort(self._errors(X), kind="stable")[: self.keep]
        if self.policy == "ds":
            self.references_ = self._training_histograms()
        self.kept_ = kept
        return self

    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Estimate the prevalences of many bags of the pool `X`: one row per bag."""
        check_is_fitted(self, "classes_")
        check_pool(count_items(X), bags)
        answers = np.stack([self.members_[j].predict_bags(X, bags) for j in self.kept_])
        if self.policy == "ptr":
            trained = np.asarray(self.samples_.prevalence)
            far = ((trained[None] - answers.mean(axis=0)[:, None]) ** 2).sum(axis=2)
            return self._nearest(answers, far)
        if self.policy == "ds":
            own = self._histograms(X, bags)
            overlap = np.einsum("jsb,jb->sj", np.sqrt(own), np.sqrt(self.references_))
            return self._nearest(answers, -overlap)
        return np.asarray(answers.mean(axis=0))

    def _draw(self, codes: Ints) -> Bags:
        """Draw the members' samples, at uniform prevalences with some items of every class."""
        k = len(self.classes_)
        size = min(self.sample_size, len(codes))
        rarest = int(np.bincount(codes, minlength=k).min())
        if rarest < self.min_per_class:
            raise InputError(
                f"a class has {rarest} labelled items, fewer than min_per_class="
                f"{self.min_per_class}. Lower it, or add items."
            )
        if size < k * self.min_per_class:
            raise InputError(
                f"sample_size {size} is too small for {k} classes with at least "
                f"min_per_class={self.min_per_class} items each. Raise it to "
                f"{k * self.min_per_class}, or lower min_per_class."
            )
        seed = as_seed(self.random_state)
        cuts = np.sort(uniforms(seed, "prevalence", self.size, k - 1), axis=1)
        target = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
        offsets = uniforms(seed, "rounding", self.size, 1)
        class_sizes = np.bincount(codes, minlength=k)
        lists = []
        for j in range(self.size):
            share = target[j : j + 1]
            fits = int(np.min(class_sizes / np.maximum(share[0], 1e-12)))
            free = max(min(size, fits) - k * self.min_per_class, 0)
            extra = round_counts(share, free, offsets[j])[0] if free else np.zeros(k, dtype=int)
            counts = np.minimum(extra + self.min_per_class, class_sizes)
            rng = np.random.default_rng([seed, j])
            lists.append(
                np.concatenate(
                    [
                        rng.choice(np.flatnonzero(codes == c), counts[c], replace=False)
                        for c in range(k)
                    ]
                )
            )
        return Bags.from_lists(lists, len(codes)).with_truth(self.classes_[codes], self.classes_)

    def _errors(self, X: Any) -> Floats:
        """Mean error of each member on the samples of the others."""
        each = measure(self.policy)
        truth = np.asarray(self.samples_.prevalence)
        errors = np.empty(self.size)
        for j, member in enumerate(self.members_):
            others = np.arange(self.size) != j
            bags = self.samples_[others] if self.size > 1 else self.samples_
            estimates = member.predict_bags(X, bags)
            known = truth[others] if self.size > 1 else truth
            errors[j] = np.mean(each(known, estimates, sizes=bags.sizes))
        return errors

    def _nearest(self, answers: Floats, far: Floats) -> Floats:
        """Mean over the members that are least far from each bag."""
        kept = np.argsort(far, axis=1, kind="stable")[:, : self.keep]
        return np.asarray(answers[kept, np.arange(answers.shape[1])[:, None]].mean(axis=1))

    def _histograms(self, X: Any, bags: Bags) -> Floats:
        """Histogram of the positive posterior in each bag, by every member's classifier."""
        return np.stack(
            [
                np.mean([_histogram(*view) for view in m.views(X, bags)], axis=0)
                for m in self.members_
            ]
        )

    def _training_histograms(self) -> Floats:
        """Histogram of each member's training sample, by scores that were held out."""
        rows = []
        for member in self.members_:
            if not isinstance(member, ScoreQuantifier) or member.scorer_.kind != "posterior":
                raise InputError("policy='ds' needs quantifiers on posteriors, such as PACC.")
            held = member.scorer_.scores
            if not len(held):
                raise InputError("policy='ds' needs quantifiers with held-out scores: set cv.")
            rows.append(_histogram(held, Bags.single(len(held)))[0])
        return np.stack(rows)


@dataclass(eq=False, repr=False)
class MedianOf(ListsQuantifiers, MetaQuantifier):
    """Median of several methods' answers, class by class, normalised.

    Robust when no single method can be trusted: the errors of different methods rarely agree.

    Parameters
    ----------
    quantifiers : list of quantifiers
        By default PACC, SLD with BCTS, DMy and EDy.

    Examples
    --------
    >>> from headcount import ACC, PACC, SLD
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> several = MedianOf([ACC(), PACC(), SLD()])
    >>> several.fit(X, y).predict(X[:100]).round(1)
    array([0.5, 0.5, 0. ])
    """

    quantifiers: list[Any] | None = None

    def parts(self) -> list[Quantifier]:
        """Unfitted quantifiers that this one is made of."""
        if self.quantifiers is None:
            return _default_methods()
        if not isinstance(self.quantifiers, (list, tuple)) or not len(self.quantifiers):
            raise InputError("quantifiers must be a list of quantifiers, at least one.")
        for q in self.quantifiers:
            check_quantifier_type(q)
        return list(self.quantifiers)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit every quantifier; those with the same classifier share its pass."""
        clones = [without_calibration(q) for q in self.parts()]
        shared = SharedPasses(clones, X, y)
        fitted = [shared.fit(q) for q in clones]
        self.members_ = fitted
        self.classes_: NDArray[Any] = self.members_[0].classes_
        return self

    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Estimate the prevalences of many bags of the pool `X`: one row per bag."""
        check_is_fitted(self, "classes_")
        answers = np.stack([q.predict_bags(X, bags) for q in self.members_])
        return clip_and_normalise(np.median(answers, axis=0))


def _histogram(scores: Floats, bags: Bags) -> Floats:
    cells = np.clip((scores[:, 1:] * 8).astype(np.int64), 0, 7)
    return bags.histograms(cells, 8)


def _fit_member(quantifier: Quantifier, X: Any, y: NDArray[Any], items: Ints) -> Quantifier:
    return quantifier.fit(_safe_indexing(X, items), y[items])


def _default_methods() -> list[Quantifier]:
    return [PACC(), SLD(calibrator="bcts"), DMy(divergence="topsoe"), EDy()]
