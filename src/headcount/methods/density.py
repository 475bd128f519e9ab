"""KDEy: class densities of the posterior vector by Gaussian kernels, for any number of classes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc
from sklearn.base import clone

from headcount._core import validation as check
from headcount._core.types import Bools, Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.kernels import affinity
from headcount.methods.base import Tags
from headcount.methods.likelihood import LikelihoodQuantifier
from headcount.methods.matching import Matcher, MatchingQuantifier, Parts
from headcount.methods.objectives import CauchySchwarz, Divergence
from headcount.methods.representations import GaussianKernel, Representation, check_bandwidth
from headcount.methods.scored import ScoreQuantifier
from headcount.protocols.artificial import UniformPrevalence
from headcount.scores.scorer import Held

BANDWIDTHS = np.linspace(0.01, 0.20, 20)
LEAST_DENSITY = 1e-10
POINTS_AT_ONCE = 128  # memory: a table of so many columns for all items


@dataclass(eq=False, repr=False, kw_only=True)
class KernelDensityQuantifier(ScoreQuantifier):
    """Base of the KDEy methods: how the bandwidth is settled.

    Parameters
    ----------
    bandwidth : float or 'cv', default 0.1
        Of the Gaussian kernel. 'cv' chooses it among 0.01, 0.02, ..., 0.20 by the absolute error
        on bags: half of the held-out scores make densities, the other half makes bags.
    """

    bandwidth: float | str = 0.1

    @abstractmethod
    def learn_densities(self, held: Held, bandwidth: float) -> None:
        """Learn the classes' densities with a bandwidth."""

    def method_tags(self) -> Tags:
        """Kernels remember where the labelled items are."""
        return Tags(remembers=True)

    def check_params(self) -> None:
        """Refuse impossible settings."""
        super().check_params()
        check_bandwidth(self.bandwidth, "cv")

    def learn(self, held: Held) -> None:
        """Settle the bandwidth, and learn the densities."""
        chosen = self._choose(held) if self.bandwidth == "cv" else self.bandwidth
        self.bandwidth_ = float(chosen)
        self.learn_densities(held, self.bandwidth_)

    def _choose(self, held: Held) -> float:
        """Bandwidth of least error on bags of half of the items."""
        half = _half(held.codes, held.n_classes, np.random.default_rng(self.random_state))
        part = Held(held.scores[half], held.codes[half], held.frequency, held.kind)
        bags = UniformPrevalence(n_bags=100, size=100, random_state=0).draw(held.codes[~half])
        truth = np.asarray(bags.prevalence)
        trial = clone(self)
        errors = []
        for bandwidth in BANDWIDTHS:
            trial.learn_densities(part, float(bandwidth))
            errors.append(np.abs(trial.aggregate(held.scores[~half], bags) - truth).mean())
        return float(BANDWIDTHS[int(np.argmin(errors))])


@dataclass(eq=False, repr=False, kw_only=True)
class KDEyML(KernelDensityQuantifier, LikelihoodQuantifier):
    """Maximum likelihood of a mixture of class-wise kernel densities of posteriors.

    Moreo, González and del Coz (2024).

    Parameters
    ----------
    bandwidth : float or 'cv', default 0.1
        Of the Gaussian kernel. 'cv' chooses it among 0.01, 0.02, ..., 0.20 by the absolute error
        on bags: half of the held-out scores make densities, the other half makes bags.
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> scores, y = [0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.4], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> kde = KDEyML().fit_scores(scores, y)
    >>> kde.predict_scores([0.1, 0.9, 0.8, 0.9]).round(2)
    array([0.25, 0.75])
    """

    def learn_densities(self, held: Held, bandwidth: float) -> None:
        """Keep the labelled items of each class."""
        self.prior_, self.width_ = held.frequency, bandwidth
        self.by_class_ = affinity.by_class(held.scores, held.codes, held.n_classes)

    def likelihoods(self, scores: Floats) -> Floats:
        """Densities; an item far from every class says nothing."""
        densities = affinity.gaussian_means(scores, self.by_class_, self.width_)
        likelihood = np.maximum(densities, LEAST_DENSITY)
        return np.asarray(likelihood / likelihood.max(axis=1, keepdims=True))


class MatchedDensities(KernelDensityQuantifier, MatchingQuantifier):
    """Base of the KDEy methods that match densities by a divergence."""

    @abstractmethod
    def parts_with(self, bandwidth: float) -> Parts:
        """Representation and objective for a bandwidth."""

    def match_parts(self) -> Parts:
        """Parts with the bandwidth that is given, or one of those to choose from."""
        given = BANDWIDTHS[0] if self.bandwidth == "cv" else self.bandwidth
        return self.parts_with(float(given))

    def learn_densities(self, held: Held, bandwidth: float) -> None:
        """Learn the classes' vectors with a bandwidth."""
        parts = self.parts_with(bandwidth)
        self.matcher_ = Matcher(parts, held.scores, held.codes, held.frequency)


