"""A calibrator that bends each class's scores as far as the labelled items ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Self

import numpy as np
from scipy.linalg import cho_solve
from scipy.special import log_softmax
from sklearn.model_selection import StratifiedKFold

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.exceptions import InputError
from headcount.kernels.linear import factored
from headcount.scores.calibration import Calibrator, centred, log_odds, warn_unless_flat

MAX_FEATURE_NUMBERS = 10_000_000  # 80 MB; of more items than fit, some are left out
ONE_FOLD_NUMBERS = 2_000_000  # of features, from which on one fold chooses the strength
MAX_LOG_ODDS = 20.0  # a posterior within 2e-9 of 0 or 1; what lies beyond counts as this
MIN_KEPT_ITEMS = 50  # of each class, when items are left out
WEAK = 1e-3  # ridge on scale and bias, which data nearly always settle


class CurveCalibrator(Calibrator):
    """Scale and shift the logits, and add a curve of each class's own log-odds, by penalised ML.

    Posteriors are softmax(a z_k + b_k + g_k(margin_k)), with g_k linear between knots. The penalty
    pulls all g_k to zero, which leaves BCTS; how hard is chosen by the likelihood of held-out
    items. Meant for likelihood methods on scores that no straight line calibrates.

    Parameters
    ----------
    n_knots : int, default 8
        Of each curve, at evenly spaced quantiles of the margins, class and rest weighing the same.
    strength : float or several, default (0.1, 1, 10, 100, 1000)
        Of the penalty; with several, three folds choose.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> codes = rng.integers(0, 2, 2000)
    >>> x = rng.normal(size=2000) * np.where(codes, 2, 1)  # no straight line tells them apart
    >>> logits = np.column_stack([np.zeros(2000), x])
    >>> curves = CurveCalibrator().fit(logits, codes)
    >>> curves.transform(np.array([[0.0, -4.0], [0.0, 0.0], [0.0, 4.0]]))[:, 1].round(1)
    array([1. , 0.3, 1. ])
    """

    def __init__(
        self,
        *,
        n_knots: int = 8,
        strength: float | Sequence[float] = (0.1, 1.0, 10.0, 100.0, 1000.0),
    ):
        self.n_knots = n_knots
        self.strength = strength

    def fit(self, logits: Floats, codes: Ints) -> Self:
        """Learn scale, biases and curves from logits (n, k) and class numbers (n,)."""
        check.whole("n_knots", self.n_knots, 0)
        logits, codes = self._thinned(logits, codes)
        # Posteriors stay as they are; decision values may be of any size.
        spread = float(np.quantile(np.abs(centred(logits)), 0.95))
        self.scale_ = 1.0 if 0.05 <= spread <= 30.0 else max(spread, 1e-300) / 5
        logits = logits / self.scale_
        self._place(logits, codes)
        z, features = centred(logits), self._features(logits)
        strengths = np.sort(np.atleast_1d(np.asarray(self.strength, dtype=float)))[::-1]
        if not len(strengths) or not (np.isfinite(strengths) & (strengths > 0)).all():
            raise InputError(f"strength must be above 0, got {self.strength!r}.")
        self.strength_ = float(strengths[0])
        if len(strengths) > 1 and np.bincount(codes).min() >= 3:
            self.strength_ = self._chosen(z, features, codes, strengths)
        problem = _Problem(z, features, codes, self.strength_)
        self.theta_ = problem.solve(problem.start())
        warn_unless_flat(problem.gradient(self.theta_) / len(codes))
        return self

    def resampled(
        self, logits: Floats, codes: Ints, n: int, rng: np.random.Generator
    ) -> Iterator[Self]:
        """Calibrators of resampled items: one Newton step from the one of all items."""
        logits, codes = self._thinned(logits, codes)
        logits = logits / self.scale_
        problem = _Problem(centred(logits), self._features(logits), codes, self.strength_)
        for theta in problem.resampled(self.theta_, n, rng):
            other = copy(self)
            other.theta_ = theta
            yield other

    def transform(self, logits: Floats) -> Floats:
        """Posteriors (n, k) for logits (n, k)."""
        from headcount.kernels.compiled.curves import bent_posteriors

        k = logits.shape[1]
        # Between knots the curves are straight: their heights at the knots say all.
        corners = np.column_stack(
            [np.full(k, -MAX_LOG_ODDS), self.knots_, np.full(k, MAX_LOG_ODDS)]
        )
        heights = _curves(self._bent(corners.T[:, :, None]), self.theta_)
        out = np.empty(logits.shape)
        contiguous = np.ascontiguousarray(logits / self.scale_, dtype=np.float64)
        bent_posteriors(contiguous, self.theta_[0], corners, np.ascontiguousarray(heights.T), out)
        return out

    def _thinned(self, logits: Floats, codes: Ints) -> tuple[Floats, Ints]:
        """Some items of every class where there are too many in all."""
        most = MAX_FEATURE_NUMBERS // (logits.shape[1] * (self.n_knots + 2))
        if len(codes) <= most:
            return logits, codes
        rng = np.random.default_rng(0)
        kept = []
        for c in np.unique(codes):
            rows = rng.permutation(np.flatnonzero(codes == c))
            kept.append(rows[: max(MIN_KEPT_ITEMS, len(rows) * most // len(codes))])
        chosen = np.concatenate(kept)
        return logits[chosen], codes[chosen]

    def _place(self, logits: Floats, codes: Ints) -> None:
        """Set the knots, and the scale of the features."""
        margins = np.clip(log_odds(logits), -MAX_LOG_ODDS, MAX_LOG_ODDS)
        k = margins.shape[1]
        at = np.arange(1, self.n_knots + 1) / (self.n_knots + 1)
        even = np.linspace(0.005, 0.995, 200)
        self.knots_ = np.empty((k, self.n_knots))
        for c in range(k):
            sides = [margins[codes == c, c], margins[codes != c, c]]
            both = np.concatenate([np.quantile(s, even) for s in sides if len(s)])
            self.knots_[c] = np.quantile(both, at)
        self.centre_, self.unit_ = np.zeros(()), np.ones(())
        features = self._features(logits)
        self.centre_ = features.mean(axis=0)
        self.unit_ = np.maximum(features.std(axis=0), 1e-9)
        self.unit_[:, -1], self.centre_[:, -1] = 1.0, 0.0

    def _features(self, logits: Floats) -> Floats:
        """Margins, how far they lie above each knot, and a one: shape (n, k, knots + 2)."""
        return self._bent(np.clip(log_odds(logits), -MAX_LOG_ODDS, MAX_LOG_ODDS)[:, :, None])

    def _bent(self, margins: Floats) -> Floats:
        out = np.empty((*margins.shape[:2], self.n_knots + 2))
        out[:, :, :1] = margins
        np.maximum(margins - self.knots_, 0.0, out=out[:, :, 1:-1])
        out[:, :, -1] = 1.0
        out -= self.centre_
        out /= self.unit_
        return out

    def _chosen(self, z: Floats, features: Floats, codes: Ints, strengths: Floats) -> float:
        """Strength under which held-out items are likeliest."""
        loss = np.zeros(len(strengths))
        folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(z, codes))
        for train, test in folds[: 1 if features.size > ONE_FOLD_NUMBERS else 3]:
            theta = None
            for i, strength in enumerate(strengths):
                problem = _Problem(z[train], features[train], codes[train], strength)
                theta = problem.solve(problem.start() if theta is None else theta, 0.1)
                logp = _log_posteriors(z[test], features[test], theta)
                loss[i] -= logp[np.arange(len(test)), codes[test]].sum()
        return float(strengths[int(np.argmin(loss))])


class _Problem:
    """Penalised log-likelihood of one scale, and of weights of the features of each class."""

    def __init__(self, z: Floats, features: Floats, codes: Ints, strength: float):
        self.z, self.features, self.codes = z, features, codes
        n, k, b = features.shape
        self.own = np.zeros((n, k))
        self.own[np.arange(n), codes] = 1.0
        self.ridge = np.full(1 + k * b, strength)
        self.ridge[0] = WEAK
        self.ridge[1:].reshape(k, b)[:, -1] = WEAK
        self.centre = self.start()

    def start(self) -> Floats:
        """Scores as they are."""
        theta = np.zeros(1 + self.features.shape[1] * self.features.shape[2])
        theta[0] = 1.0
        return theta

    def value(self, theta: Floats) -> tuple[float, Floats]:
        """Loss, and the logarithms of the posteriors."""
        logp = _log_posteriors(self.z, self.features, theta)
        away = theta - self.centre
        loss = -(logp * self.own).sum() + 0.5 * (self.ridge * away) @ away
        return float(loss), logp

    def gradient(
        self, theta: Floats, logp: Floats | None = None, weight: Floats | None = None
    ) -> Floats:
        """Slopes of the loss; items may weigh."""
        logp = self.value(theta)[1] if logp is None else logp
        residual = np.exp(logp) - self.own
        if weight is not None:
            residual *= weight[:, None]
        by_class = np.einsum("nk,nkb->kb", residual, self.features, optimize=True)
        slope = np.concatenate([[(residual * self.z).sum()], by_class.ravel()])
        return np.asarray(slope + self.ridge * (theta - self.centre))

    def curvature(self, logp: Floats) -> Floats:
        """Second derivatives of the loss."""
        n, k, b = self.features.shape
        p = np.exp(logp)
        shares = np.empty((n, 1 + k * b))
        np.multiply(p[:, :, None], self.features, out=shares[:, 1:].reshape(n, k, b))
        shares[:, 0] = (p * self.z).sum(axis=1)
        out = -(shares.T @ shares)
        weighted = shares[:, 1:].reshape(n, k, b)
        for c in range(k):
            mine = slice(1 + c * b, 1 + (c + 1) * b)
            out[mine, mine] += weighted[:, c].T @ self.features[:, c]
            cross = self.z[:, c] @ weighted[:, c]
            out[0, mine] += cross
            out[mine, 0] += cross
        out[0, 0] += (p * self.z**2).sum()
        out[np.diag_indices_from(out)] += self.ridge
        return out

    def solve(self, theta: Floats, enough: float = 1e-6) -> Floats:
        """Minimum by Newton's method, until less than `enough` is left to gain."""
        loss, logp = self.value(theta)
        for _ in range(50):
            slope = self.gradient(theta, logp)
            step = cho_solve(factored(self.curvature(logp)), slope)
            gain = float(slope @ step)
            if gain < enough:
                break
            size = 1.0
            for _ in range(30):
                trial = theta - size * step
                new, new_logp = self.value(trial)
                if new <= loss - 1e-4 * size * gain:
                    break
                size *= 0.5
            else:
                break
            theta, loss, logp = trial, new, new_logp
        return theta

    def resampled(self, theta: Floats, n: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Minima for resampled items, each class keeping its number, by one step.

        Every second one mirrors the one before: the mean of an even number of them is the minimum
        itself, and answers averaged over them do not wander with the resampling.
        """
        logp = self.value(theta)[1]
        factor = factored(self.curvature(logp))
        counts = np.bincount(self.codes)
        step = np.zeros_like(theta)
        for number in range(n):
            if number % 2:
                yield theta + step
                continue
            weight = np.empty(len(self.codes))
            for c, count in enumerate(counts):
                if count:
                    weight[self.codes == c] = rng.multinomial(count, np.full(count, 1 / count))
            step = cho_solve(factor, self.gradient(theta, logp, weight))
            yield theta - step


def _log_posteriors(z: Floats, features: Floats, theta: Floats) -> Floats:
    return np.asarray(log_softmax(theta[0] * z + _curves(features, theta), axis=1))


def _curves(features: Floats, theta: Floats) -> Floats:
    _, k, b = features.shape
    return np.asarray(np.einsum("nkb,kb->nk", features, theta[1:].reshape(k, b), optimize=True))
