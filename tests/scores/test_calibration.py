import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from headcount.scores import (
    IsotonicCalibrator,
    PlattCalibrator,
    SoftmaxCalibrator,
    cross_fit,
    make_calibrator,
)
from headcount.testing.quantifiers import make_items

SCALINGS = {
    "temperature": SoftmaxCalibrator(),
    "bcts": SoftmaxCalibrator(bias=True),
    "vs": SoftmaxCalibrator(per_class=True, bias=True),
    "nbvs": SoftmaxCalibrator(per_class=True),
}


@pytest.fixture
def logits(rng):
    y = rng.choice(3, 800, p=[0.5, 0.3, 0.2])
    return 2.5 * (1.2 * np.eye(3)[y] + rng.normal(size=(800, 3))) + [0.5, 0, -0.5], y


@pytest.mark.parametrize("name", SCALINGS)
def test_scalings_reach_the_maximum_likelihood(name, logits):
    z, y = logits
    calibrator = SCALINGS[name].fit(z, y)
    centred = (z - z.mean(axis=1, keepdims=True) - calibrator.shift_) / calibrator.unit_
    n_scales = 3 if calibrator.per_class else 1

    def loss(theta):
        bias = theta[n_scales:] if calibrator.bias else 0
        logp = log_softmax(centred * theta[:n_scales] + bias, axis=1)
        return -logp[np.arange(len(y)), y].mean()

    size = n_scales + (3 if calibrator.bias else 0)
    start = np.concatenate([np.ones(n_scales), np.zeros(size - n_scales)])
    best = minimize(loss, start, method="Nelder-Mead", options={"maxiter": 20_000, "xatol": 1e-8})
    found = np.concatenate([calibrator.scale_, calibrator.bias_ if calibrator.bias else []])
    assert loss(found) <= best.fun + 1e-5


def test_bias_makes_the_mean_posterior_the_class_frequency(logits):
    z, y = logits
    for name in ("bcts", "vs"):
        mean = SCALINGS[name].fit(z, y).transform(z).mean(axis=0)
        np.testing.assert_allclose(mean, np.bincount(y) / len(y), atol=1e-4)


def test_separable_data_stay_finite():
    z = np.array([[5.0, 0.0], [4.0, 0.0], [0.0, 5.0], [0.0, 3.0]])
    y = np.array([0, 0, 1, 1])
    for calibrator in [*SCALINGS.values(), PlattCalibrator(), IsotonicCalibrator()]:
        posterior = calibrator.fit(z, y).transform(z)
        assert np.isfinite(posterior).all()
        assert (posterior.argmax(axis=1) == y).all()


def test_platt_agrees_with_scikit_learn():
    X, y = make_items(2, n=500)
    svm = LinearSVC().fit(X, y)
    theirs = CalibratedClassifierCV(FrozenEstimator(svm), method="sigmoid", cv=2).fit(X, y)
    d = svm.decision_function(X)
    a, b = PlattCalibrator().fit(np.column_stack([-d / 2, d / 2]), y).curves_[0]
    sigmoid = theirs.calibrated_classifiers_[0].calibrators[0]
    assert a == pytest.approx(-sigmoid.a_, rel=0.02)
    assert b == pytest.approx(-sigmoid.b_, abs=0.02)


def test_isotonic_is_scikit_learns_curve(logits):
    z, y = logits
    posterior = np.exp(log_softmax(z, axis=1))
    odds = np.log(posterior / (1 - posterior))
    raw = np.column_stack(
        [
            IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
            .fit(odds[:, c], y == c)
            .predict(odds[:, c])
            for c in range(3)
        ]
    )
    got = IsotonicCalibrator().fit(z, y).transform(z)
    np.testing.assert_allclose(got, raw / raw.sum(axis=1, keepdims=True), atol=1e-9)


def test_a_calibrator_of_the_users_own_is_cloned():
    mine = SoftmaxCalibrator(bias=True)
    assert make_calibrator(mine) is not mine
    assert make_calibrator(None) is make_calibrator("none") is None


def test_cross_fit_scores_come_from_models_that_never_saw_the_item():
    X, y = make_items(3)
    done = cross_fit(LogisticRegression(), X, y, cv=4, whole=True, random_state=3)
    expected = np.empty((len(y), 3))
    for train, test in StratifiedKFold(4, shuffle=True, random_state=3).split(X, y):
        model = LogisticRegression().fit(X[train], y[train])
        expected[test] = model.predict_proba(X[test])
    np.testing.assert_allclose(done.scores, expected)
    np.testing.assert_array_equal(done.codes, y)
    np.testing.assert_allclose(
        done.whole.predict_proba(X), LogisticRegression().fit(X, y).predict_proba(X)
    )


def test_hold_out_scores_only_the_share_held_out():
    X, y = make_items(2)
    done = cross_fit(LogisticRegression(), X, y, cv=0.4, random_state=0)
    assert len(done.scores) == len(done.codes) == int(np.ceil(0.4 * len(y)))
    assert done.frequency.tolist() == (np.bincount(y) / len(y)).tolist()
