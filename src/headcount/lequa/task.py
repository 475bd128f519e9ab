"""A task on disk in compact form: each distinct item once, samples as index sets over them.

::

    T1A/task.json              what it is
    T1A/train.f32, train.y.npy items (rows of 4-byte floats; train.parquet for texts), classes
    T1A/dev.f32                items of the development samples
    T1A/dev.indptr.npy, dev.indices.npy     which items each sample holds
    T1A/dev_prevalences.txt    as in the official layout; test_prevalences.txt is the gold
    T1A/label_map.txt          names of the classes
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.files import write_json, write_text, write_whole
from headcount._core.frame import Frame
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.data.dataset import Part
from headcount.exceptions import InputError
from headcount.lequa.runs import read_run

VERSION = 1


@dataclass(frozen=True, eq=False)
class Samples:
    """Items, and the samples made of them."""

    X: Any
    bags: Bags


class Task:
    """A shared task: labelled items, development samples with prevalences, test samples.

    Open one with `open_task`, whatever form it has on disk.

    Attributes
    ----------
    name, form, size, ordinal, built
        Such as 'T1A', 'vector' or 'text', 250 items a sample, whether classes are ordered,
        whether Headcount built it.
    classes : list of str
        Names of the classes; labels are their numbers.
    train : Part
        Items and labels.
    dev, test : Samples or None
    """

    def __init__(self, folder: Path, gold: Path | None = None):
        self.folder = folder
        try:
            about = json.loads((folder / "task.json").read_text(encoding="utf-8"))
            missing = {"version", "name", "form", "size", "ordinal", "classes", "columns"} - {
                *about
            }
        except (ValueError, TypeError):
            about, missing = {}, {"everything"}
        if missing:
            raise InputError(f"{str(folder / 'task.json')!r} is damaged: build the task again.")
        if about["version"] > VERSION:
            raise InputError(f"{str(folder)!r} was written by a newer Headcount; update yours.")
        self.name: str = about["name"]
        self.form: str = about["form"]
        self.size: int = about["size"]
        self.ordinal: bool = about["ordinal"]
        self.classes: list[str] = about["classes"]
        self.columns: int = about["columns"]
        self.built: bool = about.get("built", False) or about.get("seed") is not None
        self.gold = gold

    def __reduce__(self) -> tuple[Any, ...]:
        return Task, (self.folder, self.gold)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def measures(self) -> tuple[str, str]:
        """The ranking measure, then the other one."""
        return ("nmd", "ae") if self.ordinal else ("rae", "ae")

    @cached_property
    def train(self) -> Part:
        """Labelled items."""
        return Part(self._items("train"), np.load(self.folder / "train.y.npy"))

    @cached_property
    def dev(self) -> Samples | None:
        """Development samples."""
        return self._samples("dev")

    @cached_property
    def test(self) -> Samples | None:
        """Test samples; with prevalences if the gold is there."""
        return self._samples("test")

    def samples(self, split: str) -> Samples:
        """Samples of a split, or an error that says they are not there."""
        found = self.dev if split == "dev" else self.test
        if found is None:
            raise InputError(f"{self.name} has no {split} samples.")
        return found

    def truth(self, split: str) -> Floats | None:
        """True prevalences of a split, if they are known."""
        path = self.folder / f"{split}_prevalences.txt"
        if split == "test" and self.gold is not None:
            path = self.gold
        return read_run(path, self.n_classes) if path.is_file() else None

    def _items(self, split: str) -> Any:
        if self.form == "text":
            import pyarrow.parquet as pq

            return pq.read_table(self.folder / f"{split}.parquet")["text"].to_numpy()
        path = self.folder / f"{split}.f32"
        if not path.is_file() or path.stat().st_size < 4 * self.columns:
            raise InputError(f"{self.name} has no {split} items: {path.name} is missing or empty.")
        rows = path.stat().st_size // (4 * self.columns)
        return np.memmap(path, dtype=np.float32, mode="r", shape=(rows, self.columns))

    def _samples(self, split: str) -> Samples | None:
        if not (self.folder / f"{split}.indptr.npy").is_file():
            return None
        X = self._items(split)
        truth = self.truth(split)
        try:
            indptr = np.load(self.folder / f"{split}.indptr.npy")
            indices = np.load(self.folder / f"{split}.indices.npy")
        except (OSError, ValueError) as error:
            raise InputError(f"the {split} samples of {self.name} are damaged: {error}") from None
        if truth is not None and len(truth) != len(indptr) - 1:
            raise InputError(
                f"{self.name} has {len(indptr) - 1} {split} samples, and there are prevalences of "
                f"{len(truth)}."
            )
        bags = Bags(
            indptr,
            indices,
            len(X),
            prevalence=truth,
            classes=None if truth is None else np.arange(self.n_classes),
        )
        return Samples(X, bags)

    def __repr__(self) -> str:
        parts = [f"{len(self.train.y):,} labelled items"]
        for split in ("dev", "test"):
            samples = self.dev if split == "dev" else self.test
            if samples is not None:
                parts.append(f"{len(samples.bags):,} {split} samples")
        return f"Task({self.name!r}: {self.form}, {self.n_classes} classes, {', '.join(parts)})"


def write_task(
    folder: Path,
    *,
    name: str,
    form: str,
    size: int,
    classes: list[str],
    columns: int,
    ordinal: bool = False,
    built: bool = False,
) -> None:
    """Write what the task is; its parts are written by `write_items` and `write_bags`.

    Nothing that the test samples were drawn with may stand here: participants get this file.
    """
    about = {
        "version": VERSION,
        "name": name,
        "form": form,
        "size": size,
        "classes": classes,
        "columns": columns,
        "ordinal": ordinal,
        "built": built,
    }
    write_label_map(folder, classes)
    write_json(folder / "task.json", about)


def write_label_map(folder: Path, classes: list[str]) -> None:
    """Write the classes as the official reader expects them: one word and a code on a line."""
    words: list[str] = []
    for name in classes:
        word = "_".join(name.split())
        while word in words:
            word += "_"
        words.append(word)
    rows = "\n".join(f"{word} {code}" for code, word in enumerate(words))
    write_text(folder / "label_map.txt", rows + "\n")


def write_items(folder: Path, split: str, X: Any, y: Ints | None = None) -> None:
    """Write the items of a split, and their labels if they are training items."""
    folder.mkdir(parents=True, exist_ok=True)
    if X.dtype.kind == "f":
        data = np.ascontiguousarray(X, dtype="<f4")
        write_whole(folder / f"{split}.f32", data.tofile)
    else:
        from headcount._core.files import write_parquet

        write_parquet(folder / f"{split}.parquet", Frame({"text": X}))
    if y is not None:
        save_array(folder / f"{split}.y.npy", y)


def write_bags(folder: Path, split: str, bags: Bags) -> None:
    """Write which items each sample holds."""
    save_array(folder / f"{split}.indptr.npy", bags.indptr)
    save_array(folder / f"{split}.indices.npy", bags.indices)


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array, whole or not at all."""

    def write(beside: Path) -> None:
        with beside.open("wb") as file:
            np.save(file, array)

    write_whole(path, write)
