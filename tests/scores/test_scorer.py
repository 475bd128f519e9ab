"""One scorer, one rule: new items are scored as the held-out ones were."""

from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import headcount
from headcount import (
    ACC,
    CC,
    PACC,
    PCC,
    SLD,
    Bags,
    BayesQuantifier,
    Blend,
    DyS,
    GridSearch,
    InputError,
    MedianOf,
    UniformPrevalence,
    UnreliableWarning,
)
from headcount.scores import cross_fit
from headcount.scores.kinds import score_items
from headcount.scores.scorer import mix_views
from headcount.scores.together import score_by_all
from headcount.testing.quantifiers import make_items
from headcount.text import TfIdf


@pytest.fixture(scope="module")
def problem():
    X, y = make_items(3, n=400, seed=0)
    pool, y_pool = make_items(3, n=600, seed=1)
    return X, y, pool, UniformPrevalence(n_bags=20, size=60, random_state=0).draw(y_pool)


class Counting(LogisticRegression):
    """Counts how often it is fitted, and on how many items."""

    fits: ClassVar[list[int]] = []

    def fit(self, X, y):
        Counting.fits.append(len(y))
        return super().fit(X, y)


@pytest.mark.parametrize("make", [lambda c: PACC(c), lambda c: ACC(c)])
def test_estimates_are_averaged_over_the_classifiers_of_the_folds(problem, make):
    X, y, pool, bags = problem
    fitted = make(LogisticRegression()).fit(X, y)
    alone = make(None).fit_scores(fitted.scorer_.scores, y[np.arange(len(y))])
    expected = []
    for train, _ in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        scores = LogisticRegression().fit(X[train], y[train]).predict_proba(pool)
        expected.append(alone.predict_scores(scores, bags))
    np.testing.assert_allclose(fitted.predict_bags(pool, bags), np.mean(expected, axis=0))


@pytest.mark.parametrize("kind", [DyS, SLD])
def test_some_methods_look_at_all_folds_together(kind):
    """As they did at the held-out scores; a likelihood of one fold's scores can say 0 too early."""
    options = {"n_bins": 8} if kind is DyS else {"calibrator": "bcts"}
    X, y = make_items(2, n=400, seed=0)
    pool, _ = make_items(2, n=300, seed=1)
    fitted = kind(LogisticRegression(), **options).fit(X, y)
    every = np.vstack([c.predict_proba(pool) for c in fitted.scorer_.folds])
    alone = kind(**options).fit_scores(fitted.scorer_.scores, y)
    np.testing.assert_allclose(fitted.predict(pool), alone.predict_scores(every))


@pytest.mark.parametrize(
    ("quantifier", "fits", "folds", "whole"),
    [
        (PACC(Counting()), [224] * 5, 5, False),
        (PACC(Counting(), refit=True), [224] * 5 + [280], 0, True),
        (PACC(Counting(), cv=0.4), [168], 1, False),
        (PACC(Counting(), cv=0.4, refit=True), [168], 1, False),
        (SLD(Counting()), [224] * 5 + [280], 5, True),
        (SLD(Counting(), cv=None), [280], 0, True),
        (SLD(Counting(), calibrator="bcts"), [224] * 5, 5, False),
        (CC(Counting(), cv=0.4), [168], 1, False),
    ],
    ids=str,
)
def test_what_is_fitted_and_kept(quantifier, fits, folds, whole):
    X, y = make_items(2, n=264)
    Counting.fits.clear()
    fitted = quantifier.fit(X, y)
    assert sorted(Counting.fits) == sorted(fits)
    assert len(fitted.scorer_.folds) == folds and (fitted.scorer_.whole is not None) == whole


def test_methods_that_learn_nothing_are_given_the_classifier_of_all_items(problem):
    X, y, pool, bags = problem
    posterior = LogisticRegression().fit(X, y).predict_proba(pool)
    for method in (CC, PCC, SLD):
        fitted = method(LogisticRegression()).fit(X, y)
        alone = method().fit_scores(fitted.scorer_.scores, y)
        got = fitted.predict_bags(pool, bags)
        np.testing.assert_allclose(got, alone.predict_scores(posterior, bags), atol=1e-9)
    calibrated = PCC(LogisticRegression(), calibrator="bcts").fit(X, y)
    assert calibrated.scorer_.whole is None


