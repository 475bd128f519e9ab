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
        memory = FeatureMemory(network, items, np.unique(bags.indices))
        for chunk in bags.chunks(CHUNK):
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

    def find(self, which: Ints) -> tuple[Tensor, Ints]:
        """Features, and the rows of them that items have, by their numbers."""
        if self.kept is None:
            distinct, place = np.unique(which, return_inverse=True)
            return self._describe(distinct), place
        return self.kept, np.searchsorted(self.used, which)

    def _describe(self, which: Ints) -> Tensor:
        parts = [
            self.network.describe(self.items.rows(which[a : a + CHUNK]))
            for a in range(0, len(which), CHUNK)
        ]
        return torch.cat(parts)
