"""Items with a text, a class and a date: read from any table, or from a kept compact form."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headcount._core.calendar import DAY
from headcount._core.dates import DateReader, is_text
from headcount._core.types import Bools, Ints
from headcount.data.cells import names_of
from headcount.data.stream import Reading, batches, sources
from headcount.exceptions import InputError, choose

DUPLICATES = ("keep", "drop")


@dataclass(eq=False)
class TimedItems:
    """Items in the order of their source.

    Attributes
    ----------
    days : dates, in days since 1970
    labels, classes : number of each item's class, and the names of the classes
    parts, part_names : number of each item's sub-category, if there are any, and their names
    may_test : False for items that are fit for training only
    texts : function from numbers of items, in ascending order, to their texts or features
    counts : what was read and what was dropped, in words, with numbers
    notes : what was doubtful about the source
    """

    days: Ints
    labels: Ints
    classes: list[str]
    texts: Any
    parts: Ints | None = None
    part_names: list[str] = field(default_factory=list)
    may_test: Bools | None = None
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.days)

    def rows(self, kept: NDArray[Any]) -> TimedItems:
        """Some of the items; their texts stay where they are."""
        numbers = np.flatnonzero(kept) if kept.dtype == bool else kept
        inner = self.texts
        return replace(
            self,
            days=self.days[numbers],
            labels=self.labels[numbers],
            texts=lambda wanted: inner(numbers[wanted]),
            parts=None if self.parts is None else self.parts[numbers],
            may_test=None if self.may_test is None else self.may_test[numbers],
        )

    def renamed(self, name: Callable[[str, str], str]) -> TimedItems:
        """Same items with other classes, told from the class and the sub-category of each."""
        parts = np.zeros_like(self.labels) if self.parts is None else self.parts
        names = self.part_names or [""]
        pairs, place = np.unique(self.labels * len(names) + parts, return_inverse=True)
        found = [name(self.classes[p // len(names)], names[p % len(names)]) for p in pairs.tolist()]
        classes = sorted(set(found))
        number = np.array([classes.index(each) for each in found], dtype=np.int64)
        return replace(self, labels=number[place], classes=classes)

    def without_repeats(self, twice: Bools, duplicates: str) -> TimedItems:
        """Count the items that have been there before, and drop them if that is asked for."""
        dropped = ", dropped" if choose("duplicates", duplicates, DUPLICATES) == "drop" else ""
        add_count(self.counts, f"equal to an earlier row{dropped}", twice.sum())
        return self.rows(~twice) if dropped and twice.any() else self


def read_timed_table(
    path: str | Path,
    *,
    label: str,
    date: str,
    text: str | None = None,
    features: Sequence[str] = (),
    part: str | None = None,
    where: Mapping[str, Any] | None = None,
    test_where: Mapping[str, Any] | None = None,
    duplicates: str = "keep",
    date_format: str | None = None,
) -> TimedItems:
    """Items of a table in any form that `headcount.data.stream` reads.

    Parameters
    ----------
    path : file
    label, date, text, part : names of columns
        `part` is a sub-category, to show what a class is made of.
    features : names of columns of numbers, in place of `text`
    where : mapping of column to a value or several, optional
        Only rows with these are kept.
    test_where : the same for what may be tested on
    duplicates : {'keep', 'drop'}
        Rows that are equal in text, class and date are counted; 'drop' leaves one of them.
    date_format : str, optional
        As in `headcount._core.dates.DateReader`; told by the dates themselves by default.
    """
    choose("duplicates", duplicates, DUPLICATES)
    if (text is None) == (not features):
        raise InputError("give either text (one column) or several columns of numbers.")
    inputs = [text] if text is not None else list(features)
    taker = _Taker(
        label, date, inputs, text is not None, part, where or {}, test_where or {}, date_format
    )
    reading = Reading()
    found = batches(sources([str(path)]), taker.kinds(), reading=reading)
    read = [batch for _, batch in found]
    for batch in read:  # later rows may tell whether days or months come first
        taker.dates.look(batch.column(date))
    table = pa.concat_tables([taker.take(batch) for batch in read]) if read else None
    if table is None or table.num_rows == 0:
        raise InputError(f"no row of {Path(path).name!r} can be used: {taker.counts}.")
    count_doubts(taker.counts, reading)
    said = taker.dates.said()
    notes = [f"the dates of {date!r} were read {said}"] if said is not None else []
    return replace(_as_items(table, taker, duplicates), notes=notes)


@dataclass
class _Taker:
    """Takes what is needed out of each part of a table, and counts what is dropped."""

    label: str
    date: str
    inputs: list[str]
    is_text: bool
    part: str | None
    where: Mapping[str, Any]
    test_where: Mapping[str, Any]
    date_format: str | None
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dates = DateReader(self.date, self.date_format)

    def kinds(self) -> dict[str, str]:
        """Columns, and as what each is read."""
        names = [self.label, *self.where, *self.test_where, *([self.part] if self.part else [])]
        own = "text" if self.is_text else "number"
        return dict.fromkeys(names, "name") | {self.date: "date"} | dict.fromkeys(self.inputs, own)

    def take(self, batch: Any) -> Any:
        """Usable rows of a part, with columns of the same names for every source."""
        kept = batch.filter(match_values(batch, self.where))
        seconds, known = self.dates.read(kept.column(self.date))
        labels = names_of(kept.column(self.label))
        labelled, written = has_text(labels), np.ones(len(known), dtype=bool)
        if self.is_text:
            written = has_text(pc.utf8_trim_whitespace(kept.column(self.inputs[0])))
        for why, n in (
            ("rows read", batch.num_rows),
            ("not of the wanted kind", batch.num_rows - kept.num_rows),
            ("without a date that can be read", (~known).sum()),
            ("without a class", (known & ~labelled).sum()),
            ("without a text", (known & labelled & ~written).sum()),
        ):
            add_count(self.counts, why, n)
        test = match_values(kept, self.test_where)
        columns = {"day": pa.array(seconds // DAY), "label": labels, "test": test}
        columns |= {f"x{i}": kept.column(c) for i, c in enumerate(self.inputs)}
        columns |= {"part": names_of(kept.column(self.part))} if self.part else {}
        return pa.table(columns).filter(pa.array(known & labelled & written))


def add_count(counts: dict[str, int], why: str, n: Any) -> None:
    """Add to a count, unless there is nothing to add."""
    if n:
        counts[why] = counts.get(why, 0) + int(n)


def _as_items(table: Any, taker: _Taker, duplicates: str) -> TimedItems:
    classes, labels = encode_names(table["label"])
    days = table["day"].to_numpy().astype(np.int64)
    columns = [table[f"x{i}"].combine_chunks() for i in range(len(taker.inputs))]
    names, parts = encode_names(table["part"]) if taker.part else ([], None)
    may_test = table["test"].to_numpy() if taker.test_where else None
    items = TimedItems(
        days, labels, classes, _Columns(columns), parts, names, may_test, taker.counts
    )
    if not taker.is_text:
        return items  # equal numbers need not be one item
    cells = [columns[0].to_pylist(), map(str, labels.tolist()), map(str, days.tolist())]
    return items.without_repeats(repeated(hash_rows(cells)), duplicates)


@dataclass(frozen=True, eq=False)
class _Columns:
    """Texts, or a matrix of numbers, by the numbers of items."""

    columns: list[Any]

    def __call__(self, rows: Ints) -> Any:
        found = [column.take(pa.array(rows)) for column in self.columns]
        if is_text(found[0].type):
            return found[0].to_numpy(zero_copy_only=False)
        numbers = [c.to_numpy(zero_copy_only=False).astype(np.float64) for c in found]
        return np.column_stack(numbers)


def count_doubts(counts: dict[str, int], reading: Reading) -> None:
    """Add what was doubtful about a file to its counts."""
    wrong = reading.bad_rows.total()
    add_count(counts, "rows read", wrong)
    add_count(counts, "with too many or too few columns", wrong)
    add_count(counts, "lines that are not UTF-8, read as Windows-1252", reading.bad_lines.total())


def encode_names(column: Any) -> tuple[list[str], Ints]:
    """Sorted names of a column of texts, and the number of each cell; the missing are ''."""
    filled = pc.fill_null(column, "")
    encoded = pc.dictionary_encode(filled)
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # no chunk at all
        return [], np.empty(0, dtype=np.int64)
    names = encoded.dictionary.to_pylist()
    order = np.argsort(names, kind="stable")
    place = np.empty(len(names), dtype=np.int64)
    place[order] = np.arange(len(names))
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    return [names[i] for i in order], place[indices]


def repeated(keys: NDArray[Any]) -> Bools:
    """Which of the keys have been there before."""
    first = np.unique(keys, return_index=True)[1]
    again = np.ones(len(keys), dtype=bool)
    again[first] = False
    return again


def hash_rows(cells: Sequence[Any]) -> Ints:
    """A number for every row of several columns of texts; equal rows have the same."""
    found = [
        int.from_bytes(hashlib.blake2b("\0".join(row).encode(), digest_size=8).digest(), "little")
        for row in zip(*cells, strict=True)
    ]
    return np.array(found, dtype=np.uint64).view(np.int64)


def has_text(column: Any) -> Bools:
    """Which cells hold anything."""
    known = pc.and_(pc.is_valid(column), pc.not_equal(pc.fill_null(column, ""), ""))
    return np.asarray(known.to_numpy(zero_copy_only=False), dtype=bool)


def match_values(batch: Any, where: Mapping[str, Any]) -> Any:
    """Rows whose cells are among the wanted values."""
    kept = pa.array(np.ones(batch.num_rows, dtype=bool))
    for column, values in where.items():
        wanted = values if isinstance(values, (list, tuple)) else [values]
        names = names_of(batch.column(column))
        allowed = names_of(pa.array([str(v) for v in wanted], pa.string()))
        kept = pc.and_(kept, pc.fill_null(pc.is_in(names, allowed), False))
    return kept
