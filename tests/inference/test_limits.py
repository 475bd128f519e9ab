"""Limits against simulation and brute force."""

import numpy as np
import pytest

from headcount import ELSA, SLD, Bags, InputError, UniformPrevalence
from headcount.inference import limits

CASES = {
    "two": (np.array([[-0.75], [0.75]]), np.array([0.7, 0.3])),
    "four": (
        np.array([[0, 0], [1.8, 0], [0, 1.8], [1.5, 1.5]], dtype=float),
        np.array([0.4, 0.3, 0.2, 0.1]),
    ),
}
SIZE = 500


def world(case, n=100_000, seed=0):
    """Items with equal shares, their labels, true posteriors and ratios of densities."""
    centres, p = CASES[case]
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(p), n)
    X = centres[y] + rng.normal(size=(n, centres.shape[1]))
    f = np.exp(-0.5 * ((X[:, None, :] - centres) ** 2).sum(axis=2))
    posterior = f / f.sum(axis=1, keepdims=True)
    return p, y, posterior, limits.likelihood_ratios(posterior, np.full(len(p), 1 / len(p)))


def bags_of(y, counts, n_bags, rng):
    rows = [np.flatnonzero(y == c) for c in range(len(counts))]
    lists = [
        np.concatenate([rng.choice(r, n) for r, n in zip(rows, counts, strict=True)])
        for _ in range(n_bags)
    ]
    return Bags.from_lists(lists, len(y))


@pytest.mark.parametrize("case", CASES)
def test_maximum_likelihood_reaches_the_limit_of_known_densities(case):
    p, y, posterior, ratios = world(case)
    rng = np.random.default_rng(1)
    exact = SLD().fit_scores(posterior, y)
    exact.prior_ = np.full(len(p), 1 / len(p))
    bound = np.sqrt(np.diag(limits.covariance(ratios, p, SIZE)))
    bags = bags_of(y, np.round(p * SIZE).astype(int), 4000, rng)
    off = exact.predict_scores(posterior, bags) - p
    assert np.sqrt((off**2).mean()) == pytest.approx(np.sqrt((bound**2).mean()), rel=0.03)
    attained = limits.attainable(ratios, [p], SIZE)[0]
    assert np.abs(off).mean() == pytest.approx(attained, rel=0.03)
    drawn = [rng.multinomial(SIZE, p) for _ in range(4000)]
    loose = Bags.from_lists([_one(y, c, rng) for c in drawn], len(y))
    off = exact.predict_scores(posterior, loose) - p
    bound = np.diag(limits.covariance(ratios, p, SIZE, target="population"))
    assert np.sqrt((off**2).mean()) == pytest.approx(np.sqrt(bound.mean()), rel=0.03)


def _one(y, counts, rng):
    rows = [np.flatnonzero(y == c) for c in range(len(counts))]
    return np.concatenate([rng.choice(r, n) for r, n in zip(rows, counts, strict=True)])


def test_elsa_reaches_the_limit_of_learnt_densities():
    p, y, posterior, ratios = world("two")
    rng = np.random.default_rng(2)
    labelled = np.array([200, 200])
    bound = np.sqrt(limits.covariance(ratios, p, SIZE, labelled=labelled)[0, 0])
    known = np.sqrt(limits.covariance(ratios, p, SIZE)[0, 0])
    off = []
    for _ in range(1500):
        rows = _one(y, labelled, rng)
        bag = Bags.from_lists([_one(y, np.round(p * SIZE).astype(int), rng)], len(y))
        elsa = ELSA(calibrate_width=False).fit_scores(posterior[rows], y[rows])
        off.append(elsa.predict_scores(posterior, bag)[0, 0] - p[0])
    assert np.sqrt(np.mean(np.square(off))) == pytest.approx(bound, rel=0.04)
    assert bound > 1.3 * known


def test_two_classes_follow_the_formula_of_the_brier_score():
    p, _, _, ratios = world("two")
    weight = ratios @ p
    eta = ratios[:, 1] * p[1] / weight
    variance = np.average(eta**2, weights=weight) - p[1] ** 2
    expected = ((p[0] * p[1]) ** 2 / variance - p[0] * p[1]) / SIZE
    assert limits.covariance(ratios, p, SIZE)[1, 1] == pytest.approx(expected, rel=0.01)


