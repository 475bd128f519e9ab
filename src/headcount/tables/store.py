"""Records of groups that are small: as they are, in memory up to a limit and on disk beyond it."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

MEMORY = 1 << 27  # bytes that are held before they go to disk
PARTS = 64  # files, each of which holds whole groups

Records = NDArray[Any]  # structured, with a field `group`


class Store:
    """Records by group number: add parts in any number, then get whole groups, some at a time.

    Parameters
    ----------
    dtype : structured type with an integer field `group`
    memory : bytes that are held before they go to disk
    """

    def __init__(self, dtype: np.dtype[Any], memory: int = MEMORY):
        self.dtype, self.memory = dtype, memory
        self.held: list[Records] = []
        self.bytes = 0
        self.files: list[Any] = []

    def add(self, records: Records) -> None:
        """Keep records."""
        if len(records):
            self.held.append(records)
            self.bytes += records.nbytes
        if self.bytes > self.memory:
            self._spill()

    def parts(self) -> Iterator[Records]:
        """All records, sorted by group, a number of whole groups at a time."""
        if self.files:
            self._spill()
        for number in range(max(1, len(self.files))):
            found = self._read(number) if self.files else self._joined()
            self.held = self.held if self.files else [found]
            found = found[np.argsort(found["group"], kind="stable")]
            yield from _cut(found, max(1, self.memory // 4 // self.dtype.itemsize))

    def _joined(self) -> Records:
        return np.concatenate(self.held) if self.held else np.empty(0, dtype=self.dtype)

    def _spill(self) -> None:
        if not self.files:  # without a name, so that nothing is left behind whatever happens
            self.files = [tempfile.TemporaryFile() for _ in range(PARTS)]  # noqa: SIM115
            for file in self.files:
                weakref.finalize(self, file.close)
        found = self._joined()
        self.held, self.bytes = [], 0
        part = found["group"] % PARTS
        found = found[np.argsort(part, kind="stable")]
        borders = np.cumsum(np.bincount(part, minlength=PARTS))
        for file, some in zip(self.files, np.split(found, borders[:-1]), strict=True):
            file.write(some.tobytes())

    def _read(self, number: int) -> Records:
        file = self.files[number]
        file.seek(0)
        return np.frombuffer(file.read(), dtype=self.dtype)


def _cut(records: Records, most: int) -> Iterator[Records]:
    """Sorted records in parts of about so many, cut between groups."""
    if not len(records):
        return
    starts = np.flatnonzero(np.diff(records["group"], prepend=-1))
    borders = np.unique(starts // most, return_index=True)[1]
    yield from np.split(records, starts[borders][1:])
