"""Tables of any length, a part at a time: files of many kinds, standard input, data frames."""

from __future__ import annotations

import filecmp
import glob
import json as python_json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, json
from pyarrow import parquet as pq

from headcount.data.cells import cast_cells
from headcount.data.frames import frame_batches, frame_names
from headcount.data.opening import (
    SWALLOWED,
    CountedStream,
    Utf8Stream,
    count_swallowed,
    has_decimal_commas,
    open_text,
    reading_of,
    split_head,
)
from headcount.data.sheets import SHEETS, Sheet
from headcount.data.tables import KINDS, table_kind
from headcount.exceptions import InputError, choose

ROWS = 1 << 18  # rows of a part of a Parquet file
BLOCK = 1 << 24  # bytes of a part of a text file
JSON = (".jsonl", ".ndjson")
FRAME = "data frame"
TYPES = {
    "number": pa.float64(),
    "text": pa.string(),
    "name": pa.string(),
    "date": pa.string(),
    "any": pa.string(),
}
Progress = Callable[[int], None]
Header = Sequence[str]  # names of the columns of a table


@dataclass
class Reading:
    """What was doubtful about files, by their names.

    Attributes
    ----------
    bad_lines : lines that were not UTF-8
    bad_rows : rows with too many or too few columns, which are left out
    sheets : the sheet that was read, of a workbook with several
    swallowed : lines that look like rows and are inside of a cell
    """

    bad_lines: Counter[str] = field(default_factory=Counter)
    bad_rows: Counter[str] = field(default_factory=Counter)
    sheets: dict[str, str] = field(default_factory=dict)
    swallowed: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Source:
    """A file, standard input or a data frame, and the kind of table in it."""

    path: Path | None
    kind: str
    frame: Any = None

    @property
    def name(self) -> str:
        """How to call it in messages."""
        if self.frame is not None:
            return "the data frame"
        return "standard input" if self.path is None else self.path.name

    @property
    def size(self) -> int:
        """Bytes, 0 where that cannot be known."""
        return 0 if self.path is None else self.path.stat().st_size


def sources(names: Sequence[str], kind: str | None = None) -> list[Source]:
    """Files by name or pattern (``month-*.csv``), ``-`` for standard input.

    Parameters
    ----------
    names : file names
    kind : optional
        csv, tsv, parquet, jsonl or xlsx where the name does not tell; CSV for standard input.
    """
    if kind is not None:
        choose("format", kind, ["csv", "tsv", "parquet", "jsonl", "xlsx"])
    found: list[Source] = []
    if list(names).count("-") > 1:
        raise InputError("standard input can be read once only.")
    for name in names:
        if name == "-":
            found.append(Source(None, f".{kind or 'csv'}"))
            continue
        matches = [name] if _is_readable(name) else sorted(glob.glob(name, recursive=True))
        files = [Path(m) for m in matches if _is_readable(m)]
        if not files:
            what = "is a folder" if Path(name).is_dir() else "was not found"
            raise InputError(f"{name!r} {what}: give a file, or a pattern such as 'data/*.csv'.")
        for path in files:
            told = f".{kind}" if kind is not None else table_kind(path).lower()
            if path.is_fifo() and kind is None:  # a named pipe such as /dev/fd/63
                told = told if told in KINDS else ".csv"
            if told not in KINDS:
                raise InputError(
                    f"{path.name!r} is none of {', '.join(KINDS)} (or .gz of a text one): say what "
                    "it is.",
                    setting="format",
                )
            found.append(Source(path, told))
    _check_once(found)
    return found


def _is_readable(name: str) -> bool:
    """Whether there is a file or a pipe of this name."""
    return Path(name).is_file() or Path(name).is_fifo()


def _check_once(found: Sequence[Source]) -> None:
    """Refuse a file that is given twice, under whatever name: its rows would count twice."""
    by_size: dict[int, list[Source]] = {}
    for source in found:
        if source.path is None or not source.path.is_file():
            continue
        alike = by_size.setdefault(source.path.stat().st_size, [])
        for other in alike:
            if source.path.samefile(other.path or ""):
                raise InputError(f"{source.name} is given twice: its rows would count twice.")
            if filecmp.cmp(source.path, other.path or "", shallow=False):
                raise InputError(
                    f"{source.name} is a copy of {other.name}: its rows would count twice."
                )
        alike.append(source)


