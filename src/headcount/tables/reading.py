"""One pass over tables: headers, the format of dates, and batches of rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headcount.data.cells import names_of
from headcount.data.groups import Grouping
from headcount.data.stream import Reading, Source, batches
from headcount.exceptions import InputError
from headcount.tables.settings import ReadSettings

Batch = tuple[Source, pa.RecordBatch]


@dataclass
class TableScan:
    """Batches of tables with some columns; each source is opened once.

    The format of the dates of `grouping` is known before the first batch.
    """

    sources: Sequence[Source]
    columns: dict[str, str]  # how to read each column, as in `batches`
    grouping: Grouping
    settings: ReadSettings
    inputs: Sequence[str] = ()  # columns of a model, which must be in every table
    reading: Reading = field(default_factory=Reading)  # what was doubtful about the files
    header: list[str] = field(default_factory=list)  # all columns of the first table

    def __post_init__(self) -> None:
        if self.grouping.column is not None:
            # A column that is an input too stays as it is.
            self.columns.setdefault(self.grouping.column, self.grouping.kind)

    def __iter__(self) -> Iterator[Batch]:
        stream = batches(
            self.sources,
            self.columns,
            encoding=self.settings.encoding,
            progress=self.settings.progress,
            reading=self.reading,
            on_header=self._check_header,
        )
        return stream if self.grouping.period is None else look_ahead(stream, self.grouping)

    def _check_header(self, source: Source, header: Sequence[str]) -> None:
        self.header = self.header or list(header)
        missing = [c for c in self.inputs if c not in header]
        if missing:
            near = get_close_matches(missing[0], header, n=1)
            hint = f" Is it {near[0]!r}?" if near else ""
            raise InputError(
                f"{source.name} has no column {missing[0]!r}, which the model looks at.{hint} It "
                f"has: {', '.join(map(repr, header[:30]))}."
            )


def look_ahead(
    stream: Iterator[Batch], grouping: Grouping, memory: int = 1 << 27
) -> Iterator[Batch]:
    """The same batches, the first of them after it is known whether days or months come first.

    More than `memory` bytes of batches go to a temporary file while looking.
    """
    queue = _Queue(memory)
    for batch in stream:
        queue.append(batch)
        grouping.look([batch[1].column(grouping.column)])
        if grouping.dates.settled:
            break
    return chain(queue, stream)


class _Queue(Iterable[Batch]):
    """Batches in memory up to a number of bytes, and in a temporary file beyond it."""

    def __init__(self, memory: int):
        self.memory, self.batches = memory, list[Batch]()
        self.file: Any = None
        self.spilled: list[Source] = []

    def append(self, batch: Batch) -> None:
        if self.memory > 0:
            self.memory -= batch[1].nbytes
            self.batches.append(batch)
            return
        self.file = self.file or tempfile.TemporaryFile()  # noqa: SIM115
        self.spilled.append(batch[0])
        with pa.ipc.new_stream(self.file, batch[1].schema) as writer:
            writer.write_batch(batch[1])

    def __iter__(self) -> Iterator[Batch]:
        while self.batches:
            yield self.batches.pop(0)
        if self.file is None:
            return
        with self.file:
            self.file.seek(0)
            for source in self.spilled:
                with pa.ipc.open_stream(self.file) as reader:
                    yield source, reader.read_next_batch()
                    for _ in reader:  # up to the mark of its end
                        pass


def label_names(column: Any) -> NDArray[Any]:
    """Labels as texts without surrounding blanks; missing ones are empty."""
    values = names_of(column).to_pylist()
    return np.array(["" if v is None else v.strip() for v in values], dtype=str)
