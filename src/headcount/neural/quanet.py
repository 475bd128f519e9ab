"""QuaNet: a recurrent network on a classifier's view of a bag, told what simple methods say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted
from torch import nn

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.kernels.random import as_seed
from headcount.methods import ACC, CC, PACC, PCC, SLD
from headcount.neural.base import NetworkQuantifier, Scaling, known_shares, same_pool
from headcount.neural.estimating import estimate_bags
from headcount.neural.frame import BagNetwork, mlp
from headcount.neural.losses import mean_error
from headcount.neural.recurrent import Recurrent
from headcount.neural.runtime import Items, find_device, mix_seed, own_torch
from headcount.neural.sampling import LabelledItems, RealBags, Sampling, split_bags, split_items
from headcount.neural.starting import OneAnswer
from headcount.neural.training import Training

STATISTICS = (CC, ACC, PCC, PACC, SLD)


class QuaNet(NetworkQuantifier):
    """QuaNet (Esuli, Moreo and Sebastiani, 2018).

    A bidirectional LSTM reads the items of a bag, each as its embedding with its posteriors; its
    last states and the answers of CC, ACC, PCC, PACC and SLD go through dense layers to the
    shares. Items come in the order of their posterior for two classes, as published; with more
    classes, where the authors leave the order open, by predicted class and then its posterior, so
    that the answer does not depend on the order of the items.

    Parameters
    ----------
    classifier : scikit-learn classifier with predict_proba, optional
        Logistic regression by default.
    embedding : int or scikit-learn transformer, optional
        Makes the embedding of an item, and is fitted with the classifier; a whole number is that
        of the components of a truncated SVD. By default the `transform` of the classifier, if it
        has one, else the items' own features.
    hidden : int, default 64
        Width of the LSTM in either direction.
    head : sequence of int, default (1024, 512)
    dropout : float, default 0.5
    split : three floats, default (0.4, 0.4, 0.2)
        Shares of the labelled items for the classifier, for bags to learn from, and for bags to
        stop by. With real bags, all labelled items are for the classifier.
    residual : bool, default True
        Whether the dense layers say by how much the answer of one of the five methods is off, so
        that the network starts from it: the one that is best on halves of the items that the
        classifier has not seen, or on the real bags. False as published: they say the
        shares themselves, and have to learn to hand on what they are told.
    loss : {'se', 'rae', 'ae', 'nmd', 'kld'}
    sampling : Sampling, optional
        By default 500 bags an epoch and 100 held-out ones, and 10 % of real bags held out, which
        are learnt from as they are.
    training : Training, optional
        By default Adam at 1e-3, halved when 3 epochs bring nothing, at most 100 epochs. Published:
        one learning rate until 10 epochs bring nothing, ``Training(end_learning_rate=1e-3,
        epochs=100)``; LeQua's baseline: the same with 1e-4 and 500 epochs.
    random_state : int, generator or None, default 0

    Examples
    --------
    >>> QuaNet(LogisticRegression(C=10), hidden=32).head
    (1024, 512)
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        embedding: Any = None,
        hidden: int = 64,
        head: Sequence[int] = (1024, 512),
        dropout: float = 0.5,
        split: Sequence[float] = (0.4, 0.4, 0.2),
        residual: bool = True,
        loss: str = "se",
        sampling: Sampling | None = None,
        training: Training | None = None,
        random_state: Any = 0,
    ):
        self.classifier = classifier
        self.embedding = embedding
        self.hidden = hidden
        self.head = head
        self.dropout = dropout
        self.split = split
        self.residual = residual
        self.loss = loss
        self.sampling = sampling
        self.training = training
        self.random_state = random_state

    def _default_training(self) -> Training:
        return Training(
            epochs=100, end_learning_rate=2e-5, patience=3, weight_decay=0.0, batch_size=10
        )

    def _default_sampling(self) -> Sampling:
        return Sampling(real_share=1.0, validation=0.1, validation_bags=100)

    def fit(self, X: Any, y: Any, *, bags: Bags | None = None, pool: Any = None) -> Self:
        """Learn from labelled items and, if there are some, from bags with known shares.

        Parameters
        ----------
        X : items, whatever the classifier takes
        y : labels
        bags : Bags, optional
            With known prevalences, over the items of `pool`; the network learns from these alone.
        pool : items, optional
        """
        self._check_params()
        labels = check.labels(y)
        self.classes_, codes = check.encode(labels)
        check.two_or_more(self.classes_)
        check.same_length(X.shape[0] if hasattr(X, "shape") else len(X), labels)
        if bags is None:
            if pool is not None:
                raise InputError("a pool was passed without bags: pass bags=... as well.")
            return self._fit_items(X, labels, codes)
        return self._fit_real(X, labels, codes, pool, bags)

    def fit_bags(self, pool: Any, bags: Bags) -> Self:  # noqa: ARG002
        """Refused: the classifier of QuaNet needs labelled items."""
        raise InputError(
            "QuaNet works on a classifier, which needs labelled items: use fit(X, y, bags=..., "
            "pool=...), or HistNetQ, which learns from bags alone."
        )

    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Estimate the prevalences of many bags of the pool `X`, a row a bag."""
        check_is_fitted(self, "weights_")
        same_pool(X.shape[0] if hasattr(X, "shape") else len(X), bags)
        rows, order, scores = self._view(X)
        bags = _moved(bags, order)
        training = self.training_settings()
        device = find_device(training.device)
        known = self._said(scores, bags)
        with own_torch(0, training.n_threads):
            network = self.fitted_network().to(device)
            return estimate_bags(network, Items(rows, device=device), bags, known)

    def _fit_items(self, X: Any, y: NDArray[Any], codes: Ints) -> Self:
        sampling, seed = self.sampling_settings(), as_seed(self.random_state)
        first, second, third = self._thirds(codes, seed)
        self._fit_classifier(_safe_indexing(X, first), y[first])
        rest = np.concatenate([second, third])
        rows, order, scores = self._view(_safe_indexing(X, rest))
        place = np.argsort(order)  # of the items in the order in which the network reads them
        self._fit_statistics(scores[place[: len(second)]], codes[second])
        size, k = sampling.bag_size or 100, len(self.classes_)
        self.best_ = self._best_on_halves(scores[place], codes[rest], size, seed)
        parts = [
            LabelledItems(place[a:b], codes[rest[a:b]], k, len(rest), size)
            for a, b in ((0, len(second)), (len(second), len(rest)))
        ]
        held = parts[1].draw(sampling.validation_bags, mix_seed(seed, 2))
        return self.fit_parts([rows], parts[0], held, seed, known=lambda b: self._said(scores, b))

    def _fit_real(self, X: Any, y: NDArray[Any], codes: Ints, pool: Any, bags: Bags) -> Self:
        sampling, seed = self.sampling_settings(), as_seed(self.random_state)
        n = pool.shape[0] if hasattr(pool, "shape") else len(pool)
        truth = self.aligned_bags(known_shares(n, bags), bags.classes)
        self._fit_classifier(X, y)
        self._fit_statistics(self._held_out_scores(X, y, codes), codes)
        rows, order, scores = self._view(pool)
        bags = replace(_moved(bags, order), prevalence=truth, classes=None)
        learnt, held = split_bags(bags, sampling.validation, mix_seed(seed, 1))
        size = sampling.bag_size or int(np.median(bags.sizes))
        source = RealBags(learnt, size, sampling.real_share, sampling.mixing)
        said = [method.predict_scores(scores, bags) for method in self.statistics_]
        self.best_ = int(np.argmin([mean_error(self.loss, bags, answers) for answers in said]))
        return self.fit_parts([rows], source, held, seed, known=lambda b: self._said(scores, b))

    def _thirds(self, codes: Ints, seed: int) -> tuple[Ints, Ints, Ints]:
        """Items for the classifier, for bags to learn from and for bags to stop by."""
        shares = np.asarray(self.split, dtype=float) / np.sum(self.split)
        rest, third = split_items(codes, float(shares[2]), mix_seed(seed, 1))
        within = float(shares[1] / (shares[0] + shares[1]))
        first, second = split_items(codes[rest], within, mix_seed(seed, 4))
        return rest[first], rest[second], third

    def _fit_classifier(self, X: Any, y: NDArray[Any]) -> None:
        self.classifier_ = clone(self._chosen()).fit(X, y)
        if not hasattr(self.classifier_, "predict_proba"):
            raise InputError(
                f"QuaNet needs posteriors, and {self.classifier_!r} has no predict_proba: wrap it "
                "in CalibratedClassifierCV, or use another one."
            )
        embedding = self.embedding
        if isinstance(embedding, int):
            embedding = TruncatedSVD(embedding, random_state=as_seed(self.random_state) % 2**32)
        self.embedding_ = None if embedding is None else clone(embedding).fit(X, y)

    def _chosen(self) -> Any:
        return LogisticRegression(max_iter=1000) if self.classifier is None else self.classifier

    def _held_out_scores(self, X: Any, y: NDArray[Any], codes: Ints) -> Floats:
        folds = int(min(5, np.bincount(codes).min()))
        if folds < 2:
            raise InputError("every class needs at least two labelled items.")
        seed = as_seed(self.random_state) % 2**32
        cv = StratifiedKFold(folds, shuffle=True, random_state=seed)
        chosen = self._chosen()
        return np.asarray(cross_val_predict(chosen, X, y, cv=cv, method="predict_proba"))

    def _fit_statistics(self, scores: Floats, codes: Ints) -> None:
        self.statistics_ = [method().fit_scores(scores, codes) for method in STATISTICS]

    def _best_on_halves(self, scores: Floats, codes: Ints, size: int, seed: int) -> int:
        """Number of the method with the least error, each learnt on one half of the items.

        Bags to stop by are of few items, and those that the methods have learnt from are known to
        them; halves of both are neither.
        """
        halves = split_items(codes, 0.5, mix_seed(seed, 5))
        n_bags, total = self.sampling_settings().validation_bags, np.zeros(len(STATISTICS))
        for mine, other in (halves, halves[::-1]):
            source = LabelledItems(other, codes[other], len(self.classes_), len(codes), size)
            bags = source.draw(n_bags, mix_seed(seed, 6))
            for i, method in enumerate(STATISTICS):
                answers = (
                    method().fit_scores(scores[mine], codes[mine]).predict_scores(scores, bags)
                )
                total[i] += mean_error(self.loss, bags, answers)
        return int(total.argmin())

    def _said(self, scores: Floats, bags: Bags) -> Floats:
        """Answers of the simple methods, side by side."""
        return np.hstack([method.predict_scores(scores, bags) for method in self.statistics_])

    def _view(self, X: Any) -> tuple[Any, Ints, Floats]:
        """Rows and posteriors of items in the order of reading, and that order."""
        scores = np.asarray(self.classifier_.predict_proba(X), dtype=np.float64)
        embedded = self._embedded(X)
        if sparse.issparse(embedded):
            rows = sparse.hstack([embedded, sparse.csr_array(scores)], dtype=np.float32).tocsr()
        else:
            rows = np.hstack([np.asarray(embedded, dtype=np.float32), scores.astype(np.float32)])
        order = reading_order(scores, rows)
        return rows[order], order, scores[order]

    def _embedded(self, X: Any) -> Any:
        source = self.embedding_ if self.embedding_ is not None else self.classifier_
        made = source.transform(X) if hasattr(source, "transform") else X
        return made if sparse.issparse(made) else np.asarray(made)

    def _build(self, scaling: Scaling, n_classes: int) -> BagNetwork:
        gates, pooling = nn.Linear(len(scaling[0]), 8 * self.hidden), Recurrent(self.hidden)
        told = pooling.width + len(STATISTICS) * n_classes
        head, width = mlp(told, self.head, self.dropout, activation=nn.ReLU)
        head.append(nn.Linear(width, n_classes))
        start = OneAnswer(len(STATISTICS), n_classes, self.best_) if self.residual else None
        return BagNetwork(scaling, gates, pooling, head, start)

    def _check_params(self) -> None:
        super()._check_params()
        check.whole("hidden", self.hidden)
        check.at_least("dropout", self.dropout, 0, 0.99)
        for width in self.head:
            check.whole("a width of head", width)
        if len(self.split) != 3 or min(self.split) <= 0:
            raise InputError(f"split must be three positive shares, got {self.split!r}.")


def reading_order(scores: Floats, rows: Any) -> Ints:
    """Order of items by posterior; where posteriors agree, by what else is known of them."""
    tie = rows @ np.sin(np.arange(1, rows.shape[1] + 1)).astype(np.float32)
    if scores.shape[1] == 2:
        return np.lexsort((tie, scores[:, 0]))
    predicted = scores.argmax(axis=1)
    return np.lexsort((tie, scores.max(axis=1), predicted))


def _moved(bags: Bags, order: Ints) -> Bags:
    """The same bags over a pool whose items were put in another order."""
    place = np.empty(len(order), dtype=bags.indices.dtype)
    place[order] = np.arange(len(order))
    return Bags(bags.indptr, place[bags.indices], bags.n_items)
