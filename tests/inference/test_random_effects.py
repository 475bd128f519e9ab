"""Random effects of groups: coverage, shrinkage and invariances."""

import numpy as np
import pytest
from scipy.stats import betabinom

from headcount.inference.draws import Draws
from headcount.inference.random_effects import RandomEffects, fit_random_effects

MEANS = {2: np.array([0.7, 0.3]), 3: np.array([0.5, 0.3, 0.2])}
CONCENTRATION = 7.0  # of populations: tau^2 is 1/8


def dirichlet(rng, mean, variance):
    """Shares with this mean and a variance of so many times mean (1 - mean)."""
    draws = rng.gamma(np.maximum(mean * (1 / np.maximum(variance, 1e-6) - 1), 1e-3))
    return draws / draws.sum(axis=1, keepdims=True)


def simulate(n, rng, *, k=3, error=0.0, rows=40):
    """Population and bag prevalences of groups, estimates, and the variances of their draws."""
    population = rng.dirichlet(CONCENTRATION * MEANS[k], n)
    truth = np.stack([rng.multinomial(rows, p) for p in population]) / rows
    noise = 2.0 / rows + 0.004
    estimates = dirichlet(rng, dirichlet(rng, truth, error**2), noise)
    smooth = (estimates / noise + 1) / (1 / noise + k)  # the posterior mean under a flat prior
    return population, truth, estimates, smooth * (1 - smooth) * noise


def as_draws(estimates, variance, rows):
    n, k = estimates.shape
    keys = np.arange(n, dtype=np.uint64)
    none, known = np.zeros((n, k)), np.ones(n, dtype=bool)
    sizes = np.full(n, float(rows))
    return Draws(np.arange(k), estimates, estimates, variance, sizes, none, keys, known)


def fitted(n, rng, **kind):
    _, truth, estimates, variance = simulate(n, rng, **kind)
    return fit_random_effects(estimates, variance, truth, np.full(n, 40), np.zeros(n, dtype=bool))


def weight_of(effects, variance):
    """How far an estimate that differs by 0.2 is followed."""
    estimates = effects.mean + np.array([[0.2, -0.1, -0.1]])
    draws = as_draws(estimates, np.full((1, 3), variance), 1000)
    return (effects.shrink(draws, np.array([False])).mean[0, 0] - effects.mean[0]) / 0.2


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("error", [0.0, 0.2])
@pytest.mark.parametrize("n", [5, 12, 40])
def test_intervals_of_new_and_known_groups_cover(k, error, n):
    rng = np.random.default_rng([n, k, int(10 * error)])
    inside = []
    for _ in range(100):
        effects = fitted(n, rng, k=k, error=error)[0]
        population, truth, estimates, variance = simulate(8, rng, k=k, error=error, rows=400)
        draws, fits = as_draws(estimates, variance, 400), np.zeros(8, dtype=bool)
        for rows in (0, 5, 20, 100):
            own = np.stack([rng.multinomial(rows, p) for p in population])
            for target, wanted in (("bag", truth), ("population", population)):
                interval = effects.shrink(draws, fits, target, own).interval()
                inside.append(((wanted >= interval.low) & (wanted <= interval.high)).mean())
    assert np.mean(inside) > 0.92


def test_own_rows_alone_give_the_posterior_of_a_dirichlet_prior():
    """Where the draws know nothing, theta has a Dirichlet posterior given the labelled rows."""
    between, error = np.zeros(11), np.zeros((2, 5, 14))
    between[6], error[:, 4, 0] = 1.0, 1.0
    effects = RandomEffects(np.array([0.6, 0.4]), 0.0, between, error, 1.0, 10)
    total = 1 / (5e-4 * 2**6) - 1
    unknown = Draws.uninformative(np.arange(2), np.full((1, 2), 0.5), [30])
    own = np.array([[3, 9]])
    expected = (total * effects.mean + own[0]) / (total + 12)
    theta = effects.shrink(unknown, np.array([False]), "population", own)
    assert theta.mean[0] == pytest.approx(expected, abs=1e-3)
    assert theta.variance[0, 0] == pytest.approx(expected.prod() / (total + 13), rel=0.02)
    share = effects.shrink(unknown, np.array([False]), "bag", own)
    exact = betabinom(30, *((total + 12) * expected)).var() / 30**2
    assert share.variance[0, 0] == pytest.approx(exact, rel=0.02)


def test_estimates_of_inaccurate_models_and_of_few_rows_are_followed_less():
    rng = np.random.default_rng(0)
    accurate, inaccurate = (fitted(40, rng, error=e)[0] for e in (0.0, 0.6))
    assert weight_of(accurate, 1e-4) > 0.9 > weight_of(accurate, 0.02) + 0.1
    assert weight_of(inaccurate, 1e-4) < 0.5


