"""Bytes of a text file as UTF-8: compression, encodings, separators; what is no text is refused."""

from __future__ import annotations

import codecs
import csv as python_csv
import io
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headcount.exceptions import InputError

HEAD = 1 << 16  # bytes that surely hold the names of the columns
BYTES_PER_READ = 1 << 20
SWALLOWED = 5  # line breaks in a cell from which on it is looked at
MAX_LINE_BYTES = 1 << 26  # of a longer line the parts are passed on, so that memory stays bounded
SEPARATORS = (",", ";", "\t", "|")
FALLBACK = "cp1252"  # what lines are in that are not UTF-8, nearly always
MARKS = {
    b"\xff\xfe\x00\x00": "utf-32",  # before the mark of UTF-16, which it begins with
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
    b"\xef\xbb\xbf": "utf8",
}
MAGIC = {
    b"PK\x03\x04": "an Excel file or another zip (name it .xlsx, or unpack it)",
    b"\xd0\xcf\x11\xe0": "an old Excel file (name it .xls)",
    b"PAR1": "a Parquet file (name it .parquet)",
    b"%PDF": "a PDF",
    b"SQLite format 3": "a database of SQLite",
}
SEPARATOR_LINE = re.compile(rb'(\xef\xbb\xbf)?"?sep=.?"?\r?\n', re.IGNORECASE)
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def open_text(raw: Any, name: str, encoding: str, say_bad: Callable[[int], None]) -> Utf8Stream:
    """Stream of UTF-8 from bytes of a file, unpacked where they are compressed.

    Parameters
    ----------
    raw : readable binary stream
    name : how to call it in messages
    encoding : 'utf8' or another
        With 'utf8', UTF-16 is recognised, and lines that are not UTF-8 are read as Windows-1252
        and counted.
    say_bad : function that is told how many more lines were not UTF-8
    """
    start = raw.read(2)
    stream: Any = _Joined(start, raw)
    if start == b"\x1f\x8b":
        stream = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "gzip")
    head = bytes(stream.read(HEAD))
    found = _encoding_of(head, name, encoding)
    old = b"\r" in head and b"\n" not in head  # lines end as they did on old Macs
    text = Utf8Stream(_Joined(head, stream), found, say_bad, old_ends=old)
    text.skip_separator()
    return text


def _encoding_of(head: bytes, name: str, encoding: str) -> str:
    """The encoding to read with; what is no text is refused."""
    for magic, what in MAGIC.items():
        if head.startswith(magic):
            raise InputError(f"{name} is {what}, not a text file.")
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise InputError(f"there is no encoding {encoding!r}: utf8, latin-1, cp1252?") from None
    if codecs.lookup(encoding).name != "utf-8":
        return encoding
    for mark, told in MARKS.items():
        if head.startswith(mark):
            return told
    for start, told in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros = head[start : start + 400 : 2].count(0)
        if zeros > 0.4 * len(head[start : start + 400 : 2]) and not head[1 - start : 400 : 2].count(
            0
        ):
            return told
    if len(CONTROL.findall(head)) > 0.01 * len(head):
        raise InputError(
            f"{name} holds binary data, not text: CSV, TSV, JSON lines, Parquet or Excel are read."
        )
    return "utf8"


class Utf8Stream(io.RawIOBase):
    """A stream in any encoding, read as UTF-8."""

    def __init__(
        self, inner: Any, encoding: str, say_bad: Callable[[int], None], *, old_ends: bool = False
    ):
        self.inner, self.say_bad, self.old_ends = inner, say_bad, old_ends
        self.utf8 = encoding == "utf8"
        self.decoder = codecs.getincrementaldecoder(encoding)()
        self.lines = self.quotes = 0  # read so far
        self.rest = b""  # of a line that is not yet complete
        self.ready = io.BytesIO()

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int = -1) -> bytes:
        """So many bytes of UTF-8, fewer only at the end."""
        parts, need = [], size
        while need:
            got = self.ready.read(need)
            if got:
                parts.append(got)
                need -= len(got) if size >= 0 else 0
            elif not self._refill():
                break
        return b"".join(parts)

    def peek_head(self) -> str:
        """Beginning of the text, which is read again later."""
        found = self.read(HEAD)
        self.ready = io.BytesIO(found + self.ready.read())
        return found.decode("utf8", errors="replace").removeprefix("\ufeff")

    def skip_separator(self) -> None:
        """Leave out a first line such as ``sep=;``, which is for Excel."""
        start = self.read(16)
        line = SEPARATOR_LINE.match(start)
        self.ready = io.BytesIO(start[line.end() if line else 0 :] + self.ready.read())

    def _refill(self) -> bool:
        chunk = bytes(self.inner.read(BYTES_PER_READ))
        if self.old_ends and self.utf8:
            chunk = chunk.replace(b"\r", b"\n")
        if not self.utf8:
            text = self.decoder.decode(chunk, final=not chunk)
            text = text.replace("\r", "\n") if self.old_ends else text
            self._fill(text.encode("utf8"))
            return bool(chunk) or bool(text)
        whole = self.rest + chunk
        cut = whole.rfind(b"\n") + 1 if chunk and len(whole) < MAX_LINE_BYTES else len(whole)
        self.rest = whole[cut:]
        self._fill(self._mended(whole[:cut]))
        return bool(whole)

    def _fill(self, found: bytes) -> None:
        self.lines += found.count(b"\n")
        self.quotes += found.count(b'"')
        self.ready = io.BytesIO(found)

    def _mended(self, lines: bytes) -> bytes:
        if lines.isascii():
            return lines
        try:
            lines.decode("utf8")
            return lines
        except UnicodeDecodeError:
            found = [_line(line) for line in lines.splitlines(keepends=True)]
        self.say_bad(sum(bad for _, bad in found))
        return b"".join(line for line, _ in found)


