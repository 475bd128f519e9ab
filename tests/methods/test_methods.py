"""Each method against a hand-worked case, a closed form or a direct computation."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.svm import LinearSVC

from headcount import (
    ACC,
    BBSE,
    CC,
    EMQ,
    MLLS,
    MLPE,
    PACC,
    PCC,
    RLLS,
    SLD,
    Bags,
    BBSESoft,
    ConvergenceWarning,
    InputError,
)
from headcount.exceptions import UnreliableWarning
from headcount.methods.solvers import EM, SmoothedEM, StableEM
from headcount.testing.quantifiers import make_items

SCORES = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]])
LABELS = np.array(["neg", "pos", "neg", "pos"])


def test_aliases_are_the_same_classes():
    assert BBSE is ACC and BBSESoft is PACC and EMQ is SLD and MLLS is SLD


def test_cc_and_pcc_count(scored):
    held_out, y, pool, bags = scored
    hard = np.eye(pool.shape[1])[pool.argmax(axis=1)]
    cc = CC().fit_scores(held_out, y).predict_scores(pool, bags)
    pcc = PCC().fit_scores(held_out, y).predict_scores(pool, bags)
    np.testing.assert_allclose(cc, [hard[i].mean(axis=0) for i in bags], atol=1e-12)
    np.testing.assert_allclose(pcc, [pool[i].mean(axis=0) for i in bags], atol=1e-12)


def test_mlpe_answers_the_training_prevalence(scored):
    held_out, y, pool, bags = scored
    share = np.bincount(y) / len(y)
    mlpe = MLPE().fit_scores(held_out, y)
    np.testing.assert_allclose(mlpe.predict_scores(pool, bags), np.tile(share, (len(bags), 1)))


def test_pacc_by_hand():
    # Mean posteriors of class neg: (.8, .2), of pos: (.3, .7); a mean of .55 is half of each.
    pacc = PACC().fit_scores(SCORES, LABELS)
    np.testing.assert_allclose(pacc.confusion_, [[0.8, 0.3], [0.2, 0.7]])
    np.testing.assert_allclose(pacc.predict_scores([[0.55, 0.45]]), [0.5, 0.5], atol=1e-8)
    np.testing.assert_allclose(pacc.predict_scores([[0.99, 0.01]]), [1, 0], atol=1e-12)


def test_acc_by_hand():
    # tpr 2/3, fpr 1/4; a predicted share of 1/2 gives (1/2 - 1/4) / (2/3 - 1/4) = .6
    y = [0, 0, 0, 0, 1, 1, 1]
    scores = [0.1, 0.2, 0.3, 0.9, 0.2, 0.8, 0.9]
    for solver in ("simplex", "inverse"):
        acc = ACC(solver=solver).fit_scores(scores, y)
        np.testing.assert_allclose(acc.predict_scores([0.1, 0.9])[1], 0.6, atol=1e-8)


def test_inverse_is_the_textbook_formula(scored):
    held_out, y, pool, bags = scored
    k = pool.shape[1]
    m = np.column_stack([held_out[y == c].mean(axis=0) for c in range(k)])
    raw = np.array([np.linalg.solve(m, pool[i].mean(axis=0)) for i in bags])
    clipped = np.clip(raw, 0, 1)
    got = PACC(solver="inverse").fit_scores(held_out, y).predict_scores(pool, bags)
    np.testing.assert_allclose(got, clipped / clipped.sum(axis=1, keepdims=True), atol=1e-9)


def test_optimal_weighting_matches_a_direct_two_step_estimate(scored):
    held_out, y, pool, bags = scored
    k = pool.shape[1]
    m = np.column_stack([held_out[y == c].mean(axis=0) for c in range(k)])
    first = PACC().fit_scores(held_out, y).predict_scores(pool, bags)
    second = PACC(weighting="optimal").fit_scores(held_out, y).predict_scores(pool, bags)
    covariances = [np.cov(held_out[y == c].T, bias=True) for c in range(k)]
    grid = np.random.default_rng(0).dirichlet(np.ones(k), 2000)
    for s in range(0, len(bags), 12):
        q, p = pool[bags.items(s)].mean(axis=0), first[s]
        moment = sum(
            p[c] * (held_out[y == c].T @ held_out[y == c]) / (y == c).sum() for c in range(k)
        )
        noise = (moment - np.outer(m @ p, m @ p)) / bags.sizes[s]
        noise += sum(p[c] ** 2 * covariances[c] / (y == c).sum() for c in range(k))
        weight = np.linalg.inv(noise[1:, 1:])  # any one equation may go: they sum to one

        def loss(v, q=q, weight=weight):
            r = (v @ m.T - q)[..., 1:]
            return np.einsum("...i,ij,...j->...", r, weight, r)

        assert loss(second[s]) <= loss(np.vstack([grid, first[s]])).min() + 1e-6


def test_optimal_weighting_lowers_the_error_when_scores_are_uneven():
    rng = np.random.default_rng(0)

    def draw(n, share):
        y = np.sort(rng.choice(3, n, p=share))
        sharp = np.array([0.3, 3.0, 3.0])  # class 0 is told apart well, the others hardly
        z = 1.2 * np.eye(3)[y] + rng.normal(size=(n, 3)) * sharp
        e = np.exp(z)
        return e / e.sum(axis=1, keepdims=True), y

    train, y = draw(6000, [1 / 3] * 3)
    errors = {None: [], "optimal": []}
    for _ in range(60):
        share = rng.dirichlet(np.ones(3))
        pool, truth = draw(400, share)
        realised = np.bincount(truth, minlength=3) / 400
        for weighting, values in errors.items():
            p = (
                PACC(weighting=weighting, calibrate_width=False)
                .fit_scores(train, y)
                .predict_scores(pool)
            )
            values.append(np.abs(p - realised).mean())
    assert np.mean(errors["optimal"]) < np.mean(errors[None])


def test_rlls_lies_between_pacc_and_the_training_prevalence(scored):
    held_out, y, pool, bags = scored
    free = RLLS(alpha=0).fit_scores(held_out, y).predict_scores(pool, bags)
    m = np.column_stack([held_out[y == c].mean(axis=0) for c in range(pool.shape[1])])
    inside = PACC().fit_scores(held_out, y).predict_scores(pool, bags).min(axis=1) > 0
    exact = np.array([np.linalg.solve(m, pool[i].mean(axis=0)) for i in bags])
    np.testing.assert_allclose(free[inside], exact[inside], atol=1e-4)
    pulled = RLLS(alpha=1e3).fit_scores(held_out, y).predict_scores(pool, bags)
    np.testing.assert_allclose(pulled, np.tile(np.bincount(y) / len(y), (len(bags), 1)))


def test_sld_recovers_the_prevalence_of_a_known_model():
    rng = np.random.default_rng(0)
    y = rng.choice(2, 200_000, p=[0.9, 0.1])
    x = rng.normal(size=len(y)) + 1.5 * y
    odds = np.exp(1.5 * x - 1.125)  # density ratio of the two normals
    posterior = 0.5 * odds / (0.5 + 0.5 * odds)  # of a model trained on equal shares
    sld = SLD().fit_scores([[0.9, 0.1], [0.1, 0.9]], [0, 1])
    np.testing.assert_allclose(sld.prior_, [0.5, 0.5])
    assert sld.predict_scores(posterior)[1] == pytest.approx(y.mean(), abs=0.005)


def test_sld_prior_is_the_mean_calibrated_posterior(scored):
    held_out, y, _, _ = scored
    sld = SLD(calibrator="vs").fit_scores(held_out, y)
    np.testing.assert_allclose(sld.prior_, sld.scorer_.calibrate(held_out).mean(axis=0), atol=1e-9)


def test_calibration_repairs_class_balanced_training():
    X, y = make_items(2, n=4000)
    pool, y_pool = make_items(2, n=4000, seed=5)
    balanced = LogisticRegression(class_weight="balanced")
    truth = np.bincount(y_pool) / len(y_pool)
    plain = SLD(balanced).fit(X, y).predict(pool)
    repaired = SLD(balanced, calibrator="bcts").fit(X, y).predict(pool)
    assert np.abs(repaired - truth).max() < 0.02 < np.abs(plain - truth).max()


def test_sld_warns_when_posteriors_contradict_the_labels(scored):
    held_out, y, _, _ = scored
    tilted = held_out * np.linspace(1, 8, held_out.shape[1])[::-1]
    tilted /= tilted.sum(axis=1, keepdims=True)
    with pytest.warns(UnreliableWarning, match="calibrator='bcts' repairs it"):
        SLD().fit_scores(tilted, y)


def test_map_with_alpha_two_never_answers_zero(scored):
    held_out, y, pool, bags = scored
    assert SLD(alpha=2).fit_scores(held_out, y).predict_scores(pool, bags).min() > 0


def test_sld_says_when_it_did_not_converge(scored):
    held_out, y, pool, bags = scored
    slow = SLD(solver=EM(tol=1e-14, max_iter=15)).fit_scores(held_out, y)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter=15"):
        slow.predict_scores(pool, bags)


def test_a_useless_classifier_is_reported_and_the_answer_stays_at_the_training_prevalence():
    flat = np.full((10, 2), 0.5)
    y = [0] * 7 + [1] * 3
    for method in (PACC(), PACC(solver="inverse"), SLD()):
        with pytest.warns(UnreliableWarning, match="separates nothing"):
            fitted = method.fit_scores(flat, y)
        np.testing.assert_allclose(fitted.predict_scores(flat), [0.7, 0.3], atol=1e-6)


def test_two_classes_that_look_the_same_are_reported():
    rng = np.random.default_rng(0)
    scores = np.repeat([[0.8, 0.1, 0.1], [0.2, 0.4, 0.4], [0.2, 0.4, 0.4]], 20, axis=0)
    y = np.repeat([0, 1, 2], 20)
    with pytest.warns(UnreliableWarning, match="cannot tell some classes apart"):
        pacc = PACC().fit_scores(scores, y)
    p = pacc.predict_scores(scores[rng.permutation(60)])
    np.testing.assert_allclose(p, [1 / 3, 1 / 3, 1 / 3], atol=1e-6)
    with pytest.warns(UnreliableWarning, match="cannot tell some classes apart"):
        inverse = PACC(solver="inverse").fit_scores(scores, y)
    with pytest.warns(UnreliableWarning, match="no inverse"):
        np.testing.assert_allclose(inverse.predict_scores(scores), scores.mean(axis=0))


@pytest.mark.parametrize("method", [CC, ACC])
def test_counting_methods_take_any_classifier(method):
    X, y = make_items(3)
    for classifier in (LinearSVC(), Perceptron(), RandomForestClassifier(5, random_state=0)):
        assert method(classifier).fit(X, y).predict(X).sum() == pytest.approx(1)


def test_decision_values_need_a_calibrator():
    X, y = make_items(3)
    with pytest.raises(InputError, match=r"has no predict_proba. Set calibrator='platt'"):
        SLD(LinearSVC()).fit(X, y)
    for calibrator in ("platt", "bcts", "isotonic"):
        p = SLD(LinearSVC(), calibrator=calibrator).fit(X, y).predict(X)
        assert np.abs(p - np.bincount(y) / len(y)).max() < 0.05


def test_decision_values_as_scores():
    X, y = make_items(2)
    decision = LinearSVC().fit(X, y).decision_function(X)
    sld = SLD(calibrator="platt").fit_scores(decision, y)
    assert np.abs(sld.predict_scores(decision) - np.bincount(y) / len(y)).max() < 0.05


def test_a_frozen_model_is_validated_on_what_fit_gets():
    X, y = make_items(2, n=1000)
    frozen = FrozenEstimator(LogisticRegression().fit(X[::2], y[::2]))
    pacc = PACC(frozen).fit(X[1::2], y[1::2])
    posterior = frozen.predict_proba(X[1::2])
    expected = [posterior[y[1::2] == c].mean(axis=0) for c in range(2)]
    np.testing.assert_allclose(pacc.confusion_.T, expected)


def test_one_column_of_scores_is_the_second_class():
    a = PACC().fit_scores(SCORES[:, 1], LABELS).predict_scores(SCORES[:, 1])
    b = PACC().fit_scores(SCORES, LABELS).predict_scores(SCORES)
    np.testing.assert_allclose(a, b)


def test_classes_give_the_order_of_the_columns():
    turned = PACC().fit_scores(SCORES[:, ::-1], LABELS, classes=["pos", "neg"])
    straight = PACC().fit_scores(SCORES, LABELS)
    assert turned.classes_.tolist() == ["pos", "neg"]
    np.testing.assert_allclose(
        turned.predict_scores(SCORES[:, ::-1])[::-1], straight.predict_scores(SCORES)
    )


def test_nested_parameters_reach_the_classifier():
    X, y = make_items(2)
    q = SLD(LogisticRegression()).set_params(classifier__C=0.01).fit(X, y)
    assert q.scorer_.whole.C == q.scorer_.folds[0].C == 0.01


def test_texts_go_straight_through_a_pipeline():
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    texts = ["good great", "fine good", "bad awful", "awful poor"] * 10
    y = ["pos", "pos", "neg", "neg"] * 10
    q = PACC(make_pipeline(TfidfVectorizer(), LogisticRegression())).fit(texts, y)
    np.testing.assert_allclose(
        q.predict(["good great"] * 3 + ["bad awful"]), [0.25, 0.75], atol=0.1
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SLD(calibrator="bcst").fit_scores(SCORES, LABELS), "Did you mean 'bcts'"),
        (lambda: SLD(solver="newton").fit_scores(SCORES, LABELS), "unknown solver 'newton'"),
        (lambda: SLD(alpha=0.5).fit_scores(SCORES, LABELS), "alpha must be at least 1"),
        (lambda: SLD(solver=SmoothedEM(strength=2)).fit_scores(SCORES, LABELS), "between 0 and 1"),
        (lambda: PACC(weighting="opt").fit_scores(SCORES, LABELS), "unknown weighting 'opt'"),
        (lambda: RLLS(delta=2).fit_scores(SCORES, LABELS), "delta must be between"),
        (lambda: PACC(calibrator=3).fit_scores(SCORES, LABELS), "calibrator must be a name"),
        (lambda: PACC(cv=5).fit(*make_items(2)[:1], ["rare"] * 3 + ["common"] * 253),
         "class 'rare' has 3 labelled items, fewer than the 5 folds.*Set cv=3"),
        (lambda: PACC(cv=0.1).fit(*make_items(2)[:1], ["rare"] * 3 + ["common"] * 253),
         "too few to hold out"),
        (lambda: PACC(cv=1).fit(*make_items(2)), "at least 2 folds"),
        (lambda: PACC(cv="five").fit(*make_items(2)), "number of folds"),
        (lambda: PACC().fit_scores(SCORES, ["a", "b", "c", "a"]), "2 columns and y holds 3"),
        (lambda: PACC().fit_scores(SCORES, LABELS, classes=["neg", "neu"]), "unseen class"),
        (lambda: PACC().fit_scores(np.full((4, 3), 1 / 3), LABELS, classes=["neg", "neu", "pos"]),
         "class 'neu' has no labelled item"),
        (lambda: PACC().fit_scores(SCORES, LABELS).predict_scores([[0.5, 0.6]]), "sum 1.1"),
        (lambda: PACC().fit_scores(SCORES, LABELS).predict_scores([]), "empty"),
        (lambda: PACC().fit_scores([["a", "b"]], ["x"]), "only one class"),
        (lambda: PACC().fit_scores([["a", "b"]] * 2, ["x", "y"]), "must be numbers"),
        (lambda: Bags.from_lists([[]], 4), "is empty"),
        (lambda: PACC().fit(np.ones((4, 1)), [0.5, 0.1, 0.2, 0.9]), "fractions"),
        (lambda: PACC(FrozenEstimator(LogisticRegression().fit(*make_items(3)))).fit(
            make_items(3)[0][:8], [0] * 8), "frozen model has no item"),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_misspelt_constructor_parameter_is_named():
    with pytest.raises(TypeError, match="calibrater"):
        SLD(calibrater="bcts")


def test_regularised_likelihood_is_never_worse_than_a_grid(scored):
    from headcount import RML
    from headcount.protocols.artificial import compositions

    held_out, y, pool, bags = scored
    k = pool.shape[1]
    grid = compositions({2: 1000, 4: 40}[k], k) / {2: 1000, 4: 40}[k]
    for tau0, tau1 in ((0.3, 0.0), (0.0, 0.3), (0.1, 0.1)):
        fitted = RML(tau0=tau0, tau1=tau1).fit_scores(held_out, y)
        p = fitted.predict_scores(pool, bags)
        for s in range(0, 60, 20):
            likelihood = pool[bags.items(s)] / fitted.prior_

            def loss(v, likelihood=likelihood, tau0=tau0, tau1=tau1):
                rough = tau0 * (np.diff(v) ** 2).sum(-1) + tau1 * (np.diff(v, n=2) ** 2).sum(-1)
                return -np.log(v @ likelihood.T).mean(axis=-1) + rough / 2

            assert loss(p[s]) <= loss(grid).min() + 1e-7


def test_damping_keeps_the_fixed_point_and_temperature_moves_it(scored):
    held_out, y, pool, bags = scored
    exact = SLD().fit_scores(held_out, y).predict_scores(pool, bags)
    damped = SLD(solver=StableEM(damping=0.5), calibrate_width=False).fit_scores(held_out, y)
    damped = damped.predict_scores(pool, bags)
    np.testing.assert_allclose(damped, exact, atol=2e-3)
    soft = SLD(solver=StableEM(temperature=2.0), calibrate_width=False).fit_scores(held_out, y)
    p = soft.predict_scores(pool, bags)
    for s in range(0, 60, 20):
        r = (pool[bags.items(s)] / soft.prior_ * p[s]) ** 0.5
        np.testing.assert_allclose((r / r.sum(axis=1, keepdims=True)).mean(axis=0), p[s], atol=1e-5)


def test_elsa_solves_its_estimating_equations(scored):
    from headcount import ELSA

    held_out, y, pool, bags = scored
    k, n = pool.shape[1], len(y)
    share = np.bincount(y) / n
    p = ELSA().fit_scores(held_out, y).predict_scores(pool, bags)
    inside = np.flatnonzero(p.min(axis=1) > 0.02)[:5]
    for s in inside:
        w, bag = p[s] / share, pool[bags.items(s)]
        pi = n / (n + len(bag))

        def moments(rows, w=w, pi=pi):
            d = 1 / (rows @ w**2 / pi + rows @ w / (1 - pi))
            return d[:, None] * (rows - share)[:, : k - 1]

        # The weighted mean of the moments over the labelled items equals the bag's mean.
        left = (w[y][:, None] * moments(held_out)).mean(axis=0)
        np.testing.assert_allclose(left, moments(bag).mean(axis=0), atol=1e-5)


def test_elsa_beats_pacc_on_average():
    from headcount import ELSA
    from headcount.testing.quantifiers import make_items as items

    X, y = items(2, n=3000)
    pool, truth = items(2, n=5000, seed=5)
    from headcount import UniformPrevalence

    bags = UniformPrevalence(n_bags=200, size=300, random_state=0).draw(truth)
    errors = [
        np.abs(q.fit(X, y).predict_bags(pool, bags) - bags.prevalence).mean()
        for q in (ELSA(), PACC())
    ]
    assert errors[0] < errors[1] * 1.02
