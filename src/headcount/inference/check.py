"""How often intervals hold, tried on labelled items, and by how much they must be widened.

Other than what a method does by itself (`headcount.inference.halves`), this is for the shares that
are expected, for small and large bags, and says how often the widened intervals held.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from headcount._core.types import Floats, Ints
from headcount.inference.halves import halve, needed, widening
from headcount.inference.spread import Request

SIZES = (100, 2000)  # of bags
HALVINGS = 10
FEWEST = 3  # halvings, however long they take
TRIALS = 6  # bags of each size and halving
SECONDS = 25.0  # of the processor, which a busy machine does not change; then no more are made


@dataclass(frozen=True)
class Check:
    """What trying the intervals showed.

    Attributes
    ----------
    plain : share of true shares that the intervals held as they were made
    coverage : the same once widened by what the other halvings asked for
    factors : by how much to widen, for groups of `SIZES` rows
    """

    plain: float
    coverage: float
    factors: tuple[float, ...]


def widen_by(factors: tuple[float, ...], sizes: Ints | Floats) -> Floats:
    """Factors for groups of these sizes, between those of `SIZES`."""
    return np.asarray(np.interp(np.log(np.maximum(sizes, 1)), np.log(SIZES), factors))


def check_intervals(
    quantifier: Any, drawing: Any, level: float = 0.95, seconds: float = SECONDS
) -> Check:
    """Try the intervals of a fitted quantifier.

    Parameters
    ----------
    quantifier : fitted quantifier that works on scores
    drawing : function of a number of bags and a generator that gives their shares
    seconds : of the processor, after which no more halvings are made, beyond a few
    """
    began = time.process_time()
    rng = np.random.default_rng(0)
    request = Request(level=level, n_draws=120)
    needs: list[Floats] = []
    for half in halve(quantifier, HALVINGS):
        tried = [needed(half, drawing(TRIALS, rng), size, rng, request) for size in SIZES]
        needs.append(np.stack(tried).reshape(len(SIZES), -1))
        if len(needs) >= FEWEST and time.process_time() - began > seconds:
            break
    every = np.stack(needs)  # halvings, sizes, trials x classes
    factors = tuple(widening(every[:, s], level) for s in range(len(SIZES)))
    rest = [np.delete(every, h, axis=0) for h in range(len(every))]
    held = [
        every[h, s] <= widening(rest[h][:, s], level)
        for h in range(len(every))
        for s in range(len(SIZES))
    ]
    return Check(float((every <= 1).mean()), float(np.mean(held)), factors)
