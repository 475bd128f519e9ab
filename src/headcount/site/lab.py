"""The lab's tasks on disk: what they are, and the archives that participants download."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from headcount._core.files import write_text, write_whole
from headcount.exceptions import HeadcountError, InputError
from headcount.lequa.opening import open_task
from headcount.lequa.task import Task

# Only these leave the server: a new kind of file is not public until it is named here.
PUBLIC = {
    "train_dev": re.compile(
        r"task\.json|label_map\.txt|train\.(f32|parquet|y\.npy|indptr\.npy|indices\.npy)|"
        r"training_prevalences\.txt|dev\.(f32|parquet|indptr\.npy|indices\.npy)|"
        r"dev_prevalences\.txt|dummy_dev_predictions\.txt"
    ),
    "test": re.compile(r"test\.(f32|parquet|indptr\.npy|indices\.npy)|dummy_test_predictions\.txt"),
}
SECRET_KEYS = ("seed", "entropy")  # of task.json: who has the corpus could draw the gold again


@dataclass(frozen=True)
class Archive:
    """A file that participants download."""

    name: str
    part: str  # train_dev, test
    path: Path
    size: int
    sha256: str


@dataclass(frozen=True, eq=False)
class LabTask:
    """A task of the lab, open."""

    name: str
    task: Task
    counts: dict[str, int]  # samples of each split
    archives: tuple[Archive, ...]

    @property
    def measures(self) -> tuple[str, ...]:
        """Measures of the board, the one that ranks first."""
        return ("nmd", "macro-nmd") if self.task.ordinal else ("rae", "ae")

    @property
    def kind(self) -> str:
        """What it is, in a few words."""
        classes = "binary" if self.task.n_classes == 2 else f"{self.task.n_classes} classes"
        return f"{self.task.form}, {'ordinal, ' if self.task.ordinal else ''}{classes}"


def open_lab(folder: Path, data: Path) -> dict[str, LabTask]:
    """Open every task of a lab and pack what participants download; every fault at once."""
    folders = sorted(
        path
        for path in (folder.iterdir() if folder.is_dir() else [])
        if path.is_dir()
        and not path.name.startswith(".")
        and path.name != "gold"
        and ((path / "task.json").is_file() or (path / "public").is_dir())
    )
    if not folders:
        raise InputError(
            f"there is no task in {str(folder)!r}: make one by `headcount lequa build`."
        )
    found, faults = {}, []
    for path in folders:
        try:
            found[path.name] = _open(path, data / "downloads")
        except HeadcountError as error:
            faults.append(f"{path.name}: {error}")
    if faults:
        raise InputError("\n".join(["the lab cannot be served:", *faults]))
    return found


def _open(path: Path, downloads: Path) -> LabTask:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", path.name):
        raise InputError("a task's folder has a name of letters, digits, '.', '_' and '-'.")
    task = open_task(path)
    counts = {}
    for split in ("dev", "test"):
        samples = task.dev if split == "dev" else task.test
        if samples is None:
            continue
        if task.truth(split) is None:
            raise InputError(
                f"the truth about the {split} samples is missing; it is expected at "
                f"gold/{path.name}/test_prevalences.txt."
            )
        counts[split] = len(samples.bags)
    if not counts:
        raise InputError("there are neither dev nor test samples.")
    archives = tuple(
        archive
        for part in PUBLIC
        if (archive := _pack(task, path.name, part, downloads)) is not None
    )
    return LabTask(path.name, task, counts, archives)


def _pack(task: Task, name: str, part: str, downloads: Path) -> Archive | None:
    """Zip the public files of a part, unless that was done for these very files."""
    files = [
        path
        for path in sorted(task.folder.iterdir())
        if path.is_file() and not path.is_symlink() and PUBLIC[part].fullmatch(path.name)
    ]
    if not files:
        return None
    target = downloads / f"{name}.{part}.zip"
    stamp = downloads / f".{target.name}.json"
    state = {p.name: [p.stat().st_size, p.stat().st_mtime_ns] for p in files}
    known = json.loads(stamp.read_text()) if stamp.is_file() else {}
    if known.get("files") != state or not target.is_file():
        write_whole(target, lambda beside: _zip(beside, name, files))
        known = {"files": state, "sha256": hash_file(target)}
        write_text(stamp, json.dumps(known))
    return Archive(target.name, part, target, target.stat().st_size, known["sha256"])


def _zip(target: Path, name: str, files: list[Path]) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in files:
            info = zipfile.ZipInfo(f"{name}/{path.name}")  # no time of day: the same bytes
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=True) as member:
                if path.name == "task.json":
                    about = json.loads(path.read_text(encoding="utf-8"))
                    kept = {k: v for k, v in about.items() if k not in SECRET_KEYS}
                    member.write((json.dumps(kept, indent=1, sort_keys=True) + "\n").encode())
                    continue
                with path.open("rb") as file:
                    while chunk := file.read(1 << 20):
                        member.write(chunk)


def hash_file(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
