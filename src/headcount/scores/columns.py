"""Columns of a table, numbers and categories, as features for a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from headcount._core.types import Floats
from headcount.data.tables import as_names
from headcount.exceptions import InputError

MOST = 100  # categories of a column that get a feature of their own


class ColumnEncoder(TransformerMixin, BaseEstimator):
    """Standardise numbers, and give each category a feature; missing cells are the usual ones.

    A column whose cells are all numbers (or missing) holds numbers, any other categories.
    Categories that were never seen have no feature, and a missing number is the median.

    Parameters
    ----------
    numeric : which columns hold numbers, optional
        Told from the cells by default. A part of the rows may look otherwise than the whole, so
        that it has to be given where parts are fitted.

    Examples
    --------
    >>> rows = np.array([[1.0, "a"], [3.0, "b"], [None, "a"]], dtype=object)
    >>> ColumnEncoder().fit_transform(rows).toarray().round(2).tolist()
    [[-1.22, 1.0, 0.0], [1.22, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """

    def __init__(self, numeric: Sequence[bool] | None = None):
        self.numeric = numeric

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - part of the contract
        """Look at the columns of an array of cells."""
        self.columns_: list[dict[str, Any]] = []
        told = self.numeric
        for j, column in enumerate(np.asarray(X, dtype=object).T):
            numbers = _numbers(column) if told is None or told[j] else None
            if numbers is not None and not np.isnan(numbers).all():
                middle = float(np.nanmedian(numbers))
                filled = np.where(np.isnan(numbers), middle, numbers)
                spread = float(filled.std()) or 1.0
                self.columns_.append(
                    {"middle": middle, "mean": float(filled.mean()), "spread": spread}
                )
                continue
            names, counts = np.unique(_names(column), return_counts=True)
            often = names[np.argsort(-counts, kind="stable")[:MOST]]
            self.columns_.append({"names": sorted(often.tolist())})
        return self

    def transform(self, X: Any) -> Any:
        """Sparse matrix of features."""
        check_is_fitted(self, "columns_")
        cells = np.asarray(X, dtype=object)
        if cells.ndim != 2 or cells.shape[1] != len(self.columns_):
            raise InputError(f"{len(self.columns_)} columns are expected, got {cells.shape}.")
        blocks = []
        for number, (column, known) in enumerate(zip(cells.T, self.columns_, strict=True)):
            if "names" in known:
                codes = np.searchsorted(known["names"], names := _names(column))
                codes = np.minimum(codes, len(known["names"]) - 1)
                rows = np.flatnonzero(np.asarray(known["names"])[codes] == names)
                ones = np.ones(len(rows))
                shape = (len(cells), len(known["names"]))
                blocks.append(sparse.csr_matrix((ones, (rows, codes[rows])), shape=shape))
                continue
            numbers = _numbers(column)
            if numbers is None:
                raise InputError(
                    f"column {number + 1} of the features held numbers when the model was fitted, "
                    "and now holds other things."
                )
            filled = np.where(np.isnan(numbers), known["middle"], numbers)
            scaled = (filled - known["mean"]) / known["spread"]
            blocks.append(sparse.csr_matrix(np.clip(scaled, -1e6, 1e6)[:, None]))
        return sparse.hstack(blocks, format="csr")


def _numbers(column: NDArray[Any]) -> Floats | None:
    """Cells as numbers, missing ones as NaN; None if any is something else."""
    try:
        cells = [np.nan if v is None or v == "" else v for v in column]
        if any(isinstance(v, bool) for v in cells):
            return None
        numbers = np.array(cells, dtype=float)
    except (TypeError, ValueError):
        return None
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def is_numeric(column: NDArray[Any]) -> bool:
    """Whether all cells are numbers or missing, and some are there."""
    numbers = _numbers(column)
    return numbers is not None and not bool(np.isnan(numbers).all())


def _names(column: NDArray[Any]) -> NDArray[Any]:
    """Cells as texts that do not depend on how they are stored: 1, not 1.0; true, not True."""
    names = as_names(column)
    lower = np.char.lower(names)
    return np.where(np.isin(lower, ["true", "false"]), lower, names)
