"""Convex matching on the simplex: make the mixture V p resemble a bag's features q.

One damped Newton method serves every divergence and the likelihood: with u = V p, the loss is
sum_f phi(q_f, u_f) + p'Rp/2, and each step solves a quadratic on the simplex.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from headcount._core.types import Bools, Floats, Ints
from headcount.kernels.compiled.simplex import complementary_row

HELLINGER, TOPSOE, PROBSYMM, SQUARED, ABSOLUTE, LIKELIHOOD = 0, 1, 2, 3, 4, 5
MIN_CELL_SHARE = 1e-12  # keeps logarithms and quotients finite; no pool has 1e12 items


@njit(cache=True, nogil=True)
def _phi(q: float, u: float, kind: int) -> float:
    """Divergence of one feature; terms that do not depend on u may be left out."""
    u = max(u, MIN_CELL_SHARE)
    if kind == HELLINGER:
        return u - 2.0 * np.sqrt(q * u)
    if kind == TOPSOE:
        value = u * np.log(2.0 * u / (q + u))
        if q > 0.0:
            value += q * np.log(2.0 * q / (q + u))
        return value
    if kind == PROBSYMM:
        return 2.0 * (q - u) * (q - u) / (q + u)
    if kind == SQUARED:
        return (q - u) * (q - u)
    if kind == ABSOLUTE:
        return abs(q - u)
    return -q * np.log(u)


@njit(cache=True, nogil=True)
def _loss(q: Floats, u: Floats, p: Floats, pull: Floats, kind: int) -> float:
    total = 0.0
    for f in range(len(q)):
        total += _phi(q[f], u[f], kind)
    return total + 0.5 * (p * (pull @ p)).sum()


@njit(cache=True, nogil=True, error_model="numpy")
def _slopes(q: Floats, u: Floats, kind: int, first: Floats, second: Floats) -> None:
    """First and second derivative of each feature's divergence in u."""
    for f in range(len(q)):
        a, b = q[f], max(u[f], MIN_CELL_SHARE)
        if kind == HELLINGER:
            root = np.sqrt(a / b)
            first[f] = 1.0 - root
            second[f] = 0.5 * root / b
        elif kind == TOPSOE:
            first[f] = np.log(2.0 * b / (a + b))
            second[f] = a / (b * (a + b))
        elif kind == PROBSYMM:
            s, d = a + b, b - a
            first[f] = 2.0 * d * (2.0 * s - d) / (s * s)
            second[f] = 16.0 * a * a / (s * s * s)
        elif kind == SQUARED:
            first[f] = 2.0 * (b - a)
            second[f] = 2.0
        elif kind == ABSOLUTE:  # the curvature of a parabola that touches from above
            gap = abs(b - a) + 1e-9
            first[f] = (b - a) / gap
            second[f] = 1.0 / gap
        else:
            first[f] = -a / b
            second[f] = a / (b * b)


@njit(cache=True, nogil=True)
def _quadratic_row(gram: Floats, linear: Floats, out: Floats) -> bool:
    """Minimise p'Gp/2 - b'p over the simplex, for one semi-definite G."""
    k = len(linear)
    scale = np.trace(gram) / k + 1e-300
    # scale (sum p)^2 is constant on the simplex; a whiff of ridge makes the rest definite.
    shifted = gram + scale
    for a in range(k):
        shifted[a, a] += 1e-11 * scale
    inverse = np.linalg.inv(shifted)
    ones = inverse.sum(axis=1)
    whole = ones.sum()
    spread = inverse - np.outer(ones, ones) / whole
    centre = spread @ (linear + scale) + ones / whole
    return complementary_row(centre, spread, out)


@njit(cache=True, nogil=True)
def _mix(rows: Floats, p: Floats, u: Floats) -> None:
    u[:] = 0.0
    for k in range(len(p)):
        if p[k] > 0.0:
            for f in range(len(u)):
                u[f] += p[k] * rows[k, f]


@njit(cache=True, nogil=True)
def descend(
    rows: Floats, q: Floats, pull: Floats, kind: int, p: Floats, tol: float, max_iter: int
) -> bool:
    """Minimise the loss in place from p; `rows` holds V transposed, a class a row."""
    k, n = rows.shape
    u, first, second = np.empty(n), np.empty(n), np.empty(n)
    trial, point = np.empty(k), np.empty(k)
    scaled = np.empty((k, n))
    stiff = 1.0 + pull.max()  # slopes cannot be told from rounding below this times tol
    _mix(rows, p, u)
    now = _loss(q, u, p, pull, kind)
    for _ in range(max_iter):
        _slopes(q, u, kind, first, second)
        slope = rows @ first + pull @ p
        if (p * slope).sum() - slope.min() <= tol * (stiff + np.abs(slope).max()):
            return True
        for c in range(k):
            for f in range(n):
                scaled[c, f] = rows[c, f] * np.sqrt(second[f])
        hessian = scaled @ scaled.T + pull
        trial[:] = p
        if not _quadratic_row(hessian, hessian @ p - slope, trial):
            trial[:] = p
        # Shares near zero make some divergences singular: approach zero, never jump to it.
        for c in range(k):
            trial[c] = max(trial[c], 0.005 * p[c])
        trial /= trial.sum()
        gain = (slope * (p - trial)).sum()
        if gain <= 0.0:  # no use: take a plain step towards the best corner
            trial[:] = 0.0
            trial[np.argmin(slope)] = 1.0
            gain = (slope * (p - trial)).sum()
        step, moved = 1.0, False
        for _ in range(40):
            for c in range(k):
                point[c] = p[c] + step * (trial[c] - p[c])
            _mix(rows, point, u)
            then = _loss(q, u, point, pull, kind)
            if then <= now - 1e-4 * step * gain:
                p[:] = point
                moved = now - then > 1e-16 * (1.0 + abs(now))
                now = then
                break
            step *= 0.5
        if not moved:
            _mix(rows, p, u)
            _slopes(q, u, kind, first, second)
            slope = rows @ first + pull @ p
            return (p * slope).sum() - slope.min() <= 1e3 * tol * (stiff + np.abs(slope).max())
    return False


