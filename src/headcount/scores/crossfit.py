"""Cross-fitting: score every labelled item by a classifier that was not fitted on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
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

# Rows to fit on (None: all) and rows to score (None: none).
_Job = tuple[NDArray[Any] | None, NDArray[Any] | None]
# Fitted transformer (or None), fitted classifier, kind of its scores, scores of held-out items.
_Fit = tuple[Any, Any, str, Floats | None]


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
    X = X.tocsr() if sparse.issparse(X) else X  # some sparse forms cannot be split into rows
    if isinstance(classifier, FrozenEstimator):
        return _frozen(classifier, X, array, labels_only)
    classes, codes = check.encode(array)
    check.two_or_more(classes)
    if held_out is None:
        held_out = cv is not None and not too_few(codes, cv)
    splits = (
        make_splits(X, codes, classes, cv, groups=groups, random_state=random_state)
        if held_out
        else []
    )
    jobs: list[_Job] = list(splits)
    if not splits or (whole and not is_share(cv)):
        jobs.append((None, None))
    fits = Parallel(n_jobs=n_jobs)(
        delayed(_fit_job)(None, [classifier], X, array, job, classes, labels_only) for job in jobs
    )
    fitted = [classifier for ((_, classifier, _, _),) in fits]
    scorer = _gather([fit for (fit,) in fits[: len(splits)]], splits, classes, codes)
    kind = fits[0][0][2]
    return replace(
        scorer,
        kind=kind,
        folds=tuple(fitted[: len(splits)]),
        whole=fitted[-1] if len(fitted) > len(splits) else None,
        predicts_best=predicts_best_score(fitted[0], X, classes, kind),
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
    """Cross-fit every classifier of a source over the same folds.

    The source's transformer is fitted once per fold for all of its classifiers. `say` is called
    after every fold.

    Returns
    -------
    dict
        Scorers by family and name.
    """
    array = check.labels(y)
    check.same_length(_num_samples(X), array)
    classes, codes = check.encode(array)
    check.two_or_more(classes)
    splits = make_splits(X, codes, classes, cv, groups=groups, random_state=random_state)
    items = X if source.once is None else source.once.transform(X)
    items = items.tocsr() if sparse.issparse(items) else items
    names = [(family, name) for family, some in source.families.items() for name in some]
    heads = [source.families[family][name] for family, name in names]
    running = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_fit_job)(source.front, heads, items, array, split, classes) for split in splits
    )
    fits = []
    for number, fit in enumerate(running, start=1):
        fits.append(fit)
        say(f"{source.name}: fold {number} of {len(splits)} is done")
    scorers: dict[str, dict[str, Scorer]] = {}
    for head, (family, name) in enumerate(names):
        per_fold = [fit[head] for fit in fits]
        folds = tuple(source.joined(front, fitted) for front, fitted, _, _ in per_fold)
        scorer = replace(_gather(per_fold, splits, classes, codes), folds=folds)
        scorers.setdefault(family, {})[name] = scorer
    return scorers


def _fit_job(
    front: Any,
    heads: Sequence[Any],
    X: Any,
    y: NDArray[Any],
    job: _Job,
    classes: NDArray[Any],
    labels_only: bool = False,
) -> list[_Fit]:
    """Fit a clone of each head to the training rows of a job, and score its held-out rows."""
    rows, test = job
    part, labels = (X, y) if rows is None else (_safe_indexing(X, rows), y[rows])
    other = None if test is None else _safe_indexing(X, test)
    if front is not None:
        front = clone(front)
        part = front.fit_transform(part, labels)
        other = None if other is None else front.transform(other)
    fits: list[_Fit] = []
    for head in heads:
        fitted = _fit(clone(head), part, labels, classes)
        kind = "label" if labels_only else score_kind(fitted, len(classes))
        scores = None if other is None else score_items(fitted, other, classes, kind)
        fits.append((front, fitted, kind, scores))
    return fits


def _fit(classifier: Any, X: Any, y: NDArray[Any], classes: NDArray[Any]) -> Any:
    """Fit a classifier that has to know all classes, in scikit-learn's order, which is ours."""
    fitted = classifier.fit(X, y)
    known = getattr(fitted, "classes_", classes)
    if len(known) != len(classes) or (np.asarray(known) != classes).any():
        raise InputError(
            f"the classifier's classes are {list(known)[:10]} and those of y "
            f"{classes.tolist()[:10]}. Is a part of it already fitted? Wrap the whole model in "
            "FrozenEstimator and pass validation data of all its classes."
        )
    return fitted


def _gather(
    fits: Sequence[_Fit], splits: list[Split], classes: NDArray[Any], codes: Ints
) -> Scorer:
    """Scorer with the held-out scores of all folds, in the order of the items."""
    frequency = np.bincount(codes, minlength=len(classes)) / len(codes)
    if not splits:
        none = np.empty(0, dtype=np.int64)
        return Scorer(classes, frequency, np.empty((0, len(classes))), none, fold=none)
    parts = [scores for _, _, _, scores in fits if scores is not None]
    widths = {part.shape[1] for part in parts} - {len(classes)}
    if widths:
        raise InputError(
            f"a classifier fitted on a part of the data gave {widths.pop()} columns for "
            f"{len(classes)} classes. Pass a smaller cv, or more items of the rare classes."
        )
    items = np.concatenate([test for _, test in splits])
    fold = np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])
    order = np.argsort(items, kind="stable")
    held_out = codes[items[order]]
    kind = fits[0][2]
    return Scorer(classes, frequency, np.vstack(parts)[order], held_out, kind, fold=fold[order])


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
    # It scores validation items as it scores new ones, so it takes the place of a fold.
    return Scorer(classes, counts / len(codes), scores, codes, kind, (classifier,), None, best)
