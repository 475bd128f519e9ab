"""Calibration of interval width: finds intervals that are too narrow, and leaves others alone."""

import numpy as np
import pytest
from scipy.special import softmax

from headcount import PACC, SLD, AutoQuantifier, GridSearch, KDEyML, UniformPrevalence
from headcount.inference.calibration import calibrate_width
from headcount.testing.quantifiers import make_items


def weak_scores(n: int, k: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Posteriors of items that are hard to tell apart, and their classes."""
    codes = np.concatenate([np.arange(k).repeat(10), rng.integers(k, size=n - 10 * k)])
    return softmax(rng.normal(size=(n, k)) + 1.2 * np.eye(k)[codes], axis=1), codes


class Memorising:
    """The simulation of a method that knows the very items it learnt from: half of its errors."""

    def __init__(self, q):
        self.q = q

    def estimate(self, views):
        (scores, bags) = views[0]
        estimates = self.q.estimate(views)
        if scores is not self.q.scorer_.scores:
            return estimates
        truth = bags.shares(self.q.scorer_.codes, estimates.shape[1])
        return truth + (estimates - truth) / 2


class Narrow(PACC):
    def simulation_twin(self):
        return Memorising(self)


def test_intervals_that_are_too_narrow_are_widened():
    scores, codes = weak_scores(900, 3, np.random.default_rng(0))
    right, narrow = (cls().fit_scores(scores, codes) for cls in (PACC, Narrow))
    assert 0.9 <= right.width_scale_ < 1.2
    assert 1.5 < narrow.width_scale_ < 2.8  # half of the errors: about twice
    assert narrow.width_coverage_[0] < 0.8
    assert narrow.width_coverage_[1] > 0.9


def test_the_scale_multiplies_the_width():
    X, y = make_items(3, n=300, seed=0)
    pool, _ = make_items(3, n=300, seed=1)
    q = KDEyML().fit(X, y)
    assert q.width_scale_ > 1.1
    wide = q.predict_draws(pool)
    q.width_scale_ = 1.0
    assert np.allclose(wide.variance, wide.variance[0])
    plain = q.predict_draws(pool)
    assert (wide.variance > 1.2 * plain.variance).all()


def test_calibration_is_repeatable_and_can_be_turned_off():
    scores, codes = weak_scores(300, 3, np.random.default_rng(0))
    q = SLD(calibrator="bcts").fit_scores(scores, codes)
    assert calibrate_width(q) == calibrate_width(q)
    assert calibrate_width(q).scale == q.width_scale_
    off = SLD(calibrator="bcts", calibrate_width=False).fit_scores(scores, codes)
    assert off.width_scale_ == 1.0
    bags = UniformPrevalence(n_bags=5, size=50, random_state=0).draw(codes)
    assert np.array_equal(off.predict_scores(scores, bags), q.predict_scores(scores, bags))


@pytest.mark.parametrize("per_class", [3, 2500])
def test_too_few_items_and_very_many_need_none(per_class):
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], per_class)
    positive = np.clip(0.5 + 0.3 * (codes - 0.5) + 0.1 * rng.normal(size=len(codes)), 0.01, 0.99)
    q = PACC().fit_scores(positive, codes)
    assert q.width_scale_ == 1.0
    assert np.isnan(q.width_coverage_).all()


def test_candidates_are_not_calibrated_and_winners_are(monkeypatch):
    calls = []

    def count(q):
        calls.append(q)
        return calibrate_width(q)

    monkeypatch.setattr("headcount.methods.scored.calibrate_width", count)
    X, y = make_items(2, n=200, seed=0)
    GridSearch(PACC(), {"classifier__C": [0.1, 1.0], "tau": [0.0, 0.1]}, random_state=0)
    GridSearch(PACC(), {"tau": [0.0, 0.1]}).fit(X, y)
    assert len(calls) == 1
    AutoQuantifier(budget=0).fit(X, y)
    assert len(calls) == 2
