"""Data sets that time has cut: labelled items up to a date, then every later period as it came."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.types import Ints
from headcount.bags import Bags
from headcount.data.dataset import Dataset, Part, hash_items
from headcount.exceptions import InputError

LEAST_GROUPS = 5  # periods that labelled items must fall into to be left out in turn
# Items of a split on which covariate shift is measured, as in the paper (docs/temporal.md).
SHIFT_SAMPLE_ITEMS = 10_000


@dataclass(frozen=True)
class Periods:
    """The protocol of data that time has cut: bags are the periods, and nothing is drawn.

    Examples
    --------
    >>> Periods()
    Periods()
    """


@dataclass(frozen=True, eq=False, repr=False)
class TemporalDataset(Dataset):
    """Labelled items of the past, and the later periods to estimate.

    Made by `headcount.data.cutting.cut_by_time`.

    Parameters
    ----------
    name, train, test, validation
        As in `Dataset`; `validation` holds the items of the development window.
    train_periods, test_periods, validation_periods : period of each item, in periods since 1970
    story : plain data about the periods, the classes over time and what was left out
    encoded : vectors that covariate shift is measured on, of training items and of each test
        period, where these are others than those that the classifier sees
    """

    train_periods: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    test_periods: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    validation_periods: Ints | None = None
    story: dict[str, Any] = field(default_factory=dict)
    encoded: tuple[Any, list[Any]] | None = None

    @property
    def groups(self) -> Ints | None:
        """Period of each labelled item; None where there are too few to leave some out."""
        periods = self.labelled_periods
        return periods if len(np.unique(periods)) >= LEAST_GROUPS else None

    @property
    def labelled_periods(self) -> Ints:
        """Period of each labelled item."""
        if self.validation_periods is None:
            return self.train_periods
        return np.concatenate([self.train_periods, self.validation_periods])

    def selection_data(self, protocol: Any, seed: int) -> tuple[Part, Any, Bags]:  # noqa: ARG002
        """Training items, and the periods of the development window as bags to select on."""
        held, periods = self.validation, self.validation_periods
        if held is None or periods is None:
            raise InputError(f"{self.name} has no development window to select settings on.")
        return self.train, held.X, _as_bags(periods, held.y, self.classes)

    def test_data(self, protocol: Any, seed: int) -> tuple[Part, Any, Bags]:  # noqa: ARG002
        """All labelled items, and the test periods as bags, numbered in order of time."""
        return self.labelled, self.test.X, self._bags()

    def faults(self, protocol: Any, selection: Any) -> list[str]:
        """What keeps a study from being run on this data set."""
        found = []
        if not isinstance(protocol, Periods):
            found.append(f"protocol: {self.name!r} is cut by time: use kind = 'periods'.")
        if selection is not None and self.validation is None:
            found.append(
                f"datasets: {self.name!r} has no development window to select settings on: give "
                "development, or leave out the grids."
            )
        return found

    def shift_samples(self) -> tuple[Any, list[Any]]:
        """Vectors of training items and of the items of each test period, 10,000 at most."""
        if self.encoded is not None:
            return self.encoded
        train = draw_some(np.arange(len(self.train.y)), SHIFT_SAMPLE_ITEMS, "shift, training")
        splits = [
            draw_some(rows, SHIFT_SAMPLE_ITEMS, f"shift, {s}")
            for s, rows in enumerate(self._bags())
        ]
        return self.train.X[train], [self.test.X[rows] for rows in splits]

    def about(self) -> dict[str, Any]:
        """Sizes, classes, prevalence, and the story of its periods, as plain data."""
        return {**super().about(), "temporal": self.story}

    def fingerprint(self) -> str:
        """Hash of all items, labels and periods, and of what shift is measured on."""
        digest = hashlib.sha256(super().fingerprint().encode())
        digest.update(self.labelled_periods.tobytes() + self.test_periods.tobytes())
        train, splits = self.encoded or (None, [])
        for X in splits and [train, *splits]:
            hash_items(digest, X)
        return digest.hexdigest()

    def _bags(self) -> Bags:
        return _as_bags(self.test_periods, self.test.y, self.classes)

    def __repr__(self) -> str:
        return (
            f"TemporalDataset({self.name!r}: {len(self.labelled_y):,} labelled items, "
            f"{len(self.test.y):,} test items in {len(np.unique(self.test_periods))} periods, "
            f"{len(self.classes)} classes)"
        )


def draw_some(rows: Any, most: int | None, why: str) -> NDArray[Any]:
    """At most so many of the rows, in order; which of them depends on `why` and their number."""
    if most is None or len(rows) <= most:
        return np.asarray(rows)
    seed = int.from_bytes(hashlib.sha256(why.encode()).digest()[:8], "little")
    rng = np.random.default_rng(seed)
    return np.asarray(rows)[np.sort(rng.choice(len(rows), most, replace=False))]


def _as_bags(periods: Ints, y: NDArray[Any], classes: NDArray[Any]) -> Bags:
    """A bag for each period, in order of time and with numbers as names."""
    _, numbers = np.unique(periods, return_inverse=True)
    return Bags.from_groups(numbers).with_truth(y, classes)
