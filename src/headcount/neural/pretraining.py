"""Let the features of items learn to classify labelled items before bags are learnt from."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from headcount._core.types import Ints
from headcount.neural.runtime import Items

BATCH = 128
RATE = 1e-3


def pretrain(
    network: nn.Module, items: Items, rows: Ints, codes: Ints, epochs: int, seed: int
) -> None:
    """Train the features of a network under a linear classifier, which is thrown away.

    Classes count equally: a bag may hold any shares of them.
    """
    parameters = list(network.features.parameters())
    if epochs == 0 or not parameters:
        return
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    network.train()
    width = network.describe(items.rows(rows[:2])).shape[1]
    counts = np.bincount(codes)
    weights = torch.as_tensor(len(codes) / np.maximum(counts, 1), dtype=torch.float32)
    loss = nn.CrossEntropyLoss((weights / weights.mean()).to(items.device))
    classifier = nn.Linear(width, len(counts)).to(items.device)
    optimiser = torch.optim.AdamW([*parameters, *classifier.parameters()], lr=RATE)
    for _ in range(epochs):
        order = rng.permutation(len(rows))
        for start in range(0, len(order) - 1, BATCH):
            part = order[start : start + BATCH]
            logits = classifier(network.describe(items.rows(rows[part])))
            optimiser.zero_grad(set_to_none=True)
            loss(logits, torch.as_tensor(codes[part], device=items.device)).backward()
            optimiser.step()
