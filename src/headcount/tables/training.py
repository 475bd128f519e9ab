"""Records of the training of a model, as text too: what was learnt, by what, and how good it is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headcount._core.types import Ints
from headcount.inference.random_effects import RandomEffects
from headcount.selection.choice import Choice


@dataclass(frozen=True)
class RareClasses:
    """Classes with too few labelled rows."""

    classes: tuple[str, ...]
    rows: int
    joined: str | None = None  # class that they were joined into; None if rows were left out


@dataclass(frozen=True)
class GroupQuality:
    """Mean errors on labelled groups that were left out of training."""

    groups: int
    error: float  # of the model
    counting: float  # of counting predictions
    constant: float  # of the mean shares of groups
    width: float = 1.0  # mean width of the intervals of a new group of many rows


@dataclass(frozen=True)
class QualityReport:
    """Mean errors on bags of labelled rows that were not learnt from."""

    bags: int = 0
    size: int = 0
    shares: str = ""  # how the shares of the bags were drawn
    error: float = 0.0  # of the model
    counting: float = 0.0  # of counting predictions
    constant: float = 0.0  # of the labelled shares
    plain: float = 1.0  # coverage of the intervals before widening
    coverage: float = 1.0  # and after
    scale: float = 1.0  # factor by which intervals are widened
    by_group: GroupQuality | None = None

    @property
    def is_bad(self) -> bool:
        """Whether estimates are worse than counting, or intervals cover too rarely."""
        return self.error > self.counting + 0.02 or self.coverage < 0.8

    @property
    def is_useless(self) -> bool:
        """Whether the labelled shares would be about as good an answer."""
        return self.error > 0.8 * self.constant


@dataclass(frozen=True, eq=False)
class GroupInfo:
    """Groups of the labelled rows."""

    names: list[str]
    counts: Ints  # labelled rows of each group, by class
    known: RandomEffects  # how far off the model is for these groups
    new: RandomEffects  # and for groups that it has not seen

    def labelled_rows(self, names: list[str]) -> Ints:
        """Labelled rows of groups by class; zeros for groups without any."""
        place = {name: i for i, name in enumerate(self.names)}
        where = np.array([place.get(name, -1) for name in names], dtype=np.int64)
        return np.where((where >= 0)[:, None], self.counts[where], 0)


@dataclass(frozen=True, eq=False)
class Training:
    """How a model was trained."""

    rows: int = 0
    method: str = ""
    shares: dict[str, float] = field(default_factory=dict)  # of the labelled rows
    columns: list[str] = field(default_factory=list)  # of the first labelled table
    by: str | None = None  # groups that will be asked about, such as ``month:date``
    choice: Choice | None = None  # how the method was chosen, if it was
    rare: RareClasses | None = None
    quality: QualityReport | None = None
    groups: GroupInfo | None = None


def training_text(training: Training) -> str:
    """What was learnt, how good it is on held-out bags, and by which method."""
    shares = ", ".join(f"{c} {p:.1%}" for c, p in training.shares.items())
    lines = [f"Learnt from {training.rows:,} labelled rows: {shares}."]
    quality = training.quality
    if quality is None:
        lines.append("Too few labelled rows to check it: 10 of every class are needed.")
    else:
        lines.append(
            f"Checked on {quality.bags} bags of {quality.size} rows that it had not seen, with "
            f"shares {quality.shares}: off by {100 * quality.error:.1f} points on average, plain "
            f"counting by {100 * quality.counting:.1f}; {_coverage(quality)}"
        )
        lines += [_group_quality(quality.by_group)] if quality.by_group else []
    if training.choice is not None:
        lines.append(choice_text(training.choice))
    elif training.method:
        lines.append(f"Method: {training.method}.")
    return "\n".join(lines)


def _coverage(quality: QualityReport) -> str:
    """Coverage of the intervals, and whether they were widened."""
    if quality.scale < 1.05:
        return f"the 95 % intervals held {quality.coverage:.0%} of the shares."
    return (
        f"the 95 % intervals held {quality.plain:.0%} of the shares, so this model's are "
        f"{quality.scale:.2g} times as wide, and those held {quality.coverage:.0%}."
    )


def _group_quality(quality: GroupQuality) -> str:
    """Errors on held-out groups, and the width of the intervals of others."""
    few = quality.groups < 10
    more = ": with labelled rows of more groups they would be narrower" if few else ""
    return (
        f"On {quality.groups} groups that it had not seen: off by {100 * quality.error:.1f} points "
        f"(plain counting by {100 * quality.counting:.1f}, the usual shares by "
        f"{100 * quality.constant:.1f}); groups with labelled rows of their own are answered by "
        "these, too, and the intervals of groups without any are about "
        f"{100 * quality.width:.0f} points wide, or more{more}."
    )


def choice_text(choice: Choice) -> str:
    """Which method was chosen, and the next best ones."""
    scale, unit = (100, " points") if choice.measure == "ae" else (1, f" by {choice.measure}")
    others = [f"{_candidate(name)} ({scale * error:.2f})" for name, error in choice.others]
    bags = {
        "groups": f"groups of about {choice.size} rows that they had not seen",
        "periods": f"periods of about {choice.size} rows that came after what they had seen",
        "too few groups": (f"bags of {choice.size} held-out rows, since no group can be left out"),
    }.get(choice.bags, f"bags of {choice.size} held-out rows")
    text = (
        f"Method: {_candidate(choice.method)}, {scale * choice.error:.2f}{unit} off on average "
        f"when methods were compared on {choice.n_bags:,} {bags}"
    )
    return f"{text}; next came {'; '.join(others)}." if others else f"{text}."


def _candidate(name: str) -> str:
    """A candidate such as ``SLD, bcts`` in words."""
    method, comma, calibrator = name.partition(", ")
    return f"{method} with {calibrator}" if comma else method
