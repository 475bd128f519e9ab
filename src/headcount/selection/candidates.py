"""Candidate methods of automatic selection, and how a candidate is tried on validation bags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from headcount._core.attempt import attempt
from headcount._core.types import Floats, Ints
from headcount.measures import Measure, measure
from headcount.methods.adjusting import ACC, PACC
from headcount.methods.bayes import BayesQuantifier
from headcount.methods.counting import PCC
from headcount.methods.density import KDEyML
from headcount.methods.efficient import ELSA
from headcount.methods.histograms import DMy, DyS
from headcount.methods.likelihood import SLD
from headcount.methods.scored import ScoreQuantifier

Candidates = dict[str, ScoreQuantifier]  # unfitted, by name and in order of preference
Estimate = Callable[[], tuple[Floats, Floats]]  # fits a candidate; gives truth and estimates
# Enough draws of `BayesQuantifier` for many validation bags. Bootstrap replicates (worlds) serve
# its own intervals alone.
FOR_TRIALS: dict[str, Any] = {"n_worlds": 0, "n_draws": 250}


class Trial(NamedTuple):
    """Errors of a candidate on validation bags, infinite if it failed, and why it did."""

    errors: Floats
    failure: str = ""

    @property
    def error(self) -> float:
        """Mean error; infinite if the candidate failed."""
        return float(self.errors.mean())


def try_candidate(estimate: Estimate, sizes: Ints, which: Measure) -> Trial:
    """Measure the errors of a candidate's estimates of bags of these sizes.

    A candidate that does not suit the data fails (see `attempt`); any other error is raised.
    """

    def errors() -> Floats:
        truth, estimates = estimate()
        return np.atleast_1d(which(truth, estimates, sizes=sizes))

    measured, failure = attempt(errors)
    if measured is not None and not np.isfinite(measured).all():
        measured, failure = None, f"{which} is undefined"
    return Trial(np.full(len(sizes), np.inf) if measured is None else measured, failure)


def default_candidates(
    which: str | Measure,
    expect: str,
    n_classes: int,
    *,
    natural: bool = False,
    representative: bool = True,
) -> Candidates:
    """Candidates in order of preference, for a measure and an expected change of prevalence.

    `natural` bags differ by more than class prevalence. Methods that allow for such drift then come
    first, followed by one that corrects nothing. If the validation bags are not `representative`,
    because they have no drift, methods that trust that there is none are left out.
    """
    two = n_classes == 2
    out: Candidates = {}
    if natural:
        for drift in (4.0, 16.0, 1.0):
            out[f"BayesQuantifier, drift {drift:g}"] = _bayes(which, expect, drift=drift)
        out["PCC, bcts"] = PCC(calibrator="bcts")
    if not representative:
        return out
    out["BayesQuantifier, curves"] = _bayes(which, expect)
    if measure(which).name == "rae":  # a wide posterior has its best answer by RAE at the border
        out["BayesQuantifier for ae, curves"] = _bayes("ae", expect)
    if two:
        histograms: dict[str, Any] = {"calibrator": None, "likelihood": "histograms"}
        out["BayesQuantifier, histograms"] = _bayes(which, expect, **histograms)
    out["SLD, bcts"] = SLD(calibrator="bcts")
    if natural:  # coarse or uncalibrated scores may depend less on the group
        out |= {"ACC": ACC(), "SLD": SLD()}
    out["PACC"] = PACC()
    out |= {"DyS": DyS(), "ELSA": ELSA()} if two else {"DMy": DMy()}
    out["KDEyML"] = KDEyML()
    if expect == "no shift" and not natural:
        out["PCC, bcts"] = PCC(calibrator="bcts")
    return out


def _bayes(which: str | Measure, expect: str, **settings: Any) -> BayesQuantifier:
    made = BayesQuantifier(measure=which, expect=expect, n_draws=1000, **settings)
    made.set_params(n_worlds=10 if made.has_own_posterior else 0)
    return made
