"""Tables of any length, a part at a time: CSV, TSV, Parquet, JSON lines, gzip, standard input."""

from __future__ import annotations

import csv as python_csv
import glob
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, json
from pyarrow import parquet as pq

from headcount.data.frames import frame_batches, frame_names
from headcount.data.tables import KINDS, table_kind
from headcount.exceptions import InputError, choose

ROWS = 1 << 18  # rows of a part of a Parquet file
BLOCK = 1 << 24  # bytes of a part of a text file
HEAD = 1 << 16  # bytes that surely hold the names of the columns
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
        csv, tsv, parquet or jsonl where the name does not tell; CSV for standard input.
    """
    if kind is not None:
        choose("format", kind, ["csv", "tsv", "parquet", "jsonl"])
    found: list[Source] = []
    if list(names).count("-") > 1:
        raise InputError("standard input can be read once only.")
    for name in names:
        if name == "-":
            found.append(Source(None, f".{kind or 'csv'}"))
            continue
        matches = [name] if Path(name).is_file() else sorted(glob.glob(name, recursive=True))
        files = [Path(m) for m in matches if Path(m).is_file()]
        if not files:
            what = "is a folder" if Path(name).is_dir() else "was not found"
            raise InputError(f"{name!r} {what}: give a file, or a pattern such as 'data/*.csv'.")
        for path in files:
            told = f".{kind}" if kind is not None else table_kind(path).lower()
            if told not in KINDS:
                raise InputError(
                    f"{path.name!r} is none of {', '.join(KINDS)} (or .gz of a text one): say what "
                    "it is.",
                    setting="format",
                )
            found.append(Source(path, told))
    return found


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
            found.append(Source(None, FRAME, one))
    return found


def batches(
    found: Sequence[Source],
    columns: Mapping[str, str],
    *,
    encoding: str = "utf8",
    progress: Progress | None = None,
) -> Iterator[tuple[Source, pa.RecordBatch]]:
    """Parts of the tables with these columns, in their order.

    Parameters
    ----------
    found : sources
    columns : mapping of name to kind
        'number' columns are read as numbers and 'text' ones as texts. 'name', 'date' and 'any'
        ones are as they are where the file knows types, and else texts (`names_of` makes names
        the same in every kind of file: 1 and 1.0, True and true).
    encoding : str
        Of text files.
    progress : function of the bytes read, or for Parquet of the rows' share of them
    """
    for source in found:
        reader = {".parquet": _parquet, FRAME: _frame}.get(source.kind, _text)
        try:
            for batch in reader(source, columns, encoding, progress or (lambda _: None)):
                if batch.num_rows:
                    yield source, batch
        except (pa.ArrowException, EOFError) as error:
            raise _explained(source, str(error), encoding) from None
        except OSError as error:  # a compressed file that is cut short
            raise InputError(f"{source.name} cannot be read: {error}") from None
        except UnicodeDecodeError as error:
            raise _explained(source, f"invalid UTF8 data: {error}", encoding) from None


def columns_of(source: Source, encoding: str = "utf8") -> list[str]:
    """Names of the columns, without reading the rest; nothing is known of standard input."""
    if source.frame is not None:
        return list(frame_names(source.frame))
    if source.path is None:
        return []
    try:
        if source.kind == ".parquet":
            return list(pq.ParquetFile(source.path).schema_arrow.names)
        with pa.input_stream(str(source.path), compression="detect") as stream:
            if source.kind in JSON:
                return list(json.open_json(stream).schema.names)
            return _header(stream.read(HEAD), source, encoding)
    except (pa.ArrowInvalid, EOFError) as error:
        raise _explained(source, str(error), encoding) from None


def _frame(
    source: Source, columns: Mapping[str, str], _encoding: str, _progress: Progress
) -> Iterator[pa.RecordBatch]:
    _check_names(source, columns, list(frame_names(source.frame)))
    for batch in frame_batches(source.frame, list(columns), ROWS):
        yield _cast(batch, columns, source)


def _parquet(
    source: Source, columns: Mapping[str, str], _encoding: str, progress: Progress
) -> Iterator[pa.RecordBatch]:
    if source.path is None:
        raise InputError("Parquet cannot be read from standard input: give the file's name.")
    with pq.ParquetFile(source.path) as file:
        _check_names(source, columns, file.schema_arrow.names)
        total = max(1, file.metadata.num_rows)
        for batch in file.iter_batches(batch_size=ROWS, columns=list(columns)):
            progress(int(source.size * batch.num_rows / total))
            yield _cast(batch.select(list(columns)), columns, source)


def _text(
    source: Source, columns: Mapping[str, str], encoding: str, progress: Progress
) -> Iterator[pa.RecordBatch]:
    raw: Any = sys.stdin.buffer if source.path is None else source.path.open("rb")
    with raw, _decompressed(_Counted(raw, progress), source) as stream:
        if source.kind in JSON:
            yield from _json_lines(stream, source, columns)
            return
        head = stream.read(HEAD)
        _check_names(source, columns, _header(head, source, encoding))
        types = {name: TYPES[kind] for name, kind in columns.items()}
        reader = csv.open_csv(
            pa.PythonFile(_Joined(head, stream), mode="r"),
            read_options=csv.ReadOptions(block_size=BLOCK, encoding=encoding),
            parse_options=_parsing(source),
            convert_options=csv.ConvertOptions(
                column_types=types, include_columns=list(columns), strings_can_be_null=False
            ),
        )
        for batch in reader:
            yield _cast(batch.select(list(columns)), columns, source)


def _header(head: bytes, source: Source, encoding: str) -> list[str]:
    """Names of the columns of a CSV file, from its beginning."""
    try:
        text = head.decode(encoding, errors="replace").removeprefix("\ufeff")
    except LookupError:
        raise InputError(f"there is no encoding {encoding!r}: utf8, latin-1, cp1252?") from None
    rows = python_csv.reader(io.StringIO(text), delimiter=KINDS[source.kind] or ",")
    names = next(rows, [])
    if not names:
        raise InputError(f"{source.name} is empty: there is nothing to read.")
    return names


def _json_lines(
    stream: Any, source: Source, columns: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    types = {"number": pa.float64(), "text": pa.string(), "date": pa.string()}
    fields = [pa.field(name, types[kind]) for name, kind in columns.items() if kind in types]
    options = json.ParseOptions(explicit_schema=pa.schema(fields) if fields else None)
    reader = json.open_json(stream, json.ReadOptions(block_size=BLOCK), options)
    _check_names(source, columns, reader.schema.names)
    for batch in reader:
        yield _cast(batch.select(list(columns)), columns, source)


def _parsing(source: Source) -> csv.ParseOptions:
    return csv.ParseOptions(delimiter=KINDS[source.kind] or ",", newlines_in_values=True)


def _cast(batch: pa.RecordBatch, columns: Mapping[str, str], source: Source) -> pa.RecordBatch:
    """Columns as numbers or texts where that is asked for; cells that are neither are missing."""
    arrays = []
    for name, kind in columns.items():
        array = batch.column(name)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pa.types.is_nested(array.type):
            raise InputError(f"column {name!r} of {source.name} holds lists, not single values.")
        if kind == "number" and not pa.types.is_floating(array.type):
            try:
                array = pc.cast(array, pa.float64())
            except pa.ArrowInvalid as error:
                raise InputError(
                    f"column {name!r} of {source.name} must hold numbers: {error}"
                ) from None
        elif kind == "text" or (kind == "date" and is_text(array.type)):
            array = pc.cast(array, pa.string())
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def names_of(array: Any) -> Any:
    """Values as texts that do not depend on how a file stores them: 1, not 1.0; true, not True."""
    text = pc.cast(array, pa.string())
    text = pc.replace_substring_regex(text, r"^(-?[0-9]+)[.]0+$", r"\1")
    lower = pc.utf8_lower(text)
    truth = pc.is_in(lower, pa.array(["true", "false"]))
    return pc.if_else(truth, lower, text)


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow's is one of texts."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _check_names(source: Source, columns: Mapping[str, str], there: Sequence[str]) -> None:
    if len(there) == 1 and ";" in there[0]:
        raise InputError(f"{source.name} is separated by semicolons: save it with commas or tabs.")
    for name in columns:
        choose(f"column of {source.name}", name, there)
        if list(there).count(name) > 1:
            raise InputError(f"{source.name} has {name!r} twice: rename one of the columns.")


def _explained(source: Source, error: str, encoding: str) -> InputError:
    """The reader's error in words that say what to do."""
    lower = error.lower()
    if "invalid utf" in lower or "codec can't" in lower:
        return InputError(
            f"{source.name} is not {encoding} throughout ({error}). If it is one other encoding, "
            "say so (latin-1, cp1252, ...); if it is a mixture, convert it first.",
            setting="encoding",
        )
    if "empty" in lower:
        return InputError(f"{source.name} is empty: there is nothing to read.")
    if "conversion error to double" in lower:
        return InputError(
            f"{source.name} holds something that is no number in a column of numbers: {error} "
            "(numbers have a point, not a comma.)"
        )
    return InputError(f"{source.name} cannot be read: {error}")


def _decompressed(stream: Any, source: Source) -> Any:
    packed = source.path is not None and source.path.suffix == ".gz"
    if source.path is None:
        head = stream.read(2)
        stream = _Joined(head, stream)
        packed = head == b"\x1f\x8b"
    plain = pa.PythonFile(stream, mode="r")
    return pa.CompressedInputStream(plain, "gzip") if packed else plain


class _Counted(io.RawIOBase):
    """A stream that tells how much of it was read."""

    def __init__(self, inner: Any, progress: Progress):
        self.inner, self.progress = inner, progress

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        found: bytes = self.inner.read(size)
        self.progress(len(found))
        return found


class _Joined(io.RawIOBase):
    """Bytes that were read ahead, then the rest of the stream."""

    def __init__(self, head: bytes, inner: Any):
        self.head, self.inner = head, inner

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self.head:
            return bytes(self.inner.read(size))
        cut = len(self.head) if size < 0 else min(size, len(self.head))
        found, self.head = self.head[:cut], self.head[cut:]
        return found + bytes(self.inner.read(-1 if size < 0 else size - cut))
