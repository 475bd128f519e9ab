"""The automatic choice."""

import time
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import headcount.selection.trials
from headcount import (
    PCC,
    SLD,
    AutoQuantifier,
    BayesQuantifier,
    Blend,
    HDx,
    InputError,
    UniformPrevalence,
)
from headcount.methods.files import load, save
from headcount.testing import check_quantifier


def items(n, k=2, seed=0, gap=1.5):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k).repeat(12), rng.choice(k, n)])
    X = rng.normal(size=(len(y), 6)) + gap * np.eye(k, 6)[y]
    return X, np.array(["a", "b", "c", "d"])[y]


@pytest.mark.parametrize("k", [2, 3])
def test_it_chooses_and_says_so(k):
    X, y = items(600, k)
    auto = AutoQuantifier(measure="rae", expect="any shift").fit(X, y)
    table = auto.results_
    error = table["rae"][np.isfinite(table["rae"])]
    chosen = [m for m in table["method"] if auto.summary_.startswith(m)]
    assert chosen, auto.summary_
    row = int(np.flatnonzero(table["method"] == max(chosen, key=len))[0])
    assert table["rae"][row] <= 1.02 * error.min()
    assert "was chosen" in auto.summary_ and "C = " in auto.summary_ and "Next" in auto.summary_
    pool, truth = items(5000, k, seed=1)
    bags = UniformPrevalence(n_bags=50, size=200, random_state=0).draw(truth)
    assert np.abs(auto.predict_bags(pool, bags) - bags.prevalence).mean() < 0.04
    found = auto.predict_interval(pool, bags)
    assert ((found.low <= bags.prevalence) & (bags.prevalence <= found.high)).mean() > 0.85
    assert auto.diagnose(pool, bags).fit.shape == (50,)


def test_counting_wins_where_nothing_moves_and_loses_where_all_does():
    X, y = items(800, gap=0.7)
    some = {"counting": PCC(calibrator="bcts"), "likelihood": SLD(calibrator="bcts")}
    still = AutoQuantifier(expect="no shift", candidates=some).fit(X, y)
    moving = AutoQuantifier(expect="any shift", candidates=some).fit(X, y)
    assert still.summary_.startswith("counting") and moving.summary_.startswith("likelihood")


def test_the_first_of_equals_is_taken_and_failures_never_are():
    X, y = items(300)
    some = {"broken": SLD(alpha=[1, 2, 3]), "first": SLD(), "second": SLD()}
    auto = AutoQuantifier(candidates=some).fit(X, y)
    assert auto.summary_.startswith("first")
    assert "InputError" in auto.results_["failure"][0]
    with pytest.raises(InputError, match="every candidate failed"):
        AutoQuantifier(candidates={"broken": SLD(alpha=[1, 2, 3])}).fit(X, y)
    with pytest.raises(InputError, match="does not work on scores"):
        AutoQuantifier(candidates={"odd": HDx()}).fit(X, y)


def test_a_blend_is_taken_where_it_is_worth_it():
    @dataclass(eq=False, repr=False, kw_only=True)
    class Off(SLD):
        """Errs by a known amount."""

        by: float = 0.0

        def aggregate(self, scores, bags):
            p = super().aggregate(scores, bags)[:, 1] * 0.6 + 0.2 + self.by
            return np.column_stack([1 - p, p])

    X, y = items(800, gap=3.0)
    some = {"low": Off(by=-0.15), "high": Off(by=0.15)}
    auto = AutoQuantifier(expect="any shift", candidates=some).fit(X, y)
    assert isinstance(auto.best_quantifier_, Blend)
    assert " + " in auto.summary_
    assert auto.results_["ae"][-1] < 0.97 * min(auto.results_["ae"][:-1])
    assert abs(auto.predict(X)[1] - (y == "b").mean()) < 0.05


def test_no_time_still_gives_an_answer():
    X, y = items(300)
    auto = AutoQuantifier(budget=0).fit(X, y)
    assert len(auto.results_["method"]) == 1
    assert isinstance(auto.best_quantifier_, BayesQuantifier)


def test_strengths_of_the_classifier_are_tried():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(400, 80))])  # more noise than items can tell
    y = (X[:, 0] + 0.5 * rng.normal(size=400) > 0).astype(int)
    auto = AutoQuantifier(LogisticRegression(C=100.0, max_iter=1000), expect="any shift").fit(X, y)
    assert "C = 10" in auto.summary_ or "C = 1 " in auto.summary_
    assert "C = 100" in auto.summary_
    forest = AutoQuantifier(RandomForestClassifier(10, random_state=0)).fit(X, y)
    assert "as given" in forest.summary_


