"""The quantifiers that are networks: what they learn from, and how they answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError, choose
from headcount.kernels.random import as_seed
from headcount.methods.base import Quantifier
from headcount.neural.estimating import estimate_bags
from headcount.neural.frame import BagNetwork
from headcount.neural.losses import KERNELS
from headcount.neural.pretraining import pretrain
from headcount.neural.runtime import Bytes, Items, find_device, mix_seed, own_torch, pack, unpack
from headcount.neural.sampling import (
    Both,
    LabelledItems,
    RealBags,
    Sampling,
    Source,
    divide_items,
    split_bags,
    split_items,
)
from headcount.neural.training import Problem, Training, train

DEFAULT_SIZE = 250
PACE = 0.1  # learning rate of features that have learnt to classify, over that of the rest
Scaling = tuple[Floats, Floats]


class NetworkQuantifier(Quantifier):
    """Base of the networks that see a whole bag and are trained on bags with known shares.

    Attributes
    ----------
    classes_ : array
    weights_ : array of bytes
        The weights of the network, as a safetensors file.
    history_ : list of float
        Error on held-out bags after each epoch.
    """

    loss: str
    sampling: Sampling | None
    training: Training | None
    random_state: Any
    weights_: Bytes
    scaling_: Scaling
    counting_: bool  # whether the features of items go with posteriors, from which it starts
    _network: BagNetwork | None = None
    _in_double = False  # whether rounding would else tell a bag in a batch from the same bag alone

    @abstractmethod
    def _build(self, scaling: Scaling, n_classes: int) -> BagNetwork:
        """Make the network, with weights that are still random."""

    def _default_training(self) -> Training:
        return Training(learning_rate=3e-4, pretrain=30, head_first=30)

    def _default_sampling(self) -> Sampling:
        return Sampling()

    def fit(self, X: Any, y: Any, *, bags: Bags | None = None, pool: Any = None) -> Self:
        """Learn from labelled items and, if there are some, from bags with known shares.

        Parameters
        ----------
        X : items, a row each
        y : labels
        bags : Bags, optional
            With known prevalences, over the items of `pool`. A part of them is held out to stop
            by; without bags, a part of the labelled items is.
        pool : items, optional
        """
        self._check_params()
        labels = check.labels(y)
        self.classes_, codes = check.encode(labels)
        check.two_or_more(self.classes_)
        items = self._items(X, reset=True)
        check.same_length(items.shape[0], labels)
        if bags is None:
            if pool is not None:
                raise InputError("a pool was passed without bags: pass bags=... as well.")
            return self._fit_labelled(items, codes)
        return self._fit_both(items, codes, self._items(pool), bags)

    def fit_bags(self, pool: Any, bags: Bags) -> Self:
        """Learn from bags with known shares alone: no label of any item is needed.

        Parameters
        ----------
        pool : items, a row each
        bags : Bags
            With known prevalences; ``classes`` names their columns, else they are 0, 1, ...
        """
        self._check_params()
        items = self._items(pool, reset=True)
        truth = known_shares(items.shape[0], bags)
        names = np.arange(truth.shape[1]) if bags.classes is None else np.asarray(bags.classes)
        order = np.argsort(names)
        self.classes_ = names[order]
        bags = replace(bags, prevalence=truth[:, order], classes=None)
        sampling, seed = self.sampling_settings(), as_seed(self.random_state)
        learnt, held = split_bags(bags, sampling.validation, mix_seed(seed, 1))
        return self.fit_parts([items], self._real(learnt), held, seed)

    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Estimate the prevalences of many bags of the pool `X`, a row a bag."""
        check_is_fitted(self, "weights_")
        items = self._items(X)
        same_pool(items.shape[0], bags)
        training = self.training_settings()
        device = find_device(training.device)
        with own_torch(0, training.n_threads):
            network = self.fitted_network().to(device)
            if self._in_double:
                network = deepcopy(network).double()
            return estimate_bags(network, Items(items, device=device), bags)

    def _fit_labelled(self, items: Any, codes: Ints) -> Self:
        sampling, seed = self.sampling_settings(), as_seed(self.random_state)
        learnt, held = split_items(codes, sampling.validation, mix_seed(seed, 1))
        n, size = items.shape[0], sampling.bag_size or DEFAULT_SIZE
        k = len(self.classes_)
        held_bags = LabelledItems(held, codes[held], k, n, size).draw(
            sampling.validation_bags, mix_seed(seed, 2)
        )
        known, drawn = self._divided(learnt, codes, seed)
        source = LabelledItems(drawn, codes[drawn], k, n, size)
        return self.fit_parts([items], source, held_bags, seed, (known, codes[known]))

    def _divided(self, rows: Ints, codes: Ints, seed: int) -> tuple[Ints, Ints]:
        """Items to classify first, and items to draw bags from after that."""
        if not self.training_settings().pretrain:
            return rows, rows
        share = self.sampling_settings().classified
        known, drawn = divide_items(codes[rows], share, mix_seed(seed, 4))
        return rows[known], rows[drawn]

    def _fit_both(self, items: Any, codes: Ints, pool: Any, bags: Bags) -> Self:
        sampling, seed = self.sampling_settings(), as_seed(self.random_state)
        n, total = items.shape[0], items.shape[0] + pool.shape[0]
        truth = self.aligned_bags(known_shares(pool.shape[0], bags), bags.classes)
        moved = bags.indices.astype(np.int64) + n
        bags = replace(bags, prevalence=truth, classes=None, indices=moved, n_items=total)
        learnt, held = split_bags(bags, sampling.validation, mix_seed(seed, 1))
        real = self._real(learnt)
        known, drawn = self._divided(np.arange(n), codes, seed)
        labelled = LabelledItems(drawn, codes[drawn], len(self.classes_), total, real.size)
        source = Both(labelled, real, sampling.labelled_share)
        return self.fit_parts([items, pool], source, held, seed, (known, codes[known]))

    def _real(self, bags: Bags) -> RealBags:
        sampling = self.sampling_settings()
        size = sampling.bag_size or int(np.median(bags.sizes))
        return RealBags(bags, size, sampling.real_share, sampling.mixing)

    def aligned_bags(self, truth: Floats, classes: NDArray[Any] | None) -> Floats:
        """Known shares with their columns in the order of the labels' classes."""
        mine = self.classes_.tolist()
        names = mine if classes is None else np.asarray(classes).tolist()
        if truth.shape[1] != len(mine) or set(names) != set(mine):
            raise InputError(
                f"the bags have shares of the classes {names[:5]} ({truth.shape[1]} columns), and "
                f"the labels are {mine[:5]} ({len(mine)} classes): pass shares of the same classes."
            )
        return truth[:, [names.index(name) for name in mine]]

    def fit_parts(
        self,
        parts: list[Any],
        source: Source,
        held: Bags,
        seed: int,
        labelled: tuple[Ints, Ints] | None = None,
        known: Callable[[Bags], Floats] | None = None,
    ) -> Self:
        """Train a new network; `labelled` are rows with their classes, `known` describes bags."""
        training = self.training_settings()
        device = find_device(training.device)
        items = Items(*parts, device=device)
        self.scaling_ = _scaling(parts)
        n_bags = self.sampling_settings().bags_per_epoch
        problem = Problem(items, source, held, self.loss, n_bags, known)
        self.counting_ = labelled is not None and training.pretrain > 0
        if self.counting_:
            problem = replace(problem, head_first=training.head_first, pace=PACE)
        mark = ""
        if training.checkpoint is not None:
            mark = str(joblib.hash((self._settings(), seed, parts, source)))
        with own_torch(seed % 2**63, training.n_threads):
            network = self._build(self.scaling_, len(self.classes_)).to(device)
            prepare = None
            if labelled is not None and self.counting_:
                last = (training.pretrain, mix_seed(seed, 3))
                prepare = partial(pretrain, network, items, *labelled, *last)
            done = train(network, problem, training, seed, mark, prepare)
        self.weights_ = pack(network)
        self.history_, self._network = done.history, network
        return self

    def _settings(self) -> dict[str, str]:
        """What the result of a fit depends on, as text; the folder of checkpoints is not."""
        free = {"training__checkpoint", "training__verbose", "training__time_limit", "training"}
        params = self.get_params() | {
            f"training__{k}": v for k, v in self.training_settings().get_params().items()
        }
        return {k: repr(v) for k, v in params.items() if k not in free} | {"": type(self).__name__}

    def fitted_network(self) -> BagNetwork:
        """The fitted network; after loading, made again from its weights."""
        if self._network is None:
            with own_torch(0, None):
                fresh = self._build(self.scaling_, len(self.classes_))
            self._network = unpack(fresh, self.weights_)
        return self._network

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {**super().__getstate__()}
        state.pop("_network", None)  # the weights are all that is kept of it
        return state

    def training_settings(self) -> Training:
        """How it is trained: as told, or as this network is by default."""
        return self._default_training() if self.training is None else self.training

    def sampling_settings(self) -> Sampling:
        """Which bags it learns from: as told, or as this network does by default."""
        return self._default_sampling() if self.sampling is None else self.sampling

    def _check_params(self) -> None:
        choose("loss", self.loss, KERNELS)
        self.training_settings().check()
        self.sampling_settings().check()

    def _items(self, X: Any, *, reset: bool = False) -> Any:
        """Items as a matrix of 32-bit numbers, dense or CSR."""
        return validate_data(self, X, reset=reset, dtype=np.float32, accept_sparse="csr")


