"""A bidirectional LSTM over the items of a bag, in the order in which they come.

Torch's own LSTM multiplies every item by the input weights again in each bag that holds it. Here
that product is the feature of an item, taken once, and the recurrence runs over all bags and both
directions at once. On a CPU it has a derivative of its own and compiled steps, so that a step is
three calls.
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
        if features.device.type == "cpu" and features.dtype == torch.float32:
            learning = torch.is_grad_enabled()
            states = _ReadingOnCPU.apply(features, self.weight, order, mask, learning)
        else:
            states = read(features, self.weight, order, mask)
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


def read(features: Tensor, weight: Tensor, order: Tensor, alive: Tensor | None) -> Tensor:
    """Last states (2, bags, hidden) from inputs to gates and recurrent weights, on any device.

    Before a bag starts nothing is taken into its cell, so that cell and state stay zero.
    """
    hidden = weight.shape[1]
    table = features.reshape(-1, 4 * hidden)
    state = cell = features.new_zeros((2, order.shape[2], hidden))
    for t, rows in enumerate(order):
        gates = torch.baddbmm(table[rows], state, weight)
        take, keep, show = gates[..., : 3 * hidden].sigmoid().chunk(3, dim=2)
        if alive is not None:
            take = take * alive[t]
        cell = keep * cell + take * gates[..., 3 * hidden :].tanh()
        state = show * cell.tanh()
    return state


class _ReadingOnCPU(torch.autograd.Function):
    """The same for 32-bit numbers by compiled steps between the matrix products.

    What is needed for the derivative is kept only if there is to be one (`learning`).
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
        from headcount.neural.compiled_lstm import step

        (n_steps, _, n_bags), hidden = order.shape, weight.shape[1]
        table, kept = features.detach().reshape(-1, 4 * hidden), n_steps if learning else 1
        gates = features.new_empty((kept, 2 * n_bags, 4 * hidden))
        slots = kept + 1 if learning else 1  # of cells and states; the first is before all steps
        cells, states = features.new_zeros((2, slots, 2 * n_bags, hidden)).unbind(0)
        bent = features.new_empty((kept, 2 * n_bags, hidden))  # tanh of the cells
        live = np.ones((n_steps, n_bags), np.float32) if alive is None else _flat(alive)
        g, c, b, s = (x.numpy() for x in (gates, cells, bent, states))
        for t, rows in enumerate(order.flatten(start_dim=1).unbind(0)):
            now, before, after = (t, t, t + 1) if learning else (0, 0, 0)
            torch.index_select(table, 0, rows, out=gates[now])
            _pairs(gates[now]).baddbmm_(_pairs(states[before]), weight)
            step(g[now], c[before], live[t], c[after], b[now], s[after])
        if learning:
            ctx.save_for_backward(weight, order, gates, cells, states, bent)
            ctx.shape = features.shape
        return _pairs(states[-1]).clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from headcount.neural.compiled_lstm import step_back

        weight, order, gates, cells, states, bent = ctx.saved_tensors
        slopes, turned = torch.empty_like(gates), weight.transpose(1, 2)
        by_state = gradient.flatten(0, 1).contiguous()
        by_cell, by_weight = torch.zeros_like(by_state), torch.zeros_like(weight)
        g, c, b, by_c, out = (x.numpy() for x in (gates, cells, bent, by_cell, slopes))
        for t in range(len(gates) - 1, -1, -1):
            step_back(g[t], c[t], b[t], by_state.numpy(), by_c, out[t])
            by_gates = _pairs(slopes[t])
            by_weight.baddbmm_(_pairs(states[t]).transpose(1, 2), by_gates)
            by_state = torch.bmm(by_gates, turned).flatten(0, 1)
        width = gates.shape[2]
        by_feature = gates.new_zeros((math.prod(ctx.shape) // width, width))
        by_feature.index_add_(0, order.flatten(), slopes.view(-1, width))
        return by_feature.view(ctx.shape), by_weight, None, None, None


def _pairs(rows: Tensor) -> Tensor:
    """Rows of the two directions, one below the other, as two blocks."""
    return rows.view(2, -1, rows.shape[1])


def _flat(alive: Tensor) -> Any:
    """Which bags have started at every step, as numbers of 32 bits."""
    return alive.reshape(len(alive), -1).numpy()
