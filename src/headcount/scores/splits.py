"""Which labelled items are held out together: folds, a share, a splitter, whole groups."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

from headcount._core import validation as check
from headcount._core.types import Ints
from headcount.exceptions import InputError, UnreliableWarning
from headcount.kernels.random import as_seed

Split = tuple[Ints, Ints]  # items to fit on, items that are held out


def make_splits(
    X: Any, codes: Ints, classes: NDArray[Any], cv: Any, *, groups: Any = None, random_state: Any
) -> list[Split]:
    """Items to fit on and items to hold out, for each fold.

    Parameters
    ----------
    cv : int, float, splitter or iterable
        Stratified folds, the share of items to hold out once, an object with ``split``, or
        pairs of item numbers, as scikit-learn takes them.
    groups : array, optional
        Items of the same group are never split: a whole number of folds leaves out whole groups.
    """
    if groups is not None:
        groups = check.present(check.column(groups, "groups"), "the group")
        check.same_length(len(groups), codes, "groups")
    if cv is None:
        raise InputError("cv=None leaves no held-out scores, and this method needs them.")
    if is_share(cv):
        found = _share(codes, classes, float(cv), groups, random_state)
    elif isinstance(cv, (int, float, np.integer, np.floating)) and not isinstance(cv, bool):
        found = _folds(codes, classes, cv, groups, random_state)
    elif hasattr(cv, "split") and not isinstance(cv, (str, bytes)):
        try:
            found = list(cv.split(X, codes, groups))
        except ValueError as error:
            raise InputError(f"cv cannot split the labelled items: {error}") from None
    elif isinstance(cv, Iterable) and not isinstance(cv, (str, bytes)):
        found = _given(cv)
    else:
        raise InputError(
            f"cv must be a number of folds, a share to hold out, a splitter or pairs of item "
            f"numbers, got {cv!r}."
        )
    _check(found, codes, classes)
    return found


def is_share(cv: Any) -> bool:
    """Whether `cv` is a share of items to hold out once."""
    return isinstance(cv, (float, np.floating)) and bool(0 < cv < 1)


def too_few(codes: Ints, cv: Any) -> bool:
    """Whether a class has fewer items than it takes to hold some out."""
    least = int(np.bincount(codes).min())
    if is_share(cv):
        return bool(min(least * cv, least * (1 - cv)) < 1)
    whole = isinstance(cv, (int, np.integer)) and not isinstance(cv, bool)
    return whole and bool(least < cv)


def _share(codes: Ints, classes: NDArray[Any], cv: float, groups: Any, state: Any) -> list[Split]:
    if groups is not None:
        # As many folds of whole groups as make a fold about as large as the share; one is taken.
        n_folds = max(2, round(1 / cv))
        return _folds(codes, classes, n_folds, groups, state)[:1]
    counts = np.bincount(codes, minlength=len(classes))
    rarest = int(np.argmin(counts))
    if too_few(codes, cv):
        raise InputError(
            f"class {classes.tolist()[rarest]!r} has {counts[rarest]} labelled items, too few "
            f"to hold out a share of {cv:g} of them. Add items, or use cv=2."
        )
    splitter = StratifiedShuffleSplit(1, test_size=cv, random_state=as_seed(state) % 2**32)
    return list(splitter.split(np.zeros(len(codes)), codes))


def _folds(codes: Ints, classes: NDArray[Any], cv: Any, groups: Any, state: Any) -> list[Split]:
    if cv < 2 or cv != int(cv):
        raise InputError(f"cv must be at least 2 folds, or a share between 0 and 1, got {cv!r}.")
    counts = np.bincount(codes, minlength=len(classes))
    rarest = int(np.argmin(counts))
    seed = as_seed(state) % 2**32
    if counts.min() < cv:
        raise InputError(
            f"class {classes.tolist()[rarest]!r} has {counts[rarest]} labelled items, fewer "
            f"than the {int(cv)} folds of cross-fitting. Set cv={max(2, counts.min())} or "
            f"lower, add items of the class, or drop it. (n_samples={len(codes)})"
        )
    if groups is None:
        plain = StratifiedKFold(int(cv), shuffle=True, random_state=seed)
        return list(plain.split(np.zeros(len(codes)), codes))
    n_groups = len(np.unique(groups))
    if n_groups < cv:
        raise InputError(
            f"{n_groups} groups cannot be left out in {int(cv)} folds: set cv={n_groups} or lower, "
            "or leave groups out."
        )
    whole = StratifiedGroupKFold(int(cv), shuffle=True, random_state=seed)
    fold = np.empty(len(codes), dtype=np.int64)
    for number, (_, test) in enumerate(whole.split(np.zeros(len(codes)), codes, groups)):
        fold[test] = number
    _scatter_lonely(fold, codes, classes, int(cv))
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(int(cv))]


def _scatter_lonely(fold: Ints, codes: Ints, classes: NDArray[Any], n_folds: int) -> None:
    """Spread the items of a class that lie all in one fold over all folds, and say so.

    Without that no classifier could be fitted that knows the class when the fold is held out.
    """
    lonely = []
    for c in range(len(classes)):
        own = np.flatnonzero(codes == c)
        if (fold[own] == fold[own[0]]).all():
            fold[own] = np.arange(len(own)) % n_folds
            lonely.append(str(classes[c]))
    if lonely:
        warnings.warn(
            f"{len(lonely)} classes are in too few groups to leave these out whole, such as "
            f"{lonely[0]!r}: their items are held out one by one, which flatters how well they "
            "are recognised in new groups.",
            UnreliableWarning,
            stacklevel=2,
        )


def _given(cv: Iterable[Any]) -> list[Split]:
    try:
        pairs = [(np.asarray(train), np.asarray(test)) for train, test in cv]
    except (TypeError, ValueError):
        raise InputError("cv must hold pairs: items to fit on, items to hold out.") from None
    whole = all(part.ndim == 1 and part.dtype.kind in "iu" for pair in pairs for part in pair)
    if not pairs or not whole:
        raise InputError("cv must hold pairs of lists of item numbers, at least one.")
    return pairs


def _check(splits: list[Split], codes: Ints, classes: NDArray[Any]) -> None:
    """Refuse splits that a classifier of all classes cannot be fitted on, or that hold out none."""
    held = np.zeros(len(classes), dtype=bool)
    for number, (train, test) in enumerate(splits):
        both = np.concatenate([train, test])
        if len(both) and (both.min() < 0 or both.max() >= len(codes)):
            raise InputError(f"split {number} of cv names items that there are not.")
        missing = np.flatnonzero(np.bincount(codes[train], minlength=len(classes)) == 0)
        if len(missing):
            raise InputError(
                f"class {classes.tolist()[missing[0]]!r} has no item to fit on when fold {number} "
                "is held out: all of its items are in one fold. Use fewer folds, other groups, or "
                "drop the class."
            )
        held[np.unique(codes[test])] = True
    if not held.all():
        name = classes.tolist()[int(np.argmin(held))]
        raise InputError(f"no item of class {name!r} is held out by cv: its scores stay unknown.")
