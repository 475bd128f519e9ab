"""Inputs that once gave a wrong answer, a crash or an unclear error."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from headcount import (
    ACC,
    CC,
    MLPE,
    PACC,
    PCC,
    RLLS,
    SLD,
    Bags,
    DirichletPrevalence,
    Frame,
    InputError,
    Measure,
    NaturalPrevalence,
    evaluate,
    evaluate_many,
    leaderboard,
    measure,
)
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
        (lambda: SLD(tol=np.nan).fit_scores([0.1, 0.9], [0, 1]), "tol must be"),
        (lambda: SLD(smoothing_order=-1).fit_scores([0.1, 0.9], [0, 1]), "smoothing_order"),
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
        p = SLD(DummyClassifier(strategy="prior"), solver=solver).fit(X, y).predict(X)
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
