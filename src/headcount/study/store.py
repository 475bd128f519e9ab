"""The folder of a study: outcomes of units under checksums, and who is working on them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from headcount._core.files import read_parquet, write_parquet
from headcount._core.frame import Frame
from headcount.exceptions import InputError

log = logging.getLogger(__name__)


class Units:
    """Outcomes of units of work, one file each.

    A file is called by the unit's id and the checksum of its bytes, so that it is whole, under
    its right name, or not there.
    """

    def __init__(self, home: Path):
        self.folder = home / "units"

    def find(self) -> tuple[dict[str, Path], list[Path]]:
        """Files of the units that are done, by id; and those that are damaged."""
        done, damaged = {}, []
        for path in sorted(self.folder.glob("*.parquet")):
            unit, _, expected = path.stem.partition(".")
            if expected and checksum(path) == expected:
                done[unit] = path
            else:
                damaged.append(path)
        return done, damaged

    def clean(self) -> dict[str, Path]:
        """Files of the units that are done; what is damaged or half written is removed."""
        for path in self.folder.glob(".*.part"):
            path.unlink(missing_ok=True)
        done, damaged = self.find()
        for path in damaged:
            log.warning("%s is damaged: its unit is done again.", path)
            path.unlink(missing_ok=True)
        return done

    def write(self, unit: str, frame: Frame) -> Path:
        """Keep the outcome of a unit."""
        beside = self.folder / f".{unit}.{os.getpid()}.part"
        write_parquet(beside, frame)
        path = self.folder / f"{unit}.{checksum(beside)}.parquet"
        os.replace(beside, path)
        return path

    def read(self, path: Path) -> Frame:
        """Outcome of a unit, checked again: it may have been damaged since."""
        if checksum(path) != path.stem.partition(".")[2]:
            raise InputError(f"{str(path)!r} is damaged: run the study again.")
        return read_parquet(path)


def checksum(path: Path) -> str:
    """First 16 digits of the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


@contextlib.contextmanager
def working_on(home: Path) -> Iterator[None]:
    """Hold the folder for this process; wait while another one works on it.

    The hold is the system's lock on a file, so that it ends with the process, however that ends.
    """
    home.mkdir(parents=True, exist_ok=True)
    with (home / ".lock").open("a+") as file:
        _hold(file, home)
        file.seek(0)
        file.truncate()
        json.dump({"process": os.getpid(), "machine": socket.gethostname()}, file)
        file.flush()
        yield
        file.seek(0)
        file.truncate()


def _hold(file: IO[str], home: Path) -> None:
    fcntl = _fcntl()
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        log.warning("%s is working on %s: waiting for it.", worker(home) or "another", home)
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:  # a file system without locks: go on as if alone
        log.info("%s cannot be locked.", home)


def worker(home: Path) -> str:
    """Who is working on a folder, in words; '' if nobody is."""
    path, fcntl = home / ".lock", _fcntl()
    if fcntl is None or not path.is_file():
        return ""
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return ""
        except BlockingIOError:
            text = file.read()
        except OSError:
            return ""
    try:
        about = json.loads(text)
        return f"process {about['process']} on {about['machine']}"
    except (ValueError, KeyError, TypeError):
        return "another process"


def _fcntl() -> Any:
    """The module of file locks; None where the system has none."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl
