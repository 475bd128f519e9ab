"""Read the official layout of LeQua, in folders and zip files, into the compact form."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.files import read_json, write_json, write_whole
from headcount._core.types import Ints
from headcount.exceptions import InputError
from headcount.lequa.duplicates import repeated_inside
from headcount.lequa.readers import TextReader, VectorReader
from headcount.lequa.runs import read_run
from headcount.lequa.task import save_array, write_items, write_task
from headcount.lequa.tasks import SPECS

log = logging.getLogger(__name__)
PARTS = {"train": "training_data.txt", "dev": "dev_samples/", "test": "test_samples/"}


class _Files:
    """Files of a task by their name below ``public``, wherever they are."""

    def __init__(self, path: Path):
        self.where: dict[str, tuple[Path, str | None]] = {}
        self.sizes: dict[str, tuple[int, int]] = {}
        self.zips: dict[Path, zipfile.ZipFile] = {}
        self.name = path.name
        if path.is_file():
            self._zips(_siblings(path))
        elif (found := sorted(path.glob("*.zip"))) and not (path / "public").is_dir():
            tasks = sorted({p.name.split(".")[0] for p in found})
            if len(tasks) > 1:
                raise InputError(
                    f"{str(path)!r} holds zip files of several tasks ({', '.join(tasks)}): give "
                    f"one of them, such as {found[0].name}."
                )
            self._zips(found)
        else:
            self._folder(path)
        if not self.where:
            raise InputError(
                f"{str(path)!r} is no LeQua task: it holds neither task.json nor public/ nor "
                "<task>.train_dev.zip."
            )

    def _folder(self, path: Path) -> None:
        root = path
        inner = [p for p in path.glob("*/public") if p.is_dir()]
        if (path / "public").is_dir():
            root = path / "public"
        elif len(inner) == 1:
            root, self.name = inner[0], inner[0].parent.name
        elif path.name == "public":
            self.name = path.parent.name
        for base, folders, names in os.walk(root):
            folders[:] = [f for f in folders if not f.startswith(".")]
            for name in names:
                file = Path(base) / name
                if name.endswith(".txt"):
                    key = file.relative_to(root).as_posix()
                    stat = file.stat()
                    self.where[key] = (file, None)
                    self.sizes[key] = (stat.st_size, stat.st_mtime_ns)

    def _zips(self, paths: list[Path]) -> None:
        for path in paths:
            try:
                archive = zipfile.ZipFile(path)
            except zipfile.BadZipFile:
                raise InputError(f"{path.name!r} is not a zip file, or cut short.") from None
            self.zips[path] = archive
            for info in archive.infolist():
                found = re.match(r"(?:(\w+)/)?public/(.+\.txt)$", info.filename)
                if found:
                    self.name = found[1] or path.name.split(".")[0]
                    self.where[found[2]] = (path, info.filename)
                    self.sizes[found[2]] = (info.file_size, info.CRC)

    def read(self, key: str) -> bytes:
        path, member = self.where[key]
        try:
            return path.read_bytes() if member is None else self.zips[path].read(member)
        except zipfile.BadZipFile as error:
            raise InputError(f"{path.name} is damaged: {error}.") from None

    def samples(self, folder: str) -> list[str]:
        """Files of a folder of samples, in order of their ids."""
        found = [k for k in self.where if k.startswith(folder) and k.count("/") == 1]
        ids = sorted(int(Path(k).stem) for k in found if Path(k).stem.isdigit())
        if ids != list(range(len(ids))):
            gap = next(i for i, n in enumerate(ids) if i != n)
            raise InputError(f"{folder}{gap}.txt is missing: ids must run from 0 without gaps.")
        return [f"{folder}{i}.txt" for i in ids]

    def stamp(self, prefix: str) -> str:
        """Hash of the names, sizes and times of a part's files."""
        files = sorted((k, *v) for k, v in self.sizes.items() if k.startswith(prefix))
        return hashlib.sha256(repr(files).encode()).hexdigest()


def compacted(path: Path) -> Path:
    """Folder with the compact form of an official task, made or renewed if need be."""
    files = _Files(path)
    home = _place(path, files.name)
    known = read_json(home / "stamps.json") or {}
    with ExitStack() as stack:
        for archive in files.zips.values():
            stack.enter_context(archive)
        classes = _classes(files)
        stamps = {part: files.stamp(prefix) for part, prefix in PARTS.items()}
        stamps["train"] += files.stamp("training_samples/")
        text = _is_text(files)
        for part in PARTS:
            if known.get(part) == stamps[part]:
                continue
            known.pop(part, None)
            write_json(home / "stamps.json", known)
            _convert(files, home, part, text, len(classes))
            known[part] = stamps[part]
            write_json(home / "stamps.json", known)
        _prevalences(files, home, len(classes))
        spec = SPECS.get(files.name)
        indptr = home / "dev.indptr.npy"
        size = int(np.diff(np.load(indptr))[0]) if indptr.is_file() else spec.size if spec else 0
        columns = 0 if text else len(_header(files)) - 1
        write_task(
            home,
            name=files.name,
            form="text" if text else "vector",
            size=size,
            classes=classes,
            columns=columns,
            ordinal=bool(spec and spec.ordinal),
        )
    return home


