"""Methods without a classifier: they match the distribution of the items' features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import choose
from headcount.kernels import affinity, simplex
from headcount.methods.adjusting import check_tau, class_means
from headcount.methods.base import Quantifier, _same_pool
from headcount.methods.distances import matched
from headcount.methods.histograms import DIVERGENCES, GRID, bin_counts, histograms, match_features

_BAGS_AT_ONCE = 512  # memory: histograms of this many bags


class FeatureQuantifier(Quantifier):
    """Base of the quantifiers that look at features and not at scores."""

    _sparse = False

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the classes' feature distributions."""
        self._check_params()
        array = check.labels(y)
        X = validate_data(self, X, accept_sparse="csr" if self._sparse else False)
        check.same_length(X.shape[0], array)
        self.classes_, codes = check.encode(array)
        check.two_or_more(self.classes_)
        self.frequency_ = np.bincount(codes) / len(codes)
        self._learn_features(X, codes)
        return self

    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Estimate the prevalences of many bags of the pool `X`, a row a bag."""
        check_is_fitted(self, "classes_")
        X = validate_data(self, X, accept_sparse="csr" if self._sparse else False, reset=False)
        _same_pool(X.shape[0], bags)
        return self._estimate_features(X, bags)

    def _check_params(self) -> None:
        """Refuse impossible settings."""

    @abstractmethod
    def _learn_features(self, X: Any, codes: Ints) -> None:
        """Learn from checked features."""

    @abstractmethod
    def _estimate_features(self, X: Any, bags: Bags) -> Floats:
        """Estimate every bag from checked features."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._sparse
        return tags


class DMx(FeatureQuantifier):
    """Match a histogram of every feature at once, for any number of classes.

    Parameters
    ----------
    n_bins : int, default 8
        Of equal width between the least and the largest training value of each feature.
    divergence : {'hd', 'topsoe', 'probsymm', 'l2', 'l1'}
    tau : float, default 0
        For ordered classes: adds tau / 2 times the squared second differences of p (o-HDx).
    n_jobs : int, optional

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> DMx().fit(X, y).predict(X[:100]).round(2)
    array([0.5, 0.5, 0. ])
    """

    def __init__(
        self,
        *,
        n_bins: int = 8,
        divergence: str = "hd",
        tau: float = 0.0,
        n_jobs: int | None = None,
    ):
        self.n_bins = n_bins
        self.divergence = divergence
        self.tau = tau
        self.n_jobs = n_jobs

    def _check_params(self) -> None:
        check.whole("n_bins", self.n_bins, 2)
        choose("divergence", self.divergence, DIVERGENCES)
        check_tau(self.tau)

    def _learn_features(self, X: Floats, codes: Ints) -> None:
        self._low, self._high = X.min(axis=0), X.max(axis=0)
        self.mixture_ = self._shares(X, Bags.from_groups(codes), self.n_bins)

    def _shares(self, X: Floats, bags: Bags, n_bins: int) -> Floats:
        """Histograms of each bag, feature after feature, divided by the number of features."""
        shares = cell_shares(X, self._low, self._high, n_bins, bags, self.n_jobs)
        return np.asarray(shares / X.shape[1])

    def _estimate_features(self, X: Floats, bags: Bags) -> Floats:
        parts = [
            match_features(
                self.mixture_,
                self._shares(X, bags[s : s + _BAGS_AT_ONCE], self.n_bins),
                self.divergence,
                self.frequency_,
                self.tau,
                self.n_jobs,
            )
            for s in range(0, len(bags), _BAGS_AT_ONCE)
        ]
        return np.vstack(parts)


class HDx(FeatureQuantifier):
    """Match histograms of features by the Hellinger distance: González-Castro et al. (2013).

    For two classes: the median over 10, 20, ..., 110 bins of the share among 0, 0.01, ..., 1 with
    the least distance, averaged over the features. More classes are taken one-vs-all.

    Parameters
    ----------
    n_bins : int or several
    n_jobs : int, optional

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> HDx().fit(X, y).predict(X)
    array([0.37, 0.63])
    """

    def __init__(
        self,
        *,
        n_bins: int | Sequence[int] = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110),
        n_jobs: int | None = None,
    ):
        self.n_bins = n_bins
        self.n_jobs = n_jobs

    def _check_params(self) -> None:
        bin_counts(self.n_bins)

    def _learn_features(self, X: Floats, codes: Ints) -> None:
        self._low, self._high = X.min(axis=0), X.max(axis=0)
        groups, sizes = Bags.from_groups(codes), np.bincount(codes)
        self._by_bins = {}
        for n_bins in bin_counts(self.n_bins):
            own = cell_shares(X, self._low, self._high, n_bins, groups, self.n_jobs)
            rest = (sizes @ own - sizes[:, None] * own) / (sizes.sum() - sizes)[:, None]
            self._by_bins[n_bins] = own, rest

    def _estimate_features(self, X: Floats, bags: Bags) -> Floats:
        columns = simplex.rest_columns(len(self.classes_))
        shares = np.empty((len(columns), len(bags), len(self._by_bins)))
        for s in range(0, len(bags), _BAGS_AT_ONCE):
            part = bags[s : s + _BAGS_AT_ONCE]
            for b, (n_bins, (own, rest)) in enumerate(self._by_bins.items()):
                q = np.sqrt(cell_shares(X, self._low, self._high, n_bins, part, self.n_jobs))
                for j, c in enumerate(columns):
                    losses = _grid_distances(q, own[c], rest[c], n_bins)
                    shares[j, s : s + len(part), b] = GRID[losses.argmin(axis=1)]
        return simplex.from_each_against_rest(list(np.median(shares, axis=2)))


