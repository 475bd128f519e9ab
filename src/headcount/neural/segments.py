"""Reductions over the bags of a batch, whose items lie one bag after the other.

Bags of one size are a reshape; of different sizes, a sum by owner or a padded block with a mask.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from headcount._core.types import Ints

Tensor = Any  # torch carries types, but it is not installed where these are checked


def one_size(sizes: Ints) -> int | None:
    """Size of the bags if it is the same for all."""
    return int(sizes[0]) if (sizes == sizes[0]).all() else None


def bag_sums(values: Tensor, sizes: Ints) -> Tensor:
    """Sum of the rows of each bag."""
    size = one_size(sizes)
    if size is not None:
        return values.reshape(len(sizes), size, *values.shape[1:]).sum(dim=1)
    out = values.new_zeros((len(sizes), *values.shape[1:]))
    return out.index_add(0, owners(sizes, values.device), values)


def bag_means(values: Tensor, sizes: Ints) -> Tensor:
    """Mean of the rows of each bag."""
    sums = bag_sums(values, sizes)
    counts = torch.as_tensor(sizes, device=values.device).to(values.dtype)
    return sums / counts.reshape(-1, *[1] * (values.ndim - 1))


def spread(rows: Tensor, sizes: Ints) -> Tensor:
    """The row of its bag for every item."""
    size = one_size(sizes)
    if size is not None:
        shape = (len(sizes), size, *rows.shape[1:])
        return rows[:, None].expand(shape).reshape(-1, *rows.shape[1:])
    return rows[owners(sizes, rows.device)]


def pad(values: Tensor, sizes: Ints) -> tuple[Tensor, Tensor | None]:
    """Items as a block (bags, largest size, width), and where it holds items if not everywhere."""
    size = one_size(sizes)
    if size is not None:
        return values.reshape(len(sizes), size, values.shape[1]), None
    present = torch.as_tensor(np.arange(sizes.max()) < sizes[:, None], device=values.device)
    block = values.new_zeros((len(sizes), int(sizes.max()), values.shape[1]))
    block = block.masked_scatter(present[:, :, None], values)
    return block, present


def owners(sizes: Ints, device: Any) -> Tensor:
    """Number of its bag for every item."""
    return torch.as_tensor(np.repeat(np.arange(len(sizes)), sizes), device=device)
