"""Bags that networks learn from: Kraemer bags, real ones, and mixtures with the right shares."""

import numpy as np
import pytest

pytest.importorskip("torch")

from headcount import Bags, UniformPrevalence
from headcount.neural.sampling import (
    MIXING,
    Both,
    LabelledItems,
    RealBags,
    divide_items,
    split_bags,
    split_items,
)

Y = np.repeat([0, 1, 2], [400, 300, 300])


def real(n_bags=40, size=80):
    return UniformPrevalence(n_bags=n_bags, size=size, random_state=0).draw(Y)


@pytest.mark.parametrize("mixing", MIXING)
def test_mixtures_have_the_shares_that_they_claim(mixing):
    """Over many bags, what the items' labels say and what the bag claims agree on average."""
    source = RealBags(real(), 80, 0.0, mixing)
    bags = source.draw(600, seed=3)
    counted = bags.with_truth(Y).prevalence
    off = counted - bags.prevalence
    assert np.abs(off.mean(axis=0)).max() < 0.01
    assert np.abs(off).mean() < (1e-9 if mixing == "union" else 0.06)
    assert set(bags.sizes) == ({160} if mixing == "union" else {80})


def test_real_bags_come_as_they_are():
    known = real()
    source = RealBags(known, 80, 1.0, "pooled")
    bags = source.draw(100, seed=0)
    rows = {tuple(known.items(s)): tuple(known.prevalence[s]) for s in range(len(known))}
    for s in range(len(bags)):
        assert rows[tuple(bags.items(s))] == tuple(bags.prevalence[s])


def test_the_share_of_real_bags_is_kept():
    known = real()
    bags = RealBags(known, 80, 0.3, "pooled").draw(1000, seed=0)
    rows = {tuple(known.items(s)) for s in range(len(known))}
    share = np.mean([tuple(bags.items(s)) in rows for s in range(len(bags))])
    assert share == pytest.approx(0.3, abs=0.05)


def test_neighbours_are_nearer_than_others():
    """A mixture of neighbours varies as much as the bags; one of strangers varies less."""
    spread = {
        mixing: RealBags(real(200), 80, 0.0, mixing).draw(800, seed=1).prevalence.std()
        for mixing in ("pooled", "neighbours")
    }
    assert spread["neighbours"] > 1.15 * spread["pooled"]


def test_rare_classes_are_forced():
    plain = RealBags(real(200), 80, 1.0, "pooled").draw(800, seed=1).prevalence
    forced = RealBags(real(200), 80, 1.0, "rare").draw(800, seed=1).prevalence
    rare = [(p.min(axis=1) <= 1 / 6).mean() for p in (plain, forced)]
    assert rare[1] > rare[0] + 0.05


def test_bags_of_labelled_items_are_where_they_should_be():
    rows = np.arange(50, 1000)
    bags = LabelledItems(rows, Y[rows], 3, 2000, 30).draw(20, seed=0)
    assert bags.n_items == 2000 and bags.indices.min() >= 50
    labels = np.concatenate([Y, Y])
    np.testing.assert_allclose(bags.with_truth(labels).prevalence, bags.prevalence)


def test_both_sources_are_drawn_from_and_seeds_decide():
    rows = np.arange(1000)
    known = real()
    moved = Bags(known.indptr, known.indices + 1000, 2000, prevalence=known.prevalence)
    source = Both(
        LabelledItems(rows, Y, 3, 2000, 80), RealBags(moved, 80, 1.0, "pooled"), share=0.25
    )
    one, same, other = source.draw(200, 1), source.draw(200, 1), source.draw(200, 2)
    labelled = np.array([one.items(s).max() < 1000 for s in range(200)])
    assert labelled.sum() == 50
    assert not labelled[:50].all()  # shuffled
    np.testing.assert_array_equal(one.indices, same.indices)
    assert not np.array_equal(one.indices, other.indices)


def test_splits_leave_nothing_out_and_nothing_twice():
    learnt, held = split_bags(real(), 0.3, seed=0)
    assert len(learnt) == 28 and len(held) == 12
    assert sorted([*learnt.ids, *held.ids]) == list(range(40))
    learnt, held = split_items(Y, 0.2, seed=0)
    assert sorted([*learnt, *held]) == list(range(1000))
    assert np.bincount(Y[held]).tolist() == [80, 60, 60]


def test_items_to_classify_and_items_to_draw_from_are_others():
    codes = np.repeat([0, 1, 2, 3], [50, 30, 2, 1])
    first, second = divide_items(codes, 0.6, seed=0)
    assert np.intersect1d(first, second).tolist() == [82]  # the only item of its class
    assert np.union1d(first, second).tolist() == list(range(83))
    assert np.bincount(codes[first]).tolist() == [30, 18, 1, 1]
    assert np.bincount(codes[second]).tolist() == [20, 12, 1, 1]
    assert [part.tolist() for part in divide_items(np.arange(3), 0.6, seed=0)] == [[0, 1, 2]] * 2
