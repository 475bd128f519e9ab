"""Dates of tables in any common writing: texts, timestamps, seconds since 1970, Excel's days."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headcount._core import validation as check
from headcount._core.calendar import DAY, UNKNOWN, civil_seconds
from headcount._core.datetext import ORDERS, TextDates, read_texts
from headcount._core.types import Bools, Ints
from headcount.exceptions import InputError

EXCEL_START = -25569 * DAY  # Excel's day 0, in seconds since 1970
# Numbers that mean moments: range, how to call it, and how many make a second (0: see _of_unit).
UNITS = {
    "years": (1800, 2100, "as years", 0),
    "excel": (20_000, 80_000, "as Excel's days since 1900", 0),
    "months": (190_001, 210_012, "as year and month (YYYYMM)", 0),
    "days": (19_000_101, 21_001_231, "as year, month and day (YYYYMMDD)", 0),
    "stamps": (
        19_000_101_000_000,
        21_001_231_235_959,
        "as year, month, day and time (YYYYMMDDhhmmss)",
        0,
    ),
    "s": (10**8, 10**10, "as seconds since 1970 (UTC)", 1),
    "ms": (10**11, 10**13, "as milliseconds since 1970 (UTC)", 10**3),
    "us": (10**14, 10**16, "as microseconds since 1970 (UTC)", 10**6),
    "ns": (10**17, 10**19, "as nanoseconds since 1970 (UTC)", 10**9),
}
COUNTS = tuple(u for u in UNITS if UNITS[u][3])  # whose numbers cannot be mistaken for another's
YEAR = re.compile("%[-#]?[YyGcxDF]")
NUMBER = r"^\s*-?[0-9]+([.][0-9]+)?([eE][+]?[0-9]+)?\s*$"


@dataclass
class DateReader:
    """Reads the dates of a column, a part at a time, all in the same way.

    Dates keep their own clock: a time zone that is written beside one changes nothing, unless
    `zone` asks for all of them on the clock of one place.

    Parameters
    ----------
    column : str
        How to call the column in messages.
    format : str, optional
        'day-first' or 'month-first' for dates such as 3/4/2026, one of s, ms, us, ns, excel for
        numbers, or a format of `datetime.strptime` such as ``%d.%m.%y``. Told by the dates
        themselves by default.
    zone : str, optional
        Place whose clock counts, such as Europe/Berlin, for moments with a known time zone.
    """

    column: str = "date"
    format: str | None = None
    zone: str | None = None
    unit: str | None = None
    texts: TextDates = field(default_factory=TextDates)

    def __post_init__(self) -> None:
        known = [*ORDERS, *(u for u in UNITS if UNITS[u][3] or u == "excel")]
        if self.format is not None and self.format not in known and "%" not in self.format:
            raise InputError(
                f"{self.format!r} is no format of dates: {', '.join(known)}, or a format such as "
                "%d.%m.%Y.",
                setting="date-format",
            )
        if "%" in (self.format or "") and not YEAR.search(str(self.format)):
            raise InputError(
                f"{self.format!r} has no year (%Y or %y): all dates would be of one year.",
                setting="date-format",
            )
        if self.format in ORDERS:
            self.texts.order = self.format
        if self.format in UNITS:
            self.unit = self.format
        if self.zone is not None:
            try:
                ZoneInfo(self.zone)
            except (ZoneInfoNotFoundError, ValueError):
                raise InputError(
                    f"there is no time zone {self.zone!r}: names such as Europe/Berlin or UTC are "
                    "known.",
                    setting="time-zone",
                ) from None

    @property
    def settled(self) -> bool:
        """Whether it is known how to read what was looked at so far."""
        return not self.texts.open

    def look(self, column: Any) -> None:
        """Look at a part, to learn whether days or months come first."""
        column = _plain(column)
        if is_text(column.type) and "%" not in (self.format or ""):
            self.texts.look(column.cast(pa.string()))

    def read(self, column: Any) -> tuple[Ints, Bools]:
        """Seconds since 1970 on the clock that counts, and which cells could be read."""
        column = _plain(column)
        kind = column.type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return self._numbers(column)
        if is_text(kind):
            return self._each_once(column.cast(pa.string()))
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            column = pc.local_timestamp(column.cast(pa.timestamp(kind.unit, self.zone or kind.tz)))
        known = _mask(pc.is_valid(column))
        try:
            stamps = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(f"column {self.column!r} of type {kind} holds no dates.") from None
        return _ints(stamps), known

    def said(self) -> str | None:
        """How doubtful dates were read, if there were any."""
        if self.format is not None:
            return None
        if self.unit is not None:
            return UNITS[self.unit][2]
        return self.texts.said()

    def _each_once(self, column: Any) -> tuple[Ints, Bools]:
        """Texts, each of which is read once where most occur again and again."""
        encoded = pc.dictionary_encode(column)
        if 2 * len(encoded.dictionary) > len(column):
            return self._texts(column)
        if self.format is None and not self.texts.days and not self.texts.months:
            self.texts.look(column)  # how often each occurs counts
        stamps, known = self._texts(encoded.dictionary)
        there = _mask(pc.is_valid(encoded.indices))
        if not len(stamps):
            return np.zeros(len(column), dtype=np.int64), there
        places = _ints(encoded.indices)
        return stamps[places], known[places] & there

    def _texts(self, column: Any) -> tuple[Ints, Bools]:
        if self.format is not None and "%" in self.format:
            return self._formatted(column)
        digits = _mask(pc.fill_null(pc.match_substring_regex(column, NUMBER), False))
        if digits.all():
            return self._numbers(pc.cast(pc.utf8_trim_whitespace(column), pa.float64()))
        plain = None if digits.any() else _iso(column)
        if plain is not None:
            return plain
        stamps, known, offset = read_texts(column, self.texts, self.column)
        if self.zone is not None:
            moving = known & (offset != UNKNOWN)
            stamps[moving] = self._in_zone(stamps[moving] - offset[moving])
        if digits.any():
            own = pc.cast(pc.utf8_trim_whitespace(column.filter(pa.array(digits))), pa.float64())
            stamps[digits], known[digits] = self._numbers(own)
        return stamps, known

    def _formatted(self, column: Any) -> tuple[Ints, Bools]:
        """Dates by a format that was given."""
        encoded = pc.dictionary_encode(column)
        values = [self._by_format(v) for v in encoded.dictionary.to_pylist()]
        found = pa.array(values, pa.int64()).take(encoded.indices)
        return _ints(found), _mask(pc.is_valid(found))

    def _by_format(self, text: str) -> int | None:
        try:
            found = datetime.strptime(text.strip(), str(self.format))
        except ValueError:
            return None
        if self.zone is not None and found.tzinfo is not None:
            found = found.astimezone(ZoneInfo(self.zone))
        return int((found.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds())

    def _numbers(self, column: Any) -> tuple[Ints, Bools]:
        values = pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy(
            zero_copy_only=False
        )
        there = np.isfinite(values)
        if self.unit is None and there.any():
            self.unit = self._unit_of(values[there])
        if self.unit is None:
            return np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=bool)
        stamps = np.zeros(len(values), dtype=np.int64)
        known = np.zeros(len(values), dtype=bool)
        units = COUNTS if self.format is None and self.unit in COUNTS else (self.unit,)
        for unit in units:
            low, high, _, per_second = UNITS[unit]
            here = there & (values >= low) & (values <= high)
            if per_second:
                stamps[here] = (values[here] / per_second).astype(np.int64)
                if self.zone is not None:
                    stamps[here] = self._in_zone(stamps[here])
            else:
                stamps[here] = _of_unit(values[here], unit)
            known |= here & (stamps != UNKNOWN)
        return stamps, known

    def _unit_of(self, values: NDArray[Any]) -> str:
        """What most numbers can be."""
        inside = {u: ((values >= r[0]) & (values <= r[1])).mean() for u, r in UNITS.items()}
        best = max(inside, key=lambda u: inside[u])
        if (sum(inside[u] for u in COUNTS) if best in COUNTS else inside[best]) <= 0.5:
            raise InputError(
                f"the numbers in {self.column!r} ({values.min():g} to {values.max():g}) are no "
                "dates that are known (seconds or milliseconds since 1970, Excel's days, "
                "YYYYMMDD).",
                setting="date-format",
            )
        return best

    def _in_zone(self, utc: Ints) -> Ints:
        moments = pa.array(utc, pa.int64()).cast(pa.timestamp("s", self.zone))
        return _ints(pc.local_timestamp(moments).cast(pa.int64()))


def wall_times(times: Any) -> NDArray[Any]:
    """Times as numpy datetimes of their own wall clock, whatever their time zone."""
    native = nw.from_native(times, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series) and native.dtype == nw.Datetime:
        if getattr(native.dtype, "time_zone", None) is not None:
            native = native.dt.replace_time_zone(None)
        return np.asarray(native.to_numpy()).astype("datetime64[s]")
    array = check.column(times, "times")
    if array.dtype.kind in "iufb":
        raise InputError(
            "times are plain numbers, which could mean anything. Convert them to datetimes or "
            "ISO texts such as 2026-11-30."
        )
    try:
        if array.dtype.kind in "OU" and all(isinstance(v, str) for v in array):
            return _text_times(array)
        if array.dtype.kind in "OU":
            array = np.array([_naive(v) for v in array], dtype="datetime64[s]")
        return array.astype("datetime64[s]")
    except (TypeError, ValueError) as error:
        raise InputError(
            f"times cannot be read as dates ({error}). Expected datetimes or ISO texts such as "
            "2026-11-30."
        ) from None


def _text_times(texts: NDArray[Any]) -> NDArray[Any]:
    """Times that are written out; the first that cannot be read is refused."""
    stamps, known = DateReader("times").read(pa.array(texts.tolist(), pa.string()))
    if not known.all():
        raise ValueError(repr(str(texts[~known][0])))
    return stamps.astype("datetime64[s]")


def _naive(value: Any) -> Any:
    """One time without its zone; missing ones stay missing."""
    if value is None or value != value:
        return None
    if isinstance(value, str) and len(value) > 10:
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=None) if getattr(value, "tzinfo", None) is not None else value


def _of_unit(values: NDArray[Any], unit: str) -> Ints:
    """Seconds since 1970 of Excel's days, or of numbers whose digits are a date."""
    if unit == "excel":
        return np.asarray(np.round(values * DAY), dtype=np.int64) + EXCEL_START
    whole = values.astype(np.int64)
    if unit == "years":
        return civil_seconds(whole, np.ones_like(whole), np.ones_like(whole))
    if unit == "months":
        return civil_seconds(whole // 100, whole % 100, np.ones_like(whole))
    days, clock = np.divmod(whole, 10**6) if unit == "stamps" else (whole, np.zeros_like(whole))
    found = civil_seconds(days // 10_000, days // 100 % 100, days % 100)
    seconds = clock // 10_000 * 3600 + clock // 100 % 100 * 60 + clock % 100
    return np.where((found == UNKNOWN) | (seconds >= DAY), UNKNOWN, found + seconds)


def _iso(column: Any) -> tuple[Ints, Bools] | None:
    """Dates by Arrow's own reader, which is the quickest, where all are plain ISO dates."""
    zoned = r":[0-9]{2}([.][0-9]+)?\s*(Z|[+-][0-9]{2}(:?[0-9]{2})?)\s*$"
    if pc.any(pc.match_substring_regex(column, zoned)).as_py():
        return None  # Arrow would turn them into UTC
    try:
        found = column.cast(pa.timestamp("s"))
    except pa.ArrowInvalid:
        return None
    return _ints(found.cast(pa.int64())), _mask(pc.is_valid(found))


def _plain(column: Any) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow's is one of texts."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _mask(array: Any) -> Bools:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=bool)


def _ints(array: Any) -> Ints:
    return np.array(pc.fill_null(array, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
