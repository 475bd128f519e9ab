"""Labelled rows for training: which are left out, joined or doubtful is noted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headcount._core.types import Bools
from headcount.exceptions import InputError
from headcount.tables.inputs import Inputs
from headcount.tables.notes import Note, Notify, reading_notes
from headcount.tables.reading import TableScan, label_names
from headcount.tables.training import RareClasses

MIN_CLASS_ROWS = 5  # rows: one for each of the five folds of `cross_fit`
# Spellings of a missing label; those of the first tuple may mean a class.
MAYBE_MISSING = ("none", "na", "nil", "-", "--", "?", ".", "missing", "undefined")
MISSING_LABELS = ("nan", "nat", "null", "<na>", "n/a", "#n/a", "-nan")


@dataclass(frozen=True, eq=False)
class Labelled:
    """Items with labels, and with names of groups if rows have groups."""

    items: Any
    labels: NDArray[Any]
    groups: NDArray[Any] | None = None

    def take(self, chosen: Any) -> Labelled:
        """Some of the rows."""
        groups = None if self.groups is None else self.groups[chosen]
        return Labelled(self.items[chosen], self.labels[chosen], groups)


def read_labelled(scan: TableScan, inputs: Inputs, label: str, notify: Notify) -> Labelled:
    """Items and labels of tables; rows without an item or a label are left out."""
    grouping = scan.grouping
    items, labels, groups = [], [], []
    without_item = without_label = 0
    spellings: set[str] = set()
    for _, batch in scan:
        batch_items, present = inputs.of(batch)
        cells = label_names(batch.column(label))[present]
        labelled, unusual = _labelled(cells)
        without_item += int((~present).sum())
        without_label += int((~labelled).sum())
        spellings |= unusual
        items.append(batch_items[labelled])
        labels.append(cells[labelled])
        if grouping.column is not None and labelled.any():
            column = batch.column(grouping.column).filter(pa.array(present))
            column = column.filter(pa.array(labelled))
            groups.append(grouping.numbers(column, int(labelled.sum())))
    notes = [
        *reading_notes(scan.reading),
        *([Note("no item", without_item, inputs.kind)] if without_item else []),
        *([Note("no label", without_label)] if without_label else []),
        *([Note("label of none", 0, label, tuple(sorted(spellings)))] if spellings else []),
    ]
    _notify_all(notes, notify)
    if not sum(map(len, labels)):
        raise InputError("there are no labelled rows to learn from.")
    all_labels = np.concatenate(labels)
    _notify_all(_doubtful(all_labels, label), notify)
    if (all_labels == all_labels[0]).all():
        raise InputError(f"all labels are {str(all_labels[0])!r}: at least two classes are needed.")
    names = np.array(grouping.names(), dtype=str)[np.concatenate(groups)] if groups else None
    return Labelled(np.concatenate(items), all_labels, names)


def without_copies(rows: Labelled, notify: Notify) -> Labelled:
    """Each row once if many are copies: held-out copies would make the model look perfect."""
    texts = rows.items if rows.items.ndim == 1 else None
    if texts is not None and len(texts) > 1 and len(set(texts)) == 1:
        raise InputError(
            f"all {len(texts):,} texts are the same, {str(texts[0])[:40]!r}: there is "
            "nothing to tell classes apart by. Is it the column of texts?"
        )
    places: dict[Any, list[int]] = {}
    keys = rows.items if texts is not None else map(tuple, rows.items.tolist())
    for i, row in enumerate(zip(keys, rows.labels.tolist())):  # noqa: B905
        places.setdefault(row, []).append(i)
    kept = _unrepeated(places) or (None if texts is None else _unique_texts(places))
    if kept is None:
        return rows
    notify(Note("copies", len(rows.labels) - len(kept), names=(f"{len(rows.labels):,}",)))
    return rows.take(np.sort(kept))


def without_rare(
    rows: Labelled, label: str, min_rows: int | None, rare: str, notify: Notify
) -> tuple[Labelled, RareClasses | None]:
    """Rows of classes that have `min_rows` of them, and the classes that were joined or dropped.

    Without `min_rows`, classes of fewer than five rows are rejected.
    """
    classes, counts = np.unique(rows.labels, return_counts=True)
    too_few = counts < max(min_rows or 0, MIN_CLASS_ROWS)
    if min_rows is None and too_few.any():
        raise _too_rare(classes[too_few], counts[too_few], label)
    record = None
    if too_few.any():
        is_rare = np.isin(rows.labels, classes[too_few])
        n = int(is_rare.sum())
        other = "other (rare)" if "other" in classes[~too_few] else "other"
        joined = other if rare == "join" and n >= MIN_CLASS_ROWS else None
        record = RareClasses(tuple(map(str, classes[too_few])), n, joined)
        notify(rare_note(record, joined or other))
        if joined is None:
            rows = rows.take(~is_rare)
        else:
            rows = replace(rows, labels=np.where(is_rare, joined, rows.labels))
    left = np.unique(rows.labels)
    if len(left) < 2:
        raise InputError(
            f"only {left.tolist()} is left of the classes: ask for fewer rows of each."
        )
    if len(left) > 200:
        raise InputError(f"{label!r} has {len(left)} different values: is it the column of labels?")
    return rows, record


def rare_note(rare: RareClasses, name: str) -> Note:
    """Note about classes that were joined or left out."""
    return Note(f"rare {'joined' if rare.joined else 'dropped'}", rare.rows, name, rare.classes)


def _notify_all(notes: Sequence[Note], notify: Notify) -> None:
    for note in notes:
        notify(note)


def _labelled(cells: NDArray[Any]) -> tuple[Bools, set[str]]:
    """Which cells hold a label, and the spellings of missing labels."""
    missing = np.isin(np.char.lower(cells), MISSING_LABELS) if len(cells) else cells != ""
    return np.asarray((cells != "") & ~missing), set(np.unique(cells[missing]).tolist())


def _doubtful(labels: NDArray[Any], column: str) -> list[Note]:
    """Notes about labels that differ in capitals only, and labels that may mean none."""
    classes = [str(c) for c in np.unique(labels)]
    spellings: dict[str, list[str]] = {}
    for c in classes:
        spellings.setdefault(c.casefold(), []).append(c)
    alike = tuple(c for same in spellings.values() if len(same) > 1 for c in same)
    missing = tuple(c for c in classes if c.lower() in MAYBE_MISSING)
    kinds = {"alike labels": alike, "maybe no label": missing}
    return [Note(kind, 0, column, names) for kind, names in kinds.items() if names]


def _unrepeated(places: dict[Any, list[int]]) -> list[int] | None:
    """Rows of a table without repetitions; None unless every row is there equally often.

    Short texts and rows of few numbers are often alike without being copies. That each of twenty
    different rows is there twice, or four or six times, is no coincidence.
    """
    times = math.gcd(*map(len, places.values()))
    if times < 2 or len(places) < 20:
        return None
    return [i for own in places.values() for i in own[: len(own) // times]]


def _unique_texts(places: dict[Any, list[int]]) -> list[int] | None:
    """Rows with each text of five words or more once; None if under a fifth are copies."""
    n = sum(map(len, places.values()))
    kept = [
        i for (text, _), own in places.items() for i in (own[:1] if len(text.split()) >= 5 else own)
    ]
    return kept if n - len(kept) >= 0.2 * n else None


def _too_rare(classes: NDArray[Any], counts: NDArray[Any], label: str) -> InputError:
    shown = ", ".join(f"{str(c)!r} ({n})" for c, n in zip(classes[:20], counts, strict=False))
    more = f" and {len(classes) - 20} more" if len(classes) > 20 else ""
    if len(classes) > 200:
        return InputError(f"{label!r} has over {len(classes)} values: is it the column of labels?")
    some = f"{len(classes)} classes" if len(classes) > 1 else "a class"
    return InputError(
        f"{some} of {label!r} with fewer than {MIN_CLASS_ROWS} labelled rows, too few to know how "
        f"they are scored: {shown}{more}. Label more (ten times as many to be of use), or ask for "
        "a number of rows, and the rarer classes are joined or dropped.",
        setting="min-rows",
    )
