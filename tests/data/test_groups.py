"""Groups of rows by periods and by other columns."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headcount import InputError
from headcount.data.groups import Grouping


@pytest.mark.parametrize(
    ("period", "names"),
    [
        ("year", ["2023", "2024"]),
        ("quarter", ["2023-Q4", "2024-Q1"]),
        ("month", ["2023-12", "2024-01", "2024-02"]),
        ("week", ["2023-12-25", "2024-01-01", "2024-02-26"]),
        ("day", ["2023-12-31", "2024-01-01", "2024-02-29"]),
        ("hour", ["2023-12-31T23", "2024-01-01T00", "2024-02-29T12"]),
    ],
)
@pytest.mark.parametrize("as_text", [False, True])
def test_periods(period, names, as_text):
    texts = ["2024-02-29 12:30:00", "2023-12-31 23:59:59", "2024-01-01 00:00:00"]
    column = pa.array(texts)
    if not as_text:
        column = column.cast(pa.timestamp("us"))
    grouping = Grouping("when", period)
    numbers = grouping.numbers(column, 3)
    shown = [grouping.names()[g] for g in grouping.order()]
    assert shown == names
    assert grouping.names()[numbers[1]] == names[0]


def test_groups_of_other_things():
    grouping = Grouping("shop")
    assert grouping.numbers(pa.array(["b", None, "a", "b"]), 4).tolist() == [0, 1, 2, 0]
    assert [grouping.names()[g] for g in grouping.order()] == ["a", "b", "(missing)"]
    dates = Grouping("d", "month")
    assert dates.numbers(pa.array(["2024-01-05", "some day", "2024-01", "2024"]), 4).tolist() == [
        0,
        1,
        0,
        0,
    ]
    assert dates.unreadable == 1
    with pytest.raises(InputError, match="are no dates that are known"):
        Grouping("d", "day").numbers(pa.array([15]), 1)
    plain = pa.array(["2024-01-01 00:30:00"]).cast(pa.timestamp("s"))
    zoned = pc.assume_timezone(plain, "UTC").cast(pa.timestamp("s", "America/New_York"))
    late = Grouping("d", "day")
    late.numbers(zoned, 1)
    assert late.names() == ["2023-12-31"]
