"""Public names, listed once: in the stub of a package, which type checkers read as well.

A package whose ``__init__.py`` calls `attach` loads a name when it is first used. Its stub
``__init__.pyi`` says where each name lives; ``from headcount.methods import *`` in a stub takes
over the names of that package.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


@cache
def homes(package: str) -> dict[str, str]:
    """Module of every public name of a package.

    Examples
    --------
    >>> homes("headcount.methods")["PACC"]
    'headcount.methods.adjusting'
    """
    stub = ROOT.joinpath(*package.split(".")[1:], "__init__.pyi")
    found: dict[str, str] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        for alias in node.names:
            if alias.name == "*":
                # A single letter is too short a name for the top.
                found |= {n: m for n, m in homes(node.module).items() if len(n) > 1}
            else:
                found[alias.asname or alias.name] = node.module
    return found


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package whose names load when used."""
    known, home = homes(package), ROOT.joinpath(*package.split(".")[1:])

    def load(name: str) -> Any:
        if name in known:
            return getattr(import_module(known[name]), name)
        if not name.startswith("_") and (home / name / "__init__.py").is_file():
            return import_module(f"{package}.{name}")  # a room, such as headcount.methods
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: sorted(known), sorted(known)
