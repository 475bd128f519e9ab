"""A bidirectional LSTM over the items of a bag, in the order in which they come.

Torch's own LSTM multiplies every item by the input weights again in each bag that holds it. Here
that product is the feature of an item, taken once, and the recurrence runs over all bags and both
directions at once.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from headcount._core.types import Ints
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
        order = torch.as_tensor(reading_steps(sizes), device=features.device)
        steps = features.reshape(-1, 4 * self.hidden)[order.flatten()]
        steps = steps.reshape(*order.shape, 4 * self.hidden)
        state = cell = features.new_zeros((2, len(sizes), self.hidden))
        alive = None
        if one_size(sizes) is None:
            reached = np.arange(sizes.max())[:, None] < sizes
            alive = torch.as_tensor(reached, device=features.device)[:, None, :, None]
        for t, inputs in enumerate(steps.unbind(0)):
            new_state, new_cell = self._step(inputs, state, cell)
            if alive is not None:  # a bag that has ended keeps its state
                new_state = torch.where(alive[t], new_state, state)
                new_cell = torch.where(alive[t], new_cell, cell)
            state, cell = new_state, new_cell
        return torch.cat([state[0], state[1]], dim=1)

    def _step(self, inputs: Tensor, state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        gates = torch.baddbmm(inputs, state, self.weight)
        opened, candidate = gates.split([3 * self.hidden, self.hidden], dim=2)
        take, keep, show = torch.sigmoid(opened).chunk(3, dim=2)
        cell = torch.addcmul(keep * cell, take, torch.tanh(candidate))
        return show * torch.tanh(cell), cell


def reading_steps(sizes: Ints) -> Ints:
    """Rows of features to read at every step, of shape (steps, 2, bags).

    An item has two rows, one a direction; beyond the end of a bag its last item is repeated.
    """
    starts = np.cumsum(sizes) - sizes
    ahead = np.minimum(np.arange(sizes.max())[:, None], sizes - 1)
    forward, backward = starts + ahead, starts + sizes - 1 - ahead
    return np.stack([2 * forward, 2 * backward + 1], axis=1)
