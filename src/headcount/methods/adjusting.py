"""Methods that undo the classifier's confusion: solve M p = q, M the classes' mean features."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError, UnreliableWarning, choose
from headcount.kernels import simplex
from headcount.kernels.threads import over_ranges
from headcount.methods.base import ScoreQuantifier
from headcount.methods.counting import posterior_means
from headcount.scores.calibration import Calibrator

RIDGE = 1e-10  # pulls what the data leave open to the training prevalence


class PACC(ScoreQuantifier):
    """Probabilistic adjusted count, also known as BBSE-soft and GPAC.

    The bag's mean posterior q is a mixture of the classes' mean posteriors, the columns of M;
    p minimises |M p - q| over the simplex. Bella et al. (2010); Lipton, Wang and Smola (2018);
    the constrained solution after Bunse (2022).

    Parameters
    ----------
    solver : {'simplex', 'inverse'}
        'simplex' is the exact constrained least squares; 'inverse' the textbook
        M^-1 q, clipped to [0, 1] and normalised.
    weighting : {None, 'optimal'}
        'optimal' weighs the equations by the inverse covariance of their error, from the bag
        and from the labelled items, at a first estimate (two-step generalised moments).
    tau : float, default 0
        For ordered classes: adds tau / 2 times the squared second differences of p to the loss,
        which makes it o-PACC (Bunse et al., 2022).
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> scores = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]]
    >>> pacc = PACC().fit_scores(scores, ["neg", "pos", "neg", "pos"])
    >>> pacc.predict_scores([[0.9, 0.1], [0.7, 0.3], [0.65, 0.35]]).round(2)
    array([0.9, 0.1])
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        solver: str = "simplex",
        weighting: str | None = None,
        tau: float = 0.0,
        calibrator: str | Calibrator | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            classifier, calibrator=calibrator, cv=cv, n_jobs=n_jobs, random_state=random_state
        )
        self.solver = solver
        self.weighting = weighting
        self.tau = tau

    def _check_params(self) -> None:
        super()._check_params()
        choose("solver", self.solver, ["simplex", "inverse"])
        check_tau(self.tau)
        if self.weighting is not None:
            choose("weighting", self.weighting, ["optimal"])
        if self.solver == "inverse" and (self.weighting is not None or self.tau > 0):
            raise InputError("weighting and tau go with solver='simplex'.")

    def _items(self, scores: Floats) -> Floats:
        """Feature of each labelled item."""
        return scores

    def _bag_features(self, scores: Floats, bags: Bags) -> Floats:
        """Mean feature of each bag."""
        return posterior_means(scores, bags, self.n_jobs)

    def _learn(self, scores: Floats | None, codes: Ints | None, frequency: Floats) -> None:
        assert scores is not None and codes is not None
        k = len(frequency)
        self.frequency_ = frequency
        features = self._items(scores)
        self.confusion_ = class_means(features, codes, k)
        self.condition_ = float(np.linalg.cond(self.confusion_))
        if not self.condition_ < 1e6:
            warnings.warn(
                f"the classifier cannot tell some classes apart (condition number of the "
                f"confusion matrix {self.condition_:.1e}): shares of these classes are guesses "
                "towards the training prevalence. Use a better classifier or merge classes.",
                UnreliableWarning,
                stacklevel=4,
            )
        if self.weighting is not None:
            self._counts = np.bincount(codes, minlength=k)
            self._moments = (
                np.stack([features[codes == c].T @ features[codes == c] for c in range(k)])
                / self._counts[:, None, None]
            )

    def _aggregate(self, scores: Floats, bags: Bags) -> Floats:
        q = self._bag_features(scores, bags)
        if self.solver == "inverse":
            return self._inverse(q)
        first = regularised(self.confusion_, q, self.frequency_, self.tau)
        return first if self.weighting is None else self._second_step(first, q, bags.sizes)

    def _inverse(self, q: Floats) -> Floats:
        if np.linalg.matrix_rank(self.confusion_) < len(self.confusion_):
            warnings.warn(
                "the confusion matrix has no inverse: the unadjusted counts are returned. "
                "solver='simplex' does better here.",
                UnreliableWarning,
                stacklevel=4,
            )
            return simplex.clip_and_normalise(q)
        solved: Floats = np.linalg.solve(self.confusion_, q.T).T.astype(np.float64)
        return simplex.clip_and_normalise(solved)

    def _second_step(self, p: Floats, q: Floats, sizes: Ints) -> Floats:
        """Weigh the equations by the inverse covariance of q - M p at the first estimate.

        One equation is left out, because features sum to one.
        """
        k = len(self.confusion_)
        m, moments = self.confusion_[:-1], self._moments[:, :-1, :-1]
        within = moments - np.einsum("ik,jk->kij", m, m)
        out = np.empty_like(p)
        for s in range(0, len(p), 1024):  # memory: 1024 covariances at a time
            part = slice(s, s + 1024)
            mean = p[part] @ m.T
            mixed = np.einsum("sk,kij->sij", p[part], moments) - mean[:, :, None] * mean[:, None]
            labelled = np.einsum("sk,kij->sij", p[part] ** 2 / self._counts, within)
            noise = mixed / sizes[part, None, None] + labelled
            floor = 1e-9 * np.trace(noise, axis1=1, axis2=2) + 1e-15
            noise += floor[:, None, None] * np.eye(k - 1)
            weighed = np.linalg.solve(noise, np.broadcast_to(m, (len(noise), k - 1, k)))
            grams = m.T @ weighed
            scale = np.trace(grams, axis1=1, axis2=2)[:, None] / k
            linear = np.einsum("sik,si->sk", weighed, q[part, :-1])
            # scale (sum p)^2 is constant on the simplex and makes the matrix definite.
            linear += scale * (1 + RIDGE * self.frequency_)
            grams += scale[:, :, None] * (1 + RIDGE * np.eye(k))
            out[part] = simplex.quadratic(grams, linear)
        return out


