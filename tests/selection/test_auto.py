"""Automatic selection."""

import ast
import itertools
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import headcount.selection
from headcount import (
    PACC,
    PCC,
    SLD,
    AutoQuantifier,
    Bags,
    BayesQuantifier,
    GridSearch,
    HDx,
    InputError,
    MedianOf,
    UniformPrevalence,
)
from headcount.methods.base import without_calibration
from headcount.methods.files import load, save
from headcount.scores.sources import given_source, sources_for
from headcount.selection.budget import Budget, Size, cross_fit_cost, trial_cost
from headcount.selection.candidates import default_candidates
from headcount.selection.classifiers import Labelled, fit_classifiers, subsample
from headcount.selection.rule import one_standard_error_rule
from headcount.selection.validation_bags import cut_periods, leave_out_groups
from headcount.testing import check_quantifier


def items(n, k=2, seed=0, gap=1.5):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k).repeat(12), rng.choice(k, n)])
    X = rng.normal(size=(len(y), 6)) + gap * np.eye(k, 6)[y]
    return X, np.array(["a", "b", "c", "d"])[y]


@pytest.mark.parametrize("k", [2, 3])
def test_it_chooses_and_says_so(k):
    X, y = items(600, k)
    auto = AutoQuantifier(LogisticRegression(), measure="rae", expect="any shift").fit(X, y)
    table = auto.results_
    error = table["rae"][np.isfinite(table["rae"])]
    chosen = [m for m in table["method"] if auto.summary_.startswith(m)]
    assert chosen, auto.summary_
    row = int(np.flatnonzero(table["method"] == max(chosen, key=len))[0])
    assert table["rae"][row] <= 1.2 * error.min()
    assert "was chosen" in auto.summary_ and "Next" in auto.summary_ and "Work:" in auto.summary_
    pool, truth = items(5000, k, seed=1)
    bags = UniformPrevalence(n_bags=50, size=200, random_state=0).draw(truth)
    assert np.abs(auto.predict_bags(pool, bags) - bags.prevalence).mean() < 0.04
    found = auto.predict_interval(pool, bags)
    assert ((found.low <= bags.prevalence) & (bags.prevalence <= found.high)).mean() > 0.85
    assert auto.diagnose(pool, bags).fit.shape == (50,)


def test_counting_wins_where_nothing_moves_and_loses_where_all_does():
    X, y = items(800, gap=0.7)
    some = {"counting": PCC(calibrator="bcts"), "likelihood": SLD(calibrator="bcts")}
    plain = LogisticRegression()
    still = AutoQuantifier(plain, expect="no shift", candidates=some).fit(X, y)
    moving = AutoQuantifier(plain, expect="any shift", candidates=some).fit(X, y)
    assert still.summary_.startswith("counting") and moving.summary_.startswith("likelihood")


def test_the_first_of_equals_is_taken_and_failures_never_are():
    X, y = items(300)
    some = {"broken": SLD(alpha=[1, 2, 3]), "first": SLD(), "second": SLD()}
    auto = AutoQuantifier(LogisticRegression(), candidates=some).fit(X, y)
    assert auto.summary_.startswith("first")
    assert "InputError" in auto.results_["failure"][0]
    with pytest.raises(InputError, match="every candidate failed"):
        AutoQuantifier(LogisticRegression(), candidates={"broken": some["broken"]}).fit(X, y)
    with pytest.raises(InputError, match="does not work on scores"):
        AutoQuantifier(candidates={"odd": HDx()}).fit(X, y)


def test_the_rule_takes_the_simplest_within_one_standard_error():
    """By hand: differences of .1, .3, .1, .3 to the best have mean .2 and standard error .0577."""
    best, units = np.full(4, 1.0), np.arange(4)
    noise = np.array([-0.1, 0.1, -0.1, 0.1])
    for gap, taken in ((0.05, 0), (0.2, 1)):
        assert one_standard_error_rule(np.array([best + gap + noise, best]), units) == taken
    # Four bags of one split are one unit: with two splits the difference is less certain.
    errors = np.array([best + 0.08 + noise, best])
    assert one_standard_error_rule(errors, units) == 1
    assert one_standard_error_rule(errors, np.array([0, 1, 0, 1])) == 0
    # Splits of one cross-validation overlap: .0577 * sqrt(4 * (1 / 4 + 1 / 4)) = .0816.
    assert one_standard_error_rule(errors, units, overlap=0.25) == 0


