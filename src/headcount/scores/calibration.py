"""Calibrators: turn a classifier's scores into posteriors that mean what they say.

All are fitted on scores of items the classifier had not seen. They work on logits: the logarithm
of posteriors, or decision values as they are.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp, softmax
from sklearn.base import BaseEstimator, clone
from sklearn.isotonic import IsotonicRegression

from headcount._core.convergence import ConvergenceWarning
from headcount._core.types import Bools, Floats, Ints
from headcount.kernels.simplex import from_each_against_rest, rest_columns

POSTERIOR_FLOOR = 1e-12  # posteriors are raised to it, so that exact 0 and 1 do no harm
# On the whole log-likelihood, not per item: it matters only when the data leave a parameter open.
LIKELIHOOD_RIDGE = 1e-3


class Calibrator(BaseEstimator, ABC):
    """Base of the calibrators: `fit(logits, codes)`, then `transform(logits)` to posteriors."""

    @abstractmethod
    def fit(self, logits: Floats, codes: Ints) -> Self:
        """Learn from logits (n, k) and class numbers (n,)."""

    @abstractmethod
    def transform(self, logits: Floats) -> Floats:
        """Posteriors (n, k) for logits (n, k)."""

    def resampled(
        self, logits: Floats, codes: Ints, n: int, rng: np.random.Generator
    ) -> Iterator[Self]:
        """Calibrators of resampled items, each class keeping its number of items."""
        for _ in range(n):
            rows = resampled_rows(codes, rng)
            yield clone(self, safe=False).fit(logits[rows], codes[rows])


class SoftmaxCalibrator(Calibrator):
    """Scale and shift the logits: softmax(a z + b), by maximum likelihood.

    Parameters
    ----------
    per_class : bool, default False
        A scale for each class (vector scaling), or one for all (temperature scaling).
    bias : bool, default False
        Whether to add a constant to each class.

    Notes
    -----
    Temperature scaling: Guo et al. (2017). BCTS is one scale with bias, VS a scale a class with
    bias, NBVS the same without bias: Alexandari, Kundaje and Shrikumar (2020). Scales are kept
    positive by their logarithm, and a small ridge keeps separable data finite.

    Examples
    --------
    >>> logits = np.log([[0.9, 0.1], [0.8, 0.2], [0.9, 0.1], [0.2, 0.8]])
    >>> bcts = SoftmaxCalibrator(bias=True).fit(logits, np.array([0, 0, 1, 1]))
    >>> bcts.transform(logits).mean(axis=0).round(3)  # as the labels are
    array([0.5, 0.5])
    """

    def __init__(self, *, per_class: bool = False, bias: bool = False):
        self.per_class = per_class
        self.bias = bias

    def fit(self, logits: Floats, codes: Ints) -> Self:
        """Learn scale and bias from logits (n, k) and class numbers (n,)."""
        z = centred(logits)
        n, k = z.shape
        # Shift and scale first: the optimiser then sees the same problem for any scores. Without
        # a bias to take it back, there must be no shift.
        self.shift_ = z.mean(axis=0) if self.bias else np.zeros(k)
        self.unit_ = max(float(np.std(z - self.shift_)), 1e-300)
        z = (z - self.shift_) / self.unit_
        n_scales = k if self.per_class else 1
        own = np.zeros((n, k))
        own[np.arange(n), codes] = 1.0

        def loss(theta: Floats) -> tuple[float, Floats]:
            scale, bias = np.exp(theta[:n_scales]), theta[n_scales:]
            logp = log_softmax(z * scale + (bias if self.bias else 0.0), axis=1)
            residual = np.exp(logp) - own
            by_class = (residual * z).sum(axis=0) * scale
            slope = [by_class if self.per_class else [by_class.sum()]]
            if self.bias:
                slope.append(residual.sum(axis=0))
            value = -(logp * own).sum() + LIKELIHOOD_RIDGE * (theta @ theta)
            return value / n, (np.concatenate(slope) + 2 * LIKELIHOOD_RIDGE * theta) / n

        theta = np.zeros(n_scales + (k if self.bias else 0))
        theta[:n_scales] = np.log(min(self.unit_, 10.0))
        box = [(-10.0, 10.0)] * n_scales + [(None, None)] * (len(theta) - n_scales)
        options = {"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-9}
        found = minimize(loss, theta, jac=True, method="L-BFGS-B", bounds=box, options=options)
        warn_unless_flat(loss(found.x)[1])
        self.scale_ = np.exp(found.x[:n_scales])
        self.bias_ = found.x[n_scales:] if self.bias else np.zeros(k)
        return self

    def transform(self, logits: Floats) -> Floats:
        """Posteriors (n, k) for logits (n, k)."""
        z = (centred(logits) - self.shift_) / self.unit_
        return np.asarray(softmax(z * self.scale_ + self.bias_, axis=1))


class PlattCalibrator(Calibrator):
    """A logistic curve for each class against the rest, then normalised (Platt, 1999).

    Targets are smoothed as Platt proposed, (N+ + 1) / (N+ + 2) and 1 / (N- + 2). Two classes
    share one curve.
    """

    def fit(self, logits: Floats, codes: Ints) -> Self:
        """Learn slope and intercept of each class's curve."""
        margins = log_odds(logits)
        classes = rest_columns(margins.shape[1])
        self.curves_ = np.array([_sigmoid_fit(margins[:, c], codes == c) for c in classes])
        return self

    def transform(self, logits: Floats) -> Floats:
        """Posteriors (n, k) for logits (n, k)."""
        margins = log_odds(logits)
        return from_each_against_rest(
            [
                expit(a * margins[:, c] + b)
                for c, (a, b) in zip(rest_columns(margins.shape[1]), self.curves_, strict=True)
            ]
        )


