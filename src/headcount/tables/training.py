"""Records of the training of a model: what was learnt from, by what, and how good it is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headcount._core.types import Ints
from headcount.inference.pooling import Pooling
from headcount.inference.unseen import Unseen
from headcount.selection.choice import Choice


@dataclass(frozen=True)
class RareClasses:
    """Classes with too few labelled rows.

    Attributes
    ----------
    joined : name of the class that they were joined into; None if their rows were left out
    """

    classes: tuple[str, ...]
    rows: int
    joined: str | None = None


@dataclass(frozen=True)
class GroupQuality:
    """Mean errors on labelled groups that were left out of training.

    Attributes
    ----------
    groups : number of these groups
    error, counting, constant : of the model, of counting, and of the mean shares of groups
    width : mean width of the intervals of a new group of many rows
    """

    groups: int
    error: float
    counting: float
    constant: float
    width: float = 1.0


@dataclass(frozen=True)
class QualityReport:
    """Mean errors on bags of labelled rows that were not learnt from.

    Attributes
    ----------
    bags, size, shares : number and size of the bags, and how their shares were drawn
    error, counting, constant : of the model, of counting, and of the labelled shares
    plain, coverage : coverage of the intervals before and after widening
    factors : by how much intervals are widened
    by_group : the same for whole groups
    """

    bags: int = 0
    size: int = 0
    shares: str = ""
    error: float = 0.0
    counting: float = 0.0
    constant: float = 0.0
    plain: float = 1.0
    coverage: float = 1.0
    factors: tuple[float, ...] = ()
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
    """Groups of the labelled rows.

    Attributes
    ----------
    names : of the groups
    counts : labelled rows of each group, by class
    known : how far off the model is for these groups
    new : how far off it is for groups that it has not seen
    """

    names: list[str]
    counts: Ints
    known: Pooling
    new: Unseen

    def labelled_rows(self, names: list[str]) -> Ints:
        """Labelled rows of groups by class; zeros for groups without any."""
        place = {name: i for i, name in enumerate(self.names)}
        where = np.array([place.get(name, -1) for name in names], dtype=np.int64)
        return np.where((where >= 0)[:, None], self.counts[where], 0)


@dataclass(frozen=True, eq=False)
class Training:
    """How a model was trained.

    Attributes
    ----------
    rows, shares : number of labelled rows, and the share of each class
    method, choice : name of the method, and how it was chosen, if it was
    columns : of the first labelled table
    by : the groups that will be asked about, such as ``month:date``
    """

    rows: int = 0
    method: str = ""
    shares: dict[str, float] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    by: str | None = None
    choice: Choice | None = None
    rare: RareClasses | None = None
    quality: QualityReport | None = None
    groups: GroupInfo | None = None