def test_the_rule_handles_ties_failures_and_single_units():
    best, units = np.full(4, 1.0), np.arange(4)
    assert one_standard_error_rule(np.array([best, best]), units) == 0
    assert one_standard_error_rule(np.array([best + np.inf, best + 5, best]), units) == 2
    assert one_standard_error_rule(np.array([best + 0.1, best]), np.zeros(4)) == 1
    # The simplest of three, not the nearest to the best.
    noise = np.array([-3, 1, 1, 1.0])
    table = np.array([best + 0.5 + noise, best + 0.1 + noise, best])
    assert one_standard_error_rule(table, units) == 0
    with pytest.raises(ValueError, match="every candidate failed"):
        one_standard_error_rule(np.full((2, 4), np.inf), units)


def test_a_pair_is_compared_bag_by_bag():
    """What makes bags hard for both candidates says nothing about their difference."""
    hard = np.random.default_rng(0).uniform(0, 10, 50)
    assert one_standard_error_rule(np.array([hard + 0.1, hard]), np.arange(50)) == 1


def test_no_time_still_gives_an_answer():
    X, y = items(300)
    auto = AutoQuantifier(budget=0).fit(X, y)
    assert len(auto.results_["method"]) == 1
    assert isinstance(auto.best_quantifier_, BayesQuantifier)


def test_a_small_budget_learns_from_a_part_of_the_items_and_the_summary_has_it():
    X, y = (part[:8000] for part in items(8000))
    y[:30] = "c"
    linear, data = sources_for(X, 3)[0], Labelled(X, y, n_all=8000)
    cost = cross_fit_cost(given_source(linear.families["logistic regression"]), data.problem, 5)
    assert subsample(linear, data, Budget(2 * cost)) is data
    part = subsample(linear, data, Budget(0.51 * cost))
    assert 3900 < len(part) < 4300 and len(part.X) == len(part) and part.n_all == 8000
    assert (part.y == "c").sum() >= 20
    again = subsample(linear, data, Budget(0.51 * cost))
    np.testing.assert_array_equal(part.X, again.X)
    apart = Labelled(X, y, groups=np.arange(8000) % 7)
    for whole in (apart, Labelled(X[:2000], y[:2000])):  # groups are whole, and 2,000 are few
        assert subsample(linear, whole, Budget(0)) is whole
    auto = AutoQuantifier(budget=0, candidates=QUICK).fit(X, y)
    assert auto.choice_.items == (len(auto.best_quantifier_.scorer_.codes), 8000)
    assert "of 8,000 items to fit the budget." in auto.summary_


def test_a_classifier_is_tried_with_one_setting_if_the_budget_does_not_afford_all():
    X, y = items(300)
    linear, *_, boosting = sources_for(X, 2)
    data = Labelled(X, y)
    first = {f: dict([*some.items()][:1]) for f, some in boosting.families.items()}
    costs = [
        cross_fit_cost(source, data.problem, 5)
        for source in (linear, boosting, replace(boosting, families=first))
    ]
    budget = Budget(costs[0] + 0.9 * costs[1])
    passes = fit_classifiers([linear, boosting], data, budget, lambda _: None)
    names = [p.name for p in passes if p.scorer is not None and len(p.recipe) == 1]
    assert names[-1] == "gradient boosting, 15 leaves" and len(names) == 3
    assert costs[0] + costs[2] <= budget.spent <= budget.total
    passes = fit_classifiers([linear, boosting], data, Budget(0), lambda _: None)
    assert [p.name for p in passes if p.scorer is not None] == ["logistic regression, C = 1"]
    assert "units of work" in passes[-1].reason


def test_strengths_of_the_classifier_are_tried():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 100))  # more directions than items can tell
    y = (X.mean(axis=1) * 10 + rng.normal(size=150) > 0).astype(int)
    data = Labelled(X, y)
    linear = sources_for(X, 2)[:1]
    found = fit_classifiers(linear, data, Budget(1000), lambda _: None)
    assert found[0].name in ("logistic regression, C = 0.1", "logistic regression, C = 0.01")


