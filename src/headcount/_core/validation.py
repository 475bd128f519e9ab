"""Checks of what users pass in; each error says what was got, what was expected, what to do."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from headcount._core.types import Floats
from headcount.exceptions import HeadcountWarning, InputError

SUM_TOLERANCE = 1e-3


def column(values: Any, what: str) -> NDArray[Any]:
    """One-dimensional array from a list, array, or a pandas, polars or arrow series.

    A list keeps its elements as they are: numpy would turn None or NaN among texts into a text.
    """
    native = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series):
        array = native.to_numpy()
    elif isinstance(values, (list, tuple)) and not _alike(values):
        array = np.empty(len(values), dtype=object)
        array[:] = values
    else:
        array = np.asarray(values)
    if array.ndim == 2 and array.size == len(array):
        array = array.ravel()
    if array.ndim != 1:
        raise InputError(f"{what} must have one dimension, got an array of shape {array.shape}.")
    return np.asarray(array)


def present(array: NDArray[Any], what: str) -> NDArray[Any]:
    """Refuse missing values (None, NaN, NaT, NA) and mixed types; give a plain typed array."""
    if array.dtype.kind == "O":
        missing = np.array([_missing(v) for v in array], dtype=bool)
    elif array.dtype.kind in "mM":
        missing = np.isnat(array)
    elif array.dtype.kind == "f":
        missing = ~np.isfinite(array)
    else:
        missing = np.zeros(len(array), dtype=bool)
    if missing.any():
        raise InputError(
            f"{what} is missing at row {int(np.argmax(missing))} (Input contains NaN or None). "
            "Fill or drop those rows."
        )
    if array.dtype.kind != "O" or not len(array):
        return array
    kinds = {_family(v) for v in array}
    if len(kinds) > 1:
        raise InputError(
            f"{what} mixes types ({', '.join(sorted(kinds))}), which cannot be compared. "
            "Convert all to one type."
        )
    plain = np.array(array.tolist())
    if plain.ndim != 1:
        raise InputError(f"{what} must hold single values, got {array[0]!r}.")
    return plain


def _alike(values: Sequence[Any]) -> bool:
    """Whether all are of one type that numpy keeps and that has no missing value."""
    types = {type(v) for v in values}
    return len(types) == 1 and issubclass(next(iter(types)), (str, bool, int, np.integer))


def _missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas' NA refuses to compare
        return True


def _family(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, (int, float, np.number)):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


def labels(y: Any) -> NDArray[Any]:
    """Class labels of any type as an array, with missing ones refused."""
    if y is None:
        raise InputError(
            "This estimator requires y to be passed, but the target y is None: "
            "quantifiers learn from labelled items."
        )
    _warn_of_order(y)
    array = column(y, "y")
    if len(array) == 0:
        raise InputError("y is empty: there are no labels (0 sample(s)).")
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: y must hold class labels.")
    array = present(array, "a label of y")
    if array.dtype.kind == "f" and (array != np.round(array)).any():
        raise InputError(
            "Unknown label type: y holds fractions, and class labels are expected. "
            "Cut the values into classes first."
        )
    return array


def _warn_of_order(y: Any) -> None:
    """Ordered categories are sorted like all labels; say so where that changes their order."""
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "ordered", False) is not True:
        return
    names = list(getattr(dtype, "categories", []))
    if names != sorted(names):
        warnings.warn(
            f"the order of the categories {names[:5]} is not kept: classes are sorted. Use numbers "
            "as labels where the order counts, as for NMD.",
            HeadcountWarning,
            stacklevel=4,
        )


def encode(y: NDArray[Any], classes: ArrayLike | None = None) -> tuple[NDArray[Any], Any]:
    """Classes in their order and, for each label, the number of its class."""
    if classes is None:
        known, codes = np.unique(y, return_inverse=True)
        return known, codes.astype(np.int64)
    known = np.asarray(classes)
    if known.dtype.kind == "O" and known.ndim == 1:
        known = present(known, "a class")  # as labels of type object are read
    if known.ndim != 1 or len(known) == 0 or len(np.unique(known)) != len(known):
        raise InputError("classes must be a list of distinct labels.")
    if (known.dtype.kind in "US") != (y.dtype.kind in "US"):
        raise InputError(
            f"the labels are of type {y.dtype} and the classes {known.tolist()[:5]} of type "
            f"{known.dtype}: convert one to the other."
        )
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


def score_names(scores: Any) -> list[str] | None:
    """Column names of a data frame of scores; None for anything else."""
    native = nw.from_native(scores, pass_through=True)
    return [str(c) for c in native.columns] if isinstance(native, nw.DataFrame) else None


def score_matrix(
    scores: Any, n_classes: int | None, what: str = "scores", kind: str | None = None
) -> Floats:
    """Finite float matrix with a column a class; a single column is the second of two classes.

    `kind` says what a single column holds; without it, numbers in [0, 1] are posteriors.
    """
    native = nw.from_native(scores, pass_through=True)
    raw = native.to_numpy() if isinstance(native, nw.DataFrame) else scores
    try:
        array = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must be numbers: {error}") from None
    if array.ndim == 1:
        if kind is None:
            kind = "posterior" if ((array >= 0) & (array <= 1)).all() else "decision"
        pair = [1 - array, array] if kind == "posterior" else [-array / 2, array / 2]
        array = np.column_stack(pair)
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


def at_least(
    what: str, value: Any, low: float, high: float = np.inf, *, many: bool = False
) -> None:
    """Refuse a setting that is not a finite number (or numbers) from `low` to `high`."""
    try:
        numbers = np.asarray(value, dtype=float)
        if numbers.ndim and not many:
            numbers = np.array(np.nan)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if not (np.isfinite(numbers) & (numbers >= low) & (numbers <= high)).all():
        limits = f"at least {low:g}" if high == np.inf else f"between {low:g} and {high:g}"
        raise InputError(f"{what} must be {limits}, got {value!r}.")


def whole(what: str, value: Any, low: int = 1) -> None:
    """Refuse a setting that is not a whole number of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
        raise InputError(f"{what} must be a whole number of at least {low}, got {value!r}.")


def per_bag(what: str, values: ArrayLike, n: int) -> Floats:
    """One number a bag, from one for all or one each."""
    array = np.asarray(values, dtype=float)
    if array.ndim > 1 or (array.ndim == 1 and len(array) not in (1, n)):
        raise InputError(f"{what} has {array.size} values for {n} bags.")
    return np.broadcast_to(array, (n,))
