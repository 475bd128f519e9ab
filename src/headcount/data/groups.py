"""Groups of rows: by the month of a date, by the values of a column, or all rows together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headcount._core.calendar import PERIODS, period_codes, period_name
from headcount._core.dates import DateReader
from headcount._core.types import Ints
from headcount.data.cells import names_of
from headcount.exceptions import InputError

ALL = "all"
MISSING = "(missing)"
UNREADABLE = "(no date)"
DIGITS = re.compile(r"([0-9]{1,18})")


@dataclass
class Grouping:
    """Gives every row the number of its group, and numbers their names.

    Parameters
    ----------
    column : str or None
        None puts all rows into one group.
    period : str, optional
        year, quarter, month, week, day or hour, of a column of dates.
    """

    column: str | None = None
    period: str | None = None
    unreadable: int = 0
    example: str = ""  # of a date that could not be read
    dates: DateReader = field(default_factory=DateReader)
    _numbers: dict[Any, int] = field(default_factory=dict)

    @classmethod
    def parse(
        cls, text: str | None, date_format: str | None = None, time_zone: str | None = None
    ) -> Grouping:
        """Read ``month:date``, ``outlet`` or nothing; dates as `DateReader` is told.

        Examples
        --------
        >>> Grouping.parse("month:date").period
        'month'
        """
        if (date_format or time_zone) and ":" not in (text or ""):
            raise InputError("a format or zone of dates goes with a period, such as month:date.")
        if text is None:
            return cls()
        head, colon, rest = text.partition(":")
        if not colon:
            return cls(text)
        if head not in PERIODS or not rest:
            raise InputError(
                f"the grouping {text!r} is not understood: a column, or a period and a column "
                f"such as month:date ({', '.join(PERIODS)}).",
                setting="by",
            )
        return cls(rest, head, dates=DateReader(rest, date_format, time_zone))

    @property
    def kind(self) -> str:
        """As what to read the column."""
        return "name" if self.period is None else "date"

    def look(self, parts: Iterable[Any]) -> None:
        """Look at parts of the column until it is known how its dates are to be read."""
        for part in parts:
            self.dates.look(part)
            if self.dates.settled:
                break

    def numbers(self, column: Any, n: int) -> Ints:
        """Number of the group of each row of a column of a part."""
        if self.column is None:
            self._numbers.setdefault(ALL, 0)
            return np.zeros(n, dtype=np.int64)
        if self.period is None:
            return self._by_value(column)
        return self._by_period(column)

    def names(self) -> list[str]:
        """Names by number."""
        return [self._name(key) for key in self._numbers]

    def times(self) -> dict[str, int]:
        """Number of the period of each group that has one, counted from 1970, by its name."""
        return {self._name(key): key for key in self._numbers if not isinstance(key, str)}

    def order(self) -> list[int]:
        """Numbers in the order to show: by time or by name, the missing last."""
        keys = list(self._numbers)
        known = [k for k in keys if k not in (MISSING, UNREADABLE)]
        rest = [k for k in keys if k in (MISSING, UNREADABLE)]
        return [self._numbers[k] for k in [*sorted(known, key=_by_number), *rest]]

    def _by_value(self, column: Any) -> Ints:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        values = names_of(encoded.dictionary).to_pylist()
        own = np.array([self._number(MISSING if v in (None, "") else v) for v in values])
        return np.asarray(own[encoded.indices.to_numpy(zero_copy_only=False)], dtype=np.int64)

    def _by_period(self, column: Any) -> Ints:
        stamps, known = self.dates.read(column)
        self.unreadable += int((~known).sum())
        if not known.all() and not self.example:
            rest = pc.drop_null(column.filter(pa.array(~known)))
            self.example = next((t for t in map(str, rest[:50].to_pylist()) if t.strip()), "")[:40]
        codes = period_codes(stamps[known], str(self.period))
        out = np.empty(len(stamps), dtype=np.int64)
        if len(codes):
            low, high = int(codes.min()), int(codes.max())
            if high - low > 10_000_000:
                raise InputError(
                    f"the dates of {self.column!r} reach from {self._name(low)} to "
                    f"{self._name(high)}: are they dates?"
                )
            present = np.flatnonzero(np.bincount(codes - low))
            table = np.zeros(high - low + 1, dtype=np.int64)
            table[present] = [self._number(low + int(c)) for c in present]
            out[known] = table[codes - low]
        if not known.all():
            out[~known] = self._number(UNREADABLE)
        return out

    def _number(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _name(self, key: Any) -> str:
        if isinstance(key, str):
            return key
        return period_name(key, str(self.period))


def _by_number(key: Any) -> Any:
    """A key by which texts with numbers in them are in the order of these: 2 before 10."""
    if not isinstance(key, str):
        return key
    parts = DIGITS.split(key)
    return [(int(p), "") if i % 2 else (-1, p) for i, p in enumerate(parts)], key