def test_what_the_user_brings_is_used_and_nothing_else():
    X, y = items(300)
    some = {"likelihood": SLD(calibrator="bcts")}
    one = AutoQuantifier(LogisticRegression(C=100.0), candidates=some).fit(X, y)
    assert [name for name, _ in one.choice_.classifiers] == ["the classifier as given"]
    assert all(c.C == 100.0 for c in one.best_quantifier_.scorer_.folds)
    two = {"first": LogisticRegression(), "second": GaussianNB()}
    both = AutoQuantifier(two, candidates=some).fit(X, y)
    assert {name for name, _ in both.choice_.classifiers} >= {"first", "second"}


def test_scores_and_sparse_items_do_as_well():
    X, y = items(400)
    scores = LogisticRegression().fit(X, y).predict_proba(X)
    auto = AutoQuantifier(size=50).fit_scores(scores, y)
    assert "bags of 50" in auto.summary_ and "Scores by" not in auto.summary_
    assert auto.predict_scores(scores).shape == (2,)
    thin = AutoQuantifier().fit(sparse.csr_matrix(X), y)
    assert thin.predict(sparse.csr_matrix(X)).shape == (2,)


def test_the_same_data_give_the_same_choice():
    X, y = items(150, 3)
    some = {"likelihood": SLD(calibrator="bcts"), "adjusting": PACC()}
    two = {"first": LogisticRegression(), "second": GaussianNB()}
    one, other = (AutoQuantifier(two, candidates=some).fit(X, y) for _ in range(2))
    assert one.choice_.method == other.choice_.method
    assert one.choice_.classifiers == other.choice_.classifiers
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize(("few", "name"), [(9, "SLD, bcts"), (2, "SLD, bcts"), (1, "SLD")])
def test_with_too_few_items_to_compare_it_falls_back_to_sld(few, name):
    X, y = items(200, gap=4.0)
    rare = np.concatenate([np.flatnonzero(y == "a")[:60], np.flatnonzero(y == "b")[:few]])
    auto = AutoQuantifier(budget=1).fit(X[rare], y[rare])
    assert type(auto.best_quantifier_) is SLD and auto.choice_.is_fallback
    assert auto.choice_.method == name and auto.results_["method"].tolist() == [name]
    assert "without comparison" in auto.summary_
    assert auto.predict(X[y == "b"])[1] > 0.8
    groups = np.arange(len(rare)) % 3
    assert AutoQuantifier(budget=0).fit(X[rare], y[rare], groups=groups).choice_.is_fallback
    one_more = np.flatnonzero(y == "b")[: 10 - few + few]
    enough = np.concatenate([rare[:60], one_more])
    assert not AutoQuantifier(budget=0).fit(X[enough], y[enough]).choice_.is_fallback


def test_scores_of_few_items_fall_back_too():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [40, 5])
    p = 1 / (1 + np.exp(-rng.normal(size=45) - 3 * y + 1.5))
    auto = AutoQuantifier().fit_scores(p, y)
    assert auto.choice_.is_fallback and auto.best_quantifier_.calibrator == "bcts"
    assert np.isfinite(auto.predict_scores(p)).all()


def test_one_class_and_bad_settings_are_rejected():
    X, y = items(100)
    with pytest.raises(InputError, match="one class"):
        AutoQuantifier().fit(X, np.zeros(len(X)))
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
    monkeypatch.setattr(headcount.selection.validation_bags, "N_VALIDATION_SPLITS", 2)
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


def test_candidates_beyond_the_budget_are_not_tried():
    X, y = items(300)
    some = {"first": SLD(), "second": SLD(calibrator="bcts")}
    work = AutoQuantifier(LogisticRegression(), candidates=some).fit(X, y).choice_.work
    for share, n_tried in ((0.9, 1), (1.1, 2)):
        budget = work[0] + share * work[1]
        auto = AutoQuantifier(LogisticRegression(), candidates=some, budget=budget).fit(X, y)
        assert auto.results_.n_rows == n_tried


@dataclass(eq=False, repr=False, kw_only=True)
class Failing(SLD):
    """Fails with a given error."""

    error: str = "TypeError"

    def aggregate(self, scores, bags):
        raise {e.__name__: e for e in (*BUGS, *DATA_ERRORS)}[self.error]("no")


