"""A small tidy table: named columns of equal length that convert to any data frame library."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from headcount._core.texttable import text_table
from headcount.exceptions import InputError, choose


class Frame(Mapping[str, NDArray[Any]]):
    """Columns by name, in order.

    Examples
    --------
    >>> frame = Frame({"method": ["CC", "PCC"], "ae": [0.25, 0.125]})
    >>> frame
    method     ae
    CC      0.250
    PCC     0.125
    >>> frame["ae"].mean()
    np.float64(0.1875)
    >>> frame.to_pandas().shape
    (2, 2)
    """

    def __init__(self, columns: Mapping[str, ArrayLike]):
        self._columns = {str(name): np.asarray(values) for name, values in columns.items()}
        lengths = {name: len(values) for name, values in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"columns of a frame must be equally long, got {lengths}.")

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._columns:
            choose("column", name, self._columns)
        return self._columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self._columns.values()))) if self._columns else 0

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    def rows(self, which: NDArray[Any]) -> Frame:
        """Rows given by a mask or by numbers."""
        return Frame({name: values[which] for name, values in self._columns.items()})

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Columns as a plain dictionary."""
        return dict(self._columns)

    def to_pandas(self) -> Any:
        """As a `pandas.DataFrame`."""
        return self._native("pandas")

    def to_polars(self) -> Any:
        """As a `polars.DataFrame`."""
        return self._native("polars")

    def to_arrow(self) -> Any:
        """As a `pyarrow.Table`."""
        return self._native("pyarrow")

    def to_csv(self) -> str:
        """As text of a CSV file."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*(self[name].tolist() for name in self.columns), strict=True))
        return out.getvalue()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _native(self, backend: Literal["pandas", "polars", "pyarrow"]) -> Any:
        plain = {name: _portable(values) for name, values in self._columns.items()}
        return nw.from_dict(plain, backend=backend).to_native()

    def mean_by(self, by: str, columns: list[str]) -> Frame:
        """Mean of `columns` for each value of `by`, in order of first appearance."""
        names, first, codes = np.unique(self[by], return_index=True, return_inverse=True)
        order = np.argsort(first)
        counts = np.bincount(codes, minlength=len(names))
        means = {c: np.bincount(codes, self[c], len(names)) / counts for c in columns}
        return Frame({by: names[order], **{c: v[order] for c, v in means.items()}})

    def __repr__(self) -> str:
        shown = min(self.n_rows, 20)
        columns = [_texts(values[:shown]) for values in self._columns.values()]
        numeric = [values.dtype.kind in "fiu" for values in self._columns.values()]
        left = [j for j, number in enumerate(numeric) if not number]
        text = text_table(self.columns, list(zip(*columns, strict=True)), left=left)
        more = f"\n... {self.n_rows - shown} more rows" if self.n_rows > shown else ""
        return text + more


def _portable(values: NDArray[Any]) -> Any:
    """Texts as a list, and dates in a unit that every library has."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]")
    return values.tolist() if values.dtype.kind == "U" else values


def _texts(values: NDArray[Any]) -> list[str]:
    """Values of one column as texts, numbers with as many digits as suit them."""
    digits = 3 if values.dtype.kind == "f" and np.abs(values).max(initial=0) < 100 else 1
    return [f"{v:.{digits}f}" if values.dtype.kind == "f" else str(v) for v in values.tolist()]
