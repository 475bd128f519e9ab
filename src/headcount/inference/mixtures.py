"""Maximum likelihood of mixture weights: the shares that make a bag's items most likely."""

from __future__ import annotations

import numpy as np

from headcount._core.types import Bools, Floats
from headcount.bags import Bags
from headcount.kernels.threads import over_ranges


def maximise_likelihood(
    likelihood: Floats,
    bags: Bags,
    start: Floats,
    *,
    extra: Floats,
    em: bool,
    tol: float,
    max_iter: int,
    smoothing: float = 0.0,
    order: int = 0,
    stabilisers: tuple[float, float] | None = None,
    n_jobs: int | None = None,
) -> tuple[Floats, Bools]:
    """Mixture weights of every bag by the kernel that fits, and whether each has converged."""
    from headcount.kernels.compiled import em as steps
    from headcount.kernels.compiled import likelihood as kernels

    k = likelihood.shape[1]
    out, converged = np.empty((len(bags), k)), np.zeros(len(bags), dtype=bool)
    common = (likelihood, bags.indptr, bags.indices)

    def work(a: int, b: int) -> None:
        if stabilisers is not None:
            steps.em_stable(
                *common, start, extra, tol, 11, max_iter, *stabilisers, out, converged, a, b
            )
        elif em and k == 2 and smoothing == 0:
            steps.em_two(*common, start, extra, tol, 11, max_iter, out, converged, a, b)
        elif em:
            hat = _polynomial_hat(k, order)
            steps.em(*common, start, extra, tol, 11, max_iter, hat, smoothing, out, converged, a, b)
        elif k == 2:
            kernels.maximise_two(*common, start, extra, tol, max_iter, out, converged, a, b)
        else:
            kernels.maximise(*common, start, extra, tol, max_iter, out, converged, a, b)

    over_ranges(work, len(bags), n_jobs)
    return out, converged


def _polynomial_hat(k: int, order: int) -> Floats:
    """Matrix that fits a polynomial of degree `order` to k numbers."""
    basis = np.vander(np.linspace(-1, 1, k), min(order, k - 1) + 1)
    q = np.linalg.qr(basis)[0]
    return np.ascontiguousarray(q @ q.T)
