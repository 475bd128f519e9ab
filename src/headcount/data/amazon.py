"""Amazon review data 2018 (Ni, Li and McAuley, 2019): JSON lines, gzip, the 5-core files.

A line is an object; ``overall`` are the stars, ``reviewText`` may be missing, ``unixReviewTime``
is midnight UTC of the day, ``reviewTime`` the same as "12 17, 2008".
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from headcount._core.calendar import DAY
from headcount._core.dates import DateReader
from headcount._core.progress import follow
from headcount.data.keep import Keeper, read_kept
from headcount.data.timed import TimedItems, add_count, has_text, hash_rows
from headcount.exceptions import InputError

HOME = "https://nijianmo.github.io/amazon/"
EXPECTED = (
    "a 5-core file of the Amazon review data of 2018, JSON lines with overall, reviewText and "
    f"unixReviewTime: see {HOME}."
)
BLOCK = 1 << 24  # bytes of text that are parsed at once
FIELDS = pa.schema(
    [
        ("overall", pa.float64()),
        ("reviewText", pa.string()),
        ("unixReviewTime", pa.int64()),
        ("reviewTime", pa.string()),
        ("reviewerID", pa.string()),
        ("asin", pa.string()),
    ]
)
FIRST_DAY, LAST_DAY = (int(np.datetime64(d, "D").astype(int)) for d in ("1996-05-01", "2018-10-31"))
STARS = ["1", "2", "3", "4", "5"]
NEGATIVE = {"1": "negative", "2": "negative"}
TAG = re.compile(r"<[a-zA-Z/!][^>]*>")


def read_reviews(
    path: str | Path, file: str, *, binary: bool, keep: Path | None, duplicates: str
) -> TimedItems:
    """Reviews of one category, by stars, or negative (1 and 2 stars) against the rest.

    Parameters
    ----------
    path : the file, or the folder that holds it
    file : its name as published, such as ``Office_Products_5.json.gz``
    binary : bool
    keep, duplicates
        As in `headcount.data.keep.read_kept`. The same text and stars of the same person for the
        same product on the same day are a duplicate.
    """
    found = _find(Path(path), file)
    items = read_kept(
        [found],
        "amazon",
        lambda k: _read(found, k),
        expected=EXPECTED,
        keep=keep,
        duplicates=duplicates,
    )
    if binary:
        items = items.renamed(lambda stars, _: NEGATIVE.get(stars, "not negative"))
    return items


def _find(path: Path, file: str) -> Path:
    for each in (path, path / file, path / file.removesuffix(".gz")):
        if each.is_file():
            return each
    raise InputError(f"there is no {file} at {str(path)!r}. It should be {EXPECTED}")


def _read(path: Path, keeper: Keeper) -> None:
    with follow(path.stat().st_size, f"reading {path.name}") as advance:
        for table, broken in _tables(path, advance):
            add_count(keeper.counts, "rows read", table.num_rows + broken)
            add_count(keeper.counts, "that are no JSON", broken)
            _take(table, keeper)


def _tables(path: Path, advance: Any) -> Iterator[tuple[Any, int]]:
    """Parts of the file, and the number of lines in each that cannot be read."""
    with path.open("rb") as raw:
        stream: Any = pa.PythonFile(raw, mode="r")
        if path.suffix == ".gz":
            stream = pa.CompressedInputStream(stream, "gzip")
        rest, before = b"", 0
        while True:
            try:
                block = stream.read(BLOCK)
            except OSError as error:
                raise InputError(f"{path.name} cannot be read to its end: {error}") from None
            whole, _, rest = (rest + block).rpartition(b"\n") if block else (rest, b"", b"")
            if whole.strip():
                yield _parse(whole)
            advance(raw.tell() - before)
            before = raw.tell()
            if not block:
                return


def _parse(lines: bytes) -> tuple[Any, int]:
    """Table of some lines; one by one if something is wrong with any of them."""
    options = arrow_json.ParseOptions(
        explicit_schema=FIELDS, unexpected_field_behavior="ignore", newlines_in_values=False
    )
    try:
        read = arrow_json.ReadOptions(block_size=len(lines) + 1)
        return arrow_json.read_json(pa.BufferReader(lines), read, options), 0
    except pa.ArrowInvalid:
        rows, broken = [], 0
        for line in lines.splitlines():
            row = _row(line) if line.strip() else {}
            broken += row is None
            rows += [row] if row else []
        return pa.Table.from_pylist(rows, schema=FIELDS), broken


def _row(line: bytes) -> dict[str, Any] | None:
    """Fields of a line, those of a wrong kind missing; None for a line that is no object."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    texts = {f.name: found.get(f.name) for f in FIELDS if f.type == pa.string()}
    kept: dict[str, Any] = {k: v if isinstance(v, str) else None for k, v in texts.items()}
    for name, kind in (("overall", float), ("unixReviewTime", int)):
        try:
            kept[name] = kind(found[name])
        except (KeyError, TypeError, ValueError):
            kept[name] = None
    return kept


def _take(table: Any, keeper: Keeper) -> None:
    """Keep the reviews that have stars, a date and a text."""
    stars = pc.fill_null(table["overall"], 0.0).to_numpy()
    days = _days(table)
    texts = _clean(table["reviewText"])
    rated = np.isin(stars, [1, 2, 3, 4, 5])
    dated = (days >= FIRST_DAY) & (days <= LAST_DAY)
    written = has_text(texts)
    for why, wrong in (
        ("without stars from 1 to 5", ~rated),
        ("with a date out of range", rated & ~dated),
        ("without a text", rated & dated & ~written),
    ):
        add_count(keeper.counts, why, wrong.sum())
    rows = np.flatnonzero(rated & dated & written)
    kept = texts.take(pa.array(rows))
    who = [pc.fill_null(table[c], "").take(rows).to_pylist() for c in ("reviewerID", "asin")]
    labels = np.array(["", *STARS])[stars[rows].astype(int)]
    keys = hash_rows([*who, labels.tolist(), map(str, days[rows].tolist()), kept.to_pylist()])
    keeper.add(kept, days[rows], labels, np.full(len(rows), ""), np.ones(len(rows), bool), keys)


def _days(table: Any) -> Any:
    """Days since 1970, by the clock or else by the written date; -1 where there is neither."""
    seconds = pc.fill_null(table["unixReviewTime"], -1).to_numpy()
    days = np.where(seconds >= 0, seconds // DAY, -1)
    missing = np.flatnonzero(days < 0)
    if len(missing):
        written = table["reviewTime"].take(pa.array(missing))
        read, known = DateReader("reviewTime", "%m %d, %Y").read(written.combine_chunks())
        days[missing] = np.where(known, read // DAY, -1)
    return days


def _clean(column: Any) -> Any:
    """Texts without markup and entities; a missing one is empty."""
    column = pc.fill_null(column.combine_chunks(), "")
    marked = pc.match_substring_regex(column, "[<&]")
    if pc.any(marked).as_py():
        texts = column.filter(marked).to_pylist()
        plain = pa.array([html.unescape(TAG.sub(" ", text)) for text in texts], pa.string())
        column = pc.replace_with_mask(column, marked, plain)
    return pc.utf8_trim_whitespace(column)
