"""The frame of the networks: items to features, features of a bag to a vector, that to shares."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from headcount._core.types import Floats, Ints
from headcount.neural.pooling import Pooling
from headcount.neural.segments import Tensor


def mlp(
    n_in: int, widths: Sequence[int], dropout: float, *, open_end: bool = False
) -> tuple[nn.Sequential, int]:
    """Linear layers with leaky ReLU and dropout, and the width of what comes out.

    With `open_end` the last layer is linear only. No widths make the identity.
    """
    layers: list[nn.Module] = []
    for i, width in enumerate(widths):
        layers.append(nn.Linear(n_in, width))
        if not (open_end and i == len(widths) - 1):
            layers += [nn.LeakyReLU(), nn.Dropout(dropout)]
        n_in = width
    return nn.Sequential(*layers), n_in


class BagNetwork(nn.Module):
    """Standardise items, take features of each, pool those of a bag, and answer with shares.

    Parameters
    ----------
    scaling : pair of arrays, or number of features
        Mean and standard deviation of the items' features.
    features : module
        From items to features, one item at a time.
    pooling : Pooling
    head : module
        From the pooled vector to one number a class.
    """

    centre: Tensor
    scale: Tensor

    def __init__(
        self,
        scaling: tuple[Floats, Floats],
        features: nn.Module,
        pooling: Pooling,
        head: nn.Module,
    ):
        super().__init__()
        centre, scale = scaling
        self.register_buffer("centre", torch.as_tensor(centre, dtype=torch.float32))
        self.register_buffer("scale", torch.as_tensor(scale, dtype=torch.float32))
        self.features, self.pooling, self.head = features, pooling, head

    def describe(self, items: Tensor) -> Tensor:
        """Features of items."""
        return self.features((items - self.centre) / self.scale)

    def estimate(
        self,
        features: Tensor,
        sizes: Ints,
        known: Tensor | None = None,  # noqa: ARG002 - for networks that are told more
    ) -> tuple[Tensor, Tensor]:
        """Shares of each bag, and what is to be added to the loss."""
        pooled = self.pooling(features, sizes)
        return torch.softmax(self.head(pooled), dim=1), self.pooling.penalty(pooled)
