"""Every measure on an example worked by hand."""

import math

import numpy as np
import pytest

from headcount import InputError, measure, signed_errors
from headcount.exceptions import UndefinedMeasureWarning

P, Q = [0.5, 0.3, 0.2], [0.4, 0.2, 0.4]  # absolute errors .1 .1 .2
EPS = 0.05  # a bag of ten; smoothing adds .05 and divides by 1.15
KLD = sum((p + EPS) / 1.15 * math.log((p + EPS) / (q + EPS)) for p, q in zip(P, Q, strict=True))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ae", 0.4 / 3),
        ("nae", 0.4 / (2 * 0.8)),
        ("rae", (0.1 / 0.55 + 0.1 / 0.35 + 0.2 / 0.25) / 3),
        ("nrae", (0.1 / 0.55 + 0.1 / 0.35 + 0.2 / 0.25) / (2 + (1.15 - 0.25) / 0.25)),
        ("se", (0.01 + 0.01 + 0.04) / 3),
        ("kld", KLD),
        ("nkld", 2 * math.exp(KLD) / (1 + math.exp(KLD)) - 1),
        ("nmd", (0.1 + 0.2) / 2),
        # sum_j |i-j| (p_j-q_j)^2 for i = 0, 1, 2: .01+.08=.09, .01+.04=.05, .02+.01=.03
        ("rnod", math.sqrt((0.09 + 0.05 + 0.03) / 3 / 2)),
        ("bias", 0.2),
    ],
)
def test_by_hand(name, value):
    assert measure(name)(P, Q, sizes=10) == pytest.approx(value, abs=1e-12)
    table = measure(name)([P, P], [Q, P], sizes=[10, 10])
    assert table == pytest.approx([value, 0], abs=1e-12)


def test_smoothing_comes_from_each_bags_own_size():
    errors = measure("rae")([[1.0, 0.0]] * 2, [[0.9, 0.1]] * 2, sizes=[10, 1000])
    assert errors == pytest.approx(
        [(0.1 / 1.05 + 0.1 / 0.05) / 2, (0.1 / 1.0005 + 0.1 / 0.0005) / 2]
    )
    assert measure("rae(eps=0.05)")([1.0, 0.0], [0.9, 0.1]) == pytest.approx(errors[0])
    assert measure("rae(eps=0)")([0.5, 0.5], [0.6, 0.4]) == pytest.approx(0.2)


def test_rnod_counts_only_classes_that_occur():
    # p = (1, 0): only class 0 counts, and it sees |0-1| * .2^2.
    assert measure("rnod")([1.0, 0.0], [0.8, 0.2]) == pytest.approx(0.2)


def test_macro_nmd_weighs_intervals_equally():
    # Mean classes: 0 and 0 fall in the first interval, 2 in the last (closed) one.
    true = [[1.0, 0, 0], [1.0, 0, 0], [0, 0, 1.0]]
    est = [[0.8, 0.2, 0], [1.0, 0, 0], [0.0, 0.4, 0.6]]
    nmd = [0.1, 0.0, 0.2]
    assert measure("macro_nmd")(true, est) == pytest.approx((np.mean(nmd[:2]) + nmd[2]) / 2)


def test_carc_is_the_mean_rank_correlation():
    true = [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6]]
    est = [[0.3, 0.7], [0.1, 0.9], [0.5, 0.5], [0.6, 0.4]]
    # ranks 1 2 3 4 against 2 1 3 4: 1 - 6 * 2 / (4 * 15)
    assert measure("carc")(true, est) == pytest.approx(0.8)


@pytest.mark.parametrize("whose", ["true", "estimated"])
def test_carc_of_a_constant_series_is_undefined(whose):
    moving, flat = [[0.1, 0.9], [0.2, 0.8]], [[0.5, 0.5], [0.5, 0.5]]
    pair = (flat, moving) if whose == "true" else (moving, flat)
    with pytest.warns(UndefinedMeasureWarning, match=f"the {whose} share of class number 0"):
        assert math.isnan(measure("carc")(*pair))


def test_q_is_the_harmonic_mean_of_recall_and_agreement():
    # agreement 1 - .1/.6; beta 1
    agreement = 1 - 0.1 / 0.6
    expected = 2 * agreement * 0.7 / (agreement + 0.7)
    assert measure("q")([0.6, 0.4], [0.5, 0.5], recall=0.7) == pytest.approx(expected)
    beta = 5 * agreement * 0.7 / (4 * 0.7 + agreement)
    assert measure("q(beta=2)")([0.6, 0.4], [0.5, 0.5], recall=0.7) == pytest.approx(beta)


def test_signed_errors():
    np.testing.assert_allclose(signed_errors(P, Q)[0], [-0.1, -0.1, 0.2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: measure("rea"), "Did you mean"),
        (lambda: measure("rae(epz=1)"), "unknown option 'epz'"),
        (lambda: measure("rae(eps=x)"), "must be a number"),
        (lambda: measure("rae eps"), "cannot read measure"),
        (lambda: measure("ae(eps=0.1)"), "takes no eps"),
        (lambda: measure("rae(eps=-1)"), "at least 0"),
        (lambda: measure("rae")(P, Q), r"pass sizes=\.\.\., or fix it with rae\(eps"),
        (lambda: measure("rae")(P, Q, sizes=0), "sizes must be positive"),
        (lambda: measure("rae(eps=0)")([1.0, 0.0], [0.5, 0.5]), "undefined where a true share"),
        (lambda: measure("ae")(P, Q[:2]), "off the simplex"),
        (lambda: measure("ae")(P, [0.5, 0.5]), "shapes differ"),
        (lambda: measure("ae")(P, [0.5, 0.5, np.nan]), "NaN"),
        (lambda: measure("ae")(P, [0.5, 0.6, -0.1]), "off the simplex: row 0"),
        (lambda: measure("q")(P, Q, recall=1), "two classes"),
        (lambda: measure("q")([0.5, 0.5], [0.5, 0.5]), "needs recall"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(InputError, match=message):
        call()
