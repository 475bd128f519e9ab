"""What the page tells first: the shares now, what changed and since when, whether to trust it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from headcount._core.types import Bools, Floats, Ints
from headcount.data.groups import MISSING, UNREADABLE
from headcount.data.tables import as_names
from headcount.exceptions import InputError, choose
from headcount.inference.diagnostics import FEW, LEVEL
from headcount.inference.intervals import Interval
from headcount.tables.change import changes, differ_from_first, first_group
from headcount.tables.charts import MOST_POINTS, Series, between, percent, run_starts
from headcount.tables.combine import join
from headcount.tables.result import Count

RECENT = 3  # periods that tell which classes are frequent now
CARDS = 4  # classes of the first screen
OTHERS = "all others"
# What a flag means to somebody who decides, the worst first.
FLAGS = {
    "misfit": "more than the shares has changed here, and the true share may lie outside the "
    "interval; label some of these rows and fit again",
    "strange": "a part of the rows looks like nothing that was labelled; read some of them",
    "weak": "the classes can hardly be told apart; label more rows, or look at better columns",
    "drift": "the rows look different from the labelled ones, so the answer may be off; label "
    "some of them if much depends on it",
    "few": f"fewer than {FEW} rows; read the interval, not the share",
    "nodate": "rows whose date could not be read",
}
GRAVE = ("misfit", "strange", "weak")


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
            np.array([bool(found.flags(g)) for g in keep], dtype=bool),
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

    def flagged(self, names: tuple[str, ...]) -> list[str]:
        """Groups that carry one of these flags."""
        found = self.found
        return [n for g, n in enumerate(found.groups) if set(names) & set(found.flags(g))]


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
        return _extremes(series)
    reference = facts.reference if series.step == 1 else series.names[0]
    if reference is None:
        return f"No {facts.noun} is large enough to say whether anything changed."
    start = series.names.index(reference)
    before = f"{reference} ({percent(series.share[start])})"
    if not series.changed.any():
        return f"No {facts.noun} differs from {before} beyond chance."
    runs = _runs(series.changed)
    first, last = runs[-1]
    higher = series.share[first] > series.share[start]
    direction = "Higher" if higher else "Lower"
    most = int(np.argmax(series.share) if higher else np.argmin(series.share))
    extreme = "highest" if higher else "lowest"
    peak = f"{extreme} in {series.names[most]} at {percent(series.share[most])}"
    if last == len(series.names) - 1:
        return f"{direction} than in {before} since {series.names[first]}; {peak}."
    when = f"from {series.names[first]} to {series.names[last]}, {peak}"
    if first == last:
        when = f"in {series.names[first]} at {percent(series.share[first])}"
    return f"Not clearly different from {before} now; it was {direction.lower()} {when}."


def _runs(marks: Bools) -> list[tuple[int, int]]:
    """First and last places of what is marked without a break; one place between is no break."""
    found: list[tuple[int, int]] = []
    for i in np.flatnonzero(marks).tolist():
        if found and i - found[-1][1] <= 2:
            found[-1] = (found[-1][0], i)
        else:
            found.append((i, i))
    return found


def _extremes(series: Series) -> str:
    """Groups with the highest and the lowest share, of those that are large enough."""
    large = np.flatnonzero(series.sizes >= FEW)
    if len(large) < 2:
        return ""
    ends = [int(large[f(series.share[large])]) for f in (np.argmax, np.argmin)]
    told = [
        f"{series.names[i]} at {percent(series.share[i])} "
        f"({between(series.low[i], series.high[i])})"
        for i in ends
    ]
    return f"Highest: {told[0]}. Lowest: {told[1]}."


def judge_trust(facts: Facts, quality: dict[str, Any] | None) -> tuple[str, str]:
    """Whether to trust the page (good, care or bad), and why, in two sentences."""
    if quality is not None and (
        quality["error"] > quality["counting"] + 0.02 or quality["coverage"] < 0.8
    ):
        return "bad", "No. The model did badly on labelled rows that it had not seen. " + _checked(
            quality
        )
    grave = facts.flagged(GRAVE)
    last = facts.groups[-1] if facts.over_time else ""
    total = len(facts.found.groups)
    if grave and (last in grave or len(grave) > total / 2):
        which = last if last in grave else facts.count_groups(len(grave))
        return "bad", f"Not for {which}: see the warnings below. " + _checked(quality)
    share = f"{len(grave):,} of {facts.count_groups(total)}"
    if grave and len(grave) > most_by_chance(total):
        return "care", f"Yes, except for {share}: see the warnings below. " + _checked(quality)
    if grave:
        few = f"Yes: {share} carry a warning, which is about as many as chance gives. "
        return "good", few + _checked(quality)
    mild = facts.flagged(tuple(FLAGS))
    if mild:
        share = f"{len(mild):,} of {facts.count_groups(total)}"
        return "care", f"With some care: {share} carry a small warning. " + _checked(quality)
    return "good", "Yes, as far as can be checked. " + _checked(quality)


def most_by_chance(n: int) -> float:
    """Groups that carry `misfit` though nothing is wrong with any of so many, at most."""
    return float(LEVEL * n + 2 * np.sqrt(n * LEVEL * (1 - LEVEL))) if n >= 20 else 0.0


def _checked(quality: dict[str, Any] | None) -> str:
    """What the check on labelled rows said, in words."""
    if quality is None:
        return "There were too few labelled rows to check it."
    return (
        f"On labelled rows that it had not seen it was off by {100 * quality['error']:.1f} points "
        f"(counting: {100 * quality['counting']:.1f}), and {100 * quality['coverage']:.0f} of 100 "
        "intervals held the true share."
    )


def list_warnings(facts: Facts) -> list[tuple[str, str, list[str]]]:
    """Flag, sentence and groups, the worst first."""
    found = facts.found
    groups: dict[str, list[str]] = {}
    for g, name in enumerate(found.groups):
        for flag in found.flags(g):
            groups.setdefault(flag.split(":")[0], []).append(name)
    order = sorted(groups, key=lambda f: list(FLAGS).index(f) if f in FLAGS else len(FLAGS))
    return [(flag, FLAGS.get(flag, flag), groups[flag]) for flag in order]


def most_different(facts: Facts, series: Series, n: int = 20) -> Ints:
    """Groups that are furthest from the rest beyond their interval; the largest if none is."""
    if facts.over_time and facts.reference is not None:
        base = series.share[series.names.index(facts.reference)]
        sure = series.changed
    else:
        base = float(series.sizes @ series.share / series.sizes.sum())
        sure = ((series.low > base) | (series.high < base)) & (series.sizes >= FEW)
    far: Floats = np.where(sure, np.abs(series.share - base), -1.0)
    order = np.argsort(-far if sure.any() else -series.sizes, kind="stable")[:n]
    return np.asarray(order[sure[order]] if sure.any() else order)
