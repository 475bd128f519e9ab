"""How often intervals hold, tried on labelled items, and by how much they must be widened.

A method learns from half of the held-out scores, and its intervals are tried on bags made of the
other half, whose shares are known. Such a bag is drawn from few items, not from all that there
are: that error comes on top of what the interval is about, and is allowed for.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedShuffleSplit

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.inference.intervals import simulator_of
from headcount.inference.simulation import Simulator
from headcount.inference.spread import Request

SIZES = (100, 2000)  # of bags
HALVINGS = 10
FEWEST = 3  # halvings, however long they take
TRIALS = 6  # bags of each size and halving
DRAWS = 60  # simulated bags that tell how much the labelled items add to the error
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
    scorer = quantifier.scorer_
    rng = np.random.default_rng(0)
    request = Request(level=level, n_draws=120, doubt=False)
    needs: list[Floats] = []
    halving = StratifiedShuffleSplit(HALVINGS, test_size=0.5, random_state=0)
    for learnt, other in halving.split(scorer.scores, scorer.codes):
        if len(needs) >= FEWEST and time.process_time() - began > seconds:
            break
        fresh = clone(quantifier)
        if hasattr(fresh, "n_worlds"):  # the simulation has worlds of its own
            fresh.set_params(n_worlds=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            half = fresh.fit_scorer(scorer.part(learnt))
            others = scorer.scores[other], scorer.codes[other]
            needs.append(_try(half, *others, drawing, rng, request))
    every = np.stack(needs)  # halvings, sizes, trials x classes
    factors = tuple(_widening(every[:, s], level) for s in range(len(SIZES)))
    rest = [np.delete(every, h, axis=0) for h in range(len(every))]
    held = [
        every[h, s] <= _widening(rest[h][:, s], level)
        for h in range(len(every))
        for s in range(len(SIZES))
    ]
    return Check(float((every <= 1).mean()), float(np.mean(held)), factors)


def _widening(needs: Floats, level: float) -> float:
    return float(max(1.0, np.quantile(needs, level)))


def _try(
    half: Any, scores: Floats, codes: Ints, drawing: Any, rng: np.random.Generator, request: Request
) -> Floats:
    """For bags of each size, the factor by which each interval would just hold the true share."""
    quick = half.quick_twin()
    k = scores.shape[1]
    own = simulator_of(quick, half.scorer_.scores, half.scorer_.codes)
    needs = []
    for size in SIZES:
        shares = drawing(TRIALS, rng)
        sizes = np.full(TRIALS, size)
        bags, truth = _bags(codes, shares, size, k, rng)
        found = half.bound([(scores, bags)], sizes, request)
        middle, reach = (found.low + found.high) / 2, np.maximum(found.high - found.low, 1e-9) / 2
        added = _labelled_part(own, shares, sizes, rng)
        needs.append((np.abs(truth - middle) / (reach * np.sqrt(1 + added))).ravel())
    return np.stack(needs)


def _bags(
    codes: Ints, shares: Floats, size: int, k: int, rng: np.random.Generator
) -> tuple[Bags, Floats]:
    """Bags of these shares, and their true ones."""
    each = [np.flatnonzero(codes == c) for c in range(k)]
    counts = np.stack([rng.multinomial(size, row / row.sum()) for row in shares])
    rows = [
        np.concatenate([rng.choice(e, n) for e, n in zip(each, row, strict=True)]) for row in counts
    ]
    return Bags.from_lists(rows, n_items=len(codes)), counts / size


def _labelled_part(own: Simulator, shares: Floats, sizes: Ints, rng: np.random.Generator) -> Floats:
    """Share of the error's variance, for each class, that comes from the labelled items."""
    proposals = np.repeat(shares[:, None, :], DRAWS, axis=1)
    variances = []
    for simulator in (own, replace(own, resample=False)):
        found, truths = simulator.run(proposals, sizes, rng, "bag")
        variances.append((found - truths).var(axis=1).mean(axis=0))
    whole, bag = variances
    return np.asarray(np.clip(1.0 - bag / np.maximum(whole, 1e-18), 0.0, 1.0))
