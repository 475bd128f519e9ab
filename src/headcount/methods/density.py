"""KDEy: class densities of the posterior vector by Gaussian kernels, for any number of classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.inference.mixtures import maximise_likelihood
from headcount.kernels import affinity
from headcount.methods.adjusting import class_means
from headcount.methods.base import ScoreQuantifier, warn_unconverged
from headcount.methods.distances import check_bandwidth
from headcount.methods.histograms import match_features
from headcount.scores.calibration import Calibrator

BANDWIDTHS = np.linspace(0.01, 0.20, 20)


class KDEyML(ScoreQuantifier):
    """Maximum likelihood of a mixture of class-wise kernel densities of posteriors.

    Moreo, González and del Coz (2024).

    Parameters
    ----------
    bandwidth : float or 'cv', default 0.1
        Of the Gaussian kernel. 'cv' chooses it among 0.01, 0.02, ..., 0.20 by the absolute error
        on bags: half of the held-out scores make densities, the other half makes bags.
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> scores, y = [0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.4], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> kde = KDEyML().fit_scores(scores, y)
    >>> kde.predict_scores([0.1, 0.9, 0.8, 0.9]).round(2)
    array([0.25, 0.75])
    """

    _flat_to_prior = True
    _remembers = True

    def __init__(
        self,
        classifier: Any = None,
        *,
        bandwidth: float | str = 0.1,
        calibrator: str | Calibrator | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            classifier, calibrator=calibrator, cv=cv, n_jobs=n_jobs, random_state=random_state
        )
        self.bandwidth = bandwidth

    def _check_params(self) -> None:
        super()._check_params()
        check_bandwidth(self.bandwidth, "cv")

    def _learn(self, scores: Floats | None, codes: Ints | None, frequency: Floats) -> None:
        assert scores is not None and codes is not None
        self.frequency_ = frequency
        if self.bandwidth == "cv":
            self.bandwidth_ = self._choose_bandwidth(scores, codes)
        else:
            self.bandwidth_ = float(self.bandwidth)
        self._densities(scores, codes)

    def _densities(self, scores: Floats, codes: Ints) -> Self:
        """Keep what the chosen bandwidth needs of the held-out scores."""
        self._by_class = affinity.by_class(scores, codes, len(self.frequency_))
        return self

    def _choose_bandwidth(self, scores: Floats, codes: Ints) -> float:
        from headcount.protocols import UniformPrevalence

        k = len(self.frequency_)
        half = np.zeros(len(codes), dtype=bool)
        rng = np.random.default_rng(self.random_state)
        for c in range(k):
            mine = rng.permutation(np.flatnonzero(codes == c))
            if len(mine) < 2:
                raise InputError(
                    "bandwidth='cv' needs at least two held-out items of every class. "
                    "Give a bandwidth, such as 0.1."
                )
            half[mine[: len(mine) // 2]] = True
        bags = UniformPrevalence(n_bags=100, size=100, random_state=0).draw(codes[~half])
        errors = []
        for bandwidth in BANDWIDTHS:
            self.bandwidth_ = float(bandwidth)
            p = self._densities(scores[half], codes[half])._aggregate(scores[~half], bags)
            errors.append(np.abs(p - np.asarray(bags.prevalence)).mean())
        return float(BANDWIDTHS[int(np.argmin(errors))])

    def _aggregate(self, scores: Floats, bags: Bags) -> Floats:
        densities = affinity.gaussian_means(scores, self._by_class, self.bandwidth_)
        # An item far from every class says nothing; elsewhere only ratios matter.
        likelihood = np.maximum(densities, 1e-10)
        likelihood /= likelihood.max(axis=1, keepdims=True)
        estimates, converged = maximise_likelihood(
            likelihood,
            bags,
            self.frequency_,
            extra=np.zeros(scores.shape[1]),
            em=False,
            tol=1e-9,
            max_iter=1000,
            n_jobs=self.n_jobs,
        )
        warn_unconverged(converged, "the likelihood")
        return estimates


class KDEyCS(KDEyML):
    """Match class-wise kernel densities by the Cauchy-Schwarz divergence, in closed form.

    The divergence of two Gaussian mixtures needs only sums over pairs; its minimum is a
    non-negative quadratic. Moreo, González and del Coz (2024).

    Parameters
    ----------
    bandwidth, classifier, calibrator, cv, n_jobs, random_state
        As in `KDEyML`.

    Examples
    --------
    >>> scores, y = [0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.4], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> kde = KDEyCS().fit_scores(scores, y)
    >>> kde.predict_scores([0.1, 0.9, 0.8, 0.9]).round(2)
    array([0.09, 0.91])
    """

    def _densities(self, scores: Floats, codes: Ints) -> Self:
        super()._densities(scores, codes)
        k = len(self.frequency_)
        wide = np.sqrt(2) * self.bandwidth_  # a product of two kernels is one that is wider
        table = affinity.gaussian_means(scores, self._by_class, wide)
        gram = class_means(table, codes, k)
        self.gram_ = (gram + gram.T) / 2
        return self

    def _aggregate(self, scores: Floats, bags: Bags) -> Floats:
        from headcount.kernels.compiled.quadratic import nonnegative_rows

        wide = np.sqrt(2) * self.bandwidth_
        table = affinity.gaussian_means(scores, self._by_class, wide)
        overlap = bags.means(table, self.n_jobs)
        # Only ratios matter; a bag far from every class overlaps with none of them.
        largest = overlap.max(axis=1, keepdims=True)
        overlap /= np.where(largest > 0, largest, 1.0)
        k = len(self.gram_)
        gram = self.gram_ / np.trace(self.gram_) * k + 1e-10 * np.eye(k)
        out = np.tile(self.frequency_, (len(bags), 1))
        nonnegative_rows(gram, overlap, out)
        totals = out.sum(axis=1, keepdims=True)
        usable = (totals > 0) & (largest > 0)
        return np.where(usable, out / np.where(totals > 0, totals, 1), self.frequency_)


class KDEyHD(KDEyML):
    """Match class-wise kernel densities by the Hellinger distance, on random reference points.

    Moreo, González and del Coz (2024).

    Parameters
    ----------
    n_reference : int, default 2000
        Points drawn from the classes' densities, at which the bag's density is compared.
    bandwidth, classifier, calibrator, cv, n_jobs, random_state
        As in `KDEyML`.

    Examples
    --------
    >>> scores, y = [0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.4], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> kde = KDEyHD().fit_scores(scores, y)
    >>> kde.predict_scores([0.1, 0.9, 0.8, 0.9]).round(1)
    array([0.2, 0.8])
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        n_reference: int = 2000,
        bandwidth: float | str = 0.1,
        calibrator: str | Calibrator | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            classifier,
            bandwidth=bandwidth,
            calibrator=calibrator,
            cv=cv,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.n_reference = n_reference

    def _check_params(self) -> None:
        super()._check_params()
        check.whole("n_reference", self.n_reference, 10)

    def _densities(self, scores: Floats, codes: Ints) -> Self:
        super()._densities(scores, codes)
        each = -(-self.n_reference // len(self._by_class))
        self._points = np.vstack([self._sample(rows, each) for rows in self._by_class])
        at = affinity.gaussian_means(self._points, self._by_class, self.bandwidth_) + 1e-10
        self._importance = at.mean(axis=1) * len(at)
        self._class_densities = np.ascontiguousarray((at / self._importance[:, None]).T)
        return self

    def _sample(self, rows: Floats, n: int) -> Floats:
        """Points from a class's density by a scrambled Sobol sequence, evener than chance."""
        rng = np.random.default_rng(self.random_state)
        power = int(np.ceil(np.log2(max(n, 2))))
        u = qmc.Sobol(rows.shape[1] + 1, rng=rng).random_base2(power)[:n]
        # Neighbours in score are neighbours in number, so that even numbers are even scores.
        ordered = rows[np.lexsort(rows.T)]
        centres = ordered[(u[:, 0] * len(rows)).astype(int)]
        return np.asarray(centres + self.bandwidth_ * ndtri(np.clip(u[:, 1:], 1e-12, 1 - 1e-12)))

    def _aggregate(self, scores: Floats, bags: Bags) -> Floats:
        step = max(512, (1 << 25) // len(self._points))  # memory: densities of so many bags
        parts = [self._match(scores, bags[s : s + step]) for s in range(0, len(bags), step)]
        return np.vstack(parts)

    def _match(self, scores: Floats, bags: Bags) -> Floats:
        q = np.empty((len(bags), len(self._points)))
        for start in range(0, len(self._points), 128):  # memory: a table of N x 128
            part = slice(start, start + 128)
            points = [p[None] for p in self._points[part]]
            kernels = affinity.gaussian_means(scores, points, self.bandwidth_)
            q[:, part] = bags.means(kernels, self.n_jobs)
        q = (q + 1e-10) / self._importance
        return match_features(self._class_densities, q, "hd", self.frequency_, 0.0, self.n_jobs)
