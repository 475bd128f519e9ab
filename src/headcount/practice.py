"""The practitioner's way: labelled rows in a table, a heap of rows in others, shares per month.

`learn` fits a quantifier to columns of a table, `count` reads a heap of any length in one pass and
gives the share of every class in every group, with bounds and with what to be careful about, and
`changes` tells which groups differ from a reference by more than chance.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline

from headcount import methods
from headcount.classify.channels import Channels
from headcount.classify.columns import ColumnEncoder, is_numeric
from headcount.classify.crossfit import ScorePass, score
from headcount.data.groups import MISSING, UNREADABLE, Grouping
from headcount.data.stream import Source, batches, columns_of, names_of
from headcount.data.tables import as_names
from headcount.diagnostics import FEW, Diagnosis, FitTest
from headcount.exceptions import HeadcountWarning, InputError, choose
from headcount.frame import Frame
from headcount.intervals import Interval, Request
from headcount.methods.base import ScoreQuantifier
from headcount.protocols import UniformPrevalence
from headcount.report.significance import holm
from headcount.sketch import Sketch
from headcount.text.names import make_vectorizer

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Say = Callable[[str], None]

KINDS = {"text": "text", "features": "any", "scores": "number"}
SCORED = 1 << 16  # rows that are scored at once


@dataclass(frozen=True)
class Inputs:
    """What the model looks at: one column of texts, columns of features, or columns of scores."""

    kind: str
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        choose("kind of input", self.kind, KINDS)
        if self.kind == "text" and len(self.columns) != 1:
            raise InputError("one column of texts is expected.")
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise InputError(f"columns must be given, each once, got {list(self.columns)}.")

    @property
    def wanted(self) -> dict[str, str]:
        """Columns to read, and as what."""
        return dict.fromkeys(self.columns, KINDS[self.kind])

    def of(self, batch: pa.RecordBatch) -> tuple[Any, NDArray[np.bool_]]:
        """Items of a part of a table, and which of its rows hold one."""
        n = batch.num_rows
        if self.kind == "text":
            column = batch.column(self.columns[0])
            length = pc.utf8_length(pc.utf8_trim_whitespace(column))
            full = pc.fill_null(pc.greater(length, 0), False)
            there = np.asarray(full.to_numpy(zero_copy_only=False), dtype=bool)
            return np.array(column.filter(full).to_pylist(), dtype=object), there
        if self.kind == "scores":
            matrix = np.column_stack(
                [batch.column(c).to_numpy(zero_copy_only=False) for c in self.columns]
            )
            there = np.ones(n, dtype=bool)
            whole = matrix
            if not np.isfinite(matrix.sum()):  # one look at all cells is cheaper than at each row
                there = ~np.isnan(matrix).any(axis=1)
                whole = matrix[there]
            return (np.column_stack([1 - whole, whole]) if len(self.columns) == 1 else whole), there
        cells = np.empty((n, len(self.columns)), dtype=object)
        for j, name in enumerate(self.columns):
            cells[:, j] = batch.column(name).to_pylist()
        there = np.array([any(v is not None and v != "" for v in row) for row in cells], dtype=bool)
        return cells[there], there


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted quantifier, and the columns it was fitted to."""

    quantifier: Any
    inputs: Inputs
    label: str
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def channels(self) -> Channels | None:
        """How items are looked at apart from their scores; None for scores alone."""
        return getattr(self.quantifier, "channels_", None)

    def scores(self, items: Any) -> Floats:
        """Scores of items.

        They are scored as the labelled ones were: each by one of the classifiers that saw four
        fifths of the labelled items, whichever a hash of the item says. The one that saw all of
        them is surer of itself, and would make new items look unlike the labelled ones.
        """
        if self.inputs.kind == "scores":
            return np.asarray(items, dtype=np.float64)
        q = self.quantifier
        folds = q.fold_classifiers_
        turn = np.array([crc32(repr(item).encode()) for item in items.tolist()]) % len(folds)
        out = np.empty((len(items), len(q.classes_)))
        for f, classifier in enumerate(folds):
            mine = turn == f
            if mine.any():
                out[mine] = score(classifier, items[mine], q.classes_, q.score_kind_)
        return out

    def save(self, path: Any) -> None:
        """Write a ``.hc`` file."""
        from headcount.models import save

        about = {
            "kind": self.inputs.kind,
            "columns": list(self.inputs.columns),
            "label": self.label,
            "training": self.summary,
        }
        save(self.quantifier, path, about)

    @classmethod
    def load(cls, path: Any) -> Model:
        """Read a ``.hc`` file that `save` wrote."""
        from headcount.models import load, manifest_of

        about: Any = manifest_of(path).get("about")
        quantifier = load(path)
        try:
            inputs = Inputs(about["kind"], tuple(map(str, about["columns"])))
            summary = dict(about["training"])
            kind = getattr(getattr(quantifier, "channels_", None), "kind", "scores")
            sound = isinstance(quantifier, ScoreQuantifier) and kind == inputs.kind
            sound = sound and (kind == "scores" or bool(quantifier.fold_classifiers_))
            sound = sound and quantifier.held_scores_ is not None
            label = str(about["label"])
        except (TypeError, KeyError, AttributeError):
            sound = False
        if not sound:
            raise InputError(f"{path} was not made by `headcount fit`, or was changed since.")
        return cls(quantifier, inputs, label, summary)


