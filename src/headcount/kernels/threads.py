"""Run a compiled kernel over ranges of bags, on one thread or several."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from joblib import effective_n_jobs


def over_ranges(work: Callable[[int, int], None], n: int, n_jobs: int | None = None) -> None:
    """Call `work(start, stop)` so that the ranges cover 0..n.

    Kernels release the GIL and write to their own slice of the output, so threads need no locks
    and any number of them gives the same bytes.
    """
    jobs = min(effective_n_jobs(n_jobs), max(n, 1))
    if jobs == 1:
        work(0, n)
        return
    edges = np.linspace(0, n, 4 * jobs + 1).astype(int)
    with ThreadPoolExecutor(jobs) as pool:
        for future in [pool.submit(work, a, b) for a, b in pairwise(edges)]:
            future.result()
