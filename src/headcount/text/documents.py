"""Documents as a list of strings; what is none is refused with its row."""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount.exceptions import InputError


def documents(texts: Any) -> list[str]:
    """Texts of any sequence or column; empty ones are fine, missing and other things are not."""
    if isinstance(texts, str):
        raise InputError("a list of documents is expected, got one string: wrap it in a list.")
    if isinstance(texts, np.ndarray) and texts.ndim == 2 and texts.shape[1] == 1:
        texts = texts[:, 0]
    if getattr(texts, "ndim", 1) != 1:
        raise InputError(
            f"documents must be one column of strings, got shape {np.shape(texts)}. "
            "Pick the column of texts."
        )
    found = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    for row, text in enumerate(found):
        if not isinstance(text, str):
            raise InputError(
                f"document {row} is {_name(text)}, and a string is expected. Drop such rows, or "
                "turn them into texts first."
            )
    return found


def _name(value: Any) -> str:
    missing = value is None or (isinstance(value, float) and np.isnan(value))
    return "missing" if missing else f"of type {type(value).__name__}"


def some(texts: Any) -> list[str]:
    """Documents, at least one."""
    found = documents(texts)
    if not found:
        raise InputError("there are no documents (0 sample(s)).")
    return found
