"""How near a mixture of the classes' vectors is to a bag's vector, and the shares nearest to it.

An objective is the second half of a matching method; the first is a representation. Each brings
the solver that suits it, exact and for all bags at once.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.exceptions import InputError, UnreliableWarning, choose
from headcount.kernels import simplex
from headcount.kernels.threads import over_ranges
from headcount.methods.base import warn_unconverged

DIVERGENCES = {"hd": 0, "topsoe": 1, "probsymm": 2, "l2": 3, "l1": 4}
# It bounds how much solving for the shares magnifies relative errors (Golub and Van Loan, Matrix
# Computations, section 2.6): beyond 1e6 an error of one in a million moves a share by its own size.
MAX_CONDITION_NUMBER = 1e6
COVARIANCES_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class ClassVectors:
    """What an objective learns from: the classes' vectors, and how they came about.

    Attributes
    ----------
    means : array of shape (k, d)
    frequency : share of each class among the labelled items
    counts : number of labelled items of each class behind the means
    items : vectors of these items, with their class numbers, where items have vectors
    """

    means: Floats
    frequency: Floats
    counts: Ints
    items: tuple[Floats, Ints] | None = None


class Objective(BaseEstimator, ABC):
    """Base of the objectives."""

    def check_params(self) -> None:
        """Refuse impossible settings; nothing to check by default."""

    def fit(self, classes: ClassVectors) -> Self:
        """Learn the classes' vectors."""
        self.classes_ = classes
        return self

    @abstractmethod
    def solve(self, vectors: Floats, sizes: Ints, n_jobs: int | None = None) -> Floats:
        """Shares of bags with these vectors and sizes: one row per bag."""


@dataclass(eq=False, repr=False)
class LeastSquares(Objective):
    """Least squares over the simplex, exactly.

    Parameters
    ----------
    weighting : {None, 'optimal'}
        'optimal' weighs the equations by the inverse covariance of their error, from the bag
        and from the labelled items, at a first estimate (two-step generalised moments).
    tau : float, default 0
        For ordered classes: adds tau / 2 times the squared second differences of the shares.
    """

    weighting: str | None = None
    tau: float = 0.0

    def check_params(self) -> None:
        """Refuse impossible settings."""
        check.at_least("tau", self.tau, 0)
        if self.weighting is not None:
            choose("weighting", self.weighting, ["optimal"])

    def fit(self, classes: ClassVectors) -> Self:
        """Learn the classes' vectors; say so where they cannot be told apart."""
        super().fit(classes)
        self.condition_ = warn_if_alike(classes.means)
        if self.weighting is not None:
            if classes.items is None:
                raise InputError("weighting='optimal' needs a representation of single items.")
            features, codes = classes.items
            parts = [features[codes == c] for c in range(len(classes.counts))]
            moments = np.stack([part.T @ part for part in parts])
            self.moments_ = moments / classes.counts[:, None, None]
        return self

    def solve(self, vectors: Floats, sizes: Ints, n_jobs: int | None = None) -> Floats:  # noqa: ARG002
        """Shares of least squared distance."""
        known = self.classes_
        first = simplex.pulled_least_squares(known.means.T, vectors, known.frequency, self.tau)
        return first if self.weighting is None else self._second_step(first, vectors, sizes)

    def _second_step(self, p: Floats, q: Floats, sizes: Ints) -> Floats:
        """Weigh the equations by the inverse covariance of q - M p at the first estimate.

        One equation is left out, because vectors sum to one.
        """
        k = p.shape[1]
        m, moments = self.classes_.means.T[:-1], self.moments_[:, :-1, :-1]
        within = moments - np.einsum("ik,jk->kij", m, m)
        out = np.empty_like(p)
        for s in range(0, len(p), COVARIANCES_AT_ONCE):
            part = slice(s, s + COVARIANCES_AT_ONCE)
            mean = p[part] @ m.T
            mixed = np.einsum("sk,kij->sij", p[part], moments) - mean[:, :, None] * mean[:, None]
            labelled = np.einsum("sk,kij->sij", p[part] ** 2 / self.classes_.counts, within)
            noise = mixed / sizes[part, None, None] + labelled
            floor = 1e-9 * np.trace(noise, axis1=1, axis2=2) + 1e-15
            noise += floor[:, None, None] * np.eye(len(m))
            weighed = np.linalg.solve(noise, np.broadcast_to(m, (len(noise), *m.shape)))
            grams = m.T @ weighed
            scale = np.trace(grams, axis1=1, axis2=2)[:, None] / k
            linear = np.einsum("sik,si->sk", weighed, q[part, :-1])
            # scale (sum p)^2 is constant on the simplex and makes the matrix definite.
            linear += scale * (1 + simplex.RELATIVE_RIDGE * self.classes_.frequency)
            grams += scale[:, :, None] * (1 + simplex.RELATIVE_RIDGE * np.eye(k))
            out[part] = simplex.quadratic(grams, linear)
        return out


