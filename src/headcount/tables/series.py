"""Shares of one class in groups, as charts and sentences show them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headcount._core.types import Bools, Floats, Ints

MOST_POINTS = 120  # of a chart; more are averaged


def percent(share: float) -> str:
    """A share as people write it: one digit after the point below ten."""
    if np.isnan(share):
        return "?"
    if share == 0:
        return "0 %"
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"


def between(low: float, high: float, word: str = "to") -> str:
    """An interval in words."""
    if np.isnan(low) or np.isnan(high):
        return "how sure is not known"
    return f"{percent(low).removesuffix(' %')} {word} {percent(high)}"


@dataclass(frozen=True, eq=False)
class Series:
    """Shares of one class in groups, in the order to show them.

    Attributes
    ----------
    at : place of each group in time, in whole periods
    step : groups that a point stands for
    """

    names: list[str]
    at: Ints
    sizes: Ints
    share: Floats
    low: Floats
    high: Floats
    counted: Floats
    flagged: Bools
    changed: Bools
    truth: Floats | None = None
    step: int = 1

    def top(self) -> float:
        """Highest value that is drawn."""
        values = [self.high, self.share, self.counted]
        values += [] if self.truth is None else [self.truth]
        return float(np.nanmax(np.concatenate(values)))

    def thinned(self) -> Series:
        """Averages of neighbours by rows, with warnings where most of them have some."""
        n = len(self.names)
        if n <= MOST_POINTS:
            return self
        starts = run_starts(n)
        weight = np.add.reduceat(self.sizes, starts)

        def mean(values: Floats) -> Floats:
            return np.asarray(np.add.reduceat(values * self.sizes, starts) / weight)

        ends = np.append(starts[1:], n) - 1
        return Series(
            [self.names[a] for a in starts],
            (self.at[starts] + self.at[ends]) // 2,
            weight,
            mean(self.share),
            mean(self.low),
            mean(self.high),
            mean(self.counted),
            mean(self.flagged.astype(float)) > 0.5,
            np.zeros(len(starts), dtype=bool),
            None if self.truth is None else mean(self.truth),
            -(-n // MOST_POINTS),
        )

    def ordered(self) -> Series:
        """The same with the highest share first."""
        order = np.argsort(-self.share, kind="stable")
        arrays: dict[str, Any] = {
            name: None if value is None else value[order]
            for name, value in vars(self).items()
            if name not in ("names", "step")
        }
        return replace(self, names=[self.names[i] for i in order], **arrays)

    def tip(self, i: int) -> str:
        """The numbers of one group."""
        many = f"{self.step} from " if self.step > 1 else ""
        said = (
            f"{many}{self.names[i]}: {percent(self.share[i])} "
            f"({between(self.low[i], self.high[i])}), {self.sizes[i]:,} rows; counting would say "
            f"{percent(self.counted[i])}"
        )
        if self.truth is not None and not np.isnan(self.truth[i]):
            said += f"; the truth is {percent(self.truth[i])}"
        said += "; differs from the beginning beyond chance" * bool(self.changed[i])
        return said + "; with a warning" * bool(self.flagged[i])


def runs_of(marks: Bools) -> list[tuple[int, int]]:
    """First and last places of what is marked without a break; one place between is no break."""
    found: list[tuple[int, int]] = []
    for i in np.flatnonzero(marks).tolist():
        if found and i - found[-1][1] <= 2:
            found[-1] = (found[-1][0], i)
        else:
            found.append((i, i))
    return found


def run_starts(n: int) -> Ints:
    """Where the runs of neighbours start that are averaged."""
    return np.arange(MOST_POINTS) * n // MOST_POINTS
