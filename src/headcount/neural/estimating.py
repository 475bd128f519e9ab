"""Estimate many bags with a network, in chunks of bounded memory."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.neural.runtime import Items
from headcount.neural.segments import Tensor

CHUNK = 1 << 16  # items that are pooled at once
KEPT_FEATURES = 1 << 26  # numbers of item features that are kept instead of computed again


def estimate_bags(
    network: nn.Module, items: Items, bags: Bags, known: Floats | None = None
) -> Floats:
    """Shares of every bag, in chunks of bounded memory; features of an item are taken once."""
    network.eval()
    answers, start = [], 0
    with torch.inference_mode():
        memory = _FeatureMemory(network, items, bags)
        for chunk in bags.chunks(CHUNK):
            stop = start + len(chunk)
            told = None
            if known is not None:
                told = torch.as_tensor(known[start:stop], dtype=torch.float32, device=items.device)
            shares, _ = network.estimate(memory.rows(chunk.indices), chunk.sizes, told)
            answers.append(shares.double().cpu().numpy())
            start = stop
    found = np.concatenate(answers)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


class _FeatureMemory:
    """Features of the items of bags: all of them at once if they fit, else when asked for."""

    def __init__(self, network: nn.Module, items: Items, bags: Bags):
        self.network, self.items = network, items
        self.used = np.unique(bags.indices)
        width = network.describe(items.rows(self.used[:1])).shape[1]
        self.kept = self._describe(self.used) if len(self.used) * width < KEPT_FEATURES else None

    def rows(self, which: Ints) -> Tensor:
        """Features of items by their numbers."""
        if self.kept is None:
            distinct, place = np.unique(which, return_inverse=True)
            return self._describe(distinct)[torch.as_tensor(place)]
        return self.kept[torch.as_tensor(np.searchsorted(self.used, which))]

    def _describe(self, which: Ints) -> Tensor:
        parts = [
            self.network.describe(self.items.rows(which[a : a + CHUNK]))
            for a in range(0, len(which), CHUNK)
        ]
        return torch.cat(parts)
