"""Records of the training of a model: what was learnt from, by what, and how good it is."""

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
