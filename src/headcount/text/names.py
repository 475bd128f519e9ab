"""Ways of turning documents into vectors, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.base import clone

from headcount.exceptions import choose
from headcount.text.encoder import SentenceEncoder
from headcount.text.tfidf import TfIdf
from headcount.text.words import MeanVectors

VECTORIZERS: dict[str, Callable[[], Any]] = {
    "tfidf": TfIdf,
    "words": MeanVectors,
    "glove": lambda: MeanVectors("glove"),
    "learnt": lambda: MeanVectors("learnt"),
    "minilm": SentenceEncoder,
}


def make_vectorizer(spec: Any) -> Any:
    """Fresh vectoriser from a name, a file of word vectors, a model's folder, or another one.

    Examples
    --------
    >>> make_vectorizer("tfidf")
    TfIdf()
    """
    if not isinstance(spec, str):
        return clone(spec)
    if spec in VECTORIZERS:
        return VECTORIZERS[spec]()
    if Path(spec).is_file():
        return MeanVectors(spec)
    if Path(spec).is_dir() or "/" in spec:
        return SentenceEncoder(spec)
    choose("vectorizer", spec, [*VECTORIZERS, "a file of word vectors", "a model's folder"])
    raise AssertionError
