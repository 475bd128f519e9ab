"""Methods that count: the training prevalence, predicted labels, posteriors."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _num_samples,
    check_is_fitted,
)

from headcount._core import validation as check
from headcount._core.types import Floats
from headcount.bags import Bags
from headcount.inference.draws import Draws
from headcount.inference.sampling import DrawSettings
from headcount.methods.base import Quantifier, Tags, check_pool, count_items
from headcount.methods.representations import Labels, Posteriors, Representation
from headcount.methods.scored import ScoreQuantifier
from headcount.scores.scorer import Held


class MLPE(Quantifier):
    """Maximum-likelihood prevalence estimation: answer the training prevalence, always.

    The trivial baseline, right only if nothing has moved.

    Examples
    --------
    >>> MLPE().fit([[0], [0], [0], [0]], ["neg", "neg", "neg", "pos"]).predict([[1], [1]])
    array([0.75, 0.25])
    """

    def method_tags(self) -> Tags:
        """Looks at labels only."""
        return Tags(held_out=False, corrects=False, ignores_items=True)

    def fit(self, X: Any, y: Any) -> Self:
        """Count the labels; `X` is looked at only for its shape."""
        array = check.labels(y)
        check.same_length(_num_samples(X), array)
        if hasattr(X, "shape"):
            _check_n_features(self, X, reset=True)
            _check_feature_names(self, X, reset=True)
        self.classes_, codes = check.encode(array)
        check.two_or_more(self.classes_)
        self.prevalence_ = np.bincount(codes) / len(codes)
        return self

    def fit_scores(self, scores: Any, y: Any, *, classes: ArrayLike | None = None) -> Self:
        """Count the labels."""
        array = check.labels(y)
        check.same_length(len(scores), array, "scores")
        self.classes_, codes = check.encode(array, classes)
        check.two_or_more(self.classes_)
        self.prevalence_ = np.bincount(codes, minlength=len(self.classes_)) / len(codes)
        return self

    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Answer the training prevalence for every bag."""
        check_is_fitted(self, "classes_")
        if hasattr(X, "shape") and hasattr(self, "n_features_in_"):
            _check_feature_names(self, X, reset=False)
            _check_n_features(self, X, reset=False)
        check_pool(count_items(X), bags)
        return np.tile(self.prevalence_, (len(bags), 1))

    def draws_of(self, X: Any, bags: Bags, settings: DrawSettings) -> Draws:  # noqa: ARG002
        """Uniform draws: the items say nothing about the prevalences."""
        return Draws.uninformative(self.classes_, self.predict_bags(X, bags), bags.sizes)

    def predict_scores(self, scores: Any, bags: Bags | None = None) -> Floats:
        """Answer the training prevalence for every bag."""
        check_is_fitted(self, "classes_")
        matrix = check.score_matrix(scores, len(self.classes_))
        if bags is not None:
            check_pool(len(matrix), bags)
        every = np.tile(self.prevalence_, (1 if bags is None else len(bags), 1))
        return every[0] if bags is None else every


class CC(ScoreQuantifier):
    """Classify and count: the share of items predicted as each class.

    Biased towards the training prevalence as soon as the classifier errs; kept as the baseline
    that everybody would try first. Forman (2008).

    Parameters
    ----------
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> CC(DecisionTreeClassifier(max_depth=2, random_state=0)).fit(X, y).predict(X).round(2)
    array([0.38, 0.62])
    """

    looks_at: Representation = Labels()

    def method_tags(self) -> Tags:
        """Learns nothing, and corrects for nothing."""
        return Tags(scores=self.looks_at.needs, held_out=False, corrects=False)

    def learn(self, held: Held) -> None:
        """Nothing to learn beyond the classifier."""

    def aggregate(self, scores: Floats, bags: Bags) -> Floats:
        """Means of what is looked at."""
        return self.looks_at.of_bags(scores, bags, self.n_jobs)


class PCC(CC):
    """Probabilistic classify and count: the mean posterior. Bella et al. (2010).

    With calibrated posteriors it is the best answer when the prevalence has not moved, or when
    only the mix of items has; under a change of prevalence it is biased like CC.

    Parameters
    ----------
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> scores = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]]
    >>> PCC().fit_scores(scores, ["neg", "pos", "neg", "pos"]).predict_scores(scores).round(2)
    array([0.55, 0.45])
    """

    looks_at: Representation = Posteriors()