class EDx(FeatureQuantifier):
    """Match features by the energy distance, all pairs. Kawakubo et al. (2016).

    Parameters
    ----------
    distance : {'euclidean', 'manhattan'}
    tau : float, default 0
        For ordered classes, as in `EDy`.
    n_jobs : int, optional

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> EDx().fit(X, y).predict(X[:100]).round(2)
    array([0.5, 0.5, 0. ])
    """

    def __init__(self, *, distance: str = "euclidean", tau: float = 0.0, n_jobs: int | None = None):
        self.distance = distance
        self.tau = tau
        self.n_jobs = n_jobs

    def _check_params(self) -> None:
        choose("distance", self.distance, ["manhattan", "euclidean"])
        check_tau(self.tau)

    def _affinity(self, X: Floats) -> Floats:
        means = (
            affinity.manhattan_means if self.distance == "manhattan" else affinity.euclidean_means
        )
        return -means(X.astype(np.float64, copy=False), self._by_class)

    def _learn_features(self, X: Floats, codes: Ints) -> None:
        k = len(self.classes_)
        self._by_class = affinity.by_class(X.astype(np.float64, copy=False), codes, k)
        gram = class_means(self._affinity(X), codes, k)
        self.gram_ = (gram + gram.T) / 2

    def _estimate_features(self, X: Floats, bags: Bags) -> Floats:
        linear = bags.means(self._affinity(X), self.n_jobs)
        return matched(self.gram_, linear, self.frequency_, self.tau)


class ReadMe(FeatureQuantifier):
    """Match patterns of word presence in random subsets of features. Hopkins and King (2010).

    For each of many random subsets, the shares of all patterns of presence in the bag are a
    mixture of those in the classes; the least squares solutions on the simplex are averaged. An
    item's pattern enters only through its class frequencies, so a subset costs a table of
    (items, classes), whatever the number of patterns. Sparse input stays sparse.

    Parameters
    ----------
    n_subsets : int, default 300
    n_words : int, default 15
        Features in each subset, at most 62.
    n_jobs : int, optional
    random_state : int, generator or None, default 0

    Examples
    --------
    >>> words = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0]] * 10)
    >>> readme = ReadMe(n_subsets=20, n_words=2).fit(words, ["a", "a", "b", "b"] * 10)
    >>> readme.predict(words[:3]).round(1)
    array([0.7, 0.3])
    """

    _sparse = True

    def __init__(
        self,
        *,
        n_subsets: int = 300,
        n_words: int = 15,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        self.n_subsets = n_subsets
        self.n_words = n_words
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_params(self) -> None:
        check.whole("n_subsets", self.n_subsets)
        check.whole("n_words", self.n_words)
        check.at_least("n_words", self.n_words, 1, 62)

    def _learn_features(self, X: Any, codes: Ints) -> None:
        rng = np.random.default_rng(self.random_state)
        X = sp.csc_array(X)
        used = np.flatnonzero(np.diff(X.indptr))
        used = used if len(used) else np.arange(X.shape[1])
        width = min(self.n_words, len(used))
        k = len(self.classes_)
        self._subsets = []
        for _ in range(self.n_subsets):
            chosen = np.sort(rng.choice(used, width, replace=False))
            patterns, cells = np.unique(_patterns(X, chosen), return_inverse=True)
            counts = np.zeros((len(patterns), k))
            np.add.at(counts, (cells, codes), 1)
            self._subsets.append((chosen, patterns, counts / counts.sum(axis=0)))

    def _estimate_features(self, X: Any, bags: Bags) -> Floats:
        X = sp.csc_array(X)
        total = np.zeros((len(bags), len(self.classes_)))
        for chosen, patterns, shares in self._subsets:
            found = _patterns(X, chosen)
            at = np.minimum(np.searchsorted(patterns, found), len(patterns) - 1)
            rows = np.where((patterns[at] == found)[:, None], shares[at], 0.0)
            gram = shares.T @ shares
            pull = 1e-6 * np.trace(gram) / len(gram)
            linear = bags.means(rows, self.n_jobs) + pull * self.frequency_
            total += simplex.quadratic(gram + pull * np.eye(len(gram)), linear)
        return np.asarray(total / len(self._subsets))


def cell_shares(
    X: Floats, low: Floats, high: Floats, n_bins: int, bags: Bags, n_jobs: int | None
) -> Floats:
    """Histogram of each feature in each bag, feature after feature."""
    least, most = low.astype(np.float64), high.astype(np.float64)
    width = np.where(most > least, most - least, 1.0)
    place = (X.astype(np.float64) - least) / width * n_bins
    cells = np.clip(place, 0, n_bins - 1).astype(np.int64)
    offsets = n_bins * np.arange(X.shape[1])
    return histograms(cells + offsets, n_bins * X.shape[1], bags, n_jobs)


def _grid_distances(root_q: Floats, own: Floats, rest: Floats, n_bins: int) -> Floats:
    """Mean over features of the Hellinger distance to each mixture of the grid."""
    total = np.zeros((len(root_q), len(GRID)))
    n_features = len(own) // n_bins
    for f in range(n_features):
        part = slice(f * n_bins, (f + 1) * n_bins)
        mixtures = np.sqrt(np.outer(GRID, own[part]) + np.outer(1 - GRID, rest[part]))
        overlap = root_q[:, part] @ mixtures.T
        total += np.sqrt(np.maximum(1 - overlap, 0))
    return total / n_features


def _patterns(X: sp.csc_array, chosen: Ints) -> Ints:
    """Number whose bits say which of the chosen features an item has."""
    present = X[:, chosen].astype(bool).astype(np.int64)
    return np.asarray(present @ (1 << np.arange(len(chosen), dtype=np.int64))).ravel()