def _place(path: Path, name: str) -> Path:
    """Folder for the compact form: beside the data, or in the user's cache if that is read-only."""
    beside = (path if path.is_dir() else path.parent) / f".headcount-{name}"
    if _can_write(beside):
        return beside
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    key = hashlib.sha256(str(beside.resolve()).encode()).hexdigest()[:16]
    return Path(root).expanduser() / "headcount" / "lequa" / f"{name}-{key}"


def _can_write(folder: Path) -> bool:
    """Whether files can be written into a folder, which is made if need be."""
    probe = folder / f".{os.getpid()}.probe"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError:
        return False
    return True


def _siblings(path: Path) -> list[Path]:
    """Zip files of the same task in the same folder."""
    name = path.name.split(".")[0]
    return sorted({path, *path.parent.glob(f"{name}.*.zip")})


def _classes(files: _Files) -> list[str]:
    if "label_map.txt" not in files.where:
        raise InputError(f"{files.name} has no label_map.txt.")
    found: dict[int, str] = {}
    try:
        text = files.read("label_map.txt").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"label_map.txt is not UTF-8: {error}.") from None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, _, code = line.strip().replace("\t", " ").rpartition(" ")
        if not code.isdigit() or not name:
            raise InputError(f"label_map.txt, line {number}: expected 'name code', got {line!r}.")
        if int(code) in found:
            raise InputError(f"label_map.txt, line {number}: code {code} is there twice.")
        found[int(code)] = name.strip()
    if len(found) < 2:
        raise InputError(f"label_map.txt names {len(found)} classes; there must be two or more.")
    if sorted(found) != list(range(len(found))):
        raise InputError(f"label_map.txt: codes must run from 0, got {sorted(found)}.")
    return [found[i] for i in range(len(found))]


def _header(files: _Files) -> list[str]:
    """Column names of the training data."""
    key = "training_data.txt"
    if key not in files.where:
        labelled = files.samples("training_samples/")
        if not labelled:
            raise InputError(f"{files.name} has no training_data.txt.")
        key = labelled[0]
    path, member = files.where[key]
    if member is None:
        with path.open("rb") as file:
            line = file.readline(1 << 20)
    else:
        with files.zips[path].open(member) as packed:
            line = packed.readline(1 << 20)
    return [cell.strip() for cell in line.decode("utf-8-sig", "replace").split(",")]


def _is_text(files: _Files) -> bool:
    return _header(files)[1:] == ["text"]


def _convert(files: _Files, home: Path, part: str, text: bool, n_classes: int) -> None:
    """One part of the task into the compact form."""
    home.mkdir(parents=True, exist_ok=True)
    if part == "train":
        keys = ["training_data.txt"] if "training_data.txt" in files.where else []
        keys += files.samples("training_samples/")
    else:
        keys = files.samples(PARTS[part])
    if not keys:
        for stale in home.glob(f"{part}.*"):
            stale.unlink()
        return
    reader: Any = TextReader() if text else VectorReader(len(_header(files)) - 1)
    labels = reader.read(files.read, keys, home / f"{part}.f32", labelled=part == "train")
    if reader.n_items == 0:
        raise InputError(f"{keys[0]} holds no items.")
    for row, label in enumerate(labels):
        if label != int(label) or not 0 <= label < n_classes:
            raise InputError(
                f"{keys[0]}, item {row + 1}: the label {label:g} is none of the codes 0 to "
                f"{n_classes - 1} of label_map.txt."
            )
    sizes = np.diff(reader.indptr)
    if part != "train" and len(set(sizes.tolist())) > 1:
        odd = int(np.argmax(sizes != np.median(sizes)))
        raise InputError(
            f"{keys[odd]} has {sizes[odd]} items, and the other samples {int(np.median(sizes))}: "
            "is it cut short?"
        )
    if isinstance(reader, TextReader):
        write_items(home, part, np.array(reader.kept, dtype=object))
    if part == "train":
        save_array(home / "train.y.npy", np.asarray(labels, dtype=np.int64))
        return
    indptr = np.asarray(reader.indptr, dtype=np.int64)
    indices = np.asarray(reader.indices, dtype=np.int32)
    _tell_repeated(files.name, part, indptr, indices)
    save_array(home / f"{part}.indptr.npy", indptr)
    save_array(home / f"{part}.indices.npy", indices)


def _tell_repeated(name: str, part: str, indptr: Ints, indices: NDArray[Any]) -> None:
    """Say which samples hold an item more than once: their items are then not independent."""
    repeated = repeated_inside(indptr, indices)
    if repeated.any():
        log.warning(
            "%s: %d of %d %s samples hold an item more than once, first sample %d (%d repeats).",
            *(name, int((repeated > 0).sum()), len(repeated), part),
            *(int(np.argmax(repeated > 0)), int(repeated[np.argmax(repeated > 0)])),
        )


def _prevalences(files: _Files, home: Path, n_classes: int) -> None:
    """Copy the true prevalences that are public, checked."""
    for split in ("dev", "test"):
        key, path = f"{split}_prevalences.txt", home / f"{split}_prevalences.txt"
        if key not in files.where:
            path.unlink(missing_ok=True)
            continue
        data = files.read(key)
        if not path.is_file() or path.read_bytes() != data:
            beside = home / f".{key}"
            _write_bytes(beside, data)
            try:
                read_run(beside, n_classes)
            finally:
                beside.unlink()
            _write_bytes(path, data)


def _write_bytes(path: Path, data: bytes) -> None:
    write_whole(path, lambda beside: beside.write_bytes(data))
