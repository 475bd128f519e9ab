"""Try something that may fail, and keep the reason: one bad candidate must not end a search."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def attempt(work: Callable[[], Result]) -> tuple[Result | None, str]:
    """What `work` gives, in silence, and why it gave nothing (empty if it did).

    Examples
    --------
    >>> attempt(lambda: 1 / 2)
    (0.5, '')
    >>> attempt(lambda: 1 / 0)
    (None, 'ZeroDivisionError: division by zero')
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work(), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
