"""Scores by several classifiers of one make in one pass over the items, where that can be had.

The classifiers of the folds differ in their numbers only. Those of linear models are put side by
side, so that one product scores the items by all of them; a scaler in front is folded into the
coefficients, and texts are split into words once for all vectorisers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_array

from headcount._core.types import Floats
from headcount.scores.kinds import ITEMS_AT_ONCE, check_finite, score_items
from headcount.text.tfidf import TfIdf, weigh_for_all


def score_by_all(
    classifiers: Sequence[Any], X: Any, classes: NDArray[Any], kind: str
) -> list[Floats]:
    """Scores of items by each classifier, in the order of the classifiers."""
    quick = _linear(classifiers, len(classes)) if kind == "posterior" else None
    if quick is None or len(classifiers) == 1:
        return [score_items(c, X, classes, kind) for c in classifiers]
    n = _num_samples(X)
    out = [np.empty((n, len(classes))) for _ in classifiers]
    for start in range(0, n, ITEMS_AT_ONCE):
        part = slice(start, min(start + ITEMS_AT_ONCE, n))
        values = quick(X if n <= ITEMS_AT_ONCE else _safe_indexing(X, part))
        for scores, columns in zip(out, np.split(values, len(out), axis=1), strict=True):
            scores[part] = check_finite(_posteriors(columns))
    return out


def _linear(classifiers: Sequence[Any], k: int) -> Any:
    """Function from items to the decision values of all classifiers; None if there is none."""
    steps = [_steps(c) for c in classifiers]
    types = [tuple(type(step) for step in several) for several in steps]
    if len(set(types)) > 1 or types[0][-1] is not LogisticRegression:
        return None
    if not all(_is_plain(several[-1], k) for several in steps):
        return None
    models = [several[-1] for several in steps]
    if types[0] == (LogisticRegression,):
        return _Products(models, None)
    if types[0] == (StandardScaler, LogisticRegression):
        return _Products(models, [several[0] for several in steps])
    if types[0] == (TfIdf, LogisticRegression):
        return _TextProducts(models, [several[0] for several in steps])
    return None


def _steps(classifier: Any) -> list[Any]:
    return [step for _, step in classifier.steps] if type(classifier) is Pipeline else [classifier]


def _is_plain(model: Any, k: int) -> bool:
    """Whether posteriors are a softmax, or for two classes a logistic curve, of coefficients."""
    softmax_like = k == 2 or model.solver != "liblinear"
    return bool(softmax_like and model.coef_.shape[0] == (1 if k == 2 else k))


def _posteriors(values: Floats) -> Floats:
    if values.shape[1] == 1:
        second = expit(values[:, 0])
        return np.column_stack([1 - second, second])
    return np.asarray(softmax(values, axis=1))


class _Products:
    """One product with all coefficients side by side; scalers are folded into them."""

    def __init__(self, models: Sequence[Any], scalers: Sequence[Any] | None):
        coefs = [np.asarray(model.coef_, dtype=np.float64) for model in models]
        offsets = [np.asarray(model.intercept_, dtype=np.float64) for model in models]
        for i, scaler in enumerate(scalers or []):
            if scaler.scale_ is not None:
                coefs[i] = coefs[i] / scaler.scale_
            if scaler.mean_ is not None and scaler.with_mean:
                offsets[i] = offsets[i] - coefs[i] @ scaler.mean_
        self.first = models[0] if not scalers else scalers[0]
        self.scaled = bool(scalers)
        self.table, self.offset = np.vstack(coefs).T, np.concatenate(offsets)

    def __call__(self, X: Any) -> Floats:
        # The first step's own checks: names and number of features, NaN, sparse input to a scaler.
        if self.scaled and (sparse.issparse(X) or _num_samples(X) == 0):
            X = self.first.transform(X)
        elif self.scaled:
            self.first.transform(_safe_indexing(X, slice(0, 1)))
        else:
            self.first.decision_function(_safe_indexing(X, slice(0, 1)))
        dense = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        return np.asarray(dense @ self.table.astype(dense.dtype, copy=False) + self.offset)


class _TextProducts:
    """Words are counted once; each vectoriser's weights and each model's coefficients follow."""

    def __init__(self, models: Sequence[Any], vectorizers: Sequence[TfIdf]):
        self.models, self.vectorizers = models, vectorizers

    def __call__(self, X: Any) -> Floats:
        vectors = weigh_for_all(self.vectorizers, X)
        values = [
            np.asarray(matrix @ model.coef_.T + model.intercept_)
            for matrix, model in zip(vectors, self.models, strict=True)
        ]
        return np.hstack(values)
