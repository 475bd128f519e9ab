"""What the page tells first: the shares now, what changed and since when, whether to trust it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from headcount._core.types import Bools, Floats, Ints
from headcount.data.groups import MISSING, UNREADABLE
from headcount.data.tables import as_names
from headcount.exceptions import InputError, choose
from headcount.inference.diagnostics import FEW
from headcount.inference.intervals import Interval
from headcount.tables.change import changes, differ_from_first, first_group
from headcount.tables.combine import join
from headcount.tables.result import Count
from headcount.tables.series import MOST_POINTS, Series, between, percent, run_starts, runs_of

RECENT = 3  # periods that tell which classes are frequent now
CARDS = 4  # classes of the first screen
OTHERS = "all others"


@dataclass(frozen=True, eq=False)
class Facts:
    """A count as the page shows it.

    Attributes
    ----------
    keep : numbers of the groups that have a place in the chart
    shown : numbers of the classes that are told, the most frequent first
    changed : which class of which kept group differs from the reference by more than chance
    """

    found: Count
    names: list[str]
    keep: Ints
    at: Ints
    shown: list[int]
    changed: Bools
    reference: str | None

    @property
    def over_time(self) -> bool:
        """Whether the groups follow each other in time."""
        return self.found.by.period is not None

    @property
    def noun(self) -> str:
        """What to call a group."""
        return self.found.by.period or "group"

    @property
    def groups(self) -> list[str]:
        """Names of the kept groups."""
        return [self.found.groups[g] for g in self.keep]

    def count_groups(self, n: int) -> str:
        """A number of groups in words."""
        return f"{n:,} {self.noun}{'s' * (n != 1)}"

    @cached_property
    def whole(self) -> Interval:
        """Shares with bounds of all rows."""
        return join(self.found, np.zeros(len(self.found.groups), dtype=np.int64))

    @cached_property
    def averages(self) -> tuple[Interval, Bools]:
        """Neighbouring periods together, and whether they differ from the first."""
        starts = run_starts(len(self.keep))
        owner = np.full(len(self.found.groups), MOST_POINTS)  # what is not kept comes last
        owner[self.keep] = np.searchsorted(starts, np.arange(len(self.keep)), side="right") - 1
        joined = join(self.found, owner)
        return joined, differ_from_first(self.found, joined, owner)

    def series(self, c: int) -> Series:
        """Shares of one class over time, or in groups; very many periods are averaged."""
        series = self.whole_series(c)
        if not self.over_time or len(series.names) <= MOST_POINTS:
            return series
        few = np.array([own <= {"few"} for own in self.flags], dtype=bool)  # together they are many
        series = replace(series, flagged=series.flagged & ~few)
        joined, changed = self.averages
        drawn = {name: getattr(joined, name)[:MOST_POINTS, c] for name in ("low", "high")}
        share = joined.prevalence[:MOST_POINTS, c]
        return replace(series.thinned(), share=share, changed=changed[:MOST_POINTS, c], **drawn)

    def whole_series(self, c: int) -> Series:
        """Shares of one class in every kept group."""
        found, keep = self.found, self.keep
        return Series(
            self.groups,
            self.at,
            found.sizes[keep],
            found.interval.prevalence[keep, c],
            found.interval.low[keep, c],
            found.interval.high[keep, c],
            found.counted[keep, c],
            np.array([bool(own) for own in self.flags], dtype=bool),
            self.changed[:, c],
            None if found.truth is None else found.truth[keep, c],
        )

    def rest(self, classes: list[int]) -> Series:
        """All other classes than these together; the bounds hold if those of the classes do."""
        other = self._but(classes)
        series = self.series(other[0])
        interval, rows = self.found.interval, self.keep
        if series.step > 1:
            interval, rows = self.averages[0], np.arange(MOST_POINTS)
        share, low, high = _together(interval, rows, other, classes)

        def total(name: str) -> Floats | None:
            each = [getattr(self.series(c), name) for c in other]
            return None if each[0] is None else np.asarray(np.sum(each, axis=0))

        counted, truth = np.asarray(total("counted")), total("truth")
        changed = np.zeros(len(series.names), dtype=bool)
        return replace(
            series, share=share, low=low, high=high, counted=counted, truth=truth, changed=changed
        )

    def now(self, classes: list[int]) -> tuple[float, float, float]:
        """Share and bounds of classes together: in the last period, or in all rows."""
        if self.over_time:
            last = self.series(classes[0]) if len(classes) == 1 else self.rest(self._but(classes))
            return float(last.share[-1]), float(last.low[-1]), float(last.high[-1])
        found = _together(self.whole, np.arange(1), classes, self._but(classes))
        share, low, high = (float(values[0]) for values in found)
        return share, low, high

    def _but(self, classes: list[int]) -> list[int]:
        return [c for c in range(len(self.names)) if c not in classes]

    @cached_property
    def flags(self) -> list[set[str]]:
        """Flags of every kept group."""
        marks = self.found.marks()[self.keep].tolist()
        return [set(text.split()) for text in marks]

    def flagged(self, names: Collection[str]) -> Ints:
        """Places, among the kept groups, of those that carry one of these flags."""
        return np.flatnonzero([bool(own & set(names)) for own in self.flags])


def _together(
    found: Interval, rows: Ints, classes: list[int], others: list[int]
) -> tuple[Floats, Floats, Floats]:
    """Share and bounds of classes together, by their own bounds and by those of the others."""

    def total(values: Floats, columns: list[int]) -> Floats:
        return np.asarray(values[rows][:, columns].sum(axis=1))

    share = total(found.prevalence, classes)
    low = np.maximum(total(found.low, classes), 1 - total(found.high, others))
    high = np.minimum(total(found.high, classes), 1 - total(found.low, others))
    return share, np.clip(np.minimum(low, share), 0, 1), np.clip(np.maximum(high, share), 0, 1)


def gather_facts(found: Count, only: str | None = None) -> Facts:
    """Facts about a count; `only` names the class that is asked about."""
    names = [str(name) for name in as_names(found.interval.classes).tolist()]
    if only is not None:
        choose("class", only, names)
    times = found.by.times()
    kept = [g for g, name in enumerate(found.groups) if name not in (MISSING, UNREADABLE)]
    keep = np.array(kept or range(len(found.groups)))
    at = [times.get(found.groups[g], i) for i, g in enumerate(keep)]
    by_time = found.by.period is not None and len(names) > 2
    recent = keep[-RECENT:] if by_time else keep
    means = found.sizes[recent] @ found.interval.prevalence[recent]
    order = np.argsort(-means, kind="stable").tolist()
    if only is not None:
        shown = [names.index(only)]
    else:
        shown = order[1:] if len(names) == 2 else order  # of two classes the rarer tells all
    changed, reference = _changes(found, keep)
    return Facts(found, names, keep, np.array(at), shown, changed, reference)


def _changes(found: Count, keep: Ints) -> tuple[Bools, str | None]:
    """Which shares of kept groups differ from the first large one, and its name."""
    changed = np.zeros((len(keep), len(found.interval.classes)), dtype=bool)
    if found.by.period is None or len(keep) < 2:
        return changed, None
    try:
        reference = first_group(found)
        frame = changes(found, [reference])
    except InputError:  # no group is large enough to compare with
        return changed, None
    places = {found.groups[g]: i for i, g in enumerate(keep)}
    k = changed.shape[1]
    for name, marks in zip(frame["group"][::k], frame["changed"].reshape(-1, k), strict=True):
        if str(name) in places:
            changed[places[str(name)]] = marks
    return changed, reference


def change_sentence(facts: Facts, series: Series) -> str:
    """What changed and since when, for one class."""
    if len(series.names) < 2:
        return ""
    if not facts.over_time:
        return _extremes(series, facts.found.by.column or "")
    noun, step = facts.noun, series.step
    reference = facts.reference if step == 1 else series.names[0]
    if reference is None:
        return f"No {facts.noun} is large enough to say whether anything changed."
    start = series.names.index(reference)
    before = f"{spoken(reference, noun, step)} ({percent(series.share[start])})"
    if not series.changed.any():
        return f"No {noun} differs from {before} beyond chance."
    first, last = _run_to_tell(series, start)
    higher = series.share[first] > series.share[start]
    direction = "Higher" if higher else "Lower"
    most = first + int((np.argmax if higher else np.argmin)(series.share[first : last + 1]))
    extreme = "highest" if higher else "lowest"
    names = [spoken(series.names[i], noun) for i in (first, last)]
    peak = f"{extreme} in {spoken(series.names[most], noun, step)} at {percent(series.share[most])}"
    if last == len(series.names) - 1:
        return f"{direction} than in {before} since {names[0]}; {peak}."
    when = f"from {names[0]} to {names[1]}, {peak}"
    if first == last:
        when = f"in {spoken(series.names[first], noun, step)} at {percent(series.share[first])}"
    return f"Not clearly different from {before} now; it was {direction.lower()} {when}."


def _run_to_tell(series: Series, start: int) -> tuple[int, int]:
    """The changed periods that go on until now, or else those with the largest change."""
    runs = runs_of(series.changed)
    if runs[-1][1] == len(series.names) - 1:
        return runs[-1]
    far = np.where(series.changed, np.abs(series.share - series.share[start]), 0.0)
    return max(runs, key=lambda run: far[run[0] : run[1] + 1].max())


def spoken(name: str, noun: str, step: int = 1) -> str:
    """A period as a sentence has it; several in a row by the first of them."""
    if noun == "hour":
        name = f"{name.replace('T', ' ')}:00"
    if step > 1:
        return f"the {step} {noun}s from {name}"
    return f"the week of {name}" if noun == "week" else name


def _extremes(series: Series, column: str) -> str:
    """Groups with the highest and the lowest share, of those that are large enough."""
    large = np.flatnonzero(series.sizes >= FEW)
    if len(large) < 2:
        return ""
    ends = [int(large[f(series.share[large])]) for f in (np.argmax, np.argmin)]
    plain = all(name.isdigit() for name in series.names)  # a number says little by itself
    told = [
        f"{f'{column} ' * plain}{series.names[i]} at {percent(series.share[i])} "
        f"({between(series.low[i], series.high[i])})"
        for i in ends
    ]
    return f"Highest: {told[0]}. Lowest: {told[1]}."


def most_different(facts: Facts, series: Series, n: int = 20) -> tuple[Ints, bool]:
    """Groups furthest from the rest beyond their interval; the largest, and False, if none is."""
    if facts.over_time and facts.reference is not None:
        base = series.share[series.names.index(facts.reference)]
        sure = series.changed
    else:
        base = float(series.sizes @ series.share / series.sizes.sum())
        sure = ((series.low > base) | (series.high < base)) & (series.sizes >= FEW)
    far: Floats = np.where(sure, np.abs(series.share - base), -1.0)
    order = np.argsort(-far if sure.any() else -series.sizes, kind="stable")[:n]
    return np.asarray(order[sure[order]] if sure.any() else order), bool(sure.any())
