"""Expectation-maximisation of mixture weights, bag by bag."""

from __future__ import annotations

import numpy as np
from numba import njit

from headcount._core.types import Bools, Floats, Ints
from headcount.kernels.compiled.bags import fetch
from headcount.kernels.compiled.blocks import gather, ratio_sums, workspace


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
    rows, inverse = workspace(indptr, n_classes, start, stop)
    new = np.empty(n_classes)
    added = extra.sum()
    for s in range(start, stop):
        m = indptr[s + 1] - indptr[s]
        gather(likelihood, indices, indptr[s], indptr[s + 1], rows)
        p = start_at.copy()
        done = False
        for step in range(max_iter):
            prior = _smoothed(p, hat, strength) if strength > 0.0 else p
            ratio_sums(rows, prior, m, inverse, new)
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
