"""Try work that may not suit the data, and keep the reason: one candidate must not end a search."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

# Errors by which numpy, scikit-learn and this package say that work does not suit the data.
# InputError and LinAlgError are kinds of ValueError.
DATA_ERRORS: tuple[type[Exception], ...] = (ValueError, ArithmeticError, MemoryError)


def attempt(
    work: Callable[[], Result], errors: tuple[type[Exception], ...] = DATA_ERRORS
) -> tuple[Result | None, str]:
    """Return the result of `work` and an empty text, or None and the reason of its failure.

    Warnings are silenced. Only `errors` are failures: any other exception is a bug, in `work` or
    in what it calls, and is raised.

    Examples
    --------
    >>> attempt(lambda: 1 / 2)
    (0.5, '')
    >>> attempt(lambda: 1 / 0)
    (None, 'ZeroDivisionError: division by zero')
    >>> attempt(lambda: [].pop())
    Traceback (most recent call last):
    IndexError: pop from empty list
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work(), ""
    except errors as error:
        return None, f"{type(error).__name__}: {error}"
