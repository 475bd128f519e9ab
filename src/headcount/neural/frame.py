"""The frame of the networks: items to features, features of a bag to a vector, that to shares."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from headcount._core.types import Floats, Ints
from headcount.neural.pooling import Pooling
from headcount.neural.segments import Tensor, bag_means

MIN_RELATIVE_DEVIATION = 0.1  # of a pooled number, over the mean deviation of all
# Pooled numbers up to which they are not scaled down. The sum of n terms grows with the square root
# of n, so with more numbers a step would move the head further.
UNSCALED_WIDTH = 64


def mlp(
    n_in: int,
    widths: Sequence[int],
    dropout: float,
    *,
    open_end: bool = False,
    activation: type[nn.Module] = nn.LeakyReLU,
) -> tuple[nn.Sequential, int]:
    """Linear layers with an activation and dropout, and the width of what comes out.

    With `open_end` the last layer is linear only. No widths make the identity.
    """
    layers: list[nn.Module] = []
    for i, width in enumerate(widths):
        layers.append(nn.Linear(n_in, width))
        if not (open_end and i == len(widths) - 1):
            layers += [activation(), nn.Dropout(dropout)]
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
    start : module, optional
        Estimates shares by itself, of which the head then says by how much they are off: from
        what is known of a bag, or else from its mean posteriors, the last of the features.
    """

    centre: Tensor
    scale: Tensor
    usual: Tensor
    spread: Tensor

    def __init__(
        self,
        scaling: tuple[Floats, Floats],
        features: nn.Module,
        pooling: Pooling,
        head: nn.Sequential,
        start: nn.Module | None = None,
    ):
        super().__init__()
        centre, scale = scaling
        self.register_buffer("centre", torch.as_tensor(centre, dtype=torch.float32))
        self.register_buffer("scale", torch.as_tensor(scale, dtype=torch.float32))
        self.features, self.pooling, self.head = features, pooling, head
        self.start = start
        if start is not None:
            nn.init.zeros_(head[-1].weight)
            nn.init.zeros_(head[-1].bias)
        self.register_buffer("usual", torch.zeros(pooling.width))
        self.register_buffer("spread", torch.ones(pooling.width))

    def settle(self, features: Tensor, rows: Ints, sizes: Ints) -> None:
        """Take the mean and the spread of these bags as what the head is to see as 0 and 1.

        Bags differ by little in their means or histograms, and a head that has to find that out
        by itself stays at a constant answer for very long. Poolings whose scale is learnt are
        left alone.
        """
        if not self.pooling.steady:
            return
        pooled = self.pooling.view(self.pooling.pool_rows(features, rows, sizes))
        self.usual.copy_(pooled.mean(dim=0))
        deviation = pooled.std(dim=0)
        least = float(deviation.mean()) * MIN_RELATIVE_DEVIATION + 1e-6
        wide = max(1.0, self.pooling.width / UNSCALED_WIDTH) ** 0.5
        self.spread.copy_(deviation.clamp(min=least) * wide)

    def describe(self, items: Tensor) -> Tensor:
        """Features of items."""
        return self.features(self.standardise(items))

    def standardise(self, items: Tensor) -> Tensor:
        """Items in units of what is usual among them."""
        return (items.to(self.centre.dtype) - self.centre).div_(self.scale)

    def estimate(
        self,
        features: Tensor,
        sizes: Ints,
        known: Tensor | None = None,
        rows: Ints | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Shares of each bag, and what is to be added to the loss.

        `known` are further numbers about each bag, for a head that takes them as well; `rows` say
        which features the items of the bags have, if not one after the other.
        """
        if rows is None:
            pooled = self.pooling(features, sizes)
        else:
            pooled = self.pooling.pool_rows(features, rows, sizes)
        seen = (self.pooling.view(pooled) - self.usual) / self.spread
        told = seen if known is None else torch.cat([seen, known.to(seen.dtype)], dim=1)
        logits = self.head(told)
        if self.start is not None:
            counts = self.mean_posteriors(features, rows, sizes) if known is None else known
            logits = logits + self.start(counts).to(logits.dtype)
        return torch.softmax(logits, dim=1), self.pooling.penalty(pooled)

    def mean_posteriors(self, features: Tensor, rows: Ints | None, sizes: Ints) -> Tensor:
        """Mean over each bag of the posteriors, which are the last of the features.

        In 64 bits: a correction makes rounding larger where posteriors tell little.
        """
        posteriors = features[:, -self.head[-1].out_features :]
        if rows is not None:
            posteriors = posteriors[torch.as_tensor(rows, device=features.device)]
        return bag_means(posteriors.double(), sizes)
