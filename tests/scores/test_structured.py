"""Separation oracles against exhaustive labelling, and the machines built on them."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from headcount import (
    SLD,
    SVMAE,
    SVMKLD,
    SVMNKLD,
    SVMQ,
    SVMRAE,
    ConvergenceWarning,
    InputError,
    UniformPrevalence,
)
from headcount.scores.structured import LOSSES, StructuredSVM, count_losses, q_loss, separate
from headcount.testing.quantifiers import make_items


def loss_of(called, positive, loss, beta=1.0):
    n_pos, n_neg = positive.sum(), (~positive).sum()
    if loss == "q":
        return q_loss((called & positive).sum(), (called & ~positive).sum(), n_pos, n_neg, beta)
    return float(count_losses(np.array(called.sum()), n_pos, n_neg, loss))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_oracles_beat_every_labelling(loss, beta):
    rng = np.random.default_rng(0)
    n = 9
    for _ in range(40):
        positive = rng.random(n) < 0.4
        if positive.all() or not positive.any():
            continue
        scores = rng.normal(size=n) * 3
        called, value = separate(scores, positive, loss, beta)

        def total(z, scores=scores, positive=positive):
            return loss_of(z, positive, loss, beta) + 50 / n * (np.where(z, 1, -1) @ scores)

        assert value == pytest.approx(loss_of(called, positive, loss, beta))
        best = max(total(np.array(z)) for z in itertools.product([False, True], repeat=n))
        assert total(called) == pytest.approx(best)


def test_losses_by_hand():
    # 4 positives of 10, 6 called positive.
    assert count_losses(np.array(6), 4, 6, "ae") == pytest.approx(20)
    assert count_losses(np.array(6), 4, 6, "rae") == pytest.approx(50 * (2 / 4.5 + 2 / 6.5))
    kld = 4.5 / 11 * np.log(4.5 / 6.5) + 6.5 / 11 * np.log(6.5 / 4.5)
    assert count_losses(np.array(6), 4, 6, "kld") == pytest.approx(kld)
    nkld = 100 * (2 * np.exp(kld) / (1 + np.exp(kld)) - 1)
    assert count_losses(np.array(6), 4, 6, "nkld") == pytest.approx(nkld)
    # recall 3/4, agreement 1 - 2/6
    assert q_loss(3, 3, 4, 6, 1.0) == pytest.approx(100 * (1 - 2 * 0.75 * (2 / 3) / (0.75 + 2 / 3)))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_machine_is_optimal_to_its_tolerance(loss):
    """No w does better on the whole objective, which is convex."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 2)), None
    y = X[:, 0] + rng.normal(size=60) > 0.5
    C = 100.0 if loss == "kld" else 1.0
    with_one = np.hstack([X, np.ones((60, 1))])
    psi = 50 / 60 * (np.where(y, 1, -1) @ with_one)

    def objective(w):
        called, value = separate(with_one @ w, y, loss)
        slack = max(0.0, value - (psi - 50 / 60 * (np.where(called, 1, -1) @ with_one)) @ w)
        return 0.5 * w @ w + C * slack

    machine = StructuredSVM(loss, C=C, tol=1e-4, max_iter=2000).fit(X, y)
    found = machine.coef_[0]
    for start in (found, np.zeros(3), rng.normal(size=3)):
        better = minimize(objective, start, method="Nelder-Mead", options={"maxiter": 4000})
        assert objective(found) <= better.fun + C * 1e-3 + 1e-3


@pytest.mark.parametrize("method", [SVMKLD(C=1000), SVMNKLD(), SVMQ(), SVMAE(), SVMRAE()])
@pytest.mark.parametrize("k", [2, 3])
def test_quantifiers_count_on_dense_and_sparse_input(method, k):
    X, y = make_items(k, n=500)
    dense = clone(method).fit(X, y)
    np.testing.assert_allclose(dense.predict(X), np.bincount(y) / len(y), atol=0.08)
    thin = clone(method).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(thin.predict(sparse.csr_array(X)), dense.predict(X), atol=1e-6)
    values = dense.classifier_.decision_function(X).reshape(len(y), -1)
    counted = (values > 0).mean(axis=0)
    expected = [1 - counted[0], counted[0]] if k == 2 else counted / counted.sum()
    np.testing.assert_allclose(dense.predict(X), expected)


def test_the_machine_serves_other_methods_as_a_classifier():
    X, y = make_items(2, n=800)
    pool, truth = make_items(2, n=2000, seed=4)
    bags = UniformPrevalence(n_bags=20, size=200, random_state=0).draw(truth)
    p = SLD(StructuredSVM("nkld"), calibrator="platt").fit(X, y).predict_bags(pool, bags)
    assert np.abs(p - bags.prevalence).mean() < 0.05


def test_refusals():
    X, y = make_items(2)
    with pytest.raises(InputError, match="only one class"):
        SVMAE().fit(X, np.zeros(len(y)))
    with pytest.raises(InputError, match="unknown loss"):
        StructuredSVM("mae").fit(X, y)
    with pytest.raises(InputError, match="C must be"):
        SVMQ(C=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        SVMAE(max_iter=2, C=10).fit(X, y)
