"""Fine-tune a transformer as a scikit-learn classifier, and read features from it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted

from headcount._core import validation as check
from headcount._core.progress import track
from headcount._core.types import Floats, Ints
from headcount.exceptions import HeadcountError, InputError
from headcount.text.documents import documents, some
from headcount.text.encoder import locate


class FineTuned(ClassifierMixin, BaseEstimator):
    """A transformer encoder with a layer on top, trained on labelled documents.

    The defaults are those of LeQua's RoBERTa baselines; the temporal benchmark uses
    ``learning_rate=2e-5, batch_size=32``.

    Parameters
    ----------
    model : str
        Folder of a Hugging Face encoder, or its name in the local cache of the hub.
    epochs : int, default 10
        At most; the epoch with the best macro-F1 on held-out documents is kept.
    learning_rate, weight_decay : float, default 1e-5 and 0.01
    batch_size : int, default 16
    max_length : int, default 256
        Tokens of a document that are read.
    validation : float, default 0.1
        Share of documents held out, stratified.
    balanced : bool, default False
        Whether to draw training documents so that classes come equally often.
    checkpoint : path, optional
        Folder that keeps the state after each epoch; the same fit, run again, goes on from it and
        ends with the same weights.
    device : str, optional
        'cpu' or 'cuda'; a GPU by default where there is one.
    random_state : int, default 0
    verbose : bool, default False

    Examples
    --------
    >>> FineTuned("roberta-base", learning_rate=2e-5, batch_size=32).epochs
    10
    """

    def __init__(
        self,
        model: str = "roberta-base",
        *,
        epochs: int = 10,
        learning_rate: float = 1e-5,
        weight_decay: float = 0.01,
        batch_size: int = 16,
        max_length: int = 256,
        validation: float = 0.1,
        balanced: bool = False,
        checkpoint: str | Path | None = None,
        device: str | None = None,
        random_state: int = 0,
        verbose: bool = False,
    ):
        self.model = model
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_length = max_length
        self.validation = validation
        self.balanced = balanced
        self.checkpoint = checkpoint
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Train, keep the epoch with the best macro-F1 on the held-out documents."""
        for name in ("epochs", "batch_size", "max_length"):
            check.whole(name, getattr(self, name))
        texts = some(X)
        labels = check.labels(y)
        check.same_length(len(texts), labels)
        self.classes_, codes = check.encode(labels)
        check.two_or_more(self.classes_)
        torch = _torch()
        self.device_ = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        rows = np.arange(len(texts))
        try:
            train, held = train_test_split(
                rows, test_size=self.validation, stratify=codes, random_state=self.random_state
            )
        except ValueError as error:
            raise InputError(f"no documents can be held out to select epochs on: {error}") from None
        self.tokenizer_, self.network_ = self._load(torch, len(self.classes_))
        state = _State(self.checkpoint, self._key(texts, codes))
        self._train(torch, texts, codes, train, held, state)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Posteriors of documents."""
        check_is_fitted(self, "network_")
        torch = _torch()
        parts = [
            torch.softmax(self.network_(**batch).logits, dim=1).double().cpu().numpy()
            for batch in self._batches(torch, documents(X), "scoring")
        ]
        return np.concatenate(parts) if parts else np.empty((0, len(self.classes_)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Class with the largest posterior."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def features(self, X: Any) -> Floats:
        """First token's embedding, averaged over all layers: what LeQua's baselines read."""
        check_is_fitted(self, "network_")
        torch = _torch()
        parts = []
        for batch in self._batches(torch, documents(X), "reading"):
            layers = self.network_(**batch, output_hidden_states=True).hidden_states[1:]
            first = torch.stack([layer[:, 0] for layer in layers])
            parts.append(first.mean(dim=0).double().cpu().numpy())
        return np.concatenate(parts)

    def _load(self, torch: Any, n_classes: int) -> tuple[Any, Any]:
        try:
            from transformers import AutoModelForSequenceClassification, AutoTokenizer
        except ImportError:
            raise HeadcountError(
                "fine-tuning needs: pip install torch 'headcount[transformers]'."
            ) from None
        where = locate(self.model if "/" in self.model else _hub_name(self.model))
        torch.manual_seed(self.random_state)  # the new layer's weights
        try:
            tokenizer = AutoTokenizer.from_pretrained(where, local_files_only=True)
            network = AutoModelForSequenceClassification.from_pretrained(
                where, num_labels=n_classes, local_files_only=True
            )
        except (OSError, ValueError) as error:
            raise HeadcountError(f"the model {self.model!r} cannot be loaded: {error}") from None
        return tokenizer, network.to(self.device_)

    def _train(
        self,
        torch: Any,
        texts: list[str],
        codes: Ints,
        train: Ints,
        held: Ints,
        state: _State,
    ) -> None:
        optimizer = torch.optim.AdamW(
            self.network_.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        best, kept, begin = state.restore(torch, self.network_, optimizer)
        self.history_ = list(state.history)
        for epoch in track(range(begin, self.epochs), "epochs", self.epochs - begin, self.verbose):
            self._epoch(torch, optimizer, texts, codes, train, epoch)
            guess = self.predict([texts[i] for i in held])
            score = float(f1_score(self.classes_[codes[held]], guess, average="macro"))
            self.history_.append(score)
            if score > best:
                best = score
                kept = {k: v.detach().cpu().clone() for k, v in self.network_.state_dict().items()}
            state.save(torch, self.network_, optimizer, epoch, best, kept, self.history_)
        self.network_.load_state_dict(kept)
        self.network_.eval()
        self.best_score_ = best

    def _epoch(
        self,
        torch: Any,
        optimizer: Any,
        texts: list[str],
        codes: Ints,
        train: Ints,
        epoch: int,
    ) -> None:
        """One pass; what is random in it depends on the seed and the number of the epoch alone."""
        rng = np.random.default_rng([self.random_state, epoch])
        torch.manual_seed(self.random_state * 100_003 + epoch)
        order = rng.permutation(train)
        if self.balanced:
            counts = np.bincount(codes[train], minlength=len(self.classes_))
            weight = 1.0 / counts[codes[train]]
            order = rng.choice(train, len(train), p=weight / weight.sum())
        self.network_.train()
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            batch = self._encoded([texts[i] for i in rows])
            target = torch.as_tensor(codes[rows], device=self.device_)
            loss = self.network_(**batch, labels=target).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        self.network_.eval()

    def _encoded(self, texts: list[str]) -> Any:
        return self.tokenizer_(
            texts, truncation=True, max_length=self.max_length, padding=True, return_tensors="pt"
        ).to(self.device_)

    def _batches(self, torch: Any, texts: list[str], what: str) -> Any:
        self.network_.eval()
        step = 4 * self.batch_size
        starts = range(0, len(texts), step)
        with torch.no_grad():
            for start in track(starts, what, len(starts), self.verbose and len(starts) > 1):
                yield self._encoded(texts[start : start + step])

    def _key(self, texts: list[str], codes: Ints) -> str:
        """What decides the weights: settings and data."""
        shown = {k: v for k, v in self.get_params().items() if k not in ("checkpoint", "verbose")}
        digest = hashlib.sha256(json.dumps(shown, sort_keys=True, default=str).encode())
        digest.update("\0".join(texts).encode("utf-8", "surrogatepass"))
        digest.update(codes.tobytes())
        return digest.hexdigest()[:24]


class FirstToken(TransformerMixin, BaseEstimator):
    """Features of documents from a fine-tuned encoder, for any classifier on top.

    Parameters
    ----------
    network : FineTuned
        Fitted with the labels given to `fit`.

    Examples
    --------
    >>> FirstToken(FineTuned("roberta-base")).network.max_length
    256
    """

    def __init__(self, network: Any = None):
        self.network = network

    def fit(self, X: Any, y: Any) -> Self:
        """Fine-tune a clone of the network."""
        base = FineTuned() if self.network is None else self.network
        self.network_ = clone(base).fit(X, y)
        return self

    def transform(self, X: Any) -> Floats:
        """First token's embedding, averaged over all layers."""
        check_is_fitted(self, "network_")
        return np.asarray(self.network_.features(X))


