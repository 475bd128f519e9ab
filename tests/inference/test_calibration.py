"""Intervals that are too narrow are found out, and widened."""

import numpy as np
import pytest

from headcount import PACC
from headcount.inference import calibration
from headcount.inference.calibration import calibrate_width
from tests.commands import moods


def test_intervals_that_cover_too_rarely_are_widened(monkeypatch):
    """A method whose standard deviations are half as large as they should be."""
    y, p = moods(600, np.random.default_rng(0))
    q = PACC(calibrate_width=False).fit_scores(np.column_stack([1 - p, p]), y)
    assert q.width_scale_ == 1.0
    good = calibrate_width(q)
    assert good.uncalibrated > 0.92 and good.scale < 1.2
    moments = calibration.posterior_moments

    def narrow(*args):
        mean, variance = moments(*args)
        return mean, variance / 4

    monkeypatch.setattr(calibration, "posterior_moments", narrow)
    bad = calibrate_width(q)
    assert bad.uncalibrated < 0.8
    assert bad.scale == pytest.approx(2 * good.scale, rel=0.1)
    assert bad.calibrated > 0.92


def test_fit_stores_the_factor():
    y, p = moods(300, np.random.default_rng(1))
    q = PACC().fit_scores(np.column_stack([1 - p, p]), y)
    scale, *coverage = calibrate_width(q)
    assert q.width_scale_ == scale and q.width_coverage_ == tuple(coverage)
