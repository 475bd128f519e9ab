"""Input columns of a model, the items that rows become, and the order of columns of scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata
from sklearn.compose import ColumnTransformer

from headcount._core.types import Bools, Floats, Ints
from headcount.exceptions import InputError, choose
from headcount.scores.columns import column_encoder, is_numeric
from headcount.tables.notes import Note, Notify
from headcount.text.names import make_vectorizer

BOTH = "text and features"
KINDS = {"text": "text", "features": "any", BOTH: "any", "scores": "number"}


@dataclass(frozen=True)
class Inputs:
    """One column of texts, columns of features, both (the text first), or columns of scores."""

    kind: str
    columns: tuple[str, ...]
    flipped: bool = False  # whether a single column of scores is of the first class
    middle: float = 0.5  # of a single column: the score from which a row counts as of its class

    def __post_init__(self) -> None:
        choose("kind of input", self.kind, KINDS)
        if self.kind == "text" and len(self.columns) != 1:
            raise InputError("one column of texts is expected.")
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise InputError(f"columns must be given, each once, got {list(self.columns)}.")

    @property
    def wanted(self) -> dict[str, str]:
        """Columns to read, and as what."""
        wanted = dict.fromkeys(self.columns, KINDS[self.kind])
        return wanted | ({self.columns[0]: "text"} if self.kind == BOTH else {})

    @property
    def texts(self) -> tuple[str, ...]:
        """The column of texts, if there is one."""
        return self.columns[:1] if self.kind in ("text", BOTH) else ()

    def of(self, batch: pa.RecordBatch) -> tuple[Any, Bools]:
        """Items of a batch, and which of its rows have one."""
        if self.kind == "text":
            return _texts(batch.column(self.columns[0]))
        if self.kind == "scores":
            return self._scores(batch)
        cells = np.empty((batch.num_rows, len(self.columns)), dtype=object)
        for j, name in enumerate(self.columns):
            cells[:, j] = batch.column(name).to_pylist()
        if self.kind == BOTH:  # a row without a text is left out, whatever else it has
            present = _texts(batch.column(self.columns[0]))[1]
        else:
            present = np.array([any(v not in (None, "") for v in row) for row in cells], dtype=bool)
        return cells[present], present

    def front(self, items: Any, vectorizer: str) -> Any:
        """Transformer of texts, of features, or of both side by side."""
        if self.kind == "text":
            return make_vectorizer(vectorizer)
        if self.kind == "features":
            return _encoder(items)
        others = list(range(1, items.shape[1]))
        return ColumnTransformer(
            [("text", make_vectorizer(vectorizer), 0), ("features", _encoder(items[:, 1:]), others)]
        )

    def _scores(self, batch: pa.RecordBatch) -> tuple[Floats, Bools]:
        matrix = np.column_stack(
            [batch.column(c).to_numpy(zero_copy_only=False) for c in self.columns]
        )
        present = np.ones(batch.num_rows, dtype=bool)
        if not np.isfinite(matrix.sum()):  # one check of all cells is cheaper than one per row
            present = ~np.isnan(matrix).any(axis=1)
            matrix = matrix[present]
        return self.pair(matrix[:, 0]) if len(self.columns) == 1 else matrix, present

    def pair(self, scores: Floats) -> Floats:
        """Scores of both classes from those of a single column."""
        rest = 2 * self.middle - scores
        return np.column_stack([scores, rest] if self.flipped else [rest, scores])


def _texts(column: pa.Array) -> tuple[NDArray[Any], Bools]:
    """Texts that are not empty, and which rows these are."""
    length = pc.utf8_length(pc.utf8_trim_whitespace(column))
    full = pc.fill_null(pc.greater(length, 0), False)
    present = np.asarray(full.to_numpy(zero_copy_only=False), dtype=bool)
    return np.array(column.filter(full).to_pylist(), dtype=object), present


def _encoder(cells: NDArray[Any]) -> ColumnTransformer:
    return column_encoder([is_numeric(column) for column in cells.T])


def orient(
    inputs: Inputs, scores: Floats, labels: NDArray[Any], notify: Notify
) -> tuple[Inputs, Floats]:
    """Columns of scores in the order of the classes, and the scores in that order."""
    classes, codes = np.unique(labels, return_inverse=True)
    names = [str(c) for c in classes]
    if len(inputs.columns) == 1 and len(names) == 2:
        inputs = _orient_single(inputs, scores[:, 1], codes == 1, names, notify)
        return inputs, inputs.pair(scores[:, 1])
    order = _order_of_columns(list(inputs.columns), scores, codes, names, notify)
    return Inputs("scores", tuple(inputs.columns[j] for j in order)), scores[:, order]


def _orient_single(
    inputs: Inputs, scores: Floats, is_second: Bools, names: list[str], notify: Notify
) -> Inputs:
    """One column of scores for two classes: it is of the class whose rows score higher."""
    column = inputs.columns[0]
    n, m = int(is_second.sum()), int((~is_second).sum())
    ranks = rankdata(scores)[is_second].sum()
    auc = (ranks - n * (n + 1) / 2) / (n * m)
    standard_error = np.sqrt((n + m + 1) / (12 * n * m))  # without a difference (Mann-Whitney)
    named = class_in_name(column, names)
    if abs(auc - 0.5) < 3 * standard_error:
        notify(Note("score of neither", subject=column))
        own = 1 if named < 0 else named
    else:
        own = int(auc > 0.5)
    if named >= 0 and named != own:
        notify(Note("score against name", subject=column, names=(names[own],)))
    notify(Note("score of", subject=column, names=(names[own],)))
    middle = _threshold(scores, is_second if own else ~is_second)
    return replace(inputs, flipped=own == 0, middle=middle)


def _threshold(scores: Floats, is_of: Bools) -> float:
    """Score from which a row counts as of the class: a half, or the best one on another scale."""
    if scores.min() >= 0 and scores.max() <= 1:
        return 0.5
    values, place = np.unique(scores, return_inverse=True)
    yes = np.bincount(place, is_of)
    no = np.bincount(place, ~is_of)
    # Wrong rows if the threshold lies below each value, or above the last.
    wrong = np.cumsum([0, *yes]) + no.sum() - np.cumsum([0, *no])
    edges = [values[0] - 1, *(values[1:] + values[:-1]) / 2, values[-1] + 1]
    return float(edges[int(np.argmin(wrong))])


def _order_of_columns(
    columns: list[str], scores: Floats, codes: Ints, names: list[str], notify: Notify
) -> list[int]:
    """Column of each class by its name, or else by the labels."""
    if len(columns) != len(names):
        raise InputError(
            f"{len(columns)} column{'s' * (len(columns) > 1)} of scores for the {len(names)} "
            f"classes {names[:10]}: one for each is needed."
        )
    by_labels = _order_by_labels(scores, codes)
    named = [class_in_name(column, names) for column in columns]
    if sorted(named) == list(range(len(columns))):
        order = [named.index(c) for c in range(len(columns))]
        if order != by_labels:
            odd = [names[c] for c in range(len(names)) if order[c] != by_labels[c]]
            notify(Note("scores against names", names=tuple(odd)))
        return order
    if max(named) >= 0:
        raise InputError(
            f"the columns {columns} tell some of the classes {names[:10]} but not all: name each "
            "after its class, such as p_yes."
        )
    pairs = tuple(f"'{columns[j]}' = {n}" for j, n in zip(by_labels, names, strict=True))
    notify(Note("scores by labels", names=pairs))
    return by_labels


def _order_by_labels(scores: Floats, codes: Ints) -> list[int]:
    """Column of each class such that rows score as high as possible in that of their class."""
    spread = scores.std(axis=0)
    standard = (scores - scores.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    means = np.array([standard[codes == c].mean(axis=0) for c in range(int(codes.max()) + 1)])
    order: list[int] = linear_sum_assignment(-np.nan_to_num(means))[1].tolist()
    return order


def class_in_name(column: str, names: list[str]) -> int:
    """Number of the class that the name of a column ends with; -1 if none."""
    lower = column.lower()
    fits = [
        (len(name), c)
        for c, name in enumerate(names)
        if lower == name.lower()
        or (lower.endswith(name.lower()) and not lower[: -len(name)][-1:].isalnum())
    ]
    return max(fits)[1] if fits else -1
