"""The state of a training, kept after each epoch, from which a fit that was stopped goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from headcount._core.files import write_whole
from headcount.exceptions import InputError
from headcount.neural.segments import Tensor

NAME = "training.safetensors"


def write(folder: Path, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Keep tensors and plain data in one file, whole or not at all."""
    kept = {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}
    about = {"state": json.dumps(state)}
    write_whole(folder / NAME, lambda beside: save_file(kept, beside, metadata=about))


def read(folder: Path, fingerprint: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Tensors and plain data of the training with this fingerprint; None if none was kept."""
    path = folder / NAME
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            state = json.loads(file.metadata()["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, TypeError, ValueError, OSError):
        raise InputError(f"{path} is no checkpoint of a training, or damaged: remove it.") from None
    if state.get("fingerprint") != fingerprint:
        raise InputError(
            f"{path} was kept by a fit with other data or settings: remove it, or choose another "
            "folder for checkpoint."
        )
    return tensors, state


def remove(folder: Path) -> None:
    """Remove the state of a training that is done."""
    (folder / NAME).unlink(missing_ok=True)


def optimiser_tensors(optimiser: Any) -> dict[str, Tensor]:
    """State of an Adam optimiser as named tensors."""
    state = optimiser.state_dict()["state"]
    return {
        f"optimiser.{number}.{key}": torch.as_tensor(value)
        for number, values in state.items()
        for key, value in values.items()
    }


def restore_optimiser(optimiser: Any, tensors: dict[str, Tensor]) -> None:
    """Put such tensors back."""
    whole = optimiser.state_dict()
    for name, value in tensors.items():
        if name.startswith("optimiser."):
            _, number, key = name.split(".", 2)
            whole["state"].setdefault(int(number), {})[key] = value
    optimiser.load_state_dict(whole)
