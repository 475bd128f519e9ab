"""Read the official files of items, each distinct item once."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headcount.exceptions import InputError

ReadFile = Callable[[str], bytes]


class _Reader:
    """Reads sample files one after the other and keeps each distinct item once."""

    def __init__(self) -> None:
        self.seen: dict[bytes, int] = {}
        self.indices: list[int] = []
        self.indptr: list[int] = [0]
        self.n_items = 0

    def _known(self, raw: bytes, labelled: bool) -> int | None:
        """Number of an item that was met before; labelled items are never joined."""
        if labelled:
            return None
        return self.seen.setdefault(hashlib.blake2b(raw, digest_size=16).digest(), self.n_items)


class VectorReader(_Reader):
    """Reads files of numbers."""

    def __init__(self, columns: int):
        super().__init__()
        self.columns = columns

    def read(self, read: ReadFile, keys: list[str], path: Path, *, labelled: bool) -> list[float]:
        """Append the distinct rows of all files to `path`; give the labels."""
        from headcount.kernels.compiled.numbers import POWERS, parse_row

        labels: list[float] = []
        width = self.columns + labelled
        names = (["label"] if labelled else []) + [str(i) for i in range(self.columns)]
        expected = ",".join(names).encode()
        beside = path.with_name(f".{path.name}.part")
        with beside.open("wb") as out:
            for key in keys:
                data = read(key)
                _check_header(data, key, expected)
                buffer = np.frombuffer(data, dtype=np.uint8)
                fresh: list[NDArray[np.float32]] = []
                for start, stop, number in _line_ranges(data):
                    known = self._known(data[start:stop], labelled)
                    if known is not None and known < self.n_items:
                        self.indices.append(known)
                        continue
                    row = np.empty(width, dtype=np.float32)
                    wrong = parse_row(buffer, start, stop, row, POWERS)
                    if wrong < 0 and not np.isfinite(row).all():
                        wrong = start
                    if wrong >= 0:
                        raise InputError(
                            f"{key}, line {number}: {width} numbers are expected; cannot read "
                            f"{data[wrong : wrong + 20].decode(errors='replace')!r}."
                        )
                    if labelled:
                        labels.append(float(row[0]))
                        row = row[1:]
                    fresh.append(row)
                    self.indices.append(self.n_items)
                    self.n_items += 1
                if fresh:
                    out.write(np.stack(fresh).astype("<f4").tobytes())
                self.indptr.append(len(self.indices))
        os.replace(beside, path)
        return labels


class TextReader(_Reader):
    """Reads files of texts."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []

    def read(self, read: ReadFile, keys: list[str], path: Path, *, labelled: bool) -> list[float]:  # noqa: ARG002
        """Keep the distinct texts of all files; give the labels."""
        labels: list[float] = []
        expected = ["label", "text"] if labelled else ["text"]
        for key in keys:
            columns = _text_columns(read(key), key, expected)
            for row, text in enumerate(columns[-1]):
                known = self._known(text.encode(), labelled)
                if known is not None and known < self.n_items:
                    self.indices.append(known)
                    continue
                if labelled:
                    labels.append(_label(columns[0][row]))
                self.kept.append(text)
                self.indices.append(self.n_items)
                self.n_items += 1
            self.indptr.append(len(self.indices))
        return labels


def _text_columns(data: bytes, key: str, expected: list[str]) -> list[list[str]]:
    """Columns of a CSV file of texts, which may hold commas, quotes and line ends."""
    import pyarrow as pa
    from pyarrow import csv

    try:
        table = csv.read_csv(
            io.BytesIO(data.removeprefix(b"\xef\xbb\xbf")),
            csv.ReadOptions(use_threads=False, block_size=len(data) + 1),
            csv.ParseOptions(newlines_in_values=True),
            csv.ConvertOptions(column_types=dict.fromkeys(expected, pa.string())),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise InputError(f"{key} cannot be read: {error}.") from None
    header = [name.strip() for name in table.column_names]
    if header != expected:
        raise InputError(f"{key}: the header must be {','.join(expected)!r}, got {header}.")
    return [column.to_pylist() for column in table.columns]


def _line_ranges(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Start, end and number of each line after the header, empty ones left out."""
    start = data.find(b"\n") + 1
    number = 1
    while 0 < start < len(data):
        number += 1
        stop = data.find(b"\n", start)
        stop = len(data) if stop < 0 else stop
        end = stop - 1 if data[stop - 1 : stop] == b"\r" else stop
        if end > start:
            yield start, end, number
        start = stop + 1


def _check_header(data: bytes, key: str, expected: bytes) -> None:
    header = data[: data.find(b"\n")].removeprefix(b"\xef\xbb\xbf").rstrip(b"\r")
    if header != expected and header.replace(b" ", b"") != expected:
        raise InputError(
            f"{key}: the header must be {expected[:30].decode()}..., got "
            f"{header[:30].decode(errors='replace')!r}."
        )


def _label(cell: str) -> float:
    """Code of a class; what is none becomes a number that no class has."""
    return float(cell) if cell.strip().isdigit() else -1.0
