"""Counting of two-class scores into cells, in one pass over the items."""

from __future__ import annotations

from math import log
from typing import Any

from numba import njit


@njit(cache=True)
def add_two(first: Any, second: Any, groups: Any, posterior: bool, counts: Any, sums: Any) -> int:
    """Add items to the cells of their groups; gives the first row that is no score, or -1.

    Cells are even in the log of the odds from -16 to 16, and hold the number of items and the
    sum of their second score. Of decision values the cells are even in the difference.
    """
    cells = counts.shape[1]
    for i in range(len(first)):
        a, b = first[i], second[i]
        if posterior:
            total = a + b
            if not (a >= 0.0 and b >= 0.0 and abs(total - 1.0) <= 1e-3):
                return i
            b = b / total
            if b <= 1.2e-7:
                place = -16.0
            elif b >= 1.0 - 1.2e-7:
                place = 16.0
            else:
                place = log(b / (1.0 - b))
        else:
            b = b - a
            if not abs(b) < 1e300:
                return i
            place = b
        cell = int((place + 16.0) * (cells / 32.0))
        cell = min(max(cell, 0), cells - 1)
        counts[groups[i], cell] += 1
        sums[groups[i], cell] += b
    return -1
