"""Methods that maximise the likelihood of the bag as a mixture of classes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError, UnreliableWarning, choose
from headcount.inference.mixtures import maximise_likelihood
from headcount.kernels.threads import over_ranges
from headcount.methods.adjusting import roughness
from headcount.methods.base import ScoreQuantifier, warn_unconverged
from headcount.scores.calibration import FLOOR, Calibrator


class SLD(ScoreQuantifier):
    """Maximum likelihood of the prevalences, also known as EMQ and MLLS.

    The likelihood of an item under class k is its posterior over the training prevalence, so p
    maximises sum_i log sum_k p_k posterior_ik / prior_k over the simplex, a concave problem.
    Saerens, Latinne and Decaestecker (2002); with calibration, Alexandari et al. (2020).

    Parameters
    ----------
    solver : {'exact', 'em'}
        'exact' is Newton's method with a certificate of optimality; 'em' the historical
        iteration, which stops when the mean change falls below `tol` after eleven steps.
    tol : float, optional
        1e-9 on the slopes for 'exact', 1e-4 on the change for 'em', as is customary.
    max_iter : int, default 1000
    alpha : float or array, default 1
        Parameters of a Dirichlet prior; above 1 they give the maximum a posteriori.
    smoothing : float, default 0
        Strength, up to 1, with which each step of EM pulls its prior to a polynomial in the
        class number, the regularisation of DortmundAI at LeQua 2022; implies EM.
    smoothing_order : int, default 0
        Degree of that polynomial; 0 pulls to equal shares. For ordered classes this is o-SLD.
    damping : float, default 1
        Share of each step of EM that is taken, above 0 and up to 1; below 1 implies EM.
    temperature : float, default 1
        Responsibilities are raised to 1 / temperature in every step; other than 1 implies EM.
        Damping, temperature and `alpha` are the stabilisers of González et al. (2025).
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`. With a calibrator, the prior is the mean calibrated posterior.

    Examples
    --------
    >>> scores = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]]
    >>> sld = SLD().fit_scores(scores, ["neg", "pos", "neg", "pos"])
    >>> sld.predict_scores([[0.9, 0.1], [0.7, 0.3], [0.1, 0.9]]).round(2)
    array([0.63, 0.37])
    """

    _learns_from_scores = False

    def __init__(
        self,
        classifier: Any = None,
        *,
        solver: str = "exact",
        tol: float | None = None,
        max_iter: int = 1000,
        alpha: float | ArrayLike = 1.0,
        smoothing: float = 0.0,
        smoothing_order: int = 0,
        damping: float = 1.0,
        temperature: float = 1.0,
        calibrator: str | Calibrator | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            classifier, calibrator=calibrator, cv=cv, n_jobs=n_jobs, random_state=random_state
        )
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.alpha = alpha
        self.smoothing = smoothing
        self.smoothing_order = smoothing_order
        self.damping = damping
        self.temperature = temperature

    def _check_params(self) -> None:
        super()._check_params()
        choose("solver", self.solver, ["exact", "em"])
        check.at_least("alpha", self.alpha, 1, many=True)
        check.at_least("smoothing", self.smoothing, 0, 1)
        check.whole("smoothing_order", self.smoothing_order, 0)
        check.at_least("damping", self.damping, 1e-3, 1)
        check.at_least("temperature", self.temperature, 1e-2)
        check.whole("max_iter", self.max_iter)
        if self.smoothing > 0 and self._stabilised():
            raise InputError("smoothing does not go with damping or temperature.")
        if self.tol is not None:
            check.at_least("tol", self.tol, 0)

    def _learn(
        self,
        scores: Floats | None,
        codes: Ints | None,  # noqa: ARG002 - part of the contract
        frequency: Floats,
    ) -> None:
        self.prior_ = frequency
        if np.ndim(self.alpha) and np.shape(self.alpha) != frequency.shape:
            raise InputError(
                f"alpha has {np.size(self.alpha)} values for {len(frequency)} classes."
            )
        if scores is None:
            return
        mean = np.clip(scores, FLOOR, 1.0).mean(axis=0)
        if self.calibrator_ is not None:
            self.prior_ = mean / mean.sum()
        elif np.abs(mean - frequency).max() > 0.05 + 1.5 / np.sqrt(len(scores)):
            warnings.warn(
                "the posteriors do not agree with the class frequencies "
                f"(mean {np.round(mean, 3).tolist()[:6]}, frequencies "
                f"{np.round(frequency, 3).tolist()[:6]}): was the classifier trained on other "
                "shares, or with class weights? SLD will be biased; calibrator='bcts' repairs it.",
                UnreliableWarning,
                stacklevel=4,
            )

    def _aggregate(self, scores: Floats, bags: Bags) -> Floats:
        likelihood = np.clip(scores, FLOOR, 1.0) / self.prior_
        k = scores.shape[1]
        extra = np.broadcast_to(np.asarray(self.alpha, dtype=float) - 1.0, (k,)).copy()
        loose = self.solver == "em" or self.smoothing > 0 or self._stabilised()
        tol = self.tol if self.tol is not None else (1e-4 if self.solver == "em" else 1e-9)
        estimates, converged = maximise_likelihood(
            likelihood,
            bags,
            self.prior_,
            extra=extra,
            em=loose,
            tol=tol,
            max_iter=self.max_iter if self.solver == "em" or not loose else 20 * self.max_iter,
            smoothing=self.smoothing,
            order=self.smoothing_order,
            stabilisers=(self.damping, self.temperature) if self._stabilised() else None,
            n_jobs=self.n_jobs,
        )
        warn_unconverged(
            converged, "the likelihood", f"Raise max_iter={self.max_iter} or tol={tol:g}."
        )
        return estimates

    def _stabilised(self) -> bool:
        return self.damping != 1 or self.temperature != 1


EMQ = SLD
MLLS = SLD


class RML(SLD):
    """Regularised maximum likelihood: smooth prevalences over ordered or similar classes.

    Maximises the mean log-likelihood minus tau0 / 2 times the squared first differences and
    tau1 / 2 times the squared second differences of p, exactly. The system of Lamarr and Dortmund
    at LeQua 2024.

    Parameters
    ----------
    tau0, tau1 : float, default 0
        Strengths for first and second differences; the authors searched 0, 1e-5 and 1e-3.
    tol : float, default 1e-9
    max_iter : int, default 1000
    classifier, calibrator, cv, n_jobs, random_state
        As in `SLD`.

    Examples
    --------
    >>> scores = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]]
    >>> rml = RML(tau0=0.1).fit_scores(scores, ["neg", "pos", "neg", "pos"])
    >>> rml.predict_scores([[0.9, 0.1], [0.7, 0.3], [0.1, 0.9]]).round(2)
    array([0.61, 0.39])
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        tau0: float = 0.0,
        tau1: float = 0.0,
        tol: float | None = None,
        max_iter: int = 1000,
        calibrator: str | Calibrator | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            classifier,
            tol=tol,
            max_iter=max_iter,
            calibrator=calibrator,
            cv=cv,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.tau0 = tau0
        self.tau1 = tau1

    def _check_params(self) -> None:
        super()._check_params()
        check.at_least("tau0", self.tau0, 0)
        check.at_least("tau1", self.tau1, 0)

    def _aggregate(self, scores: Floats, bags: Bags) -> Floats:
        from headcount.kernels.compiled.matching import regularised_likelihood

        if self.tau0 == 0 and self.tau1 == 0:
            return super()._aggregate(scores, bags)
        k = scores.shape[1]
        likelihood = np.clip(scores, FLOOR, 1.0) / self.prior_
        pull = roughness(k, self.tau0, self.tau1)
        tol = 1e-9 if self.tol is None else self.tol
        out, converged = np.empty((len(bags), k)), np.zeros(len(bags), dtype=bool)
        over_ranges(
            lambda a, b: regularised_likelihood(
                likelihood,
                bags.indptr,
                bags.indices,
                pull,
                self.prior_,
                tol,
                self.max_iter,
                out,
                converged,
                a,
                b,
            ),
            len(bags),
            self.n_jobs,
        )
        warn_unconverged(
            converged, "the likelihood", f"Raise max_iter={self.max_iter} or tol={tol:g}."
        )
        return out
