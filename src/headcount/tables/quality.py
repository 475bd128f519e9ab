"""How good a model is, by labelled rows that it had not learnt from."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedShuffleSplit

from headcount._core.types import Floats
from headcount.inference.check import SECONDS, check_intervals
from headcount.methods.scored import ScoreQuantifier
from headcount.protocols import DirichletPrevalence, NaturalPrevalence, UniformPrevalence

USELESS = 0.8  # of the error that saying the labelled shares every time has


def quality(
    fitted: ScoreQuantifier, seconds: float = np.inf, n_bags: int = 200
) -> dict[str, Any] | None:
    """How far estimates are off on bags of labelled rows that they were not learnt from.

    Half of the held-out scores are learnt from anew, and bags with shares drawn at random are
    made of the other half. None where there are too few rows for that. Intervals are tried for
    about so many `seconds`, or as long as `check_intervals` does if that is less.

    Returns
    -------
    dict
        Mean errors of the estimates, of plain counting (`counting`) and of always saying the
        labelled shares (`constant`); how often intervals held (`plain`), how often once widened
        (`coverage`), and by what (`factors`).
    """
    scorer = fitted.scorer_
    held, codes = scorer.scores, scorer.codes
    if not len(codes) or np.bincount(codes).min() < 10:
        return None
    size = int(np.clip(len(codes) // 4, 50, 500))
    errors = []
    drawing = _expected(fitted, n_bags // 2, size)
    halving = StratifiedShuffleSplit(2, test_size=0.5, random_state=0)
    for learnt, other in halving.split(held, codes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            half = clone(fitted).fit_scorer(scorer.part(learnt))
            drawn = drawing.draw(codes[other])
            found = half.estimate([(held[other], drawn)])
        truth = drawn.prevalence
        assert truth is not None
        counted = drawn.shares(held[other].argmax(axis=1), len(fitted.classes_))
        guesses = (found, counted, scorer.frequency)
        errors.append([np.abs(guess - truth).mean() for guess in guesses])
    ours, counting, constant = np.mean(errors, axis=0).tolist()
    expect = getattr(fitted, "expect", "")
    checked = {"plain": 1.0, "coverage": 1.0, "factors": ()}  # where it says 0 to 1
    if fitted.flat_ is None:
        shares = _Shares(expect, scorer.frequency)
        checked = asdict(check_intervals(fitted, shares, seconds=min(seconds, SECONDS)))
    return {
        "bags": n_bags,
        "size": size,
        "shares": {"no shift": "as labelled", "mild shift": "near the labelled ones"}.get(
            expect, "drawn at random"
        ),
        "error": ours,
        "counting": counting,
        "constant": constant,
        **checked,
    }


def is_useless(found: dict[str, Any] | None, expect: str = "learn") -> bool:
    """Whether always saying the labelled shares would be about as good."""
    if found is None or expect == "no shift":
        return False
    return bool(found["error"] > USELESS * found["constant"])


class _Shares:
    """Draws shares as a quantifier was told to expect them; half of them near, if it was not."""

    def __init__(self, expect: Any, frequency: Floats):
        self.expect, self.frequency = expect, frequency

    def __call__(self, n: int, rng: np.random.Generator) -> Floats:
        if self.expect == "no shift":
            return np.tile(self.frequency, (n, 1))
        if self.expect == "mild shift":
            return rng.dirichlet(np.maximum(30 * self.frequency, 1e-2), size=n)
        shares = rng.dirichlet(np.ones(len(self.frequency)), size=n)
        shares[::2] = shares[::2] / 3 + self.frequency * 2 / 3
        return shares


def _expected(fitted: ScoreQuantifier, n_bags: int, size: int) -> Any:
    """Bags as the quantifier was told to expect them; of any shares, if it was not."""
    common: Any = {"n_bags": n_bags, "size": size, "random_state": 0}
    expect = getattr(fitted, "expect", "any shift")
    if expect == "no shift":
        return NaturalPrevalence(**common)
    if expect == "mild shift":
        return DirichletPrevalence(**common)
    return UniformPrevalence(**common)