class ACC(PACC):
    """Adjusted count, also known as BBSE and GAC: PACC on predicted labels. Forman (2008).

    Parameters
    ----------
    classifier, solver, weighting, tau, calibrator, cv, n_jobs, random_state
        As in `PACC`; with `tau` it is o-ACC.

    Examples
    --------
    >>> acc = ACC().fit_scores([0.1, 0.3, 0.6, 0.8, 0.7, 0.2], [0, 0, 0, 1, 1, 1])
    >>> acc.confusion_.round(2).tolist()
    [[0.67, 0.33], [0.33, 0.67]]
    >>> acc.predict_scores([0.9, 0.9, 0.1, 0.1]).round(2)
    array([0.5, 0.5])
    """

    _any_scores = True
    _hard = True

    def _items(self, scores: Floats) -> Floats:
        return np.asarray(np.eye(scores.shape[1])[scores.argmax(axis=1)])

    def _bag_features(self, scores: Floats, bags: Bags) -> Floats:
        return bags.shares(scores.argmax(axis=1), scores.shape[1], self.n_jobs)


BBSE = ACC
BBSESoft = PACC


class FM(PACC):
    """Friedman's method: adjusted count on 1[posterior of class k >= its training share].

    The threshold makes each equation as informative as it can be near the training prevalence.
    Friedman (2014).

    Parameters
    ----------
    classifier, tau, calibrator, cv, n_jobs, random_state
        As in `PACC`.

    Examples
    --------
    >>> fm = FM().fit_scores([0.1, 0.3, 0.6, 0.8, 0.7, 0.2, 0.4, 0.1], [0, 0, 0, 1, 1, 1, 0, 0])
    >>> fm.predict_scores([0.9, 0.9, 0.1, 0.1]).round(2)
    array([0.63, 0.37])
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        tau: float = 0.0,
        calibrator: str | Calibrator | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            classifier,
            tau=tau,
            calibrator=calibrator,
            cv=cv,
            n_jobs=n_jobs,
            random_state=random_state,
        )

    def _items(self, scores: Floats) -> Floats:
        return (scores >= self.frequency_).astype(np.float64)

    def _bag_features(self, scores: Floats, bags: Bags) -> Floats:
        return bags.means(self._items(scores), self.n_jobs)


class RLLS(ScoreQuantifier):
    """Regularised learning under label shifts: weights w = p / p_train, pulled towards one.

    Minimises |C (w - 1) - (q - q_train)| + rho |w - 1| over w >= 0, C the joint distribution of
    score and class, rho from the deviation bound at level `delta` times `alpha`.
    Azizzadenesheli et al. (2019).

    Parameters
    ----------
    alpha : float, default 0.01
        Strength of the regularisation.
    delta : float, default 0.05
        Level of the deviation bound.
    hard : bool, default False
        Whether to use predicted labels in place of posteriors.
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> scores = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]]
    >>> rlls = RLLS().fit_scores(scores, ["neg", "pos", "neg", "pos"])
    >>> rlls.predict_scores([[0.9, 0.1], [0.7, 0.3], [0.65, 0.35]]).round(2)
    array([0.9, 0.1])
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        alpha: float = 0.01,
        delta: float = 0.05,
        hard: bool = False,
        calibrator: str | Calibrator | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            classifier, calibrator=calibrator, cv=cv, n_jobs=n_jobs, random_state=random_state
        )
        self.alpha = alpha
        self.delta = delta
        self.hard = hard

    @property
    def _hard(self) -> bool:  # type: ignore[override]
        return bool(self.hard)

    @property
    def _any_scores(self) -> bool:  # type: ignore[override]
        return bool(self.hard)

    def _check_params(self) -> None:
        super()._check_params()
        check.at_least("alpha", self.alpha, 0)
        check.at_least("delta", self.delta, 1e-12, 1 - 1e-12)

    def _learn(self, scores: Floats | None, codes: Ints | None, frequency: Floats) -> None:
        assert scores is not None and codes is not None
        k, n = len(frequency), len(codes)
        features = np.eye(k)[scores.argmax(axis=1)] if self.hard else scores
        share = np.bincount(codes, minlength=k) / n
        self.joint_ = class_means(features, codes, k) * share
        self.frequency_ = frequency
        bound = 2 * np.log(2 * k / self.delta)
        self.rho_ = float(self.alpha * 3 * (bound / (3 * n) + np.sqrt(bound / n)))

    def _aggregate(self, scores: Floats, bags: Bags) -> Floats:
        from headcount.kernels.compiled.simplex import pulled_weights

        k = scores.shape[1]
        q = (
            bags.shares(scores.argmax(axis=1), k, self.n_jobs)
            if self.hard
            else posterior_means(scores, bags, self.n_jobs)
        )
        shift = q - self.joint_.sum(axis=1)
        weights = np.empty_like(q)
        over_ranges(
            lambda a, b: pulled_weights(self.joint_, shift, self.rho_, weights, a, b),
            len(bags),
            self.n_jobs,
        )
        return simplex.clip_and_normalise(weights * self.frequency_)


