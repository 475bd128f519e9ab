"""IWDAN and the plain domain-adversarial network: quantifiers that are fitted to each bag."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import joblib
import numpy as np
import torch
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.utils.validation import check_is_fitted, validate_data

from headcount._core import validation as check
from headcount._core.files import read_json, write_json
from headcount._core.progress import track
from headcount._core.types import Floats
from headcount.bags import Bags
from headcount.kernels.random import as_seed
from headcount.methods.base import Quantifier
from headcount.neural.adversarial import AdversarialNetwork, Adversary, Domains, adapt
from headcount.neural.base import same_pool
from headcount.neural.runtime import find_device, mix_seed, own_torch
from headcount.neural.sampling import split_items


class IWDAN(Quantifier):
    """Importance-weighted domain-adversarial network (Tachet des Combes et al., 2020).

    Learns from labelled items and one unlabelled bag features that look alike in both, where the
    labelled items are weighted by class as the bag seems to need it; these weights are the answer.
    A network is trained for every bag: seconds to minutes each. It can help where the look of the
    classes has moved between labels and bag. Where only their shares have changed, SLD or PACC are
    better and a thousand times faster.

    Parameters
    ----------
    features : sequence of int, default (64, 16)
        Widths of the layers that an item goes through. The last should be narrow: wide ones keep
        what tells labelled items from those of the bag, however strong the adversary is.
    discriminator : sequence of int, default (64,)
        Widths of the layers that tell labelled items from those of the bag.
    dropout : float, default 0
    epochs : int, default 80
    batch_size : int, default 64
    learning_rate, weight_decay : float, default 1e-3 and 1e-4
    strength : float, default 3
        Of the adversary; 1 as published.
    momentum : float, default 0.9
        Of the moving average of the class weights; 0.5 as published.
    wait : float, default 0.5
        Share of the epochs before the weights are first estimated; 0 as published. Weights that
        are estimated before the features look alike are wrong, and lead the features astray.
    held_out : float, default 0.2
        Share of the labelled items that the weights are estimated from instead of trained on; 0
        estimates them from the training items, as published, which the network knows too well.
    components : int, default 100
        Sparse items with more columns, such as tf-idf, are first reduced to so many by a truncated
        singular value decomposition of the labelled ones.
    device : str, default 'auto'
    n_threads : int, optional
    checkpoint : path, optional
        Folder that keeps the answer for every bag; `predict_bags`, run again after it was stopped,
        goes on with the bags that are missing.
    random_state : int, generator or None, default 0
    verbose : bool, default False
        Show progress over bags.

    Attributes
    ----------
    prevalence_ : array
        Shares in the bag of `fit_target`.
    class_weights_ : array
        The same over the shares among the labelled items.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 200)
    >>> X = rng.normal(size=(400, 2)) + 4 * y[:, None]
    >>> net = IWDAN(epochs=20, n_threads=1).fit(X, y)
    >>> bool(abs(net.fit_target(X[y == 1]).prevalence_[1] - 1) < 0.1)
    True
    """

    _weighted = True

    def __init__(
        self,
        *,
        features: Sequence[int] = (64, 16),
        discriminator: Sequence[int] = (64,),
        dropout: float = 0.0,
        epochs: int = 80,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        strength: float = 3.0,
        momentum: float = 0.9,
        wait: float = 0.5,
        held_out: float = 0.2,
        components: int = 100,
        device: str = "auto",
        n_threads: int | None = None,
        checkpoint: str | Path | None = None,
        random_state: Any = 0,
        verbose: bool = False,
    ):
        self.features = features
        self.discriminator = discriminator
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.strength = strength
        self.momentum = momentum
        self.wait = wait
        self.held_out = held_out
        self.components = components
        self.device = device
        self.n_threads = n_threads
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the labelled items; networks are trained when a bag is there."""
        self._check_params()
        labels = check.labels(y)
        self.classes_, self.codes_ = check.encode(labels)
        check.two_or_more(self.classes_)
        self.seed_ = as_seed(self.random_state)
        self.reducer_ = self._reducer(X, labels)
        self.items_ = self._items(X)
        mean, spread = self.items_.mean(axis=0), self.items_.std(axis=0)
        self.scaling_ = mean, np.where(spread > 1e-6, spread, 1).astype(np.float32)
        return self

    def fit_target(self, X: Any) -> Self:
        """Train for the items of one bag; its shares are in ``prevalence_``."""
        check_is_fitted(self, "items_")
        self.prevalence_ = self._adapted(self._items(X))
        prior = np.bincount(self.codes_) / len(self.codes_)
        self.class_weights_ = self.prevalence_ / prior
        return self

    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Estimate the prevalences of many bags of the pool `X`: a network for every bag."""
        check_is_fitted(self, "items_")
        items = self._items(X)
        same_pool(len(items), bags)
        answers = [
            self._kept_or_adapted(items[rows])
            for rows in track(bags, f"{type(self).__name__}, bags", len(bags), self.verbose)
        ]
        return np.stack(answers)

    def _kept_or_adapted(self, target: Any) -> Floats:
        if self.checkpoint is None:
            return self._adapted(target)
        settings = {k: v for k, v in self.get_params().items() if k not in _NOT_IN_RESULT}
        mark = joblib.hash((settings, self.seed_, self.items_, self.codes_, target))
        path = Path(self.checkpoint) / f"{type(self).__name__.lower()}-{mark}.json"
        kept = read_json(path)
        if kept is None:
            kept = self._adapted(target).tolist()
            write_json(path, kept)
        return np.asarray(kept)

    def _adapted(self, target: Any) -> Floats:
        """Shares of one bag by a network of its own; the order of its items has no effect."""
        device = find_device(self.device)
        target = target[np.lexsort(target.T)]
        with own_torch(self.seed_ % 2**63, self.n_threads):
            data = self._domains(target, device)
            network = AdversarialNetwork(
                target.shape[1],
                len(self.classes_),
                self.features,
                self.discriminator,
                self.dropout,
            ).to(device)
            weights = adapt(network, data, self._adversary())
            if self._weighted:
                shares = weights * data.prior
            else:
                shares = network.posteriors(data.target).mean(axis=0)
        return np.asarray(shares / shares.sum())

    def _domains(self, target: Any, device: Any) -> Domains:
        source, codes = self._scaled(self.items_, device), self.codes_
        prior = np.bincount(codes) / len(codes)
        learnt = held = np.arange(len(codes))
        if self.held_out > 0:
            learnt, held = split_items(codes, self.held_out, mix_seed(self.seed_, 1))
        return Domains(
            source[torch.as_tensor(learnt)],
            codes[learnt],
            source[torch.as_tensor(held)],
            codes[held],
            self._scaled(target, device),
            prior,
        )

    def _scaled(self, items: Any, device: Any) -> Any:
        mean, spread = self.scaling_
        return torch.from_numpy(((items - mean) / spread).astype(np.float32)).to(device)

    def _adversary(self) -> Adversary:
        return Adversary(
            self.epochs,
            self.batch_size,
            self.learning_rate,
            self.weight_decay,
            self.strength,
            self.momentum,
            int(self.wait * self.epochs),
            self._weighted,
            mix_seed(self.seed_, 2),
        )

    def _reducer(self, X: Any, labels: Any) -> Any:
        """What makes wide sparse items dense; None for all others."""
        found = validate_data(self, X, dtype=np.float32, accept_sparse="csr")
        check.same_length(found.shape[0], labels)
        few = min(self.components, found.shape[0])
        if not sparse.issparse(found) or found.shape[1] <= few:
            return None
        return TruncatedSVD(few, random_state=self.seed_ % 2**32).fit(found)

    def _items(self, X: Any) -> Any:
        found = validate_data(self, X, reset=False, dtype=np.float32, accept_sparse="csr")
        if self.reducer_ is not None:
            return self.reducer_.transform(found).astype(np.float32)
        return found.toarray() if sparse.issparse(found) else found

    def _check_params(self) -> None:
        for name in ("features", "discriminator"):
            for width in getattr(self, name):
                check.whole(f"a width of {name}", width)
        for name in ("epochs", "batch_size", "components"):
            check.whole(name, getattr(self, name))
        check.at_least("learning_rate", self.learning_rate, 1e-12)
        for name in ("weight_decay", "strength"):
            check.at_least(name, getattr(self, name), 0)
        for name in ("dropout", "momentum", "held_out", "wait"):
            check.at_least(name, getattr(self, name), 0, 0.99)


class DANN(IWDAN):
    """The plain domain-adversarial network (Ganin et al., 2016), for comparison with `IWDAN`.

    Labelled items count equally, whatever their class, and the answer is the mean posterior of
    the bag. Where the shares of the classes differ, features that look alike in labelled items
    and bag are the wrong thing to ask for. Parameters are those of `IWDAN`; `momentum`,
    `wait` and `held_out` are of no use to it.

    Examples
    --------
    >>> DANN(epochs=20).strength
    3.0
    """

    _weighted = False


_NOT_IN_RESULT = {"checkpoint", "verbose", "n_threads", "random_state"}
