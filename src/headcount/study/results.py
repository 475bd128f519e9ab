"""What a study leaves behind: one tidy table, the table of the search, and how it was made."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headcount._core.files import read_parquet
from headcount._core.frame import Frame
from headcount.exceptions import InputError
from headcount.study.store import checksum
from headcount.study.study import digest

BY_CLASS = ("true:", "estimate:", "low:", "high:")  # columns of every class, in this order
SEALED = "provenance.json"
EXTRA = ("selection.parquet", "shift.parquet")  # tables that some studies have


@dataclass(frozen=True, eq=False)
class Results:
    """Results of a study.

    Attributes
    ----------
    frame : Frame
        A row for each data set, seed, method, measure that its setting was selected by (empty
        where nothing was selected) and bag: truth, estimate and errors. Columns of classes that
        a data set does not have are NaN.
    selection : Frame or None
        Error and rank of every setting that was tried.
    provenance : dict
        Versions, seeds, settings, hashes of data and configuration.
    shift : Frame or None
        MMD and KLD of every period of the data sets that are cut by time.
    """

    frame: Frame
    selection: Frame | None
    provenance: dict[str, Any]
    shift: Frame | None = None

    @classmethod
    def read(cls, folder: str | Path) -> Results:
        """Results of a finished study."""
        folder = Path(folder)
        if not (folder / "results.parquet").is_file():
            raise InputError(f"{str(folder)!r} holds no results: run the study to its end first.")
        try:
            about = read_sealed(folder)
            chosen, shift = (
                read_parquet(folder / name) if (folder / name).is_file() else None for name in EXTRA
            )
            return cls(read_parquet(folder / "results.parquet"), chosen, about, shift)
        except (OSError, ValueError) as error:  # pyarrow's errors are values too
            raise InputError(
                f"the results in {str(folder)!r} are damaged ({error}): run the study again."
            ) from None

    @property
    def measures(self) -> list[str]:
        """Measures of the study."""
        return list(self.provenance["study"]["measures"])

    @property
    def datasets(self) -> list[str]:
        """Names of the data sets."""
        return list(self.provenance["datasets"])

    def by(self, measure: str, dataset: str | None = None) -> Frame:
        """Rows of the methods as they were selected for a measure, those that failed left out."""
        frame = self.frame
        kept = (frame["selected_by"] == measure) | (frame["selected_by"] == "")
        kept &= frame["failure"] == ""
        if dataset is not None:
            kept &= frame["dataset"] == dataset
        part = frame.rows(kept)
        return Frame({c: v for c, v in part.items() if not _empty(c, v)})

    def failures(self) -> list[str]:
        """What went wrong, a sentence each."""
        frame = self.frame
        bad = np.flatnonzero(frame["failure"] != "")
        lines = dict.fromkeys(
            f"{frame['method'][i]} on {frame['dataset'][i]} (seed {frame['seed'][i]}): "
            f"{frame['failure'][i]}"
            for i in bad
        )
        if self.selection is not None:
            for name in dict.fromkeys(self.selection["method"].tolist()):
                mine = self.selection["method"] == name
                failed = mine & (self.selection["failure"] != "")
                if failed.any():
                    first = self.selection["failure"][failed][0]
                    lines[f"{failed.sum()} of {mine.sum()} trials of {name} failed: {first}"] = None
        return list(lines)

    def training(self) -> dict[str, Any]:
        """Share of each class among the labelled items, by data set."""
        return {n: about["prevalence"] for n, about in self.provenance["datasets"].items()}


def seal(folder: Path, provenance: dict[str, Any], tables: Iterable[str]) -> dict[str, Any]:
    """How results were made, with the checksums of their tables and of this text itself."""
    sums = {name: checksum(folder / name) for name in tables}
    return {**provenance, "checksums": {**sums, SEALED: digest(provenance)[:16]}}


def read_sealed(folder: Path) -> dict[str, Any]:
    """How results were made; a ValueError or an OSError if anything is not as it was written."""
    about: dict[str, Any] = json.loads((folder / SEALED).read_text(encoding="utf-8"))
    sums = about.get("checksums") if isinstance(about, dict) else None
    if not isinstance(sums, dict) or not {SEALED, "results.parquet"} <= set(sums):
        raise ValueError(f"{SEALED} lacks the checksums")
    rest = {name: value for name, value in about.items() if name != "checksums"}
    for name, expected in sums.items():
        if (digest(rest)[:16] if name == SEALED else checksum(folder / name)) != expected:
            raise ValueError(f"{name} is not as it was written")
    return about


def _empty(column: str, values: Any) -> bool:
    return column.startswith(("true:", "estimate:", "low:", "high:")) and bool(
        np.isnan(values).all()
    )