def learn(
    found: Sequence[Source],
    inputs: Inputs,
    label: str,
    *,
    method: str = "SLD",
    calibrator: str | None = None,
    vectorizer: str = "tfidf",
    encoding: str = "utf8",
    say: Say = lambda _: None,
    progress: Callable[[int], None] | None = None,
) -> Model:
    """Fit a model to labelled tables.

    Parameters
    ----------
    found : sources of labelled rows
    inputs : columns to look at
    label : column of labels
    method : name of a quantifier that works on scores
    calibrator : optional
        By default 'bcts' for SLD and none for the others; 'none' for none.
    vectorizer : how texts become vectors
    say : function that is told what was left out or decided
    """
    items, labels = _labelled(found, inputs, label, encoding, say, progress)
    quantifier = _made(method, calibrator)
    if inputs.kind == "scores":
        inputs, order = _aligned(inputs, np.unique(labels), say)
        quantifier.fit_scores(items[:, order], labels)
    else:
        front = (
            make_vectorizer(vectorizer)
            if inputs.kind == "text"
            else ColumnEncoder(tuple(is_numeric(column) for column in items.T))
        )
        quantifier.set_params(classifier=make_pipeline(front, LogisticRegression(max_iter=1000)))
        done = quantifier._run_pass(items, labels, True, keep_folds=True)
        quantifier._fit_pass(done)
        quantifier.fold_classifiers_ = list(done.folds)
        quantifier.channels_ = Channels(inputs.kind).fit(
            items, np.searchsorted(quantifier.classes_, labels)
        )
    names, counts = np.unique(labels, return_counts=True)
    summary = {
        "rows": len(labels),
        "method": method,
        "shares": {str(c): round(n / len(labels), 6) for c, n in zip(names, counts, strict=True)},
    }
    model = Model(quantifier, inputs, label, summary)
    summary["quality"] = quality(quantifier)
    return model


