"""Whether scores tell any class from the others at all: if not, nothing can be said of shares."""

from __future__ import annotations

import numpy as np
from scipy.stats import kruskal

from headcount._core.types import Floats, Ints
from headcount.kernels.simplex import rest_columns

LEVEL = 0.02  # of the test; noise passes it that often
FEWEST = 10  # items of a class that the test needs; of fewer, simulated bags know little anyway


def tells_apart(scores: Floats, codes: Ints) -> bool:
    """Whether held-out scores differ between classes by more than chance, in any column.

    An interval made of scores that are noise would follow the noise: the method bends to it, and
    bags that are made of the same items are estimated well.
    """
    each = [scores[codes == c] for c in range(scores.shape[1])]
    if min(map(len, each)) < FEWEST:
        return True
    p = [
        float(kruskal(*[part[:, c] for part in each]).pvalue)
        for c in rest_columns(scores.shape[1])
        if np.ptp(scores[:, c]) > 0
    ]
    return bool(p) and min(p) * len(p) < LEVEL
