"""Exact mixture weights, bag by bag: maximise sum_i w_i log(sum_k p_k L_ik)."""

from __future__ import annotations

import numpy as np
from numba import njit

from headcount._core.types import Bools, Floats, Ints
from headcount.kernels.compiled.bags import fetch
from headcount.kernels.compiled.blocks import B, block_density, gather, ratio_sums, workspace
from headcount.kernels.compiled.quadratic import nonnegative_quadratic

# Fast sums, but infinities stay infinities: the line search meets them.
FAST = {"reassoc", "contract", "arcp", "nsz"}


@njit(cache=True, nogil=True, fastmath=True)
def maximise_two(
    likelihood: Floats,
    indptr: Ints,
    indices: Ints,
    start_at: Floats,
    extra: Floats,
    tol: float,
    max_iter: int,
    out: Floats,
    converged: Bools,
    start: int,
    stop: int,
) -> None:
    """Exact maximum for two classes: Newton on the concave slope, bracketed."""
    widest = 1
    for s in range(start, stop):
        widest = max(widest, indptr[s + 1] - indptr[s])
    base_of, gain_of = likelihood[:, 0].copy(), likelihood[:, 1] - likelihood[:, 0]
    base, gain = np.empty(widest), np.empty(widest)
    for s in range(start, stop):
        first, m = indptr[s], indptr[s + 1] - indptr[s]
        fetch(base_of, indices, first, first + m, base)
        fetch(gain_of, indices, first, first + m, gain)
        low, high = 0.0, 1.0
        p = start_at[1]
        done = False
        ends = 0  # how often Newton left the bracket, to probe the ends once
        for _ in range(max_iter):
            slope, bend = 0.0, 0.0
            for j in range(m):
                r = gain[j] / (base[j] + p * gain[j])
                slope += r
                bend += r * r
            if extra[1] > 0.0:
                slope += extra[1] / p
                bend += extra[1] / (p * p)
            if extra[0] > 0.0:
                slope -= extra[0] / (1.0 - p)
                bend += extra[0] / ((1.0 - p) * (1.0 - p))
            if abs(slope) <= tol * m or (p == 0.0 and slope <= 0.0) or (p == 1.0 and slope >= 0.0):
                done = True
                break
            if slope > 0.0:
                low = p
            else:
                high = p
            if high - low < 1e-15:
                done = True
                break
            p += slope / bend
            if p >= high:
                p = 1.0 if high == 1.0 and extra[0] == 0.0 and ends < 2 else 0.5 * (low + high)
                ends += 1
            elif p <= low:
                p = 0.0 if low == 0.0 and extra[1] == 0.0 and ends < 2 else 0.5 * (low + high)
                ends += 1
        out[s, 0] = 1.0 - p
        out[s, 1] = p
        converged[s] = done


