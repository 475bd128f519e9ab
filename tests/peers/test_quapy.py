"""Agreement with QuaPy 0.2.3 wherever its settings can be reproduced; `make peers`."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from headcount import (
    ACC,
    CC,
    MAX,
    MS,
    MS2,
    PACC,
    PCC,
    SLD,
    SMM,
    T50,
    DMy,
    DyS,
    EDy,
    HDy,
    KDEyML,
    measure,
)
from headcount.methods import X

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def quapy(scored):
    """Fit a QuaPy method on the same held-out scores; gives estimates for the same bags."""
    aggregative = pytest.importorskip(
        "quapy.method.aggregative", reason="QuaPy is not installed: use `make peers`"
    )
    held_out, y, pool, bags = scored
    k = pool.shape[1]
    dummy = LogisticRegression().fit(np.repeat(np.eye(k), 3, axis=0), np.repeat(np.arange(k), 3))

    def estimates(name, **options):
        if name == "EMQ":
            prior = np.bincount(y) / len(y)
            return np.array([aggregative.EMQ.EM(prior, pool[items])[0] for items in bags])
        if name not in ("CC", "PCC"):
            options["val_split"] = None
        method = getattr(aggregative, name)(dummy, fit_classifier=False, **options)
        method._check_init_parameters()
        hard = name in ("CC", "ACC")
        method.aggregation_fit(held_out.argmax(axis=1) if hard else held_out, y)
        scores = pool.argmax(axis=1) if hard else pool
        return np.array([method.aggregate(scores[items]) for items in bags])

    return estimates


@pytest.mark.parametrize(
    ("ours", "name", "options"),
    [
        (CC(), "CC", {}),
        (PCC(), "PCC", {}),
        (ACC(solver="inverse"), "ACC", {"solver": "exact-raise"}),
        (PACC(solver="inverse"), "PACC", {"solver": "exact-raise"}),
        (SLD(solver="em"), "EMQ", {}),
    ],
    ids=lambda v: str(v) if not isinstance(v, dict) else "",
)
def test_estimates_agree_to_a_millionth(ours, name, options, quapy, scored):
    held_out, y, pool, bags = scored
    mine = ours.fit_scores(held_out, y).predict_scores(pool, bags)
    np.testing.assert_allclose(mine, quapy(name, **options), atol=1e-6)


@pytest.mark.parametrize(("method", "name"), [(ACC(), "ACC"), (PACC(), "PACC")])
def test_constrained_least_squares_is_never_worse_than_slsqp(method, name, quapy, scored):
    held_out, y, pool, bags = scored
    fitted = method.fit_scores(held_out, y)
    mine, theirs = fitted.predict_scores(pool, bags), quapy(name)
    q = fitted._bag_features(pool, bags)

    def loss(p):
        return ((p @ fitted.confusion_.T - q) ** 2).sum(axis=1)

    assert (loss(mine) <= loss(theirs) + 1e-9).all()
    # Where SLSQP comes close to the optimum, it is the same point.
    close = loss(theirs) <= loss(mine) + 1e-10
    np.testing.assert_allclose(mine[close], theirs[close], atol=2e-3)


def test_exact_likelihood_is_never_below_quapys_loose_one(quapy, scored):
    held_out, y, pool, bags = scored
    fitted = SLD().fit_scores(held_out, y)
    mine, theirs = fitted.predict_scores(pool, bags), quapy("EMQ")
    for items, a, b in zip(bags, mine, theirs, strict=True):
        likelihood = pool[items] / fitted.prior_
        assert np.log(likelihood @ a).sum() >= np.log(likelihood @ b).sum() - 1e-9


def test_measures_agree(scored):
    error = pytest.importorskip("quapy.error", reason="QuaPy is not installed: use `make peers`")
    bags = scored[3]
    other = np.random.default_rng(0).dirichlet(np.ones(bags.prevalence.shape[1]), len(bags))
    eps = 1 / (2 * 120)
    for name in ("ae", "nae", "se"):
        theirs = getattr(error, name)(bags.prevalence, other)
        np.testing.assert_allclose(measure(name)(bags.prevalence, other), theirs)
    for name in ("rae", "nrae", "kld", "nkld"):
        theirs = getattr(error, name)(bags.prevalence, other, eps)
        np.testing.assert_allclose(measure(name)(bags.prevalence, other, sizes=120), theirs)


@pytest.fixture
def binary(quapy, scored):
    """The same, for methods of two classes."""
    if scored[2].shape[1] > 2:
        pytest.skip("two classes")
    return quapy


@pytest.mark.parametrize(
    ("ours", "name", "atol"),
    [
        # QuaPy searches 100 points, steps of 1/99 and not of 0.01 as published.
        (HDy(), "HDy", 0.0151),
        (DyS(n_bins=8, divergence="hd"), "DyS", 2e-4),
        (SMM(), "SMM", 1e-9),
        (DMy(), "DMy", 2e-3),
    ],
    ids=lambda v: str(v),
)
def test_binary_matching_agrees(ours, name, atol, binary, scored):
    held_out, y, pool, bags = scored
    mine = ours.fit_scores(held_out, y).predict_scores(pool, bags)
    np.testing.assert_allclose(mine, binary(name), atol=atol)


@pytest.mark.parametrize("method", [X, MAX, T50, MS, MS2])
def test_threshold_methods_agree(method, scored):
    aggregative = pytest.importorskip("quapy.method._threshold_optim")
    held_out, y, pool, bags = scored
    if pool.shape[1] > 2:
        pytest.skip("two classes")
    dummy = LogisticRegression().fit(np.repeat(np.eye(2), 3, axis=0), np.repeat([0, 1], 3))
    theirs = getattr(aggregative, method.__name__)(dummy, fit_classifier=False, val_split=None)
    theirs.aggregation_fit(held_out[:, 1], y)
    expected = np.array([theirs.aggregate(pool[items, 1]) for items in bags])
    mine = method().fit_scores(held_out, y).predict_scores(pool, bags)
    np.testing.assert_allclose(mine, expected, atol=1e-9)


def test_energy_distance_agrees(quapy, scored):
    pytest.importorskip("quadprog")
    held_out, y, pool, bags = scored
    mine = EDy().fit_scores(held_out, y).predict_scores(pool, bags)
    np.testing.assert_allclose(mine, quapy("EDy"), atol=1e-5)


def test_kernel_density_likelihood_is_never_below_quapys(quapy, scored):
    from headcount.kernels import affinity

    held_out, y, pool, bags = scored
    mine = KDEyML().fit_scores(held_out, y)
    p, theirs = mine.predict_scores(pool, bags), quapy("KDEyML")
    density = affinity.gaussian_means(pool, mine._by_class, 0.1)
    for items, a, b in zip(bags, p, theirs, strict=True):
        assert np.log(density[items] @ a).sum() >= np.log(density[items] @ b).sum() - 1e-3
    np.testing.assert_allclose(p, theirs, atol=0.01)
