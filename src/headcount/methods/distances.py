"""Methods that match a bag through mean distances or kernels to the classes: a quadratic in p."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import rankdata

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError, choose
from headcount.kernels import affinity, simplex
from headcount.methods.adjusting import RIDGE, check_tau, class_means, roughness
from headcount.methods.base import ScoreQuantifier
from headcount.scores.calibration import Calibrator


class _KernelMatching(ScoreQuantifier):
    """Minimise p'Gp - 2h'p, G and h the mean affinities among classes and with the bag."""

    tau: float = 0.0
    _flat_to_prior = True

    @abstractmethod
    def _affinity(self, items: Floats) -> Floats:
        """Mean affinity of each item with each class."""

    def _representation(self, scores: Floats) -> Floats:
        return scores

    def _learn(self, scores: Floats | None, codes: Ints | None, frequency: Floats) -> None:
        assert scores is not None and codes is not None
        self._prepare(scores)
        rows = self._representation(scores)
        self._by_class = affinity.by_class(rows, codes, len(frequency))
        self._settle()
        gram = class_means(self._affinity(rows), codes, len(frequency))
        self.gram_ = (gram + gram.T) / 2
        self.frequency_ = frequency

    def _prepare(self, scores: Floats) -> None:
        """Learn the representation; nothing by default."""

    def _settle(self) -> None:
        """Keep what is needed of the classes' rows; nothing by default."""

    def _aggregate(self, scores: Floats, bags: Bags) -> Floats:
        linear = bags.means(self._affinity(self._representation(scores)), self.n_jobs)
        return matched(self.gram_, linear, self.frequency_, self.tau)


