"""Methods that are likely to win, in order of preference."""

from __future__ import annotations

from typing import Any

from headcount.measures import Measure, measure
from headcount.methods.adjusting import ACC, PACC
from headcount.methods.bayes import BayesQuantifier
from headcount.methods.counting import PCC
from headcount.methods.density import KDEyML
from headcount.methods.efficient import ELSA
from headcount.methods.histograms import DMy, DyS
from headcount.methods.likelihood import SLD
from headcount.methods.scored import ScoreQuantifier
from headcount.scores.scorer import Scorer

FEW = 20_000  # labelled items up to which kernels at each of them are affordable
DRIFTS = (4.0, 16.0, 1.0)  # that natural bags are tried with, the middle one first

Named = list[tuple[str, ScoreQuantifier]]


def likely_methods(
    scorer: Scorer, which: str | Measure, expect: str, *, natural: bool, n_jobs: int | None
) -> Named:
    """Methods to try on scores, with few draws.

    Natural bags may come of changes that no correction of class shares can know: answers that
    allow for such drift go first there, and then counting calibrated posteriors, which corrects
    nothing.
    """
    two = len(scorer.classes) == 2
    common: Any = {"expect": expect, "n_worlds": 0, "n_draws": 250, "n_jobs": n_jobs}
    found: Named = []
    if natural:
        for drift in DRIFTS:
            careful = BayesQuantifier(measure=which, drift=drift, **common)
            found.append((f"BayesQuantifier, drift {drift:g}", careful))
        found.append(("PCC, bcts", PCC(calibrator="bcts", n_jobs=n_jobs)))
    found.append(("BayesQuantifier, curves", BayesQuantifier(measure=which, **common)))
    if measure(which).name == "rae":  # a wide posterior sends the answer for RAE to the border
        found.append(("BayesQuantifier for ae, curves", BayesQuantifier(measure="ae", **common)))
    if two:
        plain = BayesQuantifier(calibrator=None, likelihood="histograms", measure=which, **common)
        found.append(("BayesQuantifier, histograms", plain))
    found.append(("SLD, bcts", SLD(calibrator="bcts", n_jobs=n_jobs)))
    if natural:  # scores may mean something else there, and rough ones change least
        found += [("ACC", ACC(n_jobs=n_jobs)), ("SLD", SLD(n_jobs=n_jobs))]
    found += [
        ("PACC", PACC(n_jobs=n_jobs)),
        ("DyS", DyS(n_jobs=n_jobs)) if two else ("DMy", DMy(n_jobs=n_jobs)),
    ]
    if two:
        found.append(("ELSA", ELSA(n_jobs=n_jobs)))
    if len(scorer.codes) <= FEW:
        found.append(("KDEyML", KDEyML(n_jobs=n_jobs)))
    if expect == "no shift" and not natural:
        found.append(("PCC, bcts", PCC(calibrator="bcts", n_jobs=n_jobs)))
    return found


def quick_methods(natural: bool = False) -> Named:
    """Methods that scores are judged by before a method is chosen."""
    found: Named = [("SLD", SLD(calibrator="bcts"))]
    return [*found, ("PCC", PCC(calibrator="bcts"))] if natural else found