class IsotonicCalibrator(Calibrator):
    """A monotone step curve for each class against the rest, then normalised.

    Two classes share one curve (Zadrozny and Elkan, 2002).
    """

    def fit(self, logits: Floats, codes: Ints) -> Self:
        """Learn each class's curve."""
        margins = log_odds(logits)
        classes = rest_columns(margins.shape[1])
        self.curves_ = [
            IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(
                margins[:, c], (codes == c).astype(float)
            )
            for c in classes
        ]
        return self

    def transform(self, logits: Floats) -> Floats:
        """Posteriors (n, k) for logits (n, k)."""
        margins = log_odds(logits)
        return from_each_against_rest(
            [
                curve.predict(margins[:, c])
                for c, curve in zip(rest_columns(margins.shape[1]), self.curves_, strict=True)
            ]
        )


def resampled(
    calibrator: Any, logits: Floats, codes: Ints, n: int, rng: np.random.Generator
) -> Iterator[Any]:
    """Calibrators like one that is fitted, of resampled items; any object with fit will do."""
    one = type(calibrator)
    make = one.resampled if hasattr(one, "resampled") else Calibrator.resampled
    yield from make(calibrator, logits, codes, n, rng)


def resampled_rows(codes: Ints, rng: np.random.Generator) -> Ints:
    """Rows drawn with replacement, as many of each class as there are."""
    parts = [np.flatnonzero(codes == c) for c in np.unique(codes)]
    return np.concatenate([rng.choice(rows, len(rows)) for rows in parts])


def logits_of(scores: Floats, kind: str) -> Floats:
    """Logarithm of posteriors, or decision values as they are."""
    return np.log(np.clip(scores, POSTERIOR_FLOOR, None)) if kind == "posterior" else scores


def centred(logits: Floats) -> Floats:
    """Logits less their mean over the classes, which changes no posterior."""
    return np.asarray(logits - logits.mean(axis=1, keepdims=True))


def log_odds(logits: Floats) -> Floats:
    """Log-odds of each class against all others."""
    if logits.shape[1] == 2:
        gap = logits[:, 1] - logits[:, 0]
        return np.column_stack([-gap, gap])
    everything = logsumexp(logits, axis=1, keepdims=True)
    share = np.minimum(logits - everything, -1e-15)
    return np.asarray(share - np.log(-np.expm1(share)))


def _sigmoid_fit(margin: Floats, positive: Bools) -> Floats:
    n_pos, n_neg = int(positive.sum()), int((~positive).sum())
    target = np.where(positive, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))
    spread, centre = max(float(np.std(margin)), 1e-300), float(np.mean(margin))
    x = (margin - centre) / spread

    def loss(theta: Floats) -> tuple[float, Floats]:
        t = theta[0] * x + theta[1]
        residual = expit(t) - target
        value = np.logaddexp(0, t) - target * t
        return float(value.mean()), np.array([(residual * x).mean(), residual.mean()])

    options = {"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-9}
    start = np.array([1.0, 0.0])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    warn_unless_flat(loss(found)[1])
    slope = found[0] / spread
    return np.array([slope, found[1] - slope * centre])


def warn_unless_flat(slope: Floats) -> None:
    """Say so if the optimiser stopped short of the maximum likelihood."""
    if not np.abs(slope).max() < 1e-4:
        warnings.warn(
            "a calibrator did not reach its maximum likelihood: treat calibrated posteriors with "
            "care, or choose another calibrator.",
            ConvergenceWarning,
            stacklevel=6,
        )
