"""Which items are for training, for development and for testing, by their dates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core import validation as check
from headcount._core.calendar import DAY, period_codes, period_name
from headcount._core.types import Bools, Ints
from headcount.exceptions import InputError, choose

EVERY = ("month", "quarter", "year")
BEFORE_ALL, AFTER_ALL = -(10**9), 10**9  # days before and after all others


@dataclass(frozen=True)
class Windows:
    """Windows of time, and the periods that the test window is cut into.

    Parameters
    ----------
    train, test : first and last moment, both included
        Such as ``["2008-08", "2015-07"]``: days, months, quarters (2015-Q3) or years. An empty
        text leaves an end open; a test window without a beginning starts after the training.
    development : first and last moment, optional
        Its periods are bags to select settings on; afterwards it is trained on too.
    every : {'month', 'quarter', 'year'}
    gap : int, default 0
        Periods after the labelled items that are used for nothing.
    minimum : int, default 100
        Items of a test period; smaller ones are left out, and counted.

    Examples
    --------
    >>> days = np.array(["2014-12-31", "2015-01-01", "2015-02-03", "2015-02-04"], "datetime64[D]")
    >>> cut = Windows(["", "2014"], ["2015", "2015"], minimum=2).cut(days.astype(int))
    >>> cut.train.tolist(), cut.names, cut.outside
    ([0], ['2015-02'], {'in a period of fewer than 2 items': 1})
    """

    train: Sequence[Any]
    test: Sequence[Any]
    development: Sequence[Any] | None = None
    every: str = "month"
    gap: int = 0
    minimum: int = 100

    def __post_init__(self) -> None:
        choose("every", self.every, EVERY)
        check.whole("gap", self.gap, 0)
        check.whole("minimum", self.minimum, 1)
        last = BEFORE_ALL
        for name in ("train", "development", "test"):
            first, end = self.days(name)
            if getattr(self, name) is None:
                continue
            if first > end:
                raise InputError(f"{name} = {self._given(name)} ends before it begins.")
            if BEFORE_ALL < first <= last:
                raise InputError(
                    f"{name} = {self._given(name)} begins before the window before it has ended."
                )
            last = end

    def _given(self, name: str) -> Any:
        given = getattr(self, name)
        return None if given is None else list(given)

    def days(self, name: str) -> tuple[int, int]:
        """First and last day of a window, in days since 1970; an empty one if it is not given."""
        given = getattr(self, name)
        if given is None:
            return AFTER_ALL, BEFORE_ALL
        if isinstance(given, str) or len(given) != 2:
            raise InputError(
                f"{name} is a first and a last moment such as ['2008-08', '2015-07'], got "
                f"{given!r}."
            )
        first, last = (_span(str(text), name) for text in given)
        return (
            BEFORE_ALL if first is None else first[0],
            AFTER_ALL if last is None else last[1],
        )

    def cut(self, days: Ints, may_test: Bools | None = None) -> Cut:
        """Give every item its place, from its date in days since 1970.

        Parameters
        ----------
        may_test : bool array, optional
            False for items that are fit for training only.
        """
        inside = {name: self._inside(name, days) for name in ("train", "development", "test")}
        train, dev = inside["train"], inside["development"]
        labelled = train | dev
        if not labelled.any():
            raise InputError(f"no item lies in the training window {self._given('train')}.")
        last = self._last_labelled(days[labelled])
        test = inside["test"] & ~labelled & (days > last)
        outside: dict[str, int] = {}

        def leave_out(which: Bools, why: str) -> None:
            nonlocal test
            if (test & which).any():
                outside[why] = int((test & which).sum())
            test = test & ~which

        codes = period_codes(days * DAY, self.every)
        end = int(period_codes(np.array([last]) * DAY, self.every)[0])
        elsewhere = int((~(labelled | test)).sum())
        if elsewhere:
            outside["outside of the windows"] = elsewhere
        leave_out(codes <= end, f"in the {self.every} in which the training ends")
        leave_out(codes <= end + self.gap, f"in the gap of {self.gap}")
        if may_test is not None:
            leave_out(~may_test, "for training only")
        sizes = np.bincount(codes[test] - end) if test.any() else np.zeros(1, dtype=int)
        small = np.flatnonzero((sizes > 0) & (sizes < self.minimum)) + end
        leave_out(np.isin(codes, small), f"in a period of fewer than {self.minimum} items")
        if not test.any():
            raise InputError(
                f"no period of the test window {self._given('test')} has {self.minimum} items"
                + (f"; left out: {outside}." if outside else ".")
            )
        return Cut(self.every, codes, train, dev, test, outside)

    def _last_labelled(self, days: Ints) -> int:
        """Day on which the labelled windows end, whether or not there are items up to there."""
        last = max(self.days("train")[1], self.days("development")[1])
        return int(days.max()) if last == AFTER_ALL else last

    def _inside(self, name: str, days: Ints) -> Bools:
        first, last = self.days(name)
        return np.asarray((days >= first) & (days <= last))


@dataclass(frozen=True, eq=False)
class Cut:
    """Items by their windows.

    Attributes
    ----------
    codes : period of each item, in periods since 1970
    is_train, is_development, is_test : which items are in which window
    outside : why other items are in none, with their numbers
    """

    every: str
    codes: Ints
    is_train: Bools
    is_development: Bools
    is_test: Bools
    outside: dict[str, int] = field(default_factory=dict)

    @property
    def train(self) -> NDArray[Any]:
        """Numbers of the training items."""
        return np.flatnonzero(self.is_train)

    @property
    def development(self) -> NDArray[Any]:
        """Numbers of the development items."""
        return np.flatnonzero(self.is_development)

    @property
    def test(self) -> NDArray[Any]:
        """Numbers of the test items."""
        return np.flatnonzero(self.is_test)

    @property
    def names(self) -> list[str]:
        """Names of the test periods, in order."""
        return self.names_of(np.unique(self.codes[self.is_test]))

    def names_of(self, codes: Any) -> list[str]:
        """Names of periods."""
        return [period_name(int(c), self.every) for c in codes]


def _span(text: str, name: str) -> tuple[int, int] | None:
    """First and last day of what a text names: a day, a month, a quarter, a year; None if empty."""
    text = text.strip()
    if not text:
        return None
    quarter = re.fullmatch(r"(\d{4})-?[Qq]([1-4])", text)
    if quarter:
        month = np.datetime64(f"{quarter[1]}-{3 * int(quarter[2]) - 2:02}", "M")
        return _day(month), _day(month + 3) - 1
    try:
        if not re.fullmatch(r"\d{4}(-\d\d(-\d\d)?)?", text):
            raise ValueError
        moment = np.datetime64(text)
    except ValueError:
        raise InputError(
            f"{name}: {text!r} is no moment; expected a year, quarter, month or day such as 2015, "
            "2015-Q3, 2015-07 or 2015-07-31."
        ) from None
    return _day(moment), _day(moment + 1) - 1


def _day(moment: Any) -> int:
    return int(np.datetime64(moment, "D").astype(np.int64))
