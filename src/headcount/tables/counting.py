"""Reading of tables into accumulated scores of groups, and their estimates."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headcount._core.types import Bools, Floats, Ints
from headcount.data.groups import MISSING, Grouping
from headcount.data.stream import Source
from headcount.data.tables import as_names
from headcount.exceptions import HeadcountWarning, InputError
from headcount.tables.accumulator import Accumulator
from headcount.tables.estimation import estimate_groups
from headcount.tables.labelled import rare_note
from headcount.tables.model import FittedModel
from headcount.tables.notes import Note, reading_notes
from headcount.tables.reading import TableScan, label_names
from headcount.tables.result import GroupRows, GroupShares
from headcount.tables.settings import EstimateSettings, ReadSettings


def count(
    model: FittedModel,
    sources: Sequence[Source],
    settings: EstimateSettings,
    reading: ReadSettings,
) -> GroupShares:
    """Estimate the shares of the classes in groups of rows of tables, in one pass."""
    model.quantifier.check_intervals()
    if settings.weight in model.inputs.columns:
        raise InputError(f"the model looks at {settings.weight!r}: weights are in another column.")
    grouping = Grouping.parse(settings.by, reading.date_format, reading.time_zone)
    scan = _scan(model, sources, grouping, settings, reading)
    counter = _Counter(model, grouping, settings)
    for source, batch in scan:
        counter.add(source, batch)
    counter.check()
    order, names = grouping.order(), grouping.names()
    scores = counter.accumulator.finish(order)
    truth = None if counter.truth is None else counter.truth.shares(order)
    worth = np.maximum(scores.effective, 1.0)
    shown = [names[g] for g in order]
    rows = GroupRows(shown, grouping, scores.rows, worth, scores, truth, counter.without_item)
    notes = [*reading_notes(scan.reading), *counter.notes(scan.header)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimates = estimate_groups(model, rows, settings.level, settings.target)
    texts = [str(w.message) for w in caught if issubclass(w.category, HeadcountWarning)]
    notes += [Note("warning", subject=text) for text in dict.fromkeys(texts)]
    return GroupShares(model, rows, estimates, settings.target, tuple(notes))


def _scan(
    model: FittedModel,
    sources: Sequence[Source],
    grouping: Grouping,
    settings: EstimateSettings,
    reading: ReadSettings,
) -> TableScan:
    columns = dict(model.inputs.wanted)
    scan = TableScan(sources, columns, grouping, reading, model.inputs.columns)
    for name, kind in ((settings.truth, "name"), (settings.weight, "number")):
        if name is not None:
            columns.setdefault(name, kind)
    return scan


@dataclass
class _Truth:
    """Numbers of true labels by group and class."""

    names: NDArray[Any]
    counts: Floats
    labelled: int = 0
    unknown: set[str] = field(default_factory=set)  # labels that are no class of the model

    def add(self, labels: NDArray[Any], groups: Ints, weights: Floats | None) -> None:
        """Count the labels of rows."""
        order = np.argsort(self.names)
        place = np.searchsorted(self.names[order], labels)
        codes = order[np.minimum(place, len(order) - 1)]
        known = self.names[codes] == labels
        self.labelled += int(known.sum())
        self.unknown |= set(np.unique(labels[~known]).tolist())
        more = max(0, int(groups.max(initial=-1)) + 1 - len(self.counts))
        self.counts = np.pad(self.counts, ((0, more), (0, 0)))
        values = 1 if weights is None else weights[known]
        np.add.at(self.counts, (groups[known], codes[known]), values)

    def shares(self, order: list[int]) -> Floats:
        """True shares of groups; NaN for groups without a label."""
        totals = self.counts.sum(axis=1, keepdims=True)
        shares = np.where(totals > 0, self.counts / np.where(totals > 0, totals, 1), np.nan)
        return np.asarray(shares[order])


class _Counter:
    """Accumulates the rows of batches, and what is to be noted about them."""

    def __init__(self, model: FittedModel, grouping: Grouping, settings: EstimateSettings):
        self.model, self.grouping, self.settings = model, grouping, settings
        self.accumulator = Accumulator(model.layout)
        classes = as_names(model.quantifier.classes_)
        self.truth = (
            None if settings.truth is None else _Truth(classes, np.zeros((0, len(classes))))
        )
        self.rows = self.without_item = self.without_weight = 0

    def add(self, source: Source, batch: pa.RecordBatch) -> None:
        """Score the rows of a batch, and add them to their groups."""
        items, present = self.model.inputs.of(batch)
        weights = None
        self.without_item += int((~present).sum())
        if self.settings.weight is not None:
            weights = _weights(batch.column(self.settings.weight), self.settings.weight)
            used = present & (weights > 0)
            self.without_weight += int(present.sum() - used.sum())
            items, present, weights = items[used[present]], used, weights[used]
        n = int(present.sum())
        if not n:
            return
        groups = self._groups(batch, present)
        try:
            self._score(items, groups, weights)
        except InputError as error:
            raise InputError(f"{source.name}: {error}") from None
        self.rows += n
        if self.truth is not None:
            labels = label_names(batch.column(self.settings.truth))[present]
            self.truth.add(self.model.known_labels(labels), groups, weights)

    def check(self) -> None:
        """Refuse what has no answer: no rows, no dates, no true labels."""
        grouping = self.grouping
        if not self.rows:
            why = f"all {self.without_item:,} rows are empty." if self.without_item else "no rows."
            if self.without_weight:
                why = f"{self.without_weight:,} rows have no weight above 0."
            raise InputError(f"there is nothing to count: {why}")
        if grouping.unreadable == self.rows:
            raise InputError(
                f"no cell of {grouping.column!r} could be read as a date such as 2026-11-30 (they "
                f"are like {grouping.example!r}): say how they are written, or, if they name "
                "periods already, group by the column itself.",
                setting="date-format",
            )
        if self.truth is not None and not self.truth.labelled:
            raise InputError(
                f"{self.settings.truth!r} holds none of the classes "
                f"{self.truth.names.tolist()[:10]}: is it the column of true labels?"
            )

    def notes(self, header: Sequence[str]) -> list[Note]:
        """Notes about the rows; `header` has all columns of the first table."""
        grouping, training = self.grouping, self.model.training
        column, doubtful = grouping.column or "", grouping.dates.said()
        example = (grouping.example,) if grouping.example else ()
        unknown = sorted(self.truth.unknown - {""}) if self.truth else []
        rare, truth = training.rare, self.settings.truth
        not_known = grouping.period is None and training.by is None
        notes = {
            Note("dates", 0, column, (str(doubtful),)): doubtful,
            Note("no item", self.without_item, self.model.inputs.kind): self.without_item,
            Note("no weight", self.without_weight): self.without_weight,
            Note(
                "no date" if example else "empty date", grouping.unreadable, column, example
            ): grouping.unreadable,
            Note("no group", subject=column): MISSING in grouping.names(),
            Note("unknown truth", len(unknown), truth or "", tuple(unknown)): unknown,
            rare and rare_note(rare, rare.joined or ""): rare,
            Note("groups at fitting", subject=column): not_known and column in training.columns,
            Note("truth is there", subject=self.model.label): (
                truth is None and self.model.label in header
            ),
        }
        return [note for note, applies in notes.items() if note and applies]

    def _groups(self, batch: pa.RecordBatch, present: Bools) -> Ints:
        column = None
        if self.grouping.column is not None:
            column = batch.column(self.grouping.column)
            column = column if present.all() else column.filter(pa.array(present))
        return self.grouping.numbers(column, int(present.sum()))

    def _score(self, items: Any, groups: Ints, weights: Floats | None) -> None:
        step = 1 << 16  # rows that are scored at once, which bounds the memory
        for start in range(0, len(groups), step):
            part = slice(start, start + step)
            scores, bins = self.model.score(items[part])
            own = None if weights is None else weights[part]
            self.accumulator.add(scores, bins, groups[part], own)


def _weights(column: Any, name: str) -> Floats:
    """Weights of rows, 0 for missing ones."""
    weights = np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    weights[np.isnan(weights)] = 0.0
    if weights.min(initial=0.0) < 0:
        raise InputError(f"{name!r} holds {weights.min():g}: weights cannot be negative.")
    if np.isinf(weights).any():
        raise InputError(f"{name!r} holds an infinite weight: weights are finite numbers.")
    return weights
