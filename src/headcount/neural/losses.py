"""The measures as losses: mean over bags of the error that an evaluation would report."""

from __future__ import annotations

import torch

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.neural.segments import Tensor


def _rae(p: Tensor, q: Tensor, eps: Tensor) -> Tensor:
    return ((p - q).abs() / (p + eps)).mean(dim=1)  # both are smoothed by the same denominator


def _ae(p: Tensor, q: Tensor, eps: Tensor) -> Tensor:  # noqa: ARG001
    return (p - q).abs().mean(dim=1)


def _se(p: Tensor, q: Tensor, eps: Tensor) -> Tensor:  # noqa: ARG001
    return ((p - q) ** 2).mean(dim=1)


def _nmd(p: Tensor, q: Tensor, eps: Tensor) -> Tensor:  # noqa: ARG001
    return (p - q).cumsum(dim=1)[:, :-1].abs().sum(dim=1) / (p.shape[1] - 1)


def _kld(p: Tensor, q: Tensor, eps: Tensor) -> Tensor:
    total = 1 + p.shape[1] * eps
    return ((p + eps) / total * ((p + eps) / (q + eps)).log()).sum(dim=1)


KERNELS = {"rae": _rae, "ae": _ae, "se": _se, "nmd": _nmd, "kld": _kld}


def bag_errors(loss: str, true: Tensor, estimated: Tensor, sizes: Ints) -> Tensor:
    """Error of each bag; RAE and KLD are smoothed by 1 / (2 x its size)."""
    eps = torch.as_tensor(1 / (2 * sizes), device=true.device).to(true.dtype)[:, None]
    return KERNELS[loss](true, estimated, eps)


def mean_error(loss: str, bags: Bags, estimated: Floats) -> float:
    """Mean error of estimates of bags with known shares."""
    truth, found = torch.as_tensor(bags.prevalence), torch.as_tensor(estimated)
    return float(bag_errors(loss, truth, found, bags.sizes).mean())
