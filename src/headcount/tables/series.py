"""Shares of one class in groups, as charts and sentences show them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from headcount._core.types import Bools, Floats, Ints

CHART_POINTS = 120  # points of a chart, beyond which groups are averaged (layout)


def percent(share: float) -> str:
    """A share in percent, with one decimal below ten."""
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
    """Shares of one class in groups, in the order to show.

    Attributes
    ----------
    at : place of each group in time, in whole periods
    step : groups that a point represents
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
        """Averages of neighbours by rows, flagged where most of them are."""
        n = len(self.names)
        if n <= CHART_POINTS:
            return self
        starts = run_starts(n)
        last = np.append(starts[1:], n) - 1
        weight = np.add.reduceat(self.sizes, starts)

        def mean(values: Floats | Bools) -> Floats:
            total = np.add.reduceat(values.astype(float) * self.sizes, starts)
            return np.asarray(total / weight)

        means: Any = {
            name: mean(getattr(self, name)) for name in ("share", "low", "high", "counted")
        }
        return Series(
            names=[self.names[a] for a in starts],
            at=(self.at[starts] + self.at[last]) // 2,
            sizes=weight,
            flagged=mean(self.flagged) > 0.5,
            changed=np.zeros(len(starts), dtype=bool),
            truth=None if self.truth is None else mean(self.truth),
            step=-(-n // CHART_POINTS),
            **means,
        )

    def ordered(self) -> Series:
        """The same with the highest share first."""
        order = np.argsort(-self.share, kind="stable")
        arrays: dict[str, Any] = {
            f.name: getattr(self, f.name)[order]
            for f in fields(self)
            if isinstance(getattr(self, f.name), np.ndarray)
        }
        return replace(self, names=[self.names[i] for i in order], **arrays)

    def tip(self, i: int) -> str:
        """The numbers of one group."""
        many = f"{self.step} from " if self.step > 1 else ""
        text = (
            f"{many}{self.names[i]}: {percent(self.share[i])} "
            f"({between(self.low[i], self.high[i])}), {self.sizes[i]:,} rows; counting would say "
            f"{percent(self.counted[i])}"
        )
        if self.truth is not None and not np.isnan(self.truth[i]):
            text += f"; the truth is {percent(self.truth[i])}"
        text += "; differs from the beginning beyond chance" * bool(self.changed[i])
        return text + "; with a warning" * bool(self.flagged[i])


def runs_of(marks: Bools) -> list[tuple[int, int]]:
    """First and last places of runs of marks; a single unmarked place does not interrupt."""
    runs: list[tuple[int, int]] = []
    for i in np.flatnonzero(marks).tolist():
        if runs and i - runs[-1][1] <= 2:
            runs[-1] = (runs[-1][0], i)
        else:
            runs.append((i, i))
    return runs


def run_starts(n: int) -> Ints:
    """Starts of the runs of neighbours that are averaged."""
    return np.arange(CHART_POINTS) * n // CHART_POINTS
