"""What a method looks at: from scores (or features) of items to one vector for every bag.

A representation is the first half of a matching method, the objective (`objectives`) is the
second: the bag's vector is taken for a mixture of the classes' vectors, and the shares are those
that bring the mixture nearest. Every representation here is a mean over the items of a bag, so
that it can be had for all bags at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import rankdata
from sklearn.base import BaseEstimator

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError, choose
from headcount.kernels import affinity

DISTANCES = ["manhattan", "euclidean"]


class Representation(BaseEstimator, ABC):
    """Base of the representations.

    Attributes
    ----------
    needs : 'posteriors', 'any' or 'labels'
        What it takes of a classifier, as in `headcount.methods.base.Tags`.
    remembers : bool
        Whether the items that it learnt from are easier for it than others.
    """

    needs: Literal["posteriors", "any", "labels"] = "posteriors"
    remembers: bool = False

    def check_params(self) -> None:
        """Refuse impossible settings; nothing to check by default."""

    def fit(self, rows: Floats, codes: Ints, frequency: Floats) -> Self:  # noqa: ARG002
        """Learn what it needs from labelled rows; nothing by default."""
        return self

    @abstractmethod
    def of_bags(self, rows: Floats, bags: Bags, n_jobs: int | None = None) -> Floats:
        """Vector of every bag of the rows, shape (S, d)."""

    def of_classes(self, rows: Floats, codes: Ints) -> Floats:
        """Vector of every class of labelled rows, shape (k, d)."""
        return self.of_bags(rows, Bags.from_groups(codes))


class ItemRepresentation(Representation):
    """Base of the representations in which every item has a vector of its own."""

    @abstractmethod
    def of_items(self, rows: Floats) -> Floats:
        """Vector of every item, shape (N, d)."""

    def of_bags(self, rows: Floats, bags: Bags, n_jobs: int | None = None) -> Floats:
        """Mean vector of every bag."""
        return bags.means(self.of_items(rows), n_jobs)


class Posteriors(ItemRepresentation):
    """Posterior probabilities as they are: PACC, RLLS."""

    def of_items(self, rows: Floats) -> Floats:
        """Posteriors of every item."""
        return rows

    def of_bags(self, rows: Floats, bags: Bags, n_jobs: int | None = None) -> Floats:
        """Mean posterior of every bag, normalised; one column is enough for two classes."""
        if rows.shape[1] == 2:
            second = np.clip(bags.means(rows[:, 1:], n_jobs), 0.0, 1.0)
            return np.hstack([1 - second, second])
        means = bags.means(rows, n_jobs)
        return np.asarray(means / means.sum(axis=1, keepdims=True))


class Labels(ItemRepresentation):
    """The predicted class, as a one among zeros: ACC."""

    needs = "labels"

    def of_items(self, rows: Floats) -> Floats:
        """One-hot predictions."""
        return np.asarray(np.eye(rows.shape[1])[rows.argmax(axis=1)])

    def of_bags(self, rows: Floats, bags: Bags, n_jobs: int | None = None) -> Floats:
        """Share of each predicted class in every bag."""
        return bags.shares(rows.argmax(axis=1), rows.shape[1], n_jobs)


class AboveFrequency(ItemRepresentation):
    """Whether each posterior is at least the class's training share: Friedman's method."""

    def fit(self, rows: Floats, codes: Ints, frequency: Floats) -> Self:  # noqa: ARG002
        """Keep the training shares."""
        self.frequency_ = frequency
        return self

    def of_items(self, rows: Floats) -> Floats:
        """Ones and zeros."""
        return (rows >= self.frequency_).astype(np.float64)


@dataclass(eq=False, repr=False)
class Histogram(Representation):
    """A histogram of every posterior, side by side; two classes need one: DMy.

    Parameters
    ----------
    n_bins : int, default 8
        Of equal width in [0, 1].
    cdf : bool, default False
        Whether to cumulate it.
    """

    n_bins: int = 8
    cdf: bool = False
    remembers = True

    def check_params(self) -> None:
        """Refuse a histogram of less than two bins."""
        check.whole("n_bins", self.n_bins, 2)

    def of_bags(self, rows: Floats, bags: Bags, n_jobs: int | None = None) -> Floats:
        """Histograms of every bag, divided by their number."""
        columns = rows[:, 1:] if rows.shape[1] == 2 else rows
        cells = np.clip((columns * self.n_bins).astype(np.int64), 0, self.n_bins - 1)
        offsets = self.n_bins * np.arange(columns.shape[1])
        shares = bags.histograms(cells + offsets, self.n_bins * len(offsets), n_jobs)
        if self.cdf:
            shape = (len(shares), len(offsets), self.n_bins)
            shares = np.cumsum(shares.reshape(shape), axis=2).reshape(len(shares), -1)
        return shares / len(offsets)


@dataclass(eq=False, repr=False)
class ColumnHistogram(Representation):
    """A histogram of every column between its least and largest labelled value: DMx.

    Parameters
    ----------
    n_bins : int, default 8
    """

    n_bins: int = 8
    needs = "any"
    remembers = True

    def check_params(self) -> None:
        """Refuse a histogram of less than two bins."""
        check.whole("n_bins", self.n_bins, 2)

    def fit(self, rows: Floats, codes: Ints, frequency: Floats) -> Self:  # noqa: ARG002
        """Learn the range of every column."""
        self.low_, self.high_ = rows.min(axis=0), rows.max(axis=0)
        return self

    def of_bags(self, rows: Floats, bags: Bags, n_jobs: int | None = None) -> Floats:
        """Histograms of every bag, divided by their number."""
        cells = column_cells(rows, self.low_, self.high_, self.n_bins)
        shares = bags.histograms(cells, self.n_bins * rows.shape[1], n_jobs)
        return np.asarray(shares / rows.shape[1])


class AffinityRepresentation(ItemRepresentation):
    """Base of the representations by mean affinity with the items of each class: d = k."""

    needs = "posteriors"

    @abstractmethod
    def transform(self, rows: Floats) -> Floats:
        """Rows in the space where affinities are taken."""

    @abstractmethod
    def affinities(self, points: Floats) -> Floats:
        """Mean affinity of each point with each class."""

    def fit(self, rows: Floats, codes: Ints, frequency: Floats) -> Self:
        """Keep the labelled items of each class."""
        self.by_class_ = affinity.by_class(self.transform(rows), codes, len(frequency))
        return self

    def of_items(self, rows: Floats) -> Floats:
        """Mean affinity of every item with every class."""
        return self.affinities(self.transform(rows))


@dataclass(eq=False, repr=False)
class Distances(AffinityRepresentation):
    """Mean distance to the items of each class, with a minus: the energy distance, EDy and EDx.

    Parameters
    ----------
    distance : {'manhattan', 'euclidean'}
        Manhattan distances are summed by sorting, at no more than the cost of sorting.
    """

    distance: str = "manhattan"

    def check_params(self) -> None:
        """Refuse an unknown distance."""
        choose("distance", self.distance, DISTANCES)

    def fit(self, rows: Floats, codes: Ints, frequency: Floats) -> Self:
        """Keep the labelled items of each class."""
        # Posteriors of two classes lie on a line, where the two distances are proportional.
        line = rows.shape[1] == 2 and bool(np.ptp(rows.sum(axis=1)) < 1e-9)
        self.by_sorting_ = self.distance == "manhattan" or line
        return super().fit(rows, codes, frequency)

    def transform(self, rows: Floats) -> Floats:
        """Rows as they are."""
        return rows.astype(np.float64, copy=False)

    def affinities(self, points: Floats) -> Floats:
        """Mean distances, negative."""
        means = affinity.manhattan_means if self.by_sorting_ else affinity.euclidean_means
        return -means(points, self.by_class_)


class RankDistances(AffinityRepresentation):
    """Mean distance between ranks among the labelled items, with a minus: CvMy."""

    def fit(self, rows: Floats, codes: Ints, frequency: Floats) -> Self:
        """Learn the ranks of the labelled items."""
        self.sorted_ = np.sort(rows, axis=0)
        self.ranks_ = np.sort(rankdata(rows, axis=0), axis=0) / len(rows)
        return super().fit(rows, codes, frequency)

    def transform(self, rows: Floats) -> Floats:
        """Rank of each score among the labelled ones, as a share."""
        pairs = zip(rows.T, self.sorted_.T, self.ranks_.T, strict=True)
        return np.column_stack([np.interp(*each) for each in pairs])

    def affinities(self, points: Floats) -> Floats:
        """Mean distances, negative."""
        return -affinity.manhattan_means(points, self.by_class_)


@dataclass(eq=False, repr=False)
class GaussianKernel(AffinityRepresentation):
    """Mean Gaussian kernel with the items of each class: MMD.

    Parameters
    ----------
    bandwidth : float or 'median', default 'median'
        'median' takes the median distance of labelled rows.
    n_features : int, optional
        Random Fourier features in place of exact kernels, for very large data.
    random_state : int, generator or None, default 0
    """

    bandwidth: float | str = "median"
    n_features: int | None = None
    random_state: Any = 0

    def check_params(self) -> None:
        """Refuse impossible settings."""
        check_bandwidth(self.bandwidth, "median")
        if self.n_features is not None:
            check.whole("n_features", self.n_features, 2)

    def fit(self, rows: Floats, codes: Ints, frequency: Floats) -> Self:
        """Settle the bandwidth, and keep the labelled items of each class."""
        rng = np.random.default_rng(self.random_state)
        if self.bandwidth != "median":
            self.bandwidth_ = float(self.bandwidth)
        else:
            gaps = pdist(rows[rng.permutation(len(rows))[:1000]])
            self.bandwidth_ = max(float(np.median(gaps[gaps > 0])) if gaps.any() else 1.0, 1e-3)
        super().fit(rows, codes, frequency)
        if self.n_features is not None:
            shape = (rows.shape[1], self.n_features // 2)
            self.frequencies_ = rng.normal(size=shape) / self.bandwidth_
            means = [self._waves(part).mean(axis=0) for part in self.by_class_]
            self.means_ = np.column_stack(means)
        return self

    def transform(self, rows: Floats) -> Floats:
        """Rows as they are."""
        return rows

    def affinities(self, points: Floats) -> Floats:
        """Mean kernels."""
        if self.n_features is None:
            return affinity.gaussian_means(points, self.by_class_, self.bandwidth_)
        k = len(self.by_class_)
        return affinity.blocked(points, self.n_features, k, lambda x: self._waves(x) @ self.means_)

    def _waves(self, rows: Floats) -> Floats:
        waves = rows @ self.frequencies_
        return np.asarray(np.hstack([np.cos(waves), np.sin(waves)]) / np.sqrt(waves.shape[1]))


def column_cells(rows: Floats, low: Floats, high: Floats, n_bins: int) -> Ints:
    """Cell of each value of each column, numbered through all columns."""
    least, most = low.astype(np.float64), high.astype(np.float64)
    width = np.where(most > least, most - least, 1.0)
    place = (rows.astype(np.float64) - least) / width * n_bins
    cells = np.clip(place, 0, n_bins - 1).astype(np.int64)
    return np.asarray(cells + n_bins * np.arange(rows.shape[1]))


def check_bandwidth(bandwidth: Any, word: str) -> None:
    """Refuse a bandwidth that is neither positive nor the word for choosing it."""
    if isinstance(bandwidth, str) and bandwidth == word:
        return
    number = isinstance(bandwidth, (int, float, np.number)) and not isinstance(bandwidth, bool)
    if not number or not 0 < bandwidth < np.inf:
        raise InputError(f"bandwidth must be positive or {word!r}, got {bandwidth!r}.")
