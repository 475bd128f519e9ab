"""What turns the items of a bag into one vector, whatever their order: mean, median, maximum."""

from __future__ import annotations

import math

import torch
from torch import nn

from headcount._core.types import Ints
from headcount.exceptions import choose
from headcount.neural.segments import Tensor, bag_means, pad


class Pooling(nn.Module):
    """Base of the poolings: items (N, d) and the sizes of their bags to rows (bags, `width`)."""

    width: int
    steady = True  # whether what it gives keeps its scale while the features are learnt
    pace = 1.0  # learning rate of its own parameters over that of the head

    def forward(self, features: Tensor, sizes: Ints) -> Tensor:
        """Pool the features of each bag."""
        raise NotImplementedError

    def pool_rows(self, features: Tensor, rows: Ints, sizes: Ints) -> Tensor:
        """Pool bags whose items are these rows of the features; a row may serve many."""
        return self(features[torch.as_tensor(rows, device=features.device)], sizes)

    def view(self, pooled: Tensor) -> Tensor:
        """Turn rows into what the head is to see, by a fixed map that loses nothing."""
        return pooled

    def penalty(self, pooled: Tensor) -> Tensor:
        """Add to the loss while training; nothing by default."""
        return pooled.new_zeros(())


class Statistic(Pooling):
    """Mean, median or maximum of every feature: deep sets (Zaheer et al., 2017).

    The median of an even number of items is the mean of the middle two.
    """

    KINDS = ("mean", "median", "max")

    def __init__(self, kind: str, n_features: int):
        super().__init__()
        self.kind = choose("pooling", kind, self.KINDS)
        self.width = n_features

    def forward(self, features: Tensor, sizes: Ints) -> Tensor:
        """Pool the features of each bag."""
        if self.kind == "mean":
            return bag_means(features, sizes)
        block, present = pad(features, sizes)
        if present is not None:
            beyond = -math.inf if self.kind == "max" else math.inf
            block = block.masked_fill(~present[:, :, None], beyond)
        return block.amax(dim=1) if self.kind == "max" else _median(block, sizes)


def _median(block: Tensor, sizes: Ints) -> Tensor:
    ordered = block.sort(dim=1).values
    rows = torch.arange(len(sizes), device=block.device)
    low = torch.as_tensor((sizes - 1) // 2, device=block.device)
    high = torch.as_tensor(sizes // 2, device=block.device)
    return (ordered[rows, low] + ordered[rows, high]) / 2
