"""Open a task, whatever form it has on disk."""

from __future__ import annotations

from pathlib import Path

from headcount.exceptions import InputError
from headcount.lequa.official import compacted
from headcount.lequa.task import Task


def open_task(path: str | Path, gold: str | Path | None = None) -> Task:
    """Open a task: compact, official layout in a folder, or official zip files.

    The official layouts are converted to the compact form once, beside the data, and again when
    a file has changed.

    Parameters
    ----------
    path : folder or zip file
        The task's folder (with or without ``public``), a folder that holds its zip files, or the
        zip of its training and development data.
    gold : file, optional
        True prevalences of the test samples, if they are not in the task's folder.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"there is no task at {str(path)!r}.")
    inside = sorted(p.parent.name for p in path.glob("[!.]*/task.json")) if path.is_dir() else []
    if inside and not (path / "task.json").is_file():
        raise InputError(f"{str(path)!r} holds several things: open one of {', '.join(inside)}.")
    folder = path if (path / "task.json").is_file() else compacted(path)
    return Task(folder, _gold(path, gold))


def _gold(path: Path, gold: str | Path | None) -> Path | None:
    if gold is not None:
        given = Path(gold)
        if not given.is_file():
            raise InputError(f"there is no file {str(given)!r}.")
        return given
    beside = path.parent / "gold" / path.name / "test_prevalences.txt"
    return beside if beside.is_file() else None
