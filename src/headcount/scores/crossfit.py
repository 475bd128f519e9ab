"""Fit a classifier once, with scores for labelled items that it had not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.exceptions import InputError
from headcount.kernels.random import as_seed

PART = 200_000  # items scored at once
Split = tuple[Ints, Ints]


@dataclass(frozen=True, eq=False)
class ScorePass:
    """What a classifier pass leaves behind, and all that a method needs to learn.

    `scores` are those of held-out items (None if no method asked for them), `codes` the classes
    of these items, `frequency` the share of each class among all labelled items. `kind` says
    what the scores are: posterior, decision, or label (one-hot predictions). `predicts_argmax`
    is False for a classifier whose prediction is not its best-scored class. `folds` are the
    classifiers that scored the held-out items, if they were asked for.
    """

    classes: NDArray[Any]
    frequency: Floats
    classifier: Any = None
    scores: Floats | None = None
    codes: Ints | None = None
    kind: str = "posterior"
    predicts_argmax: bool = True
    folds: tuple[Any, ...] = ()


def cross_fit(
    classifier: Any,
    X: Any,
    y: Any,
    *,
    cv: int | float | None = 5,
    held_out: bool | None = True,
    labels_only: bool = False,
    keep_folds: bool = False,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> ScorePass:
    """Fit a clone of `classifier` on everything, and score items by models that never saw them.

    Parameters
    ----------
    cv : int or float
        Number of stratified folds, or the share of items to hold out once.
    held_out : bool or None
        False skips the scores of held-out items, for methods that do not need them; None skips
        them only where `cv` is None or a class has too few items.
    labels_only : bool
        Score by predictions, whatever else the classifier offers.
    keep_folds : bool
        Keep the classifiers of the folds.
    """
    array = check.labels(y)
    n = _num_samples(X)
    check.same_length(n, array)
    if sparse.issparse(X):
        X = X.tocsr()  # some sparse forms cannot be split into rows
    classes, codes = check.encode(array)
    if isinstance(classifier, FrozenEstimator):
        return _frozen(classifier, X, array, labels_only)
    check.two_or_more(classes)
    frequency = np.bincount(codes, minlength=len(classes)) / len(codes)
    # np.unique sorts labels as scikit-learn does, so the columns of its classifiers are ours.
    fitted = clone(classifier).fit(X, array)
    known = getattr(fitted, "classes_", classes)
    if len(known) != len(classes) or (np.asarray(known) != classes).any():
        raise InputError(
            f"the classifier's classes are {list(known)[:10]} and those of y "
            f"{classes.tolist()[:10]}. Is a part of it already fitted? Wrap the whole model in "
            "FrozenEstimator and pass validation data of all its classes."
        )
    kind = "label" if labels_only else score_kind(fitted, len(classes))
    consistent = _predicts_argmax(fitted, X, classes, kind)
    if held_out is False or (held_out is None and (cv is None or _too_few(codes, cv))):
        return ScorePass(classes, frequency, fitted, kind=kind, predicts_argmax=consistent)
    splits = _splits(codes, classes, cv, random_state)
    jobs = (
        delayed(_fit_and_score)(clone(classifier), X, array, split, classes, kind, keep_folds)
        for split in splits
    )
    parts = Parallel(n_jobs=n_jobs)(jobs)
    order = np.concatenate([test for _, test in splits])
    rank = np.argsort(order, kind="stable")
    held, own = np.vstack([scores for scores, _ in parts])[rank], codes[order[rank]]
    folds = tuple(model for _, model in parts) if keep_folds else ()
    return ScorePass(classes, frequency, fitted, held, own, kind, consistent, folds)


def score_pass(scores: Any, y: Any, classes: ArrayLike | None, *, decisions: bool) -> ScorePass:
    """Wrap scores that came from elsewhere: a transformer, a judge, a log."""
    array = check.labels(y)
    known, codes = check.encode(array, classes)
    check.two_or_more(known)
    matrix = check.score_matrix(_aligned(scores, known), None)
    check.same_length(len(matrix), array, "scores")
    if matrix.shape[1] != len(known):
        raise InputError(
            f"scores have {matrix.shape[1]} columns and y holds {len(known)} classes "
            f"{known.tolist()[:10]}. Pass classes=[...] in the order of the columns if y lacks one."
        )
    counts = np.bincount(codes, minlength=len(known))
    if (counts == 0).any():
        raise InputError(
            f"class {known[counts == 0].tolist()[0]!r} has no labelled item: its scores cannot "
            "be learnt. Add labelled items of it, or drop its column."
        )
    kind = "posterior"
    inside = matrix.min() >= 0 and matrix.max() <= 1
    if decisions and not inside:
        kind = "decision"
    else:
        check.posteriors(matrix)
    return ScorePass(known, counts / len(codes), None, matrix, codes, kind)


def _aligned(scores: Any, classes: NDArray[Any]) -> Any:
    """Columns in the order of the classes, if their names are the classes."""
    names = check.score_names(scores)
    order = [str(c) for c in classes.tolist()]
    if names is None or names == order or set(names) != set(order):
        return scores
    return check.score_matrix(scores, None)[:, [names.index(c) for c in order]]


def _predicts_argmax(classifier: Any, X: Any, classes: NDArray[Any], kind: str) -> bool:
    """Whether the prediction is the best-scored class, on some of the items."""
    if kind == "label" or not hasattr(classifier, "predict"):
        return True
    some = _safe_indexing(X, np.arange(min(_num_samples(X), 500)))
    best = classes[score(classifier, some, classes, kind).argmax(axis=1)]
    return bool((np.asarray(classifier.predict(some)) == best).all())


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


def score(classifier: Any, X: Any, classes: NDArray[Any], kind: str) -> Floats:
    """Scores of items, a column a class: posteriors, decision values, or one-hot predictions.

    Many items are scored in parts, so that a pool on disk never has to fit in memory.
    """
    n = _num_samples(X)
    if n <= PART:
        return _score(classifier, X, classes, kind)
    scores = np.empty((n, len(classes)))
    for start in range(0, n, PART):
        part = _safe_indexing(X, slice(start, min(start + PART, n)))
        scores[start : start + PART] = _score(classifier, part, classes, kind)
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
    if not np.isfinite(raw).all():
        row = int(np.argmin(np.isfinite(raw).all(axis=1)))
        raise InputError(
            f"the classifier gave NaN or infinity for row {row}. Scale its features, or "
            "regularise it more."
        )
    return raw


def _fit_and_score(
    classifier: Any,
    X: Any,
    y: NDArray[Any],
    split: Split,
    classes: NDArray[Any],
    kind: str,
    keep: bool,
) -> tuple[Floats, Any]:
    train, test = split
    fitted = classifier.fit(_safe_indexing(X, train), y[train])
    scores = score(fitted, _safe_indexing(X, test), classes, kind)
    if scores.shape[1] != len(classes):
        raise InputError(
            f"a classifier fitted on a part of the data gave {scores.shape[1]} columns for "
            f"{len(classes)} classes. Pass a smaller cv, or more items of the rare classes."
        )
    return scores, fitted if keep else None


def _too_few(codes: Ints, cv: int | float) -> bool:
    """Whether a class has fewer items than it takes to hold some out."""
    least = np.bincount(codes).min()
    return bool(min(least * cv, least * (1 - cv)) < 1 if 0 < cv < 1 else least < cv)


def _splits(
    codes: Ints, classes: NDArray[Any], cv: int | float | None, random_state: Any
) -> list[Split]:
    counts = np.bincount(codes, minlength=len(classes))
    rarest = int(np.argmin(counts))
    seed = as_seed(random_state) % 2**32
    if cv is None:
        raise InputError("cv=None leaves no held-out scores, and this method needs them.")
    if isinstance(cv, bool) or not isinstance(cv, (int, float, np.integer, np.floating)):
        raise InputError(f"cv must be a number of folds or a share to hold out, got {cv!r}.")
    if isinstance(cv, (float, np.floating)) and 0 < cv < 1:
        if min(counts.min() * cv, counts.min() * (1 - cv)) < 1:
            raise InputError(
                f"class {classes.tolist()[rarest]!r} has {counts[rarest]} labelled items, too few "
                f"to hold out a share of {cv:g} of them. Add items, or use cv=2."
            )
        splitter: Any = StratifiedShuffleSplit(1, test_size=float(cv), random_state=seed)
    elif cv >= 2 and cv == int(cv):
        if counts.min() < cv:
            raise InputError(
                f"class {classes.tolist()[rarest]!r} has {counts[rarest]} labelled items, fewer "
                f"than the {int(cv)} folds of cross-fitting. Set cv={max(2, counts.min())} or "
                f"lower, add items of the class, or drop it. (n_samples={len(codes)})"
            )
        splitter = StratifiedKFold(int(cv), shuffle=True, random_state=seed)
    else:
        raise InputError(f"cv must be at least 2 folds, or a share between 0 and 1, got {cv!r}.")
    return list(splitter.split(np.zeros(len(codes)), codes))


def _frozen(classifier: Any, X: Any, y: NDArray[Any], labels_only: bool) -> ScorePass:
    """Use an already fitted model as it is; the data given are its validation data."""
    classes = np.asarray(classifier.classes_)
    _, codes = check.encode(y, classes)
    counts = np.bincount(codes, minlength=len(classes))
    if (counts == 0).any():
        raise InputError(
            f"class {classes[counts == 0].tolist()[0]!r} of the frozen model has no item in the "
            "validation data. Give validation items of every class."
        )
    kind = "label" if labels_only else score_kind(classifier, len(classes))
    consistent = _predicts_argmax(classifier, X, classes, kind)
    scores = score(classifier, X, classes, kind)
    return ScorePass(classes, counts / len(codes), classifier, scores, codes, kind, consistent)
