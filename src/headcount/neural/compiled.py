"""The hard histogram layer for a CPU: an item meets only the bins that are near it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from headcount._core.types import Ints

Array = Any  # of 32-bit or 64-bit floats
CELLS_PER_BIN = 4  # of the map from values to bins: a value then meets few bins but its own


@njit(cache=True, nogil=True, inline="always")
def _cell(value: float, n_cells: int) -> int:
    """Cell of [0, 1] that a value lies in; the first and the last reach to infinity."""
    return int(min(max(np.floor(value * n_cells), 0.0), n_cells - 1.0))


@njit(cache=True, nogil=True)
def near_bins(centres: Array, halves: Array) -> Ints:
    """First and last bin that may hold a value, for every feature and cell.

    A cell more on either side makes up for rounding; bins may lie anywhere after training.
    """
    n_features, n_bins = centres.shape
    n_cells = CELLS_PER_BIN * n_bins
    near = np.empty((n_features, n_cells, 2), dtype=np.int64)
    near[:, :, 0], near[:, :, 1] = n_bins, -1
    for f in range(n_features):
        for b in range(n_bins):
            low = _cell(centres[f, b] - halves[f, b], n_cells) - 1
            high = _cell(centres[f, b] + halves[f, b], n_cells) + 1
            for c in range(max(low, 0), min(high, n_cells - 1) + 1):
                near[f, c, 0] = min(near[f, c, 0], b)
                near[f, c, 1] = max(near[f, c, 1], b)
    return near


@njit(cache=True, nogil=True)
def hard_forward(
    values: Array, centres: Array, halves: Array, indptr: Ints, base: float, out: Array
) -> None:
    """Add to `out` (bags, features, bins) what the items of each bag count for the bins."""
    n_features, n_bins = centres.shape
    near = near_bins(centres, halves)
    for s in range(len(indptr) - 1):
        for i in range(indptr[s], indptr[s + 1]):
            for f in range(n_features):
                value = values[i, f]
                cell = _cell(value, CELLS_PER_BIN * n_bins)
                for b in range(near[f, cell, 0], near[f, cell, 1] + 1):
                    inside = halves[f, b] - abs(value - centres[f, b])
                    if inside > 0:
                        out[s, f, b] += np.exp(base * inside)


@njit(cache=True, nogil=True)
def hard_backward(
    values: Array,
    centres: Array,
    halves: Array,
    indptr: Ints,
    base: float,
    gradient: Array,
    by_value: Array,
    by_centre: Array,
    by_half: Array,
) -> None:
    """Add up the derivatives by values, centres and half widths; `gradient` is that of `out`."""
    n_features, n_bins = centres.shape
    near = near_bins(centres, halves)
    for s in range(len(indptr) - 1):
        for i in range(indptr[s], indptr[s + 1]):
            for f in range(n_features):
                value = values[i, f]
                cell = _cell(value, CELLS_PER_BIN * n_bins)
                for b in range(near[f, cell, 0], near[f, cell, 1] + 1):
                    d = value - centres[f, b]
                    inside = halves[f, b] - abs(d)
                    if inside > 0:
                        step = gradient[s, f, b] * base * np.exp(base * inside)
                        signed = step * np.sign(d)
                        by_half[f, b] += step
                        by_value[i, f] -= signed
                        by_centre[f, b] += signed
