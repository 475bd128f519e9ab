"""Solvers against brute force and independent oracles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize, nnls

from headcount import Bags
from headcount.inference.mixtures import maximise_likelihood
from headcount.kernels import simplex
from headcount.kernels.compiled.quadratic import nonnegative_quadratic
from headcount.kernels.compiled.simplex import pulled_weights
from headcount.protocols.artificial import compositions

finite = st.floats(-3, 3, allow_nan=False, width=32)


def simplex_grid(k, steps):
    return compositions(steps, k) / steps


@settings(deadline=None, max_examples=200)
@given(hnp.arrays(float, st.tuples(st.integers(1, 5), st.integers(2, 6)), elements=finite))
def test_projection_is_the_nearest_point(v):
    p = simplex.project(v)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p >= 0).all()
    rng = np.random.default_rng(0)
    others = rng.dirichlet(np.ones(v.shape[1]), 200)
    for row, point in zip(v, p, strict=True):
        assert ((point - row) ** 2).sum() <= ((others - row) ** 2).sum(axis=1).min() + 1e-9


@settings(deadline=None, max_examples=200)
@given(
    st.integers(2, 8).flatmap(
        lambda k: st.tuples(
            hnp.arrays(float, st.tuples(st.integers(k, k + 3), st.just(k)), elements=finite),
            st.integers(0, 10**6),
        )
    )
)
def test_least_squares_is_optimal_even_when_nearly_singular(case):
    design, seed = case
    design = np.vstack([design, 1e-5 * np.eye(design.shape[1])])
    targets = np.random.default_rng(seed).normal(size=(4, len(design)))
    p = simplex.least_squares(design, targets)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-9)
    assert (p >= 0).all()
    for row, point in zip(targets, p, strict=True):
        # The oracle: non-negative least squares with a heavy row for the sum.
        weight = 1e5 * (1 + np.abs(design).max())
        heavy = nnls(np.vstack([design, np.full(design.shape[1], weight)]), np.append(row, weight))
        oracle = heavy[0] / heavy[0].sum()
        loss = np.sum((design @ point - row) ** 2)
        assert loss <= np.sum((design @ oracle - row) ** 2) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("k", [2, 3])
def test_least_squares_is_never_worse_than_a_fine_grid(k, rng):
    grid = simplex_grid(k, 400 if k == 2 else 120)
    for _ in range(20):
        design = rng.dirichlet(np.ones(k), k).T
        targets = rng.dirichlet(np.ones(k), 6)
        p = simplex.least_squares(design, targets)
        for row, point in zip(targets, p, strict=True):
            best = ((grid @ design.T - row) ** 2).sum(axis=1).min()
            assert ((design @ point - row) ** 2).sum() <= best + 1e-12


def test_quadratics_with_a_matrix_each(rng):
    roots = rng.normal(size=(30, 7, 5))
    grams = roots.transpose(0, 2, 1) @ roots
    linear = rng.normal(size=(30, 5))
    each = simplex.quadratic(grams, linear)
    for s in range(30):
        np.testing.assert_allclose(each[s], simplex.quadratic(grams[s], linear[s : s + 1])[0])
        root, goal = simplex.square_root(grams[s], linear[s])
        np.testing.assert_allclose(each[s], simplex.nearest_point(root, goal), atol=1e-7)


def test_nonnegative_quadratic_agrees_with_nnls(rng):
    for _ in range(50):
        design, target = rng.normal(size=(12, 6)), rng.normal(size=12)
        y = np.maximum(rng.normal(size=6), 0.0)
        nonnegative_quadratic(design.T @ design, design.T @ target, y, 100)
        np.testing.assert_allclose(y, nnls(design, target)[0], atol=1e-8)


def log_likelihood(likelihood, p, extra):
    prior = np.where(extra > 0, extra * np.log(np.maximum(p, 1e-300)), 0.0).sum(axis=-1)
    return np.log(likelihood @ np.atleast_2d(p).T).sum(axis=0) + prior


def solve(likelihood, **options):
    k = likelihood.shape[1]
    settings_ = {"extra": np.zeros(k), "em": False, "tol": 1e-10, "max_iter": 1000} | options
    start = np.full(k, 1 / k)
    return maximise_likelihood(likelihood, Bags.single(len(likelihood)), start, **settings_)


@settings(deadline=None, max_examples=150)
@given(st.integers(2, 5), st.integers(1, 90), st.floats(0.05, 8), st.integers(0, 10**6))
def test_exact_maximum_meets_the_optimality_conditions(k, m, sharpness, seed):
    rng = np.random.default_rng(seed)
    likelihood = np.clip(rng.dirichlet(np.full(k, 1 / sharpness), m), 1e-12, 1) * k
    p, converged = solve(likelihood)
    assert converged.all()
    assert p.min() >= 0 and p.sum() == pytest.approx(1)
    # The slope of the mean log-likelihood is at most one everywhere, one where p > 0; what it
    # exceeds one by bounds how much likelihood is left to gain.
    slope = (likelihood / (likelihood @ p[0])[:, None]).mean(axis=0)
    assert slope.max() <= 1 + 1e-7


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("alpha", [1.0, 2.5])
def test_exact_maximum_is_never_below_a_fine_grid(k, alpha, rng):
    grid = simplex_grid(k, 1000 if k == 2 else 150)
    extra = np.full(k, alpha - 1)
    for m in (1, 3, 20, 100):
        likelihood = np.clip(rng.dirichlet(np.full(k, 0.5), m), 1e-12, 1)
        p, _ = solve(likelihood, extra=extra)
        best = log_likelihood(likelihood, grid, extra).max()
        assert log_likelihood(likelihood, p, extra)[0] >= best - 1e-7


def test_kernels_for_two_and_for_many_classes_agree(rng):
    # A third class that explains nothing must leave the other two as they are.
    likelihood = np.clip(rng.dirichlet([0.3, 0.3], 200), 1e-12, 1)
    two, _ = solve(likelihood)
    three, _ = solve(np.column_stack([likelihood, np.full(200, 1e-12)]))
    np.testing.assert_allclose(three[0, :2], two[0], atol=1e-7)
    assert three[0, 2] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("alpha", [1.0, 3.0])
def test_em_iterated_to_the_end_is_the_exact_maximum(k, alpha, rng):
    likelihood = rng.dirichlet(np.full(k, 0.7), 150)
    extra = np.full(k, alpha - 1)
    exact, _ = solve(likelihood, extra=extra)
    slow, converged = solve(likelihood, extra=extra, em=True, tol=1e-12, max_iter=200_000)
    assert converged.all()
    np.testing.assert_allclose(slow, exact, atol=2e-5)


def test_em_takes_the_steps_of_the_textbook(rng):
    likelihood = np.clip(rng.dirichlet(np.ones(3), 77), 1e-12, 1)
    p = np.full(3, 1 / 3)
    for _ in range(12):
        r = likelihood * p
        p = (r / r.sum(axis=1, keepdims=True)).mean(axis=0)
    stopped, converged = solve(likelihood, em=True, tol=0.0, max_iter=12)
    assert not converged.any()
    np.testing.assert_allclose(stopped[0], p, atol=1e-12)


def test_em_smoothing_of_order_zero_pulls_to_equal_shares(rng):
    likelihood = np.clip(rng.dirichlet([0.2, 0.2, 0.2], 50), 1e-9, 1) * [9, 1, 1]
    p, smooth = np.full(3, 1 / 3), 0.2
    for _ in range(5000):
        prior = smooth / 3 + (1 - smooth) * p
        r = likelihood * prior
        p = (r / r.sum(axis=1, keepdims=True)).mean(axis=0)
    found, _ = solve(likelihood, em=True, tol=1e-13, max_iter=10_000, smoothing=smooth)
    np.testing.assert_allclose(found[0], p, atol=1e-9)


def test_many_bags_of_unequal_size_are_solved_one_by_one(rng):
    likelihood = np.clip(rng.dirichlet(np.ones(4), 300), 1e-12, 1)
    lists = [np.sort(rng.integers(0, 300, size)) for size in (1, 63, 64, 65, 200, 3)]
    options = {"extra": np.zeros(4), "em": False, "tol": 1e-10, "max_iter": 1000}
    start = np.full(4, 0.25)
    together, _ = maximise_likelihood(likelihood, Bags.from_lists(lists, 300), start, **options)
    for items, p in zip(lists, together, strict=True):
        np.testing.assert_allclose(p, solve(likelihood[items])[0][0], atol=1e-8)


def test_pulled_weights_minimise_the_unsquared_norms(rng):
    for _ in range(10):
        joint = rng.dirichlet(np.ones(3), 3).T / 3 + np.eye(3) / 5
        shift, rho = rng.normal(size=(1, 3)) * 0.1, 0.05
        out = np.empty((1, 3))
        pulled_weights(joint, shift, rho, out, 0, 1)

        def loss(w, joint=joint, b=shift[0], rho=rho):
            return np.linalg.norm(joint @ (w - 1) - b) + rho * np.linalg.norm(w - 1)

        starts = [np.ones(3), np.array([0.5, 1.5, 1.0]), rng.random(3) * 2]
        found = [
            minimize(loss, s, bounds=[(0, None)] * 3, method="L-BFGS-B", options={"maxiter": 5000})
            for s in starts
        ]
        assert loss(out[0]) <= min(f.fun for f in found) + 1e-6
