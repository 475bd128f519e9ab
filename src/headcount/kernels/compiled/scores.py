"""Kernels on one column of scores, sorted: gaps, sweeps over thresholds, ordered distances."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit(cache=True, nogil=True)
def mean_gaps(values: Floats, order: Ints, reference: Floats, out: Floats) -> None:
    """Add to out[i] the mean |values[i] - r| over the sorted reference; one merge."""
    n = len(reference)
    total = reference.sum()
    r, below = 0, 0.0
    for i in order:
        x = values[i]
        while r < n and reference[r] <= x:
            below += reference[r]
            r += 1
        out[i] += (x * r - below + (total - below) - x * (n - r)) / n


@njit(cache=True, nogil=True)
def _median(values: Floats, n: int, buckets: Ints, scratch: Floats) -> float:
    """Median of n numbers in [0, 1], by counting them into buckets first."""
    n_buckets = len(buckets)
    buckets[:] = 0
    for j in range(n):
        buckets[int(values[j] * (n_buckets - 1))] += 1
    return 0.5 * (
        _ranked(values, n, (n - 1) // 2, buckets, scratch)
        + _ranked(values, n, n // 2, buckets, scratch)
    )


@njit(cache=True, nogil=True)
def _ranked(values: Floats, n: int, rank: int, buckets: Ints, scratch: Floats) -> float:
    """The number of the given rank."""
    n_buckets = len(buckets)
    before, b = 0, 0
    while before + buckets[b] <= rank:
        before += buckets[b]
        b += 1
    found = 0
    low, high = 2.0, -1.0
    for j in range(n):
        if int(values[j] * (n_buckets - 1)) == b:
            scratch[found] = values[j]
            low, high = min(low, values[j]), max(high, values[j])
            found += 1
    if low == high:
        return low
    return np.partition(scratch[:found], rank - before)[rank - before]


@njit(cache=True, nogil=True)
def median_sweep(
    above: Ints,
    fpr: Floats,
    gap: Floats,
    indptr: Ints,
    indices: Ints,
    out: Floats,
    start: int,
    stop: int,
) -> None:
    """Median over thresholds of the clipped adjusted counts.

    Item i counts as positive at the first above[i] thresholds; gap is tpr - fpr.
    """
    n = len(fpr)
    counts = np.empty(n + 1, dtype=np.int64)
    adjusted, scratch = np.empty(n), np.empty(n)
    buckets = np.empty(257, dtype=np.int64)
    for s in range(start, stop):
        counts[:] = 0
        for j in range(indptr[s], indptr[s + 1]):
            counts[above[indices[j]]] += 1
        size = indptr[s + 1] - indptr[s]
        seen = 0
        for t in range(n - 1, -1, -1):
            seen += counts[t + 1]
            value = (seen / size - fpr[t]) / gap[t]
            adjusted[t] = min(max(value, 0.0), 1.0)
        out[s] = _median(adjusted, n, buckets, scratch)


@njit(cache=True, nogil=True, fastmath=True)
def _ordered_distance(slope: Floats, offset: Floats, n: int, share: float) -> float:
    total = 0.0
    for j in range(n):
        total += abs(share * slope[j] + offset[j])
    return total


@njit(cache=True, nogil=True)
def ordered_match(
    reference: Floats,
    positive: Floats,
    negative: Floats,
    values: Floats,
    indptr: Ints,
    indices: Ints,
    out: Floats,
    start: int,
    stop: int,
) -> None:
    """Share whose mixture of score distributions is nearest in earth mover's distance.

    `reference` are the sorted labelled scores, `positive` and `negative` the classes'
    distribution functions there. The distance is the integral of |a F+ + (1 - a) F- - G|, convex
    in a, and found by golden section.
    """
    n = len(reference)
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    for s in range(start, stop):
        m = indptr[s + 1] - indptr[s]
        mine = np.empty(m)
        for j in range(m):
            mine[j] = values[indices[indptr[s] + j]]
        mine.sort()
        slope, offset = np.empty(n + m), np.empty(n + m)
        i = j = used = 0
        f1 = f0 = 0.0
        while i + j < n + m - 1:
            if j >= m or (i < n and reference[i] <= mine[j]):
                here, f1, f0 = reference[i], positive[i], negative[i]
                i += 1
            else:
                here = mine[j]
                j += 1
            then = reference[i] if j >= m or (i < n and reference[i] <= mine[j]) else mine[j]
            width = then - here
            if width > 0.0:
                slope[used] = (f1 - f0) * width
                offset[used] = (f0 - j / m) * width
                used += 1
        low, high = 0.0, 1.0
        a, b = high - ratio, ratio
        fa = _ordered_distance(slope, offset, used, a)
        fb = _ordered_distance(slope, offset, used, b)
        while high - low > 1e-7:
            if fa <= fb:
                high, b, fb = b, a, fa
                a = high - ratio * (high - low)
                fa = _ordered_distance(slope, offset, used, a)
            else:
                low, a, fa = a, b, fb
                b = low + ratio * (high - low)
                fb = _ordered_distance(slope, offset, used, b)
        middle = 0.5 * (low + high)
        out[s] = 0.0 if middle < 1e-6 else (1.0 if middle > 1.0 - 1e-6 else middle)
