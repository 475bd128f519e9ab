"""The one register of methods: names to what makes them, for studies, commands and model files."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from headcount._core.lazy import homes
from headcount.methods.scored import ScoreQuantifier

Maker = Callable[..., Any]


@cache
def named_methods() -> dict[str, Maker]:
    """Every quantifier that can be named, and what makes one from settings.

    Examples
    --------
    >>> named_methods()["SVMQ"](C=10)
    LossSVM(C=10, loss='q')
    """
    found: dict[str, Maker] = {}
    for name, module in homes("headcount.methods").items():
        maker = getattr(import_module(module), name)
        if not inspect.isabstract(maker):
            found[name] = maker
    return found


@cache
def score_methods() -> dict[str, Maker]:
    """Those that work on scores of one classifier, and take a calibrator."""
    return {
        name: maker
        for name, maker in named_methods().items()
        if isinstance(maker, type)
        and issubclass(maker, ScoreQuantifier)
        and not hasattr(maker, "quantifiers")
    }
