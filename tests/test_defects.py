"""Inputs that once gave a wrong answer, a crash or an unclear error."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

import headcount
from headcount import (
    ACC,
    CC,
    ELSA,
    MLPE,
    MMD,
    MS,
    MS2,
    PACC,
    PCC,
    RLLS,
    SLD,
    SMM,
    SORD,
    Bags,
    ContinuousSweep,
    CvMy,
    DirichletPrevalence,
    DMx,
    DMy,
    DyS,
    EDy,
    Ensemble,
    Frame,
    HDx,
    HDy,
    HeadcountWarning,
    InputError,
    KDEyCS,
    KDEyHD,
    KDEyML,
    Measure,
    NaturalPrevalence,
    OneVsAll,
    evaluate,
    evaluate_many,
    leaderboard,
    measure,
)
from headcount.exceptions import UnreliableWarning
from headcount.methods import X
from headcount.methods.objectives import ClassVectors, Divergence
from headcount.methods.solvers import Exact, SmoothedEM, StableEM
from headcount.testing.quantifiers import make_items


@pytest.fixture
def decisions(rng):
    y = rng.integers(0, 2, 400)
    return 2 * (y - 0.5) + rng.normal(size=400), y


@pytest.mark.parametrize("method", [CC(), ACC(), PACC(calibrator="platt")])
def test_a_column_of_decision_values_stays_one_at_prediction(method, decisions):
    d, y = decisions
    inside = np.array([0.3, 0.4, 0.2])
    fitted = method.fit_scores(d, y)
    both = np.column_stack([-inside / 2, inside / 2])
    np.testing.assert_allclose(fitted.predict_scores(inside), fitted.predict_scores(both))


def test_score_columns_named_after_classes_are_put_in_their_order(rng):
    y = rng.integers(0, 2, 300)
    p = np.clip(0.5 + 0.6 * (y - 0.5) + rng.normal(size=300) * 0.15, 0, 1)
    labels = np.array(["neg", "pos"])[y]
    for library in (pd, pl):
        turned = library.DataFrame({"pos": p, "neg": 1 - p})
        plain = np.column_stack([1 - p, p])
        expected = PCC().fit_scores(plain, labels).predict_scores(plain)
        fitted = PCC().fit_scores(turned, labels)
        np.testing.assert_allclose(fitted.predict_scores(turned), expected)
        np.testing.assert_allclose(fitted.predict_scores(turned[["neg", "pos"]]), expected)
    with pytest.raises(InputError, match="columns of scores are"):
        fitted.predict_scores(pd.DataFrame({"yes": p, "no": 1 - p}))


def test_cc_counts_what_the_classifier_predicts():
    X, y = make_items(3)
    for classifier in (
        SVC(decision_function_shape="ovo"),
        FixedThresholdClassifier(LogisticRegression(), threshold=0.1),
    ):
        if not isinstance(classifier, SVC):
            X, y = make_items(2)
        counted = np.bincount(classifier.fit(X, y).predict(X)) / len(y)
        np.testing.assert_allclose(CC(classifier).fit(X, y).predict(X), counted)
        bags = Bags.single(len(y)).with_truth(y)
        shared = evaluate_many({"PCC": PCC(), "CC": CC(classifier)}, X, y, X, bags, "ae")
        estimate = [shared[f"estimate:{c}"][1] for c in range(len(counted))]
        np.testing.assert_allclose(estimate, counted)
    with pytest.raises(InputError, match="needs posterior probabilities"):
        PACC(SVC(decision_function_shape="ovo"), calibrator="platt").fit(*make_items(3))


@pytest.mark.parametrize(
    "labels",
    [
        ["pos", float("nan"), "neg", "pos"],
        ["pos", None, "neg", "pos"],
        pd.Series(["pos", pd.NA, "neg", "pos"], dtype="string"),
        pd.Series([True, pd.NA, False, True], dtype="boolean"),
        np.array(["2026-01-01", "NaT", "2026-01-02", "2026-01-01"], dtype="datetime64[D]"),
    ],
)
def test_missing_labels_and_groups_are_never_a_class(labels):
    with pytest.raises(InputError, match="missing at row 1"):
        MLPE().fit(np.zeros((4, 1)), labels)
    with pytest.raises(InputError, match="missing at row 1"):
        Bags.from_groups(labels)


@pytest.mark.parametrize("labels", [[1, "1", "a", "a"], [1, "a", 2, 3], [("a", 1)] * 4])
def test_mixed_and_composite_labels_are_refused(labels):
    with pytest.raises(InputError, match=r"mixes types|single values|one dimension"):
        MLPE().fit(np.zeros((4, 1)), labels)


def test_weeks_are_monday_to_sunday():
    days = ["2026-01-05", "2026-01-11", "2026-01-07", "2026-01-12"]
    assert Bags.from_time(days, every="week").ids.astype(str).tolist() == [
        "2026-01-05",
        "2026-01-12",
    ]


def test_times_are_cut_by_their_own_clock():
    stamp = pd.Timestamp("2026-02-01 00:30", tz="Europe/Berlin")
    columns = [pd.Series([stamp]), pd.DatetimeIndex([stamp]), [stamp.to_pydatetime()]]
    columns += [["2026-02-01T00:30:00+01:00"], pl.Series([stamp.to_pydatetime()])]
    for column in columns[:-1]:
        assert Bags.from_time(column).ids.astype(str).tolist() == ["2026-02"]
    with pytest.raises(InputError, match="plain numbers"):
        Bags.from_time([2024, 2025], every="year")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bags(np.array([0, 2]), np.array([5, 105]), 100), "holds item 105"),
        (lambda: Bags(np.array([0, 9]), np.array([0, 1]), 2), "indptr must rise"),
        (lambda: Bags(np.array([0, 2]), np.array([0.0, 1.7]), 2), "whole numbers"),
        (lambda: Bags.from_lists([[0]], 3.5), "n_items must be a whole number"),
        (lambda: Bags.from_lists([0, 1], 3), "list of item numbers"),
        (lambda: Bags.from_groups([]), "no items"),
        (lambda: Bags.from_groups(["a"])[[False]], "no bags"),
        (lambda: Bags.single(4).shares(np.array([0, 1, 5, 0]), 2), "codes must lie"),
        (lambda: Bags.single(4).shares(np.array([0, 1]), 2), "2 codes for a pool of 4"),
        (
            lambda: Bags(np.array([0, 1]), np.array([0]), 1, prevalence=np.ones((2, 2)) / 2),
            "2 rows",
        ),
        (lambda: NaturalPrevalence().draw([]), "y is empty"),
        (lambda: SLD(alpha=np.nan).fit_scores([0.1, 0.9], [0, 1]), "alpha must be"),
        (lambda: SLD(solver=Exact(tol=np.nan)).fit_scores([0.1, 0.9], [0, 1]), "tol must be"),
        (lambda: SLD(solver=SmoothedEM(order=-1)).fit_scores([0.1, 0.9], [0, 1]), "order"),
        (lambda: SLD(alpha=[2, 2, 2]).fit_scores([0.1, 0.9], [0, 1]), "3 values for 2 classes"),
        (lambda: RLLS(alpha=np.nan).fit_scores([0.1, 0.9], [0, 1]), "alpha must be"),
        (lambda: measure("q(beta=inf)"), "positive and finite"),
        (lambda: measure("rae")([[0.5, 0.5]], [[0.5, 0.5]], sizes=[1, 2]), "2 values for 1 bags"),
        (lambda: PCC().fit_scores([0.1, 0.9], [0, 1], classes=[]), "distinct labels"),
        (lambda: PCC().fit_scores([0.1, 0.9], [0, 1]).predict_scores([0.5], [[0]]), "must be Bags"),
        (lambda: MLPE().fit_scores([0.1, 0.9], [0, 1]).predict_scores([]), "empty"),
        (lambda: leaderboard(Frame({"method": ["a"]})), "no measures"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_leaderboard_ranks_bias_by_size_and_undefined_last():
    board = leaderboard(Frame({"method": ["unbiased", "biased"], "bias": [0.0, -0.9]}))
    assert board["method"].tolist() == ["unbiased", "biased"]
    board = leaderboard(Frame({"method": ["good", "bad"], "q(beta=2.0)": [0.9, 0.1]}))
    assert board["method"][0] == "good"
    board = leaderboard(Frame({"method": ["none", "some"], "carc": [np.nan, 0.5]}))
    assert board["rank(carc)"].tolist() == [1, 2] and board["method"][0] == "some"


@pytest.mark.parametrize("every", ["year", "month", "week", "day", "hour"])
def test_frames_of_time_bags_convert(every):
    X, y = make_items(2)
    times = np.datetime64("2026-01-01") + np.arange(len(y)).astype("m8[D]")
    frame = evaluate(PCC().fit(X, y), X, Bags.from_time(times, every=every, y=y), "ae")
    assert len(frame.to_polars()) == len(frame.to_arrow()) == len(frame.to_pandas())


def test_evaluate_many_takes_what_fit_takes():
    X, y = make_items(2)
    odd = make_pipeline(FunctionTransformer(lambda z: z), LogisticRegression())
    bags = Bags.single(len(y)).with_truth(y)
    frame = evaluate_many(
        {"a": PCC(odd), "b": PACC(odd)}, X, y, X, bags, (m for m in ["ae", "rae"])
    )
    assert {"ae", "rae"} <= set(frame)


@pytest.mark.parametrize("name", ["platt", "bcts", "vs"])
def test_calibration_does_not_depend_on_shift_and_scale_of_scores(name, decisions):
    d, y = decisions
    mean = []
    for values in (d, d + 1000, d * 1e-8, d * 1e6):
        scores = np.column_stack([-values / 2, values / 2])
        fitted = PCC(calibrator=name).fit_scores(scores, y)
        mean.append(fitted.predict_scores(scores[y == 1])[1])
    np.testing.assert_allclose(mean, mean[0], atol=2e-3)


def test_flat_likelihood_leaves_the_training_prevalence():
    X, y = make_items(2)
    share = np.bincount(y) / len(y)
    for solver in ("exact", "em"):
        with pytest.warns(UnreliableWarning, match="separates nothing"):
            q = SLD(DummyClassifier(strategy="prior"), solver=solver).fit(X, y)
        p = q.predict(X)
        np.testing.assert_allclose(p, share, atol=1e-9)


def test_text_form_of_a_measure_loses_nothing():
    exact = Measure("rae", eps=1 / 300)
    assert measure(str(exact)) == exact
    assert measure("macro-nmd").name == "macro_nmd"


def test_tiny_concentrations_put_bags_at_the_corners():
    bags = DirichletPrevalence(n_bags=200, concentration=1e-4, random_state=0).draw([0, 1] * 50)
    assert (bags.prevalence.max(axis=1) > 0.99).mean() > 0.99


def test_samples_of_texts_become_a_list():
    pool, bags = Bags.from_samples([["a b", "c"], ["d"]])
    assert pool == ["a b", "c", "d"] and bags.sizes.tolist() == [2, 1]


class LabelsOnly(BaseEstimator):
    """Has `predict` and nothing else: no scores, no `classes_`."""

    def fit(self, X, y):
        self.cut_ = X[:, 0].mean()
        self.labels_ = np.unique(y)
        return self

    def predict(self, X):
        return self.labels_[(X[:, 0] > self.cut_).astype(int)]


def test_a_classifier_of_labels_only_serves_the_counting_methods():
    X, y = make_items(2)
    classifier = LabelsOnly()
    for method in (CC(classifier), ACC(classifier), RLLS(classifier, hard=True)):
        assert method.fit(X, y).predict(X).sum() == pytest.approx(1)


def test_a_bag_gets_the_same_answer_alone_and_among_others(rng):
    k = 12
    scores = np.vstack([rng.dirichlet(1 + 3 * np.eye(k)[c], 40) for c in range(k)])
    y = np.repeat(np.arange(k), 40)
    pool = rng.dirichlet(np.ones(k), 150)
    bags = Bags.from_lists([rng.integers(150, size=5) for _ in range(15)], 150)
    for method in (DMy(n_bins=64), KDEyHD(n_reference=200), EDy(), SLD(calibrator="bcts"), ELSA()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HeadcountWarning)
            fitted = method.fit_scores(scores, y)
            together = fitted.predict_scores(pool, bags)
            for s in (0, 7, 14):
                alone = fitted.predict_scores(pool, bags[[s]])[0]
                np.testing.assert_allclose(alone, together[s], atol=1e-12, err_msg=str(method))


def test_sparse_histograms_are_matched_to_the_optimum(rng):
    k = 10
    scores = np.vstack([rng.dirichlet(1 + 3 * np.eye(k)[c], 40) for c in range(k)])
    fitted = DMy(n_bins=64).fit_scores(scores, np.repeat(np.arange(k), 40))
    pool = rng.dirichlet(np.ones(k), 60)
    bags = Bags.from_lists([rng.integers(60, size=5) for _ in range(10)], 60)
    p = fitted.predict_scores(pool, bags)  # a warning would be an error here
    matcher = fitted.matcher_
    q, v = matcher.representation.of_bags(pool, bags), matcher.objective.classes_.means
    others = rng.dirichlet(np.full(k, 0.5), 4000)
    for s in range(10):
        loss = ((np.sqrt(q[s]) - np.sqrt(others @ v)) ** 2).sum(axis=1).min()
        assert ((np.sqrt(q[s]) - np.sqrt(p[s] @ v)) ** 2).sum() <= loss + 1e-9


def test_absolute_divergence_is_a_linear_programme(rng):
    rows, targets = rng.dirichlet(np.ones(9), 5), rng.dirichlet(np.ones(9), 3)
    classes = ClassVectors(rows, np.full(5, 0.2), np.ones(5, dtype=int))
    p = Divergence("l1").fit(classes).solve(targets, np.ones(3, dtype=int))
    others = rng.dirichlet(np.full(5, 0.5), 20_000)
    for s in range(3):
        best = np.abs(others @ rows - targets[s]).sum(axis=1).min()
        assert np.abs(p[s] @ rows - targets[s]).sum() <= best + 1e-9


def test_sweeps_fall_back_to_counting(rng):
    y = np.repeat([0, 1], [1800, 200])
    scores = np.clip(0.1 + 0.05 * rng.normal(size=2000) + 0.01 * y, 0.001, 0.999)
    with pytest.warns(UnreliableWarning, match="separates nothing"):
        fitted = MS2().fit_scores(scores, y)
    np.testing.assert_allclose(fitted.predict_scores(scores), [1, 0])


def test_continuous_sweep_skips_holes_and_ignores_scale(rng):
    y = np.repeat([0, 1], 500)
    low, high = (np.where(rng.random(500) < 0.5, a, b) for a, b in ((-3, 1), (-1, 3)))
    z = np.concatenate([low, high]) + 0.1 * rng.normal(size=1000)
    bag = np.concatenate([rng.choice(z[:500], 900), rng.choice(z[500:], 100)])
    answers = [
        ContinuousSweep().fit_scores(c * z, y).predict_scores(c * bag)[1] for c in (1, 1e-5, 1e4)
    ]
    np.testing.assert_allclose(answers, answers[0], atol=1e-9)
    assert abs(answers[0] - 0.1) < 0.12


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_feature_histograms_do_not_depend_on_the_number_type(dtype, rng):
    X = rng.integers(20, 100, (400, 6))
    y = np.repeat([0, 1], 200)
    X[y == 1] += 20
    pool = np.clip(X[100:300] - 30, 0, 255)
    for method in (DMx(), HDx(n_bins=10)):
        expected = method.fit(X.astype(float), y).predict(pool.astype(float))
        np.testing.assert_allclose(
            method.fit(X.astype(dtype), y).predict(pool.astype(dtype)), expected
        )


@pytest.mark.parametrize("level", [0.2, 0.5])
def test_scores_that_are_all_equal_leave_the_training_prevalence(level):
    flat, y = np.full(100, level), [0] * 80 + [1] * 20
    for method in (DyS(), HDy(), DMy(), SORD(), EDy(), CvMy(), ELSA(), KDEyCS(), SMM(), MS(), X()):
        with pytest.warns(UnreliableWarning, match="separates nothing"):
            fitted = method.fit_scores(flat, y)
        np.testing.assert_allclose(fitted.predict_scores(flat), [0.8, 0.2])


def test_tiny_overlaps_of_densities_still_count(rng):
    centres = ([20, 5, 5], [5, 20, 5], [5, 5, 20])
    scores = np.vstack([rng.dirichlet(a, 50) for a in centres])
    fitted = KDEyCS(bandwidth=0.01).fit_scores(scores, np.repeat([0, 1, 2], 50))
    np.testing.assert_allclose(fitted.predict_scores([[0, 0.02, 0.98]]), [0, 0, 1], atol=1e-6)


def test_low_temperatures_do_not_underflow():
    y = np.repeat([0, 1], 50)
    bag = np.zeros(20_000)
    bag[0] = 1
    p = SLD(solver=StableEM(temperature=0.01)).fit_scores(y.astype(float), y).predict_scores(bag)
    assert p[1] == pytest.approx(1 / 20_000, abs=1e-6)


def test_sparse_matrices_that_cannot_be_indexed(rng):
    X, y = make_items(3)
    odd = sparse.coo_matrix(X)
    for method in (PACC(), Ensemble(size=3, sample_size=60), OneVsAll(PACC())):
        assert method.fit(odd, y).predict(sparse.csr_matrix(X)).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "method",
    [
        DMy(n_bins=(4, 8)),
        DyS(n_bins=None),
        KDEyHD(n_reference=10.5),
        MMD(n_features=2.5),
        MMD(bandwidth=None),
        KDEyML(bandwidth=[0.1]),
        KDEyML(bandwidth=np.inf),
        KDEyML(bandwidth=True),
        DMy(tau=[1, 2]),
        SLD(solver=StableEM(damping=[0.5, 0.5])),
    ],
    ids=str,
)
def test_mistyped_settings_are_refused_by_name(method):
    with pytest.raises(InputError, match="must be"):
        method.fit_scores([0.1, 0.9, 0.2, 0.8], [0, 1, 0, 1])


def test_classes_of_type_object_are_read_as_labels_are():
    y = np.array(["b", "a", "b", "a"] * 5, dtype=object)
    bags = headcount.UniformPrevalence(n_bags=3, size=4, random_state=0).draw(
        y, classes=np.unique(y)
    )
    assert bags.classes.tolist() == ["a", "b"]


def test_an_order_of_categories_that_is_lost_is_told():
    X = np.arange(60.0)[:, None]
    names = np.repeat(["low", "mid", "high"], 20)
    ordered = pd.Categorical(names, categories=["low", "mid", "high"], ordered=True)
    with pytest.warns(headcount.HeadcountWarning, match="order of the categories"):
        assert headcount.CC().fit(X, ordered).classes_.tolist() == ["high", "low", "mid"]
    numbers = pd.Categorical(np.repeat([2, 10, 11], 20), categories=[2, 10, 11], ordered=True)
    headcount.CC().fit(X, numbers)
