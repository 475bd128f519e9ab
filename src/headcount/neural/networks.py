"""The named networks: each is a choice of features, pooling and defaults."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from headcount._core import validation as check
from headcount.exceptions import choose
from headcount.neural.attention import SetAttention
from headcount.neural.base import NetworkQuantifier, Scaling
from headcount.neural.frame import BagNetwork, mlp
from headcount.neural.gaussians import Branches, GaussianMixture, UnlikeBranches
from headcount.neural.histograms import KINDS, Histogram
from headcount.neural.pooling import Pooling, Statistic
from headcount.neural.sampling import Sampling
from headcount.neural.starting import Classifying, CorrectedCount
from headcount.neural.training import Training


@dataclass(kw_only=True, eq=False, repr=False)
class NamedNetwork(NetworkQuantifier):
    """Base of the named networks: the parameters that all of them have."""

    head: Sequence[int] = (512,)
    dropout: float = 0.1
    loss: str = "rae"
    sampling: Sampling | None = None
    training: Training | None = None
    random_state: Any = 0

    def _build(self, scaling: Scaling, n_classes: int) -> BagNetwork:
        features, width = self._item_features(len(scaling[0]))
        start = None
        if self.counting_:
            features, start = Classifying(features, width, n_classes), CorrectedCount(n_classes)
            width += n_classes
        pooling = self._pooling(width, n_classes)
        head, last = mlp(pooling.width, self.head, self.dropout)
        head.append(nn.Linear(last, n_classes))
        return BagNetwork(scaling, features, pooling, head, start)

    @abstractmethod
    def _item_features(self, n_inputs: int) -> tuple[nn.Sequential, int]:
        """Make what turns items into features, and say how many these are."""

    @abstractmethod
    def _pooling(self, width: int, n_classes: int) -> Pooling:
        """Make what turns the features of a bag into one vector."""

    def _check_params(self) -> None:
        super()._check_params()
        for name in ("features", "head"):
            for width in getattr(self, name, ()):
                check.whole(f"a width of {name}", width)
        check.at_least("dropout", self.dropout, 0, 0.99)


@dataclass(kw_only=True, eq=False, repr=False)
class HistNetQ(NamedNetwork):
    """HistNetQ: histograms of learnt features (Pérez-Mon et al., 2024).

    The published network for LeQua's T1A has ``features=(1024, 1024, 300), head=(2048,) * 3``, for
    T1B ``features=(1024, 512), n_bins=64, head=(4096,)``; the defaults are what two cores train in
    minutes. The head sees the bins of a feature cumulated.

    Parameters
    ----------
    features : sequence of int, default (256, 64)
        Widths of the layers that an item goes through; none: histograms of the items' own features.
    n_bins : int, default 32
    histogram : {'hard', 'sigmoid', 'triangle', 'rbf', 'count'}
        How an item counts for the bins.
    head : sequence of int, default (512,)
        Widths of the dense layers between the pooled vector and the shares.
    dropout : float, default 0.1
        In the layers of features and head; 0.5 in the published networks.
    loss : {'rae', 'ae', 'se', 'nmd', 'kld'}
        The measure that is minimised.
    sampling : Sampling, optional
        How bags are drawn to learn from.
    training : Training, optional
        How long, how fast, where. By default the features classify labelled items first, and stay
        as they are for 30 epochs after that.
    random_state : int, generator or None, default 0

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["neg", "pos"], 200)
    >>> X = rng.normal(size=(400, 5)) + 3 * (y == "pos")[:, None]
    >>> quick = Training(epochs=5, pretrain=3, n_threads=1)
    >>> net = HistNetQ(features=(8,), n_bins=8, head=(16,), training=quick).fit(X, y)
    >>> net.predict(X[:250]).shape
    (2,)
    """

    features: Sequence[int] = (256, 64)
    n_bins: int = 32
    histogram: str = "hard"

    def _item_features(self, n_inputs: int) -> tuple[nn.Sequential, int]:
        layers, width = mlp(n_inputs, self.features, self.dropout, open_end=True)
        return layers.append(nn.Sigmoid()), width

    def _pooling(self, width: int, n_classes: int) -> Pooling:  # noqa: ARG002
        return Histogram(width, self.n_bins, self.histogram)

    def _check_params(self) -> None:
        super()._check_params()
        check.whole("n_bins", self.n_bins, 2)
        choose("histogram", self.histogram, KINDS)


@dataclass(kw_only=True, eq=False, repr=False)
class DeepSets(NamedNetwork):
    """Deep sets (Zaheer et al., 2017; Qi et al., 2021): the mean, median or maximum of features.

    Parameters
    ----------
    features : sequence of int, default (256, 128)
        Widths of the layers that an item goes through.
    pooling : {'mean', 'median', 'max'}
    head, dropout, loss, sampling, training, random_state
        As in `HistNetQ`.

    Examples
    --------
    >>> DeepSets(pooling="median").loss
    'rae'
    """

    features: Sequence[int] = (256, 128)
    pooling: str = "mean"

    def _item_features(self, n_inputs: int) -> tuple[nn.Sequential, int]:
        layers, width = mlp(n_inputs, self.features, self.dropout, open_end=True)
        return layers.append(nn.Sigmoid()), width

    def _pooling(self, width: int, n_classes: int) -> Pooling:  # noqa: ARG002
        return Statistic(self.pooling, width)

    def _check_params(self) -> None:
        super()._check_params()
        choose("pooling", self.pooling, Statistic.KINDS)


@dataclass(kw_only=True, eq=False, repr=False)
class SetTransformer(NamedNetwork):
    """The set transformer (Lee et al., 2019): items attend to each other through learnt points.

    The published networks for LeQua have ``features=(), width=256, n_points=32`` (T1A) or 128
    (T1B), ``out=512, head=()``.

    Parameters
    ----------
    features : sequence of int, default (128,)
        Widths of the layers that an item goes through first.
    width : int, default 64
        Hidden width of the attention.
    n_heads, n_points : int, default 4 and 16
        Attention heads, and points through which items attend to each other.
    out : int, default 16
        Width of what is said of each of the seeds, of which there is one a class.
    head, dropout, loss, sampling, training, random_state
        As in `HistNetQ`.

    Examples
    --------
    >>> SetTransformer(width=256, n_points=32).n_heads
    4
    """

    _in_double = True

    features: Sequence[int] = (128,)
    width: int = 64
    n_heads: int = 4
    n_points: int = 16
    out: int = 16

    def _item_features(self, n_inputs: int) -> tuple[nn.Sequential, int]:
        return mlp(n_inputs, self.features, self.dropout)

    def _pooling(self, width: int, n_classes: int) -> Pooling:
        return SetAttention(width, n_classes, self.width, self.n_heads, self.n_points, self.out)

    def _check_params(self) -> None:
        super()._check_params()
        for name in ("width", "n_heads", "n_points", "out"):
            check.whole(name, getattr(self, name))
        if self.width % self.n_heads:
            check.whole("width / n_heads", self.width / self.n_heads)


@dataclass(kw_only=True, eq=False, repr=False)
class GMNet(NamedNetwork):
    """GMNet (Pérez-Mon et al., 2025): likelihoods under many learnt Gaussians, in branches.

    Parameters
    ----------
    n_branches : int, default 9
    hidden, dimension : int, default 50 and 5
        Widths of the two layers of a branch; Gaussians live in the second.
    n_gaussians : int, default 100
        In each branch.
    likeness : float, default 0
        Weight of a penalty of branches that say the same of the bags (CKA); 1e-4 to 1e-1.
    head : sequence of int, default (512,)
        4000 in the published network.
    dropout, loss, sampling, training, random_state
        As in `HistNetQ`.

    Examples
    --------
    >>> GMNet(likeness=0.01).n_branches
    9
    """

    _in_double = True

    n_branches: int = 9
    hidden: int = 50
    dimension: int = 5
    n_gaussians: int = 100
    likeness: float = 0.0

    def _item_features(self, n_inputs: int) -> tuple[nn.Sequential, int]:
        branches = Branches(n_inputs, self.n_branches, self.hidden, self.dimension, self.dropout)
        mixture = GaussianMixture(self.n_branches, self.dimension, self.n_gaussians)
        return nn.Sequential(branches, mixture), self.n_branches * self.n_gaussians

    def _pooling(self, width: int, n_classes: int) -> Pooling:  # noqa: ARG002
        return UnlikeBranches(self.n_branches, self.n_gaussians, width, self.likeness)

    def _check_params(self) -> None:
        super()._check_params()
        for name in ("n_branches", "hidden", "dimension"):
            check.whole(name, getattr(self, name))
        check.whole("n_gaussians", self.n_gaussians, 2)
        check.at_least("likeness", self.likeness, 0)
