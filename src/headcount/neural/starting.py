"""What a network starts from: an estimate by simple means, which its head then improves on.

A head that has to find many shares from bags alone takes very long to get as far as a corrected
count of a classifier's answers. So the logarithm of such an estimate is added to what the head
says, and the head says nothing at first.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from headcount.neural.segments import Tensor

COUNT_RIDGE = 1e-3  # on standardised counts, over the number of bags
SOFTNESS = 0.1  # of the bend at zero, over the error of the estimate
MIN_SHARE = 1e-6  # shares are raised to it, so that their logarithms are finite
NONE = 1e-4  # the same for methods that answer with zero: a head must be able to raise it


class Classifying(nn.Module):
    """Features of items, and beside them the posteriors of a linear classifier on these.

    Parameters
    ----------
    inner : module
        From items to features.
    width, n_classes : int
        Numbers of features and of posteriors.
    """

    def __init__(self, inner: nn.Module, width: int, n_classes: int):
        super().__init__()
        self.inner, self.classifier = inner, nn.Linear(width, n_classes)

    def logits(self, items: Tensor) -> Tensor:
        """What the classifier says of items."""
        return self.classifier(self.inner(items))

    def forward(self, items: Tensor) -> Tensor:
        """Features and posteriors."""
        features = self.inner(items)
        return torch.cat([features, self.classifier(features).softmax(dim=1)], dim=1)


class CorrectedCount(nn.Module):
    """Shares from the mean posteriors of a bag, by a linear map that is bent to stay positive.

    At first the map is the least-squares one over some bags with known shares, which is how PACC
    corrects as far as posteriors tell classes apart, and careful beyond that.
    """

    def __init__(self, n_classes: int):
        super().__init__()
        self.n_classes = n_classes
        self.correction = nn.Linear(n_classes, n_classes)
        self.log_softness = nn.Parameter(torch.zeros(n_classes))

    def forward(self, counts: Tensor) -> Tensor:
        """Logarithms of the estimated shares, up to a constant."""
        weight, bias = self.correction.weight.double(), self.correction.bias.double()
        softness = self.log_softness.double().exp()
        found = functional.linear(counts.double(), weight, bias)
        bent = functional.softplus(found / softness) * softness
        return (bent + MIN_SHARE).log()

    def fit(self, counts: Tensor, truth: Tensor) -> None:
        """Take the least-squares map from these counts to these shares."""
        x, y = counts.double(), truth.double()
        middle, goal = x.mean(dim=0), y.mean(dim=0)
        scale = x.std(dim=0).clamp_min(1e-9)
        z = (x - middle) / scale
        gram = z.T @ z + COUNT_RIDGE * len(z) * torch.eye(
            self.n_classes, dtype=z.dtype, device=z.device
        )
        weight = torch.linalg.solve(gram, z.T @ (y - goal)) / scale[:, None]
        bias = goal - middle @ weight
        error = (x @ weight + bias - y).square().mean(dim=0).sqrt()
        with torch.no_grad():
            self.correction.weight.copy_(weight.T)
            self.correction.bias.copy_(bias)
            self.log_softness.copy_((SOFTNESS * error.clamp_min(MIN_SHARE)).log())


class OneAnswer(nn.Module):
    """Shares as one of several methods says them, of which the answers come side by side.

    Parameters
    ----------
    n_methods, n_classes : int
    which : int
        The number of that method.
    """

    def __init__(self, n_methods: int, n_classes: int, which: int):
        super().__init__()
        self.shape, self.which = (n_methods, n_classes), which

    def forward(self, answers: Tensor) -> Tensor:
        """Logarithms of the estimated shares."""
        return (answers.unflatten(1, self.shape)[:, self.which] + NONE).log()
