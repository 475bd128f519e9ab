"""Joint draws: independence of other bags, purity, and the arithmetic on them."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest
from sklearn.linear_model import LogisticRegression

from headcount import CC, PACC, PCC, SLD, Bags, BayesQuantifier, KDEyML, UniformPrevalence
from headcount.inference.draws import Draws
from headcount.inference.labelled_error import labelled_error
from headcount.inference.sampling import DrawSettings
from headcount.inference.simulation import Simulator, make_simulator, round_to_counts
from headcount.testing.quantifiers import make_items

METHODS = {
    "PACC": lambda: PACC(LogisticRegression()),
    "SLD": lambda: SLD(LogisticRegression(), calibrator="bcts"),
    "Bayes": lambda: BayesQuantifier(classifier=LogisticRegression(), expect="any shift"),
    "narrow Bayes": lambda: BayesQuantifier(classifier=LogisticRegression(), expect="mild shift"),
    "KDEyML": lambda: KDEyML(LogisticRegression()),
}


def fitted(name, k, n=300):
    X, y = make_items(k, n=n, seed=0)
    pool, y_pool = make_items(k, n=1500, seed=1)
    bags = UniformPrevalence(n_bags=40, size=80, random_state=0).draw(y_pool)
    q = METHODS[name]()
    return q.set_params(calibrate_width=False).fit(X, y), pool, bags


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", METHODS)
def test_a_bag_alone_equals_the_same_bag_among_others(name, k):
    q, pool, bags = fitted(name, k)
    together = q.predict_draws(pool, bags)
    values = together.array()
    for order in (np.arange(40)[::-1], np.random.default_rng(0).permutation(40), [7]):
        some = q.predict_draws(pool, bags[np.asarray(order)])
        assert np.abs(some.mean - together.mean[order]).max() < 1e-9
        assert np.abs(some.array() - values[order]).max() < 1e-9
    lone = Bags.from_lists([bags.items(7)], n_items=len(pool))  # another number, no other bags
    assert np.abs(q.predict_draws(pool, lone).array()[0] - values[7]).max() < 1e-9


@pytest.mark.parametrize("name", METHODS)
def test_the_order_of_the_rows_changes_nothing(name):
    q, pool, bags = fitted(name, 3)
    order = np.random.default_rng(0).permutation(len(pool))
    place = np.argsort(order)
    moved = Bags.from_lists([place[items] for items in bags], n_items=len(pool))
    first, second = q.predict_draws(pool, bags), q.predict_draws(pool[order], moved)
    assert np.abs(first.array() - second.array()).max() < 1e-6
    d, e = q.diagnose(pool, bags), q.diagnose(pool[order], moved)
    assert np.allclose(d.fit, e.fit)


@pytest.mark.parametrize("name", METHODS)
def test_asking_twice_returns_the_same_and_leaves_the_estimator_as_it_was(name):
    q, pool, bags = fitted(name, 3)
    before = pickle.dumps(q)
    first = q.predict_interval(pool, bags)
    q.predict_interval(pool, bags[:3], level=0.8, simultaneous=True, target="population")
    second = q.predict_interval(pool, bags)
    assert first.low.tobytes() == second.low.tobytes()
    assert first.high.tobytes() == second.high.tobytes()
    assert pickle.dumps(q) == before


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("n_bags", [1, 30, 300])
def test_a_diagnosis_does_not_depend_on_other_bags(k, n_bags):
    X, y = make_items(k, n=300, seed=0)
    pool, y_pool = make_items(k, n=1500, seed=1)
    bags = UniformPrevalence(n_bags=300, size=60, random_state=0).draw(y_pool)
    q = PACC(LogisticRegression(), calibrate_width=False).fit(X, y)
    every, some = q.diagnose(pool, bags), q.diagnose(pool, bags[:n_bags])
    assert np.array_equal(every.fit[:n_bags], some.fit)


def test_chunks_and_jobs_change_nothing(monkeypatch):
    q, pool, bags = fitted("SLD", 3)
    whole = q.predict_draws(pool, bags)
    monkeypatch.setattr("headcount.inference.local_regression.NUMBERS_PER_BATCH", 3000)
    monkeypatch.setattr("headcount.inference.draws.NUMBERS_PER_BATCH", 2000)
    monkeypatch.setattr("headcount.inference.simulation.ITEMS_PER_BATCH", 20_000)
    parts = q.set_params(n_jobs=2).predict_draws(pool, bags)
    assert np.abs(whole.mean - parts.mean).max() < 1e-12
    joined = np.concatenate([values for _, values in parts.chunks()])
    assert np.abs(whole.array() - joined).max() < 1e-12


@pytest.mark.parametrize("name", ["PACC", "SLD", "narrow Bayes"])
def test_a_union_is_the_weighted_mean_of_its_groups(name):
    q, pool, bags = fitted(name, 3)
    draws = q.predict_draws(pool, bags)
    owner = np.arange(40) % 2
    union, values = draws.union(owner), draws.array()
    for u in (0, 1):
        weight = draws.sizes * (owner == u)
        mean = np.tensordot(weight / weight.sum(), values, axes=1)
        assert np.abs(union.array()[u] - mean).max() < 1e-12
    assert np.allclose(union.mean.sum(axis=1), 1)


@pytest.mark.parametrize("cls", [CC, PCC])
@pytest.mark.filterwarnings("ignore:.*biased as soon as")
def test_the_union_of_a_linear_method_estimates_the_merged_bag(cls):
    X, y = make_items(3, n=300, seed=0)
    pool = make_items(3, n=900, seed=1)[0][:900]
    q = cls(LogisticRegression(), calibrate_width=False).fit(X, y)
    edges = [0, 100, 350, 900]
    lists = [np.arange(a, b) for a, b in pairwise(edges)]
    draws = q.predict_draws(pool, Bags.from_lists(lists, n_items=900))
    union = draws.union(np.zeros(3, dtype=int))
    assert np.abs(union.estimates[0] - q.predict(pool)).max() < 1e-12


def test_unions_cover():
    """Ten bags each, merged: nominal 95 %, standard error about 1.3 points."""
    inside = []
    for seed in range(60):
        X, y = make_items(3, n=300, seed=seed)
        pool, y_pool = make_items(3, n=3000, seed=1000 + seed)
        bags = UniformPrevalence(n_bags=40, size=200, random_state=seed).draw(y_pool)
        q = PACC(LogisticRegression(), calibrate_width=False).fit(X, y)
        owner = np.arange(40) % 4
        interval = q.predict_draws(pool, bags).union(owner).interval()
        truth = np.stack([bags.prevalence[owner == u].mean(axis=0) for u in range(4)])
        inside.append((truth >= interval.low) & (truth <= interval.high))
    assert 0.92 < np.mean(inside) < 0.985


def test_the_labelled_error_cancels_in_a_change():
    q, pool, bags = fitted("PACC", 2, n=120)
    same = Bags.from_lists([bags.items(0), bags.items(0)[::-1]], n_items=len(pool))
    n = len(pool)
    large = Bags.from_lists([np.arange(n), np.arange(n)], n_items=n)
    draws = q.predict_draws(pool, large)
    _, variance = draws.changes(np.array([1.0, 0.0]))
    assert variance[1].max() < 0.5 * draws.variance[1].max()
    gap, _ = q.predict_draws(pool, same).changes(np.array([1.0, 0.0]))
    assert np.abs(gap).max() < 1e-12


def test_values_follow_the_moments():
    q, pool, bags = fitted("PACC", 2)
    draws = q.predict_draws(pool, bags)
    values = draws.array()
    assert (values >= 0).all()
    assert np.allclose(values.sum(axis=2), 1)
    assert np.abs(values.mean(axis=1) - draws.mean).max() < 0.02
    assert 0.9 < (values.std(axis=1) / np.sqrt(draws.variance)).mean() < 1.1


def test_population_and_simultaneous_intervals_are_wider():
    q, pool, bags = fitted("PACC", 3)
    draws = q.predict_draws(pool, bags)
    width = [
        (i.high - i.low).mean()
        for i in (
            draws.interval(),
            draws.population().interval(),
            draws.interval(simultaneous=True),
        )
    ]
    assert width[0] < width[1]
    assert width[0] < width[2]
    n = draws.sizes[:, None]
    extra = draws.population().variance - draws.variance
    expected = (draws.mean * (1 - draws.mean) - draws.variance) / (n + 1)
    assert np.allclose(extra, np.maximum(expected, 0))


def test_sampling_scores_are_standard_normal_and_anticorrelated():
    draws = Draws.of_values(
        np.array(["a", "b"]), np.full((1, 2), 0.5), np.full((1, 4000, 2), 0.5), [100]
    )
    scores = draws._sampling_scores()[0]
    assert kstest(scores[:, 0], "norm").pvalue > 0.001
    assert np.corrcoef(scores.T)[0, 1] == pytest.approx(-1)


def test_draws_of_classes_together():
    q, pool, bags = fitted("PACC", 3)
    draws = q.predict_draws(pool, bags)
    merged = draws.merge_classes([[0], [1, 2]], ["first", "others"])
    assert np.allclose(merged.array()[:, :, 1], draws.array()[:, :, 1:].sum(axis=2))
    assert np.allclose(merged.estimates.sum(axis=1), 1)


def test_the_labelled_error_of_a_linear_method_is_that_of_its_replicates():
    """Counting hard labels is linear: the error of a replicate is that of its confusion matrix."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 50)
    scores = np.eye(2)[np.where(rng.random(100) < 0.2, 1 - codes, codes)]
    simulator = Simulator(lambda bags: bags.means(scores), codes, 2)
    measured = labelled_error(simulator, 400)
    p = np.array([[0.3, 0.7]])
    rates = [scores[codes == c, 1].mean() for c in (0, 1)]
    expected = sum(s**2 * r * (1 - r) / 50 for s, r in zip(p[0], rates, strict=True))
    assert measured.variance(p)[0] == pytest.approx([expected, expected], rel=0.15)
    assert measured.at(p).mean() == pytest.approx(0, abs=1e-12)


