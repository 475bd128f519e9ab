"""The automatic choice."""

import time
from dataclasses import dataclass

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

import headcount.selection.cases
import headcount.selection.passes
import headcount.selection.trials
from headcount import (
    PACC,
    PCC,
    SLD,
    AutoQuantifier,
    Bags,
    BayesQuantifier,
    Blend,
    HDx,
    InputError,
    UniformPrevalence,
)
from headcount.methods.files import load, save
from headcount.scores.sources import given_source, sources_for
from headcount.selection.cases import cut_dates, leave_out_groups
from headcount.selection.judging import _affordable
from headcount.selection.passes import Labelled, Pass, run_passes
from headcount.selection.trials import Trial, Trials
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
    assert table["rae"][row] <= 1.1 * error.min()
    assert "was chosen" in auto.summary_ and "Next" in auto.summary_ and "Time:" in auto.summary_
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


def test_a_blend_is_taken_where_it_is_worth_it_but_not_on_drawn_bags():
    @dataclass(eq=False, repr=False, kw_only=True)
    class Off(SLD):
        """Errs by a known amount."""

        by: float = 0.0

        def aggregate(self, scores, bags):
            p = super().aggregate(scores, bags)[:, 1] * 0.6 + 0.2 + self.by
            return np.column_stack([1 - p, p])

    X, y = items(800, gap=3.0)
    some = {"low": Off(by=-0.15), "high": Off(by=0.15)}
    auto = AutoQuantifier(LogisticRegression(), expect="any shift", candidates=some)
    assert not isinstance(auto.fit(X, y).best_quantifier_, Blend)  # they share the items' luck
    pool, truth = items(2000, gap=3.0)
    bags = UniformPrevalence(n_bags=200, size=100, random_state=0).draw(truth)
    auto.fit(X, y, bags=bags, pool=pool)
    assert isinstance(auto.best_quantifier_, Blend)
    assert " + " in auto.summary_
    assert auto.results_["ae"][-1] < 0.97 * min(auto.results_["ae"][:-1])
    assert abs(auto.predict(X)[1] - (y == "b").mean()) < 0.05


@dataclass(eq=False, repr=False, kw_only=True)
class Inward(SLD):
    """Errs towards the middle, by a known amount."""

    by: float = 0.0

    def aggregate(self, scores, bags):
        p = super().aggregate(scores, bags)[:, 1]
        p = p + np.where(p < 0.5, self.by, -self.by)
        return np.column_stack([1 - p, p])


def test_on_drawn_bags_the_first_is_passed_over_only_if_it_is_clearly_worse():
    X, y = items(800, gap=5.0)

    def chosen(by, **told):
        some = {"first": Inward(by=by), "second": Inward(by=0.3)}
        auto = AutoQuantifier(LogisticRegression(), expect="any shift", candidates=some)
        return auto.fit(X, y, **told).choice_.method

    assert chosen(0.32) == "first"
    assert chosen(0.4) == "second"
    # Groups that were left out are bags of their own, each with its own luck.
    assert chosen(0.32, groups=np.arange(len(y)) % 20) == "second"


def test_no_time_still_gives_an_answer():
    X, y = items(300)
    auto = AutoQuantifier(budget=0).fit(X, y)
    assert len(auto.results_["method"]) == 1
    assert isinstance(auto.best_quantifier_, BayesQuantifier)


def test_where_time_is_short_some_items_are_learnt_from_and_it_is_said(monkeypatch):
    from headcount.selection import passes

    # A classifier takes 100 seconds for all items, or so a part of them tells.
    monkeypatch.setattr(passes, "_expected_seconds", lambda _source, data: len(data) / 80)
    X, y = (part[:8000] for part in items(8000))
    y[:30] = "c"
    linear = sources_for(X, 3)[0]
    some = passes.as_many_as_fit(linear, Labelled(X, y), time.monotonic() + 50.5)
    assert 3900 < len(some) < 4100 and len(some.X) == len(some)
    assert (some.y == "c").sum() >= 20
    apart = Labelled(X, y, groups=np.arange(8000) % 7)
    for data in (apart, Labelled(X[:2000], y[:2000])):  # groups are whole, and 2,000 are few
        assert passes.as_many_as_fit(linear, data, time.monotonic()) is data
    monkeypatch.setattr(passes, "_expected_seconds", lambda *_: 1e9)
    auto = AutoQuantifier(budget=1000, candidates=QUICK).fit(X, y)
    assert auto.choice_.items == (len(auto.best_quantifier_.scorer_.codes), 8000)
    assert "of 8,000 items: time was short." in auto.summary_


