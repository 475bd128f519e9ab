"""A bag's likelihoods in blocks of items, so that inner loops run along memory.

With fast arithmetic, what a sum gives may depend on what it was compiled into. The two sums here
are therefore part of their callers (inline), so that code from the cache, fresh code and any
number of workers give the same bytes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from headcount._core.types import Floats, Ints

B = 64  # items are kept in blocks of B, class by class, so that inner loops run along memory


@njit(cache=True, nogil=True)
def gather(likelihood: Floats, indices: Ints, first: int, last: int, rows: Floats) -> None:
    """rows[j // B, k, j % B] = likelihood of the bag's j-th item under class k."""
    n_classes = likelihood.shape[1]
    for j in range(first, last):
        item = likelihood[indices[j]]
        block, at = (j - first) // B, (j - first) % B
        for k in range(n_classes):
            rows[block, k, at] = item[k]


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def block_density(rows: Floats, block: int, p: Floats, density: Floats) -> None:
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


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def ratio_sums(rows: Floats, p: Floats, m: int, inverse: Floats, out: Floats) -> None:
    """out[k] = sum_j rows[k, j] / density[j], and inverse[j] = 1 / density[j]; one pass."""
    out[:] = 0.0
    n_classes = len(p)
    for block in range((m + B - 1) // B):
        d = inverse[block]
        block_density(rows, block, p, d)
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
def workspace(indptr: Ints, n_classes: int, start: int, stop: int) -> tuple[Floats, Floats]:
    """Room for the largest bag: its likelihoods, padded with ones, and a number an item."""
    widest = 1
    for s in range(start, stop):
        widest = max(widest, indptr[s + 1] - indptr[s])
    blocks = (widest + B - 1) // B
    return np.ones((blocks, n_classes, B)), np.empty((blocks, B))
