"""Methods that maximise the likelihood of the bag as a mixture of classes."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headcount._core import validation as check
from headcount._core.types import Floats
from headcount.bags import Bags
from headcount.exceptions import InputError, UnreliableWarning
from headcount.methods.base import Tags, warn_unconverged
from headcount.methods.scored import ScoreQuantifier
from headcount.methods.solvers import SmoothExact, Solver, make_solver
from headcount.scores.calibration import POSTERIOR_FLOOR
from headcount.scores.scorer import Held


class LikelihoodQuantifier(ScoreQuantifier):
    """Base of the methods that say how likely an item's scores are under each class."""

    prior_: Floats  # where the search for the shares starts

    @abstractmethod
    def likelihoods(self, scores: Floats) -> Floats:
        """Likelihood of every item under every class; only ratios within an item matter."""

    def solver_of(self) -> Solver:
        """How the likelihood is maximised."""
        return make_solver("exact")

    def prior_counts(self, n_classes: int) -> Floats:
        """Parameters of a Dirichlet prior, less one."""
        return np.zeros(n_classes)

    def aggregate(self, scores: Floats, bags: Bags) -> Floats:
        """Shares under which the bag's items are most likely."""
        solver = self.solver_of()
        estimates, converged = solver.maximise(
            self.likelihoods(scores),
            bags,
            self.prior_,
            self.prior_counts(scores.shape[1]),
            self.n_jobs,
        )
        hint = f"Raise max_iter={solver.max_iter} or tol={solver.tol:g} of the solver."
        warn_unconverged(converged, "the likelihood", hint)
        return estimates


@dataclass(eq=False, repr=False, kw_only=True)
class SLD(LikelihoodQuantifier):
    """Maximum likelihood of the prevalences, also known as EMQ and MLLS.

    The likelihood of an item under class k is its posterior over the training prevalence, so p
    maximises sum_i log sum_k p_k posterior_ik / prior_k over the simplex, a concave problem.
    Saerens, Latinne and Decaestecker (2002); with calibration, Alexandari et al. (2020).

    Parameters
    ----------
    solver : {'exact', 'em'} or solver
        'exact' is Newton's method with a certificate of optimality, 'em' the historical
        iteration; `headcount.methods.solvers` has both with their settings, and `SmoothedEM` and
        `StableEM`.
    alpha : float or array, default 1
        Parameters of a Dirichlet prior; above 1 they give the maximum a posteriori.
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`. With a calibrator, the prior is the mean calibrated posterior.
        Without one nothing is learnt from held-out scores, and it is a classifier of all labelled
        items that scores new ones.

    Examples
    --------
    >>> scores = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]]
    >>> sld = SLD().fit_scores(scores, ["neg", "pos", "neg", "pos"])
    >>> sld.predict_scores([[0.9, 0.1], [0.7, 0.3], [0.1, 0.9]]).round(2)
    array([0.63, 0.37])
    """

    solver: str | Solver = "exact"
    alpha: float | ArrayLike = 1.0

    def method_tags(self) -> Tags:
        """Learns from held-out scores only if it calibrates."""
        return Tags(held_out=False, joins_folds=True)

    def check_params(self) -> None:
        """Refuse impossible settings."""
        super().check_params()
        self.solver_of().check_params()
        check.at_least("alpha", self.alpha, 1, many=True)

    def solver_of(self) -> Solver:
        """How the likelihood is maximised."""
        return make_solver(self.solver)

    def prior_counts(self, n_classes: int) -> Floats:
        """Parameters of the Dirichlet prior, less one."""
        return np.broadcast_to(np.asarray(self.alpha, dtype=float) - 1.0, (n_classes,)).copy()

    def learn(self, held: Held) -> None:
        """Settle the prior; say so where posteriors and class frequencies disagree."""
        frequency = held.frequency
        self.prior_ = frequency
        if np.ndim(self.alpha) and np.shape(self.alpha) != frequency.shape:
            raise InputError(
                f"alpha has {np.size(self.alpha)} values for {len(frequency)} classes."
            )
        if not len(held.scores):
            return
        mean = np.clip(held.scores, POSTERIOR_FLOOR, 1.0).mean(axis=0)
        if held.calibrated:
            self.prior_ = mean / mean.sum()
        elif np.abs(mean - frequency).max() > 0.05 + 1.5 / np.sqrt(len(held.scores)):
            warnings.warn(
                "the posteriors do not agree with the class frequencies "
                f"(mean {np.round(mean, 3).tolist()[:6]}, frequencies "
                f"{np.round(frequency, 3).tolist()[:6]}): was the classifier trained on other "
                "shares, or with class weights? SLD will be biased; calibrator='bcts' repairs it.",
                UnreliableWarning,
                stacklevel=4,
            )

    def likelihoods(self, scores: Floats) -> Floats:
        """Posteriors over the prior."""
        return np.asarray(np.clip(scores, POSTERIOR_FLOOR, 1.0) / self.prior_)


EMQ = SLD
MLLS = SLD


@dataclass(eq=False, repr=False, kw_only=True)
class RML(SLD):
    """Regularised maximum likelihood: smooth prevalences over ordered or similar classes.

    Maximises the mean log-likelihood minus tau0 / 2 times the squared first differences and
    tau1 / 2 times the squared second differences of p, exactly. The system of Lamarr and Dortmund
    at LeQua 2024: SLD with the solver `SmoothExact`.

    Parameters
    ----------
    tau0, tau1 : float, default 0
        Strengths for first and second differences; the authors searched 0, 1e-5 and 1e-3.
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `SLD`; `solver` is not used.

    Examples
    --------
    >>> scores = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]]
    >>> rml = RML(tau0=0.1).fit_scores(scores, ["neg", "pos", "neg", "pos"])
    >>> rml.predict_scores([[0.9, 0.1], [0.7, 0.3], [0.1, 0.9]]).round(2)
    array([0.61, 0.39])
    """

    tau0: float = 0.0
    tau1: float = 0.0

    def solver_of(self) -> Solver:
        """The exact maximum with the penalty."""
        return SmoothExact(tau0=self.tau0, tau1=self.tau1)
