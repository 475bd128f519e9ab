"""Input columns of a model, and the items that rows of a table become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer

from headcount._core.types import Bools, Floats
from headcount.exceptions import InputError, choose
from headcount.scores.columns import column_encoder, is_numeric
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
