"""Data frames of any library (pandas, polars, Arrow, DuckDB) as parts of an Arrow table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import narwhals as nw
import pyarrow as pa

from headcount.exceptions import InputError


def frame_names(frame: Any) -> dict[str, Any]:
    """Names of the columns of a data frame, as texts, and as the frame itself has them."""
    return {str(name): name for name in _opened(frame).collect_schema().names()}


def frame_batches(frame: Any, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Some columns of a data frame, a part of so many rows at a time."""
    own = frame_names(frame)
    chosen = _opened(frame).select([own[name] for name in columns])
    eager = chosen.collect("pyarrow") if isinstance(chosen, nw.LazyFrame) else chosen
    arrays = [_column(eager[own[name]]) for name in columns]
    table = pa.Table.from_arrays(arrays, names=list(columns))
    yield from table.combine_chunks().to_batches(max_chunksize=rows)


def _opened(frame: Any) -> Any:
    try:
        found = nw.from_native(frame, pass_through=True)
    except nw.exceptions.NarwhalsError as error:  # such as two columns of one name
        raise InputError(f"the data frame cannot be read: {error}") from None
    if not isinstance(found, (nw.DataFrame, nw.LazyFrame)) and hasattr(frame, "__arrow_c_stream__"):
        with suppress(pa.ArrowInvalid):  # a single column
            found = nw.from_native(pa.table(frame))  # ours, and those of smaller libraries
    if not isinstance(found, (nw.DataFrame, nw.LazyFrame)):
        raise InputError(
            f"expected a data frame (pandas, polars, Arrow, DuckDB) or names of files, got "
            f"{type(frame).__name__}."
        )
    return found


def _column(series: Any) -> Any:
    """One column; cells of several types become texts, as they would in a file."""
    try:
        found = series.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        found = None
    if found is not None and not isinstance(_cell_type(found.type), pa.BaseExtensionType):
        return found
    # Cells of several types, or of a type that Arrow only stores, such as the periods of pandas.
    cells = [None if v is None or v != v else str(v) for v in series.to_list()]
    return pa.array(cells, pa.string())


def _cell_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
