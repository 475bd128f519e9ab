"""Scores by several classifiers of one make in one pass over the items, where that can be had.

The classifiers of the folds differ in their numbers only. Those of linear models are put side by
side, so that one product scores the items by all of them; a scaler in front is folded into the
coefficients, and texts are split into words once for all vectorisers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_array

from headcount._core.types import Floats
from headcount.scores.joined import StackedClassifier
from headcount.scores.kinds import ITEMS_PER_SCORING, check_finite, score_items
from headcount.text.tfidf import TfIdf, weigh_for_all

TEXTS_PER_BATCH = 20_000  # whose pieces are held in memory at once


def score_by_all(
    classifiers: Sequence[Any], X: Any, classes: NDArray[Any], kind: str
) -> list[Floats]:
    """Scores of items by each classifier, in the order of the classifiers."""
    if not all(isinstance(c, StackedClassifier) for c in classifiers):
        return _score_each(classifiers, [kind] * len(classifiers), X, classes)
    members = [member for c in classifiers for member in c.members]
    scores = iter(_score_each(members, [k for c in classifiers for k in c.kinds], X, classes))
    return [c.join([next(scores) for _ in c.members]) for c in classifiers]


def _score_each(
    models: Sequence[Any], kinds: Sequence[str], X: Any, classes: NDArray[Any]
) -> list[Floats]:
    """Scores by each model; models of one make are applied together."""
    makes: dict[Any, list[int]] = {}
    for i, (model, kind) in enumerate(zip(models, kinds, strict=True)):
        makes.setdefault(_make_of(model, kind, len(classes)) or i, []).append(i)
    out: list[Any] = [None] * len(models)
    for make, numbers in makes.items():
        several = [models[i] for i in numbers]
        if isinstance(make, int) or len(several) == 1:
            found = [score_items(several[0], X, classes, kinds[numbers[0]])]
        else:
            found = _in_parts(_QUICK[make[0]](several), len(several), X, classes)
        for i, scores in zip(numbers, found, strict=True):
            out[i] = scores
    return out


def _in_parts(
    quick: Callable[[Any], list[Floats]], n_models: int, X: Any, classes: NDArray[Any]
) -> list[Floats]:
    n = _num_samples(X)
    out = [np.empty((n, len(classes))) for _ in range(n_models)]
    for start in range(0, n, ITEMS_PER_SCORING):
        part = slice(start, min(start + ITEMS_PER_SCORING, n))
        several = quick(X if n <= ITEMS_PER_SCORING else _safe_indexing(X, part))
        for scores, found in zip(out, several, strict=True):
            scores[part] = check_finite(found)
    return out


def _make_of(model: Any, kind: str, k: int) -> tuple[str, ...] | None:
    """Models with the same answer can be applied together; None for one that is alone."""
    if kind != "posterior":
        return None
    steps = _steps(model)
    types = tuple(type(step) for step in steps)
    if types[0] is HashingVectorizer and len(steps) > 1:
        return "hashed", repr(steps[0])
    if types == (TfIdf, ComplementNB):
        return "text", repr(steps[0])
    if types[-1] is not LogisticRegression or not _is_plain(steps[-1], k):
        return None
    if types == (LogisticRegression,) or types == (StandardScaler, LogisticRegression):
        return "scaled" if len(types) == 2 else "plain", ""
    return ("text", repr(steps[0])) if types == (TfIdf, LogisticRegression) else None


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

    def __init__(self, models: Sequence[Any]):
        last = [_steps(model)[-1] for model in models]
        coefs = [np.asarray(model.coef_, dtype=np.float64) for model in last]
        offsets = [np.asarray(model.intercept_, dtype=np.float64) for model in last]
        self.first = _steps(models[0])[0]
        self.scaled = isinstance(self.first, StandardScaler)
        for i, model in enumerate(models if self.scaled else []):
            scaler = _steps(model)[0]
            if scaler.scale_ is not None:
                coefs[i] = coefs[i] / scaler.scale_
            if scaler.mean_ is not None and scaler.with_mean:
                offsets[i] = offsets[i] - coefs[i] @ scaler.mean_
        self.table, self.offset = np.vstack(coefs).T, np.concatenate(offsets)
        self.n_models = len(models)

    def __call__(self, X: Any) -> list[Floats]:
        # The first step's own checks: names and number of features, NaN, sparse input to a scaler.
        if self.scaled and (sparse.issparse(X) or _num_samples(X) == 0):
            X = self.first.transform(X)
        elif self.scaled:
            self.first.transform(_safe_indexing(X, slice(0, 1)))
        else:
            self.first.decision_function(_safe_indexing(X, slice(0, 1)))
        dense = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        values = np.asarray(dense @ self.table.astype(dense.dtype, copy=False) + self.offset)
        return [_posteriors(columns) for columns in np.split(values, self.n_models, axis=1)]


class _TextProducts:
    """Words are counted once; each vectoriser's weights and each model's coefficients follow."""

    def __init__(self, models: Sequence[Any]):
        pairs = [_steps(model) for model in models]
        known = {id(front): front for front, _ in pairs}  # several models may share one
        self.vectorizers = list(known.values())
        place = {key: i for i, key in enumerate(known)}
        self.models = [(place[id(front)], *_linear_map(last)) for front, last in pairs]

    def __call__(self, X: Any) -> list[Floats]:
        vectors = weigh_for_all(self.vectorizers, X)
        return [
            _posteriors(np.asarray(vectors[i] @ table + offset)) for i, table, offset in self.models
        ]


class _Hashed:
    """Texts are cut into pieces once, and the rest of each model goes on from there."""

    def __init__(self, models: Sequence[Any]):
        steps = [_steps(model) for model in models]
        self.first = steps[0][0]
        self.known = {id(s[1]): s[1] for s in steps}
        self.rest = [(id(s[1]), s[2:]) for s in steps]

    def __call__(self, X: Any) -> list[Floats]:
        n = _num_samples(X)
        parts = [
            self._score(_safe_indexing(X, slice(i, i + TEXTS_PER_BATCH)))
            for i in range(0, n, TEXTS_PER_BATCH)
        ]
        empty = self._score(X) if not parts else []
        return [np.vstack(several) for several in zip(*parts, strict=True)] if parts else empty

    def _score(self, X: Any) -> list[Floats]:
        pieces = self.first.transform(X)
        seen = {key: front.transform(pieces) for key, front in self.known.items()}
        found = []
        for key, later in self.rest:
            Z = seen[key]
            for step in later[:-1]:
                Z = step.transform(Z)
            found.append(np.asarray(later[-1].predict_proba(Z)))
        return found


def _linear_map(model: Any) -> tuple[Floats, Floats]:
    """Coefficients and offsets of the decision values."""
    if isinstance(model, ComplementNB):
        return model.feature_log_prob_.T, np.zeros(len(model.classes_))
    return model.coef_.T, model.intercept_


_QUICK: dict[str, Callable[[Sequence[Any]], Callable[[Any], list[Floats]]]] = {
    "plain": _Products,
    "scaled": _Products,
    "text": _TextProducts,
    "hashed": _Hashed,
}