BUGS = (TypeError, AttributeError, KeyError, IndexError, AssertionError, NameError, RuntimeError)
DATA_ERRORS = (InputError, ValueError, np.linalg.LinAlgError, MemoryError, FloatingPointError)


@pytest.mark.parametrize("error", BUGS)
def test_a_bug_of_a_candidate_is_raised(error):
    X, y = items(100)
    some = {"sound": SLD(), "broken": Failing(error=error.__name__)}
    with pytest.raises(error):
        AutoQuantifier(LogisticRegression(), candidates=some).fit(X, y)


@pytest.mark.parametrize("error", DATA_ERRORS)
def test_a_candidate_that_does_not_suit_the_data_is_left_out(error):
    X, y = items(100)
    some = {"broken": Failing(error=error.__name__), "sound": SLD()}
    auto = AutoQuantifier(LogisticRegression(), candidates=some).fit(X, y)
    assert auto.choice_.method == "sound"
    assert auto.results_["failure"][0] == f"{error.__name__}: no"


class BrokenClassifier(GaussianNB):
    """Fails with a given error."""

    def __init__(self, error=TypeError):
        super().__init__()
        self.error = error

    def fit(self, X, y):
        raise self.error("no")


def test_a_bug_of_a_classifier_is_raised_and_other_failures_are_recorded():
    X, y = items(100)
    for error in (TypeError, ValueError):
        two = {"sound": LogisticRegression(), "broken": BrokenClassifier(error)}
        auto = AutoQuantifier(two, candidates=QUICK)
        if error is TypeError:
            with pytest.raises(TypeError, match="no"):
                auto.fit(X, y)
        else:
            assert dict(auto.fit(X, y).choice_.left_out) == {"broken": "ValueError: no"}


def choices(X, y, **settings):
    """What was selected, with all numbers."""
    auto = AutoQuantifier(budget=8, **settings).fit(X, y)
    return auto.choice_, auto.predict(X).tolist(), auto.results_["ae"].tolist()


def test_the_selection_does_not_depend_on_the_clock(monkeypatch):
    X, y = items(400)
    calm = choices(X, y)
    # A machine so busy that every look at the clock is a day later.
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        monkeypatch.setattr(time, name, itertools.count(0, 86_400).__next__)
    assert choices(X, y) == calm
    folder = Path(headcount.selection.__file__).parent
    modules = {
        alias.name
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in [*node.names, ast.alias(getattr(node, "module", None) or "")]
    }
    assert not modules & {"time", "timeit", "datetime", "resource"}


def test_the_selection_does_not_depend_on_the_number_of_jobs():
    X, y = items(400)
    assert choices(X, y, n_jobs=1) == choices(X, y, n_jobs=2)


def test_costs_grow_with_the_sizes():
    X, _ = items(300)
    size = Size.of(X, 2)
    assert (size.items, size.width) == (len(X), 6)
    assert Size.of(sparse.eye(10, format="csr"), 2).width == 1
    assert Size.of(np.array(["four", "eleven"], dtype=object), 2).width == 5
    for source in [*sources_for(X, 2), *sources_for(["a text"], 2)]:
        cost = cross_fit_cost(source, size, 5)
        assert cost > 0
        assert cross_fit_cost(source, replace(size, items=10 * size.items), 5) > cost
        assert cross_fit_cost(source, replace(size, width=100), 5) > cost
        assert cross_fit_cost(source, size, 10) > cost
    for quantifier in default_candidates("ae", "learn", 2, natural=True).values():
        assert trial_cost(quantifier, size, 1000) < trial_cost(quantifier, size, 2000)


@dataclass(eq=False, repr=False, kw_only=True)
class Calibrating(SLD):
    """Notes whether it calibrates its intervals."""

    def fit_scorer(self, scorer):
        CALIBRATED.append(self.calibrate_width)
        return super().fit_scorer(scorer)


CALIBRATED = []