class _State:
    """State after each epoch, in a folder; whole or not at all."""

    def __init__(self, folder: str | Path | None, key: str):
        self.path = None if folder is None else Path(folder) / f"{key}.pt"
        self.history: list[float] = []

    def restore(self, torch: Any, network: Any, optimizer: Any) -> tuple[float, Any, int]:
        """Best score, its weights, and the epoch to go on with."""
        if self.path is None or not self.path.is_file():
            return -1.0, None, 0
        saved = torch.load(self.path, weights_only=True)
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        self.history = list(saved["history"])
        return float(saved["best"]), saved["kept"], int(saved["epoch"]) + 1

    def save(
        self,
        torch: Any,
        network: Any,
        optimizer: Any,
        epoch: int,
        best: float,
        kept: Any,
        history: list[float],
    ) -> None:
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".part")
        torch.save(
            {
                "network": network.state_dict(),
                "optimizer": optimizer.state_dict(),
                "epoch": epoch,
                "best": best,
                "kept": kept,
                "history": history,
            },
            beside,
        )
        os.replace(beside, self.path)


def _hub_name(model: str) -> str:
    """Bare names of the hub, such as roberta-base, have an owner there."""
    owners = {"roberta-base": "FacebookAI", "bert-base-uncased": "google-bert"}
    return f"{owners[model]}/{model}" if model in owners and not Path(model).is_dir() else model


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise HeadcountError(
            "fine-tuning needs: pip install torch 'headcount[transformers]'."
        ) from None
    return torch
