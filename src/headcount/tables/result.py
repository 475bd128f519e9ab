"""Estimated shares of every class in every group of rows, and what flags them."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.frame import Frame
from headcount._core.types import Floats, Ints
from headcount.data.groups import UNREADABLE, Grouping
from headcount.data.tables import as_names
from headcount.inference.diagnosis import Diagnosis
from headcount.inference.draws import Draws
from headcount.inference.intervals import Interval
from headcount.tables.accumulator import GroupScores
from headcount.tables.formatting import shares_html, shares_text
from headcount.tables.model import FittedModel
from headcount.tables.notes import Note


@dataclass(frozen=True, eq=False)
class GroupRows:
    """Groups of rows in the order to show."""

    names: list[str]
    by: Grouping
    sizes: Ints  # rows of each group
    worth: Floats  # number of unweighted rows that are as informative
    scores: GroupScores | None = None  # without them unions of groups are averages
    truth: Floats | None = None  # true shares, NaN for groups without true labels
    left_out: int = 0  # rows without an item


@dataclass(frozen=True, eq=False)
class Estimates:
    """Shares of groups: with intervals, by counting predictions, and what flags them."""

    interval: Interval
    counted: Floats
    diagnosis: Diagnosis
    draws: Draws


@dataclass(frozen=True, eq=False, repr=False)
class GroupShares:
    """Shares of every class in every group."""

    model: FittedModel
    rows: GroupRows
    estimates: Estimates
    target: str = "bag"  # or "population", which the rows were drawn from
    notes: tuple[Note, ...] = ()

    @property
    def groups(self) -> list[str]:
        """Names of the groups."""
        return self.rows.names

    @property
    def sizes(self) -> Ints:
        """Rows of each group."""
        return self.rows.sizes

    @property
    def by(self) -> Grouping:
        """How rows are grouped."""
        return self.rows.by

    @property
    def truth(self) -> Floats | None:
        """True shares, NaN for groups without true labels."""
        return self.rows.truth

    @property
    def interval(self) -> Interval:
        """Shares with intervals."""
        return self.estimates.interval

    @property
    def counted(self) -> Floats:
        """Shares by counting the predictions of the classifier."""
        return self.estimates.counted

    @property
    def diagnosis(self) -> Diagnosis:
        """Tests of the assumptions for each group."""
        return self.estimates.diagnosis

    @property
    def left_out(self) -> int:
        """Rows without an item."""
        return self.rows.left_out

    @property
    def class_names(self) -> list[str]:
        """Names of the classes."""
        return [str(name) for name in as_names(self.interval.classes).tolist()]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GroupShares):
            return NotImplemented
        return (self.target, self.notes, self.to_frame().to_csv()) == (
            other.target,
            other.notes,
            other.to_frame().to_csv(),
        )

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "\n".join([shares_text(self.to_frame(), self.interval.level), *self.remarks()])

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(line)}</li>" for line in self.remarks())
        table = shares_html(self.to_frame(), self.interval.level)
        return table + (f"<ul>{items}</ul>" if items else "")

    def remarks(self) -> list[str]:
        """Notes, and the warnings of groups; groups with the same warning share a line."""
        lines = [f"note: {note}" for note in self.notes]
        for text, groups in self.messages().items():
            more = f" and {len(groups) - 6:,} more" if len(groups) > 6 else ""
            lines.append(f"warning: {', '.join(groups[:6])}{more}: {text}.")
        return lines

    def marks(self) -> NDArray[Any]:
        """Flags of each group as one text."""
        own = np.where(np.array(self.groups, dtype=str) == UNREADABLE, "nodate ", "")
        return np.char.strip(np.char.add(own, self.diagnosis.marks))

    def flags(self, g: int) -> list[str]:
        """Flags of group number `g`."""
        return str(self.marks()[g]).split()

    def messages(self) -> dict[str, list[str]]:
        """Warnings as sentences, and the groups that each is about."""
        return {
            text: [self.groups[g] for g in groups]
            for text, groups in self.diagnosis.summaries().values()
        }

    def to_frame(self) -> Frame:
        """One row per group and class: share, low, high, n, counted, fit, flags."""
        k, interval, truth = len(self.interval.classes), self.interval, self.truth
        columns: dict[str, Any] = {
            "group": np.repeat(np.array(self.groups, dtype=str), k),
            "class": np.tile(as_names(interval.classes), len(self.groups)),
            "share": interval.prevalence.ravel(),
            "low": interval.low.ravel(),
            "high": interval.high.ravel(),
            "n": np.repeat(self.sizes, k),
            "counted": self.counted.ravel(),
            "fit": np.repeat(self.diagnosis.fit, k),
            "flags": np.repeat(self.marks(), k),
        }
        if truth is not None:
            inside = (truth >= interval.low) & (truth <= interval.high)
            columns["truth"] = truth.ravel()
            columns["inside"] = np.where(np.isnan(truth), np.nan, inside).ravel()
        return Frame(columns)