class Inverse(Objective):
    """The textbook solution: invert the matrix of the classes' vectors, clip and normalise."""

    def fit(self, classes: ClassVectors) -> Self:
        """Learn the classes' vectors; say so where they cannot be told apart."""
        super().fit(classes)
        self.condition_ = warn_if_alike(classes.means)
        return self

    def solve(self, vectors: Floats, sizes: Ints, n_jobs: int | None = None) -> Floats:  # noqa: ARG002
        """Shares by the inverse matrix; vectors as they are if there is none."""
        matrix = self.classes_.means.T
        if np.linalg.matrix_rank(matrix) < len(matrix):
            warnings.warn(
                "the confusion matrix has no inverse: the unadjusted counts are returned. "
                "solver='simplex' does better here.",
                UnreliableWarning,
                stacklevel=5,
            )
            return simplex.clip_and_normalise(vectors)
        solved: Floats = np.linalg.solve(matrix, vectors.T).T.astype(np.float64)
        return simplex.clip_and_normalise(solved)


@dataclass(eq=False, repr=False)
class PulledWeights(Objective):
    """Class weights p / p_train by least squares, pulled towards one: RLLS.

    Parameters
    ----------
    alpha : float, default 0.01
        Strength of the pull.
    delta : float, default 0.05
        Level of the deviation bound that scales it.
    """

    alpha: float = 0.01
    delta: float = 0.05

    def check_params(self) -> None:
        """Refuse impossible settings."""
        check.at_least("alpha", self.alpha, 0)
        check.at_least("delta", self.delta, 1e-12, 1 - 1e-12)

    def fit(self, classes: ClassVectors) -> Self:
        """Learn the joint distribution of vector and class, and the strength of the pull."""
        super().fit(classes)
        n, k = int(classes.counts.sum()), len(classes.counts)
        self.joint_ = classes.means.T * (classes.counts / n)
        bound = 2 * np.log(2 * k / self.delta)
        self.rho_ = float(self.alpha * 3 * (bound / (3 * n) + np.sqrt(bound / n)))
        return self

    def solve(self, vectors: Floats, sizes: Ints, n_jobs: int | None = None) -> Floats:  # noqa: ARG002
        """Shares by the weights."""
        from headcount.kernels.compiled.simplex import pulled_weights

        shift = vectors - self.joint_.sum(axis=1)
        weights = np.empty((len(vectors), self.joint_.shape[1]))
        over_ranges(
            lambda a, b: pulled_weights(self.joint_, shift, self.rho_, weights, a, b),
            len(vectors),
            n_jobs,
        )
        return simplex.clip_and_normalise(weights * self.classes_.frequency)


@dataclass(eq=False, repr=False)
class Divergence(Objective):
    """The least divergence between two distributions over cells.

    Parameters
    ----------
    divergence : {'hd', 'topsoe', 'probsymm', 'l2', 'l1'}
        'hd' is the squared Hellinger distance, which is convex and has one minimum.
    tau : float, default 0
        For ordered classes: adds tau / 2 times the squared second differences of the shares.
    """

    divergence: str = "hd"
    tau: float = 0.0

    def check_params(self) -> None:
        """Refuse impossible settings."""
        choose("divergence", self.divergence, DIVERGENCES)
        check.at_least("tau", self.tau, 0)

    def solve(self, vectors: Floats, sizes: Ints, n_jobs: int | None = None) -> Floats:  # noqa: ARG002
        """Shares of least divergence."""
        from headcount.kernels.compiled import matching

        rows, kind = self.classes_.means, DIVERGENCES[self.divergence]
        if len(rows) == 2 and self.tau == 0:
            share = np.empty(len(vectors))
            matching.match_two(rows[0], rows[1], vectors, kind, share)
            return np.column_stack([1 - share, share])
        if self.divergence == "l1":
            if self.tau > 0:
                raise InputError("tau does not go with divergence='l1' and more than two classes.")
            return np.array([simplex.least_absolute(rows, vector) for vector in vectors])
        out, converged = np.empty((len(vectors), len(rows))), np.zeros(len(vectors), dtype=bool)
        pull = simplex.roughness(len(rows), second=self.tau) + 1e-10 * np.eye(len(rows))
        inner = np.maximum(self.classes_.frequency, 0.1 / len(rows))
        inner /= inner.sum()
        used = np.flatnonzero(rows.max(axis=0) > 0)  # no share changes the others
        rows, goals = np.ascontiguousarray(rows[:, used]), np.ascontiguousarray(vectors[:, used])
        over_ranges(
            lambda a, b: matching.match(rows, goals, pull, kind, inner, 1e-9, out, converged, a, b),
            len(goals),
            n_jobs,
        )
        warn_unconverged(converged, "the match")
        return out


