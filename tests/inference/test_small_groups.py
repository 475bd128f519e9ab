"""Posteriors of small groups: exactness, invariances and coverage."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import betabinom
from sklearn.linear_model import LogisticRegression

from headcount.bags import Bags
from headcount.inference.small_groups import PRIOR_GROUPS, SmallGroups
from headcount.scores.crossfit import cross_fit

MEANS = {2: np.array([0.75, 0.25]), 4: np.array([0.4, 0.3, 0.2, 0.1])}


def problem(k, seed):
    """A model, and a function that simulates groups of these sizes."""
    rng = np.random.default_rng([seed, k])
    centres = 1.5 * np.eye(4)[:k]
    y = rng.choice(k, 400, p=MEANS[k])
    items = centres[y] + rng.normal(size=(400, 4))
    scorer = cross_fit(LogisticRegression(), items, y, random_state=0)

    def draw_groups(sizes, concentration=10.0):
        owner = np.repeat(np.arange(len(sizes)), sizes)
        population = rng.dirichlet(concentration * MEANS[k], len(sizes))
        labels = np.array([rng.choice(k, p=population[g]) for g in owner])
        raw = scorer.views(centres[labels] + rng.normal(size=(len(labels), 4)))[0]
        truth = np.zeros((len(sizes), k))
        np.add.at(truth, (owner, labels), 1)
        return raw, in_order(sizes), truth / sizes[:, None]

    return scorer, draw_groups


def in_order(sizes):
    ends = np.append(0, np.cumsum(sizes))
    return Bags.unchecked(ends, np.arange(ends[-1]), int(ends[-1]))


def permuted_rows(raw, bags, rng):
    """The same groups with their rows in another order, and elsewhere in the pool."""
    place = rng.permutation(len(raw))
    moved = np.empty_like(raw)
    moved[place] = raw
    parts = np.split(place[bags.indices], bags.indptr[1:-1])
    rows = np.concatenate([rng.permutation(part) for part in parts])
    return moved, Bags.unchecked(bags.indptr, rows, len(raw))


def assert_same(one, other):
    assert one.mean == pytest.approx(other.mean, abs=1e-12)
    assert one.variance == pytest.approx(other.variance, abs=1e-12)
    assert one.array() == pytest.approx(other.array(), abs=1e-9)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("concentration", [2.0, 30.0])
def test_intervals_of_small_groups_cover(k, concentration):
    inside = []
    for seed in range(40):
        scorer, draw_groups = problem(k, seed)
        sizes = np.append([1, 2, 3], np.random.default_rng(seed).integers(1, 30, 37))
        raw, bags, truth = draw_groups(sizes, concentration)
        small = SmallGroups(scorer)
        interval = small.posterior(raw, bags, small.learn_prior([(raw, bags)])).interval()
        covered = (truth >= interval.low - 1e-9) & (truth <= interval.high + 1e-9)
        inside.append([covered.mean(), covered[sizes < 4].mean()])
    assert np.mean(inside, axis=0).min() > 0.92


@pytest.mark.parametrize("k", [2, 4])
def test_rows_groups_and_chunks_in_another_order_change_nothing(k):
    scorer, draw_groups = problem(k, 0)
    small, rng = SmallGroups(scorer), np.random.default_rng(1)
    raw, bags, _ = draw_groups(rng.integers(1, 30, 60))
    prior = small.learn_prior([(raw, bags)])
    draws = small.posterior(raw, bags, prior)
    moved = permuted_rows(raw, bags, rng)
    order = rng.permutation(60)
    chunks = [(raw, bags[order[a : a + 7]]) for a in range(0, 60, 7)]
    for other in (small.learn_prior([moved]), small.learn_prior(chunks)):
        assert other[0] == pytest.approx(prior[0], abs=1e-12)
        assert other[1] == pytest.approx(prior[1], abs=1e-12)
    assert_same(small.posterior(*moved, prior), draws)
    assert_same(small.posterior(raw, bags[order], prior), draws.take(order))
    assert_same(small.posterior(raw, bags[3:4], prior), draws.take(slice(3, 4)))


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), step=st.integers(50, 700))
def test_a_prior_from_more_groups_than_it_uses_is_the_same_for_all_chunks(seed, step):
    scorer, draw_groups = problem(2, 0)
    small, rng = SmallGroups(scorer), np.random.default_rng(seed)
    raw, bags, _ = draw_groups(rng.integers(1, 4, PRIOR_GROUPS + 300))
    raw = np.round(raw, 1)  # many groups are equal
    order = rng.permutation(len(bags))
    chunks = [(raw, bags[order[a : a + step]]) for a in range(0, len(bags), step)]
    one, other = small.learn_prior([(raw, bags)]), small.learn_prior(iter(chunks))
    assert other[0] == pytest.approx(one[0], abs=1e-12)
    assert other[1] == pytest.approx(one[1], abs=1e-12)


def test_equal_groups_count_as_often_as_they_occur():
    scorer, draw_groups = problem(2, 0)
    small = SmallGroups(scorer)
    raw, bags, _ = draw_groups(np.full(20, 5))
    twice = np.tile(np.arange(20), 2)
    many = small.learn_prior([(raw, bags[twice]), (raw, bags[twice])])
    few = small.learn_prior([(raw, bags)])
    assert np.exp(many[1]).sum() == pytest.approx(1.0)
    # The initial weights count for less; the data are the same.
    assert abs(np.exp(many[1][0]) - 0.5) > abs(np.exp(few[1][0]) - 0.5)


def test_moments_equal_those_of_all_labellings():
    """Three items of two classes: a sum over the eight labellings, for each calibrator."""
    scorer, draw_groups = problem(2, 0)
    small = SmallGroups(scorer)
    raw, bags, _ = draw_groups(np.array([3]))
    alpha = np.array([[2.0, 1.0]])
    means = []
    for number in range(len(small.calibrators)):
        likelihood = small._likelihood(raw, number)
        weight = np.zeros(4)
        for labels in itertools.product([0, 1], repeat=3):
            n = sum(labels)
            product = np.prod([likelihood[i, c] for i, c in enumerate(labels)])
            orders = [1, 3, 3, 1][n]
            weight[n] += product * betabinom(3, 1.0, 2.0).pmf(n) / orders
        means.append(weight @ np.arange(4) / 3 / weight.sum())
    draws = small.posterior(raw, bags, (alpha, np.zeros(1)))
    assert draws.mean[0, 1] == pytest.approx(np.mean(means), abs=0.03)


def test_the_prior_narrows_where_groups_are_alike():
    scorer, draw_groups = problem(2, 0)
    small = SmallGroups(scorer)
    alike, apart = (draw_groups(np.full(300, 20), c) for c in (500.0, 0.5))
    priors = [small.learn_prior([(raw, bags)]) for raw, bags, _ in (alike, apart)]
    spread = [np.exp(weights) @ (1 / alpha.sum(axis=1)) for alpha, weights in priors]
    assert spread[0] < 0.5 * spread[1]
    widths = [
        np.ptp(np.stack([i.low, i.high]), axis=0).mean()
        for i in (small.posterior(*alike[:2], prior).interval() for prior in priors)
    ]
    assert widths[0] < widths[1]
