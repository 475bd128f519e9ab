"""Download the official archives of LeQua from Zenodo: checked, resumed, never half there."""

from __future__ import annotations

import hashlib
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headcount.exceptions import HeadcountError, InputError, choose
from headcount.lequa.tasks import SPECS

RECORDS = {"2022": "6546188", "2024": "11661820"}
SERVER = "https://zenodo.org"
BYTES_PER_READ = 1 << 20


@dataclass(frozen=True)
class Remote:
    """A file of a record."""

    name: str
    size: int
    checksum: str  # such as md5:0123...
    address: str


def files_of(edition: str, server: str = SERVER) -> list[Remote]:
    """Files of an edition's record, with sizes and checksums."""
    record = RECORDS[choose("edition", edition, RECORDS)]
    address = f"{server}/api/records/{record}"
    try:
        with urllib.request.urlopen(address, timeout=20) as answer:
            about = json.load(answer)
        return [
            Remote(f["key"], int(f["size"]), f["checksum"], f["links"]["self"])
            for f in about["files"]
        ]
    except (OSError, urllib.error.URLError) as error:
        raise HeadcountError(
            f"{server} cannot be reached ({error}). Where there is no network, copy the files of "
            f"Zenodo record {record} by hand and point the other commands at their folder."
        ) from None
    except (KeyError, ValueError, TypeError) as error:
        raise HeadcountError(f"the record at {address} cannot be read: {error!r}.") from None


def fetch(
    edition: str,
    folder: str | Path,
    *,
    only: list[str] | None = None,
    server: str = SERVER,
    tell: Callable[[str], None] = print,
) -> list[Path]:
    """Download an edition's files; those that are there and whole are left alone.

    Parameters
    ----------
    edition : '2022' or '2024'
    folder : path
    only : list of str, optional
        Tasks, such as ['T1A']; all by default.
    server : str
        Where the record is.
    tell : callable
        Gets a line for each file.
    """
    home = Path(folder)
    choose("edition", edition, RECORDS)
    known = [spec.name for spec in SPECS.values() if str(spec.year) == edition]
    for name in only or []:
        choose("task", name, known)
    home.mkdir(parents=True, exist_ok=True)
    wanted = files_of(edition, server)
    if only:
        wanted = [remote for remote in wanted if remote.name.split(".")[0] in only]
    paths = []
    for remote in wanted:
        path = home / Path(remote.name).name
        if path.is_file() and path.stat().st_size == remote.size and _right(path, remote):
            tell(f"{path.name}: here already")
        else:
            _download(remote, path, tell)
        paths.append(path)
    return paths


def _download(remote: Remote, path: Path, tell: Callable[[str], None]) -> None:
    """Get a file, going on where an earlier try stopped; wrong bytes are thrown away."""
    beside = path.with_name(f"{path.name}.part")
    done = beside.stat().st_size if beside.is_file() else 0
    if done >= remote.size:
        done = 0
    request = urllib.request.Request(remote.address)
    if done:
        request.add_header("Range", f"bytes={done}-")
    tell(f"{path.name}: {remote.size:,} bytes" + (f", from {done:,} on" if done else ""))
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            resumed = answer.status == 206
            with beside.open("ab" if resumed else "wb") as file:
                while block := answer.read(BYTES_PER_READ):
                    file.write(block)
    except (OSError, urllib.error.URLError) as error:
        raise HeadcountError(
            f"{path.name}: the download stopped ({error}). Run the command again: it goes on "
            "where it stopped."
        ) from None
    size = beside.stat().st_size
    if size < remote.size:
        raise HeadcountError(
            f"{path.name}: {size:,} of {remote.size:,} bytes came. Run the command again: it goes "
            "on where it stopped."
        )
    if size != remote.size or not _right(beside, remote):
        beside.unlink()
        raise HeadcountError(f"{path.name}: the checksum is wrong; the file was thrown away.")
    beside.replace(path)


def _right(path: Path, remote: Remote) -> bool:
    kind, _, expected = remote.checksum.partition(":")
    if kind not in hashlib.algorithms_available:
        raise InputError(f"{remote.name}: unknown kind of checksum {kind!r}.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest() == expected
