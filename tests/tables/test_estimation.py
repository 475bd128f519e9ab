"""Shares of groups with intervals: properties, coverage, flags and unions."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from headcount import PACC, SLD
from headcount.inference.diagnosis import FIT_LEVEL
from headcount.inference.random_effects import fit_random_effects
from headcount.tables import Count
from headcount.tables.estimation import draw_unions, estimate_groups, join_groups
from headcount.tables.training import GroupInfo, Training
from tests.commands import moods
from tests.tables.simulated import counted, estimated, fitted, judged, scores_of

ARRAYS = ("prevalence", "low", "high")


def groups_of(sizes, rng, k=2):
    """Scores of groups of these sizes, with shares drawn at random."""
    return [scores_of(rng.choice(k, n, p=rng.dirichlet(np.ones(k))), k, rng) for n in sizes]


def hard_answers(y, rng):
    """Ones for the class that a classifier finds likeliest."""
    return np.eye(3)[scores_of(y, 3, rng).argmax(axis=1)]


def with_groups(count, rng, n_known=12):
    """The same groups by a model that knows how groups vary, of which the first were labelled."""
    k = count.interval.prevalence.shape[1]
    truth = rng.dirichlet(4 * np.ones(k), n_known)
    errors = 0.03 * rng.normal(size=(n_known, k))
    known = truth + errors - errors.mean(axis=1, keepdims=True)
    variance, flags = np.full((n_known, k), 1e-3), np.zeros(n_known, dtype=bool)
    effects, _ = fit_random_effects(known, variance, truth, np.full(n_known, 100), flags)
    rows = rng.integers(60, 90, size=(2, k))
    info = GroupInfo(count.groups[:2], rows, effects, effects)
    training = Training(by="shop", groups=info)
    by = count.by.parse("shop")
    return replace(count.model, training=training), replace(count.rows, by=by)


@pytest.mark.parametrize("k", [2, 3])
def test_rows_in_another_order_give_the_same(k):
    rng = np.random.default_rng(k)
    q = fitted(SLD(calibrator="bcts"), k, 300, rng)
    groups = groups_of([5, 12, 60, 200], rng, k)
    one = estimated(q, groups)
    other = estimated(q, [rng.permutation(group) for group in groups])
    for name in ARRAYS:
        ours, theirs = getattr(one.interval, name), getattr(other.interval, name)
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
    assert one.marks().tolist() == other.marks().tolist()


def test_groups_in_another_order_give_the_same():
    rng = np.random.default_rng(1)
    q = fitted(PACC(), 2, 300, rng)
    groups = groups_of([4, 100, 20, 9, 300], rng)
    order = np.array([3, 1, 4, 0, 2])
    one, other = estimated(q, groups), estimated(q, groups, order.tolist())
    for name in ARRAYS:
        np.testing.assert_allclose(
            getattr(one.interval, name)[order], getattr(other.interval, name), atol=1e-12
        )
    assert one.marks()[order].tolist() == other.marks().tolist()


@pytest.mark.parametrize("k", [2, 4])
def test_a_large_group_alone_is_the_same_as_among_others(k):
    rng = np.random.default_rng(k)
    q = fitted(SLD(calibrator="bcts"), k, 300, rng)
    groups = groups_of([150, 40, 6, 400], rng, k)
    among = estimated(q, groups)
    for g in (0, 1, 3):
        alone = estimated(q, [groups[g]])
        for name in ARRAYS:
            ours, theirs = getattr(alone.interval, name)[0], getattr(among.interval, name)[g]
            np.testing.assert_allclose(ours, theirs, atol=1e-12)
        assert alone.marks()[0] == among.marks()[g]


def test_estimating_changes_neither_the_model_nor_the_scores():
    rng = np.random.default_rng(2)
    q = fitted(PACC(), 2, 300, rng)
    before = pickle.dumps(q)
    count = estimated(q, groups_of([10, 100], rng))
    scores = pickle.dumps(count.rows.scores)
    first = join_groups(count, np.zeros(2, dtype=np.int64))
    again = join_groups(count, np.zeros(2, dtype=np.int64))
    assert first.low.tobytes() == again.low.tobytes()
    assert pickle.dumps(q) == before and pickle.dumps(count.rows.scores) == scores


def test_draws_of_a_union_of_shrunken_groups_are_weighted_means():
    rng = np.random.default_rng(3)
    q = fitted(SLD(calibrator="bcts"), 3, 300, rng)
    model, rows = with_groups(estimated(q, groups_of([40, 90, 60, 200], rng, 3)), rng)

    count = Count(model, rows, estimate_groups(model, rows))
    owner = np.array([0, 1, 1, 0])
    union = draw_unions(count, owner)
    each = count.estimates.draws.array()
    for u in (0, 1):
        own = owner == u
        weight = count.sizes[own] / count.sizes[own].sum()
        mean = np.einsum("g,grc->rc", weight, each[own])
        np.testing.assert_allclose(union.array()[u], mean, atol=1e-12)
    assert len(np.unique(count.interval.prevalence[:, 0])) == 4
    np.testing.assert_allclose(count.interval.prevalence.sum(axis=1), 1)


@pytest.mark.parametrize("target", ["bag", "population"])
def test_own_labelled_rows_and_the_mean_of_groups_shrink_shares(target):
    """Groups with labelled rows of their own are surer than others, and all are near the mean."""
    rng = np.random.default_rng(4)
    q = fitted(PACC(), 2, 300, rng)
    plain = estimated(q, [scores_of(np.repeat([0, 1], [45, 5]), 2, rng) for _ in range(4)])
    model, rows = with_groups(plain, rng)

    shrunken = estimate_groups(model, rows, target=target)
    mean = model.training.groups.new.mean
    far = np.abs(plain.interval.prevalence - mean).mean(axis=1)
    near = np.abs(shrunken.interval.prevalence - mean).mean(axis=1)
    assert (near[2:] < far[2:]).all()
    width = (shrunken.interval.high - shrunken.interval.low).mean(axis=1)
    assert width[:2].mean() < width[2:].mean()


@pytest.mark.parametrize(("k", "top"), [(2, 5), (2, 100), (4, 5)])
def test_tied_scores_raise_no_false_alarm(k, top):
    alarms = []
    for seed in range(6):
        rng = np.random.default_rng([seed, k, top])
        y = rng.integers(k, size=500)
        q = PACC(calibrator="platt").fit_scores(judged(y, k, rng, top), y)
        groups = []
        for _ in range(8):
            labels = rng.choice(k, 300, p=rng.dirichlet(np.ones(k)))
            groups.append(judged(labels, k, rng, top))
        alarms.append(estimated(q, groups).diagnosis.fit < FIT_LEVEL)
    assert np.mean(alarms) <= 0.11  # of 48 groups; 0.04 is expected


def test_large_decision_values_keep_their_order():
    """Scores of 0 to 100 in groups that are summed up give the same as all of them at once."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=800)
    q = SLD(calibrator="platt").fit_scores(judged(y, 2, rng, 100), y)
    pool = judged((rng.random(30_000) < 0.3).astype(int), 2, rng, 100)
    interval = estimated(q, [pool]).interval
    np.testing.assert_allclose(interval.prevalence[0], q.predict_scores(pool), atol=1e-3)


