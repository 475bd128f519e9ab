"""A small synthetic corpus to try the commands on: messages to a bicycle hire.

Messages are drawn from the grammar in ``assets/example.toml``. The words of a class are the same in
every month; the share of complaints changes.
"""

from __future__ import annotations

import random
import re
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.files import write_text
from headcount._core.frame import Frame
from headcount.exceptions import InputError

# Share of complaints by month: the new locks come in September.
COMPLAINTS = [0.09, 0.11, 0.10, 0.08, 0.12, 0.10, 0.13, 0.11, 0.31, 0.42, 0.47, 0.44, 0.41, 0.36,
              0.33, 0.29, 0.25, 0.22]  # fmt: skip
CLASSES = ("complaint", "other")
HOLE = re.compile(r"\{(\w+)\}")


def make_example(random_state: int = 0, rows: int = 500) -> tuple[Frame, Frame]:
    """Labelled messages, and all messages of eighteen months with their true labels.

    Parameters
    ----------
    random_state : int
    rows : messages of a month, about

    Examples
    --------
    >>> labelled, messages = make_example()
    >>> labelled.columns, messages.columns
    (['message', 'kind'], ['date', 'channel', 'message', 'kind'])
    """
    rng = np.random.default_rng(random_state)
    labelled = _messages(rng, 1600, 0.5)
    months = np.datetime64("2025-01") + np.arange(len(COMPLAINTS))
    parts = []
    for month, share in zip(months, COMPLAINTS, strict=True):
        n = int(rng.integers(int(0.8 * rows), int(1.2 * rows)))
        days = np.sort(rng.integers(0, 28, n)) + month.astype("datetime64[D]")
        channel = rng.choice(["app", "mail", "phone"], n, p=[0.6, 0.3, 0.1])
        parts.append({"date": days.astype(str), "channel": channel, **_messages(rng, n, share)})
    messages = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Frame(labelled), Frame(messages)


def write_example(folder: Path, random_state: int = 0) -> tuple[Path, Path]:
    """Write ``labelled.csv`` and ``messages.csv`` into a folder without overwriting files."""
    paths = folder / "labelled.csv", folder / "messages.csv"
    for path in paths:
        if path.exists():
            raise InputError(f"{path} is there already: choose another folder, or remove it.")
    folder.mkdir(parents=True, exist_ok=True)
    for path, frame in zip(paths, make_example(random_state), strict=True):
        write_text(path, frame.to_csv())
    return paths


def _messages(rng: np.random.Generator, n: int, share: float) -> dict[str, NDArray[Any]]:
    """Messages with their class; `share` is the probability of a complaint."""
    kinds = np.where(rng.random(n) < share, *CLASSES)
    draw = random.Random(int(rng.integers(2**32)))  # much faster than numpy's for single words
    return {"message": np.array([_message(draw, k) for k in kinds.tolist()]), "kind": kinds}


def _message(draw: random.Random, kind: str) -> str:
    """Two to four sentences, typical of the class, of the other, or of neither."""
    opposite = CLASSES[kind == CLASSES[0]]
    rules = draw.choices([kind, opposite, "either"], (0.55, 0.15, 0.3), k=draw.randint(2, 4))
    sentences = [_sentence(draw, rule) for rule in rules]
    return " ".join(f"{s[0].upper()}{s[1:]}." for s in sentences)


def _sentence(draw: random.Random, kind: str) -> str:
    rule = draw.choice(_grammar()["rules"][kind])
    words = _grammar()["words"]
    return HOLE.sub(lambda hole: draw.choice(words[hole[1]].split("|")), rule)


@cache
def _grammar() -> dict[str, dict[str, Any]]:
    file = resources.files("headcount.tables") / "assets" / "example.toml"
    return tomllib.loads(file.read_text("utf8"))
