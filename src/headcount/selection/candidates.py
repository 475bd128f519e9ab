"""Candidate methods of automatic selection, and how a candidate is tried on validation bags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from headcount._core.attempt import attempt
from headcount._core.types import Floats, Ints
from headcount.measures import Measure, measure
from headcount.methods.adjusting import ACC, PACC
from headcount.methods.base import Quantifier
from headcount.methods.bayes import BayesQuantifier
from headcount.methods.counting import PCC
from headcount.methods.density import KDEyML
from headcount.methods.efficient import ELSA
from headcount.methods.histograms import DMy, DyS
from headcount.methods.likelihood import SLD
from headcount.methods.scored import ScoreQuantifier

AnyQuantifier = TypeVar("AnyQuantifier", bound=Quantifier)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A method that may be selected.

    Attributes
    ----------
    name : str
    quantifier : unfitted quantifier on scores, as it is fitted once it is selected
    trial : the same with settings that are cheap enough for many validation bags
    """

    name: str
    quantifier: ScoreQuantifier
    trial: ScoreQuantifier


@dataclass(frozen=True, eq=False)
class Trial:
    """Errors of a candidate on validation bags.

    Attributes
    ----------
    errors : one per bag, or a single one for a measure over bags; infinite if it failed
    failure : why the candidate does not suit the data; empty if it does
    """

    errors: Floats
    failure: str = ""

    @property
    def error(self) -> float:
        """Mean error; infinite if the candidate failed."""
        return float(self.errors.mean())


Estimate = Callable[[], tuple[Floats, Floats]]  # fits a candidate; gives truth and estimates


def try_candidate(estimate: Estimate, sizes: Ints, which: Measure) -> Trial:
    """Measure the errors of a candidate's estimates.

    A candidate that does not suit the data fails (see `attempt`); any other error is raised.

    Parameters
    ----------
    estimate : function that fits the candidate and gives true and estimated prevalences of bags
    sizes : number of items in each bag
    which : measure
    """

    def errors() -> Floats:
        truth, estimates = estimate()
        return np.atleast_1d(which(truth, estimates, sizes=sizes))

    measured, failure = attempt(errors)
    if measured is not None and not np.isfinite(measured).all():
        measured, failure = None, f"{which} is undefined"
    return Trial(np.full(len(sizes), np.inf) if measured is None else measured, failure)


def without_calibration(quantifier: AnyQuantifier) -> AnyQuantifier:
    """Clone of a quantifier whose intervals are not calibrated, nor those of its members.

    Candidates are compared by their estimates, so that calibrating the width of their intervals
    would be wasted. Quantifiers without the parameter ``calibrate_width`` are cloned as they are.
    """
    names = quantifier.get_params(deep=True)
    off = {name: False for name in names if name.split("__")[-1] == "calibrate_width"}
    fresh: AnyQuantifier = clone(quantifier).set_params(**off)
    return fresh


def default_candidates(
    which: str | Measure,
    expect: str,
    n_classes: int,
    *,
    natural: bool = False,
    representative: bool = True,
) -> list[Candidate]:
    """Candidates in order of preference.

    Parameters
    ----------
    which : measure
    expect : expected change of prevalence, as in `BayesQuantifier`
    n_classes : int
    natural : bool
        Whether bags differ by more than class prevalence. Methods that allow for such drift then
        come first, followed by one that corrects nothing.
    representative : bool
        Whether the validation bags have such drift too. If not they cannot tell what it takes to
        allow for it, and methods that trust that there is none are left out.
    """
    two = n_classes == 2
    bayes = _bayes(which, expect)
    pcc = _plain("PCC, bcts", PCC(calibrator="bcts"))
    candidates = []
    if natural:
        for drift in (4.0, 16.0, 1.0):
            candidates.append(_bayes(which, expect, f", drift {drift:g}", drift=drift))
        candidates.append(pcc)
    if not representative:
        return candidates
    candidates.append(bayes)
    if measure(which).name == "rae":  # a wide posterior has its best answer by RAE at the border
        candidates.append(_bayes("ae", expect, " for ae, curves"))
    if two:
        histograms: dict[str, Any] = {"calibrator": None, "likelihood": "histograms"}
        candidates.append(_bayes(which, expect, ", histograms", **histograms))
    candidates.append(_plain("SLD, bcts", SLD(calibrator="bcts")))
    if natural:  # coarse or uncalibrated scores may depend less on the group
        candidates += [_plain("ACC", ACC()), _plain("SLD", SLD())]
    candidates.append(_plain("PACC", PACC()))
    candidates.append(_plain("DyS", DyS()) if two else _plain("DMy", DMy()))
    if two:
        candidates.append(_plain("ELSA", ELSA()))
    candidates.append(_plain("KDEyML", KDEyML()))
    if expect == "no shift" and not natural:
        candidates.append(pcc)
    return candidates


def _plain(name: str, quantifier: ScoreQuantifier) -> Candidate:
    return Candidate(name, quantifier, quantifier)


def _bayes(which: str | Measure, expect: str, name: str = ", curves", **settings: Any) -> Candidate:
    """Candidate with few draws for trials; bootstrap replicates serve its own intervals alone."""
    final = BayesQuantifier(measure=which, expect=expect, n_draws=1000, **settings)
    final.set_params(n_worlds=10 if final.has_own_posterior else 0)
    trial = clone(final).set_params(n_worlds=0, n_draws=250)
    return Candidate(f"BayesQuantifier{name}", final, trial)