def sources_of(data: Any, kind: str | None = None) -> list[Source]:
    """Sources of a data frame, of a file or pattern by name, or of several of these."""
    several = data if isinstance(data, (list, tuple)) else [data]
    found: list[Source] = []
    for one in several:
        if isinstance(one, Source):
            found.append(one)
        elif isinstance(one, (str, Path)):
            found += sources([str(one)], kind)
        else:
            frame_names(one)  # what is no data frame is refused here
            if any(one is other.frame for other in found):
                raise InputError("a data frame is given twice: its rows would count twice.")
            found.append(Source(None, FRAME, one))
    _check_once(found)
    return found


def batches(
    found: Sequence[Source],
    columns: Mapping[str, str],
    *,
    encoding: str = "utf8",
    progress: Progress | None = None,
    reading: Reading | None = None,
    on_header: Callable[[Source, Header], None] | None = None,
) -> Iterator[tuple[Source, pa.RecordBatch]]:
    """Parts of the tables with these columns, in their order; each source is opened once.

    Parameters
    ----------
    found : sources
    columns : mapping of name to kind
        'number' columns are read as numbers and 'text' ones as texts. 'name', 'date' and 'any'
        ones are as they are where the file knows types, and else texts (`names_of` makes names
        the same in every kind of file: 1 and 1.0, True and true).
    encoding : str
        Of text files. With 'utf8', UTF-16 is recognised, and lines that are not UTF-8 are read as
        Windows-1252 and counted.
    reading : Reading, optional
        Is told what was doubtful about the files.
    progress : function of the bytes read, or for Parquet of the rows' share of them
    on_header : function of a source and the names of all its columns, called when it is opened
    """
    wanted = _Wanted(columns, on_header or (lambda *_: None), progress or (lambda _: None))
    told = reading or Reading()
    for source in found:
        with reading_of(source.name, encoding):
            for batch in _parts(source, wanted, encoding, told):
                if batch.num_rows:
                    yield source, batch


@dataclass(frozen=True)
class _Wanted:
    """Columns to read, and the functions that follow the reading."""

    columns: Mapping[str, str]
    on_header: Callable[[Source, Header], None]
    progress: Progress

    def check(self, source: Source, header: Header) -> None:
        """Refuse a table that lacks a column, or has one twice."""
        self.on_header(source, header)
        for name in self.columns:
            choose(f"column of {source.name}", name, header)
            if list(header).count(name) > 1:
                raise InputError(f"{source.name} has {name!r} twice: rename one of the columns.")


def _parts(
    source: Source, wanted: _Wanted, encoding: str, told: Reading
) -> Iterator[pa.RecordBatch]:
    if source.kind == FRAME:
        return _frame(source, wanted)
    if source.kind == ".parquet":
        return _parquet(source, wanted)
    if source.kind in SHEETS:
        return _sheet(source, wanted, told)
    return _text(source, wanted, encoding, told)


def _frame(source: Source, wanted: _Wanted) -> Iterator[pa.RecordBatch]:
    columns = wanted.columns
    wanted.check(source, list(frame_names(source.frame)))
    for batch in frame_batches(source.frame, list(columns), ROWS):
        yield cast_cells(batch, columns, source.name)


def _parquet(source: Source, wanted: _Wanted) -> Iterator[pa.RecordBatch]:
    columns = wanted.columns
    if source.path is None:
        raise InputError("Parquet cannot be read from standard input: give the file's name.")
    with pq.ParquetFile(source.path) as file:
        wanted.check(source, file.schema_arrow.names)
        total = max(1, file.metadata.num_rows)
        for batch in file.iter_batches(batch_size=ROWS, columns=list(columns)):
            wanted.progress(int(source.size * batch.num_rows / total))
            yield cast_cells(batch.select(list(columns)), columns, source.name)


def _sheet(source: Source, wanted: _Wanted, told: Reading) -> Iterator[pa.RecordBatch]:
    columns = wanted.columns
    if source.path is None:
        raise InputError("Excel cannot be read from standard input: give the file's name.")
    sheet = Sheet(source.path, columns)
    wanted.check(source, sheet.names)
    if sheet.others > 1:
        told.sheets[source.name] = sheet.title
    for batch in sheet.batches(columns, ROWS):
        yield cast_cells(batch, columns, source.name)
    wanted.progress(source.size)


