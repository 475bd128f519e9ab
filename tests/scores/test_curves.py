"""The calibrator that bends scores."""

import numpy as np
import pytest
from scipy.optimize import minimize

from headcount import InputError
from headcount.scores.calibration import SoftmaxCalibrator, centred
from headcount.scores.curves import CurveCalibrator, _log_posteriors, _Problem


def bent(n, k, seed=0):
    """Logits whose posteriors no straight line gives."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, k, n)
    x = rng.normal(size=n) * np.where(codes == 0, 1.0, 2.0) + codes
    return np.column_stack([np.zeros(n), x, *(rng.normal(size=n) for _ in range(k - 2))]), codes


def test_the_optimum_is_that_of_a_general_solver():
    logits, codes = bent(300, 3)
    curves = CurveCalibrator(n_knots=3, strength=2.0).fit(logits, codes)
    problem = _Problem(centred(logits), curves._features(logits), codes, 2.0)
    found = minimize(
        lambda t: problem.value(t)[0], problem.start(), jac=problem.gradient, method="BFGS"
    )
    assert problem.value(curves.theta_)[0] <= found.fun + 1e-6
    np.testing.assert_allclose(curves.theta_, found.x, atol=1e-2)


def test_second_derivatives_are_those_of_the_slopes():
    logits, codes = bent(80, 3)
    curves = CurveCalibrator(n_knots=2, strength=1.0).fit(logits, codes)
    problem = _Problem(centred(logits), curves._features(logits), codes, 1.0)
    theta = curves.theta_ + 0.1
    exact = problem.curvature(problem.value(theta)[1])
    for i in range(len(theta)):
        step = np.zeros_like(theta)
        step[i] = 1e-5
        slope = (problem.gradient(theta + step) - problem.gradient(theta - step)) / 2e-5
        np.testing.assert_allclose(exact[i], slope, atol=1e-4)


def test_a_strong_penalty_leaves_bcts():
    rng = np.random.default_rng(3)
    codes = rng.choice(3, 2000, p=[0.6, 0.3, 0.1])
    logits = rng.normal(size=(2000, 3)) + 1.5 * np.eye(3)[codes]
    stiff = CurveCalibrator(strength=1e9).fit(logits, codes).transform(logits)
    line = SoftmaxCalibrator(bias=True).fit(logits, codes).transform(logits)
    np.testing.assert_allclose(stiff, line, atol=2e-3)


@pytest.mark.parametrize("k", [2, 4])
def test_bent_scores_become_likelier(k):
    logits, codes = bent(4000, k)
    half = np.arange(4000) < 2000
    fits = [CurveCalibrator(), SoftmaxCalibrator(bias=True)]
    loss = []
    for calibrator in fits:
        p = calibrator.fit(logits[half], codes[half]).transform(logits[~half])
        np.testing.assert_allclose(p.sum(axis=1), 1)
        loss.append(-np.log(p[np.arange(2000), codes[~half]]).mean())
    assert loss[0] < loss[1] - 0.02


def test_straight_scores_keep_a_strong_penalty():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, 3000)
    x = rng.normal(size=3000) + 2 * codes
    logits = np.column_stack([np.zeros(3000), 2 * x - 2])
    assert CurveCalibrator().fit(logits, codes).strength_ >= 10


@pytest.mark.parametrize("k", [2, 5])
def test_transform_is_the_formula(k):
    logits, codes = bent(500, k)
    curves = CurveCalibrator().fit(logits, codes)
    far = np.vstack([logits, 40 * logits, np.eye(k) * 800])
    formula = np.exp(_log_posteriors(centred(far), curves._features(far), curves.theta_))
    np.testing.assert_allclose(curves.transform(far), formula, atol=1e-9)


def test_one_step_is_close_to_fitting_anew():
    logits, codes = bent(3000, 3)
    curves = CurveCalibrator(strength=10.0).fit(logits, codes)
    several = list(curves.resampled(logits, codes, 40, np.random.default_rng(0)))
    again = list(
        super(CurveCalibrator, curves).resampled(logits, codes, 40, np.random.default_rng(0))
    )
    spread = [
        np.std([c.transform(logits[:200]) for c in part], axis=0).mean()
        for part in (several, again)
    ]
    assert spread[0] == pytest.approx(spread[1], rel=0.25)
    thetas = np.array([c.theta_ for c in several])
    np.testing.assert_allclose(thetas.mean(axis=0), curves.theta_, atol=1e-9)  # mirrored pairs
    assert np.abs(thetas[0] - curves.theta_).max() > 1e-3


def test_more_items_than_fit_are_thinned_class_by_class(monkeypatch):
    rng = np.random.default_rng(5)
    codes = np.arange(4000) % 2  # in turn: every second item would be of one class
    logits = np.column_stack([np.zeros(4000), rng.normal(size=4000) + 2 * codes])
    whole = CurveCalibrator(strength=100).fit(logits, codes).transform(logits)
    monkeypatch.setattr("headcount.scores.curves.MAX_FEATURE_NUMBERS", 20_000)
    part = CurveCalibrator(strength=100).fit(logits, codes).transform(logits)
    assert np.abs(whole - part).mean() < 0.05


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("size", [1e-8, 1e3, 1e5, 1e9])
def test_decision_values_of_any_size_do(k, size):
    logits, codes = bent(1000, k)
    usual = CurveCalibrator(strength=10).fit(7 * logits, codes).transform(7 * logits)
    other = CurveCalibrator(strength=10).fit(size * logits, codes).transform(size * logits)
    assert np.abs(usual - other).mean() < 0.05


def test_impossible_settings_are_refused():
    logits, codes = bent(50, 2)
    with pytest.raises(InputError, match="strength"):
        CurveCalibrator(strength=0).fit(logits, codes)
    with pytest.raises(InputError, match="strength"):
        CurveCalibrator(strength=np.nan).fit(logits, codes)
    with pytest.raises(InputError, match="n_knots"):
        CurveCalibrator(n_knots=-1).fit(logits, codes)
