"""A compact form of large sources, kept on disk: an index that is read whole, texts by need."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from headcount._core.files import read_json, write_json
from headcount._core.types import Ints
from headcount.data.timed import DUPLICATES, TimedItems, repeated
from headcount.exceptions import InputError, choose

VERSION = 1  # of the form on disk
GROUP = 1 << 16  # texts that are read at once
INDEX = {"day": np.int32, "label": np.int16, "part": np.int32, "test": np.bool_, "key": np.int64}


class Keeper:
    """Takes items a part at a time and writes their compact form.

    Texts go to disk as they come; of every item only a few bytes stay in memory.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.counts: dict[str, int] = {}
        self.n_items = 0
        self._names: dict[str, dict[str, int]] = {"label": {}, "part": {}}
        self._index: dict[str, list[NDArray[Any]]] = {name: [] for name in INDEX}
        self._schema = pa.schema([("text", pa.string())])
        self._texts = pq.ParquetWriter(folder / "texts.parquet", self._schema, compression="zstd")

    def add(
        self, texts: Any, days: Ints, labels: Any, parts: Any, test: Any, keys: NDArray[Any]
    ) -> None:
        """Add items.

        Parameters
        ----------
        texts, labels, parts : columns of texts: what is read, its class, its sub-category
        days : since 1970
        test : whether each may be tested on
        keys : numbers that are equal for the same item
        """
        if not len(texts):
            return
        self.n_items += len(texts)
        table = pa.table({"text": texts}, schema=self._schema)
        self._texts.write_table(table, row_group_size=GROUP)
        columns = {
            "day": days,
            "label": self._numbers("label", labels),
            "part": self._numbers("part", parts),
            "test": test,
            "key": keys,
        }
        for name, values in columns.items():
            self._index[name].append(np.asarray(values).astype(INDEX[name]))

    def close(self) -> None:
        """Write the index and what was counted."""
        self._texts.close()
        columns = {
            name: np.concatenate(parts) if parts else np.empty(0, dtype=INDEX[name])
            for name, parts in self._index.items()
        }
        columns["again"] = repeated(columns.pop("key"))
        pq.write_table(pa.table(columns), self.folder / "index.parquet", compression="zstd")
        names = {kind: list(found) for kind, found in self._names.items()}
        write_json(self.folder / "about.json", {"counts": self.counts, **names})

    def _numbers(self, kind: str, column: Any) -> Ints:
        known = self._names[kind]
        encoded = pa.array(column, pa.string()).dictionary_encode()
        own = [known.setdefault(v, len(known)) for v in encoded.dictionary.to_pylist()]
        numbers = encoded.indices.to_numpy(zero_copy_only=False)
        return np.asarray(np.array(own, dtype=np.int64)[numbers])


def read_kept(
    files: Sequence[Path],
    kind: str,
    read: Callable[[Keeper], None],
    *,
    expected: str,
    keep: Path | None = None,
    duplicates: str = "keep",
) -> TimedItems:
    """Items of some files from their compact form, which is made first where it is not there.

    Parameters
    ----------
    files : the sources; another size or time of change makes a new form
    kind : name of the reader
    read : function that reads the sources into a `Keeper`
    expected : what the files should be, for who gives others
    keep : folder of compact forms; by default ``$HEADCOUNT_CACHE``, or ``~/.cache/headcount``
    duplicates : {'keep', 'drop'}
    """
    choose("duplicates", duplicates, DUPLICATES)
    home = keep or Path(os.environ.get("HEADCOUNT_CACHE", "~/.cache/headcount")).expanduser()
    folder = home / f"{kind}-{_mark(files, kind)}"
    if not (folder / "about.json").is_file():
        try:
            _make(folder, read)
        except InputError as error:
            raise InputError(f"{files[0].name}: {error} It should be {expected}") from None
    return _open(folder, duplicates)


def _make(folder: Path, read: Callable[[Keeper], None]) -> None:
    """Fill a folder beside it, then put it in place in one step."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".part-") as beside:
        made = Path(beside) / "made"
        made.mkdir()
        keeper = Keeper(made)
        read(keeper)
        keeper.close()
        if not keeper.n_items:
            raise InputError(f"no row can be used: {keeper.counts or 'there is none'}.")
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(made, folder)


def _open(folder: Path, duplicates: str) -> TimedItems:
    about = read_json(folder / "about.json")
    index = pq.read_table(folder / "index.parquet")
    column = {name: index[name].to_numpy() for name in index.column_names}
    items = TimedItems(
        column["day"].astype(np.int64),
        column["label"].astype(np.int64),
        about["label"],
        _KeptTexts(folder / "texts.parquet"),
        column["part"].astype(np.int64) if len(about["part"]) > 1 else None,
        [name or "" for name in about["part"]],
        None if column["test"].all() else column["test"],
        about["counts"],
    )
    return items.without_repeats(column["again"], duplicates)


class _KeptTexts:
    """Texts by the numbers of items, in ascending order; only the parts that hold them are read."""

    def __init__(self, path: Path):
        self.path = path

    def __call__(self, rows: Ints) -> NDArray[Any]:
        found = []
        with pq.ParquetFile(self.path) as file:
            sizes = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
            ends = np.cumsum(sizes)
            group = np.searchsorted(ends, rows, side="right")
            for g in np.unique(group).tolist():
                wanted = rows[group == g] - (ends[g] - sizes[g])
                part = file.read_row_group(g, columns=["text"])["text"].combine_chunks()
                found.append(part.take(pa.array(wanted)).to_numpy(zero_copy_only=False))
        return np.concatenate(found) if found else np.empty(0, dtype=object)


def _mark(files: Sequence[Path], kind: str) -> str:
    """What tells these files from others, without reading them."""
    about = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in files]
    return hashlib.sha256(repr((VERSION, kind, about)).encode()).hexdigest()[:16]
