"""Drawing of simulated bags: items of known classes from resampled labelled items."""

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
    rows: Any,
    starts: Any,
    drawn_from: Any,
    replicate: Any,
    novelty: Any,
    counts: Any,
    streams: Any,
    out: Any,
) -> None:
    """Fill `out` with the items of bags, one bag after the other and class by class.

    `rows` holds the resampled items of every replicate by class, `replicate` says from which of
    them a bag is drawn, `counts` how many items of each class it has. With the probability
    `novelty` of its class, an item is any labelled one. All bags of a replicate use its stream.
    """
    n = np.uint64(rows.shape[1])
    place = 0
    for b in range(len(counts)):
        r = replicate[b]
        state = streams[r]
        for c in range(counts.shape[1]):
            first, length = starts[c], np.uint64(drawn_from[c])
            border = np.uint64(novelty[r, c] * 4294967296.0)
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
                    out[place] = rows[r, first + np.int64((high * length) >> HALF)]
                place += 1


@njit(cache=True)
def spread_items(rows: Any, starts: Any, sizes: Any, replicate: Any, counts: Any, out: Any) -> None:
    """Fill `out` with items at even steps through the resampled items of each class."""
    place = 0
    for b in range(len(counts)):
        r = replicate[b]
        for c in range(counts.shape[1]):
            for i in range(counts[b, c]):
                out[place] = rows[r, starts[c] + ((2 * i + 1) * sizes[c]) // (2 * counts[b, c])]
                place += 1
