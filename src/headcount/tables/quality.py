"""Quality of a model on held-out labelled rows."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from headcount.methods.scored import ScoreQuantifier
from headcount.protocols import DirichletPrevalence, NaturalPrevalence, UniformPrevalence
from headcount.tables.training import QualityReport

SHARES = {"no shift": "as labelled", "mild shift": "near the labelled ones"}


def measure_quality(fitted: ScoreQuantifier, n_bags: int = 200) -> QualityReport | None:
    """Mean errors on bags of labelled rows that were not learnt from; None for too few rows.

    The quantifier is fitted again to half of the held-out scores, and bags with random shares are
    drawn from the other half. The coverage of intervals is that of their calibration in `fit`.
    """
    scorer = fitted.scorer_
    held, codes = scorer.scores, scorer.codes
    if not len(codes) or np.bincount(codes).min() < 10:
        return None
    size = int(np.clip(len(codes) // 4, 50, 500))
    expect = getattr(fitted, "expect", "")
    protocol = _protocol(getattr(fitted, "expect", "any shift"), n_bags // 2, size)
    errors = []
    halves = StratifiedShuffleSplit(2, test_size=0.5, random_state=0)
    for train, test in halves.split(held, codes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            half = fitted.fit_copy(scorer.part(train))
            bags = protocol.draw(codes[test])
            estimates = half.estimate([(held[test], bags)])
        counted = bags.shares(held[test].argmax(axis=1), len(fitted.classes_))
        guesses = (estimates, counted, scorer.frequency)
        errors.append([np.abs(guess - bags.prevalence).mean() for guess in guesses])
    shares = SHARES.get(expect, "drawn at random")
    report = QualityReport(n_bags, size, shares, *np.mean(errors, axis=0).tolist())
    plain, coverage = fitted.width_coverage_
    if np.isnan(coverage):  # intervals are 0 to 1, or need no calibration
        return report
    return replace(report, plain=plain, coverage=coverage, scale=fitted.width_scale_)


def _protocol(expect: str, n_bags: int, size: int) -> Any:
    """Bags as the quantifier expects them."""
    kinds: dict[str, Any] = {"no shift": NaturalPrevalence, "mild shift": DirichletPrevalence}
    return kinds.get(expect, UniformPrevalence)(n_bags=n_bags, size=size, random_state=0)
