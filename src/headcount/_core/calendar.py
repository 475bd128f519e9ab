"""Years, quarters, months, weeks, days and hours: which period a moment lies in, and its name."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from headcount._core import validation as check
from headcount._core.types import Ints
from headcount.exceptions import InputError, choose

PERIODS = ("year", "quarter", "month", "week", "day", "hour")
MONTHS = {"month": 1, "quarter": 3, "year": 12}
HOUR = 3600  # seconds
DAY = 24 * HOUR
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
        if array.dtype.kind in "OU":
            array = np.array([_naive(v) for v in array], dtype="datetime64[s]")
        return array.astype("datetime64[s]")
    except (TypeError, ValueError) as error:
        raise InputError(
            f"times cannot be read as dates ({error}). Expected datetimes or ISO texts such as "
            "2026-11-30."
        ) from None


def _naive(value: Any) -> Any:
    """One time without its zone; missing ones stay missing."""
    if value is None or value != value:
        return None
    if isinstance(value, str) and len(value) > 10:
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=None) if getattr(value, "tzinfo", None) is not None else value
