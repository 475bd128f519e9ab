"""Whether the page can be trusted: a verdict, and warnings with their sizes."""

from __future__ import annotations

import numpy as np

from headcount._core.types import Floats, Ints
from headcount.tables.charts import CHART_POINTS
from headcount.tables.estimation import FIT_LEVEL, SMALL_BAG
from headcount.tables.report_data import ReportData, spoken
from headcount.tables.training import QualityReport

FLAGS = ("misfit", "strange", "weak", "drift", "few", "nodate")  # the worst first
Verdict = tuple[str, str]  # good, care or bad, and why


def judge_trust(data: ReportData, quality: QualityReport | None) -> Verdict:
    """Whether to trust the page (good, care or bad), and why, in two sentences."""
    checked = _quality_text(quality)
    if quality is not None and quality.is_bad:
        why = f"No. The model did badly on labelled rows that it had not seen. {checked}"
        return "bad", why
    level, text = _judge_groups(data)
    if level == "good" and any(note.kind == "groups at fitting" for note in data.shares.notes):
        level, text = "care", "Not without a look at the last warning below."
    return level, f"{text} {checked}"


def _judge_groups(data: ReportData) -> Verdict:
    """The same by the flags of the groups."""
    total = len(data.groups)
    grave, mild = data.flagged(("misfit", "strange")), data.flagged(FLAGS)
    if len(grave):
        return _judge_grave(data, grave, total)
    if len(data.flagged(["weak"])):
        text = f"With care: {_alike(data)} can hardly be told apart, so intervals are wide."
        return "care", text
    share = f"{len(mild):,} of {data.count_groups(total)}"
    if len(mild) and total > CHART_POINTS and set().union(*data.flags) == {"few"}:
        shown = "the averages shown" if data.over_time else "all rows together"
        return (
            "good",
            f"Yes for {shown}; {share} have fewer than {SMALL_BAG} rows and tell little alone.",
        )
    if len(mild):
        return "care", f"With some care: {share} {_carry(mild)} a small warning."
    return "good", "Yes, as far as can be checked."


def _judge_grave(data: ReportData, grave: Ints, total: int) -> Verdict:
    share = f"{len(grave):,} of {data.count_groups(total)}"
    last_flagged = data.over_time and total - 1 in grave
    last = spoken(data.groups[-1], data.noun)
    if len(grave) <= most_by_chance(total):
        where = f", {last} among them," if last_flagged else ""
        text = f"Yes: {share}{where} {_carry(grave)} a warning, about as many as chance gives."
        return "care" if last_flagged else "good", text
    if not last_flagged and len(grave) <= total / 2:
        return "care", f"Yes, except for {share}: see the warnings below."
    where = last if last_flagged else share
    where = where if total > 1 else "these rows"
    off = _sizes(data, grave[-1:] if last_flagged else grave)
    large = float(off.max()) >= 0.1
    head = f"Not for {where}" if large else f"With care for {where}"
    return "bad" if large else "care", f"{head}: {_off_text(off)}."


def most_by_chance(n: int) -> float:
    """Upper limit (two standard deviations) of the groups out of n with a false `misfit`."""
    mean = FIT_LEVEL * n
    return float(mean + 2 * np.sqrt(mean * (1 - FIT_LEVEL))) if n >= 20 else 0.0


def list_warnings(data: ReportData) -> list[tuple[str, str, list[str]]]:
    """Flag, sentence and groups, the worst first."""
    places = {flag: data.flagged([flag]) for flag in FLAGS}
    return [
        (flag, _sentence(data, flag, own), [data.groups[g] for g in own])
        for flag, own in places.items()
        if len(own)
    ]


def _sentence(data: ReportData, flag: str, places: Ints) -> str:
    """What a flag means for a decision, with its size."""
    strange = 100 * data.shares.diagnosis.strange[data.keep[places]]
    return {
        "misfit": f"more than the shares has changed: {_off_text(_sizes(data, places))}; label "
        "some of these rows and fit again",
        "strange": f"at least {_span(strange)} % of the rows look like nothing that was labelled; "
        "read some of them",
        "weak": f"{_alike(data)} can hardly be told apart; label more rows of them, or look at "
        "better columns",
        "drift": "the rows look different from the labelled ones, so the answer may be off; label "
        "some of them if much depends on it",
        "few": f"fewer than {SMALL_BAG} rows; read the interval, not the share",
        "nodate": "rows whose date could not be read",
    }[flag]


def _carry(places: Ints) -> str:
    return "carry" if len(places) > 1 else "carries"


def _sizes(data: ReportData, places: Ints) -> Floats:
    """How far off groups may be beyond chance."""
    return np.asarray(data.shares.diagnosis.off[data.keep[places]].max(axis=1))


def _off_text(off: Floats) -> str:
    if off.max() < 0.005:
        return "what is seen moves the share by less than a point"
    return (
        f"the share may be off by about {_span(100 * off)} points more than chance explains, "
        "which the interval allows for"
    )


def _span(values: Floats) -> str:
    low, high = f"{values.min():.0f}", f"{values.max():.0f}"
    return low if low == high else f"{low} to {high}"


def _alike(data: ReportData) -> str:
    return " and ".join(data.shares.diagnosis.alike) or "the classes"


def _quality_text(quality: QualityReport | None) -> str:
    if quality is None:
        return "There were too few labelled rows to check it."
    return (
        f"On labelled rows that it had not seen it was off by {100 * quality.error:.1f} points "
        f"(counting: {100 * quality.counting:.1f}), and {100 * quality.coverage:.0f} of 100 "
        "intervals held the true share."
    )
