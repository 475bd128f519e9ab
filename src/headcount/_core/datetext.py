"""Dates that are written out, in any common way, to seconds; a whole column at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headcount._core.calendar import DAY, UNKNOWN, civil_seconds
from headcount._core.types import Bools, Ints
from headcount.exceptions import InputError

ORDERS = ("day-first", "month-first")
# Months by the letters they begin with: English, then German, French, Spanish, Italian, Dutch.
MONTHS = (
    ("jan", "ene", "gen"),
    ("feb", "fév", "fev"),
    ("mar", "mär", "mrz", "maa"),
    ("apr", "avr", "abr"),
    ("may", "mai", "mag", "mei"),
    ("jun", "juin", "giu"),
    ("jul", "juil", "lug"),
    ("aug", "aoû", "aou", "ago"),
    ("sep", "set"),
    ("oct", "okt", "ott", "out"),
    ("nov",),
    ("dec", "dez", "déc", "dic"),
)
MONTH_OF = {start: 1 + m for m, starts in enumerate(MONTHS) for start in starts}
# Zones that mail and logs name by letters, in hours from UTC.
ZONES = {
    **dict.fromkeys(["z", "ut", "utc", "gmt"], 0),
    "est": -5,
    "edt": -4,
    "cst": -6,
    "cdt": -5,
    "mst": -7,
    "mdt": -6,
    "pst": -8,
    "pdt": -7,
    "cet": 1,
    "cest": 2,
}
TIME = (
    r"(?P<hour>\d{1,2})[:h.](?P<minute>\d{2})(?:[:.](?P<second>\d{2})(?:[.,]\d+)?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?"
)
ZONE = r"(?P<zone>[A-Za-z]{1,4}|[+-]\d{2}:?\d{2}|[+-]\d{2})?"
AFTER = rf"(?:(?:\s*,?\s+|T|:)(?:at\s+)?{TIME}\s*(?:UTC|GMT)?{ZONE}(?:\s*\(.*\))?)?\s*$"
WEEKDAY = r"^\s*(?:\pL{2,10}\.?,?\s+)?"
NAME = r"(?P<name>\pL{3,10})\.?"
YEAR = r"(?P<year>\d{4}|'?\d{2})"
WRITINGS = (
    rf"^\s*(?P<year>\d{{4}})[-/.](?P<month>\d{{1,2}})(?:[-/.](?P<day>\d{{1,2}}))?{AFTER}",
    rf"{WEEKDAY}(?P<first>\d{{1,2}})[-/.]\s?(?P<other>\d{{1,2}})[-/.]\s?{YEAR}{AFTER}",
    rf"{WEEKDAY}(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?(?:\s+(?:of|de))?[-\s/]*{NAME}(?:\s+de)?,?[-\s/]*{YEAR}{AFTER}",
    rf"^\s*(?:\pL{{2,10}},?\s+)?{NAME}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+{YEAR}{AFTER}",
    # Twitter's, and that of Unix
    rf"^\s*[A-Za-z]{{3}}\s+{NAME}\s+(?P<day>\d{{1,2}})\s+{TIME}\s+{ZONE}\s*(?P<year>\d{{4}})\s*$",
    rf"^\s*{NAME}[-\s/]+(?P<year>\d{{4}})\s*$",
    rf"^\s*{NAME}[-/' ]+(?P<year>\d{{2}})\s*$",  # Feb-25, as Excel writes months
    r"^\s*(?P<month>\d{1,2})[-/.](?P<year>\d{4})\s*$",
    r"^\s*(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})[T ]?"
    rf"(?P<hour>\d{{2}}):?(?P<minute>\d{{2}})(?::?(?P<second>\d{{2}})(?:[.,]\d+)?)?{ZONE}\s*$",
    r"^\s*(?P<year>\d{4})\s*[年년]\s*(?P<month>\d{1,2})\s*[月월](?:\s*(?P<day>\d{1,2})\s*[日일])?",
)
SLASHED = WRITINGS[1]
# Share of the unambiguous dates that may contradict the rest, by convention: one mistake in 100.
MAX_CONTRADICTING_SHARE = 0.01


@dataclass
class TextDates:
    """What is known about dates such as 3/4/2026: whether days or months come first."""

    order: str | None = None
    days: int = 0  # dates that begin with more than 12
    months: int = 0  # and those with more than 12 in the second place
    doubtful: int = 0

    @property
    def open(self) -> bool:
        """Whether such dates were seen, and nothing tells how to read them."""
        return self.order is None and self.doubtful > 0 and not self.days and not self.months

    def look(self, column: Any) -> None:
        """Count what tells."""
        fields, there = _extracted(column, SLASHED)
        first, other = (_numbers(fields, name)[there] for name in ("first", "other"))
        self.days += int(((first > 12) & (other <= 12)).sum())
        self.months += int(((other > 12) & (first <= 12)).sum())
        self.doubtful += int(((first <= 12) & (other <= 12)).sum())

    def decide(self, name: str) -> str:
        """Which comes first; what cannot be known is refused."""
        if self.order is not None:
            return self.order
        rare, often = sorted((self.days, self.months))
        if often == 0:
            raise InputError(
                f"the dates in {name!r} may begin with the day or with the month, since no number "
                "in them is over 12: say day-first or month-first.",
                setting="date-format",
            )
        if rare > MAX_CONTRADICTING_SHARE * (rare + often):
            raise InputError(
                f"of the dates in {name!r} {self.days:,} must begin with the day and "
                f"{self.months:,} with the month: write them in one way.",
                setting="date-format",
            )
        self.order = "day-first" if self.days > self.months else "month-first"
        return self.order

    def said(self) -> str | None:
        """How they were read, if there were any."""
        if not (self.days or self.months or self.doubtful) or self.order is None:
            return None
        return f"{self.order}"


def read_texts(column: Any, known_so_far: TextDates, name: str) -> tuple[Ints, Bools, Ints]:
    """Seconds since 1970 on their own clock, which could be read, and offsets from UTC.

    Parameters
    ----------
    column : Arrow array of texts
    known_so_far : TextDates
        Is asked, and looks at this part first if nothing is known.
    name : of the column, for messages

    Notes
    -----
    Offsets are in seconds, and `UNKNOWN` where none is written.
    """
    n = len(column)
    stamps = np.zeros(n, dtype=np.int64)
    known = np.zeros(n, dtype=bool)
    offsets = np.full(n, UNKNOWN)
    for writing in WRITINGS:
        left = np.flatnonzero(~known)
        if not len(left):
            break
        fields, there = _extracted(column.take(pa.array(left)), writing)
        if not there.any():
            continue
        rows = left[there]
        found, offset = _moments(fields.filter(pa.array(there)), writing, known_so_far, name)
        good = found != UNKNOWN
        stamps[rows[good]], offsets[rows[good]] = found[good], offset[good]
        known[rows[good]] = True
    return stamps, known, offsets


def _moments(fields: Any, writing: str, dates: TextDates, name: str) -> tuple[Ints, Ints]:
    if writing == SLASHED:
        if dates.order is None and not dates.days and not dates.months:
            dates.look(pc.struct_field(fields, "whole"))
        day_first = dates.decide(name) == "day-first"
        day, month = (_numbers(fields, f) for f in ("first", "other"))
        if not day_first:
            day, month = month, day
    else:
        day = _numbers(fields, "day", missing=1)
        month = _month_numbers(fields) if "<name>" in writing else _numbers(fields, "month")
    year = _numbers(fields, "year")
    year = np.where(year < 69, year + 2000, np.where(year < 100, year + 1900, year))
    days = civil_seconds(year, month, day)
    clock = _clock(fields)
    bad = (days == UNKNOWN) | (clock == UNKNOWN)
    return np.where(bad, UNKNOWN, days + np.where(bad, 0, clock)), _offsets(fields)


def _extracted(column: Any, writing: str) -> tuple[Any, Bools]:
    """Fields of the texts of this writing, and which texts are."""
    fields = pc.extract_regex(column, f"(?P<whole>{writing})")
    return fields, np.asarray(pc.is_valid(fields).to_numpy(zero_copy_only=False), dtype=bool)


def _field(fields: Any, name: str) -> Any:
    if name not in [f.name for f in fields.type]:
        return None
    return pc.fill_null(pc.struct_field(fields, name), "")


def _numbers(fields: Any, name: str, missing: int = 0) -> Ints:
    texts = _field(fields, name)
    if texts is None:
        return np.full(len(fields), missing, dtype=np.int64)
    digits = pc.replace_substring(texts, "'", "")
    digits = pc.if_else(pc.equal(digits, ""), str(missing), digits)
    return np.asarray(pc.cast(digits, pa.int64()).to_numpy(zero_copy_only=False))


def _month_numbers(fields: Any) -> Ints:
    encoded = pc.dictionary_encode(pc.utf8_lower(_field(fields, "name")))
    names = encoded.dictionary.to_pylist()
    values = np.array([MONTH_OF.get(s[:4], MONTH_OF.get(s[:3], 0)) for s in names], dtype=np.int64)
    return np.asarray(values[encoded.indices.to_numpy(zero_copy_only=False)])


def _clock(fields: Any) -> Ints:
    """Seconds since midnight; `UNKNOWN` for what no clock shows."""
    if _field(fields, "hour") is None:
        return np.zeros(len(fields), dtype=np.int64)
    hour, minute, second = (_numbers(fields, f) for f in ("hour", "minute", "second"))
    written = _field(fields, "half")
    half = np.full(len(fields), "", dtype=object)
    if written is not None:
        half[:] = pc.utf8_slice_codeunits(pc.utf8_lower(written), 0, 1).to_pylist()
    twelve = (half == "a") | (half == "p")
    bad = (hour > 24) | (minute > 59) | (second > 60) | (twelve & ((hour > 12) | (hour == 0)))
    hour = np.where(twelve, hour % 12 + 12 * (half == "p"), hour)
    return np.where(bad, UNKNOWN, hour * 3600 + minute * 60 + second)


def _offsets(fields: Any) -> Ints:
    zones = _field(fields, "zone")
    if zones is None:
        return np.full(len(fields), UNKNOWN)
    encoded = pc.dictionary_encode(zones)
    values = np.array([_offset(z) for z in encoded.dictionary.to_pylist()], dtype=np.int64)
    return np.asarray(values[encoded.indices.to_numpy(zero_copy_only=False)])


def _offset(zone: str) -> int:
    """Seconds from UTC of ``+01:00``, ``-0500``, ``Z`` or ``CET``; unknown where none is named."""
    if zone[:1] in ("+", "-"):
        digits = zone[1:].replace(":", "").ljust(4, "0")
        seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
        return min(seconds, DAY) * (-1 if zone[0] == "-" else 1)
    hours = ZONES.get(zone.lower())
    return int(UNKNOWN) if hours is None else hours * 3600
