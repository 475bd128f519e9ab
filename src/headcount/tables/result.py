"""What counting gives: shares of every class in every group, and what can be made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.frame import Frame
from headcount._core.types import Floats, Ints
from headcount.data.groups import UNREADABLE, Grouping
from headcount.data.tables import as_names
from headcount.inference.diagnostics import Diagnosis
from headcount.inference.intervals import Interval
from headcount.tables.model import Model
from headcount.tables.notes import Note
from headcount.tables.words import shares_html, shares_text

if TYPE_CHECKING:
    from headcount.tables.page import Page

NAMED = 6  # groups of a warning that are named


@dataclass(frozen=True, eq=False, repr=False)
class Count:
    """Shares of every class in every group, and what to be careful about."""

    groups: list[str]
    sizes: Ints
    interval: Interval
    diagnosis: Diagnosis
    counted: Floats
    by: Grouping
    left_out: int
    truth: Floats | None = None
    notes: tuple[Note, ...] = ()
    model: Model | None = None
    bound: Callable[[str], Interval] | None = None
    effective: Floats | None = None  # rows that tell as much as weighted ones
    together: Callable[[Ints], Interval] | None = None  # bounds of groups that are joined

    @property
    def worth(self) -> Floats:
        """Rows of each group, or equal rows that tell as much as the weighted ones."""
        return self.sizes.astype(float) if self.effective is None else self.effective

    @cached_property
    def of_population(self) -> Count:
        """The same about all rows that might have been in the place of these (for changes)."""
        if self.bound is None:
            return self
        return replace(self, interval=self.bound("population"), bound=None)

    def monitor(self, reference: str | Sequence[str] | None = None) -> Frame:
        """Groups that differ from a reference by more than chance, as `changes` tells them.

        `reference` names groups, as a list or as one text (``a,b`` or ``first..last``).
        """
        from headcount.tables.change import changes, reference_groups

        if isinstance(reference, str):
            reference = reference_groups(reference, self.groups)
        return changes(self, reference)

    def report(self, title: str = "How many", only: str | None = None) -> Page:
        """A page that a manager understands: what is so now, what changed, whether to trust it."""
        from headcount.tables.page import make_page

        return make_page(self, title, only)

    def __repr__(self) -> str:
        return "\n".join([shares_text(self.to_frame(), self.interval.level), *self.remarks()])

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{escape(line)}</li>" for line in self.remarks())
        table = shares_html(self.to_frame(), self.interval.level)
        return table + (f"<ul>{said}</ul>" if said else "")

    def remarks(self) -> list[str]:
        """Notes, and the warnings of groups; many groups with the same fault share a line."""
        found = [f"note: {note}" for note in self.notes]
        for text, groups in self.messages().items():
            more = f" and {len(groups) - NAMED:,} more" if len(groups) > NAMED else ""
            found.append(f"warning: {', '.join(groups[:NAMED])}{more}: {text}.")
        return found

    def flags(self, g: int) -> list[str]:
        """Short names of what is wrong with group number `g`."""
        own = ["nodate"] if self.groups[g] == UNREADABLE else []
        return [*own, *self.diagnosis.flags(g)]

    def marks(self) -> NDArray[Any]:
        """The same as one text for every group."""
        own = np.where(np.array(self.groups, dtype=str) == UNREADABLE, "nodate ", "")
        return np.char.strip(np.char.add(own, self.diagnosis.marks))

    def messages(self) -> dict[str, list[str]]:
        """Sentences about what is wrong, and the groups that each is true of."""
        return {
            text: [self.groups[g] for g in bags]
            for text, bags in self.diagnosis.summaries().values()
        }

    def to_frame(self) -> Frame:
        """One row a group and class: share, low, high, n, counted, fit, flags."""
        k = len(self.interval.classes)
        columns: dict[str, Any] = {
            "group": np.repeat(np.array(self.groups, dtype=str), k),
            "class": np.tile(as_names(self.interval.classes), len(self.groups)),
            "share": self.interval.prevalence.ravel(),
            "low": self.interval.low.ravel(),
            "high": self.interval.high.ravel(),
            "n": np.repeat(self.sizes, k),
            "counted": self.counted.ravel(),
            "fit": np.repeat(self.diagnosis.fit, k),
            "flags": np.repeat(self.marks(), k),
        }
        if self.truth is not None:
            truth = self.truth
            inside = (truth >= self.interval.low) & (truth <= self.interval.high)
            columns["truth"] = truth.ravel()
            columns["inside"] = np.where(np.isnan(truth), np.nan, inside).ravel()
        return Frame(columns)
