"""Labelled rows as a model learns from them: what is left out, joined or doubtful is said."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headcount._core.types import Bools
from headcount.data.cells import names_of
from headcount.data.groups import Grouping
from headcount.data.stream import Reading, Source, batches
from headcount.exceptions import InputError
from headcount.tables.inputs import Inputs
from headcount.tables.notes import Note, reading_notes

Say = Callable[[Note], None]

LEAST = 5  # rows of a class
DIFFERENT = 20  # rows from which on it is no chance that all are there several times
COPIES = 0.2  # share of rows that are copies of long texts from which on each counts once
LONG = 5  # words; shorter texts are often the same without being copies
OTHER = "other"  # what classes that are too rare are joined into
OTHER_STILL = "other (rare)"  # the same where a class has that name already
# How people and programs write that there is no label; the former may mean a class.
MAYBE_NONE = ("none", "na", "nil", "-", "--", "?", ".", "missing", "undefined")
NO_LABEL = (
    "nan",
    "nat",
    "null",
    "<na>",
    "n/a",
    "#n/a",
    "-nan",
)


@dataclass(frozen=True, eq=False)
class Labelled:
    """Items with labels, and with names of groups where rows have some."""

    items: Any
    labels: NDArray[Any]
    groups: NDArray[Any] | None = None

    def take(self, chosen: Any) -> Labelled:
        """Some of the rows."""
        groups = None if self.groups is None else self.groups[chosen]
        return Labelled(self.items[chosen], self.labels[chosen], groups)


def read_labelled(
    found: Sequence[Source],
    inputs: Inputs,
    label: str,
    grouping: Grouping,
    *,
    encoding: str,
    say: Say,
    progress: Callable[[int], None] | None,
) -> Labelled:
    """Items and labels of tables; rows without an item or a label are left out, and said."""
    look_at_dates(grouping, found, encoding)
    wanted = {**inputs.wanted, label: "name"}
    if label in inputs.wanted:
        raise InputError(f"{label!r} is both the label and something to look at.")
    if grouping.column is not None:
        wanted.setdefault(grouping.column, grouping.kind)
    parts, labels, groups, empty, unlabelled = [], [], [], 0, 0
    blank: set[str] = set()
    reading = Reading()
    told: Any = {"encoding": encoding, "progress": progress, "reading": reading}
    for _, batch in batches(found, wanted, **told):
        items, there = inputs.of(batch)
        cells = label_names(batch.column(label))[there]
        empty += int((~there).sum())
        full = _has_label(cells, blank)
        unlabelled += int((~full).sum())
        parts.append(items[full])
        labels.append(cells[full])
        if grouping.column is not None and full.any():
            kept = pa.array(there)
            column = batch.column(grouping.column).filter(kept).filter(pa.array(full))
            groups.append(grouping.numbers(column, int(full.sum())))
    for note in reading_notes(reading):
        say(note)
    if empty:
        say(Note("no item", empty, inputs.kind))
    if unlabelled:
        say(Note("no label", unlabelled))
    if blank:
        say(Note("label of none", subject=label, names=tuple(sorted(blank))))
    if not sum(map(len, labels)):
        raise InputError("there are no labelled rows to learn from.")
    together = np.concatenate(labels)
    _say_doubtful(together, label, say)
    if (together == together[0]).all():
        raise InputError(f"all labels are {str(together[0])!r}: at least two classes are needed.")
    names = np.array(grouping.names(), dtype=str) if groups else None
    own = None if names is None else names[np.concatenate(groups)]
    return Labelled(np.concatenate(parts), together, own)


def _say_doubtful(labels: NDArray[Any], column: str, say: Say) -> None:
    """Say which labels may mean none, and which differ only in capitals."""
    doubtful = [str(c) for c in np.unique(labels) if str(c).lower() in MAYBE_NONE]
    written: dict[str, list[str]] = {}
    for c in map(str, np.unique(labels)):
        written.setdefault(c.casefold(), []).append(c)
    alike = [c for several in written.values() if len(several) > 1 for c in several]
    if alike:
        say(Note("alike labels", subject=column, names=tuple(alike)))
    if doubtful:
        say(Note("maybe no label", subject=column, names=tuple(doubtful)))


def look_at_dates(grouping: Grouping, found: Sequence[Source], encoding: str) -> None:
    """Read ahead until it is known whether days or months come first in the dates."""
    if grouping.period is None or grouping.column is None:
        return
    again = [s for s in found if s.path is not None or s.frame is not None]
    wanted = {grouping.column: grouping.kind}
    grouping.look(part.column(0) for _, part in batches(again, wanted, encoding=encoding))


def label_names(column: Any) -> NDArray[Any]:
    """Labels as texts without blanks around them; missing ones are empty."""
    values = names_of(column).to_pylist()
    return np.array(["" if v is None else v.strip() for v in values], dtype=str)


def without_copies(rows: Labelled, say: Say) -> Labelled:
    """Each row once where many are copies: held-out copies would make the model look perfect."""
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
    kept = _once(places) if texts is None else _once(places) or _long_once(places)
    if kept is None:
        return rows
    say(Note("copies", len(rows.labels) - len(kept), names=(f"{len(rows.labels):,}",)))
    return rows.take(np.sort(kept))


def _once(places: dict[Any, list[int]]) -> list[int] | None:
    """Rows of a table without its repetitions; None if it does not hold each row equally often.

    Short texts and rows of few numbers are often alike without being copies. That each of many
    different rows is there twice, or four or six times, is no chance.
    """
    times = math.gcd(*map(len, places.values()))
    if times < 2 or len(places) < DIFFERENT:
        return None
    return [i for own in places.values() for i in own[: len(own) // times]]


def _long_once(places: dict[Any, list[int]]) -> list[int] | None:
    """Rows with each long text once; None if few rows are copies of such."""
    n = sum(map(len, places.values()))
    kept = [
        i
        for (text, _), own in places.items()
        for i in (own[:1] if len(text.split()) >= LONG else own)
    ]
    return kept if n - len(kept) >= COPIES * n else None


def without_rare(
    rows: Labelled, label: str, min_rows: int | None, rare: str, say: Say
) -> tuple[Labelled, dict[str, Any] | None]:
    """Rows whose classes all have enough of them, and what was joined or dropped for that.

    Parameters
    ----------
    min_rows : int or None
        Rows that a class must have. None refuses classes of fewer than 5, all at once.
    rare : {'join', 'drop'}
        What is done with those that have fewer.
    """
    classes, counts = np.unique(rows.labels, return_counts=True)
    few = counts < (LEAST if min_rows is None else max(min_rows, LEAST))
    if min_rows is None and few.any():
        raise _too_rare(classes[few], counts[few], label)
    said = None
    if few.any():
        names = tuple(str(c) for c in classes[few])
        is_rare = np.isin(rows.labels, classes[few])
        joins = rare == "join" and int(is_rare.sum()) >= LEAST
        name = OTHER if OTHER not in classes[~few] else OTHER_STILL
        rows_of = int(is_rare.sum())
        say(Note(f"rare {'joined' if joins else 'dropped'}", rows_of, name, names))
        said = {"as": name if joins else None, "classes": list(names), "rows": rows_of}
        if joins:
            rows = replace(rows, labels=np.where(is_rare, name, rows.labels))
        else:
            rows = rows.take(~is_rare)
    left = np.unique(rows.labels)
    if len(left) < 2:
        raise InputError(
            f"only {left.tolist()} is left of the classes: ask for fewer rows of each."
        )
    if len(left) > 200:
        raise InputError(f"{label!r} has {len(left)} different values: is it the column of labels?")
    return rows, said


def _has_label(cells: NDArray[Any], blank: set[str]) -> Bools:
    """Which cells hold a label; texts that stand for none are gathered in `blank`."""
    full = cells != ""
    none = np.isin(np.char.lower(cells), NO_LABEL) if len(cells) else full
    blank |= set(np.unique(cells[none]).tolist())
    return np.asarray(full & ~none)


def _too_rare(classes: NDArray[Any], counts: NDArray[Any], label: str) -> InputError:
    shown = ", ".join(f"{str(c)!r} ({n})" for c, n in zip(classes[:20], counts, strict=False))
    more = f" and {len(classes) - 20} more" if len(classes) > 20 else ""
    if len(classes) > 200:
        return InputError(f"{label!r} has over {len(classes)} values: is it the column of labels?")
    some = f"{len(classes)} classes" if len(classes) > 1 else "a class"
    return InputError(
        f"{some} of {label!r} with fewer than {LEAST} labelled rows, too "
        f"few to know how they are scored: {shown}{more}. Label more (ten times as many to be of "
        "use), "
        "or ask for a number of rows, and the rarer classes are joined or dropped.",
        setting="min-rows",
    )
