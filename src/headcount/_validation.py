"""Checks of what users pass in; each error says what was got, what was expected, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from headcount.exceptions import InputError

Floats = NDArray[np.float64]
SUM_TOLERANCE = 1e-3


def column(values: Any, what: str) -> NDArray[Any]:
    """One-dimensional array from a list, array, or a pandas, polars or arrow series."""
    native = nw.from_native(values, allow_series=True, pass_through=True)
    array = native.to_numpy() if isinstance(native, nw.Series) else np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"{what} must have one dimension, got an array of shape {array.shape}.")
    return np.asarray(array)


def labels(y: Any) -> NDArray[Any]:
    """Class labels of any type as an array, with missing ones refused."""
    if y is None:
        raise InputError(
            "This estimator requires y to be passed, but the target y is None: "
            "quantifiers learn from labelled items."
        )
    array = column(y, "y")
    if array.dtype.kind == "f":
        finite = np.isfinite(array)
        if not finite.all():
            raise InputError(
                f"y contains NaN or infinity (first at row {int(np.argmin(finite))}): "
                "Input y contains NaN. Drop the rows without a label."
            )
        if (array != np.round(array)).any():
            raise InputError(
                "Unknown label type: y holds fractions, and class labels are expected. "
                "Cut the values into classes first."
            )
    if array.dtype.kind == "O":
        missing = np.array([v is None or v != v for v in array], dtype=bool)
        if missing.any():
            raise InputError(
                f"y has a missing label at row {int(np.argmax(missing))}. Drop the rows "
                "without a label."
            )
        if len({type(v) for v in array}) == 1:
            array = np.array(array.tolist()) if not isinstance(array[0], bytes) else array
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: y must hold class labels.")
    return array


def encode(y: NDArray[Any], classes: ArrayLike | None = None) -> tuple[NDArray[Any], Any]:
    """Classes in their order and, for each label, the number of its class."""
    if classes is None:
        known, codes = np.unique(y, return_inverse=True)
        return known, codes.astype(np.int64)
    known = np.asarray(classes)
    if known.ndim != 1 or len(np.unique(known)) != len(known):
        raise InputError("classes must be a list of distinct labels.")
    order = np.argsort(known)
    position = np.searchsorted(known, y, sorter=order)
    codes = order[np.minimum(position, len(known) - 1)]
    unseen = known[codes] != y
    if unseen.any():
        names = ", ".join(repr(v) for v in np.unique(np.asarray(y)[unseen]).tolist()[:5])
        raise InputError(
            f"unseen class: y holds {names}, and the known classes are {known.tolist()}. "
            "Drop those rows, or train with labelled items of these classes."
        )
    return known, codes.astype(np.int64)


def two_or_more(classes: NDArray[Any]) -> None:
    """Refuse a training set of one class."""
    if len(classes) < 2:
        raise InputError(
            f"y holds only one class ({classes.tolist()}): there is nothing to quantify. "
            "Pass labelled items of at least two classes."
        )


def same_length(n: int, y: Sequence[Any] | NDArray[Any], what: str = "X") -> None:
    """Refuse labels that do not match the rows."""
    if n != len(y):
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: {what} has {n} rows "
            f"and y has {len(y)}."
        )


def score_matrix(scores: Any, n_classes: int | None, what: str = "scores") -> Floats:
    """Finite float matrix with a column a class; a single column is the second of two classes."""
    native = nw.from_native(scores, pass_through=True)
    raw = native.to_numpy() if isinstance(native, nw.DataFrame) else scores
    try:
        array = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must be numbers: {error}") from None
    if array.ndim == 1:
        inside = bool((array >= 0).all() and (array <= 1).all())
        array = np.column_stack([1 - array, array] if inside else [-array / 2, array / 2])
    if array.ndim != 2:
        raise InputError(f"{what} must have a row an item and a column a class, got {array.shape}.")
    if len(array) == 0:
        raise InputError(f"{what} are empty: at least one item is needed.")
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array).all(axis=1)))
        raise InputError(
            f"{what} contain NaN or infinity (first in row {row}). Drop or repair those rows."
        )
    if n_classes is not None and array.shape[1] != n_classes:
        raise InputError(
            f"{what} have {array.shape[1]} columns, expected {n_classes}: one for each class, "
            "in the order of classes_."
        )
    return np.ascontiguousarray(array)


def looks_like_posteriors(scores: Floats) -> bool:
    """Whether every row is a point of the simplex (to 1e-3)."""
    return bool(scores.min() >= -1e-9 and np.abs(scores.sum(axis=1) - 1).max() <= SUM_TOLERANCE)


def posteriors(scores: Floats, what: str = "scores") -> Floats:
    """Refuse scores whose rows are not probabilities that sum to one."""
    if not looks_like_posteriors(scores):
        sums = scores.sum(axis=1)
        row = int(np.argmax(np.abs(sums - 1)))
        if scores.min() < -1e-9:
            row = int(np.argmax(scores.min(axis=1) < -1e-9))
        raise InputError(
            f"{what} are not posterior probabilities: row {row} is "
            f"{np.array2string(scores[row], precision=4, threshold=6)} with sum {sums[row]:.4g}. "
            "Expected non-negative rows that sum to one. Normalise them, or, for decision values, "
            "set calibrator='platt'."
        )
    return scores


def prevalences(values: ArrayLike, what: str) -> Floats:
    """Rows on the simplex as a float matrix."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim not in (1, 2):
        raise InputError(f"{what} must be a vector or a matrix, got shape {array.shape}.")
    rows = np.atleast_2d(array)
    if rows.shape[1] < 2:
        raise InputError(f"{what} must have a column for each of at least two classes.")
    if not np.isfinite(rows).all():
        raise InputError(f"{what} contain NaN or infinity.")
    off = (rows.min(axis=1) < -1e-9) | (np.abs(rows.sum(axis=1) - 1) > SUM_TOLERANCE)
    if off.any():
        row = int(np.argmax(off))
        raise InputError(
            f"{what} are off the simplex: row {row} is "
            f"{np.array2string(rows[row], precision=4, threshold=6)} with sum "
            f"{rows[row].sum():.6g}. Expected shares that are not negative and sum to one."
        )
    return rows
