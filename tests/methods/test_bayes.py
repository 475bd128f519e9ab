"""Posteriors of shares against brute force, and answers against every point of a grid."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from headcount import PCC, SLD, Bags, BayesQuantifier, Blend, InputError, UniformPrevalence, measure
from headcount.inference.intervals import Request
from headcount.inference.posteriors import (
    EXACT,
    _gibbs,
    _normal,
    component_shares,
    concentrations,
    decide,
    modes,
    prior_around,
    sample,
)
from headcount.methods.files import load, save


def two_gaussians(n, share, rng, gap=1.5):
    """Scores on one axis, their labels and their likelihoods under both classes."""
    y = (rng.random(n) < share).astype(int)
    x = rng.normal(size=n) + gap * y
    return y, np.exp(-0.5 * (x[:, None] - [0.0, gap]) ** 2)


def log_component(counts, alpha):
    total = alpha.sum()
    parts = gammaln(counts + alpha) - gammaln(alpha)
    return parts.sum(axis=-1) + gammaln(total) - gammaln(total + counts.sum(axis=-1))


def grid_posterior(likelihood, prior):
    """Posterior of the number of positives by a fine grid over the share they are drawn with."""
    alpha, weights = prior
    grid = (np.arange(4000) + 0.5) / 4000
    m = len(likelihood)
    density = likelihood[:, :1] * (1 - grid) + likelihood[:, 1:] * grid
    logs = np.log(density).sum(axis=0)
    beta = [
        gammaln(a.sum())
        - gammaln(a).sum()
        + (a[0] - 1) * np.log1p(-grid)
        + (a[1] - 1) * np.log(grid)
        for a in alpha
    ]
    logs += np.logaddexp.reduce(np.array(beta) + weights[:, None], axis=0)
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    out = np.zeros(m + 1)
    for p, weight in zip(grid[mass > 1e-9], mass[mass > 1e-9], strict=True):
        owner = likelihood[:, 1] * p / (likelihood @ [1 - p, p])
        number = np.array([1.0])
        for r in owner:
            number = np.convolve(number, [1 - r, r])
        out += weight * number
    return out / out.sum()


PRIORS = [
    prior_around("any shift", np.array([0.8, 0.2])),
    prior_around("learn", np.array([0.8, 0.2])),
]


@pytest.mark.parametrize("prior", PRIORS, ids=["flat", "mixture"])
def test_two_classes_equal_a_fine_grid(prior):
    rng = np.random.default_rng(0)
    _, likelihood = two_gaussians(60, 0.3, rng)
    exact = grid_posterior(likelihood, prior)
    shares = np.arange(61) / 60
    mean = exact @ shares
    sd = np.sqrt(exact @ (shares - mean) ** 2)
    bag, starts = Bags.single(60), modes(likelihood, Bags.single(60), prior)
    seeds = np.array([7], dtype=np.uint64)
    sums, _ = sample(likelihood, bag, prior, 4000, seeds, starts)
    chain, _ = _gibbs(likelihood, bag, prior, seeds, starts.copy(), 200_000, 30, None, np.ones(1))
    for draws, tolerance in ((sums, 5e-4), (chain, 2e-3)):
        found = draws[0, :, 1].astype(float)
        assert abs(found.mean() - mean) < tolerance
        assert abs(found.std() - sd) < tolerance
        for n in range(61):
            below = (found < (n + 0.5) / 60).mean()
            assert abs(below - exact[: n + 1].sum()) < 5 * tolerance


def test_three_classes_equal_all_labellings():
    rng = np.random.default_rng(1)
    likelihood = rng.random((7, 3)) + 0.05
    alpha, weights = prior_around({0: 0.5, 20: 0.5}, np.array([0.6, 0.3, 0.1]))
    labels = np.array(list(product(range(3), repeat=7)))
    fit = np.log(likelihood[np.arange(7), labels]).sum(axis=1)
    counts = np.stack([(labels == c).sum(axis=1) for c in range(3)], axis=1)
    parts = np.exp(np.array([log_component(counts, a) for a in alpha]).T + weights + fit[:, None])
    parts /= parts.sum()
    bag = Bags.single(7)
    seeds = np.array([3], dtype=np.uint64)
    draws, mix = sample(likelihood, bag, (alpha, weights), 100_000, seeds, np.full((1, 3), 1 / 3))
    np.testing.assert_allclose(draws[0].mean(axis=0), parts.sum(axis=1) @ counts / 7, atol=4e-3)
    second = (parts.sum(axis=1)[:, None] * (counts / 7) ** 2).sum(axis=0)
    np.testing.assert_allclose((draws[0].astype(float) ** 2).mean(axis=0), second, atol=4e-3)
    np.testing.assert_allclose(mix[0], parts.sum(axis=0), atol=5e-3)


def test_components_of_the_prior_are_told_alike_by_sums_and_by_sampling():
    rng = np.random.default_rng(2)
    _, likelihood = two_gaussians(200, 0.5, rng)
    prior = prior_around("learn", np.array([0.7, 0.3]))
    bag, starts, seeds = Bags.single(200), np.full((1, 2), 0.5), np.array([1], dtype=np.uint64)
    _, exact = sample(likelihood, bag, prior, 100, seeds, starts)
    _, sampled = _gibbs(likelihood, bag, prior, seeds, starts, 50_000, 30, None, np.ones(1))
    np.testing.assert_allclose(exact, sampled, atol=0.02)
    sure = component_shares(np.array([[0.7, 0.3], [0.1, 0.9]]), np.array([1000, 1000]), prior)
    assert sure[0, -2:].sum() > 0.5 > 1e-6 > sure[1, -2:].sum()


@pytest.mark.parametrize("k", [2, 3])
def test_the_normal_form_agrees_with_sampling(k):
    rng = np.random.default_rng(3)
    share = np.array([0.5, 0.3, 0.2])[:k] / np.array([0.5, 0.3, 0.2])[:k].sum()
    y = rng.choice(k, 4000, p=share)
    x = rng.normal(size=(4000, k)) + 1.5 * np.eye(k)[y]
    likelihood = np.exp(1.5 * x)
    likelihood /= likelihood.max(axis=1, keepdims=True)
    prior = prior_around("learn", np.full(k, 1 / k))
    bag = Bags.single(4000)
    starts = modes(likelihood, bag, prior)
    seeds, whole = np.array([5], dtype=np.uint64), np.ones(1)
    chain, mix = _gibbs(likelihood, bag, prior, seeds, starts.copy(), 20_000, 30, None, whole)
    normal, evidence = _normal(likelihood, bag, starts[0], prior, 20_000, rng)
    np.testing.assert_allclose(normal.mean(axis=0), chain[0].mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(normal.std(axis=0), chain[0].std(axis=0), rtol=0.06)
    np.testing.assert_allclose(evidence, mix[0], atol=0.06)
    # Items that count for less: the same centre, and nearly the same spread.
    prior = prior_around({30: 1.0}, np.full(k, 1 / k))
    starts = modes(likelihood, bag, prior)
    for worth in (0.1, 0.001):
        less = np.array([worth])
        chain, _ = _gibbs(likelihood, bag, prior, seeds, starts.copy(), 20_000, 30, None, less)
        normal, _ = _normal(likelihood, bag, starts[0], prior, 20_000, rng, worth)
        np.testing.assert_allclose(normal.mean(axis=0), chain[0].mean(axis=0), atol=4e-3)
        np.testing.assert_allclose(normal.std(axis=0), chain[0].std(axis=0), rtol=0.2)


def drifting(rng, n, share, moved=0.0):
    """Items of three classes in two features; those of all classes have moved in one of them."""
    y = rng.choice(3, n, p=share)
    corners = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0]])
    return rng.normal(size=(n, 2)) + corners[y] + np.array([0.0, -moved]), y


def test_drift_counts_for_nothing_where_only_shares_have_changed():
    rng = np.random.default_rng(0)
    X, y = drifting(rng, 1500, [0.5, 0.3, 0.2])
    pool, truth = drifting(rng, 3000, [1 / 3, 1 / 3, 1 / 3])
    bags = UniformPrevalence(n_bags=40, size=200, random_state=0).draw(truth)
    plain = BayesQuantifier(LogisticRegression(), n_worlds=2, n_draws=100).fit(X, y)
    careful = BayesQuantifier(LogisticRegression(), n_worlds=2, n_draws=100, drift=16).fit(X, y)
    worth = careful._worth(careful.views(pool, bags))
    assert (worth == 1).mean() > 0.8
    errors = [np.abs(q.predict_bags(pool, bags) - bags.prevalence).mean() for q in (plain, careful)]
    assert errors[1] < 1.1 * errors[0]
    same = [q.predict_bags(pool, bags)[worth == 1] for q in (plain, careful)]
    np.testing.assert_array_equal(*same)  # an item counts in full there


def test_drift_leads_towards_calibrated_counting():
    rng = np.random.default_rng(1)
    X, y = drifting(rng, 1500, [0.5, 0.3, 0.2])
    pool, truth = drifting(rng, 600, [0.5, 0.3, 0.2], moved=1.0)
    shares = np.bincount(truth) / len(truth)
    model = LogisticRegression()
    counted = PCC(model, calibrator="curves").fit(X, y).predict(pool)
    options = {"n_worlds": 2, "n_draws": 200}
    fitted = [BayesQuantifier(model, drift=d, **options).fit(X, y) for d in (0, 1, 4, 1e6)]
    answers = [q.predict(pool) for q in fitted]
    away = [np.abs(answer - counted).sum() for answer in answers]
    assert away[0] > away[1] > away[2] > away[3]
    assert np.abs(answers[2] - shares).sum() < np.abs(answers[0] - shares).sum()
    widths = [q.predict_interval(pool) for q in fitted[1:3]]
    narrow, wide = ((w.high - w.low).max() for w in widths)
    assert wide > narrow
    assert fitted[2].quick_twin().drift == 0  # simulated bags are mixtures of the classes
    with pytest.raises(InputError, match="drift"):
        BayesQuantifier(model, drift=-1).fit(X, y)


def test_drift_of_two_classes_goes_from_sums_to_sampling():
    rng = np.random.default_rng(5)
    _, likelihood = two_gaussians(300, 0.7, rng)
    prior = prior_around({10: 1.0}, np.array([0.7, 0.3]))
    bags = Bags.from_lists([np.arange(300), np.arange(300)], 300)
    starts, seeds = modes(likelihood, bags, prior), np.zeros(2, dtype=np.uint64)
    draws, _ = sample(likelihood, bags, prior, 2000, seeds, starts, worth=np.array([1.0, 0.01]))
    assert draws[1, :, 1].std() > 2 * draws[0, :, 1].std()
    assert draws[1, :, 1].mean() < draws[0, :, 1].mean()  # nearer to the expected .3


def test_large_bags_are_quick_and_right():
    rng = np.random.default_rng(4)
    y, likelihood = two_gaussians(80_000, 0.25, rng)
    posterior = likelihood / likelihood.sum(axis=1, keepdims=True)
    train, _ = posterior[:4000], y[:4000]
    bayes = BayesQuantifier(calibrator=None, n_worlds=0, expect="any shift")
    bayes.fit_scores(train, y[:4000])
    bayes.worlds_ = [(None, np.array([0.5, 0.5]))]
    assert abs(bayes.predict_scores(posterior)[1] - y.mean()) < 0.005


def simplex(k, steps):
    if k == 2:
        p = np.linspace(0, 1, steps + 1)
        return np.column_stack([1 - p, p])
    cells = [(a, b) for a in range(steps + 1) for b in range(steps + 1 - a)]
    return np.array([(a, b, steps - a - b) for a, b in cells]) / steps


@pytest.mark.parametrize("which", ["ae", "rae", "se", "kld", "nmd"])
@pytest.mark.parametrize("k", [2, 3])
def test_no_point_of_a_fine_grid_is_a_better_answer(which, k):
    rng = np.random.default_rng(5)
    grid = simplex(k, 2000 if k == 2 else 120)
    each = measure(which)
    for alpha in (np.ones(k), np.array([8.0, 1.5, 0.4])[:k], np.array([0.3, 4.0, 4.0])[:k]):
        draws = rng.dirichlet(alpha, 301)[None].astype(np.float32)
        sizes = np.full(len(draws[0]), 100) if each.smooths else None
        truth = draws[0].astype(float)
        truth /= truth.sum(axis=1, keepdims=True)

        def expected(answer, truth=truth, sizes=sizes):
            return np.mean(each(truth, np.tile(answer, (len(truth), 1)), sizes=sizes))

        best = min(expected(p) for p in grid)
        answer = decide(draws, which, [100])[0]
        assert answer.sum() == pytest.approx(1) and (answer >= 0).all()
        assert expected(answer) <= best * 1.003


def test_the_answer_suits_the_measure():
    rng = np.random.default_rng(6)
    y, likelihood = two_gaussians(40_000, 0.5, rng)
    posterior = likelihood / likelihood.sum(axis=1, keepdims=True)
    bags = UniformPrevalence(n_bags=800, size=100, random_state=0).draw(y)
    found = {}
    for which in ("ae", "rae"):
        bayes = BayesQuantifier(measure=which, calibrator=None, n_worlds=0, expect="any shift")
        found[which] = bayes.fit_scores(posterior, y).predict_scores(posterior, bags)
    found["sld"] = SLD().fit_scores(posterior, y).predict_scores(posterior, bags)
    truth = bags.prevalence
    ae = {name: measure("ae")(truth, p).mean() for name, p in found.items()}
    rae = {name: measure("rae")(truth, p, sizes=bags.sizes).mean() for name, p in found.items()}
    assert rae["rae"] < 0.95 * min(rae["ae"], rae["sld"])
    assert ae["ae"] < min(ae["rae"], ae["sld"])


def scored(rng, n=3000, k=2, share=None):
    y = rng.choice(k, n, p=share)
    X = rng.normal(size=(n, 4)) + 1.2 * np.eye(k, 4)[y]
    return X, y


def test_no_shift_is_calibrated_counting_and_any_shift_is_not():
    rng = np.random.default_rng(7)
    X, y = scored(rng, share=[0.8, 0.2])
    scores = LogisticRegression().fit(X[:1000], y[:1000]).predict_proba(X)
    common = {"calibrator": "bcts", "n_worlds": 0}
    fixed = BayesQuantifier(expect={1e9: 1}, measure="se", **common).fit_scores(scores, y)
    counted = PCC(calibrator="bcts").fit_scores(scores, y)
    part = scores[y == 1][:300]
    np.testing.assert_allclose(fixed.predict_scores(part), counted.predict_scores(part), atol=0.01)
    free = BayesQuantifier(expect="any shift", **common).fit_scores(scores, y)
    assert free.predict_scores(part)[1] > 0.9 > 0.6 > fixed.predict_scores(part)[1]


def test_a_classifier_trained_on_balanced_classes_is_repaired():
    rng = np.random.default_rng(8)
    X, y = scored(rng, n=6000, share=[0.9, 0.1])
    balanced = LogisticRegression(class_weight="balanced")
    bayes = BayesQuantifier(balanced, expect="any shift").fit(X[:3000], y[:3000])
    assert abs(bayes.predict(X[3000:])[1] - y[3000:].mean()) < 0.02


def test_bags_do_not_depend_on_company_or_workers(monkeypatch):
    rng = np.random.default_rng(9)
    X, y = scored(rng, k=3)
    scores = LogisticRegression().fit(X, y).predict_proba(X)
    bags = UniformPrevalence(n_bags=12, size=50, random_state=0).draw(y)
    bayes = BayesQuantifier(n_worlds=3, n_draws=60).fit_scores(scores, y)
    whole = bayes.predict_scores(scores, bags)
    np.testing.assert_array_equal(whole[:5], bayes.predict_scores(scores, bags[:5]))
    np.testing.assert_array_equal(whole, bayes.set_params(n_jobs=2).predict_scores(scores, bags))
    monkeypatch.setattr("headcount.methods.bayes.NUMBERS_AT_ONCE", 1000)
    np.testing.assert_array_equal(whole, bayes.predict_scores(scores, bags))


def test_past_bags_tell_how_far_shares_move():
    rng = np.random.default_rng(10)
    X, y = scored(rng, n=8000, share=[0.7, 0.3])
    scores = LogisticRegression().fit(X, y).predict_proba(X)
    still = Bags.from_lists([rng.integers(0, 8000, 400) for _ in range(30)], 8000)
    moved = UniformPrevalence(n_bags=30, size=400, random_state=1).draw(y)
    bayes = BayesQuantifier(n_worlds=2).fit_scores(scores, y)
    strengths = np.array(list(concentrations("learn")))
    for bags, kind in ((still, strengths >= 300), (moved, strengths <= 10)):
        for known in (bags, bags.with_truth(y)):
            learnt = bayes.learn_shift(scores, known)
            assert np.exp(learnt.prior_[1])[kind].sum() > 0.75
            bayes.fit_scores(scores, y)


def test_intervals_hold_the_shares():
    rng = np.random.default_rng(11)
    X, y = scored(rng, n=1500, k=3)
    pool, truth = scored(rng, n=20_000, k=3)
    bags = UniformPrevalence(n_bags=60, size=300, random_state=0).draw(truth)
    bayes = BayesQuantifier(expect="any shift").fit(X, y)
    found = bayes.predict_interval(pool, bags, n_draws=150)
    inside = (found.low <= bags.prevalence) & (bags.prevalence <= found.high)
    assert 0.88 < inside.mean() < 0.99
    joint = bayes.predict_interval(pool, bags, n_draws=150, simultaneous=True)
    assert (joint.high - joint.low >= found.high - found.low - 1e-9).all()
    wide = bayes.predict_interval(pool, bags, n_draws=150, target="population")
    assert (wide.high - wide.low).mean() > (found.high - found.low).mean()
    assert bayes.diagnose(pool, bags).fit.shape == (60,)


@pytest.mark.parametrize("likelihood", ["histograms", "kernels"])
def test_densities_of_scores_serve_as_likelihoods(likelihood):
    rng = np.random.default_rng(12)
    X, y = scored(rng, n=4000)
    scores = LogisticRegression().fit(X, y).predict_proba(X)
    bags = UniformPrevalence(n_bags=40, size=300, random_state=0).draw(y)
    bayes = BayesQuantifier(likelihood=likelihood, calibrator=None, expect="any shift")
    found = bayes.fit_scores(scores, y).predict_scores(scores, bags)
    plain = SLD().fit_scores(scores, y).predict_scores(scores, bags)
    off, most = (np.abs(p - bags.prevalence).mean() for p in (found, plain))
    assert off < 1.15 * most


def test_histograms_are_for_two_classes():
    rng = np.random.default_rng(13)
    X, y = scored(rng, n=300, k=3)
    with pytest.raises(InputError, match="two classes"):
        BayesQuantifier(likelihood="histograms").fit(X, y)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"measure": "nkld"}, "measure"),
        ({"expect": "some"}, "expect"),
        ({"expect": {10: -1}}, "positive weights"),
        ({"expect": {}}, "positive weights"),
        ({"expect": {float("inf"): 1}}, "positive weights"),
        ({"likelihood": "guess"}, "likelihood"),
        ({"n_draws": 5}, "n_draws"),
        ({"n_worlds": -1}, "n_worlds"),
        ({"bandwidth": 0}, "bandwidth"),
    ],
)
def test_impossible_settings_are_refused(settings, words):
    X, y = scored(np.random.default_rng(14), n=100)
    with pytest.raises(InputError, match=words):
        BayesQuantifier(**settings).fit(X, y)


def test_a_file_gives_the_same_answers(tmp_path):
    rng = np.random.default_rng(15)
    X, y = scored(rng, n=400, k=3)
    both = Blend(
        quantifiers=[BayesQuantifier(n_worlds=2, n_draws=40), SLD(calibrator="bcts")],
        weights=[2, 1],
    )
    for model in (BayesQuantifier(measure="rae", n_worlds=2, n_draws=40), both):
        model.fit(X, y)
        save(model, tmp_path / "m.hc")
        np.testing.assert_array_equal(load(tmp_path / "m.hc").predict(X), model.predict(X))


def test_a_blend_is_the_weighted_mean():
    rng = np.random.default_rng(16)
    X, y = scored(rng, n=600)
    scores = LogisticRegression().fit(X, y).predict_proba(X)
    parts = [SLD(), PCC()]
    alone = [q.fit_scores(scores, y).predict_scores(scores[:99]) for q in parts]
    both = Blend(quantifiers=parts, weights=[3, 1]).fit_scores(scores, y)
    expected = 0.75 * alone[0] + 0.25 * alone[1]
    np.testing.assert_allclose(both.predict_scores(scores[:99]), expected)
    for weights in ([1], [-1, 2], [0, 0], ["a", "b"], [np.inf, 1]):
        with pytest.raises(InputError, match="weights"):
            Blend(quantifiers=parts, weights=weights).fit_scores(scores, y)
    with pytest.raises(InputError, match="quantifiers"):
        Blend(quantifiers=["SLD"]).fit_scores(scores, y)
    decisions = np.log(scores[:, 1] / scores[:, 0])
    assert Blend().fit_scores(decisions, y).predict_scores(decisions).shape == (2,)


def test_exact_sums_stay_in_range_at_their_largest():
    rng = np.random.default_rng(17)
    y, likelihood = two_gaussians(EXACT, 0.02, rng, gap=6.0)
    bag = Bags.single(EXACT)
    prior = prior_around("no shift", np.array([0.2, 0.8]))
    draws, _ = sample(
        likelihood, bag, prior, 200, np.zeros(1, dtype=np.uint64), modes(likelihood, bag, prior)
    )
    assert np.isfinite(draws).all()
    assert abs(draws[0, :, 1].mean() - y.mean()) < 0.01


def test_a_prior_far_from_the_scores_still_counts():
    for m in (50, 400, 2000):
        likelihood = np.tile([1 / 3, 1.0], (m, 1))
        prior = prior_around({1e4: 1}, np.array([0.99, 0.01]))
        bag = Bags.single(m)
        starts = modes(likelihood, bag, prior)
        exact, _ = sample(likelihood, bag, prior, 500, np.zeros(1, dtype=np.uint64), starts)
        grid = np.linspace(1e-5, 0.2, 20_000)
        logs = m * np.log((1 - grid) / 3 + grid) + 9899 * np.log1p(-grid) + 99 * np.log(grid)
        mass = np.exp(logs - logs.max())
        owner = grid / (grid + (1 - grid) / 3)
        assert exact[0, :, 1].mean() == pytest.approx((mass * owner).sum() / mass.sum(), rel=0.02)


def test_learning_shift_from_what_cannot_be_is_refused():
    X, y = scored(np.random.default_rng(18), n=200)
    with pytest.raises(NotFittedError):
        BayesQuantifier().learn_shift(X, Bags.single(200))
    bayes = BayesQuantifier(n_worlds=2).fit(X, y)
    with pytest.raises(InputError, match="Bags"):
        bayes.learn_shift(X, [[0, 1]])
    with pytest.raises(InputError, match="3 classes"):
        bayes.learn_shift(X, Bags.single(200).with_truth(np.arange(200) % 3))


def test_items_that_stand_for_many_leave_the_prior_its_weight():
    rng = np.random.default_rng(19)
    y, likelihood = two_gaussians(4000, 0.2, rng)
    posterior = likelihood * [0.8, 0.2]
    posterior /= posterior.sum(axis=1, keepdims=True)
    bayes = BayesQuantifier(expect="no shift", n_worlds=0).fit_scores(posterior, y)
    pool = np.concatenate([posterior[y == 1][:400], posterior[y == 0][:400]])
    every = Bags.from_lists([np.tile(np.arange(800), 5)], 800)
    some = Bags.from_lists([np.arange(800)], 800)
    whole = bayes.bound([(pool, every)], every.sizes, Request()).prevalence
    part = bayes.bound([(pool, some)], every.sizes, Request()).prevalence
    np.testing.assert_allclose(part, whole, atol=0.02)


def test_a_generator_is_asked_once():
    X, y = scored(np.random.default_rng(20), n=300, k=3)
    scores = LogisticRegression().fit(X, y).predict_proba(X)
    bayes = BayesQuantifier(random_state=np.random.default_rng(0), n_worlds=2)
    bayes.fit_scores(scores, y)
    np.testing.assert_array_equal(bayes.predict_scores(scores), bayes.predict_scores(scores))