def test_replicates_of_few_items_vary_as_those_items_do():
    """Five items of a class, two of them red: the variance is that of a Dirichlet posterior.

    A part u of a class, Beta(1, 5), resembles any labelled item, of which as many are red.
    """
    red = np.array([1.0, 1, 0, 0, 0, 1, 1, 0, 0, 0])
    simulator = Simulator(lambda bags: bags.means(red[:, None]), np.repeat([0, 1], 5), 2)
    shares = np.tile([1.0, 0.0], (1, 4000, 1))
    replicates = simulator.replicates(4000, "test")
    simulated, _ = simulator.run(shares, np.array([2000]), replicates)
    assert simulated.var() == pytest.approx(5 / 7 * 0.4 * 0.6 / 4, rel=0.08)


@settings(max_examples=50, deadline=None)
@given(
    shares=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6).filter(lambda s: sum(s) > 0),
    size=st.integers(1, 500),
)
def test_counts_are_rounded_to_the_size(shares, size):
    p = np.array(shares) / sum(shares)
    counts = round_to_counts(p[None], np.array([size]))[0]
    assert counts.sum() == size
    assert (np.abs(counts - p * size) < 1 + 1e-6).all()


def test_large_bags_are_extrapolated():
    """From bags of 1,000 items, the variance is as large as that of bags of 16,000."""
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat([0, 1], 300))
    x = rng.normal(size=600) + 1.5 * codes
    scores = np.column_stack([1 / (1 + np.exp(x)), 1 / (1 + np.exp(-x))])
    q = PACC(calibrate_width=False).fit_scores(scores, codes)
    bag = [(scores, Bags.from_lists([np.arange(600)], n_items=600))]
    variance = {}
    for size in (1200, 16_000, 10**9):
        variance[size] = q.draw(bag, np.array([size]), DrawSettings()).variance[0, 1]
    labelled = labelled_error(make_simulator(q)).variance(
        q.draw(bag, np.array([600]), DrawSettings()).mean
    )
    assert variance[16_000] < 0.97 * variance[1200]
    assert variance[10**9] == pytest.approx(labelled[0, 1], rel=0.35)
