"""Sums over the items of each bag, and the drawing of items into bags."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from headcount._core.types import Floats, Ints
from headcount.kernels.random import GAMMA, MIX1, MIX2

BLOCK_BYTES = 1 << 19  # half of a core's second-level cache


@njit(cache=True, nogil=True, fastmath=True)
def bag_means(
    values: Floats, indptr: Ints, indices: Ints, out: Floats, start: int, stop: int
) -> None:
    """out[s] = mean of values[i] over the items i of bag s; indices ascend within a bag.

    The pool is walked in blocks that stay in cache, all bags for each block, because gathering
    rows from main memory is what costs time.
    """
    n_items, width = values.shape
    block = max(256, BLOCK_BYTES // (8 * width))
    at = indptr[start:stop].copy()
    out[start:stop] = 0.0
    for low in range(0, n_items, block):
        high = low + block
        for s in range(start, stop):
            j, last = at[s - start], indptr[s + 1]
            row = out[s]
            while j < last and indices[j] < high:
                item = values[indices[j]]
                for c in range(width):
                    row[c] += item[c]
                j += 1
            at[s - start] = j
    for s in range(start, stop):
        out[s] /= indptr[s + 1] - indptr[s]


@njit(cache=True, nogil=True)  # no fastmath: it would use the slow gather instruction
def bag_mean_column(
    values: Floats, indptr: Ints, indices: Ints, out: Floats, start: int, stop: int
) -> None:
    """out[s] = mean of the single column `values` over the items of bag s."""
    for s in range(start, stop):
        j, last = indptr[s], indptr[s + 1]
        size = last - j
        a = b = c = d = 0.0
        while j + 4 <= last:
            a += values[indices[j]]
            b += values[indices[j + 1]]
            c += values[indices[j + 2]]
            d += values[indices[j + 3]]
            j += 4
        while j < last:
            a += values[indices[j]]
            j += 1
        out[s] = (a + b + c + d) / size


@njit(cache=True, nogil=True)
def fetch(values: Floats, indices: Ints, first: int, last: int, out: Floats) -> None:
    """out[j] = values[indices[first + j]]; the way out keeps the slow gather instruction away."""
    for j in range(first, last):
        i = indices[j]
        if i < 0:
            break
        out[j - first] = values[i]


@njit(cache=True, nogil=True)
def bag_counts(codes: Ints, indptr: Ints, indices: Ints, out: Ints, start: int, stop: int) -> None:
    """out[s, c] = how many items of bag s carry code c."""
    for s in range(start, stop):
        for j in range(indptr[s], indptr[s + 1]):
            out[s, codes[indices[j]]] += 1


@njit(cache=True, nogil=True)
def _next(state: np.uint64) -> np.uint64:
    """Splitmix64's output function."""
    z = state
    z = (z ^ (z >> np.uint64(30))) * MIX1
    z = (z ^ (z >> np.uint64(27))) * MIX2
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def draw_items(
    counts: Ints, by_class: Ints, class_ptr: Ints, states: NDArray[np.uint64], out: Ints
) -> None:
    """Fill out[s] with counts[s, c] items of each class c, drawn by the bag's own generator.

    Without replacement where the class is large enough (a partial Fisher-Yates shuffle, undone
    afterwards so that no bag depends on the ones before it), else with replacement.
    """
    pool = by_class.copy()
    swaps = np.empty(out.shape[1], dtype=np.int64)
    for s in range(counts.shape[0]):
        state = states[s]
        filled = 0
        for c in range(counts.shape[1]):
            n, first = counts[s, c], class_ptr[c]
            available = class_ptr[c + 1] - first
            for j in range(n):
                state = state + GAMMA
                u = np.float64(_next(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
                if n > available:
                    out[s, filled + j] = pool[first + np.int64(u * available)]
                else:
                    pick = first + j + np.int64(u * (available - j))
                    swaps[j] = pick
                    pool[first + j], pool[pick] = pool[pick], pool[first + j]
                    out[s, filled + j] = pool[first + j]
            if n <= available:
                for j in range(n - 1, -1, -1):
                    pick = swaps[j]
                    pool[first + j], pool[pick] = pool[pick], pool[first + j]
            filled += n
        out[s].sort()
