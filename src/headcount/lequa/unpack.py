"""Text of a file that someone sent: plain, gzip, bzip2, xz or zip, never more than a set size."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, Any

from headcount.exceptions import InputError

Source = str | Path | bytes | IO[bytes]
MAX_RUN_BYTES = 1 << 26  # unpacked: 64 MiB, twenty times the largest run of LeQua
_OPENERS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError)


def source_name(source: Source) -> str:
    """Name of a file for messages."""
    if isinstance(source, (str, Path)):
        return Path(source).name
    return Path(str(getattr(source, "name", "run"))).name


def read_source(source: Source, most: int = MAX_RUN_BYTES) -> tuple[bytes, str]:
    """Bytes of the text in a file, and what keeps it from being read ('' if nothing does).

    An archive is unpacked only up to `most` bytes, whatever its directory says, so that one which
    unpacks to gigabytes costs no memory.
    """
    data = _read(source, most)
    if len(data) > most:
        return b"", _too_large(most)
    try:
        if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            return _from_zip(data, most)
        for magic, opener in _OPENERS.items():
            if data.startswith(magic):
                with opener(io.BytesIO(data)) as packed:
                    return _bounded(packed, most)
    except _BROKEN as error:
        return b"", f"the archive is damaged, or of a kind that is not read: {error}."
    except RuntimeError:  # what zipfile raises for a password
        return b"", "the archive is encrypted: send it without a password."
    return data, ""


def _read(source: Source, most: int) -> bytes:
    if isinstance(source, bytes):
        return source
    if not isinstance(source, (str, Path)):
        return source.read(most + 1)
    path = Path(source)
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}.")
    with path.open("rb") as file:
        return file.read(most + 1)


def _from_zip(data: bytes, most: int) -> tuple[bytes, str]:
    """The only file in a zip; folders and what macOS and Windows add do not count."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [info for info in archive.infolist() if not _is_clutter(info)]
        if len(members) != 1:
            names = ", ".join(info.filename for info in members[:5])
            return b"", (
                f"the zip holds {len(members)} files ({names}), and one run is expected: "
                "pack only answer.csv."
                if members
                else "the zip holds no file: pack answer.csv."
            )
        if members[0].file_size > most:
            return b"", _too_large(most)
        with archive.open(members[0]) as packed:
            return _bounded(packed, most)


def _is_clutter(info: zipfile.ZipInfo) -> bool:
    path = PurePosixPath(info.filename)
    hidden = path.name.startswith(".") or path.name in ("Thumbs.db", "desktop.ini")
    return info.is_dir() or "__MACOSX" in path.parts or hidden


def _bounded(packed: IO[bytes], most: int) -> tuple[bytes, str]:
    data = packed.read(most + 1)
    return (b"", _too_large(most)) if len(data) > most else (data, "")


def _too_large(most: int) -> str:
    return f"the file is larger than {most >> 20} MiB (unpacked), which no run is."
