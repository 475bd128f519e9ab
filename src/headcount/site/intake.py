"""An upload becomes estimates, or a list of all its faults; nothing of it is trusted."""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from headcount._core.types import Floats
from headcount.lequa.runs import TOLERANCE, check_run, read_run
from headcount.site.errors import FaultyError

ZIP, GZIP = b"PK\x03\x04", b"\x1f\x8b"


def read_upload(
    content: bytes, n_classes: int, n_samples: int, *, limit: int, folder: Path
) -> Floats:
    """Estimates of an uploaded run: CSV, or the only file of a zip, or a gzip.

    Parameters
    ----------
    content : bytes
    n_classes, n_samples : int
        Of the task and split.
    limit : int
        Bytes that it may have when unpacked.
    folder : path
        For the temporary file that the checker reads.

    Raises
    ------
    FaultyError
        With every fault.
    """
    plain = unpack(content, limit)
    _refuse_too_many_lines(plain, n_samples)
    estimates = _read_plainly_valid(plain, n_classes, n_samples)
    if estimates is not None:
        return estimates
    with _temporary(plain, folder) as path:
        faults = check_run(path, n_classes, n_samples)
        if not faults:
            return read_run(path, n_classes)
    raise FaultyError("this is not a valid run; it was not kept and uses up no quota.", faults)


def unpack(content: bytes, limit: int) -> bytes:
    """Bytes of the file inside a zip or gzip, never more than `limit` of them in memory.

    Examples
    --------
    >>> import gzip
    >>> unpack(gzip.compress(b"id,0,1"), 100)
    b'id,0,1'
    """
    try:
        if content.startswith(ZIP):
            plain = _unzip(content, limit)
        elif content.startswith(GZIP):
            stream = zlib.decompressobj(wbits=31)
            plain = stream.decompress(content, limit + 1)
            if not stream.eof and len(plain) <= limit:
                raise _faulty("the gzip file is cut short.")
        else:
            return content
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise _faulty(f"the archive cannot be unpacked: {error}.") from None
    if len(plain) > limit:
        raise _faulty(f"the archive unpacks to more than {limit:,} bytes.")
    if plain.startswith((ZIP, GZIP)):
        raise _faulty("there is an archive inside the archive: pack the run itself.")
    return plain


def _unzip(content: bytes, limit: int) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [info for info in archive.infolist() if not info.is_dir()]
        if len(names) != 1:
            raise _faulty(f"the zip holds {len(names)} files; one run is expected.")
        with archive.open(names[0]) as member:
            return member.read(limit + 1)


def _refuse_too_many_lines(plain: bytes, n_samples: int) -> None:
    """Millions of lines would make millions of faults: say it once."""
    lines = plain.count(b"\n") + plain.count(b"\r")
    if lines > 4 * n_samples + 1000:
        raise _faulty(f"there are {lines:,} line ends, and {n_samples + 1:,} lines are expected.")


def _read_plainly_valid(plain: bytes, n_classes: int, n_samples: int) -> Floats | None:
    """Estimates of a run that is valid beyond doubt, by a fast reader; else None.

    The checker decides every other case, so that there is one rule for what is valid.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow

    names = ["id", *map(str, range(n_classes))]
    if plain[: len(",".join(names)) + 1] != (",".join(names) + "\n").encode():
        return None
    types = {name: pa.float64() for name in names} | {"id": pa.int64()}
    options = arrow.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False)
    reading = arrow.ReadOptions(use_threads=False)
    parsing = arrow.ParseOptions(quote_char=False, ignore_empty_lines=False)
    try:
        table = arrow.read_csv(io.BytesIO(plain), reading, parsing, options)
    except pa.ArrowInvalid:
        return None
    if table.num_rows != n_samples or table.column_names != names:
        return None
    ids = table["id"].to_numpy()
    values = np.column_stack([table[name].to_numpy() for name in names[1:]])
    inside = np.isfinite(values).all() and (values >= 0).all() and (values <= 1).all()
    sums = np.abs(values.sum(axis=1) - 1) < TOLERANCE * (1 - 1e-9)
    if not inside or not sums.all() or not np.array_equal(np.sort(ids), np.arange(n_samples)):
        return None
    estimates = np.empty_like(values)
    estimates[ids] = values
    return estimates


@contextmanager
def _temporary(plain: bytes, folder: Path) -> Iterator[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder, suffix=".csv")
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(plain)
        yield path
    finally:
        path.unlink(missing_ok=True)


def _faulty(fault: str) -> FaultyError:
    return FaultyError("this is not a valid run; it was not kept and uses up no quota.", [fault])