def _text(
    source: Source, wanted: _Wanted, encoding: str, told: Reading
) -> Iterator[pa.RecordBatch]:
    def say_bad(n: int) -> None:
        told.bad_lines[source.name] += n

    raw: Any = sys.stdin.buffer if source.path is None else source.path.open("rb")
    with raw:
        stream = open_text(CountedStream(raw, wanted.progress), source.name, encoding, say_bad)
        if source.kind in JSON:
            yield from _json_lines(stream, source, wanted)
        else:
            yield from _csv(stream, source, wanted, told)


def _csv(
    stream: Utf8Stream, source: Source, wanted: _Wanted, told: Reading
) -> Iterator[pa.RecordBatch]:
    columns = wanted.columns
    separator, rows = split_head(stream, columns, KINDS[source.kind], source.name)
    wanted.check(source, rows[0])
    numbers = [rows[0].index(name) for name, kind in columns.items() if kind in ("number", "any")]
    commas = separator != "," and has_decimal_commas(rows, numbers)

    def skip(_row: Any) -> str:
        told.bad_rows[source.name] += 1
        return "skip"

    reader = csv.open_csv(
        pa.PythonFile(stream, mode="r"),
        read_options=csv.ReadOptions(block_size=BLOCK),
        parse_options=csv.ParseOptions(
            delimiter=separator, newlines_in_values=True, invalid_row_handler=skip
        ),
        convert_options=csv.ConvertOptions(
            column_types={name: TYPES[kind] for name, kind in columns.items()},
            include_columns=list(columns),
            strings_can_be_null=False,
            decimal_point="," if commas else ".",
        ),
    )
    good = 0
    for batch in reader:
        good += batch.num_rows
        told.swallowed[source.name] += count_swallowed(batch, separator, len(rows[0]))
        yield cast_cells(batch.select(list(columns)), columns, source.name, commas=commas)
    lost = stream.lines - 1 - good - told.bad_rows[source.name]
    if stream.quotes % 2 and lost > SWALLOWED:  # the last quote does not end, nor does its cell
        told.swallowed[source.name] = max(told.swallowed[source.name], lost)
    if told.bad_rows[source.name] > good:
        raise InputError(
            f"most rows of {source.name} have another number of columns than its first line, "
            f"{len(rows[0])}: are texts with a {separator!r} in them quoted?"
        )


def _json_lines(stream: Utf8Stream, source: Source, wanted: _Wanted) -> Iterator[pa.RecordBatch]:
    columns = wanted.columns
    types = {"number": pa.float64(), "text": pa.string(), "date": pa.string()}
    if stream.peek_head().lstrip().startswith("["):
        raise InputError(
            f"{source.name} is one JSON array: JSON lines have an object on every line "
            "(`jq -c '.[]'` makes them)."
        )
    first = _first_object(stream.peek_head())
    for name, kind in columns.items():
        if kind == "date" and type(first.get(name)) in (int, float):
            types["date"] = pa.float64()
    fields = [pa.field(name, types[kind]) for name, kind in columns.items() if kind in types]
    options = json.ParseOptions(explicit_schema=pa.schema(fields) if fields else None)
    reader = json.open_json(
        pa.PythonFile(stream, mode="r"), json.ReadOptions(block_size=BLOCK), options
    )
    first_batch = next(iter(reader), None)
    # Columns of the explicit schema are in the reader's schema even if no line has them.
    asked = {name for name, kind in columns.items() if kind in types} - set(first)
    header = [
        name
        for name in reader.schema.names
        if name not in asked or (first_batch is not None and _has_values(first_batch, name))
    ]
    wanted.check(source, header)
    for batch in chain([] if first_batch is None else [first_batch], reader):
        yield cast_cells(batch.select(list(columns)), columns, source.name)


def _has_values(batch: pa.RecordBatch, name: str) -> bool:
    return bool(batch.column(name).null_count < batch.num_rows)


def _first_object(head: str) -> dict[str, Any]:
    try:
        found = python_json.loads(head.strip().split("\n", 1)[0])
    except ValueError:  # which the reader of the file will explain
        return {}
    return found if isinstance(found, dict) else {}
