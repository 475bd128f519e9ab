"""Matching methods against brute force over a grid of the simplex, or a closed form."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_normal

from headcount import (
    ACC,
    FM,
    MMD,
    PACC,
    Bags,
    CvMy,
    DMy,
    DyS,
    EDy,
    HDy,
    InputError,
    KDEyCS,
    KDEyHD,
    KDEyML,
)
from headcount.kernels import affinity
from headcount.methods.histograms import grid_losses, inner_edges
from headcount.methods.objectives import DIVERGENCES, ClassVectors, Divergence
from headcount.protocols.artificial import compositions

SOME = slice(0, 60, 15)  # bags looked at one by one


def grid(k, steps=None):
    steps = steps or {2: 1000, 3: 120, 4: 40}[k]
    return compositions(steps, k) / steps


def classes_of(held_out, y):
    return [held_out[y == c] for c in range(held_out.shape[1])]


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("k", [2, 3])
def test_matching_is_never_worse_than_a_fine_grid(divergence, k, rng):
    for _ in range(5):
        rows = rng.dirichlet(np.full(6, 0.5), k)
        targets = rng.dirichlet(np.full(6, 0.5), 4)
        equal = np.full(k, 1 / k)
        fitted = Divergence(divergence).fit(ClassVectors(rows, equal, np.ones(k, dtype=int)))
        p = fitted.solve(targets, np.ones(4, dtype=int))
        losses = grid_losses(targets, grid(k) @ rows, divergence)
        mine = np.array(
            [
                grid_losses(targets[s : s + 1], p[s : s + 1] @ rows, divergence)[0, 0]
                for s in range(4)
            ]
        )
        slack = 2e-3 if divergence == "l1" and k > 2 else 1e-7
        assert (mine <= losses.min(axis=1) + slack).all()


def test_histogram_methods_minimise_the_distance_of_numpys_histograms(scored):
    held_out, y, pool, bags = scored
    if pool.shape[1] > 2:
        pytest.skip("two classes")
    v = [np.histogram(c[:, 1], bins=8, range=(0, 1))[0] / len(c) for c in classes_of(held_out, y)]
    for divergence in ("hd", "topsoe", "probsymm"):
        fitted = DyS(n_bins=8, divergence=divergence).fit_scores(held_out, y)
        p = fitted.predict_scores(pool, bags)[:, 1]
        for s in range(*SOME.indices(60)):
            q = np.histogram(pool[bags.items(s), 1], bins=8, range=(0, 1))[0] / bags.sizes[s]
            fine = np.linspace(0, 1, 2001)
            losses = grid_losses(
                q[None], np.outer(fine, v[1]) + np.outer(1 - fine, v[0]), divergence
            )
            assert p[s] == pytest.approx(fine[losses.argmin()], abs=1e-3)


def test_hdy_is_the_median_of_grid_searches(scored):
    held_out, y, pool, bags = scored
    if pool.shape[1] > 2:
        pytest.skip("two classes")
    p = HDy().fit_scores(held_out, y).predict_scores(pool, bags)[:, 1]
    shares = np.linspace(0, 1, 101)
    for s in range(*SOME.indices(60)):
        answers = []
        for n in range(10, 111, 10):
            v0, v1 = (
                np.histogram(c[:, 1], bins=n, range=(0, 1))[0] / len(c)
                for c in classes_of(held_out, y)
            )
            q = np.histogram(pool[bags.items(s), 1], bins=n, range=(0, 1))[0] / bags.sizes[s]
            distance = [
                np.sqrt(((np.sqrt(q) - np.sqrt(a * v1 + (1 - a) * v0)) ** 2).sum()) for a in shares
            ]
            answers.append(shares[int(np.argmin(np.round(distance, 12)))])
        assert p[s] == pytest.approx(np.median(answers), abs=0.0051)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_grid_and_exact_search_agree_to_the_grids_step(divergence, scored):
    held_out, y, pool, bags = scored
    a = DyS(n_bins=6, divergence=divergence, search="exact").fit_scores(held_out, y)
    b = DyS(n_bins=6, divergence=divergence, search="grid").fit_scores(held_out, y)
    gap = np.abs(a.predict_scores(pool, bags) - b.predict_scores(pool, bags))
    assert gap.max() <= (0.0101 if pool.shape[1] == 2 else 0.02)


def test_binning_rules(rng):
    scores, positive = rng.random(1000), rng.random(1000) < 0.3
    np.testing.assert_allclose(inner_edges(scores, positive, 4, "equal_width"), [0.25, 0.5, 0.75])
    cells = np.searchsorted(inner_edges(scores, positive, 5, "equal_count"), scores)
    assert np.ptp(np.bincount(cells)) <= 1
    middle = np.mean([scores[positive].mean(), scores[~positive].mean()])
    for rule in ("normal", "binormal"):
        assert inner_edges(scores, positive, 2, rule) == pytest.approx(middle)


def test_dmy_minimises_the_summed_divergence_of_all_columns(scored):
    held_out, y, pool, bags = scored
    k = pool.shape[1]
    columns = [1] if k == 2 else range(k)

    def shares(rows):
        return np.concatenate(
            [np.histogram(rows[:, c], bins=8, range=(0, 1))[0] / len(rows) for c in columns]
        )

    v = np.array([shares(c) for c in classes_of(held_out, y)])
    for divergence in ("hd", "topsoe", "l2"):
        p = DMy(divergence=divergence).fit_scores(held_out, y).predict_scores(pool, bags)
        for s in range(*SOME.indices(60)):
            q = shares(pool[bags.items(s)])[None]
            best = grid_losses(q, grid(k) @ v, divergence).min()
            assert grid_losses(q, p[s : s + 1] @ v, divergence)[0, 0] <= best + 1e-7


def test_dmy_cumulative(scored):
    held_out, y, pool, bags = scored
    k = pool.shape[1]
    fitted = DMy(divergence="l2", cdf=True, n_bins=5).fit_scores(held_out, y)
    p = fitted.predict_scores(pool, bags)
    columns = [1] if k == 2 else range(k)
    edges = np.arange(1, 6) / 5

    def cdfs(rows):
        return np.concatenate([(rows[:, [c]] < edges + 1e-12).mean(axis=0) for c in columns])

    v = np.array([cdfs(c) for c in classes_of(held_out, y)])
    for s in range(*SOME.indices(60)):
        q = cdfs(pool[bags.items(s)])
        losses = ((grid(k) @ v - q) ** 2).sum(axis=1)
        assert ((p[s] @ v - q) ** 2).sum() <= losses.min() + 1e-8


def test_fm_solves_the_system_of_threshold_shares(scored):
    held_out, y, pool, bags = scored
    k = pool.shape[1]
    share = np.bincount(y) / len(y)
    m = np.column_stack([(c >= share).mean(axis=0) for c in classes_of(held_out, y)])
    p = FM().fit_scores(held_out, y).predict_scores(pool, bags)
    for s in range(*SOME.indices(60)):
        q = (pool[bags.items(s)] >= share).mean(axis=0)
        best = ((grid(k) @ m.T - q) ** 2).sum(axis=1).min()
        assert ((m @ p[s] - q) ** 2).sum() <= best + 1e-8


def pairwise_energy(bag, classes, metric):
    """Energy distance of every grid point, straight from all pairs."""
    k = len(classes)
    a = np.array([[cdist(x, z, metric).mean() for x in classes] for z in classes])
    b = np.array([cdist(x, bag, metric).mean() for x in classes])
    return lambda p: 2 * p @ b - np.einsum("...i,ij,...j->...", p, a, p), k


@pytest.mark.parametrize(("distance", "metric"), [("manhattan", "cityblock"), ("euclidean",) * 2])
def test_edy_minimises_the_energy_distance_of_all_pairs(distance, metric, scored):
    held_out, y, pool, bags = scored
    p = EDy(distance=distance).fit_scores(held_out, y).predict_scores(pool, bags)
    for s in range(*SOME.indices(60)):
        loss, k = pairwise_energy(pool[bags.items(s)], classes_of(held_out, y), metric)
        assert loss(p[s]) <= loss(grid(k)).min() + 1e-9


def test_edy_of_two_classes_in_closed_form(scored):
    held_out, y, pool, bags = scored
    if pool.shape[1] > 2:
        pytest.skip("two classes")
    x0, x1 = classes_of(held_out, y)
    d = {
        (i, j): cdist(a, b, "cityblock").mean()
        for i, a in enumerate((x0, x1))
        for j, b in enumerate((x0, x1))
    }
    p = EDy().fit_scores(held_out, y).predict_scores(pool, bags)
    for s in range(*SOME.indices(60)):
        bag = pool[bags.items(s)]
        b0, b1 = (cdist(x, bag, "cityblock").mean() for x in (x0, x1))
        top = -b1 + d[1, 0] + b0 - d[0, 0]
        expected = np.clip(top / (2 * d[1, 0] - d[1, 1] - d[0, 0]), 0, 1)
        assert p[s, 1] == pytest.approx(expected, abs=1e-6)


def test_manhattan_means_agree_with_all_pairs(rng):
    items, classes = rng.random((50, 3)), [rng.random((n, 3)) for n in (1, 20, 33)]
    expected = np.column_stack([cdist(items, c, "cityblock").mean(axis=1) for c in classes])
    np.testing.assert_allclose(affinity.manhattan_means(items, classes), expected)


def test_gaussian_means_agree_with_all_pairs(rng):
    items, classes = rng.random((70, 3)), [rng.random((n, 3)) for n in (1, 20, 33)]
    for h, tol in ((0.2, 1e-5), (0.01, 1e-9)):
        expected = np.column_stack(
            [np.exp(-cdist(items, c, "sqeuclidean") / (2 * h**2)).mean(axis=1) for c in classes]
        )
        np.testing.assert_allclose(affinity.gaussian_means(items, classes, h), expected, atol=tol)


def test_mmd_minimises_the_discrepancy_of_mean_embeddings(scored):
    held_out, y, pool, bags = scored
    h = 0.4

    def kernel(a, b):
        return np.exp(-cdist(a, b, "sqeuclidean") / (2 * h**2)).mean()

    classes = classes_of(held_out, y)
    k = len(classes)
    g = np.array([[kernel(a, b) for a in classes] for b in classes])
    exact = MMD(bandwidth=h).fit_scores(held_out, y).predict_scores(pool, bags)
    for s in range(*SOME.indices(60)):
        to_bag = np.array([kernel(c, pool[bags.items(s)]) for c in classes])

        def loss(p, to_bag=to_bag):
            return np.einsum("...i,ij,...j->...", p, g, p) - 2 * p @ to_bag

        assert loss(exact[s]) <= loss(grid(k)).min() + 1e-6
    fourier = MMD(bandwidth=h, n_features=4000).fit_scores(held_out, y).predict_scores(pool, bags)
    assert np.abs(fourier - exact).mean() < 0.02


def test_cvmy_depends_on_the_order_of_scores_only(scored):
    held_out, y, pool, bags = scored
    if pool.shape[1] > 2:
        pytest.skip("two classes")
    plain = CvMy().fit_scores(held_out, y).predict_scores(pool, bags)
    bent = CvMy().fit_scores(held_out[:, 1] ** 2, y).predict_scores(pool[:, 1] ** 2, bags)
    np.testing.assert_allclose(plain, bent, atol=0.02)
    assert np.abs(plain - bags.prevalence).mean() < 0.06


def test_kdey_ml_maximises_the_likelihood_of_kernel_densities(scored):
    held_out, y, pool, bags = scored
    k, h = pool.shape[1], 0.1
    p = KDEyML(bandwidth=h).fit_scores(held_out, y).predict_scores(pool, bags)
    for s in range(*SOME.indices(60)):
        bag = pool[bags.items(s)]
        density = np.column_stack(
            [
                np.mean([multivariate_normal(x, h**2 * np.eye(k)).pdf(bag) for x in c[:]], axis=0)
                for c in classes_of(held_out, y)
            ]
        )
        best = np.log(grid(k) @ density.T).sum(axis=1).max()
        assert np.log(density @ p[s]).sum() >= best - 2e-3


def test_kdey_cs_minimises_the_cauchy_schwarz_divergence(scored):
    held_out, y, pool, bags = scored
    k, h = pool.shape[1], 0.1
    classes = classes_of(held_out, y)

    def overlap(a, b):
        return np.exp(-cdist(a, b, "sqeuclidean") / (4 * h**2)).mean()

    b = np.array([[overlap(x, z) for x in classes] for z in classes])
    p = KDEyCS(bandwidth=h).fit_scores(held_out, y).predict_scores(pool, bags)
    for s in range(*SOME.indices(60)):
        a = np.array([overlap(x, pool[bags.items(s)]) for x in classes])

        def loss(v, a=a):
            return -np.log(v @ a) + 0.5 * np.log(np.einsum("...i,ij,...j->...", v, b, v))

        assert loss(p[s]) <= loss(grid(k)).min() + 1e-6


def test_kdey_hd_is_close_to_the_integral_it_samples(scored):
    held_out, y, pool, bags = scored
    if pool.shape[1] > 2:
        pytest.skip("two classes, where the integral is one along a line")
    h = 0.1
    line = np.linspace(-0.5, 1.5, 4001)
    # On the line (1 - t, t) distances are sqrt(2) times those of t.
    width = h / np.sqrt(2)

    def density(t):
        return np.exp(-((line[:, None] - t) ** 2) / (2 * width**2)).mean(axis=1)

    v0, v1 = (density(c[:, 1]) for c in classes_of(held_out, y))
    p = (
        KDEyHD(bandwidth=h, n_reference=8000, calibrate_width=False)
        .fit_scores(held_out, y)
        .predict_scores(pool, bags)
    )
    fine = np.linspace(0, 1, 201)
    for s in range(*SOME.indices(60)):
        q = density(pool[bags.items(s), 1])
        mixed = np.outer(fine, v1) + np.outer(1 - fine, v0)
        losses = ((np.sqrt(mixed) - np.sqrt(q)) ** 2).sum(axis=1)
        assert p[s, 1] == pytest.approx(fine[losses.argmin()], abs=0.03)


def test_bandwidth_by_cross_validation_is_one_of_the_grid(scored):
    held_out, y, pool, bags = scored
    chosen = KDEyML(bandwidth="cv").fit_scores(held_out, y)
    assert np.isclose(chosen.bandwidth_, np.linspace(0.01, 0.2, 20)).any()
    wide = KDEyML(bandwidth=0.2).fit_scores(held_out, y)
    errors = [np.abs(q.predict_scores(pool, bags) - bags.prevalence).mean() for q in (chosen, wide)]
    assert errors[0] <= errors[1] + 0.005


@pytest.mark.parametrize("make", [ACC, PACC, DMy, EDy])
def test_tau_makes_neighbouring_classes_alike(make, scored):
    held_out, y, pool, bags = scored
    if pool.shape[1] < 3:
        pytest.skip("three classes at least")

    def rough(p):
        return (np.diff(p, n=2, axis=1) ** 2).sum(axis=1).mean()

    answers = [
        make(tau=t).fit_scores(held_out, y).predict_scores(pool, bags) for t in (0, 0.1, 1e4)
    ]
    assert rough(answers[0]) > rough(answers[1]) > rough(answers[2])
    assert rough(answers[2]) < 1e-4


def test_tau_adds_half_the_squared_second_differences(scored):
    held_out, y, pool, bags = scored
    k = pool.shape[1]
    if k < 3:
        pytest.skip("three classes at least")
    tau = 0.05
    fitted = PACC(tau=tau).fit_scores(held_out, y)
    p, q = fitted.predict_scores(pool, bags), bags.means(pool)

    def loss(v, q):
        smooth = (np.diff(v, n=2, axis=-1) ** 2).sum(axis=-1)
        return ((v @ fitted.confusion_.T - q) ** 2).sum(axis=-1) + tau / 2 * smooth

    for s in range(*SOME.indices(60)):
        assert loss(p[s], q[s]) <= loss(grid(k), q[s]).min() + 1e-9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DyS(n_bins=1).fit_scores([0.1, 0.9], [0, 1]), "n_bins must be whole numbers"),
        (lambda: DyS(divergence="hellinger").fit_scores([0.1, 0.9], [0, 1]), "unknown divergence"),
        (lambda: DyS(binning="equal").fit_scores([0.1, 0.9], [0, 1]), "Did you mean 'equal_"),
        (lambda: DMy(tau=-1).fit_scores([0.1, 0.9], [0, 1]), "tau must be at least 0"),
        (lambda: EDy(distance="cosine").fit_scores([0.1, 0.9], [0, 1]), "unknown distance"),
        (lambda: KDEyML(bandwidth=0).fit_scores([0.1, 0.9], [0, 1]), "bandwidth must be positive"),
        (lambda: KDEyML(bandwidth="cv").fit_scores([0.1, 0.9], [0, 1]), "at least two held-out"),
        (lambda: MMD(n_features=1).fit_scores([0.1, 0.9], [0, 1]), "n_features must be"),
        (lambda: KDEyHD(n_reference=1).fit_scores([0.1, 0.9], [0, 1]), "n_reference must be"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_no_method_needs_a_matrix_of_all_pairs(rng):
    """A pool of 200,000 items against 2,000 labelled ones would be 3 GB of distances."""
    import tracemalloc

    pool, train = rng.random(200_000), rng.random(2_000)
    y = train > rng.random(2_000)
    bags = Bags.single(len(pool))
    for method in (EDy(), KDEyML(), MMD()):
        fitted = method.fit_scores(train, y)
        fitted.predict_scores(pool[:10])
        tracemalloc.start()
        fitted.predict_scores(pool, bags)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100e6, f"{method}: {peak / 1e6:.0f} MB"
