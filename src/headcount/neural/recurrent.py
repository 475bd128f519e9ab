"""A bidirectional LSTM over the items of a bag, in the order in which they come.

Torch's own LSTM multiplies every item by the input weights again in each bag that holds it. Here
that product is the feature of an item, taken once, and the recurrence runs over all bags and both
directions at once, with a derivative of its own that needs few calls a step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from headcount._core.types import Bools, Ints
from headcount.neural.pooling import Pooling
from headcount.neural.segments import Tensor, one_size


class Recurrent(Pooling):
    """Last hidden state of either direction; the caller puts the items of a bag in order.

    The features of an item are its input to the gates (input, forget, output, candidate), of the
    forward direction and then of the backward one: 8 x `hidden` numbers.
    """

    steady = False

    def __init__(self, hidden: int):
        super().__init__()
        self.hidden, self.width = hidden, 2 * hidden
        bound = 1 / math.sqrt(hidden)
        self.weight = nn.Parameter(torch.empty(2, hidden, 4 * hidden).uniform_(-bound, bound))

    def forward(self, features: Tensor, sizes: Ints) -> Tensor:
        """Pool the features of each bag."""
        return self.pool_rows(features, np.arange(len(features)), sizes)

    def pool_rows(self, features: Tensor, rows: Ints, sizes: Ints) -> Tensor:
        """Pool bags whose items are these rows of the features, which are not copied for it."""
        steps, alive = reading_steps(sizes, rows)
        order = torch.as_tensor(steps, device=features.device)
        mask = None
        if alive is not None:
            mask = torch.as_tensor(alive, device=features.device).to(features.dtype)
        states = _Reading.apply(features, self.weight, order, mask, torch.is_grad_enabled())
        return torch.cat([states[0], states[1]], dim=1)


def reading_steps(sizes: Ints, rows: Ints) -> tuple[Ints, Bools | None]:
    """Rows of gate inputs to read, of shape (steps, 2, bags), and where they are of an item.

    `rows` are those of the features of all items; each has two of gate inputs, one a direction.
    All bags end at the last step: shorter ones start later, and read any row before.
    """
    starts = np.cumsum(sizes) - sizes
    position = np.arange(sizes.max())[:, None] - (sizes.max() - sizes)
    ahead = np.maximum(position, 0)
    forward, backward = rows[starts + ahead], rows[starts + sizes - 1 - ahead]
    steps = np.stack([2 * forward, 2 * backward + 1], axis=1)
    if one_size(sizes) is not None:
        return steps, None
    return steps, (position >= 0)[:, None, :, None]


class _Reading(torch.autograd.Function):
    """The recurrence: last states (2, bags, hidden) from inputs to gates and recurrent weights.

    Before a bag starts nothing is taken into its cell, so that cell and state stay zero. What is
    needed for the derivative is kept only if there is to be one (`learning`).
    """

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        order: Tensor,
        alive: Tensor | None,
        learning: bool,
    ) -> Tensor:
        (n_steps, _, n_bags), hidden = order.shape, weight.shape[1]
        table, kept = features.reshape(-1, 4 * hidden), n_steps if learning else 1
        gates = features.new_empty((kept, 2, n_bags, 4 * hidden))
        slots = kept + 1 if learning else 1  # of cells and states; the first is before all steps
        cells, states = features.new_zeros((2, slots, 2, n_bags, hidden)).unbind(0)
        bent = features.new_empty((kept, 2, n_bags, hidden))  # tanh of the cells
        for t, rows in enumerate(order.flatten(start_dim=1).unbind(0)):
            now, before, after = (t, t, t + 1) if learning else (0, 0, 0)
            torch.index_select(table, 0, rows, out=gates[now].view(-1, 4 * hidden))
            opened, candidate = _gates(gates[now].baddbmm_(states[before], weight))
            opened.sigmoid_()
            take, keep, show = opened.chunk(3, dim=2)
            if alive is not None:
                take.mul_(alive[t])
            torch.mul(cells[before], keep, out=cells[after]).addcmul_(take, candidate.tanh_())
            torch.tanh(cells[after], out=bent[now])
            torch.mul(show, bent[now], out=states[after])
        if learning:
            ctx.save_for_backward(weight, order, gates, cells, states, bent)
            ctx.shape = features.shape
        return states[-1].clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        weight, order, gates, cells, states, bent = ctx.saved_tensors
        slopes, to_cell = _slopes(gates, cells, bent)
        hidden, turned = weight.shape[1], weight.transpose(1, 2)
        keep = gates[..., hidden : 2 * hidden].unbind(0)
        by_state, by_cell = gradient, torch.zeros_like(gradient)
        for t in range(len(gates) - 1, -1, -1):
            by_cell.addcmul_(by_state, to_cell[t])
            take_keep, show, candidate = slopes[t].split([2 * hidden, hidden, hidden], dim=2)
            take_keep.unflatten(2, (2, hidden)).mul_(by_cell[:, :, None])
            show.mul_(by_state)
            candidate.mul_(by_cell)
            by_state = torch.bmm(slopes[t], turned)
            by_cell.mul_(keep[t])
        by_weight = torch.einsum("tdbh,tdbg->dhg", states[:-1], slopes)
        by_feature = slopes.new_zeros((math.prod(ctx.shape) // (4 * hidden), 4 * hidden))
        by_feature.index_add_(0, order.flatten(), slopes.view(-1, 4 * hidden))
        return by_feature.view(ctx.shape), by_weight, None, None, None


def _gates(values: Tensor) -> tuple[Tensor, Tensor]:
    """Those that open, side by side, and the candidate."""
    hidden = values.shape[-1] // 4
    opened, candidate = values.split([3 * hidden, hidden], dim=-1)
    return opened, candidate


def _slopes(gates: Tensor, cells: Tensor, bent: Tensor) -> tuple[Tensor, Tensor]:
    """By what a change of cell or state is to be multiplied: at the inputs to gates, at the cell.

    A gate that was closed because its bag had not started has the slope zero, as it should be.
    """
    opened, candidate = _gates(gates)
    take, _, show = opened.chunk(3, dim=-1)
    slopes = torch.empty_like(gates)
    slope_opened, slope_candidate = _gates(slopes)
    torch.mul(opened, 1 - opened, out=slope_opened)
    for slope, factor in zip(
        slope_opened.chunk(3, dim=-1), (candidate, cells[:-1], bent), strict=True
    ):
        slope.mul_(factor)
    torch.mul(take, 1 - candidate**2, out=slope_candidate)
    return slopes, show * (1 - bent**2)