class EDy(_KernelMatching):
    """Match posteriors by the energy distance, all pairs: the system of UniOviedo on LeQua T1B.

    p minimises 2 b'p - p'Ap with A the mean distances among classes and b those to the bag.
    Kawakubo, du Plessis and Sugiyama (2016); Castaño et al. (2024).

    Parameters
    ----------
    distance : {'manhattan', 'euclidean'}
        Manhattan distances are summed by sorting, at no more than the cost of sorting.
    tau : float, default 0
        For ordered classes: adds tau / 2 times the squared second differences of p (o-EDy).
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> edy = EDy().fit_scores([0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.4], [0, 0, 0, 0, 1, 1, 1, 1])
    >>> edy.predict_scores([0.1, 0.9, 0.8, 0.9]).round(2)
    array([0.08, 0.92])
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        distance: str = "manhattan",
        tau: float = 0.0,
        calibrator: str | Calibrator | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            classifier, calibrator=calibrator, cv=cv, n_jobs=n_jobs, random_state=random_state
        )
        self.distance = distance
        self.tau = tau

    def _check_params(self) -> None:
        super()._check_params()
        choose("distance", self.distance, ["manhattan", "euclidean"])
        check_tau(self.tau)

    def _affinity(self, items: Floats) -> Floats:
        # Posteriors of two classes lie on a line, where the two distances are proportional.
        if self.distance == "manhattan" or items.shape[1] == 2:
            return -affinity.manhattan_means(items, self._by_class)
        return -affinity.euclidean_means(items, self._by_class)


class CvMy(_KernelMatching):
    """Match posteriors by a Cramér-von Mises distance: the energy distance between ranks.

    Each column of posteriors is replaced by its rank among the labelled items, so that only the
    order counts. Castaño et al. (2019) rank the labelled items and the bag together, which asks
    for new ranks for every bag; with the labelled items alone, one table serves all bags.

    Parameters
    ----------
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> cvm = CvMy().fit_scores([0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.4], [0, 0, 0, 0, 1, 1, 1, 1])
    >>> cvm.predict_scores([0.1, 0.9, 0.8, 0.9]).round(2)
    array([0.09, 0.91])
    """

    def _prepare(self, scores: Floats) -> None:
        self._sorted = np.sort(scores, axis=0)
        self._ranks = np.sort(rankdata(scores, axis=0), axis=0) / len(scores)

    def _representation(self, scores: Floats) -> Floats:
        columns = [
            np.interp(scores[:, j], self._sorted[:, j], self._ranks[:, j])
            for j in range(scores.shape[1])
        ]
        return np.column_stack(columns)

    def _affinity(self, items: Floats) -> Floats:
        return -affinity.manhattan_means(items, self._by_class)


class MMD(_KernelMatching):
    """Match mean embeddings of posteriors in a kernel space, also known as KMM and DFM.

    p minimises the maximum mean discrepancy between the bag and the mixture of the classes.
    Iyer, Nath and Sarawagi (2014); with random Fourier features after Dussap et al. (2023).

    Parameters
    ----------
    bandwidth : float or 'median', default 'median'
        Of the Gaussian kernel; 'median' takes the median distance of labelled posteriors.
    n_features : int, optional
        Random Fourier features in place of exact kernels, for very large data.
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> mmd = MMD().fit_scores([0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.4], [0, 0, 0, 0, 1, 1, 1, 1])
    >>> mmd.predict_scores([0.1, 0.9, 0.8, 0.9]).round(2)
    array([0.07, 0.93])
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        bandwidth: float | str = "median",
        n_features: int | None = None,
        calibrator: str | Calibrator | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            classifier, calibrator=calibrator, cv=cv, n_jobs=n_jobs, random_state=random_state
        )
        self.bandwidth = bandwidth
        self.n_features = n_features

    def _check_params(self) -> None:
        super()._check_params()
        check_bandwidth(self.bandwidth, "median")
        if self.n_features is not None:
            check.whole("n_features", self.n_features, 2)

    def _prepare(self, scores: Floats) -> None:
        rng = np.random.default_rng(self.random_state)
        if self.bandwidth != "median":
            self.bandwidth_ = float(self.bandwidth)
        else:
            some = scores[rng.permutation(len(scores))[:1000]]
            gaps = pdist(some)
            self.bandwidth_ = max(float(np.median(gaps[gaps > 0])) if gaps.any() else 1.0, 1e-3)
        if self.n_features is not None:
            shape = (scores.shape[1], self.n_features // 2)
            self._frequencies = rng.normal(size=shape) / self.bandwidth_

    def _waves(self, items: Floats) -> Floats:
        waves = items @ self._frequencies
        return np.asarray(np.hstack([np.cos(waves), np.sin(waves)]) / np.sqrt(waves.shape[1]))

    def _settle(self) -> None:
        if self.n_features is not None:
            means = [self._waves(rows).mean(axis=0) for rows in self._by_class]
            self._means = np.column_stack(means)

    def _affinity(self, items: Floats) -> Floats:
        if self.n_features is None:
            return affinity.gaussian_means(items, self._by_class, self.bandwidth_)
        k = len(self._by_class)
        return affinity.blocked(items, self.n_features, k, lambda x: self._waves(x) @ self._means)


def matched(gram: Floats, linear: Floats, centre: Floats, tau: float = 0.0) -> Floats:
    """Minimise p'Gp - 2h'p + tau/2 |second differences|^2; G need only be definite on sum zero."""
    k = len(gram)
    scale = np.abs(gram).max() + 1e-300
    curved = 2 * gram + roughness(k, second=tau)
    # A constant added to all of G changes nothing on the simplex and makes it definite.
    lifted = curved + 2 * scale + RIDGE * scale * np.eye(k)
    return simplex.quadratic(lifted, 2 * linear + 2 * scale + RIDGE * scale * centre)


def check_bandwidth(bandwidth: Any, word: str) -> None:
    """Refuse a bandwidth that is neither positive nor the word for choosing it."""
    if isinstance(bandwidth, str) and bandwidth == word:
        return
    number = isinstance(bandwidth, (int, float, np.number)) and not isinstance(bandwidth, bool)
    if not number or not 0 < bandwidth < np.inf:
        raise InputError(f"bandwidth must be positive or {word!r}, got {bandwidth!r}.")
