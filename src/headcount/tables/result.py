"""Estimated shares of every class in every group of rows, what flags them, and their tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.frame import Frame
from headcount._core.texttable import text_table
from headcount._core.types import Floats, Ints
from headcount.data.groups import UNREADABLE, Grouping
from headcount.data.tables import as_names
from headcount.inference.diagnosis import Diagnosis
from headcount.inference.draws import Draws
from headcount.inference.intervals import Interval
from headcount.report.page import frame_table
from headcount.tables.accumulator import GroupScores
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
    def class_names(self) -> list[str]:
        """Names of the classes."""
        return self.model.class_names

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GroupShares):
            return NotImplemented
        ours, theirs = ((s.target, s.notes, s.to_frame().to_csv()) for s in (self, other))
        return ours == theirs

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
            lines.append(f"warning: {listed(groups)}: {text}.")
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


def listed(groups: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    return ", ".join(groups[:6]) + (f" and {len(groups) - 6:,} more" if len(groups) > 6 else "")


def shares_text(frame: Frame, level: float) -> str:
    """Shares in percent, aligned; with true shares, how far off they are."""
    header, rows = _share_cells(frame, level)
    text = text_table(header, rows, left=(0, 1, len(header) - 1))
    return "\n\n".join(filter(None, [text, _comparison(frame)]))


def shares_html(frame: Frame, level: float, max_rows: int = 200) -> str:
    """The same as a table of a notebook; of many rows the first and the last."""
    header, rows = _share_cells(frame, level)
    shown = rows if len(rows) <= max_rows else [*rows[: max_rows // 2], *rows[-max_rows // 2 :]]
    hidden = f"<p>{len(rows) - len(shown):,} rows in the middle are not shown.</p>"
    comparison = f"<p>{escape(_comparison(frame))}</p>"
    return frame_table(header, shown) + hidden * (len(shown) < len(rows)) + comparison


def changes_text(frame: Frame) -> str:
    """Changes of shares, aligned."""
    columns = {
        "group": frame["group"],
        "class": frame["class"],
        "share": [f"{v:.1%}" for v in frame["share"]],
        "reference": [f"{v:.1%}" for v in frame["reference"]],
        "change": [f"{100 * v:+.1f}" for v in frame["change"]],
        "p": [f"{v:.3g}" for v in frame["p"]],
        "flags": frame["flags"],
    }
    rows = [list(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return text_table(list(columns), rows, left=(0, 1, len(columns) - 1))


def _share_cells(frame: Frame, level: float) -> tuple[list[str], list[list[str]]]:
    bounds = zip(frame["low"], frame["high"], strict=True)
    columns = {
        "group": frame["group"],
        "class": frame["class"],
        "share": [f"{v:.1%}" for v in frame["share"]],
        f"{100 * level:g}% interval": [f"{low:6.1%} -{high:6.1%}" for low, high in bounds],
    }
    if "truth" in frame:
        pairs = zip(frame["truth"], frame["inside"], strict=True)
        columns["truth"] = ["" if v != v else f"{v:.1%}" + " *" * bool(i != 1) for v, i in pairs]
    columns["n"] = [f"{v:,}" for v in frame["n"]]
    columns["counted"] = [f"{v:.1%}" for v in frame["counted"]]
    columns["flags"] = frame["flags"]
    return list(columns), [list(map(str, row)) for row in zip(*columns.values(), strict=True)]


def _comparison(frame: Frame) -> str:
    """How far estimates are from true shares, where these are known."""
    if "truth" not in frame:
        return ""
    known = frame["truth"] == frame["truth"]
    error = abs(frame["share"] - frame["truth"])[known].mean()
    counting = abs(frame["counted"] - frame["truth"])[known].mean()
    inside = frame["inside"][known].mean()
    return (
        f"Off by {100 * error:.1f} points on average, plain counting by {100 * counting:.1f}; "
        f"{inside:.0%} of the true shares are inside their interval (* marks the others)."
    )
