"""The fixed point of ELSA, bag by bag."""

from __future__ import annotations

import numpy as np
from numba import njit

from headcount._core.types import Bools, Floats, Ints


@njit(cache=True, nogil=True)
def _information(row: Floats, w: Floats, pi: float) -> float:
    """1 / (E[w^2|x] / pi + E[w|x] / (1 - pi)) under the source posterior `row`."""
    first = second = 0.0
    for k in range(len(w)):
        first += row[k] * w[k]
        second += row[k] * w[k] * w[k]
    return 1.0 / max(second / pi + first / (1.0 - pi), 1e-12)


@njit(cache=True, nogil=True)
def efficient_weights(
    source: Floats,
    codes: Ints,
    share: Floats,
    scores: Floats,
    indptr: Ints,
    indices: Ints,
    weights: Floats,
    converged: Bools,
    start: int,
    stop: int,
) -> None:
    """Refine the class weights of every bag in place, from a first estimate.

    The last class's weight follows from sum share w = 1, so the system has K - 1 unknowns.
    """
    n, k = source.shape
    d = k - 1
    for s in range(start, stop):
        m = indptr[s + 1] - indptr[s]
        pi = n / (n + m)
        w = weights[s].copy()
        done = False
        for step in range(100):
            take = 1.0 if step < 10 else 0.3
            matrix = np.zeros((d, d))
            target = np.zeros(d)
            for i in range(n):
                weight = _information(source[i], w, pi) / n
                c = codes[i]
                for a in range(d):
                    moment = weight * (source[i, a] - share[a])
                    if c < d:
                        matrix[a, c] += moment
                    else:
                        target[a] -= moment / share[d]
                        for b in range(d):
                            matrix[a, b] -= moment * share[b] / share[d]
            for j in range(indptr[s], indptr[s + 1]):
                row = scores[indices[j]]
                weight = _information(row, w, pi) / m
                for a in range(d):
                    target[a] += weight * (row[a] - share[a])
            floor = 1e-10 * (np.abs(np.diag(matrix)).sum() / d + 1e-300)
            for a in range(d):
                matrix[a, a] += floor
                target[a] += floor * w[a]
            solved = np.linalg.solve(matrix, target)
            rest, before = 1.0, w.copy()
            for a in range(d):
                w[a] = max(solved[a], 0.0)
                rest -= share[a] * w[a]
            w[d] = max(rest / share[d], 0.0)
            w /= (share * w).sum()
            for a in range(k):
                w[a] = (1.0 - take) * before[a] + take * w[a]
            if np.abs(w - before).max() < 1e-6 * take:
                done = True
                break
        converged[s] = done
        if done:
            weights[s] = w
