"""Columns of a table, numbers and categories, as features for a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from headcount._core.types import Floats
from headcount.data.tables import as_names
from headcount.exceptions import InputError

MOST_CATEGORIES = 100  # of a column that get a feature of their own; the rest share one
# From the mean: the squares of such values leave the usual ones 4 of the 16 digits of a sum.
MAX_STANDARD_DEVIATIONS = 1e6


def column_encoder(numeric: Sequence[bool]) -> ColumnTransformer:
    """Standardise numbers, and give each category a feature; missing cells are the usual ones.

    Categories that were never seen have no feature, and a missing number is the median.

    Parameters
    ----------
    numeric : for each column, whether it holds numbers (see `is_numeric`)

    Examples
    --------
    >>> rows = np.array([[1.0, "a"], [3.0, "b"], [None, "a"]], dtype=object)
    >>> column_encoder([True, False]).fit_transform(rows).round(2).tolist()
    [[-1.22, 1.0, 0.0], [1.22, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    flags = np.asarray(numeric, dtype=bool)
    numbers = make_pipeline(
        NumberCells(), SimpleImputer(strategy="median"), StandardScaler(), Bounded()
    )
    categories = make_pipeline(
        NameCells(),
        OneHotEncoder(handle_unknown="ignore", max_categories=MOST_CATEGORIES),
    )
    parts = [
        ("numbers", numbers, np.flatnonzero(flags).tolist()),
        ("categories", categories, np.flatnonzero(~flags).tolist()),
    ]
    return ColumnTransformer([part for part in parts if part[2]])


class CellTransformer(TransformerMixin, BaseEstimator):
    """Base of the transformers that look at cells one by one and learn nothing."""

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - part of the contract
        """Nothing to learn."""
        self.n_features_in_ = np.shape(X)[1]
        return self


class NumberCells(CellTransformer):
    """Cells as numbers, missing ones as NaN."""

    def transform(self, X: Any) -> Floats:
        """Numbers of all cells; something else is refused."""
        columns = []
        for j, column in enumerate(np.asarray(X, dtype=object).T):
            numbers = cell_numbers(column)
            if numbers is None:
                odd = next(v for v in column if cell_numbers(np.array([v], dtype=object)) is None)
                raise InputError(
                    f"{odd!r} is in a column of the features that held numbers when the model was "
                    f"fitted (number {j + 1} of those)."
                )
            columns.append(numbers)
        return np.column_stack(columns)


class NameCells(CellTransformer):
    """Cells as texts that do not depend on how they are stored: 1, not 1.0; true, not True."""

    def transform(self, X: Any) -> NDArray[Any]:
        """Texts of all cells."""
        return np.column_stack([_names(column) for column in np.asarray(X, dtype=object).T])


class Bounded(CellTransformer):
    """Numbers that are not absurdly far from the usual ones."""

    def transform(self, X: Any) -> Floats:
        """Numbers cut off on either side."""
        return np.clip(
            np.asarray(X, dtype=np.float64), -MAX_STANDARD_DEVIATIONS, MAX_STANDARD_DEVIATIONS
        )


def cell_numbers(column: NDArray[Any]) -> Floats | None:
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
    numbers = cell_numbers(column)
    return numbers is not None and not bool(np.isnan(numbers).all())


def _names(column: NDArray[Any]) -> NDArray[Any]:
    names = as_names(column)
    lower = np.char.lower(names)
    return np.where(np.isin(lower, ["true", "false"]), lower, names).astype(object)
