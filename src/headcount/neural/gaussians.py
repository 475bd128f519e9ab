"""The Gaussian-mixture layer of GMNet (Pérez-Mon et al., 2025), and its penalty of likeness."""

from __future__ import annotations

import math

import torch
from torch import nn

from headcount.neural.pooling import Statistic
from headcount.neural.segments import Tensor


class Branches(nn.Module):
    """Several small networks side by side, each with its own outputs in [0, 1]."""

    def __init__(self, n_features: int, n_branches: int, hidden: int, out: int, dropout: float):
        super().__init__()
        self.hidden = nn.Linear(n_features, n_branches * hidden)
        self.dropout = nn.Dropout(dropout)
        bound = 1 / math.sqrt(hidden)
        self.weight = nn.Parameter(torch.empty(n_branches, hidden, out).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(n_branches, out).uniform_(-bound, bound))

    def forward(self, items: Tensor) -> Tensor:
        """Outputs of all branches for every item, one branch after the other."""
        hidden = self.dropout(nn.functional.leaky_relu(self.hidden(items)))
        hidden = hidden.unflatten(1, (self.weight.shape[0], -1)).transpose(0, 1)
        out = torch.bmm(hidden, self.weight).transpose(0, 1) + self.bias
        return torch.sigmoid(out).flatten(start_dim=1)


class GaussianMixture(nn.Module):
    """Likelihood of items under each of many Gaussians, for every branch, scaled over items.

    Parameters
    ----------
    n_branches, dimension, n_gaussians : int
        Items come with `n_branches` x `dimension` features in [0, 1].
    """

    def __init__(self, n_branches: int, dimension: int, n_gaussians: int):
        super().__init__()
        self.n_branches = n_branches
        centres = torch.rand(n_branches, n_gaussians, dimension)
        gaps = torch.cdist(centres, centres) + torch.eye(n_gaussians) * 1e9
        spread = (gaps.amin(dim=2).mean(dim=1) / 2).clamp_min(1e-3)
        self.centres = nn.Parameter(centres)
        self.log_diagonal = nn.Parameter(
            -spread.log()[:, None, None].repeat(1, n_gaussians, dimension)
        )
        self.below = nn.Parameter(torch.zeros(n_branches, n_gaussians, dimension, dimension))
        self.norm = nn.BatchNorm1d(n_branches * n_gaussians)

    def forward(self, points: Tensor) -> Tensor:
        """Scaled likelihoods, one branch after the other."""
        return self.norm(self.likelihoods(points))

    def likelihoods(self, features: Tensor) -> Tensor:
        """Density of every item under each Gaussian: a quadratic form is linear in products."""
        points = features.unflatten(1, (self.n_branches, -1)).transpose(0, 1)
        root = torch.tril(self.below, -1) + torch.diag_embed(self.log_diagonal.exp())
        precision = root @ root.transpose(2, 3)
        pulled = (precision @ self.centres[..., None])[..., 0]
        constant = (pulled * self.centres).sum(dim=2)
        products = (points[..., :, None] * points[..., None, :]).flatten(start_dim=2)
        squares = products @ precision.flatten(start_dim=2).transpose(1, 2)
        distance = squares - 2 * points @ pulled.transpose(1, 2) + constant[:, None]
        dimension = points.shape[2]
        scale = self.log_diagonal.sum(dim=2) - dimension / 2 * math.log(2 * math.pi)
        density = torch.exp(scale[:, None] - distance.clamp_min(0) / 2)
        return density.transpose(0, 1).flatten(start_dim=1)


class UnlikeBranches(Statistic):
    """Mean of what the branches say, with a penalty where they say the same of the bags.

    Parameters
    ----------
    n_branches, n_gaussians : int
        Numbers come branch after branch, `n_gaussians` each.
    width : int
        How many they are with others that may follow.
    likeness : float
        Weight of the mean CKA between branches.
    """

    def __init__(self, n_branches: int, n_gaussians: int, width: int, likeness: float):
        super().__init__("mean", width)
        self.shape, self.likeness = (n_branches, n_gaussians), likeness

    def penalty(self, pooled: Tensor) -> Tensor:
        """Weighted mean of the CKA between all pairs of branches."""
        n_branches, n_gaussians = self.shape
        if self.likeness == 0 or n_branches < 2:
            return pooled.new_zeros(())
        said = pooled[:, : n_branches * n_gaussians].unflatten(1, self.shape).transpose(0, 1)
        return self.likeness * mean_cka(said)


def mean_cka(blocks: Tensor) -> Tensor:
    """Mean linear CKA (Kornblith et al., 2019) over the pairs of blocks (b, rows, columns)."""
    centred = blocks - blocks.mean(dim=1, keepdim=True)
    grams = centred @ centred.transpose(1, 2)
    flat = grams.flatten(start_dim=1)
    inner = flat @ flat.T
    norms = inner.diagonal().clamp_min(1e-30).sqrt()
    cka = inner / (norms[:, None] * norms)
    n = len(blocks)
    return (cka.sum() - cka.diagonal().sum()) / (n * (n - 1))
