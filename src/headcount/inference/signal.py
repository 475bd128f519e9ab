"""Test of whether scores carry any class signal."""

from __future__ import annotations

import numpy as np
from scipy.stats import kruskal

from headcount._core.types import Floats, Ints
from headcount.kernels.simplex import rest_columns

SIGNAL_LEVEL = 0.02  # p-value: the share of noise that passes the test (convention)
# Items of a class (convention); with fewer, simulated bags vary too much to need the test.
MIN_ITEMS = 10


def has_signal(scores: Floats, codes: Ints) -> bool:
    """Whether held-out scores differ between classes by more than chance, in any column.

    Kruskal and Wallis (1952), with Bonferroni's correction over the columns. Intervals from scores
    that are noise would be too narrow: a method fits the noise, and bags simulated from the same
    items are estimated well.
    """
    groups = [scores[codes == c] for c in range(scores.shape[1])]
    if min(map(len, groups)) < MIN_ITEMS:
        return True
    p = [
        float(kruskal(*[group[:, c] for group in groups]).pvalue)
        for c in rest_columns(scores.shape[1])
        if np.ptp(scores[:, c]) > 0
    ]
    return bool(p) and min(p) * len(p) < SIGNAL_LEVEL