@njit(cache=True, nogil=True)
def _scaled_gram(rows: Floats, inverse: Floats, m: int, work: Floats, out: Floats) -> None:
    """Out = sum_j rows[:, j] rows[:, j]' inverse[j]^2."""
    n_classes = rows.shape[1]
    out[:] = 0.0
    for block in range((m + B - 1) // B):
        for k in range(n_classes):
            for j in range(B):
                work[k, j] = rows[block, k, j] * inverse[block, j]
        out += work @ work.T


@njit(cache=True, nogil=True)
def _sum_log(inverse: Floats, m: int) -> float:
    """Sum of log density, with one logarithm for every eight items."""
    total = 0.0
    product = 1.0
    for block in range((m + B - 1) // B):
        last = min(B, m - block * B)
        for j in range(last):
            product *= inverse[block, j]
            if j % 8 == 7 or j == last - 1:
                total -= np.log(product)
                product = 1.0
    return total


@njit(cache=True, nogil=True)
def _worst_slope(p: Floats, slope: Floats) -> float:
    """Distance from optimality: slope must be 1 where p > 0 and at most 1 elsewhere."""
    worst = 0.0
    for k in range(len(p)):
        off = abs(slope[k] - 1.0) if p[k] > 0.0 else slope[k] - 1.0
        worst = max(worst, off)
    return worst


@njit(cache=True, nogil=True, fastmath=FAST)
def maximise(
    likelihood: Floats,
    indptr: Ints,
    indices: Ints,
    start_at: Floats,
    extra: Floats,
    tol: float,
    max_iter: int,
    out: Floats,
    converged: Bools,
    start: int,
    stop: int,
) -> None:
    """Exact maximum for any number of classes: a few EM steps, then sequential quadratics.

    The sum constraint is dropped for the penalty `- sum p`, whose maximum is the same (Kim,
    Carbonetto, Stephens and Anitescu, 2020), so each step is a non-negative quadratic in K
    unknowns. The slopes at the end certify the optimum.
    """
    n_classes = likelihood.shape[1]
    rows, inverse = workspace(indptr, n_classes, start, stop)
    scratch, work = np.empty_like(inverse), np.empty((n_classes, B))
    slope, target = np.empty(n_classes), np.empty(n_classes)
    hessian = np.empty((n_classes, n_classes))
    trial = np.empty(n_classes)
    added = extra.sum()
    for s in range(start, stop):
        m = indptr[s + 1] - indptr[s]
        weight = m + added
        gather(likelihood, indices, indptr[s], indptr[s + 1], rows)
        p = start_at.copy()
        done = False
        for step in range(max_iter):
            ratio_sums(rows, p, m, inverse, slope)
            for k in range(n_classes):
                slope[k] /= weight
                if extra[k] > 0.0:
                    slope[k] += extra[k] / (weight * p[k])
            if _worst_slope(p, slope) <= tol:
                done = True
                break
            if step < 8:
                for k in range(n_classes):
                    p[k] *= slope[k]
                continue
            _scaled_gram(rows, inverse, m, work, hessian)
            for a in range(n_classes):
                for b in range(n_classes):
                    hessian[a, b] /= weight
                if extra[a] > 0.0:
                    hessian[a, a] += extra[a] / (weight * p[a] * p[a])
                target[a] = 2.0 * slope[a] - 1.0
                trial[a] = p[a]
            nonnegative_quadratic(hessian, target, trial, 6 * n_classes)
            if not _line_search(rows, p, trial, slope, extra, weight, m, inverse, scratch):
                for k in range(n_classes):
                    p[k] *= slope[k]
        out[s] = p / p.sum()
        converged[s] = done


@njit(cache=True, nogil=True)
def _objective(p: Floats, inverse: Floats, extra: Floats, weight: float, m: int) -> float:
    value: float = _sum_log(inverse, m) / weight - p.sum()
    for k in range(len(p)):
        if extra[k] > 0.0:
            value += extra[k] / weight * np.log(p[k]) if p[k] > 0.0 else -np.inf
    return value


@njit(cache=True, nogil=True, fastmath=FAST)
def _line_search(
    rows: Floats,
    p: Floats,
    trial: Floats,
    slope: Floats,
    extra: Floats,
    weight: float,
    m: int,
    inverse: Floats,
    scratch: Floats,
) -> bool:
    """Move p towards trial as far as the likelihood agrees; False if no step helps."""
    n_classes = len(p)
    gain = 0.0
    for k in range(n_classes):
        gain += (slope[k] - 1.0) * (trial[k] - p[k])
    if gain <= 0.0:
        return False
    before = _objective(p, inverse, extra, weight, m)
    point = np.empty(n_classes)
    step = 1.0
    for _ in range(30):
        for k in range(n_classes):
            point[k] = p[k] + step * (trial[k] - p[k])
            if point[k] < 1e-300:
                point[k] = 0.0
        usable = True
        for block in range((m + B - 1) // B):
            block_density(rows, block, point, scratch[block])
            for j in range(min(B, m - block * B)):
                usable &= scratch[block, j] > 0.0
                scratch[block, j] = 1.0 / scratch[block, j]
        if usable:
            after = _objective(point, scratch, extra, weight, m)
            if after >= before + 1e-4 * step * gain - 1e-13:
                p[:] = point
                return True
        step *= 0.5
    return False
