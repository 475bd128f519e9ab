"""Find the line of a TOML file that a key stands on."""

from __future__ import annotations

import re
from typing import Any

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(
    r"""^\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*="""
)
_NAME = re.compile(r""""([^"]*)"|'([^']*)'|([\w-]+)""")
_STRING = re.compile(r""""(?:\\.|[^"\\])*"|'[^']*'|#.*$""")


class Lines:
    r"""Line numbers by key, for TOML as people write it.

    Examples
    --------
    >>> lines = Lines('name = "x"\n[[methods]]\nquantifier = "CC"\n[[methods]]\ngrid.C = [1]')
    >>> lines.of(("name",)), lines.of(("methods", 1, "grid", "C")), lines.of(("methods", 0))
    (1, 5, 2)
    """

    def __init__(self, text: str):
        self._found: dict[tuple[Any, ...], int] = {}
        table: tuple[Any, ...] = ()
        counts: dict[tuple[Any, ...], int] = {}
        depth = 0
        for number, line in enumerate(text.splitlines(), 1):
            if depth == 0 and (header := _HEADER.match(line)):
                table = self._resolved(_names(header[2]), counts)
                if header[1] == "[[":
                    counts[table] = counts.get(table, -1) + 1
                    table = (*table, counts[table])
                self._found.setdefault(table, number)
                continue
            if depth == 0 and (key := _KEY.match(line)):
                self._found.setdefault((*table, *_names(key[1])), number)
            bare = _STRING.sub("", line)
            depth += sum(bare.count(c) for c in "[{") - sum(bare.count(c) for c in "]}")

    @staticmethod
    def _resolved(names: tuple[str, ...], counts: dict[tuple[Any, ...], int]) -> tuple[Any, ...]:
        """Path of a table; below an array of tables it belongs to the last of them."""
        path: tuple[Any, ...] = ()
        for i, name in enumerate(names):
            path = (*path, name)
            if path in counts and i < len(names) - 1:
                path = (*path, counts[path])
        return path

    def of(self, key: tuple[Any, ...]) -> int | None:
        """Line of a key, or of the nearest table above it that stands in the file."""
        for end in range(len(key), 0, -1):
            if key[:end] in self._found:
                return self._found[key[:end]]
        return None


def _names(dotted: str) -> tuple[str, ...]:
    return tuple(next(filter(None, found), "") for found in _NAME.findall(dotted))
