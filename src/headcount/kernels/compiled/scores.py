"""Kernels on one column of scores, sorted: gaps, sweeps over thresholds, ordered distances."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from headcount._core.types import Floats, Ints


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


BUCKETS = 256


@njit(cache=True, nogil=True)
def _median(values: Floats, cells: NDArray[np.int32], counts: Ints, scratch: Floats) -> float:
    """Median of numbers in [0, 1] whose buckets are known: only the middle bucket is sorted."""
    n = len(values)
    counts[:] = 0
    for j in range(n):
        counts[cells[j]] += 1
    low, high = (n - 1) // 2, n // 2
    first, before = 0, 0
    while before + counts[first] <= low:
        before += counts[first]
        first += 1
    last = first
    reach = before + counts[first]
    while reach <= high:
        last += 1
        reach += counts[last]
    found = 0
    for j in range(n):
        if cells[j] == first or cells[j] == last:
            scratch[found] = values[j]
            found += 1
    middle = np.sort(scratch[:found]) if found < 3000 else _few_values(scratch[:found])
    return 0.5 * (middle[low - before] + middle[high - before])


@njit(cache=True, nogil=True)
def _few_values(values: Floats) -> Floats:
    """Sort, fast when nearly all values are the smallest or the largest (clipped ones are)."""
    lowest, highest = values.min(), values.max()
    inner = values[(values > lowest) & (values < highest)]
    inner.sort()
    out = np.full(len(values), highest)
    n_low = (values == lowest).sum()
    out[:n_low] = lowest
    out[n_low : n_low + len(inner)] = inner
    return out


@njit(cache=True, nogil=True, fastmath=True)
def _clip_and_bucket(values: Floats, cells: NDArray[np.int32]) -> None:
    """Clip to [0, 1] in place, and number the bucket of each."""
    for t in range(len(values)):
        v = values[t]
        v = v if v > 0.0 else 0.0
        v = v if v < 1.0 else 1.0
        values[t] = v
        cells[t] = np.int32(v * 256.0)


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
    inverse = 1.0 / gap
    steps = np.zeros(n + 1, dtype=np.int32)
    adjusted, scratch = np.empty(n), np.empty(n)
    cells = np.empty(n, dtype=np.int32)
    counts = np.empty(BUCKETS + 1, dtype=np.int64)
    for s in range(start, stop):
        steps[:] = 0
        for j in range(indptr[s], indptr[s + 1]):
            steps[above[indices[j]]] += 1
        m = indptr[s + 1] - indptr[s]
        each = 1.0 / m
        seen = m
        for t in range(n):
            seen -= steps[t]
            adjusted[t] = (seen * each - fpr[t]) * inverse[t]
        _clip_and_bucket(adjusted, cells)
        out[s] = _median(adjusted, cells, counts, scratch)


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _ordered_distance(slope: Floats, offset: Floats, n: int, share: float) -> float:
    total = 0.0
    for j in range(n):
        total += abs(share * slope[j] + offset[j])
    return total


@njit(cache=True, nogil=True, fastmath=True)
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
