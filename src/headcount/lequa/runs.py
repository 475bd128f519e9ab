"""Runs: files of estimated prevalences, a row a sample. Read, check (every fault), write."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from headcount._core.files import write_text
from headcount._core.types import Floats
from headcount.exceptions import InputError
from headcount.lequa.unpack import Source, read_source, source_name

TOLERANCE = 1e-3  # how far a row's sum may lie from 1
SHOWN = 100  # faults that are listed one by one
MAX_RUN_LINE_BYTES = 1_000_000  # runs with longer lines are refused
MOST_LINES = 2_000_000
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass
class _Reading:
    """What was found in a run file."""

    ids: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def check_run(source: Source, n_classes: int, n_samples: int) -> list[str]:
    """List every fault of a run: where it is, what was got, what is expected. Empty if valid.

    Parameters
    ----------
    source : path, bytes or binary file
        A CSV file, as it is or packed by gzip, bzip2, xz or zip.
    n_classes, n_samples : int
        Of the task: columns ``0`` to ``n_classes - 1``, ids ``0`` to ``n_samples - 1``.
    """
    faults = _all_faults(_read(source, n_classes), n_samples)
    if len(faults) > SHOWN:
        faults = [*faults[:SHOWN], f"and {len(faults) - SHOWN} more faults."]
    return faults


def read_run(source: Source, n_classes: int | None = None, n_samples: int | None = None) -> Floats:
    """Estimates of a valid run, row i for sample i.

    Parameters
    ----------
    source : path, bytes or binary file
    n_classes, n_samples : int, optional
        What is expected; by default what the file has.

    Raises
    ------
    InputError
        With every fault, if the file is not valid.
    """
    if not isinstance(source, (str, Path, bytes)):
        name, source = source_name(source), source.read()
    else:
        name = source_name(source)
    if n_classes is None:
        n_classes = _columns(source, name)
    reading = _read(source, n_classes)
    expected = len(reading.ids) if n_samples is None else n_samples
    faults = _all_faults(reading, expected)
    if faults:
        more = [f"and {len(faults) - 20} more faults."] if len(faults) > 20 else []
        raise InputError("\n".join([f"{name} is not a valid run:", *faults[:20], *more]))
    table = np.empty((len(reading.ids), n_classes))
    table[reading.ids] = reading.rows
    return table


def write_run(path: str | Path, estimates: ArrayLike) -> None:
    """Write estimates as a run, row i as sample i; the same bytes for the same numbers."""
    table = np.asarray(estimates, dtype=np.float64)
    header = ",".join(["id", *map(str, range(table.shape[1]))])
    rows = (",".join([str(i), *map(repr, row)]) for i, row in enumerate(table.tolist()))
    write_text(Path(path), "\n".join([header, *rows]) + "\n")


def _all_faults(reading: _Reading, n_samples: int) -> list[str]:
    """Faults of the rows, then those of the ids as a whole."""
    if not reading.ids and reading.faults:
        return reading.faults
    found = list(reading.faults)
    seen: dict[int, int] = {}
    for line, number in zip(reading.lines, reading.ids, strict=True):
        if number in seen:
            found.append(f"line {line}: id {number} is there twice, first in line {seen[number]}.")
        seen.setdefault(number, line)
        if not 0 <= number < n_samples:
            found.append(f"line {line}: id {number} is not expected; ids are 0 to {n_samples - 1}.")
    missing = [i for i in range(n_samples) if i not in seen]
    if missing:
        few = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
        found.append(f"{len(missing)} ids are missing: {few}.")
    if len(reading.ids) != n_samples:
        found.append(f"there are {len(reading.ids)} rows, and {n_samples} samples are expected.")
    return found


def _lines(source: Source) -> tuple[list[str], list[str]]:
    """Lines of a text file, and what keeps it from being one."""
    data, fault = read_source(source)
    if fault:
        return [], [fault]
    if not data.strip():
        return [], ["the file is empty."]
    if b"\0" in data:
        return [], ["this is not a text file: it holds bytes of zero."]
    if data.count(b"\n") + data.count(b"\r") > MOST_LINES:
        return [], [f"the file has more than {MOST_LINES:,} lines, which no run has."]
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = data.split(b"\n")
    longest = max(map(len, lines))
    if longest > MAX_RUN_LINE_BYTES:
        return [], [f"a line of {longest:,} bytes is too long for a run; are line ends missing?"]
    try:
        return data.decode("utf-8-sig").split("\n"), []
    except UnicodeDecodeError as error:
        return [], [f"this is not a text file in UTF-8: byte {error.start} cannot be read."]


def _cells(line: str) -> list[str]:
    """Cells of a line; quotes, as R writes them, are taken off."""
    if '"' not in line:
        return [cell.strip() for cell in line.split(",")]
    try:
        cells = next(csv.reader([line], skipinitialspace=True, strict=True))
    except csv.Error:  # an open quote, or a cell that is far too long
        return [cell.strip() for cell in line.split(",")]
    return [cell.strip() for cell in cells]


def _columns(source: Source, name: str) -> int:
    lines, faults = _lines(source)
    if faults:
        raise InputError(f"{name}: {faults[0]}")
    return max(len(_cells(lines[0])) - 1, 1)


def _read(source: Source, n_classes: int) -> _Reading:
    lines, faults = _lines(source)
    found = _Reading(faults=faults)
    if faults:
        return found
    header = _cells(lines[0])
    expected = ["id", *map(str, range(n_classes))]
    if header != expected:
        found.faults.append(_header_fault(header, n_classes))
        if len(header) != len(expected):
            return found
    for number, line in enumerate(lines[1:], 2):
        if line.strip():
            _row(found, number, _cells(line), n_classes)
    if not found.ids and not found.faults:
        found.faults.append("there is a header and no row.")
    return found


def _header_fault(header: list[str], n_classes: int) -> str:
    wanted = f"'id,0,1,...,{n_classes - 1}'" if n_classes > 2 else "'id,0,1'"
    got = ",".join(header)
    hint = " ('id' is written in small letters.)" if header[:1] == ["ID"] else ""
    return f"line 1: the header must be {wanted}, got {got[:60]!r}.{hint}"


def _row(found: _Reading, number: int, cells: list[str], n_classes: int) -> None:
    if len(cells) != n_classes + 1:
        found.faults.append(
            f"line {number}: {len(cells)} cells, and {n_classes + 1} are expected (id and classes)."
        )
        return
    sample = _whole(cells[0])
    if sample is None:
        found.faults.append(f"line {number}: the id {cells[0][:40]!r} is no whole number.")
        return
    values = [float(cell) if _NUMBER.fullmatch(cell) else math.nan for cell in cells[1:]]
    wrong = [c for c, value in enumerate(values) if not 0 <= value <= 1]
    found.faults += [
        f"line {number}, column {c} (id {sample}): {cells[c + 1][:40]!r} is not a number from 0 "
        "to 1."
        for c in wrong
    ]
    if not wrong and abs(sum(values) - 1) > TOLERANCE:
        found.faults.append(
            f"line {number} (id {sample}): the prevalences sum to {sum(values):.6g}, not to 1."
        )
    found.ids.append(sample)
    found.lines.append(number)
    found.rows.append(values)


def _whole(text: str) -> int | None:
    """Whole number of an id, which may be written as 29 or as 29.0; None if it is none."""
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 1e15 else None