def test_candidates_are_compared_without_calibrated_intervals():
    X, y = items(100)
    CALIBRATED.clear()
    auto = AutoQuantifier(LogisticRegression(), candidates={"it": Calibrating()}).fit(X, y)
    assert CALIBRATED.count(True) == 1 and CALIBRATED.index(True) > 1  # after the trials
    assert auto.best_quantifier_.calibrate_width
    plain = AutoQuantifier(LogisticRegression(), candidates={"it": Calibrating()})
    assert not without_calibration(plain).fit(X, y).best_quantifier_.calibrate_width
    CALIBRATED.clear()
    GridSearch(Calibrating(), {"alpha": [1.0, 2.0]}).fit(X, y)
    assert CALIBRATED[:3] == [False, False, True]
    assert not any(CALIBRATED[3:])  # halves of the labelled items
    nested = without_calibration(GridSearch(MedianOf([SLD(), Calibrating()])))
    assert nested.quantifier.quantifiers[1].calibrate_width is False
    assert repr(without_calibration(HDx())) == repr(HDx())


def test_odd_settings_are_refused_or_served():
    X, y = items(200)
    AutoQuantifier(random_state=2**32 - 1, budget=0).fit(X, y)
    for classifier in ("lr", LogisticRegression):
        with pytest.raises(InputError, match="classifier"):
            AutoQuantifier(classifier).fit(X, y)


QUICK = {"likelihood": SLD(calibrator="bcts")}


