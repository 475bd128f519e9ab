"""The answer of least expected loss, given draws from the posterior of a bag's shares."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from headcount._core.types import Floats

Draws = NDArray[np.float32]


@njit(cache=True, nogil=True)
def _quantile(values: Floats, summed: Floats, target: float) -> float:
    """Value at which the summed weights reach the target, between draws along a line."""
    n = len(values)
    if target <= summed[0]:
        return values[0]
    if target >= summed[n - 1]:
        return values[n - 1]
    low, high = 0, n - 1
    while high - low > 1:
        middle = (low + high) // 2
        if summed[middle] < target:
            low = middle
        else:
            high = middle
    part = (target - summed[low]) / (summed[high] - summed[low])
    return values[low] + part * (values[high] - values[low])


@njit(cache=True, nogil=True)
def least_absolute(draws: Draws, eps: Floats, out: Floats, start: int, stop: int) -> None:
    """Minimise sum_k E |a_k - p_k| w_k(p) over the simplex, w = 1 / (p + eps), or 1 for eps < 0.

    Without the sum to one each a_k is a weighted median; with it, all are quantiles at one common
    distance from their median in terms of weight, found by bisection.
    """
    n_draws, k = draws.shape[1], draws.shape[2]
    values, summed = np.empty((k, n_draws)), np.empty((k, n_draws))
    for s in range(start, stop):
        widest = 0.0
        for c in range(k):
            values[c] = draws[s, :, c]
            values[c].sort()
            total = 0.0
            for t in range(n_draws):
                weight = 1.0 if eps[s] < 0.0 else 1.0 / (values[c, t] + eps[s])
                summed[c, t] = total + 0.5 * weight  # a draw's weight lies on both of its sides
                total += weight
            summed[c] -= 0.5 * total
            widest = max(widest, total)
        low, high = -0.5 * widest, 0.5 * widest
        for _ in range(60):
            middle = 0.5 * (low + high)
            reached = 0.0
            for c in range(k):
                reached += _quantile(values[c], summed[c], middle)
            if reached < 1.0:
                low = middle
            else:
                high = middle
        total = 0.0
        for c in range(k):
            out[s, c] = _quantile(values[c], summed[c], high)
            total += out[s, c]
        out[s] /= total
