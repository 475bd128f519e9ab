"""Posteriors from logits that are scaled, and bent by a curve for each class."""

from __future__ import annotations

import numpy as np
from numba import njit

from headcount._core.types import Floats


@njit(cache=True, nogil=True)
def _height(margin: float, corners: Floats, heights: Floats) -> float:
    """Height of a line through the corners."""
    j = 1
    while j < len(corners) - 1 and margin > corners[j]:
        j += 1
    width = corners[j] - corners[j - 1]
    part = (margin - corners[j - 1]) / width if width > 0.0 else 0.0
    value: float = heights[j - 1] + part * (heights[j] - heights[j - 1])
    return value


@njit(cache=True, nogil=True)
def bent_posteriors(
    logits: Floats, scale: float, corners: Floats, heights: Floats, out: Floats
) -> None:
    """Softmax of scale z_k + height of the curve of class k at its log-odds against the rest."""
    n, k = logits.shape
    for i in range(n):
        row = logits[i]
        top, mean = row[0], 0.0
        for c in range(k):
            top = max(top, row[c])
            mean += row[c] / k
        total = 0.0
        for c in range(k):
            out[i, c] = np.exp(row[c] - top)
            total += out[i, c]
        log_total = np.log(total) + top
        best = -np.inf
        for c in range(k):
            if k == 2:
                margin = row[c] - row[1 - c]
            else:
                share = min(row[c] - log_total, -1e-15)
                rest = 1.0 - out[i, c] / total
                margin = share - np.log(rest if rest > 1e-6 else -np.expm1(share))
            margin = min(max(margin, corners[c, 0]), corners[c, -1])
            out[i, c] = scale * (row[c] - mean) + _height(margin, corners[c], heights[c])
            best = max(best, out[i, c])
        total = 0.0
        for c in range(k):
            out[i, c] = np.exp(out[i, c] - best)
            total += out[i, c]
        for c in range(k):
            out[i, c] /= total