def _line(line: bytes) -> tuple[bytes, bool]:
    """A line as UTF-8, and whether it was not."""
    try:
        line.decode("utf8")
        return line, False
    except UnicodeDecodeError:
        return line.decode(FALLBACK, errors="replace").encode("utf8"), True


def split_head(
    stream: Utf8Stream, wanted: Collection[str], told: str | None, name: str
) -> tuple[str, list[list[str]]]:
    """Separator of a table, and its first rows, the names of the columns before all.

    Parameters
    ----------
    stream : text, which is read again later
    wanted : names that the right separator brings to light
    told : separator that the file's name tells, if it does
    name : how to call the file in messages
    """
    head = stream.peek_head()
    candidates = [told] if told else []
    candidates += [s for s in SEPARATORS if s != told]
    rows = {s: _rows(head, s) for s in candidates}
    fits = [s for s in candidates if rows[s] and set(wanted) <= set(rows[s][0])]
    if wanted and fits:
        best = fits[0]
    else:
        best = max(candidates, key=lambda s: len(rows[s][0]) if rows[s] else 0)
    if not rows[best]:
        raise InputError(f"{name} is empty: there is nothing to read.")
    return best, rows[best]


def _rows(head: str, separator: str) -> list[list[str]]:
    """First rows; the last line, which may be cut, is left out where there are others."""
    text = head if len(head) < HEAD // 4 else head[: head.rfind("\n") + 1] or head
    found: list[list[str]] = []
    try:
        for row in python_csv.reader(io.StringIO(text), delimiter=separator):
            if row:
                found.append(row)
            if len(found) == 100:
                break
    except python_csv.Error:  # a field that does not end, or a stray zero byte
        return found
    return found


def has_decimal_commas(rows: list[list[str]], columns: Collection[int]) -> bool:
    """Whether numbers of these columns have a comma where others have a point."""
    cells = [row[c] for row in rows[1:] for c in columns if c < len(row)]
    commas = sum(bool(re.fullmatch(r"\s*-?\d*,\d+\s*", cell)) for cell in cells)
    return commas > sum("." in cell for cell in cells)


def count_swallowed(batch: pa.RecordBatch, separator: str, n_columns: int) -> int:
    """Lines inside of cells that look like rows, as where a quote does not end."""
    found = 0
    for column in batch.columns:
        if not pa.types.is_string(column.type):
            continue
        breaks = pc.fill_null(pc.count_substring(column, "\n"), 0)
        for cell in column.filter(pc.greater_equal(breaks, SWALLOWED)).to_pylist():
            lines = cell.split("\n")[1:-1]
            alike = sum(line.count(separator) == n_columns - 1 for line in lines)
            found += alike if 2 * alike > len(lines) else 0
    return found


@contextmanager
def reading_of(name: str, encoding: str = "utf8") -> Iterator[None]:
    """Errors of readers, within, become sentences about the file of this name."""
    try:
        yield
    except (pa.ArrowException, EOFError, UnicodeError) as error:
        raise _explained(name, str(error), encoding) from None
    except OSError as error:  # a compressed file that is cut short
        raise InputError(f"{name} cannot be read: {error}") from None


def _explained(name: str, error: str, encoding: str) -> InputError:
    """The reader's error in words that say what to do."""
    lower = error.lower()
    if "invalid utf" in lower or "codec can't" in lower:
        return InputError(
            f"{name} is not {encoding} throughout ({error}). If it is one other encoding, "
            "say so (latin-1, cp1252, ...); if it is a mixture, convert it first.",
            setting="encoding",
        )
    if "empty" in lower:
        return InputError(f"{name} is empty: there is nothing to read.")
    if "conversion error to double" in lower:
        return InputError(
            f"{name} holds something that is no number in a column of numbers: {error} "
            "(numbers have a point, not a comma.)"
        )
    return InputError(f"{name} cannot be read: {error}")


class CountedStream(io.RawIOBase):
    """A stream that tells how much of it was read."""

    def __init__(self, inner: Any, progress: Callable[[int], None]):
        self.inner, self.progress = inner, progress

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int = -1) -> bytes:
        """So many bytes, which are told."""
        found: bytes = self.inner.read(size)
        self.progress(len(found))
        return found


class _Joined(io.RawIOBase):
    """Bytes that were read ahead, then the rest of the stream."""

    def __init__(self, head: bytes, inner: Any):
        self.head, self.inner = head, inner

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int = -1) -> bytes:
        if not self.head:
            return bytes(self.inner.read(size))
        cut = len(self.head) if size < 0 else min(size, len(self.head))
        found, self.head = self.head[:cut], self.head[cut:]
        return found + bytes(self.inner.read(-1 if size < 0 else size - cut))
