"""Let the features of items learn to classify labelled items before bags are learnt from."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from headcount._core.types import Ints
from headcount.neural.runtime import Items
from headcount.neural.segments import Tensor

ITEMS_PER_STEP = 128
RATE = 1e-3
HELD_OUT = 0.1  # share of the labelled items by which to stop
PATIENCE_EPOCHS = 3  # without a lower error on the held-out items


def pretrain(
    network: nn.Module, items: Items, rows: Ints, codes: Ints, epochs: int, seed: int
) -> None:
    """Train the features of a network under the linear classifier that it has on them.

    Classes count equally: a bag may hold any shares of them. It ends early when items that are
    held out are no longer classified better; the features that did it best stay.
    """
    torch.manual_seed(seed)
    task = _Classification(network, items, rows, codes, seed)
    best, kept, waited = np.inf, network.features.state_dict(), 0
    for _ in range(epochs):
        task.epoch()
        error = task.held_out_error()
        if error < best:
            best, waited = error, 0
            kept = {k: v.detach().clone() for k, v in network.features.state_dict().items()}
        else:
            waited += 1
        if waited == PATIENCE_EPOCHS:
            break
    network.features.load_state_dict(kept)


class _Classification:
    """Features of a network and a linear classifier on them, trained on labelled items."""

    def __init__(self, network: nn.Module, items: Items, rows: Ints, codes: Ints, seed: int):
        self.network, self.items, self.rows, self.codes = network, items, rows, codes
        self.rng = np.random.default_rng(seed)
        order = self.rng.permutation(len(rows))
        n_held = max(1, round(HELD_OUT * len(rows)))
        self.held, self.learnt = order[:n_held], order[n_held:]
        counts = np.bincount(codes)
        weights = torch.as_tensor(len(codes) / np.maximum(counts, 1), dtype=torch.float32)
        self.loss = nn.CrossEntropyLoss((weights / weights.mean()).to(items.device))
        self.optimiser = torch.optim.AdamW(network.features.parameters(), lr=RATE)

    def epoch(self) -> None:
        """One pass over the items that are not held out, in batches of at least two."""
        self.network.train()
        order = self.rng.permutation(self.learnt)
        for start in range(0, len(order) - 1, ITEMS_PER_STEP):
            self.optimiser.zero_grad(set_to_none=True)
            self._error(order[start : start + ITEMS_PER_STEP]).backward()
            self.optimiser.step()

    def held_out_error(self) -> float:
        """Error on the items that are held out."""
        self.network.eval()
        with torch.no_grad():
            parts = np.array_split(self.held, -(-len(self.held) // 4096))
            return float(np.mean([float(self._error(part)) for part in parts]))

    def _error(self, which: Ints) -> Tensor:
        network, items = self.network, self.items.rows(self.rows[which])
        logits = network.features.logits(network.standardise(items))
        return self.loss(logits, torch.as_tensor(self.codes[which], device=self.items.device))
