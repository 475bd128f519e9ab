"""Histograms of the items themselves, without a classifier, to test for covariate drift."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import HashingVectorizer

from headcount._core.types import Floats, Ints
from headcount.scores.columns import column_encoder, is_numeric

Bins = NDArray[np.uint16]


class CovariateBins(BaseEstimator):
    """Bins of items in a few channels: how many words of a hash bucket, which quarter of a number.

    Words are hashed rather than looked up in a vocabulary, so that labelled and new texts are
    binned in the same way.

    Parameters
    ----------
    kind : {'text', 'features', 'text and features'}
    n_buckets : int
        Hash buckets of words.
    n_features : int
        Columns of encoded features that are used.
    max_rows : int
        Labelled items that are kept.

    Notes
    -----
    The sizes are conventions; `benchmarks/fit_test.py` measures false alarms and power with them.
    """

    def __init__(
        self,
        kind: str = "text",
        n_buckets: int = 16,
        n_features: int = 64,
        max_rows: int = 20_000,
    ):
        self.kind, self.n_buckets = kind, n_buckets
        self.n_features, self.max_rows = n_features, max_rows

    def fit(self, X: Any, codes: Ints) -> Self:
        """Learn the edges of the bins, and keep the bins of labelled items."""
        if len(codes) > self.max_rows:
            some = np.random.default_rng(0).choice(len(codes), self.max_rows, replace=False)
            X, codes = X[some], codes[some]
        if self.kind != "text":
            features = self._features(X)
            numeric = [is_numeric(column) for column in features.T]
            self.encoder_ = column_encoder(numeric).fit(features)
        quartiles = np.array([0.25, 0.5, 0.75])
        self.edges_ = [np.unique(np.quantile(column, quartiles)) for column in self._values(X).T]
        self.codes_ = codes
        self.bins_ = self.bins(X)
        return self

    @property
    def widths(self) -> list[int]:
        """Number of bins of each channel."""
        return [len(edges) + 1 for edges in self.edges_]

    def bins(self, X: Any) -> Bins:
        """Bin of each item in each channel, numbered consecutively over the channels."""
        starts = np.cumsum([0, *self.widths[:-1]])
        columns = zip(starts, self.edges_, self._values(X).T, strict=True)
        return np.column_stack(
            [
                start + np.searchsorted(edges, values, side="left")
                for start, edges, values in columns
            ]
        ).astype(np.uint16)

    def _values(self, X: Any) -> Floats:
        parts = []
        if self.kind != "features":
            texts = X if self.kind == "text" else X[:, 0]
            hashing = HashingVectorizer(n_features=self.n_buckets, alternate_sign=False, norm=None)
            parts.append(hashing.transform(texts).toarray())
        if self.kind != "text":
            encoded = self.encoder_.transform(self._features(X))[:, : self.n_features]
            parts.append(encoded.toarray() if sparse.issparse(encoded) else encoded)
        return np.column_stack(parts)

    def _features(self, X: Any) -> Any:
        """Features without the text."""
        return X if self.kind == "features" else X[:, 1:]