@njit(cache=True, nogil=True)
def _settle(p: Floats) -> None:
    """Put what has come within rounding error of zero there, and normalise."""
    for c in range(len(p)):
        if p[c] < 1e-10:
            p[c] = 0.0
    p /= p.sum()


@njit(cache=True, nogil=True)
def match(
    rows: Floats,
    targets: Floats,
    pull: Floats,
    kind: int,
    start_at: Floats,
    tol: float,
    out: Floats,
    converged: Bools,
    start: int,
    stop: int,
) -> None:
    """Match every bag's features: out[s] minimises the divergence of V p from targets[s]."""
    for s in range(start, stop):
        out[s] = start_at
        converged[s] = descend(rows, targets[s], pull, kind, out[s], tol, 300)
        _settle(out[s])


@njit(cache=True, nogil=True)
def regularised_likelihood(
    likelihood: Floats,
    indptr: Ints,
    indices: Ints,
    pull: Floats,
    start_at: Floats,
    tol: float,
    max_iter: int,
    out: Floats,
    converged: Bools,
    start: int,
    stop: int,
) -> None:
    """Maximise the mean log-likelihood of each bag minus p'Rp/2."""
    k = likelihood.shape[1]
    for s in range(start, stop):
        m = indptr[s + 1] - indptr[s]
        rows = np.empty((k, m))
        for j in range(m):
            item = likelihood[indices[indptr[s] + j]]
            for c in range(k):
                rows[c, j] = item[c]
        weight = np.full(m, 1.0 / m)
        out[s] = start_at
        converged[s] = descend(rows, weight, pull, LIKELIHOOD, out[s], tol, max_iter)
        _settle(out[s])


@njit(cache=True, nogil=True)
def _slope_two(
    q: Floats, negative: Floats, gain: Floats, p: float, kind: int
) -> tuple[float, float]:
    """First and second derivative of the divergence in the share p."""
    first = second = 0.0
    for f in range(len(q)):
        a, d = q[f], gain[f]
        if d == 0.0:
            continue
        b = max(negative[f] + p * d, MIN_CELL_SHARE)
        if kind == HELLINGER:
            root = np.sqrt(a / b)
            first += (1.0 - root) * d
            second += 0.5 * root / b * d * d
        elif kind == TOPSOE:
            first += np.log(2.0 * b / (a + b)) * d
            second += a / (b * (a + b)) * d * d
        elif kind == PROBSYMM:
            s, e = a + b, b - a
            first += 2.0 * e * (2.0 * s - e) / (s * s) * d
            second += 16.0 * a * a / (s * s * s) * d * d
        elif kind == SQUARED:
            first += 2.0 * (b - a) * d
            second += 2.0 * d * d
        else:
            first += d if b > a else (-d if b < a else 0.0)
    return first, second


@njit(cache=True, nogil=True)
def match_two(negative: Floats, positive: Floats, targets: Floats, kind: int, out: Floats) -> None:
    """Share of the positive class for every bag: Newton on the rising slope, bracketed.

    The absolute divergence has no curvature to follow and is bisected.
    """
    gain = positive - negative
    for s in range(len(targets)):
        q = targets[s]
        if _slope_two(q, negative, gain, 0.0, kind)[0] >= 0.0:
            out[s] = 0.0
            continue
        if _slope_two(q, negative, gain, 1.0, kind)[0] <= 0.0:
            out[s] = 1.0
            continue
        low, high, p = 0.0, 1.0, 0.5
        for _ in range(100):
            first, second = _slope_two(q, negative, gain, p, kind)
            if first > 0.0:
                high = p
            else:
                low = p
            step = first / second if second > 0.0 else 2.0
            if high - low < 1e-9 or abs(step) < 1e-9:
                break
            p -= step
            if not low < p < high:
                p = 0.5 * (low + high)
        out[s] = p


@njit(cache=True, nogil=True)
def bag_histograms(
    cells: NDArray[np.uint16], indptr: Ints, indices: Ints, out: Floats, start: int, stop: int
) -> None:
    """out[s, f] = share of bag s's items in cell f; an item has one cell in each channel."""
    n_channels = cells.shape[1]
    for s in range(start, stop):
        row = out[s]
        row[:] = 0.0
        for j in range(indptr[s], indptr[s + 1]):
            item = cells[indices[j]]
            for c in range(n_channels):
                row[item[c]] += 1.0
        row /= indptr[s + 1] - indptr[s]
