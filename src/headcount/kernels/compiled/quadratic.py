"""Small non-negative quadratics by an active set."""

from __future__ import annotations

import numpy as np
from numba import njit

from headcount._core.types import Floats, Ints


@njit(cache=True, nogil=True)
def solve_free(
    hessian: Floats, target: Floats, free: Ints, n_free: int, factor: Floats, x: Floats
) -> None:
    """Solve hessian[free, free] x = target[free] by Cholesky with a floor on the pivots."""
    floor = 0.0
    for a in range(n_free):
        floor = max(floor, hessian[free[a], free[a]])
    floor *= 1e-14
    for a in range(n_free):
        for b in range(a + 1):
            v = hessian[free[a], free[b]]
            for c in range(b):
                v -= factor[a, c] * factor[b, c]
            if a == b:
                factor[a, a] = np.sqrt(max(v, floor))
            else:
                factor[a, b] = v / factor[b, b]
    for a in range(n_free):
        v = target[free[a]]
        for c in range(a):
            v -= factor[a, c] * x[c]
        x[a] = v / factor[a, a]
    for a in range(n_free - 1, -1, -1):
        v = x[a]
        for c in range(a + 1, n_free):
            v -= factor[c, a] * x[c]
        x[a] = v / factor[a, a]


@njit(cache=True, nogil=True)
def nonnegative_quadratic(hessian: Floats, target: Floats, y: Floats, max_iter: int) -> None:
    """Minimise y'Hy/2 - target'y over y >= 0 in place, from the feasible point y (active set)."""
    n = len(target)
    free = np.empty(n, dtype=np.int64)
    is_free = np.empty(n, dtype=np.bool_)
    factor, x = np.empty((n, n)), np.empty(n)
    for k in range(n):
        is_free[k] = y[k] > 0.0
    for _ in range(max_iter):
        n_free = 0
        for k in range(n):
            if is_free[k]:
                free[n_free] = k
                n_free += 1
        if n_free > 0:
            solve_free(hessian, target, free, n_free, factor, x)
        step, blocking = 1.0, -1
        for a in range(n_free):
            k = free[a]
            if x[a] <= 0.0:
                ratio = y[k] / (y[k] - x[a]) if y[k] > 0.0 else 0.0
                if ratio < step:
                    step, blocking = ratio, k
        for a in range(n_free):
            k = free[a]
            y[k] += step * (x[a] - y[k])
        if blocking >= 0:
            y[blocking] = 0.0
            is_free[blocking] = False
            continue
        worst, enter = 1e-12, -1
        for k in range(n):
            if not is_free[k]:
                slope = target[k]
                for b in range(n):
                    slope -= hessian[k, b] * y[b]
                if slope > worst:
                    worst, enter = slope, k
        if enter < 0:
            return
        is_free[enter] = True


@njit(cache=True, nogil=True)
def nonnegative_rows(hessian: Floats, targets: Floats, out: Floats) -> None:
    """Solve a non-negative quadratic for every row of `targets`, from the rows of `out`."""
    for s in range(len(targets)):
        nonnegative_quadratic(hessian, targets[s], out[s], 10 * len(hessian))
