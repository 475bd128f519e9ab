"""Scores that come from elsewhere, in the place of a classifier."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from headcount._core import validation as check
from headcount._core.types import Floats
from headcount.exceptions import InputError


class GivenScores(ClassifierMixin, BaseEstimator):
    """A classifier whose items are posteriors already: it hands them on.

    For scores of a transformer or of a service in a study. Scores of the labelled items must come
    from a model that had not seen these, since methods learn from them as from held-out ones.

    Examples
    --------
    >>> GivenScores().fit([[0.9, 0.1], [0.2, 0.8]], ["a", "b"]).predict([[0.4, 0.6]]).tolist()
    ['b']
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Note the classes; a column of `X` belongs to each, in their order."""
        self.classes_, _ = check.encode(check.labels(y))
        self.predict_proba(X)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Items as they are."""
        check_is_fitted(self, "classes_")
        matrix = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.classes_):
            raise InputError(
                f"scores need a column for each of the {len(self.classes_)} classes, got shape "
                f"{matrix.shape}. Name the columns by scores = {{ class = 'column', ... }}."
            )
        check.posteriors(matrix)
        return matrix

    def predict(self, X: Any) -> NDArray[Any]:
        """Class with the largest score."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
