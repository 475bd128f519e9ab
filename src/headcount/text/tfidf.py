"""tf-idf as the LeQua lab weighs terms, on scikit-learn's counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from headcount._core import validation as check
from headcount._core.types import Ints
from headcount.exceptions import InputError
from headcount.text.documents import documents, some


class TfIdf(TransformerMixin, BaseEstimator):
    """Weights (1 + log count) x log(documents / documents with the term), cosine-normalised.

    Terms are words and pairs of words that occur at least 5 times in the training documents, as
    in LeQua 2022; with ``min_df`` they occur in that many documents, as in the tweet study. A
    term of every document weighs nothing.

    Parameters
    ----------
    min_count : int, default 5
        Occurrences of a term in all training documents together.
    min_df : int, default 1
        Training documents that have it.
    ngrams : int, default 2
        Longest sequence of words that is a term.
    lowercase : bool, default True

    Examples
    --------
    >>> texts = ["good good day", "bad day", "good film"]
    >>> TfIdf(min_count=1, ngrams=1).fit_transform(texts).toarray().round(3)
    array([[0.   , 0.509, 0.   , 0.861],
           [0.938, 0.346, 0.   , 0.   ],
           [0.   , 0.   , 0.938, 0.346]])
    """

    def __init__(
        self, *, min_count: int = 5, min_df: int = 1, ngrams: int = 2, lowercase: bool = True
    ):
        self.min_count = min_count
        self.min_df = min_df
        self.ngrams = ngrams
        self.lowercase = lowercase

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn terms and their weights."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> Any:  # noqa: ARG002
        """Learn terms and weights, and give the vectors of the same documents."""
        for name in ("min_count", "min_df", "ngrams"):
            check.whole(name, getattr(self, name))
        texts = some(X)
        counter = CountVectorizer(
            ngram_range=(1, self.ngrams), lowercase=self.lowercase, dtype=np.float64
        )
        try:
            counts = counter.fit_transform(texts)
        except ValueError as error:
            raise InputError(f"no terms can be found in the documents: {error}.") from None
        n_terms = counts.shape[1]
        having = np.bincount(counts.indices, minlength=n_terms)
        total = np.bincount(counts.indices, counts.data, n_terms)
        kept = np.flatnonzero((total >= self.min_count) & (having >= self.min_df))
        if len(kept) == 0:
            raise InputError(
                f"no term occurs {self.min_count} times in {self.min_df} of the {len(texts)} "
                "documents: lower min_count or min_df, or give more documents."
            )
        names = counter.get_feature_names_out()[kept]
        self.idf_ = np.log(len(texts) / having[kept])
        self._know(names.tolist())
        return self.weigh(_columns(counts, kept))

    def _know(self, terms: list[str]) -> None:
        self.vocabulary_ = {term: i for i, term in enumerate(terms)}
        self._counter = CountVectorizer(
            ngram_range=(1, self.ngrams),
            lowercase=self.lowercase,
            vocabulary=self.vocabulary_,
            dtype=np.float64,
        )

    def __getstate__(self) -> dict[str, Any]:
        # Terms as one text: a model file would else treat each as an object of its own.
        state: dict[str, Any] = dict(super().__getstate__())
        if "vocabulary_" in state:
            state["terms"] = "\n".join(state.pop("vocabulary_"))
            del state["_counter"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        terms = state.pop("terms", None)
        super().__setstate__(state)
        if terms is not None:
            self._know(terms.split("\n"))

    def transform(self, X: Any) -> Any:
        """Sparse vectors of documents; one without known terms is all zero."""
        check_is_fitted(self, "idf_")
        texts = documents(X)
        if not texts:
            return sparse.csr_matrix((0, len(self.idf_)))
        return self.weigh(self._counter.transform(texts))

    def weigh(self, counts: Any) -> Any:
        """Weights of counted terms, which are overwritten."""
        np.log(counts.data, out=counts.data)
        counts.data += 1.0
        counts.data *= self.idf_[counts.indices]
        return normalize(counts, copy=False)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """Terms, in the order of the columns."""
        check_is_fitted(self, "idf_")
        return np.array(list(self.vocabulary_), dtype=object)


def weigh_for_all(vectorizers: Sequence[TfIdf], X: Any) -> list[Any]:
    """Vectors of documents by several vectorisers with the same settings; words are read once."""
    texts = documents(X)
    terms = sorted(set().union(*(v.vocabulary_ for v in vectorizers)))
    known = {term: i for i, term in enumerate(terms)}
    counter = CountVectorizer(
        ngram_range=(1, vectorizers[0].ngrams),
        lowercase=vectorizers[0].lowercase,
        vocabulary=known,
        dtype=np.float64,
    )
    counts = counter.transform(texts) if texts else sparse.csr_matrix((0, len(terms)))
    places = [np.array([known[term] for term in v.vocabulary_]) for v in vectorizers]
    return [v.weigh(_columns(counts, kept)) for v, kept in zip(vectorizers, places, strict=True)]


def _columns(X: Any, kept: Ints) -> Any:
    """Some columns of a sparse matrix, in order."""
    number = np.full(X.shape[1], -1, dtype=X.indices.dtype)
    number[kept] = np.arange(len(kept))
    new = number[X.indices]
    stays = new >= 0
    ends = np.concatenate([[0], np.cumsum(stays)])[X.indptr]
    return sparse.csr_matrix((X.data[stays], new[stays], ends), shape=(X.shape[0], len(kept)))