def class_means(features: Floats, codes: Ints, k: int) -> Floats:
    """Matrix whose column c is the mean feature of the items of class c."""
    return np.column_stack([features[codes == c].mean(axis=0) for c in range(k)])


def roughness(k: int, first: float = 0.0, second: float = 0.0) -> Floats:
    """Matrix R with p'Rp = first |first differences|^2 + second |second differences|^2."""
    d1 = np.diff(np.eye(k), axis=0)
    d2 = np.diff(np.eye(k), n=2, axis=0)
    return np.asarray(first * d1.T @ d1 + second * d2.T @ d2)


def check_tau(tau: float) -> None:
    """Refuse a negative strength of smoothing."""
    check.at_least("tau", tau, 0)


def regularised(design: Floats, targets: Floats, centre: Floats, tau: float = 0.0) -> Floats:
    """Simplex least squares in which what is left open goes to `centre`."""
    k = design.shape[1]
    pull = np.sqrt(RIDGE * (design**2).sum() / k)
    smooth = np.sqrt(tau / 2) * np.diff(np.eye(k), n=2, axis=0)
    stacked = np.vstack([design, pull * np.eye(k), smooth])
    n = len(targets)
    goals = np.hstack([targets, np.broadcast_to(pull * centre, (n, k)), np.zeros((n, len(smooth)))])
    return simplex.least_squares(stacked, goals)