def quality(fitted: ScoreQuantifier, n_bags: int = 200) -> dict[str, float] | None:
    """How far estimates are off on bags of labelled rows that they were not learnt from.

    Half of the held-out scores are learnt from anew, and bags with shares drawn at random are
    made of the other half. None where there are too few rows for that.
    """
    held, codes = fitted.held_scores_, fitted.held_codes_
    if held is None or codes is None or np.bincount(codes).min() < 10:
        return None
    size = int(np.clip(len(codes) // 4, 50, 500))
    ours, counting, inside = [], [], []
    drawing = UniformPrevalence(n_bags=n_bags // 2, size=size, random_state=0)
    halving = StratifiedShuffleSplit(2, test_size=0.5, random_state=0)
    for learnt, other in halving.split(held, codes):
        frequency = np.bincount(codes[learnt]) / len(learnt)
        done = ScorePass(
            fitted.classes_, frequency, None, held[learnt], codes[learnt], fitted.score_kind_
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            half = clone(fitted)._fit_pass(done)
            drawn = drawing.draw(codes[other])
            truth = drawn.prevalence
            assert truth is not None
            found = half._intervals(half._estimate(held[other], drawn), drawn.sizes, Request())
        counted = drawn.shares(held[other].argmax(axis=1), len(fitted.classes_))
        ours.append(np.abs(found.prevalence - truth).mean())
        counting.append(np.abs(counted - truth).mean())
        inside.append(((truth >= found.low) & (truth <= found.high)).mean())
    return {
        "bags": n_bags,
        "size": size,
        "error": float(np.mean(ours)),
        "counting": float(np.mean(counting)),
        "coverage": float(np.mean(inside)),
    }


@dataclass(frozen=True, eq=False)
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
    notes: tuple[str, ...] = ()

    def flags(self, g: int) -> list[str]:
        """Short names of what is wrong with group number `g`."""
        own = ["nodate"] if self.groups[g] == UNREADABLE else []
        return [*own, *self.diagnosis.flags(g)]

    def messages(self) -> list[tuple[str, str]]:
        """Group and sentence, for everything that is wrong."""
        return [(g, m) for i, g in enumerate(self.groups) for m in self.diagnosis.messages(i)]

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
            "flags": np.repeat(
                np.array([" ".join(self.flags(g)) for g in range(len(self.groups))], dtype=str), k
            ),
        }
        if self.truth is not None:
            truth = self.truth
            inside = (truth >= self.interval.low) & (truth <= self.interval.high)
            columns["truth"] = truth.ravel()
            columns["inside"] = np.where(np.isnan(truth), np.nan, inside).ravel()
        return Frame(columns)


def count(
    model: Model,
    found: Sequence[Source],
    *,
    by: str | None = None,
    truth: str | None = None,
    level: float = 0.95,
    target: str = "bag",
    encoding: str = "utf8",
    progress: Callable[[int], None] | None = None,
) -> Count:
    """Count the classes in a heap of rows, group by group, in one pass and bounded memory.

    Parameters
    ----------
    model : what `learn` gave, or `Model.load`
    found : sources of rows
    by : str, optional
        A column, or a period and a column of dates, such as ``month:date``.
    truth : str, optional
        Column of true labels, to compare the estimates with.
    level : float
        Of the intervals.
    target : {'bag', 'population'}
        Shares among these very rows, or among all that might have been in their place.
    """
    scorer = model.quantifier
    scorer._check_intervals()
    request = Request(level=level, target=target)
    grouping = Grouping.parse(by)
    wanted = dict(model.inputs.wanted)
    for extra, kind in ((grouping.column, grouping.kind), (truth, "name")):
        if extra is not None:
            wanted.setdefault(extra, kind)  # a column that is looked at too stays as it is
    sketch = Sketch.of(len(scorer.classes_), scorer.score_kind_)
    tally = _Tally(len(scorer.classes_))
    looks = _Looks(model.channels)
    names = as_names(scorer.classes_)
    strange_labels: set[str] = set()
    for source, batch in batches(found, wanted, encoding=encoding, progress=progress):
        items, there = model.inputs.of(batch)
        tally.left_out += int((~there).sum())
        if not there.any():
            continue
        column = None if grouping.column is None else batch.column(grouping.column)
        if column is not None and not there.all():
            column = column.filter(pa.array(there))
        groups = grouping.numbers(column, int(there.sum()))
        for start in range(0, len(groups), SCORED):
            part = slice(start, start + SCORED)
            try:
                sketch.add(model.scores(items[part]), groups[part])
            except InputError as error:
                raise InputError(f"{source.name}: {error}") from None
        tally.add(groups)
        looks.add(items, groups)
        if truth is not None:
            cells = _cells(batch.column(truth))[there]
            strange_labels |= tally.add_truth(cells, names, groups)
    if not tally.total:
        raise InputError(
            "there is nothing to count: "
            + (f"all {tally.left_out} rows are empty." if tally.left_out else "no rows.")
        )
    if grouping.unreadable == tally.total:
        raise InputError(
            f"no cell of {grouping.column!r} could be read as a date: ISO dates such as 2026-11-30 "
            "are expected."
        )
    if truth is not None and not tally.labelled:
        raise InputError(
            f"{truth!r} holds none of the classes {names.tolist()[:10]}: is it the column of true "
            "labels?"
        )
    notes = _notes(tally, grouping, strange_labels, truth, model, found)
    return _estimated(scorer, sketch, tally, looks, grouping, request, truth is not None, notes)


def _estimated(
    scorer: ScoreQuantifier,
    sketch: Sketch,
    tally: _Tally,
    looks: _Looks,
    grouping: Grouping,
    request: Request,
    with_truth: bool,
    notes: list[str],
) -> Count:
    pool, bags = sketch.points()
    order = [g for g in grouping.order() if tally.sizes()[g]]
    every = grouping.names()
    if len(order) < len(bags):
        bags = bags[[g for g in range(len(bags)) if tally.sizes()[g]]]
    place = {g: i for i, g in enumerate(g for g in range(len(every)) if tally.sizes()[g])}
    bags = bags[[place[g] for g in order]]
    sizes = tally.sizes()[order]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimates = scorer._estimate(pool, bags)
    notes += [str(w.message) for w in caught if issubclass(w.category, HeadcountWarning)]
    interval = scorer._intervals(estimates, sizes, request)
    diagnosis = scorer._fit_test().run(scorer._calibrated(pool), bags, sizes)
    diagnosis = replace(diagnosis, drift=looks.p_values(order, sizes))
    counted = bags.shares(pool.argmax(axis=1), len(scorer.classes_))
    truth = tally.truth(order) if with_truth else None
    names = [every[g] for g in order]
    return Count(
        names, sizes, interval, diagnosis, counted, grouping, tally.left_out, truth, tuple(notes)
    )


class _Looks:
    """Histograms of what the items of groups look like."""

    def __init__(self, channels: Channels | None):
        self.channels = channels
        width = 0 if channels is None else sum(channels.widths)
        self.counts = np.zeros((0, width), dtype=np.int64)

    def add(self, items: Any, groups: Ints) -> None:
        if self.channels is None:
            return
        cells = self.channels.cells(items)
        width = self.counts.shape[1]
        n_groups = max(len(self.counts), int(groups.max()) + 1)
        grown = np.zeros((n_groups, width), dtype=np.int64)
        grown[: len(self.counts)] = self.counts
        for column in cells.T:
            places = groups * width + column
            grown += np.bincount(places, minlength=n_groups * width).reshape(n_groups, width)
        self.counts = grown

    def p_values(self, order: list[int], sizes: Ints) -> Floats:
        if self.channels is None:
            return np.full(len(order), np.nan)
        test = FitTest(self.channels.cells_, self.channels.widths, self.channels.codes_)
        return test.p_values(self.counts[order] / sizes[:, None], sizes)


class _Tally:
    """Numbers of rows by group, and of true labels."""

    def __init__(self, n_classes: int):
        self.n_classes = n_classes
        self.left_out = 0
        self.total = 0
        self.labelled = 0
        self._sizes = np.zeros(0, dtype=np.int64)
        self._truth = np.zeros((0, n_classes), dtype=np.int64)

    def add(self, groups: Ints) -> None:
        self.total += len(groups)
        found = np.bincount(groups, minlength=len(self._sizes))
        found[: len(self._sizes)] += self._sizes
        self._sizes = found

    def add_truth(self, cells: NDArray[Any], names: NDArray[Any], groups: Ints) -> set[str]:
        """Count true labels; gives those that are no class of the model."""
        order = np.argsort(names)
        codes = order[np.minimum(np.searchsorted(names[order], cells), len(names) - 1)]
        known = names[codes] == cells
        grown = np.zeros((len(self._sizes), self.n_classes), dtype=np.int64)
        grown[: len(self._truth)] = self._truth
        self.labelled += int(known.sum())
        np.add.at(grown, (groups[known], codes[known]), 1)
        self._truth = grown
        return set(np.unique(cells[~known]).tolist())

    def sizes(self) -> Ints:
        return self._sizes

    def truth(self, order: list[int]) -> Floats:
        """True shares among the labelled rows of a group; NaN where there is none."""
        counts = self._truth[order].astype(float)
        totals = counts.sum(axis=1, keepdims=True)
        return np.where(totals > 0, counts / np.maximum(totals, 1), np.nan)


def first_group(found: Count) -> str:
    """First group that is large enough to compare others with."""
    for name, n in zip(found.groups, found.sizes, strict=True):
        if n >= FEW:
            return name
    raise InputError(f"no group has {FEW} rows: there is nothing to compare with.")


def changes(found: Count, reference: Sequence[str] | None = None) -> Frame:
    """Groups whose shares differ from a reference by more than chance.

    Parameters
    ----------
    found : Count
        With ``target='population'``: the question is whether the world has changed.
    reference : names of groups, optional
        The first group of at least 30 rows by default. Several are averaged, weighing by rows.

    Returns
    -------
    Frame
        A row for every other group and class: share, reference share, change, p-value corrected
        for the number of looks (Holm), and whether it changed at the level of the intervals.
        Groups of fewer than 30 rows are never said to have changed.

    Notes
    -----
    Errors of the labelled side are shared by all groups and partly cancel in a difference; they
    are counted in full, so that the test is rather too careful.
    """
    names = found.groups
    enough = found.sizes >= FEW
    chosen = [first_group(found)] if reference is None else list(reference)
    for name in chosen:
        choose("group", name, names)
    base = np.isin(names, chosen)
    if base.all():
        raise InputError("all groups are in the reference: there is nothing to compare with it.")
    shares, variance = found.interval.prevalence, found.interval.variance
    weight = found.sizes[base] / found.sizes[base].sum()
    middle = weight @ shares[base]
    spread = (weight @ np.sqrt(variance[base])) ** 2
    others = np.flatnonzero(~base)
    change = shares[others] - middle
    p = 2 * ndtr(-np.abs(change) / np.sqrt(variance[others] + spread))
    looks = p.ravel() if len(found.interval.classes) > 2 else p[:, 1]
    adjusted = holm(looks)
    full = adjusted.reshape(p.shape) if p.shape[1] > 2 else np.column_stack([adjusted, adjusted])
    k = shares.shape[1]
    return Frame(
        {
            "group": np.repeat(np.array(names, dtype=str)[others], k),
            "class": np.tile(as_names(found.interval.classes), len(others)),
            "share": shares[others].ravel(),
            "reference": np.tile(middle, len(others)),
            "change": change.ravel(),
            "p": full.ravel(),
            "changed": (full.ravel() < 1 - found.interval.level) & np.repeat(enough[others], k),
            "flags": np.repeat(
                np.array([" ".join(found.flags(int(g))) for g in others], dtype=str), k
            ),
        }
    )


def _labelled(
    found: Sequence[Source],
    inputs: Inputs,
    label: str,
    encoding: str,
    say: Say,
    progress: Callable[[int], None] | None,
) -> tuple[Any, NDArray[Any]]:
    """Items and labels of tables; rows without an item or a label are left out, and said."""
    wanted = dict(inputs.wanted)
    if label in wanted:
        raise InputError(f"{label!r} is both the label and something to look at.")
    parts, labels, empty, unlabelled = [], [], 0, 0
    for _, batch in batches(found, {**wanted, label: "name"}, encoding=encoding, progress=progress):
        items, there = inputs.of(batch)
        cells = _cells(batch.column(label))[there]
        empty += int((~there).sum())
        full = cells != ""
        unlabelled += int((~full).sum())
        parts.append(items[full])
        labels.append(cells[full])
    if empty:
        say(f"{empty:,} rows without {inputs.kind} were left out.")
    if unlabelled:
        say(f"{unlabelled:,} rows without a label were left out.")
    if not labels or not sum(map(len, labels)):
        raise InputError("there are no labelled rows to learn from.")
    together = np.concatenate(labels)
    classes, counts = np.unique(together, return_counts=True)
    if len(classes) < 2:
        raise InputError(f"all labels are {str(classes[0])!r}: at least two classes are needed.")
    if len(classes) > 200:
        raise InputError(
            f"{label!r} has {len(classes)} different values: is it the column of labels?"
        )
    few = classes[counts < 5]
    if len(few):
        raise InputError(
            f"class {str(few[0])!r} of {label!r} has {counts[counts < 5][0]} labelled rows, and at "
            "least 5 are needed to know how it is scored (10 times as many to be of use): label "
            "more, join it with another class, or leave its rows out."
        )
    return np.concatenate(parts), together


def _cells(column: Any) -> NDArray[Any]:
    """Labels as texts without blanks around them; missing ones are empty."""
    values = names_of(column).to_pylist()
    return np.array(["" if v is None else v.strip() for v in values], dtype=str)


def _made(method: str, calibrator: str | None) -> ScoreQuantifier:
    """Quantifier by name, with a calibrator that suits it."""
    names = {
        name: value
        for name in methods.__all__
        if isinstance(value := getattr(methods, name), type)
        and issubclass(value, ScoreQuantifier)
        and value is not ScoreQuantifier
        and not getattr(value, "__abstractmethods__", None)
    }
    kind = names[choose("method", method, sorted(names))]
    if calibrator is None:
        calibrator = "bcts" if issubclass(kind, methods.SLD) else "none"
    chosen = None if calibrator == "none" else calibrator
    made: ScoreQuantifier = kind(calibrator=chosen, n_jobs=-1)
    return made


def _aligned(inputs: Inputs, classes: NDArray[Any], say: Say) -> tuple[Inputs, list[int]]:
    """Columns of scores in the order of the classes, told by their names where they tell."""
    columns = list(inputs.columns)
    names = [str(c) for c in classes]
    told = [_told(column, names) for column in columns]
    if len(columns) == 1 and len(classes) == 2:
        if told[0] == 0:
            raise InputError(
                f"{columns[0]!r} looks like the score of {names[0]!r}, and a single column must be "
                f"that of {names[1]!r}: give both columns, or turn it round (1 - p)."
            )
        say(f"{columns[0]!r} is taken as the score of {names[1]!r}.")
        return inputs, [0, 1]
    if len(columns) != len(classes):
        raise InputError(
            f"{len(columns)} columns of scores for the {len(classes)} classes "
            f"{classes.tolist()[:10]}: one for each is needed."
        )
    if sorted(told) == list(range(len(columns))):
        order = [told.index(c) for c in range(len(columns))]
    elif max(told) >= 0:
        raise InputError(
            f"the columns {columns} tell some of the classes {names[:10]} but not all: name each "
            "after its class, such as p_yes."
        )
    else:
        order = list(range(len(columns)))
        pairs = ", ".join(f"{c} = {n}" for c, n in zip(columns, names, strict=True))
        say(f"the names do not tell which score is of which class; taken in order: {pairs}.")
    return Inputs("scores", tuple(columns[j] for j in order)), order


def _told(column: str, names: list[str]) -> int:
    """Number of the class that the name of a column of scores ends with; -1 if none."""
    lower = column.lower()
    fits = [
        (len(name), c)
        for c, name in enumerate(names)
        if lower == name.lower()
        or (lower.endswith(name.lower()) and not lower[: -len(name)][-1:].isalnum())
    ]
    return max(fits)[1] if fits else -1


def _notes(
    tally: _Tally,
    grouping: Grouping,
    strange: set[str],
    truth: str | None,
    model: Model,
    found: Sequence[Source],
) -> list[str]:
    notes = []
    if tally.left_out:
        notes.append(f"{tally.left_out:,} rows without {model.inputs.kind} were left out.")
    if grouping.unreadable:
        notes.append(
            f"{grouping.unreadable:,} rows have no readable date in {grouping.column!r}; they are "
            f"the group {UNREADABLE}."
        )
    if MISSING in grouping.names():
        notes.append(f"rows without {grouping.column!r} are the group {MISSING}.")
    unknown = sorted(strange - {""})
    if unknown:
        notes.append(
            f"{truth!r} holds {', '.join(map(repr, unknown[:5]))}, which the model never saw: such "
            "rows are counted among the known classes, and left out of the true shares."
        )
    if truth is None and found[0].path is not None and model.label in columns_of(found[0]):
        notes.append(
            f"the column {model.label!r} is there: --truth {model.label} compares the estimates "
            "with it."
        )
    return notes
