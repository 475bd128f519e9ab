"""Dates in every common writing, against Python's own calendar."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest

from headcount._core.dates import DateReader
from headcount.data.groups import Grouping
from headcount.exceptions import InputError

DAYS = [date(2026, 1, 31), date(2024, 2, 29), date(1999, 12, 5), date(2025, 11, 30)]


def days_of(texts, **settings):
    """Days that texts are read as; None for what cannot be read."""
    reader = DateReader(**settings)
    stamps, known = reader.read(pa.array(texts))
    zero = date(1970, 1, 1)
    return [
        zero + timedelta(days=int(s) // 86400) if k else None
        for s, k in zip(stamps, known, strict=True)
    ]


@pytest.mark.parametrize(
    "writing",
    [
        "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y",
        "%d-%m-%y",
        "%d %b %Y", "%d %B %Y", "%d-%b-%y", "%b %d, %Y", "%B %d %Y", "%A, %d %B %Y", "%d. %B %Y",
        "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%d/%m/%Y %H:%M", "%m/%d/%Y %I:%M:%S %p",
        "%a %b %d %H:%M:%S +0000 %Y", "%a, %d %b %Y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y",
        "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S+05:30", "%Y-%m-%d %H:%M:%S-0800",
        "%b %d, %Y at %I:%M %p", "%d/%b/%Y:%H:%M:%S +0000", "%Y%m%dT%H%M%S", "%Y%m%d%H%M%S",
        "%Y%m%d %H:%M", "%Y年%m月%d日",
    ],
)  # fmt: skip
def test_common_writings(writing):
    texts = [datetime(d.year, d.month, d.day, 23, 45).strftime(writing) for d in DAYS]
    assert days_of(texts) == DAYS


def test_hours_of_a_clock():
    texts = [
        "12/31/2025 12:05 AM",
        "12/31/2025 12:05 PM",
        "12/31/2025 1:05 p.m.",
        "12/31/2025 25:00",
    ]
    stamps, known = DateReader().read(pa.array(texts))
    assert known.tolist() == [True, True, True, False]
    assert [int(s) % 86400 for s in stamps[:3]] == [300, 43500, 47100]


def test_months_and_years_alone():
    assert days_of(["2026-11", "Nov 2025", "November 2024"]) == [
        date(2026, 11, 1), date(2025, 11, 1), date(2024, 11, 1)
    ]  # fmt: skip
    assert days_of(["2026", "1999"]) == [date(2026, 1, 1), date(1999, 1, 1)]
    assert days_of(["02/2025", "Feb-25", "Oct '99"]) == [
        date(2025, 2, 1), date(2025, 2, 1), date(1999, 10, 1)
    ]  # fmt: skip


def test_months_in_other_languages():
    texts = ["3. März 2025", "31 Mai 2025", "1 juin 2025", "14 juillet 2025", "1 août 2025",
             "24. Dezember 2025", "2 de enero de 2025", "7 ottobre 2025",
             "Dienstag, 4. Okt 2025"]  # fmt: skip
    months = [d.month for d in days_of(texts)]
    assert months == [3, 5, 6, 7, 8, 12, 1, 10, 10]


def test_running_numbers_are_no_years():
    with pytest.raises(InputError, match="no dates that are known"):
        days_of(list(range(3000)))


def test_a_format_without_a_year_is_refused():
    with pytest.raises(InputError, match="has no year"):
        DateReader(format="%d.%m.")
    assert days_of(["03.04.26"], format="%d.%m.%y") == [date(2026, 4, 3)]


def test_numbers_in_names_of_groups_are_in_order():
    groups = Grouping.parse("store")
    groups.numbers(pa.array(["store 10", "store 2", "9", "a", "10", None]), 6)
    names = groups.names()
    order = ["9", "10", "a", "store 2", "store 10", "(missing)"]
    assert [names[g] for g in groups.order()] == order


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)])
@pytest.mark.parametrize("as_text", [False, True])
def test_moments_since_1970(unit, factor, as_text):
    moments = [datetime(d.year, d.month, d.day, 12, tzinfo=UTC).timestamp() for d in DAYS]
    numbers = [int(m * factor) for m in moments]
    reader = DateReader()
    stamps, known = reader.read(pa.array([str(n) for n in numbers] if as_text else numbers))
    assert known.all() and stamps.tolist() == [int(m) for m in moments]
    assert reader.unit == unit and "since 1970" in reader.said()


def test_days_of_excel():
    serials = [(d - date(1899, 12, 30)).days for d in DAYS]
    assert days_of(serials) == DAYS
    assert days_of([s + 0.5 for s in serials]) == DAYS


def test_day_or_month_is_told_by_the_dates_or_asked_for():
    assert days_of(["03/04/2026", "25/04/2026"])[0] == date(2026, 4, 3)
    assert days_of(["03/04/2026", "04/25/2026"])[0] == date(2026, 3, 4)
    assert days_of(["03/04/2026"], format="month-first") == [date(2026, 3, 4)]
    assert days_of(["03/04/2026"], format="%d/%m/%Y") == [date(2026, 4, 3)]
    with pytest.raises(InputError, match="day-first or month-first"):
        days_of(["03/04/2026"])
    with pytest.raises(InputError, match="2 must begin with the day and 1 with the month"):
        days_of(["25/04/2026", "26/04/2026", "04/25/2026"])
    mostly = days_of(["25/04/2026"] * 200 + ["04/25/2026"])
    assert mostly[0] == date(2026, 4, 25) and mostly[-1] is None


def test_parts_are_read_ahead_until_the_order_is_known():
    grouping = Grouping.parse("month:date")
    grouping.look(iter([pa.array(["01/02/2026"]), pa.array(["28/02/2026"]), pa.array([7])]))
    assert grouping.numbers(pa.array(["01/02/2026"]), 1).tolist() == [0]
    assert grouping.names() == ["2026-02"] and grouping.dates.said() == "day-first"


def test_the_clock_of_one_place():
    texts = ["2026-01-31T23:30:00Z", "Sat Jan 31 23:30:00 +0000 2026", "2026-01-31T23:30:00-05:00",
             "2026-01-31T23:30:00"]  # fmt: skip
    own = days_of(texts)
    there = days_of(texts, zone="Europe/Berlin")
    assert own == [date(2026, 1, 31)] * 4
    assert there == [date(2026, 2, 1)] * 3 + [date(2026, 1, 31)]
    epoch = int(datetime(2026, 1, 31, 23, 30, tzinfo=UTC).timestamp())
    assert days_of([epoch], zone="Asia/Tokyo") == [date(2026, 2, 1)]
    zoned = pa.array([datetime(2026, 1, 31, 20, tzinfo=timezone(timedelta(hours=-5)))])
    stamps, _ = DateReader(zone="UTC").read(zoned.cast(pa.timestamp("us", "UTC")))
    assert int(stamps[0]) // 86400 == (date(2026, 2, 1) - date(1970, 1, 1)).days


@pytest.mark.parametrize(
    "text", ["31/31/2026", "2026-02-30", "next week", "30 Foo 2026", "", "12:30"]
)
def test_what_is_no_date_is_missing(text):
    assert days_of([text, "2026-02-28", "25/12/2026"])[0] is None


def test_numbers_that_are_no_dates_are_refused():
    with pytest.raises(InputError, match=r"the numbers in 'date' \(1 to 12\) are no dates"):
        days_of([1, 5, 12])
    with pytest.raises(InputError, match="no format of dates"):
        DateReader(format="daily")
    with pytest.raises(InputError, match="no time zone"):
        DateReader(zone="Mars/Base")


def test_missing_cells():
    assert days_of([None, "2026-01-31", None]) == [None, date(2026, 1, 31), None]
    _, known = DateReader().read(pa.array([None, np.nan, 1.7e9]))
    assert known.tolist() == [False, False, True]


def test_seconds_and_milliseconds_in_one_column():
    seconds = 1739750400
    told = [seconds, 1000 * seconds, float(10**6 * seconds)]
    assert days_of([str(v) for v in told]) == [date(2025, 2, 17)] * 3
    assert days_of(["1.7397504e+12"] * 2) == [date(2025, 2, 17)] * 2
    assert days_of([str(v) for v in told], format="s") == [date(2025, 2, 17), None, None]
