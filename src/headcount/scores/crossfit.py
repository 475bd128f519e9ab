"""Fit a classifier to folds of the labelled items, and score each by the one that missed it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.exceptions import InputError
from headcount.scores.kinds import predicts_best_score, score_items, score_kind
from headcount.scores.scorer import Scorer
from headcount.scores.sources import Source
from headcount.scores.splits import Split, is_share, make_splits, too_few


def cross_fit(
    classifier: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    groups: Any = None,
    held_out: bool | None = True,
    whole: bool = False,
    labels_only: bool = False,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Scorer:
    """Fit clones of `classifier`, and score items by those that never saw them.

    Parameters
    ----------
    cv : int, float, splitter or iterable
        Stratified folds, the share of items to hold out once, or as scikit-learn has it.
    groups : array, optional
        Of each item; whole groups are held out.
    held_out : bool or None
        False scores no held-out items; None scores them unless `cv` is None or a class has too
        few items.
    whole : bool
        Whether to fit a classifier to all items too. A share to hold out never does that: the
        classifier of the rest stays the only one.
    labels_only : bool
        Score by predictions, whatever else the classifier offers.
    """
    array = check.labels(y)
    check.same_length(_num_samples(X), array)
    if sparse.issparse(X):
        X = X.tocsr()  # some sparse forms cannot be split into rows
    classes, codes = check.encode(array)
    if isinstance(classifier, FrozenEstimator):
        return _frozen(classifier, X, array, labels_only)
    check.two_or_more(classes)
    frequency = np.bincount(codes, minlength=len(classes)) / len(codes)
    if held_out is None:
        held_out = cv is not None and not too_few(codes, cv)
    splits = (
        make_splits(X, codes, classes, cv, groups=groups, random_state=random_state)
        if held_out
        else []
    )
    wanted: list[NDArray[Any] | None] = [train for train, _ in splits]
    if not splits or (whole and not is_share(cv)):
        wanted.append(None)
    # np.unique sorts labels as scikit-learn does, so the columns of its classifiers are ours.
    fitted = Parallel(n_jobs=n_jobs)(
        delayed(_fit)(clone(classifier), X, array, rows, classes) for rows in wanted
    )
    kind = "label" if labels_only else score_kind(fitted[0], len(classes))
    folds = tuple(fitted[: len(splits)])
    scores, order, fold = _held_scores(folds, X, splits, classes, kind)
    return Scorer(
        classes,
        frequency,
        scores,
        codes[order],
        kind,
        folds,
        fitted[-1] if len(fitted) > len(splits) else None,
        predicts_best_score(fitted[0], X, classes, kind),
        fold=fold,
    )


def cross_fit_source(
    source: Source,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    groups: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, dict[str, Scorer]]:
    """A pass of every classifier of a source, by family and name, over the same folds.

    What looks at the items is fitted once in a fold for all of them; `say` hears of every fold.
    """
    array = check.labels(y)
    check.same_length(_num_samples(X), array)
    classes, codes = check.encode(array)
    check.two_or_more(classes)
    frequency = np.bincount(codes, minlength=len(classes)) / len(codes)
    splits = make_splits(X, codes, classes, cv, groups=groups, random_state=random_state)
    seen = X if source.once is None else source.once.transform(X)
    seen = seen.tocsr() if sparse.issparse(seen) else seen
    heads = [
        (family, name, head)
        for family, some in source.families.items()
        for name, head in some.items()
    ]
    # A head by fold: the classifier from items to scores, what its scores are, and those held out.
    coming = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_fit_heads)(source, [h for _, _, h in heads], seen, array, split, classes)
        for split in splits
    )
    fitted = []
    for done, of_fold in enumerate(coming, start=1):
        fitted.append(of_fold)
        say(f"{source.name}: fold {done} of {len(splits)} is done")
    order, items, fold = _item_order(splits)
    found: dict[str, dict[str, Scorer]] = {}
    for h, (family, name, _) in enumerate(heads):
        folds, kinds, parts = zip(*(of_fold[h] for of_fold in fitted), strict=True)
        scorer = Scorer(
            classes,
            frequency,
            np.vstack(parts)[order],
            codes[items],
            kinds[0],
            folds,
            fold=fold,
        )
        found.setdefault(family, {})[name] = scorer
    return found


def _fit_heads(
    source: Source, heads: list[Any], X: Any, y: NDArray[Any], split: Split, classes: NDArray[Any]
) -> list[tuple[Any, str, Floats]]:
    """Fitted classifiers of a fold with the scores of the items that it holds out."""
    (rows, test), front = split, None
    part, other = _safe_indexing(X, rows), _safe_indexing(X, test)
    if source.front is not None:
        front = clone(source.front)
        part, other = front.fit_transform(part, y[rows]), front.transform(other)
    found = []
    for head in heads:
        fitted = _fit(clone(head), part, y[rows], None, classes)
        kind = score_kind(fitted, len(classes))
        scores = score_items(fitted, other, classes, kind)
        found.append((source.joined(front, fitted), kind, scores))
    return found


def _fit(
    classifier: Any, X: Any, y: NDArray[Any], rows: NDArray[Any] | None, classes: NDArray[Any]
) -> Any:
    """Fit to some rows, of which some may be repeated, or to all."""
    part = X if rows is None else _safe_indexing(X, rows)
    fitted = classifier.fit(part, y if rows is None else y[rows])
    known = getattr(fitted, "classes_", classes)
    if len(known) != len(classes) or (np.asarray(known) != classes).any():
        raise InputError(
            f"the classifier's classes are {list(known)[:10]} and those of y "
            f"{classes.tolist()[:10]}. Is a part of it already fitted? Wrap the whole model in "
            "FrozenEstimator and pass validation data of all its classes."
        )
    return fitted


def _held_scores(
    folds: tuple[Any, ...], X: Any, splits: list[Split], classes: NDArray[Any], kind: str
) -> tuple[Floats, Ints, Ints]:
    """Scores of the held-out items, in the order of the items, which these are, and their folds."""
    if not splits:
        none = np.empty(0, dtype=np.int64)
        return np.empty((0, len(classes))), none, none
    parts = []
    for fitted, (_, test) in zip(folds, splits, strict=True):
        part = score_items(fitted, _safe_indexing(X, test), classes, kind)
        if part.shape[1] != len(classes):
            raise InputError(
                f"a classifier fitted on a part of the data gave {part.shape[1]} columns for "
                f"{len(classes)} classes. Pass a smaller cv, or more items of the rare classes."
            )
        parts.append(part)
    order, items, fold = _item_order(splits)
    return np.vstack(parts)[order], items, fold


def _item_order(splits: list[Split]) -> tuple[Ints, Ints, Ints]:
    """Order that puts held-out items back in theirs, which these are, and their folds."""
    items = np.concatenate([test for _, test in splits])
    fold = np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])
    order = np.argsort(items, kind="stable")
    return order, items[order], fold[order]


def _frozen(classifier: Any, X: Any, y: NDArray[Any], labels_only: bool) -> Scorer:
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
    scores = score_items(classifier, X, classes, kind)
    best = predicts_best_score(classifier, X, classes, kind)
    # It scored the validation items as it will score new ones, so it stands where a fold would.
    return Scorer(classes, counts / len(codes), scores, codes, kind, (classifier,), None, best)
