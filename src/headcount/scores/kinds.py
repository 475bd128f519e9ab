"""What scores a classifier gives, and the scores of items by one classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from headcount._core.types import Floats
from headcount.exceptions import InputError

ITEMS_PER_SCORING = 200_000  # passed to a classifier at once, which bounds the memory


def score_kind(classifier: Any, n_classes: int) -> str:
    """Say whether the classifier gives posteriors, decision values, or labels only."""
    if hasattr(classifier, "predict_proba"):
        return "posterior"
    # One-vs-one decision values have a column a pair: they are no scores of classes.
    pairs = n_classes > 2 and getattr(classifier, "decision_function_shape", "ovr") == "ovo"
    if hasattr(classifier, "decision_function") and not pairs:
        return "decision"
    if hasattr(classifier, "predict"):
        return "label"
    raise InputError(f"{classifier!r} has none of predict_proba, decision_function and predict.")


def score_items(classifier: Any, X: Any, classes: NDArray[Any], kind: str) -> Floats:
    """Scores of items, a column a class: posteriors, decision values, or one-hot predictions.

    Many items are scored in parts, so that a pool on disk never has to fit in memory.
    """
    n = _num_samples(X)
    if n <= ITEMS_PER_SCORING:
        return _score(classifier, X, classes, kind)
    scores = np.empty((n, len(classes)))
    for start in range(0, n, ITEMS_PER_SCORING):
        part = _safe_indexing(X, slice(start, min(start + ITEMS_PER_SCORING, n)))
        scores[start : start + ITEMS_PER_SCORING] = _score(classifier, part, classes, kind)
    return scores


def predicts_best_score(classifier: Any, X: Any, classes: NDArray[Any], kind: str) -> bool:
    """Whether the prediction is the class with the best score, on some of the items."""
    if kind == "label" or not hasattr(classifier, "predict"):
        return True
    some = _safe_indexing(X, np.arange(min(_num_samples(X), 500)))
    best = classes[_score(classifier, some, classes, kind).argmax(axis=1)]
    return bool((np.asarray(classifier.predict(some)) == best).all())


def check_finite(scores: Floats) -> Floats:
    """Refuse scores that are no numbers."""
    if not np.isfinite(scores).all():
        row = int(np.argmin(np.isfinite(scores).all(axis=1)))
        raise InputError(
            f"the classifier gave NaN or infinity for row {row}. Scale its features, or "
            "regularise it more."
        )
    return scores


def _score(classifier: Any, X: Any, classes: NDArray[Any], kind: str) -> Floats:
    if kind == "posterior":
        raw = np.asarray(classifier.predict_proba(X), dtype=np.float64)
    elif kind == "decision":
        raw = np.asarray(classifier.decision_function(X), dtype=np.float64)
        if raw.ndim == 1:
            raw = np.column_stack([-raw / 2, raw / 2])
    else:
        raw = (np.asarray(classifier.predict(X))[:, None] == classes).astype(np.float64)
    return check_finite(raw)
