"""Threshold methods, sweeps and ordered distances against direct computations."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from headcount import MAX, MS, MS2, PACC, SMM, SORD, T50, ContinuousSweep, DyS, InputError
from headcount.exceptions import UnreliableWarning
from headcount.kernels.compiled.scores import _median
from headcount.methods import X
from headcount.testing.quantifiers import make_items


@pytest.fixture(scope="module")
def two(request):
    rng = np.random.default_rng(3)
    y = rng.choice(2, 400, p=[0.7, 0.3])
    train = np.round(1 / (1 + np.exp(-(1.5 * (2 * y - 1) + rng.normal(size=400) * 1.5))), 2)
    truth = rng.choice(2, 3000, p=[0.7, 0.3])
    pool = np.round(1 / (1 + np.exp(-(1.5 * (2 * truth - 1) + rng.normal(size=3000) * 1.5))), 2)
    from headcount import UniformPrevalence

    bags = UniformPrevalence(n_bags=25, size=90, random_state=0).draw(truth)
    return train, y, pool, bags


def rates(train, y):
    cuts = np.unique(train)
    tpr = np.array([(train[y == 1] >= t).mean() for t in cuts])
    fpr = np.array([(train[y == 0] >= t).mean() for t in cuts])
    keep = tpr != fpr
    return cuts[keep], tpr[keep], fpr[keep]


@pytest.mark.parametrize(
    ("method", "rule"),
    [
        (X(), lambda tpr, fpr: np.abs(1 - (tpr + fpr))),
        (MAX(), lambda tpr, fpr: fpr - tpr),
        (T50(), lambda tpr, fpr: np.abs(tpr - 0.5)),
    ],
)
def test_single_thresholds(method, rule, two):
    train, y, pool, bags = two
    cuts, tpr, fpr = rates(train, y)
    best = np.argmin(rule(tpr, fpr))
    p = method.fit_scores(train, y).predict_scores(pool, bags)[:, 1]
    share = np.array([(pool[i] >= cuts[best]).mean() for i in bags])
    np.testing.assert_allclose(p, np.clip((share - fpr[best]) / (tpr[best] - fpr[best]), 0, 1))


@pytest.mark.parametrize(("method", "least"), [(MS(), None), (MS2(), 0.25)])
def test_median_sweeps(method, least, two):
    train, y, pool, bags = two
    cuts, tpr, fpr = rates(train, y)
    keep = np.ones(len(cuts), bool) if least is None else tpr - fpr > least
    p = method.fit_scores(train, y).predict_scores(pool, bags)[:, 1]
    for s, items in enumerate(bags):
        share = (pool[items][:, None] >= cuts[keep]).mean(axis=0)
        adjusted = np.clip((share - fpr[keep]) / (tpr[keep] - fpr[keep]), 0, 1)
        assert p[s] == pytest.approx(np.median(adjusted), abs=1e-12)


def test_median_sweep_over_evenly_spaced_thresholds(two):
    train, y, pool, bags = two
    cuts = np.linspace(0, 1, 21)
    tpr, fpr = ((train[y == c][:, None] >= cuts).mean(axis=0) for c in (1, 0))
    keep = tpr != fpr
    p = MS(n_thresholds=21).fit_scores(train, y).predict_scores(pool, bags)[:, 1]
    for s in range(0, 25, 5):
        share = (pool[bags.items(s)][:, None] >= cuts[keep]).mean(axis=0)
        adjusted = np.clip((share - fpr[keep]) / (tpr[keep] - fpr[keep]), 0, 1)
        assert p[s] == pytest.approx(np.median(adjusted), abs=1e-12)


def test_bucket_median_is_the_median(rng):
    for n in (1, 2, 7, 5000):
        for values in (rng.random(n), np.round(rng.random(n), 1), np.zeros(n), np.ones(n)):
            cells = (values * 256).astype(np.int32)
            got = _median(values, cells, np.empty(257, np.int64), np.empty(n))
            assert got == pytest.approx(np.median(values), abs=1e-15)
    clipped = np.clip(rng.normal(size=5000) * 20, 0, 1)
    cells = (clipped * 256).astype(np.int32)
    got = _median(clipped, cells, np.empty(257, np.int64), np.empty(5000))
    assert got == pytest.approx(np.median(clipped), abs=1e-15)


def test_sord_minimises_the_earth_movers_distance(two):
    from scipy.stats import wasserstein_distance

    train, y, pool, bags = two
    p = SORD().fit_scores(train, y).predict_scores(pool, bags)[:, 1]
    for s in range(0, 25, 5):
        bag = pool[bags.items(s)]

        def distance(a, bag=bag):
            weights = np.where(y == 1, a / (y == 1).sum(), (1 - a) / (y == 0).sum())
            return wasserstein_distance(train, bag, weights + 1e-15)

        best = min(distance(a) for a in np.linspace(0, 1, 201))
        assert distance(p[s]) <= best + 1e-6


def test_continuous_sweep_is_the_mean_adjusted_count(two):
    train, y, pool, bags = two
    sweep = ContinuousSweep().fit_scores(train, y)
    p = sweep.predict_scores(pool, bags)[:, 1]

    def logit(v):
        v = np.clip(v, 1e-6, 1 - 1e-6)
        return np.log(v / (1 - v))

    from headcount.methods.ordered import survival

    pad = 0.1 * np.ptp(logit(train))
    grid = np.linspace(logit(train).min() - pad, logit(train).max() + pad, 2001)
    tpr, fpr = (survival(logit(train)[y == c], grid) for c in (1, 0))
    good = tpr - fpr >= 0.25
    for s in range(0, 25, 5):
        above = (logit(pool[bags.items(s)])[:, None] > grid[good]).mean(axis=0)
        mean = ((above - fpr[good]) / (tpr - fpr)[good]).mean()
        assert p[s] == pytest.approx(np.clip(mean, 0, 1), abs=2e-3)


def test_survival_is_a_smoothed_share_above():
    from headcount.methods.ordered import survival

    values = np.random.default_rng(0).normal(size=20_000)
    grid = np.linspace(-2, 2, 9)
    np.testing.assert_allclose(survival(values, grid), (values[:, None] > grid).mean(0), atol=0.01)


def test_smm_is_pacc_for_two_classes(two):
    train, y, pool, bags = two
    smm = SMM().fit_scores(train, y).predict_scores(pool, bags)
    pacc = PACC().fit_scores(train, y).predict_scores(pool, bags)
    np.testing.assert_allclose(smm, pacc, atol=1e-8)


@pytest.mark.parametrize("method", [X, MAX, T50, MS, MS2, ContinuousSweep, SORD, SMM])
def test_decision_values_do(method):
    items, y = make_items(2, n=800)
    pool, truth = make_items(2, n=800, seed=7)
    p = method(LinearSVC()).fit(items, y).predict(pool)
    assert abs(p[1] - truth.mean()) < 0.08


@pytest.mark.parametrize("method", [X(), MAX(), T50(), MS(), MS2(), ContinuousSweep(), SMM()])
def test_a_classifier_that_separates_nothing_is_reported(method):
    flat, y = np.full(20, 0.5), [0] * 12 + [1] * 8
    with pytest.warns(UnreliableWarning, match="separates nothing"):
        method.fit_scores(flat, y)
    p = method.predict_scores(flat)
    assert np.isfinite(p).all() and p.sum() == pytest.approx(1)


def test_more_classes_are_taken_one_vs_all_and_repr_says_so():
    items, y = make_items(3)
    q = DyS(LogisticRegression(), n_bins=8).fit(items, y)
    assert repr(q).endswith("one-vs-all over 3 classes")
    assert "one-vs-all" not in repr(DyS().fit(*make_items(2)))
    posterior = np.vstack([c.predict_proba(items) for c in q.scorer_.folds])  # by all folds
    parts = []
    for c in range(3):
        own = DyS(n_bins=8).fit_scores(q.scorer_.scores[:, c], y == c)
        parts.append(own.predict_scores(posterior[:, c])[1])
    np.testing.assert_allclose(q.predict(items), np.array(parts) / np.sum(parts), atol=1e-9)


def test_least_gap_is_checked():
    with pytest.raises(InputError, match="least_gap"):
        ContinuousSweep(least_gap=0).fit_scores([0.1, 0.9], [0, 1])
