"""Mixture likelihood on the simplex, bag by bag: maximise sum_i w_i log(sum_k p_k L_ik)."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from headcount.kernels.compiled.bags import fetch

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


B = 64  # items are kept in blocks of B, class by class, so that inner loops run along memory


@njit(cache=True, nogil=True)
def _gather(likelihood: Floats, indices: Ints, first: int, last: int, rows: Floats) -> None:
    """rows[j // B, k, j % B] = likelihood of the bag's j-th item under class k."""
    n_classes = likelihood.shape[1]
    for j in range(first, last):
        item = likelihood[indices[j]]
        block, at = (j - first) // B, (j - first) % B
        for k in range(n_classes):
            rows[block, k, at] = item[k]


@njit(cache=True, nogil=True, fastmath=True)
def _block_density(rows: Floats, block: int, p: Floats, density: Floats) -> None:
    """density[j] = sum_k p_k rows[block, k, j], two classes at a time."""
    n_classes = len(p)
    density[:] = 0.0
    k = 0
    while k + 2 <= n_classes:
        a, b = p[k], p[k + 1]
        x, y = rows[block, k], rows[block, k + 1]
        for j in range(B):
            density[j] += a * x[j] + b * y[j]
        k += 2
    if k < n_classes:
        a, x = p[k], rows[block, k]
        for j in range(B):
            density[j] += a * x[j]


@njit(cache=True, nogil=True, fastmath=True)
def _ratio_sums(rows: Floats, p: Floats, m: int, inverse: Floats, out: Floats) -> None:
    """out[k] = sum_j rows[k, j] / density[j], and inverse[j] = 1 / density[j]; one pass."""
    out[:] = 0.0
    n_classes = len(p)
    for block in range((m + B - 1) // B):
        d = inverse[block]
        _block_density(rows, block, p, d)
        for j in range(B):
            d[j] = 1.0 / d[j]
        for j in range(m - block * B, B):  # what pads the last block
            d[j] = 0.0
        for k in range(n_classes):
            x = rows[block, k]
            total = 0.0
            for j in range(B):
                total += d[j] * x[j]
            out[k] += total


@njit(cache=True, nogil=True)
def _workspace(indptr: Ints, n_classes: int, start: int, stop: int) -> tuple[Floats, Floats]:
    """Room for the largest bag: its likelihoods, padded with ones, and a number an item."""
    widest = 1
    for s in range(start, stop):
        widest = max(widest, indptr[s + 1] - indptr[s])
    blocks = (widest + B - 1) // B
    return np.ones((blocks, n_classes, B)), np.empty((blocks, B))


@njit(cache=True, nogil=True)
def _smoothed(p: Floats, hat: Floats, strength: float) -> Floats:
    """Mix p with its smooth fit hat @ p, clipped at zero and normalised."""
    smooth = np.maximum(hat @ p, 0.0)
    total = smooth.sum()
    if total > 0.0:
        smooth /= total
    mixed = strength * smooth + (1.0 - strength) * p
    mixed /= mixed.sum()
    return mixed


@njit(cache=True, nogil=True, fastmath=True)
def em(
    likelihood: Floats,
    indptr: Ints,
    indices: Ints,
    start_at: Floats,
    extra: Floats,
    tol: float,
    min_iter: int,
    max_iter: int,
    hat: Floats,
    strength: float,
    out: Floats,
    converged: Bools,
    start: int,
    stop: int,
) -> None:
    """Expectation-maximisation with the classic stopping rule, mean |change| < tol.

    `extra[k]` are pseudo-counts of a Dirichlet prior (alpha - 1). With `strength` > 0 the prior
    of the next step is smoothed by `hat`, and the estimate that is returned is not.
    """
    n_classes = likelihood.shape[1]
    rows, inverse = _workspace(indptr, n_classes, start, stop)
    new = np.empty(n_classes)
    added = extra.sum()
    for s in range(start, stop):
        m = indptr[s + 1] - indptr[s]
        _gather(likelihood, indices, indptr[s], indptr[s + 1], rows)
        p = start_at.copy()
        done = False
        for step in range(max_iter):
            prior = _smoothed(p, hat, strength) if strength > 0.0 else p
            _ratio_sums(rows, prior, m, inverse, new)
            change = 0.0
            for k in range(n_classes):
                new[k] = (prior[k] * new[k] + extra[k]) / (m + added)
                change += abs(new[k] - p[k])
                p[k] = new[k]
            if change / n_classes < tol and step >= min_iter:
                done = True
                break
        out[s] = p / p.sum()
        converged[s] = done


@njit(cache=True, nogil=True)
def em_stable(
    likelihood: Floats,
    indptr: Ints,
    indices: Ints,
    start_at: Floats,
    extra: Floats,
    tol: float,
    min_iter: int,
    max_iter: int,
    damping: float,
    temperature: float,
    out: Floats,
    converged: Bools,
    start: int,
    stop: int,
) -> None:
    """Expectation-maximisation whose responsibilities are tempered and whose steps are damped."""
    k = likelihood.shape[1]
    power = 1.0 / temperature
    row = np.empty(k)
    added = extra.sum()
    for s in range(start, stop):
        m = indptr[s + 1] - indptr[s]
        p = start_at.copy()
        done = False
        for step in range(max_iter):
            new = extra.copy()
            for j in range(indptr[s], indptr[s + 1]):
                item = likelihood[indices[j]]
                total, largest = 0.0, 1e-300
                for c in range(k):
                    row[c] = p[c] * item[c]
                    largest = max(largest, row[c])
                for c in range(k):  # relative to the largest, which cannot underflow
                    row[c] = (row[c] / largest) ** power
                    total += row[c]
                for c in range(k):
                    new[c] += row[c] / total
            change = 0.0
            for c in range(k):
                new[c] = damping * new[c] / (m + added) + (1.0 - damping) * p[c]
                change += abs(new[c] - p[c])
                p[c] = new[c]
            if change / k < tol and step >= min_iter:
                done = True
                break
        out[s] = p / p.sum()
        converged[s] = done


@njit(cache=True, nogil=True, fastmath=True)
def em_two(
    likelihood: Floats,
    indptr: Ints,
    indices: Ints,
    start_at: Floats,
    extra: Floats,
    tol: float,
    min_iter: int,
    max_iter: int,
    out: Floats,
    converged: Bools,
    start: int,
    stop: int,
) -> None:
    """`em` for two classes and no smoothing."""
    odds_of = likelihood[:, 0] / likelihood[:, 1]
    widest = 1
    for s in range(start, stop):
        widest = max(widest, indptr[s + 1] - indptr[s])
    odds = np.empty(widest)
    added = extra.sum()
    for s in range(start, stop):
        first, m = indptr[s], indptr[s + 1] - indptr[s]
        fetch(odds_of, indices, first, first + m, odds)
        quarter = m // 4
        p = start_at[1]
        done = False
        for step in range(max_iter):
            total, rest = 0.0, 1.0 - p
            for j in range(quarter):  # four reciprocals for one division
                a, b = p + rest * odds[j], p + rest * odds[j + quarter]
                c, d = p + rest * odds[j + 2 * quarter], p + rest * odds[j + 3 * quarter]
                ab, cd = a * b, c * d
                total += (ab * (c + d) + cd * (a + b)) / (ab * cd)
            for j in range(4 * quarter, m):
                total += 1.0 / (p + rest * odds[j])
            new = (p * total + extra[1]) / (m + added)
            change = abs(new - p)
            p = new
            if change < tol and step >= min_iter:
                done = True
                break
        out[s, 0] = 1.0 - p
        out[s, 1] = p
        converged[s] = done


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
def _solve_free(
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
            _solve_free(hessian, target, free, n_free, factor, x)
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


@njit(cache=True, nogil=True, fastmath=True)
def _scaled_gram(rows: Floats, inverse: Floats, m: int, work: Floats, out: Floats) -> None:
    """Out = sum_j rows[:, j] rows[:, j]' inverse[j]^2."""
    n_classes = rows.shape[1]
    out[:] = 0.0
    for block in range((m + B - 1) // B):
        for k in range(n_classes):
            for j in range(B):
                work[k, j] = rows[block, k, j] * inverse[block, j]
        out += work @ work.T


@njit(cache=True, nogil=True, fastmath=True)
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


@njit(cache=True, nogil=True)
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
    rows, inverse = _workspace(indptr, n_classes, start, stop)
    scratch, work = np.empty_like(inverse), np.empty((n_classes, B))
    slope, target = np.empty(n_classes), np.empty(n_classes)
    hessian = np.empty((n_classes, n_classes))
    trial = np.empty(n_classes)
    added = extra.sum()
    for s in range(start, stop):
        m = indptr[s + 1] - indptr[s]
        weight = m + added
        _gather(likelihood, indices, indptr[s], indptr[s + 1], rows)
        p = start_at.copy()
        done = False
        for step in range(max_iter):
            _ratio_sums(rows, p, m, inverse, slope)
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


@njit(cache=True, nogil=True)
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
            _block_density(rows, block, point, scratch[block])
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
