"""Drawing of simulated bags: items of known classes out of resampled labelled ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from headcount.kernels.random import GAMMA, MIX1, MIX2

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
S30, S27, S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@njit(cache=True)
def draw_items(
    rows: Any, starts: Any, sizes: Any, world: Any, unlike: Any, counts: Any, seed: Any, out: Any
) -> None:
    """Fill `out` with the items of bags, one bag after the other and class by class.

    `rows` holds the resampled items of every world by class, `world` says which of them a bag
    lives in, `counts` how many items of each class it has. An item is any labelled one, whatever
    its class, with the probability that `unlike` gives for its class in that world.
    """
    n = np.uint64(rows.shape[1])
    place = 0
    state = seed
    for b in range(len(counts)):
        w = world[b]
        for c in range(counts.shape[1]):
            first, length = starts[c], np.uint64(sizes[c])
            border = np.uint64(unlike[w, c] * 4294967296.0)
            for _ in range(counts[b, c]):
                state += GAMMA
                z = state
                z = (z ^ (z >> S30)) * MIX1
                z = (z ^ (z >> S27)) * MIX2
                z = z ^ (z >> S31)
                high = z >> HALF
                if (z & LOW) < border:
                    out[place] = (high * n) >> HALF
                else:
                    out[place] = rows[w, first + np.int64((high * length) >> HALF)]
                place += 1