def test_scores_and_sparse_items_do_as_well():
    X, y = items(400)
    scores = LogisticRegression().fit(X, y).predict_proba(X)
    auto = AutoQuantifier(size=50).fit_scores(scores, y)
    assert "bags of 50" in auto.summary_ and "Classifier" not in auto.summary_
    assert auto.predict_scores(scores).shape == (2,)
    thin = AutoQuantifier().fit(sparse.csr_matrix(X), y)
    assert thin.predict(sparse.csr_matrix(X)).shape == (2,)


def test_the_same_data_give_the_same_choice():
    X, y = items(300, 3)
    one, other = (AutoQuantifier().fit(X, y) for _ in range(2))
    assert one.summary_ == other.summary_
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_too_few_items_are_refused():
    X, y = items(100)
    rare = np.concatenate([np.flatnonzero(y == "a"), np.flatnonzero(y == "b")[:7]])
    with pytest.raises(InputError, match="at least 10 labelled items of every class"):
        AutoQuantifier().fit(X[rare], y[rare])
    for settings in ({"expect": "all"}, {"measure": "q"}, {"budget": -1}, {"size": 0}):
        with pytest.raises(InputError, match=next(iter(settings))):
            AutoQuantifier(**settings).fit(X, y)


def test_a_file_gives_the_same_answers(tmp_path):
    X, y = items(300)
    auto = AutoQuantifier(budget=0).fit(X, y)
    save(auto, tmp_path / "m.hc")
    np.testing.assert_array_equal(load(tmp_path / "m.hc").predict(X), auto.predict(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_a_quantifier(monkeypatch, n_classes):
    monkeypatch.setattr(headcount.selection.trials, "FOLDS", 2)
    monkeypatch.setattr(headcount.selection.trials, "REPEATS", 1)
    some = {"bayes": BayesQuantifier(n_worlds=2, n_draws=40)}
    auto = AutoQuantifier(LogisticRegression(), budget=0, candidates=some)
    check_quantifier(auto, n_classes=n_classes)


def test_columns_are_told_by_their_names():
    X, y = items(600, 3, gap=4.0)
    some = {"bayes": BayesQuantifier(n_worlds=2, n_draws=40)}
    p = LogisticRegression().fit(X, y).predict_proba(X)
    frame = pd.DataFrame(p, columns=["a", "b", "c"])[["b", "a", "c"]]
    auto = AutoQuantifier(candidates=some).fit_scores(frame, y)
    assert auto.predict_scores(frame[y == "b"])[1] > 0.9
    with pytest.raises(InputError, match="columns"):
        auto.predict_scores(frame.rename(columns={"a": "z"}))


def test_decision_values_do():
    X, y = items(400)
    p = LogisticRegression().fit(X, y).decision_function(X)
    auto = AutoQuantifier().fit_scores(p, y)
    assert abs(auto.predict_scores(p)[1] - (y == "b").mean()) < 0.05
    assert AutoQuantifier(LinearSVC(), budget=0).fit(X, y).predict(X).shape == (2,)


def test_a_candidate_that_takes_too_long_is_given_up(monkeypatch):
    clock = [time.monotonic()]

    class Clock:
        """A clock that goes on only while the slow candidate works."""

        @staticmethod
        def monotonic():
            return clock[-1]

    class Slow(SLD):
        """Takes its time."""

        def aggregate(self, scores, bags):
            clock.append(clock[-1] + 1000.0)
            return super().aggregate(scores, bags)

    X, y = items(300)
    monkeypatch.setattr(headcount.selection.trials, "time", Clock)
    some = {"quick": SLD(), "slow": Slow()}
    forest = RandomForestClassifier(5, random_state=0)
    auto = AutoQuantifier(forest, budget=60, candidates=some).fit(X, y)
    assert "out of time" in auto.results_["failure"][1]
    assert auto.summary_.startswith("quick")


def test_odd_settings_are_refused_or_served():
    X, y = items(200)
    AutoQuantifier(random_state=2**32 - 1, budget=0).fit(X, y)
    for classifier in ("lr", LogisticRegression):
        with pytest.raises(InputError, match="classifier"):
            AutoQuantifier(classifier).fit(X, y)