def rings(n, seed=0):
    """Two classes that no straight line parts."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    angle = rng.uniform(0, 2 * np.pi, n)
    radius = 1 + 0.8 * y + 0.35 * rng.normal(size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def test_a_classifier_that_suits_the_items_is_found():
    X, y = rings(500)
    auto = AutoQuantifier(candidates=QUICK, expect="any shift").fit(X, y)
    pool, truth = rings(4000, seed=1)
    bags = UniformPrevalence(n_bags=60, size=200, random_state=0).draw(truth)
    line = SLD(LogisticRegression(), calibrator="bcts").fit(X, y)
    ours, straight = (
        np.abs(q.predict_bags(pool, bags) - bags.prevalence).mean() for q in (auto, line)
    )
    assert ours < 0.35 * straight
    assert "logistic regression" not in auto.choice_.classifiers[0][0].split(" + ")[0]


def test_a_source_beyond_the_budget_is_not_started():
    class Slow(RandomForestClassifier):
        """Must not be fitted."""

        def fit(self, X, y):
            raise AssertionError

    X, y = items(300)
    sources = [given_source(LogisticRegression(), "quick"), given_source(Slow(10**6), "slow")]
    passes = fit_classifiers(sources, Labelled(X, y), Budget(5.0), lambda _: None)
    assert [p.name for p in passes if p.scorer is not None] == ["quick"]
    assert "it would take" in passes[1].reason


def events(rng, n_groups=12, size=60, moving=0.0):
    """Groups whose scores of a class move, each in its own way."""
    X, y, groups = [], [], []
    for g in range(n_groups):
        share = rng.uniform(0.4, 0.6)
        own = (rng.random(size) < share).astype(int)
        X.append(1.5 * own + rng.normal(size=size) + moving * rng.normal())
        y.append(own)
        groups.append(np.full(size, f"event {g:02d}"))
    return np.concatenate(X)[:, None], np.concatenate(y), np.concatenate(groups)


def test_groups_tell_that_counting_is_safer():
    rng = np.random.default_rng(0)
    X, y, groups = events(rng, moving=1.0)
    some = {"counting": PCC(calibrator="bcts"), "likelihood": SLD(calibrator="bcts")}
    plain = LogisticRegression()
    blind = AutoQuantifier(plain, expect="any shift", candidates=some).fit(X, y)
    told = AutoQuantifier(plain, candidates=some).fit(X, y, groups=groups)
    assert blind.choice_.method == "likelihood"
    assert told.choice_.method == "counting" and told.choice_.bags == "groups"
    assert told.choice_.n_bags == 12
    rolling = AutoQuantifier(plain, candidates=some, periods=True).fit(X, y, groups=groups)
    assert rolling.choice_.bags == "periods" and rolling.choice_.n_bags < 12
    with pytest.raises(InputError, match="groups"):
        AutoQuantifier(plain, periods=True).fit(X, y)


def test_rolling_forward_never_looks_ahead():
    groups = np.repeat(np.array(["2020-01", "2020-02", "2020-03", "2020-04", "2020-05"]), 20)
    codes = np.tile([0, 1], 50)
    cuts = list(cut_periods(groups, codes, 10))
    assert cuts
    for past, after in cuts:
        assert max(groups[past].tolist()) < min(groups[after].tolist())
        assert np.bincount(codes[past]).min() >= 10
    assert not list(cut_periods(groups, codes, 60))


def test_given_bags_are_used_as_they_are():
    X, y = items(400, gap=1.0)
    pool, truth = items(2000, seed=3, gap=1.0)
    bags = UniformPrevalence(n_bags=40, size=100, random_state=0).draw(truth)
    some = {"counting": PCC(calibrator="bcts"), "likelihood": SLD(calibrator="bcts")}
    auto = AutoQuantifier(LogisticRegression(), candidates=some).fit(X, y, bags=bags, pool=pool)
    assert auto.choice_.bags == "given" and auto.choice_.n_bags == 40
    again = SLD(LogisticRegression(), calibrator="bcts").fit(X, y).predict_bags(pool, bags)
    error = np.abs(again - bags.prevalence).mean()
    assert auto.choice_.method == "likelihood"
    assert auto.choice_.error == pytest.approx(error, abs=1e-9)
    for wrong in ({"bags": bags}, {"pool": pool}, {"bags": Bags.single(5), "pool": pool}):
        with pytest.raises(InputError, match="bags"):
            AutoQuantifier(LogisticRegression()).fit(X, y, **wrong)


def test_texts_are_read_by_words_and_characters(tmp_path):
    rng = np.random.default_rng(0)
    good, bad = ["fine", "lovely", "great", "pleasing"], ["awful", "dreadful", "poor", "boring"]
    y = rng.integers(0, 2, 240)
    texts = [
        " ".join(rng.choice(good if c else bad, 2)) + " " + " ".join(rng.choice(good + bad, 3))
        for c in y
    ]
    auto = AutoQuantifier(candidates=QUICK, expect="any shift").fit(texts, y)
    assert any("characters" in name for name, _ in auto.choice_.classifiers)
    fresh = [" ".join(rng.choice(good, 4)) for _ in range(50)]
    assert auto.predict(fresh)[1] > 0.9
    save(auto, tmp_path / "m.hc")
    np.testing.assert_allclose(load(tmp_path / "m.hc").predict(fresh), auto.predict(fresh))


def test_tables_with_categories_and_missing_cells_are_read():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    colour = np.where(rng.random(300) < 0.8, np.where(y == 1, "red", "blue"), "green")
    number = np.where(rng.random(300) < 0.1, np.nan, y + rng.normal(size=300))
    frame = pd.DataFrame({"colour": colour, "number": number})
    auto = AutoQuantifier(candidates=QUICK, expect="any shift", budget=20).fit(frame, y)
    assert auto.predict(frame[y == 1])[1] > 0.85
    assert auto.predict(frame[y == 0])[1] < 0.15


def test_a_class_that_appears_late_leaves_the_earlier_dates():
    months = np.repeat([f"2024-{m:02d}" for m in range(1, 11)], 40)
    codes = np.tile(np.arange(2), 200)
    codes[360:400:2] = 2  # the third class is in the last month alone
    cuts = list(cut_periods(months, codes, 10))
    assert len(cuts) == 3
    for past, after in cuts:
        assert max(months[past].tolist()) < min(months[after].tolist())
        assert set(codes[past]) == {0, 1} == set(codes[after])


def test_groups_are_left_out_whole_and_once():
    groups = np.repeat(list("abcdefg"), 20)
    codes = np.tile([0, 1], 70)
    codes[:40:2] = 2  # this class is in two groups alone
    seen = []
    for learnt, other in leave_out_groups(groups, codes, 15):
        assert not set(groups[learnt]) & set(groups[other])
        assert np.bincount(codes[learnt])[np.unique(codes[other])].min() >= 15
        seen += np.unique(groups[other]).tolist()
    assert sorted(seen) == list("abcdefg")
    assert len(list(leave_out_groups(groups, codes, 15))) == 5
    assert not list(leave_out_groups(np.repeat("a", 140), codes, 15))


def test_groups_are_judged_as_they_are_learnt():
    """By folds of items, or by the splitter that was given; item numbers of all fit no part."""
    X, y = items(60)
    groups = np.repeat(list("abcdef"), 10)
    rows = np.arange(40)
    plain = Labelled(X, y, groups)
    assert plain.over_items().groups is None
    assert plain.part(rows).over_items().cv == 5
    splitter = Labelled(X, y, groups, cv=GroupKFold(3))
    for some in (splitter.over_items(), splitter.part(rows).over_items()):
        assert some.cv is splitter.cv and some.groups is not None
    pairs = Labelled(X, y, groups, cv=[(np.arange(30), np.arange(30, 60))])
    assert pairs.part(rows).cv == 5


def test_classifiers_that_cannot_be_refitted_within_the_budget_are_not_selected():
    X, y = rings(1000)
    groups = np.arange(len(y)) % 10
    forest = RandomForestClassifier(50, random_state=0)
    two = {"quick": LogisticRegression(), "slow": forest}
    cost = cross_fit_cost(given_source(forest), Size.of(X, 2), 5)
    names = {}
    for budget in (1000, 2.5 * cost):
        auto = AutoQuantifier(two, budget=budget, candidates=QUICK).fit(X, y, groups=groups)
        assert auto.choice_.bags == "groups" and auto.choice_.n_bags == 10
        assert not [name for name, reason in auto.choice_.left_out if "units" in reason]
        names[budget] = auto.choice_.classifiers[0][0]
    assert "slow" in names[1000] and names[2.5 * cost] == "quick"


def test_one_group_cannot_be_left_out():
    X, y = items(600, 3)
    auto = AutoQuantifier(LogisticRegression(), periods=True)
    auto.fit(X, y, groups=np.full(len(y), "2020"))
    assert auto.choice_.bags == "too few groups" and "no group can be left out" in auto.summary_
    assert auto.best_quantifier_.drift > 0  # drawn bags cannot tell whether there is none
    weights = np.exp(auto.best_quantifier_.prior_[1])
    np.testing.assert_allclose(weights, weights[0])  # one year tells nothing about other years


def sentiments(rng, n_groups, moving, size=150):
    """Groups of any shares, whose classes move together by so much in three features."""
    X, y, groups = [], [], []
    for g in range(n_groups):
        own = (rng.random(size) < rng.uniform(0.2, 0.8)).astype(int)
        X.append(0.8 * own[:, None] + rng.normal(size=(size, 3)) + moving * rng.normal(size=3))
        y.append(own)
        groups.append(np.full(size, f"event {g:02d}"))
    return np.concatenate(X), np.concatenate(y), np.concatenate(groups)


def test_groups_that_differ_in_shares_alone_cost_nothing():
    rng = np.random.default_rng(1)
    X, y, groups = sentiments(rng, 10, 0.0)
    pool, truth, later = sentiments(rng, 30, 0.0)
    bags = Bags.from_groups(later).with_truth(truth)
    plain = LogisticRegression()
    auto = AutoQuantifier(plain, budget=1e9).fit(X, y, groups=groups)
    bayes = BayesQuantifier(plain).fit(X, y)
    errors = [np.abs(q.predict_bags(pool, bags) - bags.prevalence).mean() for q in (auto, bayes)]
    assert errors[0] <= 1.1 * errors[1]


def test_every_fold_is_heard_of():
    X, y = items(200)
    said = []
    data = Labelled(X, y, None, 3, 1, 0)
    fit_classifiers(sources_for(X, 2)[:1], data, Budget(60), said.append)
    folds = [text.split(": ")[1] for text in said if "fold" in text]
    assert folds == [f"fold {i} of 3 is done" for i in (1, 2, 3)]


def test_a_dozen_groups_do_not_overrule_the_preferred_method():
    """A tenth better on average, but not beyond what thirteen groups scatter."""
    rng = np.random.default_rng(0)
    bold, scatter = np.full(13, 0.5), rng.normal(size=13)
    careful = bold + 0.05 + 0.3 * (scatter - scatter.mean())
    assert one_standard_error_rule(np.array([careful, bold]), np.arange(13)) == 0


def test_classifiers_have_nothing_to_say_about_few_items():
    """Workers of a parallel fit would say it to the user: warnings are errors here."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    for source in sources_for(X, 2):
        for classifiers in source.families.values():
            for classifier in classifiers.values():
                assert clone(classifier).fit(X, y).predict(X).shape == (60,)
