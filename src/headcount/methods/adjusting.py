"""Methods that undo the classifier's confusion: solve M p = q, M the classes' mean vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headcount._core.types import Floats
from headcount.exceptions import InputError, choose
from headcount.methods.matching import MatchingQuantifier, Parts
from headcount.methods.objectives import Inverse, LeastSquares, PulledWeights
from headcount.methods.representations import AboveFrequency, Labels, Posteriors, Representation


@dataclass(eq=False, repr=False, kw_only=True)
class PACC(MatchingQuantifier):
    """Probabilistic adjusted count, also known as BBSE-soft and GPAC.

    The bag's mean posterior q is a mixture of the classes' mean posteriors, the columns of M;
    p minimises |M p - q| over the simplex. Bella et al. (2010); Lipton, Wang and Smola (2018);
    the constrained solution after Bunse (2022). `Posteriors` with `LeastSquares` or `Inverse`.

    Parameters
    ----------
    solver : {'simplex', 'inverse'}
        'simplex' is the exact constrained least squares; 'inverse' the textbook
        M^-1 q, clipped to [0, 1] and normalised.
    weighting : {None, 'optimal'}
        As in `LeastSquares`.
    tau : float, default 0
        As in `LeastSquares`; it makes the method o-PACC (Bunse et al., 2022).
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> scores = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]]
    >>> pacc = PACC().fit_scores(scores, ["neg", "pos", "neg", "pos"])
    >>> pacc.predict_scores([[0.9, 0.1], [0.7, 0.3], [0.65, 0.35]]).round(2)
    array([0.9, 0.1])
    """

    solver: str = "simplex"
    weighting: str | None = None
    tau: float = 0.0

    def representation(self) -> Representation:
        """What is looked at."""
        return Posteriors()

    def match_parts(self) -> Parts:
        """Mean posteriors and least squares."""
        if choose("solver", self.solver, ["simplex", "inverse"]) == "simplex":
            return self.representation(), LeastSquares(self.weighting, self.tau)
        if self.weighting is not None or self.tau != 0:
            raise InputError("weighting and tau go with solver='simplex'.")
        return self.representation(), Inverse()

    @property
    def confusion_(self) -> Floats:
        """Matrix whose column c is the mean vector of the items of class c."""
        return np.asarray(self.matcher_.objective.classes_.means.T)

    @property
    def condition_(self) -> float:
        """Condition number of that matrix."""
        return float(self.matcher_.objective.condition_)


class ACC(PACC):
    """Adjusted count, also known as BBSE and GAC: PACC on predicted labels. Forman (2008).

    Parameters
    ----------
    classifier, solver, weighting, tau, calibrator, cv, refit, n_jobs, random_state
        As in `PACC`; with `tau` it is o-ACC.

    Examples
    --------
    >>> acc = ACC().fit_scores([0.1, 0.3, 0.6, 0.8, 0.7, 0.2], [0, 0, 0, 1, 1, 1])
    >>> acc.confusion_.round(2).tolist()
    [[0.67, 0.33], [0.33, 0.67]]
    >>> acc.predict_scores([0.9, 0.9, 0.1, 0.1]).round(2)
    array([0.5, 0.5])
    """

    def representation(self) -> Representation:
        """What is looked at."""
        return Labels()


BBSE = ACC
BBSESoft = PACC


@dataclass(eq=False, repr=False, kw_only=True)
class FM(MatchingQuantifier):
    """Friedman's method: adjusted count on 1[posterior of class k >= its training share].

    The threshold makes each equation as informative as it can be near the training prevalence.
    Friedman (2014). `AboveFrequency` with `LeastSquares`.

    Parameters
    ----------
    tau : float, default 0
        As in `LeastSquares`.
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> fm = FM().fit_scores([0.1, 0.3, 0.6, 0.8, 0.7, 0.2, 0.4, 0.1], [0, 0, 0, 1, 1, 1, 0, 0])
    >>> fm.predict_scores([0.9, 0.9, 0.1, 0.1]).round(3)
    array([0.625, 0.375])
    """

    tau: float = 0.0

    def match_parts(self) -> Parts:
        """Exceeded thresholds and least squares."""
        return AboveFrequency(), LeastSquares(tau=self.tau)


@dataclass(eq=False, repr=False, kw_only=True)
class RLLS(MatchingQuantifier):
    """Regularised learning under label shifts: weights w = p / p_train, pulled towards one.

    Minimises |C (w - 1) - (q - q_train)| + rho |w - 1| over w >= 0, C the joint distribution of
    score and class, rho from the deviation bound at level `delta` times `alpha`.
    Azizzadenesheli et al. (2019). `Posteriors` (or `Labels`) with `PulledWeights`.

    Parameters
    ----------
    alpha : float, default 0.01
        Strength of the regularisation.
    delta : float, default 0.05
        Level of the deviation bound.
    hard : bool, default False
        Whether to use predicted labels in place of posteriors.
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> scores = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]]
    >>> rlls = RLLS().fit_scores(scores, ["neg", "pos", "neg", "pos"])
    >>> rlls.predict_scores([[0.9, 0.1], [0.7, 0.3], [0.65, 0.35]]).round(2)
    array([0.9, 0.1])
    """

    alpha: float = 0.01
    delta: float = 0.05
    hard: bool = False

    def match_parts(self) -> Parts:
        """Mean posteriors or counts, and pulled weights."""
        looks = Labels() if self.hard else Posteriors()
        return looks, PulledWeights(self.alpha, self.delta)