def test_a_classifier_is_tried_with_one_setting_where_there_is_no_time_for_all(monkeypatch):
    from headcount.selection import passes

    def expected(source, _data):
        return 10.0 * sum(len(some) for some in source.families.values())

    monkeypatch.setattr(passes, "_expected_seconds", expected)
    X, y = items(300)
    linear, *_, boosting = sources_for(X, 2)
    # Five linear classifiers would take 50 seconds, three settings of boosting 30.
    found = run_passes([linear, boosting], Labelled(X, y), time.monotonic() + 25, lambda _: None)
    names = [p.name for p in found if p.scorer is not None and len(p.recipe) == 1]
    firsts = ["logistic regression, C = 1", "discriminant analysis"]
    assert names == [*firsts, "gradient boosting, 15 leaves"]


def test_strengths_of_the_classifier_are_tried():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 100))  # more directions than items can tell
    y = (X.mean(axis=1) * 10 + rng.normal(size=150) > 0).astype(int)
    data = Labelled(X, y)
    linear = sources_for(X, 2)[:1]
    found = run_passes(linear, data, time.monotonic() + 1000, lambda _: None)
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
    monkeypatch.setattr(headcount.selection.cases, "FOLDS", 2)
    monkeypatch.setattr(headcount.selection.cases, "REPEATS", 1)
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


def test_a_source_that_takes_too_long_is_not_started(monkeypatch):
    X, y = items(300)
    clock = [0.0]

    class Clock:
        """Time goes by while trees grow, and only then."""

        @staticmethod
        def monotonic():
            return clock[0]

    class Slow(GaussianNB):
        """A hundredth of a second for each item."""

        def fit(self, X, y):
            clock[0] += 0.01 * len(y)
            return super().fit(X, y)

    monkeypatch.setattr(headcount.selection.passes, "time", Clock)
    several = [given_source(LogisticRegression(), "quick"), given_source(Slow(), "slow")]
    fitted = run_passes(several, Labelled(X, y), 5.0, lambda _: None)
    assert [p.name for p in fitted if p.scorer is not None] == ["quick"]
    assert "would have taken about" in fitted[1].reason
    assert clock[0] < 5.0
    everything = run_passes(several, Labelled(X, y), 1000.0, lambda _: None)
    assert everything[1].scorer is not None


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
    cuts = list(headcount.selection.cases.cut_dates(groups, codes, 10))
    assert cuts
    for past, after in cuts:
        assert max(groups[past].tolist()) < min(groups[after].tolist())
        assert np.bincount(codes[past]).min() >= 10
    assert not list(headcount.selection.cases.cut_dates(groups, codes, 60))


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
    cuts = list(cut_dates(months, codes, 10))
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
    assert len(list(leave_out_groups(groups, codes, 15, n_parts=2))) == 2
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


def test_a_short_budget_makes_the_quick_scores_anew():
    losses = [np.full(4, value) for value in (0.5, 0.4, 0.3)]
    there = [
        Pass(name, (), None, loss, seconds)
        for name, loss, seconds in zip("abc", losses, (1.0, 4.0, 100.0), strict=True)
    ]
    assert [p.name for p in _affordable(there, 1e9)[0]] == ["b", "c"]
    few, times = _affordable(there, 15.0)
    assert [p.name for p in few] == ["a", "b"] and times == 3
    assert [p.name for p in _affordable(there, 0.0)[0]] == ["a"]


def test_one_group_cannot_be_left_out():
    X, y = items(2500, 3)
    quick = {"n_worlds": 2, "n_draws": 60}
    some = {"plain": BayesQuantifier(**quick), "careful": BayesQuantifier(drift=4, **quick)}
    auto = AutoQuantifier(LogisticRegression(), periods=True, candidates=some)
    auto.fit(X, y, groups=np.full(len(y), "2020"))
    assert auto.choice_.bags == "too few groups" and "no group can be left out" in auto.summary_
    assert auto.choice_.method == "careful"  # it costs next to nothing on drawn bags
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
    run_passes(sources_for(X, 2)[:1], data, time.monotonic() + 60, said.append)
    folds = [text.split(": ")[1] for text in said if "fold" in text]
    assert folds == [f"fold {i} of 3 is done" for i in (1, 2, 3)]


@pytest.mark.parametrize(("kind", "name"), [("groups", "careful"), ("periods", "bold")])
def test_a_dozen_groups_do_not_overrule_care(kind, name):
    # A tenth better on average, but not beyond what thirteen groups scatter.
    rng = np.random.default_rng(0)
    bold, scatter = np.full(13, 0.5), rng.normal(size=13)
    careful = bold + 0.05 + 0.3 * (scatter - scatter.mean())
    trials = object.__new__(Trials)
    trials.unit, trials.fewest = np.arange(13), 100
    tried = [
        Trial("careful", SLD(), careful, np.zeros((13, 2))),
        Trial("bold", SLD(), bold, np.zeros((13, 2))),
    ]
    assert AutoQuantifier()._chosen(trials, tried, kind).name == name


def test_classifiers_have_nothing_to_say_about_few_items():
    """Workers of a parallel fit would say it to the user: warnings are errors here."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    for source in sources_for(X, 2):
        for classifiers in source.families.values():
            for classifier in classifiers.values():
                assert clone(classifier).fit(X, y).predict(X).shape == (60,)
