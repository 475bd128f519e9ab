"""Ways to the mixture weights that make a bag's items likely; each is a setting of SLD."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from headcount._core import validation as check
from headcount._core.types import Bools, Floats
from headcount.bags import Bags
from headcount.exceptions import InputError, choose
from headcount.inference.mixtures import maximise_likelihood
from headcount.kernels.simplex import roughness
from headcount.kernels.threads import over_ranges


@dataclass(eq=False, repr=False)
class Solver(BaseEstimator, ABC):
    """Base of the solvers.

    Parameters
    ----------
    tol : float
    max_iter : int
    """

    tol: float = 1e-9
    max_iter: int = 1000

    def check_params(self) -> None:
        """Refuse impossible settings."""
        check.at_least("tol", self.tol, 0)
        check.whole("max_iter", self.max_iter)

    @abstractmethod
    def maximise(
        self, likelihood: Floats, bags: Bags, start: Floats, extra: Floats, n_jobs: int | None
    ) -> tuple[Floats, Bools]:
        """Mixture weights of every bag, and whether each has converged.

        `extra` are the parameters of a Dirichlet prior, less one.
        """

    def _run(
        self, likelihood: Floats, bags: Bags, start: Floats, extra: Floats, *, em: bool, **more: Any
    ) -> tuple[Floats, Bools]:
        return maximise_likelihood(
            likelihood,
            bags,
            start,
            extra=extra,
            em=em,
            tol=self.tol,
            max_iter=self.max_iter,
            **more,
        )


class Exact(Solver):
    """Newton's method with a certificate of optimality; `tol` is on the slopes."""

    def maximise(
        self, likelihood: Floats, bags: Bags, start: Floats, extra: Floats, n_jobs: int | None
    ) -> tuple[Floats, Bools]:
        """Maximum likelihood, or maximum a posteriori."""
        return self._run(likelihood, bags, start, extra, em=False, n_jobs=n_jobs)


@dataclass(eq=False, repr=False)
class EM(Solver):
    """The historical iteration; it stops when the mean change falls below `tol`, after 11 steps.

    Parameters
    ----------
    tol : float, default 1e-4
        As is customary.
    max_iter : int, default 1000
    """

    tol: float = 1e-4

    def maximise(
        self, likelihood: Floats, bags: Bags, start: Floats, extra: Floats, n_jobs: int | None
    ) -> tuple[Floats, Bools]:
        """Where the iteration stops."""
        return self._run(likelihood, bags, start, extra, em=True, n_jobs=n_jobs)


@dataclass(eq=False, repr=False)
class SmoothedEM(Solver):
    """EM whose steps pull their prior to a polynomial in the class number.

    The regularisation of DortmundAI at LeQua 2022; for ordered classes it makes SLD o-SLD.

    Parameters
    ----------
    strength : float, default 1e-3
        Of the pull, up to 1.
    order : int, default 0
        Degree of the polynomial; 0 pulls to equal shares.
    tol : float, default 1e-9
    max_iter : int, default 20,000
    """

    strength: float = 1e-3
    order: int = 0
    max_iter: int = 20_000

    def check_params(self) -> None:
        """Refuse impossible settings."""
        super().check_params()
        check.at_least("strength", self.strength, 0, 1)
        check.whole("order", self.order, 0)

    def maximise(
        self, likelihood: Floats, bags: Bags, start: Floats, extra: Floats, n_jobs: int | None
    ) -> tuple[Floats, Bools]:
        """Where the iteration settles."""
        more = {"smoothing": self.strength, "order": self.order, "n_jobs": n_jobs}
        return self._run(likelihood, bags, start, extra, em=True, **more)


@dataclass(eq=False, repr=False)
class StableEM(Solver):
    """EM with the stabilisers of González et al. (2025).

    Parameters
    ----------
    damping : float, default 1
        Share of each step that is taken, above 0 and up to 1.
    temperature : float, default 1
        Responsibilities are raised to 1 / temperature in every step.
    tol : float, default 1e-9
    max_iter : int, default 20,000
    """

    damping: float = 1.0
    temperature: float = 1.0
    max_iter: int = 20_000

    def check_params(self) -> None:
        """Refuse impossible settings."""
        super().check_params()
        check.at_least("damping", self.damping, 1e-3, 1)
        check.at_least("temperature", self.temperature, 1e-2)

    def maximise(
        self, likelihood: Floats, bags: Bags, start: Floats, extra: Floats, n_jobs: int | None
    ) -> tuple[Floats, Bools]:
        """Where the iteration settles."""
        both = self.damping, self.temperature
        return self._run(likelihood, bags, start, extra, em=True, stabilisers=both, n_jobs=n_jobs)


@dataclass(eq=False, repr=False)
class SmoothExact(Solver):
    """The exact maximum of the mean log-likelihood less a penalty on rough shares: RML.

    Parameters
    ----------
    tau0, tau1 : float, default 0
        Halves of these times the squared first and second differences are taken off.
    tol, max_iter
        As in `Exact`.
    """

    tau0: float = 0.0
    tau1: float = 0.0

    def check_params(self) -> None:
        """Refuse impossible settings."""
        super().check_params()
        check.at_least("tau0", self.tau0, 0)
        check.at_least("tau1", self.tau1, 0)

    def maximise(
        self, likelihood: Floats, bags: Bags, start: Floats, extra: Floats, n_jobs: int | None
    ) -> tuple[Floats, Bools]:
        """Penalised maximum likelihood; it takes no prior beside the penalty."""
        from headcount.kernels.compiled.matching import regularised_likelihood

        if self.tau0 == 0 and self.tau1 == 0:
            return self._run(likelihood, bags, start, extra, em=False, n_jobs=n_jobs)
        if extra.any():
            raise InputError("a prior (alpha) does not go with tau0 and tau1: set alpha=1.")
        k = likelihood.shape[1]
        pull = roughness(k, self.tau0, self.tau1)
        out, converged = np.empty((len(bags), k)), np.zeros(len(bags), dtype=bool)
        common = likelihood, bags.indptr, bags.indices, pull, start, self.tol, self.max_iter
        over_ranges(
            lambda a, b: regularised_likelihood(*common, out, converged, a, b), len(bags), n_jobs
        )
        return out, converged


SOLVERS: dict[str, Solver] = {"exact": Exact(), "em": EM()}


def make_solver(spec: str | Solver) -> Solver:
    """Fresh solver from a name or another solver."""
    chosen = spec if isinstance(spec, Solver) else SOLVERS[choose("solver", spec, SOLVERS)]
    fresh: Solver = clone(chosen)
    return fresh
