import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from headcount import Bags, InputError


def test_from_lists_sorts_within_bags_and_keeps_repeats():
    bags = Bags.from_lists([[3, 1], [0, 2, 0]], 4)
    assert [items.tolist() for items in bags] == [[1, 3], [0, 0, 2]]
    assert bags.sizes.tolist() == [2, 3]


def test_means_agree_with_a_loop_for_dense_and_sparse(rng):
    X = rng.normal(size=(500, 9)) * (rng.random((500, 9)) < 0.3)
    lists = [rng.integers(0, 500, size) for size in rng.integers(1, 90, 40)]
    bags = Bags.from_lists(lists, 500)
    expected = np.array([X[items].mean(axis=0) for items in lists])
    np.testing.assert_allclose(bags.means(X), expected, atol=1e-12)
    np.testing.assert_allclose(bags.means(sparse.csr_array(X)), expected, atol=1e-12)
    np.testing.assert_allclose(bags.means(X[:, :1])[:, 0], expected[:, 0], atol=1e-12)
    np.testing.assert_array_equal(bags.means(X, n_jobs=2), bags.means(X))


def test_means_walk_a_pool_larger_than_one_cache_block(rng):
    X = rng.normal(size=(200_000, 3))
    lists = [rng.integers(0, len(X), 5000) for _ in range(3)]
    expected = [X[items].mean(axis=0) for items in lists]
    np.testing.assert_allclose(Bags.from_lists(lists, len(X)).means(X), expected, atol=1e-12)


def test_chunks_cover_all_bags_in_order(rng):
    bags = Bags.from_lists([rng.integers(0, 50, size) for size in [5, 30, 2, 9, 1]], 50)
    parts = list(bags.chunks(max_items=10))
    assert sum(len(p) for p in parts) == 5
    np.testing.assert_array_equal(np.concatenate([p.indices for p in parts]), bags.indices)


@pytest.mark.parametrize("make", [np.array, pd.Series, pl.Series, list])
def test_groups_of_any_container(make):
    bags = Bags.from_groups(make(["b", "a", "b"]), y=["x", "x", "y"])
    assert bags.ids.tolist() == ["a", "b"]
    assert bags.prevalence.tolist() == [[1.0, 0.0], [0.5, 0.5]]


@pytest.mark.parametrize("every", ["year", "month", "day"])
def test_time_columns(every):
    times = pd.to_datetime(["2025-12-31 23:59", "2026-01-01 00:00", "2026-01-01 08:00"])
    for column in (times, times.to_series(), pl.Series(times.to_list()), times.astype(str)):
        bags = Bags.from_time(column, every=every)
        assert bags.sizes.tolist() == [1, 2]
    assert str(bags.ids[0]).startswith("2025")


def test_weeks_start_a_bag_each():
    assert len(Bags.from_time(["2026-01-01", "2026-01-08", "2026-01-09"], every="week")) == 2


def test_from_samples_stacks(rng):
    samples = [rng.random((n, 3)) for n in (2, 5)]
    pool, bags = Bags.from_samples(samples, ids=["s", "t"])
    np.testing.assert_allclose(bags.means(pool), [s.mean(axis=0) for s in samples])
    pool, bags = Bags.from_samples([sparse.csr_array(s) for s in samples])
    np.testing.assert_allclose(bags.means(pool), [s.mean(axis=0) for s in samples])


def test_subsets_keep_pool_truth_and_ids():
    bags = Bags.from_groups(["b", "a", "b", "c"], y=[0, 1, 1, 1])
    part = bags[[2, 0]]
    assert part.ids.tolist() == ["c", "a"]
    assert part.prevalence.tolist() == [[0, 1], [0, 1]]
    assert part.n_items == 4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bags.from_lists([[0], []], 3), "bag 1 is empty"),
        (lambda: Bags.from_lists([], 3), "the list is empty"),
        (lambda: Bags.from_lists([[0, 3]], 3), "holds item 3, and the pool has items 0 to 2"),
        (lambda: Bags.from_lists([[0, -1]], 3), "holds item -1"),
        (lambda: Bags.from_lists([[0.5]], 3), "whole numbers"),
        (lambda: Bags.from_lists([[0]], 3, y=[1, 0]), "2 labels for a pool of 3"),
        (lambda: Bags.from_groups(["a", None]), "missing at row 1"),
        (lambda: Bags.from_groups([1.0, np.nan]), "missing at row 1"),
        (lambda: Bags.from_time(["yesterday"]), "cannot be read as dates"),
        (lambda: Bags.from_time(["2026-01-01"], every="moth"), "Did you mean 'month'"),
        (lambda: Bags.from_groups(["a", "b"]).means(np.ones((3, 1))), "3 rows of features"),
        (lambda: Bags.from_samples([]), "no samples"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make()
