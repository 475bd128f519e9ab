"""Domain-adversarial training with class weights: features that look alike in source and target.

The weights are those of Tachet des Combes et al. (2020): what the classifier says of the target is
a mixture of what it says of each class of the source, and the weights say of which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from headcount._core.types import Floats, Ints
from headcount.kernels.simplex import least_squares
from headcount.neural.frame import mlp
from headcount.neural.segments import Tensor

PRIOR_RIDGE = 1e-6  # pull towards the training shares, for classes that look alike


class _Reversal(torch.autograd.Function):
    """The identity, whose gradient comes back with its sign changed."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, strength: float) -> Tensor:
        ctx.strength = strength
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return -ctx.strength * gradient, None


def reverse_gradient(values: Tensor, strength: float) -> Tensor:
    """Return the values as they are; what they are made of learns the opposite."""
    return _Reversal.apply(values, strength)


class AdversarialNetwork(nn.Module):
    """Features of items, a classifier on them, and a discriminator of source and target."""

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        features: Sequence[int],
        discriminator: Sequence[int],
        dropout: float,
    ):
        super().__init__()
        self.features, width = mlp(n_features, features, dropout, activation=nn.ReLU)
        self.classifier = nn.Linear(width, n_classes)
        self.discriminator, last = mlp(width, discriminator, 0.0, activation=nn.ReLU)
        self.discriminator.append(nn.Linear(last, 1))

    def posteriors(self, items: Tensor) -> Floats:
        """What the classifier says of items, without dropout."""
        self.eval()
        with torch.inference_mode():
            logits = self.classifier(self.features(items))
            return np.asarray(torch.softmax(logits.double(), dim=1).cpu().numpy())


def class_weights(confusion: Floats, answers: Floats, prior: Floats) -> Floats:
    """Target share over source share of every class.

    Minimises |C w - mu|^2 for w >= 0 with w . prior = 1. Written in the shares p = w * prior, that
    is least squares over the simplex with the class means of the answers as columns.

    Parameters
    ----------
    confusion : array of shape (k, k)
        C: mean over source items of the answer (rows) where the item is of the class (columns),
        and zero elsewhere.
    answers : array of shape (k,)
        mu: mean answer on the target.
    prior : array of shape (k,)
        Shares of the classes in the source.

    Examples
    --------
    >>> C = np.array([[0.45, 0.1], [0.05, 0.4]])
    >>> class_weights(C, C @ np.array([0.4, 1.6]), np.array([0.5, 0.5])).round(3)
    array([0.4, 1.6])
    """
    k = len(prior)
    design = np.vstack([confusion / prior, np.sqrt(PRIOR_RIDGE) * np.eye(k)])
    target = np.concatenate([answers, np.sqrt(PRIOR_RIDGE) * prior])
    return np.asarray(least_squares(design, target[None])[0] / prior)


@dataclass(frozen=True)
class Adversary:
    """Settings of one adversarial training."""

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    strength: float  # of the reversed gradient
    momentum: float  # of the moving average of the weights
    wait: int  # epochs before the weights are first estimated
    weighted: bool  # False: the plain domain-adversarial network
    seed: int


@dataclass
class Domains:
    """Source items with their classes, for training and held out, and target items."""

    source: Tensor
    codes: Ints
    held: Tensor
    held_codes: Ints
    target: Tensor
    prior: Floats


def adapt(network: AdversarialNetwork, data: Domains, how: Adversary) -> Floats:
    """Train in place; give the class weights."""
    rng = np.random.default_rng(how.seed)
    weights = np.ones(len(data.prior))
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=how.learning_rate, weight_decay=how.weight_decay
    )
    for epoch in range(how.epochs):
        _epoch(network, data, how, weights, optimiser, rng)
        if how.weighted and epoch >= how.wait:
            confusion = _confusion(network.posteriors(data.held), data.held_codes, data.prior)
            answers = network.posteriors(data.target).mean(axis=0)
            new = class_weights(confusion, answers, data.prior)
            kept = how.momentum if epoch > how.wait else 0.0  # the first estimate counts in full
            weights = kept * weights + (1 - kept) * new
    return weights


def _confusion(posteriors: Floats, codes: Ints, prior: Floats) -> Floats:
    """Mean answer for each class, as a share of all: its columns sum to the prior."""
    k = len(prior)
    means = np.stack([posteriors[codes == c].mean(axis=0) for c in range(k)], axis=1)
    return np.asarray(means * prior)


def _epoch(
    network: AdversarialNetwork,
    data: Domains,
    how: Adversary,
    weights: Floats,
    optimiser: Any,
    rng: np.random.Generator,
) -> None:
    """One pass over the source, with as many target items beside it."""
    network.train()
    device = data.source.device
    by_class = torch.as_tensor(weights, dtype=torch.float32, device=device)
    balance = torch.as_tensor(
        1 / (len(data.prior) * data.prior), dtype=torch.float32, device=device
    )
    order = rng.permutation(len(data.codes))
    for start in range(0, len(order), how.batch_size):
        part = order[start : start + how.batch_size]
        other = rng.integers(len(data.target), size=len(part))
        codes = torch.as_tensor(data.codes[part], device=device)
        loss = _loss(
            network,
            data.source[torch.as_tensor(part)],
            codes,
            data.target[torch.as_tensor(other)],
            (by_class[codes], balance[codes]),
            how.strength,
        )
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()


def _loss(
    network: AdversarialNetwork,
    source: Tensor,
    codes: Tensor,
    target: Tensor,
    item_weights: tuple[Tensor, Tensor],
    strength: float,
) -> Tensor:
    """Weighted error of the classifier, and of the discriminator behind a reversed gradient."""
    weight, balance = item_weights
    features = network.features(torch.cat([source, target]))
    logits = network.classifier(features[: len(source)])
    errors = functional.cross_entropy(logits, codes, reduction="none")
    judged = network.discriminator(reverse_gradient(features, strength))[:, 0]
    ours = functional.softplus(-judged[: len(source)]) * weight
    theirs = functional.softplus(judged[len(source) :])
    return (errors * weight * balance).mean() + (ours.mean() + theirs.mean()) / 2
