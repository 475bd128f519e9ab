"""Files that are written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headcount._core.frame import Frame
from headcount.exceptions import InputError


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, then put it in place in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def check_output(path: Path) -> None:
    """Refuse a file that could not be written, before the work that would fill it is done."""
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder: give the name of a file in it.")
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be written: {str(folder)!r} takes no new files "
            f"({error.strerror})."
        ) from None


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text."""
    write_whole(path, lambda beside: beside.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write JSON, the same bytes for the same value."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Read JSON; None if there is no such file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def write_parquet(path: Path, frame: Frame) -> None:
    """Write a frame as Parquet, the same bytes for the same frame."""
    import pyarrow.parquet as pq

    table = frame.to_arrow()
    write_whole(path, lambda beside: pq.write_table(table, beside, compression="zstd"))


def read_parquet(path: Path) -> Frame:
    """Read a Parquet file into a frame."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    return Frame({name: table[name].to_numpy() for name in table.column_names})