def known_shares(n_items: int, bags: Bags) -> Floats:
    """Shares of bags to learn from; refuses bags without."""
    same_pool(n_items, bags)
    if bags.prevalence is None:
        raise InputError(
            "the bags have no known prevalences, which is what is learnt from: make them with "
            "prevalence=..., or Bags.with_truth(y)."
        )
    return np.asarray(bags.prevalence)


def same_pool(n_items: int, bags: Bags) -> None:
    """Refuse bags that were drawn from another pool."""
    if not isinstance(bags, Bags):
        raise InputError(f"bags must be Bags, got {type(bags).__name__}: see Bags.from_lists.")
    if n_items != bags.n_items:
        raise InputError(
            f"the pool has {n_items} items and the bags were drawn from one of {bags.n_items}. "
            "Pass the items that the bags refer to."
        )


def _scaling(parts: list[Any]) -> Scaling:
    """Mean and standard deviation of every feature; 1 for what is constant."""
    n = sum(p.shape[0] for p in parts)
    mean = sum(_column_sums(p) for p in parts) / n
    square = sum(_column_sums(p.multiply(p) if hasattr(p, "multiply") else p**2) for p in parts) / n
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    flat = spread <= 1e-6 * np.maximum(1, np.abs(mean))
    return np.asarray(mean), np.asarray(np.where(flat, 1.0, spread))


def _column_sums(matrix: Any) -> NDArray[np.float64]:
    return np.asarray(matrix.sum(axis=0, dtype=np.float64)).ravel()
