"""Scores of several classifiers, joined."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from headcount import InputError
from headcount.scores import cross_fit, stack
from headcount.scores.crossfit import cross_fit_source
from headcount.scores.kinds import score_items
from headcount.scores.sources import Source, sources_for
from headcount.scores.stacking import held_out_losses, stack_with_losses
from headcount.scores.together import score_by_all
from headcount.text import TfIdf


def two_views(n=600, k=2, seed=0):
    """Items of which each of two classifiers sees one half."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k).repeat(10), rng.choice(k, n)])
    return rng.normal(size=(len(y), 2 * k)) + 1.2 * np.hstack([np.eye(k)[y], np.eye(k)[y]]), y


def first_half(k):
    from sklearn.compose import ColumnTransformer

    return make_pipeline(ColumnTransformer([("a", "passthrough", list(range(k)))]), GaussianNB())


def second_half(k):
    from sklearn.compose import ColumnTransformer

    picked = ColumnTransformer([("b", "passthrough", list(range(k, 2 * k)))])
    return make_pipeline(picked, LogisticRegression())


@pytest.mark.parametrize("k", [2, 3])
def test_two_halves_make_a_whole(k):
    X, y = two_views(k=k)
    halves = [cross_fit(c, X, y, random_state=0) for c in (first_half(k), second_half(k))]
    both = stack(halves)
    whole = cross_fit(GaussianNB(), X, y, random_state=0)
    losses = [held_out_losses(s).mean() for s in (*halves, both, whole)]
    assert losses[2] < 0.92 * min(losses[:2])
    assert losses[2] == pytest.approx(losses[3], rel=0.05)


def test_weights_are_the_best_ones():
    # Logits that are the truth and noise: the likelihood is best near weights of 1 and 0.
    rng = np.random.default_rng(0)
    truth = rng.normal(size=4000) * 2
    y = (rng.random(4000) < 1 / (1 + np.exp(-truth))).astype(int)
    X = np.column_stack([truth, rng.normal(size=4000)])

    class Column(GaussianNB):
        """Gives a column of the items as the logit."""

        def __init__(self, which=0):
            super().__init__()
            self.which = which

        def predict_proba(self, X):
            p = 1 / (1 + np.exp(-X[:, self.which]))
            return np.column_stack([1 - p, p])

    both = stack([cross_fit(Column(j), X, y, random_state=0) for j in (0, 1)])
    for joined in both.folds:
        np.testing.assert_allclose(joined.weights[:, 1], [1, 0], atol=0.1)
    # A fine grid of common weights is no better than what was found.
    best = np.inf
    for a in np.linspace(0.7, 1.3, 25):
        for b in np.linspace(-0.2, 0.2, 17):
            z = a * X[:, 0] + b * X[:, 1]
            values = log_softmax(np.column_stack([-z / 2, z / 2]), axis=1)
            best = min(best, -values[np.arange(4000), y].mean())
    assert held_out_losses(both).mean() < best + 0.003


def test_held_out_items_and_new_ones_are_scored_alike():
    X, y = two_views()
    several = [LogisticRegression(), ExtraTreesClassifier(20, random_state=0), LinearSVC()]
    both = stack([cross_fit(c, X, y, random_state=0) for c in several])
    views = both.views(X)
    # The view of an item's own fold is by models that did not see it: that is its held-out score.
    own = np.stack(views)[both.fold, np.arange(len(y))]
    np.testing.assert_allclose(own, both.scores, atol=1e-9)
    for joined, view in zip(both.folds, views, strict=True):
        np.testing.assert_allclose(joined.predict_proba(X), view, atol=1e-9)
        assert (joined.predict(X) == both.classes[view.argmax(axis=1)]).all()


def test_the_model_of_a_stack_does_not_lean_against_the_luck_of_folds():
    # Models that each miss their own fold make a calibrator of the other folds 1.6 % worse here.
    several = (LogisticRegression(), LinearDiscriminantAnalysis(), GaussianNB())
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        y = (np.arange(800) < 60).astype(int)
        X = rng.standard_t(3, size=(800, 4)) + 1.3 * y[:, None]
        both, losses = stack_with_losses([cross_fit(c, X, y, random_state=0) for c in several])
        assert all((c.weights == both.folds[0].weights).all() for c in both.folds)
        found.append((losses.mean(), held_out_losses(both).mean()))
    claimed, calibrated = np.mean(found, axis=0)
    assert calibrated < 1.005 * claimed