@dataclass(eq=False, repr=False)
class Discrepancy(Objective):
    """Minimise p'Gp - 2h'p, G the affinities among classes and h those of the bag with them.

    With kernels it is the squared maximum mean discrepancy, with negative distances the energy
    distance.

    Parameters
    ----------
    tau : float, default 0
        For ordered classes: adds tau / 2 times the squared second differences of the shares.
    """

    tau: float = 0.0

    def check_params(self) -> None:
        """Refuse a negative strength of smoothing."""
        check.at_least("tau", self.tau, 0)

    def fit(self, classes: ClassVectors) -> Self:
        """Learn the affinities among classes."""
        super().fit(classes)
        self.gram_ = (classes.means + classes.means.T) / 2
        return self

    def solve(self, vectors: Floats, sizes: Ints, n_jobs: int | None = None) -> Floats:  # noqa: ARG002
        """Shares of least discrepancy; G need only be definite on sum zero."""
        k = len(self.gram_)
        scale = np.abs(self.gram_).max() + 1e-300
        curved = 2 * self.gram_ + simplex.roughness(k, second=self.tau)
        # A constant added to all of G changes nothing on the simplex and makes it definite.
        lifted = curved + 2 * scale + simplex.RELATIVE_RIDGE * scale * np.eye(k)
        pulled = 2 * vectors + 2 * scale + simplex.RELATIVE_RIDGE * scale * self.classes_.frequency
        return simplex.quadratic(lifted, pulled)


class CauchySchwarz(Objective):
    """The least Cauchy-Schwarz divergence of kernel densities, in closed form: KDEyCS.

    The divergence of two Gaussian mixtures needs only sums over pairs; its minimum is a
    non-negative quadratic.
    """

    def fit(self, classes: ClassVectors) -> Self:
        """Learn the overlaps of the classes."""
        super().fit(classes)
        self.gram_ = (classes.means + classes.means.T) / 2
        return self

    def solve(self, vectors: Floats, sizes: Ints, n_jobs: int | None = None) -> Floats:  # noqa: ARG002
        """Shares of least divergence; the training shares where a bag overlaps with no class."""
        from headcount.kernels.compiled.quadratic import nonnegative_rows

        # Only ratios matter.
        largest = vectors.max(axis=1, keepdims=True)
        overlap = vectors / np.where(largest > 0, largest, 1.0)
        k, frequency = len(self.gram_), self.classes_.frequency
        gram = self.gram_ / np.trace(self.gram_) * k + 1e-10 * np.eye(k)
        out = np.tile(frequency, (len(vectors), 1))
        nonnegative_rows(gram, overlap, out)
        totals = out.sum(axis=1, keepdims=True)
        usable = (totals > 0) & (largest > 0)
        return np.where(usable, out / np.where(totals > 0, totals, 1), frequency)


def warn_if_alike(means: Floats) -> float:
    """Condition number of the classes' vectors; a warning where they cannot be told apart."""
    condition = float(np.linalg.cond(means))
    if not condition < MAX_CONDITION_NUMBER:
        warnings.warn(
            f"the classifier cannot tell some classes apart (condition number of the confusion "
            f"matrix {condition:.1e}): shares of these classes are guesses towards the training "
            "prevalence. Use a better classifier or merge classes.",
            UnreliableWarning,
            stacklevel=6,
        )
    return condition
