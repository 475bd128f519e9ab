"""The set transformer (Lee et al., 2019): attention between items, pooled by attention."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from headcount._core.types import Ints
from headcount.neural.pooling import Pooling
from headcount.neural.segments import Tensor, pad


class Attention(nn.Module):
    """Multi-head attention block: what `queries` find in `items`, then a layer, both residual."""

    def __init__(self, query_width: int, item_width: int, width: int, n_heads: int):
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(query_width, width)
        self.key = nn.Linear(item_width, width)
        self.value = nn.Linear(item_width, width)
        self.last = nn.Linear(width, width)

    def forward(self, queries: Tensor, items: Tensor, present: Tensor | None = None) -> Tensor:
        """Attend; `present` says which items of the block are real."""
        query = self.query(queries)
        mask = None if present is None else present[:, None, None, :]
        found = functional.scaled_dot_product_attention(
            self._heads(query), self._heads(self.key(items)), self._heads(self.value(items)), mask
        )
        hidden = query + found.transpose(1, 2).flatten(start_dim=2)
        return hidden + torch.relu(self.last(hidden))

    def _heads(self, block: Tensor) -> Tensor:
        return block.unflatten(2, (self.n_heads, -1)).transpose(1, 2)


class Induced(nn.Module):
    """Self-attention of items through a few learnt points (ISAB): linear in the size of a bag."""

    def __init__(self, item_width: int, width: int, n_heads: int, n_points: int):
        super().__init__()
        self.points = nn.Parameter(torch.empty(1, n_points, width))
        nn.init.xavier_uniform_(self.points)
        self.gather = Attention(width, item_width, width, n_heads)
        self.return_to = Attention(item_width, width, width, n_heads)

    def forward(self, items: Tensor, present: Tensor | None = None) -> Tensor:
        """Let the points attend to the items, and the items to the points."""
        points = self.gather(self.points.expand(len(items), -1, -1), items, present)
        return self.return_to(items, points)


class SetAttention(Pooling):
    """Two induced blocks, pooling by attention from learnt seeds (PMA), two blocks among these.

    Parameters
    ----------
    n_features : int
    n_seeds : int
        One a class in the published networks.
    width, n_heads, n_points : int
        Hidden width, attention heads, and induced points.
    out : int
        Width of what is said of each seed.
    """

    pace = 0.003  # bags differ by little in what attention finds, so a small step is a large one

    def __init__(
        self, n_features: int, n_seeds: int, width: int, n_heads: int, n_points: int, out: int
    ):
        super().__init__()
        self.width = n_seeds * out
        self.first = Induced(n_features, width, n_heads, n_points)
        self.second = Induced(width, width, n_heads, n_points)
        self.seeds = nn.Parameter(torch.empty(1, n_seeds, width))
        nn.init.xavier_uniform_(self.seeds)
        self.pool = Attention(width, width, width, n_heads)
        self.among = nn.ModuleList([Attention(width, width, width, n_heads) for _ in range(2)])
        self.last = nn.Linear(width, out)

    def forward(self, features: Tensor, sizes: Ints) -> Tensor:
        """Pool the features of each bag."""
        block, present = pad(features, sizes)
        block = self.second(self.first(block, present), present)
        seeds = self.pool(self.seeds.expand(len(sizes), -1, -1), block, present)
        for layer in self.among:
            seeds = layer(seeds, seeds)
        return self.last(seeds).flatten(start_dim=1)
