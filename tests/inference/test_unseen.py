"""Groups without labelled rows: how far to believe a model, and how wide to be."""

import json

import numpy as np
import pytest
from headcount.inference.bounds import cut_bounds
from scipy.stats import norm

from headcount.inference.intervals import Interval
from headcount.inference.unseen import Unseen, halfway, learn_unseen


def groups(n, rng, *, spread=6.0, error=0.0, noise=0.1, rows=40):
    """True shares of groups, and answers with an error that the model knows of and one that not."""
    population = rng.dirichlet(spread * np.array([0.5, 0.3, 0.2]), n)
    truth = np.stack([rng.multinomial(rows, p) for p in population]) / rows
    off = np.hypot(noise, error) * rng.normal(size=(n, 3))
    off -= off.mean(axis=1, keepdims=True)
    return truth + off, np.full((n, 3), noise**2 * 2 / 3), truth


def learnt(n, rng, **kind):
    told, variance, truth = groups(n, rng, **kind)
    return learn_unseen(told, variance, truth, np.full(n, 40), np.zeros(n, dtype=bool))[0]


def believed(unseen, noise):
    """How much of a difference from the usual shares is believed."""
    told = unseen.middle + np.array([0.2, -0.1, -0.1])
    share, _ = unseen.answer(told[None], np.full((1, 3), noise**2), np.array([1 / 1000]))
    return (share[0, 0] - unseen.middle[0]) / 0.2


@pytest.mark.parametrize("n", [5, 8, 25])
@pytest.mark.parametrize("error", [0.0, 0.2])
def test_intervals_of_new_groups_hold_and_are_no_wider_than_groups_differ(n, error):
    """Over many sets of held-out groups, answers for another group hold about 95 %."""
    rng = np.random.default_rng([n, int(10 * error)])
    inside, widths = [], []
    for _ in range(60):
        unseen = learnt(n, rng, error=error)
        told, variance, truth = groups(6, rng, error=error, noise=0.03, rows=1000)
        low_high = told - 0.05, told + 0.05
        found = Interval(np.arange(3), told, *low_high, variance, 0.95)
        answer = unseen.bound(found, np.zeros(6, dtype=bool), np.full(6, 1000), "bag")
        inside.append((truth >= answer.low) & (truth <= answer.high))
        widths.append((answer.high - answer.low).mean())
    assert 0.9 <= np.mean(inside) <= (0.98 if error else 1.0)  # few groups cannot exclude errors
    usual = 2 * 1.96 * np.sqrt(0.21 / 7)  # of always saying the usual shares
    assert np.mean(widths) < (0.75 if error == 0 and n > 5 else 1.1) * usual


def test_a_large_group_is_believed_more_than_the_few_rows_that_were_tried():
    rng = np.random.default_rng(0)
    unseen = learnt(20, rng, noise=0.15)
    assert believed(unseen, 0.02) > 0.8 > 0.65 > believed(unseen, 0.15)


def test_a_model_that_errs_for_new_groups_is_believed_less():
    rng = np.random.default_rng(0)
    good, bad = (believed(learnt(30, rng, error=e), 0.02) for e in (0.0, 0.4))
    assert bad < 0.4 < 0.85 < good
    truth, noise = rng.dirichlet([8, 4], 40), rng.dirichlet([8, 4], 40)  # nothing to do with it
    sizes, flagged = np.full(40, 200), np.zeros(40, dtype=bool)
    told = learn_unseen(noise, np.full((40, 2), 1e-4), truth, sizes, flagged)[0]
    share, _ = told.answer(told.middle[None] + [[0.2, -0.2]], np.full((1, 2), 1e-4), np.zeros(1))
    assert abs(share[0, 0] - told.middle[0]) < 0.05


def test_flagged_groups_are_wider_if_flags_meant_errors():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([4, 4], 40)
    off = np.where(np.arange(40) % 2 == 0, 0.25, 0.02) * rng.normal(size=40)
    told = truth + off[:, None] * [1, -1]
    flagged = np.arange(40) % 2 == 0
    found, _ = learn_unseen(told, np.full((40, 2), 1e-4), truth, np.full(40, 200), flagged)
    assert found.widen[1].min() > 1.5 * found.widen[0].max()
    assert (found.beyond[1] > found.beyond[0]).all()


def test_the_same_from_a_file_and_for_many_groups_at_once():
    rng = np.random.default_rng(0)
    unseen = learnt(6, rng)
    again = Unseen.from_dict(json.loads(json.dumps(unseen.to_dict())))
    told, variance, _ = groups(2100, rng)
    found = Interval(np.arange(3), told, told - 0.1, told + 0.1, variance, 0.95)
    flagged, sizes = np.zeros(2100, dtype=bool), np.full(2100, 50)
    all_at_once = unseen.bound(found, flagged, sizes, "population")
    assert again.bound(found, flagged, sizes, "population").low.tolist() == all_at_once.low.tolist()
    share, _ = unseen.answer(halfway(found)[2050:], variance[2050:], np.zeros(50))
    assert all_at_once.prevalence[2050:] == pytest.approx(share)
    assert all_at_once.prevalence.sum(axis=1) == pytest.approx(1.0)


def test_two_groups_say_little():
    rng = np.random.default_rng(0)
    unseen = learnt(2, rng)
    told, variance, _ = groups(1, rng, noise=0.03)
    found = Interval(np.arange(3), told, told, told, variance, 0.95)
    answer = unseen.bound(found, np.array([False]), np.array([500]), "bag")
    assert (answer.high - answer.low).max() > 0.3


def test_cut_normals_against_sums_over_a_grid():
    """The interval holds its level of what is left of the normal, and the likeliest of it."""
    grid = (np.arange(200_000) + 0.5) / 200_000
    for top, sd in ((0.5, 0.05), (0.5, 0.4), (0.02, 0.1), (0.0, 0.2), (0.97, 0.05), (0.3, 0.3)):
        low, high = (v[0] for v in cut_bounds(np.array([top]), np.array([sd**2]), 0.95))
        density = norm.pdf(grid, top, sd)
        inside = (grid >= low) & (grid <= high)
        assert density[inside].sum() / density.sum() == pytest.approx(0.95, abs=1e-3)
        assert density[inside].min() >= density[~inside].max() - 1e-3 * density.max()
        assert 0.0 <= low <= top <= high <= 1.0
