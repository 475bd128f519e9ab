"""The record of a diagnosis: tests of the assumptions of estimates, and flags."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.frame import Frame
from headcount._core.types import Floats, Ints
from headcount.inference import diagnosis_text

FIT_LEVEL = 0.04  # p-value; with it, false alarms stay under 0.07 (`benchmarks/table_alarms.py`)
DRIFT_LEVEL = 0.01  # p-value (convention); real corpora drift nearly always
NOVEL_SHARE = 0.05  # share of items unlike every class that is worth a flag (convention)
SMALL_BAG = 30  # items below which a normal approximation of a share is poor (Cochran 1977)
ILL_CONDITIONED = 25.0  # condition number from which classes are hard to tell apart (convention)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Tests of every bag, as `Quantifier.diagnose` returns them.

    Attributes
    ----------
    ids : array of shape (bags,)
    n : array of shape (bags,)
        Items.
    fit : array of shape (bags,)
        P-value of the hypothesis that a change of class prevalence explains the scores.
    strange : array of shape (bags,)
        Lower bound of the share of items that no mixture of the known classes accounts for.
    condition : float
        Condition number of the classes' mean scores, the same for all bags.
    drift : array of shape (bags,)
        P-value of the same hypothesis for the items' covariates; NaN if these are not available.
    off : array of shape (bags, classes)
        How far the share of each class may be off beyond sampling error if the fit is poor, else 0.
    alike : tuple of str
        Classes that are hardest to separate.

    Examples
    --------
    >>> diagnosis = Diagnosis(np.array(["may"]), np.array([20]), np.array([0.01]), np.zeros(1), 2.0)
    >>> diagnosis.flags(0)
    ['misfit', 'few']
    """

    ids: NDArray[Any]
    n: Ints
    fit: Floats
    strange: Floats
    condition: float
    drift: Floats = field(default_factory=lambda: np.empty(0))
    off: Floats = field(default_factory=lambda: np.empty((0, 1)))
    alike: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.drift):
            object.__setattr__(self, "drift", np.full(len(self.n), np.nan))
        if not len(self.off):
            object.__setattr__(self, "off", np.zeros((len(self.n), 1)))

    def flagged(self) -> dict[str, Ints]:
        """Numbers of the bags that have each flag: misfit, drift, strange, few or weak."""
        misfit = self.fit < FIT_LEVEL
        which = {
            "misfit": misfit,
            "drift": self.drift < DRIFT_LEVEL,
            "strange": misfit & (self.strange > NOVEL_SHARE),
            "few": self.n < SMALL_BAG,
            "weak": np.full(len(self.n), self.condition > ILL_CONDITIONED),
        }
        return {name: np.flatnonzero(carries) for name, carries in which.items()}

    @cached_property
    def marks(self) -> NDArray[Any]:
        """Flags of every bag as one text."""
        out = np.full(len(self.n), "", dtype=object)
        for name, bags in self.flagged().items():
            out[bags] += f" {name}"
        return np.array([text.strip() for text in out.tolist()], dtype=str)

    def flags(self, s: int) -> list[str]:
        """Flags of bag number `s`."""
        return str(self.marks[s]).split()

    def messages(self, s: int) -> list[str]:
        """Flags of bag number `s` as sentences."""
        return [self._sentence(name, np.array([s])) for name in self.flags(s)]

    def summaries(self) -> dict[str, tuple[str, Ints]]:
        """For each flag, one sentence about all bags that carry it, and their numbers."""
        return {
            name: (self._sentence(name, bags), bags)
            for name, bags in self.flagged().items()
            if len(bags)
        }

    def _sentence(self, flag: str, bags: Ints) -> str:
        off = self.off[bags].max(axis=1)
        return diagnosis_text.sentence(flag, self.n[bags], off, self.strange[bags], self.alike)

    def to_frame(self) -> Frame:
        """One row per bag."""
        return Frame(
            {
                "bag": self.ids,
                "n": self.n,
                "fit": self.fit,
                "drift": self.drift,
                "strange": self.strange,
                "condition": np.full(len(self.n), self.condition),
                "flags": self.marks,
            }
        )
