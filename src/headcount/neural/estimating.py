"""Estimate many bags with a network, in chunks of bounded memory."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.neural.runtime import Items
from headcount.neural.segments import Tensor

ITEMS_PER_POOLING = 1 << 16  # items that are pooled at once
DESCRIBED = 1 << 12  # items whose features are taken at once: few enough for a cache
KEPT_FEATURES = 1 << 26  # numbers of item features that are kept instead of computed again


def estimate_bags(
    network: nn.Module, items: Items, bags: Bags, known: Floats | None = None
) -> Floats:
    """Shares of every bag, in chunks of bounded memory; features of an item are taken once."""
    network.eval()
    answers, start = [], 0
    with torch.inference_mode():
        used = np.flatnonzero(np.bincount(bags.indices, minlength=len(items)))
        memory = FeatureMemory(network, items, used)
        for chunk in bags.chunks(ITEMS_PER_POOLING):
            stop = start + len(chunk)
            told = None
            if known is not None:
                told = torch.as_tensor(known[start:stop], dtype=torch.float32, device=items.device)
            features, rows = memory.find(chunk.indices)
            shares, _ = network.estimate(features, chunk.sizes, told, rows)
            answers.append(shares.double().cpu().numpy())
            start = stop
    found = np.concatenate(answers)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


class FeatureMemory:
    """Features of items that stay as they are: of all at once if they fit, else when asked for.

    `used` are the numbers of the items, in order.
    """

    def __init__(self, network: nn.Module, items: Items, used: Ints):
        self.network, self.items, self.used = network, items, used
        width = network.describe(items.rows(self.used[:1])).shape[1]
        self.kept = self._describe(self.used) if len(self.used) * width < KEPT_FEATURES else None
        self.place = np.zeros(len(items), dtype=np.int64)
        self.place[used] = np.arange(len(used))

    def find(self, which: Ints) -> tuple[Tensor, Ints]:
        """Features, and the rows of them that items have, by their numbers."""
        if self.kept is None:
            distinct, place = np.unique(which, return_inverse=True)
            return self._describe(distinct), place
        return self.kept, self.place[which]

    def _describe(self, which: Ints) -> Tensor:
        parts = [
            self.network.describe(self.items.rows(which[a : a + DESCRIBED]))
            for a in range(0, len(which), DESCRIBED)
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts)