def test_refitted_intervals_come_with_a_warning(problem):
    X, y, pool, bags = problem
    fitted = PACC(LogisticRegression(), refit=True).fit(X, y)
    with pytest.warns(UnreliableWarning, match="fitted with refit=True"):
        fitted.predict_interval(pool, bags)
    posterior = LogisticRegression().fit(X, y).predict_proba(pool)
    alone = PACC().fit_scores(fitted.scorer_.scores, y)
    np.testing.assert_allclose(
        fitted.predict_bags(pool, bags), alone.predict_scores(posterior, bags)
    )


def test_folds_are_what_scikit_learn_takes(problem):
    X, y, *_ = problem
    splitter = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    twice = cross_fit(LogisticRegression(), X, y, cv=splitter)
    assert len(twice.scores) == 2 * len(y) and len(twice.folds) == 6
    pairs = list(StratifiedKFold(4, shuffle=True, random_state=1).split(X, y))
    given = cross_fit(LogisticRegression(), X, y, cv=pairs)
    train, test = pairs[0]
    expected = LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])
    np.testing.assert_allclose(given.scores[test], expected)
    for cv, words in (
        ([], "at least one"),
        ([(np.arange(5), [0.5])], "item numbers"),
        ([(np.flatnonzero(y != 2), np.flatnonzero(y == 2))], "class 2 has no item to fit on"),
        ([(np.arange(len(y)), np.flatnonzero(y == 2))], "no item of class 0 is held out"),
        ([(np.arange(len(y)), np.arange(10**6, 10**6 + 3))], "items that there are not"),
        (True, "number of folds"),
    ):
        with pytest.raises(InputError, match=words):
            cross_fit(LogisticRegression(), X, y, cv=cv)


def test_whole_groups_are_held_out():
    X, y = make_items(2, n=300)
    groups = np.arange(len(y)) % 12
    seen = []

    class Spy(GaussianNB):
        def fit(self, X, y):
            seen.append(set(X[:, -1].astype(int)))
            return super().fit(X, y)

    items = np.column_stack([X, groups])
    fitted = PACC(Spy(), cv=4).fit(items, y, groups=groups)
    assert len(seen) == 4 and all(len(part) < 12 for part in seen)
    assert len(fitted.scorer_.scores) == len(y)
    with pytest.raises(InputError, match="2 groups cannot be left out in 5 folds"):
        PACC().fit(X, y, groups=np.arange(len(y)) % 2)
    with pytest.raises(InputError, match="inconsistent"):
        PACC().fit(X, y, groups=groups[:-1])


def _cases():
    X, y = make_items(3, n=300)
    two = y > 0
    texts = [f"word{a} word{b} class{c}" for a, b, c in zip(y * 3, y + 5, y, strict=True)]
    texts = np.array([t + " word1" * (i % 3) for i, t in enumerate(texts)], dtype=object)
    lr = LogisticRegression(max_iter=500)
    return {
        "dense": (lr, X, y),
        "two": (lr, X, two),
        "single precision": (lr, X.astype(np.float32), y),
        "sparse": (lr, sparse.csr_matrix(np.maximum(X, 0)), y),
        "scaled": (make_pipeline(StandardScaler(), lr), X, y),
        "texts": (make_pipeline(TfIdf(min_count=1), lr), texts, y),
        "liblinear": (LogisticRegression(solver="liblinear"), X, two),
        "another make": (GaussianNB(), X, y),
    }


@pytest.mark.parametrize("name", _cases())
def test_all_folds_in_one_pass_are_each_fold_by_itself(name):
    classifier, X, y = _cases()[name]
    scorer = cross_fit(classifier, X, y, random_state=0)
    together = score_by_all(scorer.folds, X, scorer.classes, scorer.kind)
    for fold, scores in zip(scorer.folds, together, strict=True):
        alone = score_items(fold, X, scorer.classes, scorer.kind)
        np.testing.assert_allclose(scores, alone, atol=1e-5 if name == "single precision" else 1e-9)


def test_one_pass_still_refuses_what_the_classifier_refuses(problem):
    X, y, pool, _ = problem
    for classifier in (LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())):
        fitted = PACC(classifier).fit(X, y)
        with pytest.raises(ValueError, match="features"):
            fitted.predict(pool[:, :-1])
        broken = pool.copy()
        broken[400, 0] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            fitted.predict(broken)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PACC(LogisticRegression()),
        lambda: DyS(LogisticRegression()),
        lambda: SLD(LogisticRegression(), calibrator="bcts"),
        lambda: BayesQuantifier(LogisticRegression(), n_worlds=5, n_draws=100),
        lambda: Blend(LogisticRegression(), quantifiers=[PACC(), SLD(calibrator="bcts")]),
    ],
)
def test_nothing_depends_on_the_order_of_rows(problem, make):
    X, y, pool, _ = problem
    turned = np.random.default_rng(0).permutation(len(pool))
    fitted = make().fit(X, y)
    for ask in (
        lambda q, items: q.predict(items),
        lambda q, items: q.predict_interval(items, n_draws=60).low,
        lambda q, items: q.diagnose(items).fit,
    ):
        np.testing.assert_allclose(ask(fitted, pool[turned]), ask(fitted, pool), atol=1e-6)