def test_the_limit_of_endless_labels_is_that_of_known_densities():
    p, _, _, ratios = world("four", 20_000)
    known = limits.covariance(ratios, p, SIZE)
    endless = limits.covariance(ratios, p, SIZE, labelled=np.full(4, 1e12))
    np.testing.assert_allclose(known, endless, rtol=1e-4)


def test_a_class_that_is_absent_is_known_to_be():
    _, _, _, ratios = world("four", 20_000)
    bound = limits.covariance(ratios, [0.5, 0.5, 0, 0], SIZE)
    assert (bound[2:] == 0).all() and bound[0, 0] > 0


def test_the_bayes_risk_is_that_of_brute_force():
    _, y, posterior, _ = world("two", 20_000)
    size = 40
    bags = UniformPrevalence(n_bags=400, size=size, random_state=0).draw(y)
    risk = limits.bayes_risk(posterior, bags, "ae").mean()
    shares = np.arange(size + 1) / size
    brute = []
    for items, truth in zip(bags, np.asarray(bags.prevalence)[:, 1], strict=True):
        # Elementary symmetric polynomials of the odds, over the ways to choose: a flat prior.
        odds = posterior[items, 1] / posterior[items, 0]
        e = np.array([1.0])
        for o in odds:
            e = np.convolve(e, [1.0, o])
        ways = np.ones(size + 1)
        for n in range(1, size + 1):
            ways[n] = ways[n - 1] * (size - n + 1) / n
        mass = e / ways
        cdf = np.cumsum(mass / mass.sum())
        brute.append(abs(shares[np.searchsorted(cdf, 0.5)] - truth))
    assert risk == pytest.approx(np.mean(brute), rel=0.03)
    flat = SLD().fit_scores(posterior, y).predict_scores(posterior, bags)
    assert risk < np.abs(flat - bags.prevalence).mean()


def test_relative_errors_weigh_small_shares():
    _, _, _, ratios = world("two", 20_000)
    each = limits.attainable(ratios, [[0.5, 0.5], [0.95, 0.05]], [100, 100], "rae")
    assert each[1] > 2 * each[0]
    assert limits.attainable(ratios, [[0.5, 0.5]], 100, "se")[0] == pytest.approx(
        limits.covariance(ratios, [0.5, 0.5], 100)[0, 0]
    )


def test_bad_input_is_refused():
    _, y, posterior, ratios = world("two", 1000)
    with pytest.raises(InputError, match="mean 1"):
        limits.covariance(posterior, [0.5, 0.5], 100)
    with pytest.raises(InputError, match="classes"):
        limits.covariance(ratios, [0.5, 0.3, 0.2], 100)
    with pytest.raises(InputError, match="one vector"):
        limits.covariance(ratios, [[0.5, 0.5], [0.1, 0.9]], 100)
    with pytest.raises(InputError, match="labelled"):
        limits.covariance(ratios, [0.5, 0.5], 100, labelled=[3])
    with pytest.raises(InputError, match="no true prevalences"):
        limits.bayes_risk(posterior, Bags.single(1000))
    with pytest.raises(InputError, match="pool"):
        limits.bayes_risk(posterior[:10], Bags.single(1000).with_truth(y))
    with pytest.raises(InputError, match="n_draws"):
        limits.bayes_risk(posterior, Bags.single(1000).with_truth(y), n_draws=0)
    with pytest.raises(InputError, match="centre"):
        limits.bayes_risk(posterior, Bags.single(1000).with_truth(y), centre=[0.5, 0.3, 0.2])
    with pytest.raises(InputError, match="numbers"):
        limits.likelihood_ratios("high")
    with pytest.raises(InputError, match="prior"):
        limits.likelihood_ratios(posterior, [0.5, 0.3, 0.2])
    with pytest.raises(InputError, match="zero"):
        limits.likelihood_ratios([[0.9, 0.1], [0.5, 0.5]], [1.0, 0.0])


def test_classes_that_cannot_be_told_apart_have_no_limit():
    assert np.isinf(limits.attainable(np.ones((50, 2)), [0.5, 0.5], 100)).all()
    assert np.isinf(np.diag(limits.covariance(np.ones((50, 3)), [0.4, 0.3, 0.3], 100))).all()


@pytest.mark.parametrize("sizes", [0, [10, 10, 10], "many"])
def test_sizes_that_cannot_be_are_refused(sizes):
    _, _, _, ratios = world("two", 1000)
    with pytest.raises(InputError, match="sizes"):
        limits.attainable(ratios, [[0.5, 0.5], [0.1, 0.9]], sizes)
