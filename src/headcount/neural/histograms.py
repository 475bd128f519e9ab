"""Histograms of every feature over a bag that gradients can pass through.

The layers are those of HistNet (Pérez-Mon et al., 2024). Features lie in [0, 1], each with bins of
equal width around learnable or fixed centres. All bins of all items at once would need features x
bins numbers an item, so one bin is worked on at a time, in both directions, or compiled loops skip
the bins that an item is not in.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from headcount._core.types import Ints
from headcount.exceptions import choose
from headcount.neural.pooling import Pooling
from headcount.neural.segments import Tensor, bag_sums, one_size, spread

BASE = math.log(1.01)  # of the powers of the hard layer
STEEPNESS = 1000.0  # of the sigmoids that meet at the edges of a bin
OVERLAP = 0.001  # by which the bins of the hard layer reach beyond their edges at first


def _count(d: Tensor, half: Tensor) -> tuple[Tensor, Tensor]:
    inside = ((d >= -half) & (d < half)).to(d.dtype)
    return inside, torch.zeros_like(d)


def _hard(d: Tensor, half: Tensor) -> tuple[Tensor, Tensor]:
    inside = half - d.abs()
    value = torch.exp(BASE * inside) * (inside > 0)
    return value, -BASE * d.sign() * value


def _sigmoid(d: Tensor, half: Tensor) -> tuple[Tensor, Tensor]:
    low, high = torch.sigmoid(STEEPNESS * (d + half)), torch.sigmoid(STEEPNESS * (d - half))
    return low - high, STEEPNESS * (low * (1 - low) - high * (1 - high))


def _triangle(d: Tensor, half: Tensor) -> tuple[Tensor, Tensor]:
    value = torch.relu(1 - d.abs() / half)
    return value, -d.sign() / half * (value > 0)


def _rbf(d: Tensor, half: Tensor) -> tuple[Tensor, Tensor]:
    value = torch.exp(-((d / half) ** 2))
    return value, -2 * d / half**2 * value


# What an item at a distance d from the centre adds to a bin, and the derivative by d.
KINDS = {
    "count": _count,
    "hard": _hard,
    "sigmoid": _sigmoid,
    "triangle": _triangle,
    "rbf": _rbf,
}


class Histogram(Pooling):
    """Share of the items of a bag in each bin of each feature.

    Parameters
    ----------
    n_features, n_bins : int
    kind : {'hard', 'sigmoid', 'triangle', 'rbf', 'count'}
        'hard' counts items within a learnable distance of a learnable centre (each counts a little
        more than one, by which gradients flow); 'sigmoid' is a box with soft edges; 'triangle' and
        'rbf' fall off from the centre; 'count' is the plain histogram, without gradients.
    """

    def __init__(self, n_features: int, n_bins: int, kind: str = "hard"):
        super().__init__()
        self.kind = choose("histogram", kind, KINDS)
        self.width = n_features * n_bins
        centres = ((torch.arange(n_bins) + 0.5) / n_bins).repeat(n_features, 1)
        halves = torch.full_like(centres, 1 / (2 * n_bins))
        if kind == "hard":
            self.centres = nn.Parameter(centres)
            self.halves = nn.Parameter(halves + OVERLAP)
        else:
            if kind == "count":  # what is exactly one belongs to the last bin
                halves[:, -1] += 1e-6
                centres[:, -1] += 1e-6
            self.register_buffer("centres", centres)
            self.register_buffer("halves", halves)

    def forward(self, features: Tensor, sizes: Ints) -> Tensor:
        """Pool the features of each bag: for every feature its bins, one after the other."""
        if self.kind == "hard" and features.device.type == "cpu":
            bins = _HardOnCPU.apply(features, self.centres, self.halves, sizes)
        else:
            bins = _Binned.apply(features, self.centres, self.halves, sizes, self.kind)
        return bins.flatten(start_dim=1)

    def view(self, pooled: Tensor) -> Tensor:
        """Cumulate the bins of every feature.

        Most of what bags differ by in one bin is chance, and a head that sees bins learns that by
        heart; shares below a value have little of it.
        """
        return pooled.unflatten(1, self.centres.shape).cumsum(dim=2).flatten(start_dim=1)


class _Binned(torch.autograd.Function):
    """Mean of a bin function over each bag, a bin at a time, with its own derivative."""

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, centres: Tensor, halves: Tensor, sizes: Ints, kind: str
    ) -> Tensor:
        ctx.save_for_backward(values, centres, halves)
        ctx.sizes, ctx.kind = sizes, kind
        parts = [
            bag_sums(KINDS[kind](values - centres[:, b], halves[:, b])[0], sizes)
            for b in range(centres.shape[1])
        ]
        return torch.stack(parts, dim=2) / _counts(sizes, values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        values, centres, halves = ctx.saved_tensors
        sizes, kind = ctx.sizes, ctx.kind
        share = gradient / _counts(sizes, values)
        by_value = torch.zeros_like(values)
        by_centre, by_half = torch.zeros_like(centres), torch.zeros_like(halves)
        for b in range(centres.shape[1]):
            value, slope = KINDS[kind](values - centres[:, b], halves[:, b])
            step = _times_bag(slope, share[:, :, b], sizes)
            by_value += step
            if kind == "hard":
                by_centre[:, b] = -step.sum(dim=0)
                by_half[:, b] = (bag_sums(value, sizes) * share[:, :, b]).sum(dim=0) * BASE
        learnt = kind == "hard"
        return by_value, by_centre if learnt else None, by_half if learnt else None, None, None


class _HardOnCPU(torch.autograd.Function):
    """The hard layer by compiled loops, which skip the bins that an item is not in."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, centres: Tensor, halves: Tensor, sizes: Ints) -> Tensor:
        from headcount.neural.compiled import hard_forward

        ctx.save_for_backward(values, centres, halves)
        ctx.sizes = sizes
        out = values.new_zeros((len(sizes), *centres.shape))
        v, c, h = _array(values), _array(centres), _array(halves)
        hard_forward(v, c, h, _indptr(sizes), BASE, out.numpy())
        return out / _counts(sizes, values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from headcount.neural.compiled import hard_backward

        v, c, h = (_array(t) for t in ctx.saved_tensors)
        by_v, by_c, by_h = np.zeros_like(v), np.zeros_like(c), np.zeros_like(h)
        share = _array(gradient / _counts(ctx.sizes, gradient))
        hard_backward(v, c, h, _indptr(ctx.sizes), BASE, share, by_v, by_c, by_h)
        return torch.from_numpy(by_v), torch.from_numpy(by_c), torch.from_numpy(by_h), None


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()


def _indptr(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _counts(sizes: Ints, like: Tensor) -> Tensor:
    """Sizes of bags, to divide sums of shape (bags, features, bins) by."""
    return torch.as_tensor(sizes, device=like.device).to(like.dtype)[:, None, None]


def _times_bag(values: Tensor, rows: Tensor, sizes: Ints) -> Tensor:
    """Items times the row of their bag, without a copy of the rows where bags have one size."""
    size = one_size(sizes)
    if size is None:
        return values * spread(rows, sizes)
    block = values.reshape(len(sizes), size, values.shape[1])
    return (block * rows[:, None]).reshape(values.shape)
