"""Documents as the mean of their word vectors, each dimension standardised on the training part."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from headcount.exceptions import InputError

Floats = NDArray[np.float32]


class Vectoriser:
    """Mean word vectors of texts, standardised.

    Parameters
    ----------
    vectors : str, default 'learnt'
        'learnt': vectors of words are the leading directions of the training texts' tf-idf matrix.
        Else a text file of word vectors (GloVe, word2vec): a word and its numbers on each line.
    dimensions : int, default 300
        Of learnt vectors; at most a tenth of the training texts.
    seed : int
    """

    def __init__(self, vectors: str = "learnt", dimensions: int = 300, seed: int = 0):
        self.vectors = vectors
        self.dimensions = dimensions
        self.seed = seed

    def fit(self, texts: Any) -> Self:
        """Learn or read the vectors, and the mean and deviation of each dimension."""
        if self.vectors == "learnt":
            tfidf = TfidfVectorizer(sublinear_tf=True, min_df=2)
            weights = tfidf.fit_transform(texts)
            # Directions that few texts tell apart from chance would only be noise.
            rank = max(1, min(self.dimensions, len(texts) // 10, weights.shape[1] - 1))
            svd = TruncatedSVD(rank, random_state=self.seed, n_iter=4).fit(weights)
            vocabulary: dict[str, int] = tfidf.vocabulary_
            # Rare words weigh more in a mean, as they do in tf-idf.
            self._table = (tfidf.idf_[:, None] * svd.components_.T).astype(np.float64)
        else:
            vocabulary, self._table = _read_vectors(Path(self.vectors))
        self._counter = CountVectorizer(vocabulary=vocabulary)
        raw = self._means(texts)
        self._mean, sd = raw.mean(axis=0), raw.std(axis=0)
        self._sd = np.where(sd > 0, sd, 1.0)
        return self

    def transform(self, texts: Any) -> Floats:
        """Standardised mean vectors of texts; a text of unknown words is at the mean of none."""
        return np.asarray((self._means(texts) - self._mean) / self._sd, dtype=np.float32)

    def _means(self, texts: Any) -> NDArray[np.float64]:
        counts = self._counter.transform(texts)
        total = np.maximum(np.asarray(counts.sum(axis=1)), 1)
        return np.asarray(counts @ self._table / total)


def _read_vectors(path: Path) -> tuple[dict[str, int], NDArray[np.float64]]:
    if not path.is_file():
        raise InputError(f"vectors must be 'learnt' or a file of word vectors; no file {path}.")
    vocabulary: dict[str, int] = {}
    rows: list[NDArray[np.float64]] = []
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            word, _, rest = line.rstrip().partition(" ")
            values = np.array(rest.split(), dtype=np.float64) if rest else np.empty(0)
            if number == 1 and len(values) == 1:
                continue  # word2vec begins with the size of the table
            if rows and len(values) != len(rows[0]):
                raise InputError(f"{path.name}, line {number}: not {len(rows[0])} numbers.")
            if word not in vocabulary:
                vocabulary[word] = len(rows)
                rows.append(values)
    if not rows:
        raise InputError(f"{path.name} holds no word vectors.")
    return vocabulary, np.stack(rows)