def test_estimates_that_say_nothing_of_groups_are_not_followed():
    rng = np.random.default_rng(0)
    truth, noise = rng.dirichlet([8, 4, 4], 40), rng.dirichlet([8, 4, 4], 40)
    sizes, fits = np.full(40, 200), np.zeros(40, dtype=bool)
    effects = fit_random_effects(noise, np.full((40, 3), 1e-4), truth, sizes, fits)[0]
    assert abs(weight_of(effects, 1e-4)) < 0.25


def test_own_rows_reduce_variance_and_decide_in_the_end():
    rng = np.random.default_rng(0)
    effects = fitted(12, rng)[0]
    _, _, estimates, variance = simulate(1, rng, rows=400)
    draws, fits = as_draws(estimates, variance, 400), np.array([False])
    rows = [np.array([[0, 0, n]]) for n in (0, 10, 100, 100_000)]
    shrunk = [effects.shrink(draws, fits, "population", own) for own in rows]
    assert np.diff([s.mean[0, 2] for s in shrunk]).min() > 0
    assert shrunk[-1].mean[0, 2] > 0.98
    assert shrunk[-1].variance.sum() < 0.01 * shrunk[0].variance.sum()


def test_poor_fit_widens_intervals_where_it_went_with_errors():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([4, 4], 40)
    poor = np.arange(40) % 2 == 0
    off = np.where(poor, 0.25, 0.02) * rng.normal(size=40)
    estimates = np.clip(truth + off[:, None] * [1, -1], 0, 1)
    sizes, variance = np.full(40, 200), np.full((40, 2), 1e-4)
    effects = fit_random_effects(estimates, variance, truth, sizes, poor)[0]
    assert effects.excess_error[1].min() > 4 * effects.excess_error[0].max()
    draws = as_draws(np.tile(effects.mean, (2, 1)), np.full((2, 2), 1e-4), 200)
    interval = effects.shrink(draws, np.array([False, True])).interval()
    assert np.diff(interval.high - interval.low, axis=0).min() > 0.05


def test_few_groups_say_little():
    effects = fitted(2, np.random.default_rng(0))[0]
    draws = as_draws(effects.mean[None], np.full((1, 3), 1e-3), 500)
    interval = effects.shrink(draws, np.array([False])).interval()
    assert (interval.high - interval.low).max() > 0.3
    assert effects.width > fitted(40, np.random.default_rng(0))[0].width
    assert np.isfinite(fitted(1, np.random.default_rng(0))[0].excess_error).all()


def test_the_order_of_groups_and_batches_do_not_matter():
    rng = np.random.default_rng(1)
    _, truth, estimates, variance = simulate(30, rng)
    sizes, poor = rng.integers(20, 60, 30), rng.random(30) < 0.3
    order = rng.permutation(30)
    one, left_out = fit_random_effects(estimates, variance, truth, sizes, poor)
    permuted = (a[order] for a in (estimates, variance, truth, sizes, poor))
    other, permuted_out = fit_random_effects(*permuted)
    assert permuted_out == pytest.approx(left_out[order], abs=1e-12)
    assert other.error == pytest.approx(one.error, abs=1e-12)
    assert other.width_scale == pytest.approx(one.width_scale, abs=1e-12)
    _, _, estimates, variance = simulate(2100, rng)
    draws, poor = as_draws(estimates, variance, 40), rng.random(2100) < 0.3
    own = rng.integers(0, 5, (2100, 3))
    whole = one.shrink(draws, poor, "bag", own)
    chosen = rng.permutation(2100)[:50]
    part = one.shrink(draws.take(chosen), poor[chosen], "bag", own[chosen])
    assert part.mean == pytest.approx(whole.mean[chosen], abs=1e-12)
    assert part.variance == pytest.approx(whole.variance[chosen], abs=1e-12)
    assert whole.mean.sum(axis=1) == pytest.approx(1.0)


def test_the_order_of_classes_does_not_matter():
    rng = np.random.default_rng(2)
    _, truth, estimates, variance = simulate(12, rng)
    sizes, fits, order = np.full(12, 40), np.zeros(12, dtype=bool), [2, 0, 1]
    one, left_out = fit_random_effects(estimates, variance, truth, sizes, fits)
    permuted = (a[:, order] for a in (estimates, variance, truth))
    other, permuted_out = fit_random_effects(*permuted, sizes, fits)
    assert other.error == pytest.approx(one.error, abs=1e-10)
    assert other.mean == pytest.approx(one.mean[order], abs=1e-10)
    assert permuted_out == pytest.approx(left_out[:, order], abs=1e-10)  # each is left out alone


def test_draws_have_the_moments_of_the_shrinkage_estimates():
    rng = np.random.default_rng(3)
    effects = fitted(40, rng)[0]
    _, _, estimates, variance = simulate(1, rng)
    shrunk = effects.shrink(as_draws(estimates, variance, 40), np.array([False]))
    values = shrunk.array()[0]
    assert values.sum(axis=1) == pytest.approx(1.0)
    assert values.mean(axis=0) == pytest.approx(shrunk.mean[0], abs=0.03)
    assert values.std(axis=0) == pytest.approx(np.sqrt(shrunk.variance[0]), rel=0.25)