def test_losses_of_a_stack_are_those_of_items_that_it_had_not_seen():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 4))  # noise: a model that had seen the items would seem to know them
    several = (LogisticRegression(), GaussianNB())
    _, losses = stack_with_losses([cross_fit(c, X, y, random_state=0) for c in several])
    assert losses.mean() > np.log(3)


def test_passes_over_other_folds_are_refused():
    X, y = two_views()
    one, other = (cross_fit(GaussianNB(), X, y, random_state=seed) for seed in (0, 1))
    with pytest.raises(InputError, match="same items and folds"):
        stack([one, other])
    with pytest.raises(InputError, match="two passes"):
        stack([one])


def test_few_items_of_a_class_do_no_harm():
    several = (LogisticRegression(), GaussianNB(), ExtraTreesClassifier(20, random_state=0))
    ratios = []
    for seed in range(5):
        X, y = two_views(100, k=3, seed=seed)
        passes = [cross_fit(c, X, y, random_state=0) for c in several]
        losses = [held_out_losses(s).mean() for s in (*passes, stack(passes))]
        ratios.append(losses[3] / min(losses[:3]))
    assert np.mean(ratios) < 1.06


def test_what_looks_at_texts_is_fitted_once_and_scores_the_same():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 120)
    texts = np.array([f"{'abc'[c] * 3} word{rng.integers(4)} more" for c in y], dtype=object)
    heads = {"linear": {"linear": LogisticRegression()}, "bayes": {"bayes": ComplementNB()}}
    words = Source("words", heads, TfIdf(min_count=1))
    found = cross_fit_source(words, texts, y, random_state=0)
    for name, head in (("linear", LogisticRegression()), ("bayes", ComplementNB())):
        alone = cross_fit(make_pipeline(TfIdf(min_count=1), head), texts, y, random_state=0)
        np.testing.assert_allclose(found[name][name].scores, alone.scores, atol=1e-12)
    pieces = HashingVectorizer(analyzer="char", n_features=256, alternate_sign=False, norm=None)
    characters = Source("characters", heads, TfidfTransformer(), pieces)
    hashed = cross_fit_source(characters, texts, y, random_state=0)
    passes = [f[name][name] for f in (found, hashed) for name in heads]
    both = stack(passes)
    for scorer in (*passes, both):
        quick = score_by_all(scorer.folds, texts, scorer.classes, "posterior")
        slow = [score_items(c, texts, scorer.classes, "posterior") for c in scorer.folds]
        np.testing.assert_allclose(quick, slow, atol=1e-12)


def test_scaled_and_plain_models_side_by_side_score_the_same():
    X, y = two_views(k=3)
    several = [make_pipeline(StandardScaler(), LogisticRegression()), LogisticRegression()]
    both = stack([cross_fit(c, X, y, random_state=0) for c in several])
    for joined, view in zip(both.folds, both.views(X), strict=True):
        np.testing.assert_allclose(joined.predict_proba(X), view, atol=1e-9)


def test_sources_suit_the_items():
    from scipy import sparse

    assert [s.name for s in sources_for(sparse.eye(4).tocsr(), 2)] == ["linear"]
    negative = sources_for(-sparse.eye(4).tocsr(), 2)[0]
    assert not any("Bayes" in family for family in negative.families)
    table = np.array([[1.0, "a"], [None, "b"]], dtype=object)
    assert sources_for(table, 2)[0].front.__class__.__name__ == "ColumnTransformer"
    assert "boosting" not in [s.name for s in sources_for(np.zeros((4, 2)), 100)]
    assert [s.name for s in sources_for(["a", "b"], 2, vectorizer="learnt")] == ["vectors"]
    with pytest.raises(InputError, match="rows of a table"):
        sources_for(np.zeros(3), 2)
