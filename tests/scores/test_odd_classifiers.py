"""Weak and odd classifiers: right answers from them, or clear words."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from headcount import AutoQuantifier, Bags, BayesQuantifier, UnreliableWarning, measure

SHARES = np.array([0.05, 0.3, 0.6, 0.95])  # of the last class in the bags


def discrete(y, rng):
    """Three features of a few values: 12 distinct rows."""
    columns = [rng.random(len(y)) < np.where(y, 0.8, 0.3), rng.binomial(2, np.where(y, 0.7, 0.3))]
    return np.column_stack([*columns, rng.random(len(y)) < np.where(y, 0.2, 0.6)]).astype(float)


def normal(y, rng):
    return rng.normal(size=(len(y), 4)) + 1.2 * y[:, None]


def distant(y, rng):
    return normal(y, rng) + y[:, None]


def texts(y, rng):
    words = np.array(["good", "fine", "great", "bad", "poor", "awful", "the", "it", "is", "was"])
    weight = np.where(np.asarray(y)[:, None], [[3, 3, 3, 1, 1, 1]], [[1, 1, 1, 3, 3, 3]]) / 12
    likely = np.hstack([weight * 0.5, np.full((len(y), 4), 0.125)])
    rows = [rng.choice(words, 6, p=p / p.sum()) for p in likely]
    return np.array([" ".join(row) for row in rows], dtype=object)


CASES = {
    "three discrete features": (discrete, LogisticRegression(), 0.1),
    "posteriors at 0 and 1": (normal, DecisionTreeClassifier(random_state=0), 0.1),
    "a forest": (normal, RandomForestClassifier(25, random_state=0), 0.06),
    "an SVC without probabilities": (normal, SVC(), 0.06),
    "a text pipeline": (texts, make_pipeline(TfidfVectorizer(), LogisticRegression()), 0.08),
}


def bags_of(make, rng, size=400):
    labels = [np.arange(size) < round(share * size) for share in SHARES]
    pool = make(np.concatenate(labels).astype(int), rng)
    rows = [np.arange(i * size, (i + 1) * size) for i in range(len(labels))]
    return pool, Bags.from_lists(rows, n_items=size * len(labels))


@pytest.mark.parametrize("which", ["ae", "rae"])
@pytest.mark.parametrize("name", CASES)
def test_answers_are_right(name, which):
    make, classifier, limit = CASES[name]
    rng = np.random.default_rng(1)
    y = (rng.random(900) < 0.4).astype(int)
    X, (pool, bags) = make(y, rng), bags_of(make, rng)
    truth = np.column_stack([1 - SHARES, SHARES])
    for q in (
        BayesQuantifier(classifier=classifier, measure=which),
        AutoQuantifier(classifier, measure=which, budget=0),
    ):
        answers = q.fit(X, y).predict_bags(pool, bags)
        assert measure("ae")(truth, answers).mean() < limit
        found = q.predict_interval(pool, bags)
        assert ((found.low <= truth + 1e-9) & (truth <= found.high + 1e-9)).mean() >= 0.75


def test_a_class_of_one_in_a_hundred():
    rng = np.random.default_rng(2)
    y = (np.arange(3000) % 100 == 0).astype(int)
    X, (pool, bags) = (
        normal(y, rng) + y[:, None],
        bags_of(lambda c, r: normal(c, r) + c[:, None], rng),
    )
    auto = AutoQuantifier(LogisticRegression(), measure="rae", budget=0).fit(X, y)
    assert np.abs(auto.predict_bags(pool, bags)[:, 1] - SHARES).mean() < 0.06


def test_fifty_classes():
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(50, 10)) * 2
    y = np.arange(2500) % 50
    X = centres[y] + rng.normal(size=(2500, 10))
    drawn = np.concatenate([np.repeat(np.arange(10), 60), rng.integers(50, size=400)])
    truth = np.bincount(drawn, minlength=50) / len(drawn)
    pool = centres[drawn] + rng.normal(size=(len(drawn), 10))
    auto = AutoQuantifier(LogisticRegression(max_iter=300), budget=0).fit(X, y)
    counted = np.bincount(auto.best_quantifier_.scorer_.folds[0].predict(pool), minlength=50)
    assert measure("ae")(truth, auto.predict(pool)) < measure("ae")(truth, counted / len(drawn))


def test_scores_that_tell_nothing_are_said():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(400, 2)), rng.integers(2, size=400)
    constant = DecisionTreeClassifier(max_depth=1, min_samples_leaf=250)
    with pytest.warns(UnreliableWarning):
        q = BayesQuantifier(classifier=constant).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.allclose(q.predict(X), np.bincount(y) / 400)
