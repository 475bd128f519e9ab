"""Intervals tried on halves of the labelled items: by how much must they be widened to hold.

A method learns from one half of the held-out scores, and its intervals are tried on bags made of
the other half, whose shares are known. Such a bag is drawn from few items, not from all that there
are: that error comes on top of what the interval is about, and is allowed for.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedShuffleSplit

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.inference.simulation import labelled_part, make_simulator
from headcount.inference.spread import Request

HALVINGS = 6
TRIALS = 10  # bags of each halving
SIZE = 500  # of these
DRAWS = 80  # simulated bags for each
FEWEST = 4  # labelled items of a class
Half = tuple[Any, Floats, Ints]  # a method of one half, scores and class numbers of the other


def halve(quantifier: Any, n: int) -> Iterator[Half]:
    """Methods that learnt from one half of the held-out scores, each with the other half."""
    scorer = quantifier.scorer_
    splitter = StratifiedShuffleSplit(n, test_size=0.5, random_state=0)
    for learnt, other in splitter.split(scorer.scores, scorer.codes):
        fresh = clone(quantifier)
        if hasattr(fresh, "n_worlds"):  # the simulation has worlds of its own
            fresh.set_params(n_worlds=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            half = fresh.fit_scorer(scorer.part(learnt))
        yield half, scorer.scores[other], scorer.codes[other]


def needed(
    half: Half, shares: Floats, size: int, rng: np.random.Generator, request: Request
) -> Floats:
    """For bags of the other half, the factor by which each interval would just hold its share.

    Parameters
    ----------
    shares : of the bags, a row each
    size : items of each bag
    """
    method, scores, codes = half
    sizes = np.full(len(shares), size)
    bags, truth = _draw(codes, shares, size, rng)
    request = replace(request, doubt=False, tried=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = method.bound([(scores, bags)], sizes, request)
        added = labelled_part(make_simulator(method), shares, sizes, rng)
    middle, reach = (found.low + found.high) / 2, np.maximum(found.high - found.low, 1e-9) / 2
    return np.asarray(np.abs(truth - middle) / (reach * np.sqrt(1 + added)))


def widening(needs: Floats, level: float) -> float:
    """Factor with which a share `level` of the tried intervals would have held; at least 1."""
    return float(max(1.0, np.quantile(needs, level)))


def widening_of(quantifier: Any, request: Request) -> float:
    """Factor for a method that knows the items of simulated bags better than others.

    It has learnt these very items by heart (a fine histogram, a kernel density), or has bent to
    them (a curve), and finds simulated bags easier than real ones. How much a curve bends falls as
    items are added: half of the variance that is missing on halves is missing with all items.
    """
    if np.bincount(quantifier.scorer_.codes).min() < FEWEST:
        raise InputError(
            f"{type(quantifier).__name__} needs at least {FEWEST} labelled items of every class "
            "for intervals: add some, or use SLD or PACC."
        )
    rng = np.random.default_rng(request.random_state)
    quick = replace(request, n_draws=DRAWS, simultaneous=False, target="bag")
    k = len(quantifier.scorer_.classes)
    needs = [
        needed(half, rng.dirichlet(np.ones(k), size=TRIALS), SIZE, rng, quick)
        for half in halve(quantifier, HALVINGS)
    ]
    factor = widening(np.stack(needs), request.level)
    return factor if quantifier.method_tags().remembers else float(np.sqrt((1 + factor**2) / 2))


def _draw(codes: Ints, shares: Floats, size: int, rng: np.random.Generator) -> tuple[Bags, Floats]:
    """Bags of these shares, and their true ones."""
    each = [np.flatnonzero(codes == c) for c in range(shares.shape[1])]
    counts = np.stack([rng.multinomial(size, row / row.sum()) for row in shares])
    rows = [
        np.concatenate([rng.choice(e, n) for e, n in zip(each, row, strict=True)]) for row in counts
    ]
    return Bags.from_lists(rows, n_items=len(codes)), counts / size
