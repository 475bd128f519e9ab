"""Every registered class runs through every check, ours and scikit-learn's."""

import warnings

import pytest

import headcount
from headcount.measures import DEFINITIONS
from headcount.methods.base import without_calibration
from headcount.methods.registry import named_methods
from headcount.methods.solvers import SmoothedEM, StableEM
from headcount.scores.calibrators import CALIBRATORS
from headcount.testing import (
    QUANTIFIER_CHECKS,
    check_measure,
    check_protocol,
    check_quantifier,
    check_scikit_learn,
    scikit_learn_checks,
)
from headcount.testing.estimators import IGNORES_ITEMS, ONE_VECTOR_PER_SET
from headcount.testing.quantifiers import clone

# Texts are its items, which the checks do not make: tests/text/test_text.py tries it.
CLASSES = sorted(
    {m for n, m in named_methods().items() if n != "TextQuantifier" and isinstance(m, type)},
    key=str,
)
# Smaller than the defaults, so that the checks take seconds.
SMALL = {
    "Ensemble": {
        "quantifier": headcount.PACC(cv=2),
        "size": 4,
        "keep": 2,
        "sample_size": 60,
        "min_per_class": 2,
    },
    "MedianOf": {"quantifiers": [headcount.PACC(cv=2), headcount.SLD(cv=2)]},
    "OneVsAll": {"quantifier": headcount.HDy(cv=2)},
    "KDEyHD": {"n_reference": 100},
    "WithIntervals": {"quantifier": headcount.HDx(n_bins=4), "n_bags": 100},
    "ReadMe": {"n_subsets": 10, "n_words": 3},
}


def make(cls, **more):
    """An instance with settings for testing."""
    return cls(**SMALL.get(cls.__name__, {}), **more)


VARIANTS = [
    headcount.PACC(solver="inverse"),
    headcount.PACC(weighting="optimal"),
    headcount.ACC(weighting="optimal"),
    headcount.PACC(cv=0.4),
    headcount.RLLS(hard=True),
    headcount.SLD(solver="em"),
    headcount.SLD(alpha=2),
    headcount.SLD(solver=SmoothedEM(strength=0.1, order=1)),
    headcount.SLD(solver=StableEM(damping=0.7, temperature=1.2)),
    headcount.RML(tau0=1e-3, tau1=1e-3),
    headcount.PACC(tau=0.01),
    headcount.DyS(divergence="hd", n_bins=8, binning="equal_count"),
    headcount.DyS(divergence="probsymm", n_bins=8, binning="normal"),
    headcount.DyS(divergence="l1", n_bins=8, binning="binormal"),
    headcount.DMy(divergence="topsoe", cdf=True, tau=0.01),
    headcount.DMy(divergence="l1"),
    headcount.EDy(distance="euclidean", tau=0.01),
    headcount.MMD(n_features=50, bandwidth=0.5),
    headcount.DMx(tau=0.01),
    headcount.EDx(distance="manhattan"),
    headcount.Ensemble(headcount.PACC(), size=4, keep=2, sample_size=60, policy="ptr"),
    headcount.Ensemble(headcount.SLD(), size=4, keep=2, sample_size=60, policy="rae"),
    headcount.OneVsAll(headcount.DyS(n_bins=8)),
    headcount.MedianOf([headcount.PACC(), headcount.HDx(n_bins=10)]),
    *(headcount.SLD(calibrator=c) for c in CALIBRATORS),
    headcount.PCC(calibrator="isotonic"),
    headcount.PACC(calibrator="platt"),
]
# Calibration of width changes nothing but intervals, which are tested in tests/inference.
QUANTIFIERS = [without_calibration(q) for q in [make(cls) for cls in CLASSES] + VARIANTS]
CALIBRATED = [headcount.PACC(), headcount.SLD(calibrator="bcts")]


@pytest.mark.parametrize("check", QUANTIFIER_CHECKS, ids=lambda c: c.__name__[7:])
@pytest.mark.parametrize("quantifier", QUANTIFIERS + CALIBRATED, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_quantifier(quantifier, check, n_classes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", headcount.HeadcountWarning)
        check(clone(quantifier), n_classes)


def test_the_whole_suite_in_one_call():
    check_quantifier(headcount.PCC(), n_classes=5)


@pytest.mark.parametrize(
    "protocol",
    [
        headcount.UniformPrevalence(n_bags=20, size=30),
        headcount.DirichletPrevalence(n_bags=20, size=30),
        headcount.PrevalenceGrid(n_points=4, repeats=2, size=30),
        headcount.NaturalPrevalence(n_bags=20, size=30),
    ],
    ids=lambda p: type(p).__name__,
)
def test_protocol(protocol):
    check_protocol(protocol)


@pytest.mark.parametrize("spec", [*DEFINITIONS, "rae(eps=0.01)", "q(beta=2)", "kld(eps=0.5)"])
def test_measure(spec):
    check_measure(spec)


# Quantifiers that select, and those of texts; their other tests are in files of their own.
SELECTING = [
    headcount.AutoQuantifier(budget=0, cv=2),
    headcount.AutoQuantifier(budget=1),
    headcount.GridSearch(headcount.PACC(cv=2), {"tau": [0.0, 0.01]}),
    headcount.RandomSearch(headcount.PACC(cv=2), {"tau": [0.0, 0.01]}, n_iter=2),
    headcount.TextQuantifier(),
    headcount.TextQuantifier(headcount.PACC(), fit_once=True),
]


def _sklearn_cases():
    # Some of the checks' data sets have three items of a class.
    small = [make(cls, cv=2) if "cv" in cls().get_params() else make(cls) for cls in CLASSES]
    for quantifier in [*map(without_calibration, small), *SELECTING]:
        for name, run, reason in scikit_learn_checks(quantifier):
            marks = [pytest.mark.skip(reason=reason)] if reason else []
            yield pytest.param(run, marks=marks, id=f"{str(quantifier)[:40]}-{name}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("run", list(_sklearn_cases()))
def test_scikit_learn(run):
    from unittest import SkipTest

    try:
        run()
    except SkipTest as reason:
        pytest.skip(str(reason))


def test_checks_are_left_out_for_two_reasons_only():
    everything = [headcount.MLPE(), *SELECTING]
    reasons = {r for q in everything for _, _, r in scikit_learn_checks(q)}
    assert reasons == {"", ONE_VECTOR_PER_SET, IGNORES_ITEMS}
    selecting = {r for q in SELECTING for _, _, r in scikit_learn_checks(q)}
    assert selecting == {"", ONE_VECTOR_PER_SET}
    for quantifier in SELECTING:
        assert len(list(scikit_learn_checks(quantifier))) > 10


class Restless(headcount.PCC):
    """Changes a parameter in fit."""

    def fit(self, X, y):
        self.cv = 3
        return super().fit(X, y)


def test_scikit_learn_checks_in_one_call():
    check_scikit_learn(headcount.TextQuantifier())

    with pytest.raises(AssertionError):
        check_scikit_learn(Restless())