class KDEyCS(MatchedDensities):
    """Match class-wise kernel densities by the Cauchy-Schwarz divergence, in closed form.

    Moreo, González and del Coz (2024). `GaussianKernel` with `CauchySchwarz`.

    Parameters
    ----------
    bandwidth, classifier, calibrator, cv, refit, n_jobs, random_state
        As in `KDEyML`.

    Examples
    --------
    >>> scores, y = [0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.4], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> kde = KDEyCS().fit_scores(scores, y)
    >>> kde.predict_scores([0.1, 0.9, 0.8, 0.9]).round(2)
    array([0.09, 0.91])
    """

    def parts_with(self, bandwidth: float) -> Parts:
        """A product of two kernels is one that is wider."""
        return GaussianKernel(float(np.sqrt(2) * bandwidth)), CauchySchwarz()


@dataclass(eq=False, repr=False, kw_only=True)
class KDEyHD(MatchedDensities):
    """Match class-wise kernel densities by the Hellinger distance, on random reference points.

    Moreo, González and del Coz (2024). `DensityAtPoints` with `Divergence`.

    Parameters
    ----------
    n_reference : int, default 2000
        Points drawn from the classes' densities, at which the bag's density is compared.
    bandwidth, classifier, calibrator, cv, refit, n_jobs, random_state
        As in `KDEyML`.

    Examples
    --------
    >>> scores, y = [0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.4], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> kde = KDEyHD().fit_scores(scores, y)
    >>> kde.predict_scores([0.1, 0.9, 0.8, 0.9]).round(1)
    array([0.2, 0.8])
    """

    n_reference: int = 2000

    def parts_with(self, bandwidth: float) -> Parts:
        """Densities at reference points and the Hellinger distance."""
        points = DensityAtPoints(bandwidth, self.n_reference, int(self.random_state or 0))
        return points, Divergence("hd")


@dataclass(eq=False, repr=False)
class DensityAtPoints(Representation):
    """Kernel density at points drawn from the classes, over the density they were drawn by.

    Parameters
    ----------
    bandwidth : float, default 0.1
    n_reference : int, default 2000
        Number of points.
    random_state : int, default 0
    """

    bandwidth: float = 0.1
    n_reference: int = 2000
    random_state: int = 0
    remembers = True

    def check_params(self) -> None:
        """Refuse too few points."""
        check.whole("n_reference", self.n_reference, 10)

    def fit(self, rows: Floats, codes: Ints, frequency: Floats) -> Self:
        """Draw the points."""
        by_class = affinity.by_class(rows, codes, len(frequency))
        each = -(-self.n_reference // len(by_class))
        self.points_ = np.vstack([self._sample(part, each) for part in by_class])
        at = affinity.gaussian_means(self.points_, by_class, self.bandwidth) + LEAST_DENSITY
        self.importance_ = at.mean(axis=1) * len(at)
        self.class_densities_ = np.ascontiguousarray((at / self.importance_[:, None]).T)
        return self

    def of_classes(self, rows: Floats, codes: Ints) -> Floats:  # noqa: ARG002
        """Densities of the classes, which fitting has found already."""
        return self.class_densities_

    def of_bags(self, rows: Floats, bags: Bags, n_jobs: int | None = None) -> Floats:
        """Densities of the bags."""
        q = np.empty((len(bags), len(self.points_)))
        for start in range(0, len(self.points_), POINTS_AT_ONCE):
            part = slice(start, start + POINTS_AT_ONCE)
            points = [p[None] for p in self.points_[part]]
            kernels = affinity.gaussian_means(rows, points, self.bandwidth)
            q[:, part] = bags.means(kernels, n_jobs)
        return np.asarray((q + LEAST_DENSITY) / self.importance_)

    def _sample(self, rows: Floats, n: int) -> Floats:
        """Points from a class's density by a scrambled Sobol sequence, evener than chance."""
        rng = np.random.default_rng(self.random_state)
        power = int(np.ceil(np.log2(max(n, 2))))
        u = qmc.Sobol(rows.shape[1] + 1, rng=rng).random_base2(power)[:n]
        # Neighbours in score are neighbours in number, so that even numbers are even scores.
        ordered = rows[np.lexsort(rows.T)]
        centres = ordered[(u[:, 0] * len(rows)).astype(int)]
        return np.asarray(centres + self.bandwidth * ndtri(np.clip(u[:, 1:], 1e-12, 1 - 1e-12)))


def _half(codes: Ints, n_classes: int, rng: np.random.Generator) -> Bools:
    """Which items make densities: half of every class, drawn at random."""
    half = np.zeros(len(codes), dtype=bool)
    for c in range(n_classes):
        mine = rng.permutation(np.flatnonzero(codes == c))
        if len(mine) < 2:
            raise InputError(
                "bandwidth='cv' needs at least two held-out items of every class. "
                "Give a bandwidth, such as 0.1."
            )
        half[mine[: len(mine) // 2]] = True
    return half
