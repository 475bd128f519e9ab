"""A plain look at items that no classifier has a hand in, to see whether they have changed."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import HashingVectorizer

from headcount._core.types import Floats, Ints
from headcount.scores.columns import column_encoder, is_numeric

WORDS = 16  # buckets that the words of a text are put into
CELLS = 4  # of each channel
FEATURES = 64  # of a table that are looked at
ROWS = 20_000  # labelled items that are kept

Cells = NDArray[np.uint16]


class Channels(BaseEstimator):
    """Cells of items in a few channels: how many words of a kind, which quarter of a number.

    Words are put into buckets by a hash, so that nothing depends on which texts were seen: a text
    is looked at in the same way whether it is labelled or new, which is not so for a vocabulary.

    Parameters
    ----------
    kind : {'text', 'features', 'text and features'}
    """

    def __init__(self, kind: str = "text"):
        self.kind = kind

    def fit(self, X: Any, codes: Ints) -> Self:
        """Learn the cells' borders, and keep the cells of labelled items."""
        if len(codes) > ROWS:
            some = np.random.default_rng(0).choice(len(codes), ROWS, replace=False)
            X, codes = X[some], codes[some]
        if self.kind != "text":
            cells = self._cells(X)
            self.encoder_ = column_encoder([is_numeric(column) for column in cells.T]).fit(cells)
        values = self._values(X)
        shares = np.arange(1, CELLS) / CELLS
        self.edges_ = [np.unique(np.quantile(column, shares)) for column in values.T]
        self.codes_ = codes
        self.cells_ = self.cells(X)
        return self

    @property
    def widths(self) -> list[int]:
        """Number of cells of each channel."""
        return [len(edges) + 1 for edges in self.edges_]

    def cells(self, X: Any) -> Cells:
        """Cell of each item in each channel, numbered through."""
        starts = np.cumsum([0, *self.widths[:-1]])
        columns = zip(starts, self.edges_, self._values(X).T, strict=True)
        return np.column_stack(
            [
                start + np.searchsorted(edges, column, side="left")
                for start, edges, column in columns
            ]
        ).astype(np.uint16)

    def _values(self, X: Any) -> Floats:
        found = []
        if self.kind != "features":
            buckets = HashingVectorizer(n_features=WORDS, alternate_sign=False, norm=None)
            found.append(buckets.transform(X if self.kind == "text" else X[:, 0]).toarray())
        if self.kind != "text":
            cells = self.encoder_.transform(self._cells(X))[:, :FEATURES]
            found.append(cells.toarray() if sparse.issparse(cells) else cells)
        return np.column_stack(found)

    def _cells(self, X: Any) -> Any:
        """Features without the text."""
        return X if self.kind == "features" else X[:, 1:]
