"""A progress bar for the terminal; without one the same loop runs in silence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")


def track(items: Iterable[Item], what: str, total: int, show: bool) -> Iterator[Item]:
    """Yield the items, and draw a bar on standard error while they are worked on."""
    if not show or total == 0:
        yield from items
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=total)
        for item in items:
            yield item
            progress.advance(task)


@contextmanager
def follow(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """Give a function to call with the bytes that were read; a terminal sees them as a bar."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=total)
        yield lambda n: progress.advance(task, n)


@contextmanager
def announce(show: bool) -> Iterator[Callable[[str], None]]:
    """Give a function that says on standard error what is being done, in one line that changes."""
    if not show:
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield status.update
