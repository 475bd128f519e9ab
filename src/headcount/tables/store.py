"""Records of small groups, unchanged: in memory up to a limit, and on disk beyond it."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Records = NDArray[Any]  # structured, with a field `group`


class Store:
    """Records by group number: add batches in any order, then read whole groups, some at a time.

    Parameters
    ----------
    dtype : structured type with an integer field `group`
    memory : int
        Bytes that are kept in memory before they are written to disk.
    n_files : int
        Temporary files, each of which holds whole groups.
    """

    def __init__(self, dtype: np.dtype[Any], memory: int = 1 << 27, n_files: int = 64):
        self.dtype, self.memory, self.n_files = dtype, memory, n_files
        self.batches: list[Records] = []
        self.bytes = 0
        self.files: list[Any] = []

    def add(self, records: Records) -> None:
        """Keep records."""
        if len(records):
            self.batches.append(records)
            self.bytes += records.nbytes
        if self.bytes > self.memory:
            self._spill()

    def parts(self) -> Iterator[Records]:
        """All records, sorted by group, some whole groups at a time."""
        if self.files:
            self._spill()
        for number in range(max(1, len(self.files))):
            records = self._read(number) if self.files else self._joined()
            self.batches = self.batches if self.files else [records]
            records = records[np.argsort(records["group"], kind="stable")]
            yield from _split(records, max(1, self.memory // 4 // self.dtype.itemsize))

    def __getstate__(self) -> dict[str, Any]:
        """State of a pickle, which holds the content of the files."""
        spilled = [self._read(number) for number in range(len(self.files))]
        return {**vars(self), "files": [], "batches": [*spilled, *self.batches]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.bytes = sum(batch.nbytes for batch in self.batches)
        if self.bytes > self.memory:
            self._spill()

    def _joined(self) -> Records:
        return np.concatenate(self.batches) if self.batches else np.empty(0, dtype=self.dtype)

    def _spill(self) -> None:
        if not self.files:  # unnamed, so that nothing is left behind
            self.files = [tempfile.TemporaryFile() for _ in range(self.n_files)]  # noqa: SIM115
            for file in self.files:
                weakref.finalize(self, file.close)
        records = self._joined()
        self.batches, self.bytes = [], 0
        owner = records["group"] % self.n_files
        records = records[np.argsort(owner, kind="stable")]
        borders = np.cumsum(np.bincount(owner, minlength=self.n_files))
        for file, some in zip(self.files, np.split(records, borders[:-1]), strict=True):
            file.write(some.tobytes())

    def _read(self, number: int) -> Records:
        file = self.files[number]
        file.seek(0)
        return np.frombuffer(file.read(), dtype=self.dtype)


def _split(records: Records, size: int) -> Iterator[Records]:
    """Sorted records in parts of about this size, split between groups."""
    if not len(records):
        return
    starts = np.flatnonzero(np.diff(records["group"], prepend=-1))
    borders = np.unique(starts // size, return_index=True)[1]
    yield from np.split(records, starts[borders][1:])
