"""Where and how torch runs, without a trace on its global state; weights as plain bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors
from torch import nn

from headcount._core.types import Ints
from headcount.exceptions import InputError
from headcount.neural.segments import Tensor

Bytes = NDArray[np.uint8]


def find_device(device: str) -> Any:
    """Device by its name; 'auto' is a GPU where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
    except RuntimeError:
        raise InputError(f"unknown device {device!r}: expected 'auto', 'cpu' or 'cuda'.") from None
    if found.type == "cuda" and not torch.cuda.is_available():
        raise InputError("device='cuda' was asked for, and torch finds no GPU: use device='auto'.")
    return found


@contextmanager
def own_torch(seed: int, n_threads: int | None) -> Iterator[None]:
    """Seeded random numbers and a number of threads, both put back afterwards."""
    before = torch.get_num_threads()
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        try:
            if n_threads is not None:
                torch.set_num_threads(n_threads)
            yield
        finally:
            torch.set_num_threads(before)


def mix_seed(seed: int, *parts: int) -> int:
    """Seed of a part of the work, from that of the whole."""
    state = np.random.SeedSequence([seed, *parts]).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))


def pack(network: nn.Module) -> Bytes:
    """Weights of a network as the bytes of a safetensors file."""
    state = {k: v.detach().cpu().contiguous() for k, v in network.state_dict().items()}
    return np.frombuffer(write_tensors(state), dtype=np.uint8).copy()


def unpack(network: nn.Module, weights: Bytes) -> nn.Module:
    """Put weights into a network of the same make."""
    try:
        network.load_state_dict(read_tensors(weights.tobytes()))
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"the weights do not fit the settings of the network, which were changed after the "
            f"fit: fit again. ({str(error).splitlines()[0]})"
        ) from None
    return network


class Items:
    """Items of a pool, dense or sparse, of which rows are handed to torch.

    Parameters
    ----------
    parts : array or CSR matrix, in one piece or several
        One below the other.
    device : torch device
    """

    def __init__(self, *parts: Any, device: Any):
        self.parts, self.device = parts, device
        self.starts = np.cumsum([0, *(p.shape[0] for p in parts)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def rows(self, which: Ints) -> Tensor:
        """Rows by their numbers, on the device."""
        if len(self.parts) == 1:
            taken = _dense(self.parts[0][which])
        else:
            taken = np.empty((len(which), self.parts[0].shape[1]), dtype=np.float32)
            owner = np.searchsorted(self.starts, which, side="right") - 1
            for i, part in enumerate(self.parts):
                mine = owner == i
                taken[mine] = _dense(part[which[mine] - self.starts[i]])
        return torch.from_numpy(np.ascontiguousarray(taken)).to(self.device)


def _dense(rows: Any) -> NDArray[np.float32]:
    array = rows.toarray() if hasattr(rows, "toarray") else rows
    return np.asarray(array, dtype=np.float32)