def test_each_item_is_mixed_from_one_classifier_whatever_else_there_is():
    rng = np.random.default_rng(0)
    views = [rng.dirichlet(np.ones(3), 500) for _ in range(4)]
    mixed = mix_views(views)
    which = np.array([[np.array_equal(mixed[i], v[i]) for v in views] for i in range(500)])
    assert (which.sum(axis=1) == 1).all()
    assert which.mean(axis=0).min() > 0.15  # each has its turn
    rows = rng.permutation(500)[:100]
    np.testing.assert_array_equal(mix_views([v[rows] for v in views]), mixed[rows])


def test_scores_are_items_after_fit_scores(problem):
    X, y, pool, bags = problem
    scores = LogisticRegression().fit(X, y).predict_proba(pool)
    q = PACC().fit_scores(scores, np.arange(len(pool)) % 3)
    np.testing.assert_array_equal(q.predict(scores), q.predict_scores(scores))
    np.testing.assert_array_equal(q.predict_bags(scores, bags), q.predict_scores(scores, bags))
    assert q.predict_interval(scores, bags).low.shape == (20, 3)
    assert q.diagnose(scores).fit.shape == (1,)
    with pytest.raises(InputError, match="sum"):
        q.predict(scores * 2)


def test_wrappers_pass_every_question_on(problem):
    X, y, _, _ = problem
    search = GridSearch(PACC(LogisticRegression()), {"classifier__C": [0.1, 1.0]}).fit(X, y)
    scores = search.best_quantifier_.scorer_.scores
    expected = search.best_quantifier_.predict_scores(scores)
    np.testing.assert_array_equal(search.predict_scores(scores), expected)
    with pytest.raises(InputError, match="does not work on scores"):
        GridSearch(headcount.HDx(n_bins=4), {}).fit(X, y).predict_scores(scores)


def test_a_misspelt_option_is_named():
    X, y = make_items(2)
    with pytest.raises(TypeError, match=r"predict_interval\(\).*'levle'"):
        PACC().fit(X, y).predict_interval(X, levle=0.9)


def test_learning_a_shift_that_fails_leaves_the_prior_alone(monkeypatch):
    X, y = make_items(2)
    bayes = BayesQuantifier(n_worlds=2, n_draws=40).fit(X, y)
    before = bayes.prior_
    monkeypatch.setattr("headcount.methods.bayes.sample", lambda *a: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bayes.learn_shift(X, Bags.single(len(X)))
    assert bayes.prior_ is before


def test_both_that_list_quantifiers_list_them_in_the_same_way():
    for cls in (MedianOf, lambda several: Blend(quantifiers=several)):
        made = cls([PACC(), SLD(), SLD()])
        made.set_params(pacc__tau=0.5)
        assert made.quantifiers[0].tau == 0.5
        assert {"sld-1__alpha", "sld-2__alpha"} <= set(made.get_params())


def test_names_at_the_top():
    assert not hasattr(headcount, "X") and headcount.methods.X.__name__ == "X"
    for name in ("save", "load", "Interval", "Diagnosis", "UnreliableWarning", "TextQuantifier"):
        assert name in headcount.__all__
    assert issubclass(headcount.ConvergenceWarning, SklearnConvergenceWarning)
    assert issubclass(headcount.ConvergenceWarning, headcount.HeadcountWarning)


def test_a_class_of_one_group_is_spread_over_the_folds_and_said():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(10), 20)
    y = rng.integers(0, 2, 200)
    y[(groups == 3) & (np.arange(200) % 2 == 0)] = 2  # appears in one group alone
    with pytest.warns(UnreliableWarning, match="'2'"):
        done = cross_fit(LogisticRegression(), rng.normal(size=(200, 2)), y, groups=groups)
    assert set(done.fold[y == 2]) == {0, 1, 2, 3, 4}
    for g in set(range(10)) - {3}:  # the others are left out whole
        assert len(set(done.fold[groups == g])) == 1
