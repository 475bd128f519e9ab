"""Runs: files of estimated prevalences, a row a sample. Read, check (every fault), write."""

from __future__ import annotations

import io
import math
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from headcount._core.files import write_text
from headcount._core.types import Floats
from headcount.exceptions import InputError

TOLERANCE = 1e-3  # how far a row's sum may lie from 1
SHOWN = 100  # faults that are listed one by one
_ID = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
LONGEST = 1_000_000  # bytes of a line that are still read


@dataclass
class _Reading:
    """What was found in a run file."""

    ids: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def check_run(path: str | Path, n_classes: int, n_samples: int) -> list[str]:
    """List every fault of a run: where it is, what was got, what is expected. Empty if valid.

    Parameters
    ----------
    path : file
    n_classes, n_samples : int
        Of the task: columns ``0`` to ``n_classes - 1``, ids ``0`` to ``n_samples - 1``.
    """
    reading = _read(Path(path), n_classes)
    faults = reading.faults
    if not reading.ids and faults:
        return faults
    seen: dict[int, int] = {}
    for line, number in zip(reading.lines, reading.ids, strict=True):
        if number in seen:
            faults.append(f"line {line}: id {number} is there twice, first in line {seen[number]}.")
        seen.setdefault(number, line)
        if not 0 <= number < n_samples:
            faults.append(
                f"line {line}: id {number} is not expected; ids are 0 to {n_samples - 1}."
            )
    missing = [i for i in range(n_samples) if i not in seen]
    if missing:
        few = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
        faults.append(f"{len(missing)} ids are missing: {few}.")
    if len(reading.ids) != n_samples:
        faults.append(f"there are {len(reading.ids)} rows, and {n_samples} samples are expected.")
    if len(faults) > SHOWN:
        faults = [*faults[:SHOWN], f"and {len(faults) - SHOWN} more faults."]
    return faults


def read_run(path: str | Path, n_classes: int | None = None) -> Floats:
    """Estimates of a valid run, row i for sample i.

    Raises
    ------
    InputError
        With every fault, if the file is not valid.
    """
    path = Path(path)
    if n_classes is None:
        n_classes = _columns(path)
    reading = _read(path, n_classes)
    faults = reading.faults or check_run(path, n_classes, len(reading.ids))
    if faults:
        more = ["(headcount lequa check lists all faults)"]
        raise InputError("\n".join([f"{path.name} is not a valid run:", *faults[:20], *more]))
    table = np.empty((len(reading.ids), n_classes))
    table[reading.ids] = reading.rows
    return table


def write_run(path: str | Path, estimates: ArrayLike) -> None:
    """Write estimates as a run, row i as sample i; the same bytes for the same numbers."""
    table = np.asarray(estimates, dtype=np.float64)
    header = ",".join(["id", *map(str, range(table.shape[1]))])
    rows = (",".join([str(i), *map(repr, row)]) for i, row in enumerate(table.tolist()))
    write_text(Path(path), "\n".join([header, *rows]) + "\n")


def _lines(path: Path) -> tuple[list[str], list[str]]:
    """Lines of a text file, and what keeps it from being one."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}.")
    data = _unpacked(path.read_bytes())
    if not data.strip():
        return [], ["the file is empty."]
    if b"\0" in data[:65536]:
        return [], ["this is not a text file: it holds bytes of zero. Unpack archives first."]
    longest = max(len(line) for line in data.split(b"\n"))
    if longest > LONGEST:
        return [], [f"a line of {longest:,} bytes is too long for a run; are line ends missing?"]
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").split("\n"), []
    except UnicodeDecodeError as error:
        return [], [f"this is not a text file in UTF-8: byte {error.start} cannot be read."]


def _unpacked(data: bytes) -> bytes:
    """Text of a run, or of the only file in a zip, as runs are sent to the lab's site."""
    if not data.startswith(b"PK\x03\x04"):
        return data
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            return archive.read(names[0]) if len(names) == 1 else data
    except (zipfile.BadZipFile, NotImplementedError):
        return data


def _columns(path: Path) -> int:
    lines, faults = _lines(path)
    if faults:
        raise InputError(f"{path.name}: {faults[0]}")
    return max(len(lines[0].split(",")) - 1, 1)


def _read(path: Path, n_classes: int) -> _Reading:
    lines, faults = _lines(path)
    found = _Reading(faults=faults)
    if faults:
        return found
    header = [cell.strip() for cell in lines[0].split(",")]
    expected = ["id", *map(str, range(n_classes))]
    if header != expected:
        found.faults.append(_header_fault(header, n_classes))
        if len(header) != len(expected):
            return found
    for number, line in enumerate(lines[1:], 2):
        if line.strip():
            _row(found, number, line.split(","), n_classes)
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
    if _ID.fullmatch(cells[0].strip()):
        sample = int(cells[0])
    else:
        found.faults.append(f"line {number}: the id {cells[0].strip()[:40]!r} is no whole number.")
        return
    values = []
    whole = True
    for column, cell in enumerate(cells[1:]):
        value = float(cell) if _NUMBER.fullmatch(cell.strip()) else math.nan
        if not math.isfinite(value) or not 0 <= value <= 1:
            found.faults.append(
                f"line {number}, column {column} (id {sample}): {cell.strip()[:40]!r} is not a "
                "number from 0 to 1."
            )
            whole = False
        values.append(value)
    if whole and abs(sum(values) - 1) > TOLERANCE:
        found.faults.append(
            f"line {number} (id {sample}): the prevalences sum to {sum(values):.6g}, not to 1."
        )
    found.ids.append(sample)
    found.lines.append(number)
    found.rows.append(values)
