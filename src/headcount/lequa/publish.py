"""Write a task in the official layout of LeQua, and zip it as the lab ships it."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.files import write_whole
from headcount.lequa.runs import write_run
from headcount.lequa.task import Task, write_label_map


def write_official(task: Task, folder: Path) -> None:
    """Write a task in the official layout, below ``public``; the gold is not part of it.

    The folder is there when all of it is: half of the samples would look like a task of its own.
    """
    beside = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(beside, ignore_errors=True)
    _write_public(task, beside / "public")
    os.replace(beside, folder)


def _write_public(task: Task, public: Path) -> None:
    lines = _item_lines(task, "train", task.train.y)
    names = ["text"] if task.form == "text" else [str(i) for i in range(task.columns)]
    header = ",".join(names)
    data = f"label,{header}\n".encode() + b"".join(lines)
    write_whole(public / "training_data.txt", lambda beside: beside.write_bytes(data))
    write_label_map(public, task.classes)
    for split in ("dev", "test"):
        samples = task.dev if split == "dev" else task.test
        if samples is None:
            continue
        lines = _item_lines(task, split)
        home = public / f"{split}_samples"
        home.mkdir(parents=True, exist_ok=True)
        for i, items in enumerate(samples.bags):
            body = b"".join([lines[j] for j in items.tolist()])
            (home / f"{i}.txt").write_bytes(f"{header}\n".encode() + body)
        flat = np.full((len(samples.bags), task.n_classes), 1 / task.n_classes)
        write_run(public / f"dummy_{split}_predictions.txt", flat)
    truth = task.truth("dev")
    if truth is not None:
        write_run(public / "dev_prevalences.txt", truth)


def zip_task(folder: Path, name: str, gold: Path | None) -> list[Path]:
    """Zip files as the lab ships them: training and dev, test, gold; the same bytes each time."""
    public = folder / "public"
    tests = ("test_samples", "dummy_test_predictions.txt")
    parts: dict[str, list[Path]] = {"train_dev": [], "test": []}
    for path in sorted(public.rglob("*.txt")):
        first = path.relative_to(public).parts[0]
        parts["test" if first in tests else "train_dev"].append(path)
    made = []
    for part, paths in parts.items():
        members = {f"{name}/public/{p.relative_to(public).as_posix()}": p for p in paths}
        made.append(_zip(folder.parent / f"{name}.{part}.zip", members))
    if gold is not None:
        members = {f"{name}/public/test_prevalences.txt": gold}
        made.append(_zip(gold.parent / f"{name}.test_prevalences.zip", members))
    return made


def _zip(path: Path, members: dict[str, Path]) -> Path:
    def write(beside: Path) -> None:
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, file in members.items():
                info = zipfile.ZipInfo(name)  # no time of day: the same bytes each time
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, file.read_bytes(), compresslevel=1)

    write_whole(path, write)
    return path


def _item_lines(task: Task, split: str, labels: Any = None) -> list[bytes]:
    """One line of text for each item of a split: each is formatted once, however often drawn."""
    X = task.train.X if split == "train" else task.samples(split).X
    if task.form == "text":
        lines = []
        for text in X.tolist():
            quoted = '"' + text.replace('"', '""') + '"'
            lines.append(f"{quoted}\n".encode())
    else:
        lines = _number_lines(np.asarray(X))
    if labels is None:
        return lines
    return [f"{y},".encode() + line for y, line in zip(labels.tolist(), lines, strict=True)]


def _number_lines(X: NDArray[np.float32]) -> list[bytes]:
    """Numbers with as many digits as tell them from their neighbours, so that they read back."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    table = pa.table({str(j): np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])})
    out = io.BytesIO()
    arrow.write_csv(table, out, arrow.WriteOptions(include_header=False))
    return out.getvalue().splitlines(keepends=True)
