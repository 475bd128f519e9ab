"""Years, quarters, months, weeks, days and hours: which period a moment lies in, and its name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.types import Ints
from headcount.exceptions import choose

PERIODS = ("year", "quarter", "month", "week", "day", "hour")
MONTHS = {"month": 1, "quarter": 3, "year": 12}
HOUR = 3600  # seconds
DAY = 24 * HOUR
UNKNOWN = int(np.iinfo(np.int64).min)  # seconds of a moment that is not known
MONDAY = 4  # days from the first of 1970, a Thursday, to the first Monday


def period_codes(seconds: Ints, period: str) -> Ints:
    """Whole periods since 1970 that moments, in seconds since 1970, lie in; weeks from Monday.

    Examples
    --------
    >>> period_codes(np.array([0, 40 * 86400]), "month").tolist()
    [0, 1]
    """
    choose("period", period, PERIODS)
    if period == "hour":
        return seconds // HOUR
    days = seconds // DAY
    if period == "day" or not len(days):
        return days
    if period == "week":
        return (days - MONDAY) // 7
    low = int(days.min())
    calendar = np.arange(low, int(days.max()) + 1).astype("datetime64[D]")
    months = calendar.astype("datetime64[M]").astype(np.int64)
    return np.asarray((months // MONTHS[period])[days - low])


def civil_seconds(year: Ints, month: Ints, day: Ints) -> Ints:
    """Seconds since 1970 of the beginning of days; `UNKNOWN` for days that there are not.

    Examples
    --------
    >>> civil_seconds(np.array([1970, 2026]), np.array([1, 2]), np.array([2, 30])).tolist()
    [86400, -9223372036854775808]
    """
    possible = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    months = np.where(possible, 12 * (year - 1970) + month - 1, 0)
    first = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    after = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    days = first + day - 1
    return np.asarray(np.where(possible & (days < after), days * DAY, UNKNOWN))


def period_starts(codes: Any, period: str) -> NDArray[Any]:
    """First moment of periods, in a unit that suits them."""
    codes = np.asarray(codes, dtype=np.int64)
    found: NDArray[Any] = codes
    unit = {"hour": "h", "day": "D", "week": "D", "year": "Y"}.get(period, "M")
    if period == "week":
        found = codes * 7 + MONDAY
    elif period == "quarter":
        found = codes * MONTHS["quarter"]
    return np.asarray(found.astype(f"datetime64[{unit}]"))


def period_name(code: int, period: str) -> str:
    """Name of a period, such as 2026, 2026-Q4, 2026-11 or the Monday of a week.

    Examples
    --------
    >>> period_name(227, "quarter"), period_name(0, "week")
    ('2026-Q4', '1970-01-05')
    """
    if period == "quarter":
        return f"{1970 + code // 4}-Q{code % 4 + 1}"
    return str(period_starts(code, period))
