"""What the page says about trust: warnings with their sizes, and whether to rely on it at all."""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount._core.types import Floats, Ints
from headcount.inference.diagnostics import FEW, LEVEL
from headcount.tables.facts import Facts, spoken
from headcount.tables.series import MOST_POINTS

# Flags, the worst first.
FLAGS = ("misfit", "strange", "weak", "drift", "few", "nodate")
GRAVE = ("misfit", "strange")
MUCH = 0.1  # beyond chance, from which on an answer is not to be used
LITTLE = 0.005  # below which nothing is said


def judge_trust(facts: Facts, quality: dict[str, Any] | None) -> tuple[str, str]:
    """Whether to trust the page (good, care or bad), and why, in two sentences."""
    if quality is not None and (
        quality["error"] > quality["counting"] + 0.02 or quality["coverage"] < 0.8
    ):
        return "bad", "No. The model did badly on labelled rows that it had not seen. " + _checked(
            quality
        )
    level, said = _about_groups(facts)
    if level == "good" and any(note.kind == "groups at fitting" for note in facts.found.notes):
        level, said = "care", "Not without a look at the last warning below."
    return level, f"{said} {_checked(quality)}"


def _about_groups(facts: Facts) -> tuple[str, str]:
    """The same as far as warnings of groups tell."""
    total = len(facts.groups)
    grave = facts.flagged(GRAVE)
    share = f"{len(grave):,} of {facts.count_groups(total)}"
    chance = len(grave) <= most_by_chance(total)
    last_is = facts.over_time and total - 1 in grave
    if len(grave) and chance:
        where = f", {spoken(facts.groups[-1], facts.noun)} among them," if last_is else ""
        few = f"{share}{where} carr{'y' if len(grave) > 1 else 'ies'} a warning"
        return "care" if last_is else "good", f"Yes: {few}, about as many as chance gives."
    if len(grave) and (last_is or len(grave) > total / 2):
        where = spoken(facts.groups[-1], facts.noun) if last_is else share
        where = where if total > 1 else "these rows"
        off = _sizes(facts, grave[-1:] if last_is else grave)
        much = float(off.max()) >= MUCH
        head = f"Not for {where}" if much else f"With care for {where}"
        return "bad" if much else "care", f"{head}: {_off_text(off)}."
    if len(grave):
        return "care", f"Yes, except for {share}: see the warnings below."
    if len(facts.flagged(["weak"])):
        return (
            "care",
            f"With care: {_alike(facts)} can hardly be told apart, so intervals are wide.",
        )
    mild = facts.flagged(FLAGS)
    if len(mild) and total > MOST_POINTS and set().union(*facts.flags) == {"few"}:
        shown = "the averages shown" if facts.over_time else "all rows together"
        share = f"{len(mild):,} of {facts.count_groups(total)}"
        return "good", f"Yes for {shown}; {share} have fewer than {FEW} rows and tell little alone."
    if len(mild):
        share = f"{len(mild):,} of {facts.count_groups(total)}"
        few = f"{share} carr{'y' if len(mild) > 1 else 'ies'} a small warning"
        return "care", f"With some care: {few}."
    return "good", "Yes, as far as can be checked."


def most_by_chance(n: int) -> float:
    """Groups that carry `misfit` though nothing is wrong with any of so many, at most."""
    return float(LEVEL * n + 2 * np.sqrt(n * LEVEL * (1 - LEVEL))) if n >= 20 else 0.0


def list_warnings(facts: Facts) -> list[tuple[str, str, list[str]]]:
    """Flag, sentence and groups, the worst first."""
    found = []
    for flag in FLAGS:
        places = facts.flagged([flag])
        if len(places):
            found.append((flag, _sentence(facts, flag, places), [facts.groups[g] for g in places]))
    return found


def _sentence(facts: Facts, flag: str, places: Ints) -> str:
    """What a flag means to somebody who decides, and how much."""
    if flag == "misfit":
        off = _off_text(_sizes(facts, places))
        return f"more than the shares has changed: {off}; label some of these rows and fit again"
    if flag == "strange":
        strange = 100 * facts.found.diagnosis.strange[facts.keep[places]]
        return (
            f"at least {_span(strange)} % of the rows look like nothing that was labelled; read "
            "some of them"
        )
    return {
        "weak": f"{_alike(facts)} can hardly be told apart; label more rows of them, or look at "
        "better columns",
        "drift": "the rows look different from the labelled ones, so the answer may be off; label "
        "some of them if much depends on it",
        "few": f"fewer than {FEW} rows; read the interval, not the share",
        "nodate": "rows whose date could not be read",
    }[flag]


def _sizes(facts: Facts, places: Ints) -> Floats:
    """How far off groups may be beyond chance."""
    return np.asarray(facts.found.diagnosis.off[facts.keep[places]].max(axis=1))


def _off_text(off: Floats) -> str:
    if off.max() < LITTLE:
        return "what is seen moves the share by less than a point"
    return (
        f"the share may be off by about {_span(100 * off)} points more than chance explains, "
        "which the interval allows for"
    )


def _span(values: Floats) -> str:
    low, high = f"{values.min():.0f}", f"{values.max():.0f}"
    return low if low == high else f"{low} to {high}"


def _alike(facts: Facts) -> str:
    return " and ".join(facts.found.diagnosis.alike) or "the classes"


def _checked(quality: dict[str, Any] | None) -> str:
    """What the check on labelled rows said, in words."""
    if quality is None:
        return "There were too few labelled rows to check it."
    return (
        f"On labelled rows that it had not seen it was off by {100 * quality['error']:.1f} points "
        f"(counting: {100 * quality['counting']:.1f}), and {100 * quality['coverage']:.0f} of 100 "
        "intervals held the true share."
    )
