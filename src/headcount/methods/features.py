"""Methods without a classifier: they match the distribution of the items' features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.kernels import simplex
from headcount.methods.base import Quantifier, check_pool
from headcount.methods.histograms import GRID, bin_counts
from headcount.methods.matching import Matcher, Parts
from headcount.methods.objectives import Discrepancy, Divergence
from headcount.methods.representations import ColumnHistogram, Distances, column_cells

BAGS_AT_ONCE = 512  # memory: histograms of this many bags


class FeatureQuantifier(Quantifier):
    """Base of the quantifiers that look at features and not at scores.

    A method says what it learns from features (`learn_features`) and how it turns features of a
    pool into estimates of bags (`aggregate_features`).
    """

    takes_sparse: ClassVar[bool] = False

    @abstractmethod
    def learn_features(self, X: Any, codes: Ints) -> None:
        """Learn from checked features and class numbers."""

    @abstractmethod
    def aggregate_features(self, X: Any, bags: Bags) -> Floats:
        """Estimate every bag from checked features."""

    def check_params(self) -> None:
        """Refuse impossible settings; nothing to check by default."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the classes' feature distributions."""
        self.check_params()
        array = check.labels(y)
        X = validate_data(self, X, accept_sparse="csr" if self.takes_sparse else False)
        check.same_length(X.shape[0], array)
        self.classes_, codes = check.encode(array)
        check.two_or_more(self.classes_)
        self.frequency_ = np.bincount(codes) / len(codes)
        self.learn_features(X, codes)
        return self

    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Estimate the prevalences of many bags of the pool `X`: one row per bag."""
        check_is_fitted(self, "classes_")
        sparse = "csr" if self.takes_sparse else False
        X = validate_data(self, X, accept_sparse=sparse, reset=False)
        check_pool(X.shape[0], bags)
        return self.aggregate_features(X, bags)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.takes_sparse
        return tags


@dataclass(eq=False, repr=False)
class FeatureMatchingQuantifier(FeatureQuantifier):
    """Base of the methods on features that are a representation and an objective."""

    _: KW_ONLY
    n_jobs: int | None = None

    @abstractmethod
    def match_parts(self) -> Parts:
        """The representation and the objective that this method is made of, unfitted."""

    def check_params(self) -> None:
        """Refuse impossible settings of either part."""
        for part in self.match_parts():
            part.check_params()

    def learn_features(self, X: Floats, codes: Ints) -> None:
        """Learn the classes' vectors."""
        self.matcher_ = Matcher(self.match_parts(), X, codes, self.frequency_)

    def aggregate_features(self, X: Floats, bags: Bags) -> Floats:
        """Shares whose mixture is nearest to each bag's vector."""
        return self.matcher_.match(X, bags, self.n_jobs)


@dataclass(eq=False, repr=False, kw_only=True)
class DMx(FeatureMatchingQuantifier):
    """Match a histogram of every feature at once, for any number of classes.

    `ColumnHistogram` with `Divergence`.

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

    n_bins: int = 8
    divergence: str = "hd"
    tau: float = 0.0

    def match_parts(self) -> Parts:
        """Histograms and a divergence."""
        return ColumnHistogram(self.n_bins), Divergence(self.divergence, self.tau)


@dataclass(eq=False, repr=False, kw_only=True)
class EDx(FeatureMatchingQuantifier):
    """Match features by the energy distance, all pairs. Kawakubo et al. (2016).

    `Distances` with `Discrepancy`.

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

    distance: str = "euclidean"
    tau: float = 0.0

    def match_parts(self) -> Parts:
        """Distances and their discrepancy."""
        return Distances(self.distance), Discrepancy(self.tau)


@dataclass(eq=False, repr=False, kw_only=True)
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

    n_bins: int | Sequence[int] = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110)
    n_jobs: int | None = None

    def check_params(self) -> None:
        """Refuse impossible settings."""
        bin_counts(self.n_bins)

    def learn_features(self, X: Floats, codes: Ints) -> None:
        """Histograms of every class and of the rest, for every number of bins."""
        self.low_, self.high_ = X.min(axis=0), X.max(axis=0)
        groups, sizes = Bags.from_groups(codes), np.bincount(codes)
        self.by_bins_ = {}
        for n_bins in bin_counts(self.n_bins):
            own = self._shares(X, n_bins, groups)
            rest = (sizes @ own - sizes[:, None] * own) / (sizes.sum() - sizes)[:, None]
            self.by_bins_[n_bins] = own, rest

    def aggregate_features(self, X: Floats, bags: Bags) -> Floats:
        """Median over the numbers of bins."""
        columns = simplex.rest_columns(len(self.classes_))
        shares = np.empty((len(columns), len(bags), len(self.by_bins_)))
        for s in range(0, len(bags), BAGS_AT_ONCE):
            part = bags[s : s + BAGS_AT_ONCE]
            for b, (n_bins, (own, rest)) in enumerate(self.by_bins_.items()):
                q = np.sqrt(self._shares(X, n_bins, part))
                for j, c in enumerate(columns):
                    losses = _grid_distances(q, own[c], rest[c], n_bins)
                    shares[j, s : s + len(part), b] = GRID[losses.argmin(axis=1)]
        return simplex.from_each_against_rest(list(np.median(shares, axis=2)))

    def _shares(self, X: Floats, n_bins: int, bags: Bags) -> Floats:
        """Histogram of each feature in each bag, feature after feature."""
        cells = column_cells(X, self.low_, self.high_, n_bins)
        return bags.histograms(cells, n_bins * X.shape[1], self.n_jobs)


@dataclass(eq=False, repr=False, kw_only=True)
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

    n_subsets: int = 300
    n_words: int = 15
    n_jobs: int | None = None
    random_state: Any = 0
    takes_sparse: ClassVar[bool] = True

    def check_params(self) -> None:
        """Refuse impossible settings."""
        check.whole("n_subsets", self.n_subsets)
        check.whole("n_words", self.n_words)
        check.at_least("n_words", self.n_words, 1, 62)

    def learn_features(self, X: Any, codes: Ints) -> None:
        """Shares of the patterns in every class, for every subset of features."""
        rng = np.random.default_rng(self.random_state)
        X = sp.csc_array(X)
        used = np.flatnonzero(np.diff(X.indptr))
        used = used if len(used) else np.arange(X.shape[1])
        width = min(self.n_words, len(used))
        k = len(self.classes_)
        self.subsets_ = []
        for _ in range(self.n_subsets):
            chosen = np.sort(rng.choice(used, width, replace=False))
            patterns, cells = np.unique(_patterns(X, chosen), return_inverse=True)
            counts = np.zeros((len(patterns), k))
            np.add.at(counts, (cells, codes), 1)
            self.subsets_.append((chosen, patterns, counts / counts.sum(axis=0)))

    def aggregate_features(self, X: Any, bags: Bags) -> Floats:
        """Mean over the subsets."""
        X = sp.csc_array(X)
        total = np.zeros((len(bags), len(self.classes_)))
        for chosen, patterns, shares in self.subsets_:
            found = _patterns(X, chosen)
            at = np.minimum(np.searchsorted(patterns, found), len(patterns) - 1)
            rows = np.where((patterns[at] == found)[:, None], shares[at], 0.0)
            gram = shares.T @ shares
            pull = 1e-6 * np.trace(gram) / len(gram)
            linear = bags.means(rows, self.n_jobs) + pull * self.frequency_
            total += simplex.quadratic(gram + pull * np.eye(len(gram)), linear)
        return np.asarray(total / len(self.subsets_))


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
