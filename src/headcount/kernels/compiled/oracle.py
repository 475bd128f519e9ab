"""The separation oracle of the Q loss: all pairs of true and false positives."""

from __future__ import annotations

import numpy as np
from numba import njit

from headcount._core.types import Floats


@njit(cache=True, nogil=True)
def best_pair(pos_gain: Floats, neg_gain: Floats, beta: float) -> tuple[int, int]:
    """Numbers of true and false positives that maximise loss plus gain."""
    n_pos, n_neg = len(pos_gain) - 1, len(neg_gain) - 1
    largest = max(n_pos, n_neg)
    weight = beta * beta
    best, best_a, best_b = -np.inf, 0, 0
    for a in range(n_pos + 1):
        recall = a / n_pos
        for b in range(n_neg + 1):
            agreement = 1.0 - abs(n_pos - a - b) / largest
            below = weight * recall + agreement
            quality = (1.0 + weight) * agreement * recall / below if below > 0.0 else 0.0
            value = 100.0 * (1.0 - quality) + pos_gain[a] + neg_gain[b]
            if value > best:
                best, best_a, best_b = value, a, b
    return best_a, best_b
