"""Counting of two-class scores into cells, in one pass over the items."""

from __future__ import annotations

from math import log
from typing import Any

from numba import njit


@njit(cache=True)
def add_two(
    first: Any,
    second: Any,
    groups: Any,
    weights: Any,
    posterior: bool,
    centre: float,
    scale: float,
    counts: Any,
    sums: Any,
) -> int:
    """Add items to the cells of their groups; gives the first row that is no score, or -1.

    Cells of posteriors are even in the log of the odds from -16 to 16. Those of decision values
    are even in the difference of the two, as far as most of the known ones lie from their centre,
    and wider beyond. Each holds the weight of its items and the sums of their scores.
    """
    cells = counts.shape[1]
    for i in range(len(first)):
        a, b = first[i], second[i]
        if posterior:
            total = a + b
            if not (a >= 0.0 and b >= 0.0 and abs(total - 1.0) <= 1e-3):
                return i
            a, b = a / total, b / total
            if b <= 1.2e-7:
                place = -1.0
            elif b >= 1.0 - 1.2e-7:
                place = 1.0
            else:
                place = log(b / (1.0 - b)) / 16.0
        else:
            if not abs(b - a) < 1e300:
                return i
            place = (b - a - centre) / scale
            if abs(place) > 1.5:
                beyond = 1.5 + 0.5 * log(abs(place) / 1.5)
                place = beyond if place > 0 else -beyond
            place /= 2.5
        cell = int((place + 1.0) * 0.5 * cells)
        cell = min(max(cell, 0), cells - 1)
        counts[groups[i], cell] += weights[i]
        sums[groups[i], cell, 0] += weights[i] * a
        sums[groups[i], cell, 1] += weights[i] * b
    return -1
