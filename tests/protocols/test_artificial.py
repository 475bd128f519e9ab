import numpy as np
import pytest
from scipy import stats

from headcount import (
    ByGroup,
    ByTime,
    DirichletPrevalence,
    InputError,
    NaturalPrevalence,
    PrevalenceGrid,
    UniformPrevalence,
)
from headcount.kernels.random import uniforms
from headcount.protocols.artificial import compositions, round_counts


def test_uniform_numbers_are_uniform_and_independent_across_bags():
    u = uniforms(3, "test", 4000, 5)
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-3
    assert np.abs(np.corrcoef(u.T) - np.eye(5)).max() < 0.07
    assert np.abs(np.corrcoef(u[:-1, 0], u[1:, 0])[0, 1]) < 0.07


def test_kraemer_is_uniform_on_the_simplex():
    y = np.repeat([0, 1, 2], 400)
    p = UniformPrevalence(n_bags=4000, size=1000, random_state=0).draw(y).prevalence
    # Each share of a uniform point of the 2-simplex is Beta(1, 2).
    for c in range(3):
        assert stats.kstest(p[:, c] + 1e-4, "beta", args=(1, 2)).pvalue > 1e-3


def test_rounding_is_exact_in_sum_and_unbiased():
    rng = np.random.default_rng(0)
    p = np.tile(rng.dirichlet([0.2] * 6), (20_000, 1))
    counts = round_counts(p, 7, rng.random(len(p)))
    assert (counts.sum(axis=1) == 7).all()
    assert (np.abs(counts - 7 * p) < 1).all()
    np.testing.assert_allclose(counts.mean(axis=0), 7 * p[0], atol=0.02)


def test_grid_makes_every_combination_and_hits_it_exactly():
    protocol = PrevalenceGrid(n_points=21, repeats=2, size=100, random_state=0)
    bags = protocol.draw(np.repeat(["neg", "neu", "pos"], 500))
    assert len(bags) == protocol.count(3) == 462
    points = np.unique(np.round(bags.prevalence * 20).astype(int), axis=0)
    assert len(points) == 231
    np.testing.assert_allclose(bags.prevalence * 20, np.round(bags.prevalence * 20), atol=1e-12)


def test_compositions_match_their_number():
    table = compositions(6, 4)
    assert len(np.unique(table, axis=0)) == 84
    assert (table.sum(axis=1) == 6).all()


def test_grid_refuses_absurd_numbers_with_a_hint():
    with pytest.raises(InputError, match=r"244,061,991,977,650 bags.*UniformPrevalence"):
        PrevalenceGrid(repeats=25).draw(np.arange(280) % 28)


def test_small_classes_are_drawn_with_replacement_and_large_ones_without():
    y = np.array([0] * 1000 + [1] * 10)
    bags = UniformPrevalence(n_bags=200, size=100, random_state=0).draw(y)
    for items, share in zip(bags, bags.prevalence, strict=True):
        zeros, ones = items[items < 1000], items[items >= 1000]
        assert len(set(zeros.tolist())) == len(zeros)
        if share[1] <= 0.1:
            assert len(set(ones.tolist())) == len(ones)


def test_items_are_drawn_evenly():
    y = np.repeat([0, 1], 50)
    bags = UniformPrevalence(n_bags=4000, size=20, random_state=1).draw(y)
    drawn = np.bincount(bags.indices, minlength=100)
    for part in (drawn[:50], drawn[50:]):
        assert stats.chisquare(part).pvalue > 1e-4


def test_dirichlet_has_the_asked_spread():
    y = np.array([0] * 800 + [1] * 200)
    p = DirichletPrevalence(n_bags=4000, size=1000, concentration=30, random_state=0).draw(y)
    share = p.prevalence[:, 1]
    assert share.mean() == pytest.approx(0.2, abs=0.005)
    assert share.var() == pytest.approx(0.2 * 0.8 / 31, rel=0.1)


def test_natural_bags_vary_like_samples_without_replacement():
    y = np.array([0] * 8000 + [1] * 2000)
    p = NaturalPrevalence(n_bags=3000, size=100, random_state=0).draw(y).prevalence[:, 1]
    assert p.mean() == pytest.approx(0.2, abs=0.003)
    assert p.var() == pytest.approx(0.2 * 0.8 / 100, rel=0.1)


def test_by_group_and_by_time():
    y = ["a", "b", "b"]
    assert ByGroup(["x", "y", "x"]).draw(y).prevalence.tolist() == [[0.5, 0.5], [0, 1]]
    assert ByTime(["2026-01-02", "2026-01-30", "2026-03-01"]).draw(y).sizes.tolist() == [2, 1]
    assert ByGroup(["x", "y", "x"]).draw().prevalence is None


def test_classes_may_be_given_in_their_order():
    bags = UniformPrevalence(n_bags=3, random_state=0).draw(["b", "a"] * 50, classes=["b", "a"])
    assert bags.classes.tolist() == ["b", "a"]
    with pytest.raises(InputError, match="no item of class 'c'"):
        UniformPrevalence(n_bags=50).draw(["b", "a"] * 50, classes=["a", "b", "c"])
    with pytest.raises(InputError, match="unseen class"):
        UniformPrevalence(n_bags=3).draw(["b", "a"] * 50, classes=["a", "c"])


def test_two_protocols_do_not_disturb_each_other():
    y = np.repeat([0, 1], 100)
    alone = UniformPrevalence(n_bags=4, random_state=1).draw(y)
    UniformPrevalence(n_bags=4, random_state=2).draw(y)
    np.testing.assert_array_equal(
        alone.indices, UniformPrevalence(n_bags=4, random_state=1).draw(y).indices
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UniformPrevalence(n_bags=0), "n_bags must be a whole number"),
        (lambda: UniformPrevalence(size=-3), "size must be a whole number"),
        (lambda: DirichletPrevalence(concentration=0), "concentration must be at least"),
        (lambda: PrevalenceGrid(n_points=1), "n_points must be a whole number of at least 2"),
        (lambda: UniformPrevalence(random_state="x").draw([0, 1]), "random_state must be"),
        (lambda: UniformPrevalence().draw([0, 0]), "only one class"),
        (lambda: UniformPrevalence().draw([0, None]), "label of y is missing at row 1"),
        (lambda: DirichletPrevalence(centre=(0.5, 0.2, 0.3)).draw([0, 1]), "3 shares for 2"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make()
