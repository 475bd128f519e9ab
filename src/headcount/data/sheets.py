"""Sheets of Excel and OpenDocument files, as texts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from headcount.exceptions import HeadcountError, InputError

SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


class Sheet:
    """The sheet with most of the wanted columns, and the widest of those.

    Parameters
    ----------
    path : file
    wanted : names of columns
    """

    def __init__(self, path: Path, wanted: Collection[str] = ()):
        self.names: list[str] = []
        self.title, self.others, best = "", 0, (-1, 0)
        for title, rows in _sheets(path):
            heads = ([_text(cell) or "" for cell in row] for row in rows)
            names = next((head for head in heads if any(head)), [])
            fits = len(set(wanted) & set(names)), len(names)
            self.others += bool(names)
            if names and fits > best:
                best, self.names, self.rows, self.title = fits, names, rows, title
        if not self.names:
            raise InputError(f"{path.name} is empty: there is nothing to read.")

    def batches(self, columns: Collection[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Some columns as texts, so many rows at a time."""
        places = [self.names.index(name) for name in columns]
        while part := list(islice(self.rows, rows)):
            arrays = [pa.array([_text(row[j]) for row in part], pa.string()) for j in places]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _sheets(path: Path) -> list[tuple[str, Iterator[list[Any]]]]:
    """Titles and rows of all sheets."""
    try:
        import python_calamine
    except ImportError:
        raise HeadcountError(
            f"{path.name} needs python-calamine: pip install python-calamine."
        ) from None
    try:
        book = python_calamine.CalamineWorkbook.from_path(path)
        sheets = [(title, book.get_sheet_by_name(title)) for title in book.sheet_names]
        return [(title, iter(sheet.to_python())) for title, sheet in sheets]
    except (python_calamine.CalamineError, OSError) as error:
        raise InputError(f"{path.name} cannot be read as a workbook: {error}") from None


def _text(cell: Any) -> str | None:
    """A cell as a CSV file would hold it; empty ones are missing."""
    if cell is None or cell == "":
        return None
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, (datetime, date, time)):
        return cell.isoformat()
    return str(cell)
