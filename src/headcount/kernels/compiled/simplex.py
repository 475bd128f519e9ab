"""Quadratics on the simplex, many at once: minimise p'Gp/2 - b'p over p >= 0, sum p = 1."""

from __future__ import annotations

import numpy as np
from numba import njit

from headcount._core.types import Bools, Floats
from headcount.kernels.compiled.quadratic import nonnegative_quadratic, solve_free


@njit(cache=True, nogil=True)
def complementary_row(centre: Floats, spread: Floats, out: Floats) -> bool:
    """Find p = centre + spread mu with p, mu >= 0 and p mu = 0; False if it is not found.

    `centre` is the minimum under the sum constraint alone and `spread` the inverse of G on the
    plane of sum zero. All wrong signs are swapped at once while that helps, then one at a time,
    which must end (block principal pivoting, Judice and Pires 1994).
    """
    n = len(centre)
    active = np.zeros(n, dtype=np.bool_)
    which = np.empty(n, dtype=np.int64)
    factor, mu, negated = np.empty((n, n)), np.empty(n), -centre
    p, dual = np.empty(n), np.empty(n)
    best, patience, done = n + 1, 3, False
    for _ in range(40 * n):
        n_active = 0
        for k in range(n):
            if active[k]:
                which[n_active] = k
                n_active += 1
        if n_active == n:
            break
        if n_active > 0:
            solve_free(spread, negated, which, n_active, factor, mu)
        dual[:] = 0.0
        p[:] = centre
        for a in range(n_active):
            dual[which[a]] = mu[a]
            for k in range(n):
                p[k] += spread[k, which[a]] * mu[a]
        wrong, last = 0, -1
        for k in range(n):
            if (active[k] and dual[k] < 0.0) or (not active[k] and p[k] < -1e-14):
                wrong += 1
                last = k
        if wrong == 0:
            done = True
            break
        if wrong < best:
            best, patience = wrong, 3
        else:
            patience -= 1
        for k in range(n):
            bad = (active[k] and dual[k] < 0.0) or (not active[k] and p[k] < -1e-14)
            if bad and (patience >= 0 or k == last):
                active[k] = not active[k]
    total = 0.0
    for k in range(n):
        p[k] = 0.0 if active[k] else max(p[k], 0.0)
        total += p[k]
    if not done or not total > 0.0:
        return False
    out[:] = p / total
    return True


@njit(cache=True, nogil=True)
def complementary(centre: Floats, spread: Floats, out: Floats, solved: Bools) -> None:
    """Solve every row of `centre` with one `spread` for all or one a row."""
    for s in range(len(centre)):
        solved[s] = complementary_row(centre[s], spread[s % len(spread)], out[s])


@njit(cache=True, nogil=True)
def pulled_weights(
    joint: Floats, shift: Floats, rho: float, out: Floats, start: int, stop: int
) -> None:
    """Minimise |C t - b| + rho |t| over t >= -1 for every row b of `shift`; out = 1 + t.

    Neither norm is squared. At the optimum t solves a ridge problem whose strength is
    rho |C t - b| / |t|, and that strength is found by repeated substitution, which descends.
    """
    k = joint.shape[1]
    gram = joint.T @ joint
    ridged = np.empty_like(gram)
    target = np.empty(k)
    for s in range(start, stop):
        b = shift[s]
        toward = joint.T @ b
        size = np.sqrt((b * b).sum())
        if size == 0.0 or np.sqrt((toward * toward).sum()) <= rho * size:
            out[s] = 1.0  # no step away from the training prevalence pays
            continue
        strength = 1e-6 * np.trace(gram) / k
        w = np.ones(k)
        for _ in range(500):
            ridged[:] = gram
            for a in range(k):
                ridged[a, a] += strength
                target[a] = toward[a] + strength
                for c in range(k):
                    target[a] += gram[a, c]
            nonnegative_quadratic(ridged, target, w, 6 * k)
            t = w - 1.0
            residual = joint @ t - b
            r, length = np.sqrt((residual * residual).sum()), np.sqrt((t * t).sum())
            if length <= 1e-14:
                break
            new = max(rho * r / length, 1e-15)
            done = abs(new - strength) <= 1e-9 * strength
            strength = new
            if done:
                break
        out[s] = w
