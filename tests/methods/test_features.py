"""Methods without a classifier against direct computations."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from headcount import DMx, EDx, HDx, InputError, ReadMe, UniformPrevalence
from headcount.kernels.simplex import nearest_point
from headcount.protocols.artificial import compositions
from headcount.testing.quantifiers import make_items


@pytest.fixture(scope="module", params=[2, 3])
def problem(request):
    k = request.param
    X, y = make_items(k, n=400)
    pool, truth = make_items(k, n=2000, seed=9)
    return X, y, pool, UniformPrevalence(n_bags=12, size=100, random_state=0).draw(truth)


def shares(values, low, high, n_bins):
    cells = np.clip(((values - low) / (high - low) * n_bins).astype(int), 0, n_bins - 1)
    return np.array([np.bincount(c, minlength=n_bins) / len(values) for c in cells.T])


def test_hdx_is_the_median_over_bins_of_the_best_mean_distance(problem):
    X, y, pool, bags = problem
    if y.max() > 1:
        pytest.skip("two classes")
    p = HDx().fit(X, y).predict_bags(pool, bags)[:, 1]
    low, high, grid = X.min(axis=0), X.max(axis=0), np.linspace(0, 1, 101)
    for s in range(0, 12, 4):
        answers = []
        for n in range(10, 111, 10):
            v0, v1 = (shares(X[y == c], low, high, n) for c in (0, 1))
            q = shares(pool[bags.items(s)], low, high, n)
            distance = [
                np.sqrt(((np.sqrt(q) - np.sqrt(a * v1 + (1 - a) * v0)) ** 2).sum(axis=1)).mean()
                for a in grid
            ]
            answers.append(grid[int(np.argmin(distance))])
        assert p[s] == pytest.approx(np.median(answers), abs=0.0051)


def test_dmx_minimises_the_summed_divergence(problem):
    X, y, pool, bags = problem
    k = y.max() + 1
    p = DMx().fit(X, y).predict_bags(pool, bags)
    low, high = X.min(axis=0), X.max(axis=0)
    v = np.array([shares(X[y == c], low, high, 8).ravel() for c in range(k)])
    grid = compositions(60, k) / 60
    for s in range(0, 12, 4):
        q = shares(pool[bags.items(s)], low, high, 8).ravel()

        def loss(u, q=q):
            return ((np.sqrt(q) - np.sqrt(u @ v)) ** 2).sum(axis=-1)

        assert loss(p[s]) <= loss(grid).min() + 1e-6


@pytest.mark.parametrize(("distance", "metric"), [("manhattan", "cityblock"), ("euclidean",) * 2])
def test_edx_minimises_the_energy_distance(distance, metric, problem):
    X, y, pool, bags = problem
    k = y.max() + 1
    p = EDx(distance=distance).fit(X, y).predict_bags(pool, bags)
    a = np.array([[cdist(X[y == i], X[y == j], metric).mean() for i in range(k)] for j in range(k)])
    grid = compositions(60, k) / 60
    for s in range(0, 12, 4):
        b = np.array([cdist(X[y == c], pool[bags.items(s)], metric).mean() for c in range(k)])

        def loss(v, b=b):
            return 2 * v @ b - np.einsum("...i,ij,...j->...", v, a, v)

        assert loss(p[s]) <= loss(grid).min() + 1e-8


@pytest.fixture(scope="module")
def words():
    rng = np.random.default_rng(0)
    rate = rng.random((3, 40)) * 0.6
    y, truth = rng.integers(0, 3, 2000), rng.integers(0, 3, 3000)
    X = (rng.random((2000, 40)) < rate[y]).astype(float)
    pool = (rng.random((3000, 40)) < rate[truth]).astype(float)
    return X, y, pool, UniformPrevalence(n_bags=30, size=300, random_state=0).draw(truth)


def test_readme_of_one_subset_is_least_squares_on_pattern_shares(words):
    X, y, pool, bags = words
    one = ReadMe(n_subsets=1, n_words=4).fit(X, y)
    chosen = one.subsets_[0][0]
    bits = 1 << np.arange(4)
    codes, pool_codes = X[:, chosen].astype(int) @ bits, pool[:, chosen].astype(int) @ bits
    v = np.column_stack(
        [np.bincount(codes[y == c], minlength=16) / (y == c).sum() for c in range(3)]
    )
    p = one.predict_bags(pool, bags)
    for s in range(0, 30, 10):
        q = np.bincount(pool_codes[bags.items(s)], minlength=16) / bags.sizes[s]
        np.testing.assert_allclose(p[s], nearest_point(v, q), atol=1e-3)


def test_readme_recovers_shares_and_keeps_sparse_input_sparse(words):
    X, y, pool, bags = words
    readme = ReadMe(n_subsets=60, n_words=6).fit(sparse.csr_array(X), y)
    p = readme.predict_bags(sparse.csr_array(pool), bags)
    assert np.abs(p - bags.prevalence).mean() < 0.05
    np.testing.assert_allclose(
        p, ReadMe(n_subsets=60, n_words=6).fit(X, y).predict_bags(pool, bags)
    )


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (DMx(n_bins=1), "n_bins must be a whole"),
        (HDx(n_bins=[]), "n_bins must be whole"),
        (EDx(distance="x"), "unknown distance"),
        (ReadMe(n_subsets=0), "n_subsets must be"),
    ],
)
def test_refusals(method, message):
    with pytest.raises(InputError, match=message):
        method.fit(*make_items(2))