def test_intervals_of_small_groups_cover():
    """Three rows: the share is 0, 1/3, 2/3 or 1, and 95 % of the intervals contain it."""
    rng = np.random.default_rng(0)
    y, p = moods(800, rng, clear=2.0)
    q = SLD(calibrator="bcts").fit_scores(np.column_stack([1 - p, p]), y)
    truth, groups = [], []
    for _ in range(300):
        labels = rng.random(3) < rng.random()
        x = 1 / (1 + np.exp(-2 * (np.where(labels, 0.5, -0.5) + rng.normal(0, 0.4, 3))))
        groups.append(np.column_stack([1 - x, x]))
        truth.append(labels.mean())
    interval = estimated(q, groups).interval
    truth = np.array(truth)
    inside = (truth >= interval.low[:, 1] - 1e-6) & (truth <= interval.high[:, 1] + 1e-6)
    assert 0.92 < inside.mean() <= 0.995
    assert (interval.high - interval.low).mean() < 0.97


@pytest.mark.parametrize("seed", range(3))
def test_small_groups_of_equal_content_all_count(seed):
    """Hard answers on single rows: there are three kinds of groups, and all inform the prior."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=600)
    q = PACC(calibrate_width=False).fit_scores(hard_answers(y, rng), y)
    labels = rng.choice(3, 1500, p=rng.dirichlet(np.ones(3)))
    count = estimated(q, list(hard_answers(labels, rng)[:, None, :]))
    truth = np.eye(3)[labels]
    inside = (truth >= count.interval.low - 1e-6) & (truth <= count.interval.high + 1e-6)
    assert inside.mean() > 0.92
    mean = count.interval.prevalence.mean(axis=0)
    np.testing.assert_allclose(mean, truth.mean(axis=0), atol=0.2)


def test_a_misfit_changes_no_other_group():
    """Small groups keep their exact intervals, whatever is wrong with another one."""
    rng = np.random.default_rng(0)
    q = fitted(PACC(), 2, 400, rng)
    groups = groups_of([12] * 20, rng)
    odd = np.tile([[0.5, 0.5]], (25, 1))
    plain, among = estimated(q, [*groups, groups[0]]), estimated(q, [*groups, odd])
    assert among.diagnosis.off[-1].max() > 0
    fits = (plain.diagnosis.off[:20] == 0).all(axis=1)
    assert fits.sum() >= 15
    # Small groups share a prior, which every group changes a little.
    for name in ARRAYS:
        moved = np.abs(getattr(plain.interval, name) - getattr(among.interval, name))[:20][fits]
        assert moved.max() < 0.12 and moved.mean() < 0.03


@pytest.mark.parametrize("k", [2, 4])
def test_intervals_of_large_groups_cover(k):
    covered = []
    for seed in range(25):
        rng = np.random.default_rng([seed, k])
        q = fitted(PACC(), k, 400, rng)
        count, truth = counted(q, rng.dirichlet(np.ones(k), size=12), 300, rng)
        covered.append((truth >= count.interval.low) & (truth <= count.interval.high))
    assert 0.92 < np.mean(covered) < 0.985


def test_flags_have_a_size_and_share_a_line():
    rng = np.random.default_rng(0)
    y, p = moods(800, rng)
    q = PACC().fit_scores(np.column_stack([1 - p, p]), y)
    groups = []
    for moved in (0.0, 0.05, 0.3, 0.3):
        _, x = moods(300, rng)
        x = np.clip(x + moved * (rng.random(300) < 0.5) * (0.5 - x) * 2, 0, 1)
        groups.append(np.column_stack([1 - x, x]))
    diagnosis = estimated(q, groups).diagnosis
    off = diagnosis.off.max(axis=1)
    assert off[0] == 0
    assert off[2] > 0.01
    assert list(diagnosis.summaries()) in (["misfit"], ["misfit", "strange"])
    text, bags = diagnosis.summaries()["misfit"]
    assert {2, 3} <= set(bags.tolist())
    assert "points beyond what chance does" in text


@pytest.mark.parametrize(("k", "n_groups", "size"), [(2, 100, 10), (2, 30, 200), (3, 60, 10)])
def test_all_rows_together_have_an_interval_that_covers_and_is_narrow(k, n_groups, size):
    covered, widths = [], []
    for seed in range(20):
        rng = np.random.default_rng([seed, k, size])
        q = fitted(SLD(calibrator="bcts"), k, 400, rng)
        shares = rng.dirichlet(np.r_[6.0, np.full(k - 1, 2.0)], size=n_groups)
        count, truth = counted(q, shares, size, rng)
        whole = join_groups(count, np.zeros(n_groups, dtype=np.int64))
        mean = truth.mean(axis=0)
        covered.append((mean >= whole.low[0]) & (mean <= whole.high[0]))
        single = (count.interval.high - count.interval.low).mean()
        widths.append([(whole.high - whole.low).mean(), single])
    assert np.mean(covered) > 0.92
    narrow, single = np.mean(widths, axis=0)
    assert narrow < (0.5 if size == 10 else 0.85) * single


def test_a_mean_of_draws_is_as_sure_as_the_same_rows_together():
    rng = np.random.default_rng(2)
    q = fitted(PACC(), 2, 500, rng)
    count, _ = counted(q, np.tile([0.7, 0.3], (40, 1)), 150, rng)
    owner = np.arange(40) // 20
    joined = join_groups(count, owner)
    mean = count.estimates.draws.union(owner).interval()
    np.testing.assert_allclose(joined.prevalence, mean.prevalence, atol=0.01)
    ratio = (mean.high - mean.low) / (joined.high - joined.low)
    assert ratio.shape == (2, 2) and ratio.min() > 0.6 and ratio.max() < 1.5
