"""Groups of rows: by the month of a date, by the values of a column, or all rows together."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headcount._core.calendar import PERIODS, period_codes, period_name
from headcount._core.types import Bools, Ints
from headcount.data.stream import is_text, names_of
from headcount.exceptions import InputError

ALL = "all"
MISSING = "(missing)"
UNREADABLE = "(no date)"


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
    _numbers: dict[Any, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> Grouping:
        """Read ``month:date``, ``outlet`` or nothing.

        Examples
        --------
        >>> Grouping.parse("month:date").period
        'month'
        """
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
        return cls(rest, head)

    @property
    def kind(self) -> str:
        """As what to read the column."""
        return "name" if self.period is None else "date"

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

    def order(self) -> list[int]:
        """Numbers in the order to show: by time or by name, the missing last."""
        keys = list(self._numbers)
        known = [k for k in keys if k not in (MISSING, UNREADABLE)]
        rest = [k for k in keys if k in (MISSING, UNREADABLE)]
        return [self._numbers[k] for k in [*sorted(known), *rest]]

    def _by_value(self, column: Any) -> Ints:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        values = names_of(encoded.dictionary).to_pylist()
        own = np.array([self._number(MISSING if v in (None, "") else v) for v in values])
        return np.asarray(own[encoded.indices.to_numpy(zero_copy_only=False)], dtype=np.int64)

    def _by_period(self, column: Any) -> Ints:
        stamps, known = _seconds(column)
        self.unreadable += int((~known).sum())
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


def _seconds(column: Any) -> tuple[Ints, Bools]:
    """Seconds since 1970 of the wall clock, and which cells could be read."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        raise InputError(
            "the dates are plain numbers, which could mean anything: turn them into dates such as "
            "2026-11-30."
        )
    if is_text(kind):
        column = _parsed(column)
    elif pa.types.is_timestamp(kind) and kind.tz is not None:
        column = pc.local_timestamp(column)
    known = np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False), dtype=bool)
    if pa.types.is_date32(column.type):
        days = pc.fill_null(column.cast(pa.int32()), 0).to_numpy(zero_copy_only=False)
        return days.astype(np.int64) * 86400, known
    if not pa.types.is_timestamp(column.type) or column.type.unit != "s":
        units = {"ms": 1000, "us": 10**6, "ns": 10**9}
        if pa.types.is_timestamp(column.type):
            raw = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
            return raw // units[column.type.unit], known
        try:
            column = column.cast(pa.timestamp("s"), safe=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(f"a column of type {kind} holds no dates.") from None
    raw = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return np.asarray(raw, dtype=np.int64), known


def _parsed(column: Any) -> Any:
    """Dates of ISO texts on their own clock, whatever its zone; what cannot be read is missing."""
    column = column.cast(pa.string())
    zoned = pc.any(pc.match_substring_regex(column, r"[0-9:](Z|[+-][0-9]{2}:?[0-9]{2})$"))
    try:
        if zoned.as_py():
            raise pa.ArrowInvalid("Arrow would turn them into UTC")
        return column.cast(pa.timestamp("s"))
    except pa.ArrowInvalid:
        encoded = pc.dictionary_encode(column)
        values = [_date(v) for v in encoded.dictionary.to_pylist()]
        return pa.array(values, pa.timestamp("s")).take(encoded.indices)


def _date(text: str | None) -> datetime | None:
    text = (text or "").strip()
    for ending in ("", "-01", "-01-01"):  # 2026-11-30, 2026-11, 2026
        try:
            return datetime.fromisoformat(text + ending).replace(tzinfo=None)
        except ValueError:
            continue
    return None
