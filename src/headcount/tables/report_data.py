"""What the page reports: current shares, what changed and when, and which groups are flagged."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from headcount._core.types import Bools, Floats, Ints
from headcount.data.groups import MISSING, UNREADABLE
from headcount.exceptions import InputError, choose
from headcount.tables.changes import first_group
from headcount.tables.charts import CHART_POINTS, Series, between, percent, run_starts, runs_of
from headcount.tables.estimation import (
    SMALL_BAG,
    Interval,
    change_p_values,
    differ_from_first,
    draw_unions,
    join_groups,
    of_population,
)
from headcount.tables.result import GroupShares


@dataclass(frozen=True, eq=False)
class ReportData:
    """Shares of groups as the page shows them.

    Attributes
    ----------
    keep, at : numbers of the groups in the chart, and their places in time
    shown : numbers of the classes to show, the most frequent first
    changed : which class of which group in the chart differs from the reference by more than chance
    """

    shares: GroupShares
    names: list[str]
    keep: Ints
    at: Ints
    shown: list[int]
    changed: Bools
    reference: str | None

    @property
    def over_time(self) -> bool:
        """Whether the groups are periods."""
        return self.shares.by.period is not None

    @property
    def noun(self) -> str:
        """Word for a group."""
        return self.shares.by.period or "group"

    @property
    def groups(self) -> list[str]:
        """Names of the groups in the chart."""
        return [self.shares.groups[g] for g in self.keep]

    def count_groups(self, n: int) -> str:
        """A number of groups in words."""
        return f"{n:,} {self.noun}{'s' * (n != 1)}"

    @cached_property
    def whole(self) -> Interval:
        """Shares of all rows."""
        return join_groups(self.shares, np.zeros(len(self.shares.groups), dtype=np.int64))

    @cached_property
    def averages(self) -> tuple[Interval, Bools]:
        """Neighbouring periods together, and whether they differ from the first."""
        starts, shares = run_starts(len(self.keep)), self.shares
        owner = np.full(len(shares.groups), CHART_POINTS)  # groups without a place come last
        owner[self.keep] = np.searchsorted(starts, np.arange(len(self.keep)), side="right") - 1
        unions = draw_unions(shares, owner)
        return unions.interval(shares.interval.level), differ_from_first(shares, unions)

    def series(self, which: int | list[int]) -> Series:
        """Shares of one class, or of some together, in the chart; many periods are averaged."""
        series = self.whole_series(which)
        if not self.over_time or len(series.names) <= CHART_POINTS:
            return series
        # Small groups are not small together.
        few = np.array([own <= {"few"} for own in self.flags], dtype=bool)
        union, changed = self.averages
        bounds = self._bounds(union, np.arange(CHART_POINTS), which)
        marks = np.zeros(CHART_POINTS, dtype=bool)
        marks = marks if isinstance(which, list) else changed[:CHART_POINTS, which]
        return replace(series, flagged=series.flagged & ~few).thinned(*bounds, marks)

    def whole_series(self, which: int | list[int]) -> Series:
        """Shares of one class, or of some together, in every group of the chart."""
        shares, keep = self.shares, self.keep
        one = not isinstance(which, list)
        columns = np.atleast_1d(which)
        truth = shares.truth
        return Series(
            self.groups,
            self.at,
            shares.sizes[keep],
            *self._bounds(shares.interval, keep, which),
            shares.counted[keep][:, columns].sum(axis=1),
            np.array([bool(own) for own in self.flags], dtype=bool),
            self.changed[:, columns[0]] if one else np.zeros(len(keep), dtype=bool),
            None if truth is None else truth[keep][:, columns].sum(axis=1),
        )

    def others(self, classes: list[int]) -> list[int]:
        """All classes but these."""
        return [c for c in range(len(self.names)) if c not in classes]

    def _bounds(
        self, interval: Interval, rows: Ints, which: int | list[int]
    ) -> tuple[Floats, Floats, Floats]:
        """Share and interval of a class, or of some by their intervals and those of the others."""
        if not isinstance(which, list):
            return tuple(v[rows, which] for v in (interval.prevalence, interval.low, interval.high))

        def total(values: Floats, columns: list[int]) -> Floats:
            return np.asarray(values[rows][:, columns].sum(axis=1))

        others, share = self.others(which), total(interval.prevalence, which)
        low = np.maximum(total(interval.low, which), 1 - total(interval.high, others))
        high = np.minimum(total(interval.high, which), 1 - total(interval.low, others))
        return share, np.clip(np.minimum(low, share), 0, 1), np.clip(np.maximum(high, share), 0, 1)

    def now(self, classes: list[int]) -> tuple[float, float, float]:
        """Share and interval of classes together: in the last period, or in all rows."""
        if self.over_time:
            last = self.series(classes if len(classes) > 1 else classes[0])
            return float(last.share[-1]), float(last.low[-1]), float(last.high[-1])
        share, low, high = (float(v[0]) for v in self._bounds(self.whole, np.arange(1), classes))
        return share, low, high

    @cached_property
    def flags(self) -> list[set[str]]:
        """Flags of every group in the chart."""
        return [set(text.split()) for text in self.shares.marks()[self.keep].tolist()]

    def flagged(self, names: Collection[str]) -> Ints:
        """Places, in the chart, of the groups with one of these flags."""
        return np.flatnonzero([bool(own & set(names)) for own in self.flags])


def gather_report(shares: GroupShares, only: str | None = None) -> ReportData:
    """Report of shares; `only` names the class to show."""
    names = shares.class_names
    if only is not None:
        choose("class", only, names)
    times = shares.by.times()
    dated = [g for g, name in enumerate(shares.groups) if name not in (MISSING, UNREADABLE)]
    keep = np.array(dated or range(len(shares.groups)))
    at = [times.get(shares.groups[g], i) for i, g in enumerate(keep)]
    # Of several classes over time, those come first that were frequent in the last three periods.
    recent = keep[-3:] if shares.by.period is not None and len(names) > 2 else keep
    means = shares.sizes[recent] @ shares.interval.prevalence[recent]
    order = np.argsort(-means, kind="stable").tolist()
    shown = order[1:] if len(names) == 2 else order  # the rarer of two classes implies the other
    if only is not None:
        shown = [names.index(only)]
    changed, reference = _changes(shares, keep)
    return ReportData(shares, names, keep, np.array(at), shown, changed, reference)


def _changes(shares: GroupShares, keep: Ints) -> tuple[Bools, str | None]:
    """Which shares of groups in the chart differ from the first large one, and its name."""
    unchanged = np.zeros((len(keep), len(shares.interval.classes)), dtype=bool)
    if shares.by.period is None or len(keep) < 2:
        return unchanged, None
    try:
        reference = first_group(shares)
    except InputError:  # no group is large enough to compare with
        return unchanged, None
    weight = np.array([float(name == reference) for name in shares.groups])
    p = change_p_values(of_population(shares), weight)
    return p[keep] < 1 - shares.interval.level, reference


def change_sentence(data: ReportData, series: Series) -> str:
    """What changed and since when, for one class."""
    if len(series.names) < 2:
        return ""
    if not data.over_time:
        return _extremes(series, data.shares.by.column or "")
    noun, step, share = data.noun, series.step, series.share
    reference = data.reference if step == 1 else series.names[0]
    if reference is None:
        return f"No {noun} is large enough to say whether anything changed."
    start = series.names.index(reference)
    before = f"{spoken(reference, noun, step)} ({percent(share[start])})"
    if not series.changed.any():
        return f"No {noun} differs from {before} beyond chance."
    first, last = _main_run(series, start)
    higher = share[first] > share[start]
    direction, extreme = ("Higher", "highest") if higher else ("Lower", "lowest")
    most = first + int((np.argmax if higher else np.argmin)(share[first : last + 1]))
    names = [spoken(series.names[i], noun) for i in (first, last)]
    peak = f"{extreme} in {spoken(series.names[most], noun, step)} at {percent(share[most])}"
    if last == len(series.names) - 1:
        return f"{direction} than in {before} since {names[0]}; {peak}."
    when = f"from {names[0]} to {names[1]}, {peak}"
    if first == last:
        when = f"in {spoken(series.names[first], noun, step)} at {percent(share[first])}"
    return f"Not clearly different from {before} now; it was {direction.lower()} {when}."


def _main_run(series: Series, start: int) -> tuple[int, int]:
    """The changed periods that go on until now, or else those with the largest change."""
    runs = runs_of(series.changed)
    if runs[-1][1] == len(series.names) - 1:
        return runs[-1]
    far = np.where(series.changed, np.abs(series.share - series.share[start]), 0.0)
    return max(runs, key=lambda run: far[run[0] : run[1] + 1].max())


def spoken(name: str, noun: str, step: int = 1) -> str:
    """A period as a sentence has it; several consecutive ones by the first of them."""
    if noun == "hour":
        name = f"{name.replace('T', ' ')}:00"
    if step > 1:
        return f"the {step} {noun}s from {name}"
    return f"the week of {name}" if noun == "week" else name


def _extremes(series: Series, column: str) -> str:
    """Groups with the highest and the lowest share, of those that are large enough."""
    large = np.flatnonzero(series.sizes >= SMALL_BAG)
    if len(large) < 2:
        return ""
    prefix = f"{column} " * all(name.isdigit() for name in series.names)
    texts = [
        f"{prefix}{series.names[i]} at {percent(series.share[i])} "
        f"({between(series.low[i], series.high[i])})"
        for i in (large[f(series.share[large])] for f in (np.argmax, np.argmin))
    ]
    return f"Highest: {texts[0]}. Lowest: {texts[1]}."


def most_different(data: ReportData, series: Series, n: int) -> tuple[Ints, bool]:
    """Groups furthest from the rest beyond their interval; the largest, and False, if none is."""
    if data.over_time and data.reference is not None:
        base = series.share[series.names.index(data.reference)]
        differs = series.changed
    else:
        base = float(series.sizes @ series.share / series.sizes.sum())
        differs = (series.low > base) | (series.high < base)
        differs &= series.sizes >= SMALL_BAG
    far: Floats = np.where(differs, np.abs(series.share - base), -1.0)
    order = np.argsort(-far if differs.any() else -series.sizes, kind="stable")[:n]
    return np.asarray(order[differs[order]] if differs.any() else order), bool(differs.any())
