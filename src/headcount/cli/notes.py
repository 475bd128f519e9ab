"""Notes and warnings about tables on the screen, with the options that have to do with them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING

import typer

from headcount.exceptions import UnreliableWarning

if TYPE_CHECKING:
    from headcount.tables import Count, Note


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Warnings about what cannot be relied on, in the words and the place of notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnreliableWarning)
        try:
            yield
        finally:
            told = [w.message for w in caught if issubclass(w.category, UnreliableWarning)]
            for text in dict.fromkeys(map(str, told)):
                show_note(text)


def show_note(note: Note | str) -> None:
    """A note, with the option that has to do with it."""
    typer.echo(f"note: {note}{'' if isinstance(note, str) else _hint(note)}", err=True)


def _hint(note: Note) -> str:
    options = {
        "truth is there": f" (--truth {note.subject})",
        "groups at fitting": f" (headcount fit --by {note.subject})",
        "no date": " (--date-format)",
    }
    return options.get(note.kind, "")


def show_remarks(found: Count) -> None:
    """Notes, and the warnings of groups, with the options that have to do with them."""
    hints = [_hint(note) for note in found.notes]
    for line, hint in zip_longest(found.remarks(), hints, fillvalue=""):
        typer.echo(line + hint, err=True)
