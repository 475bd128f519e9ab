"""Wikipedia Talk labels: toxicity (Wulczyn, Thain and Dixon, 2017): two TSV files.

``toxicity_annotated_comments.tsv`` holds the comments with their year and how they were sampled,
``toxicity_annotations.tsv`` what about ten workers said of each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headcount._core.progress import follow
from headcount.data.cells import names_of
from headcount.data.keep import Keeper, read_kept
from headcount.data.stream import Reading, Source, batches
from headcount.data.timed import TimedItems, add_count, count_doubts, has_text, hash_rows
from headcount.exceptions import InputError

HOME = "https://doi.org/10.6084/m9.figshare.4563973"
COMMENTS, ANNOTATIONS = "toxicity_annotated_comments.tsv", "toxicity_annotations.tsv"
EXPECTED = (
    f"a folder with {COMMENTS} (rev_id, comment, year, sample) and {ANNOTATIONS} (rev_id, "
    f"toxicity), published as Wikipedia Talk Labels: Toxicity: see {HOME}."
)
FIRST_YEAR, LAST_YEAR = 2001, 2016  # years that a comment can be of
TOKENS = {"NEWLINE_TOKEN": "\n", "TAB_TOKEN": "\t"}


def read_comments(folder: str | Path, *, keep: Path | None, duplicates: str) -> TimedItems:
    """Comments that more than half of their annotators called toxic, and the others.

    Blocked users were sampled to find more toxic comments: these serve for training alone.

    Parameters
    ----------
    folder : path that holds both files
    keep, duplicates
        As in `headcount.data.keep.read_kept`. Comments with the same rev_id are duplicates.
    """
    files = [Path(folder) / COMMENTS, Path(folder) / ANNOTATIONS]
    missing = [path.name for path in files if not path.is_file()]
    if missing:
        raise InputError(f"{str(folder)!r} lacks {' and '.join(missing)}. It should be {EXPECTED}")
    return read_kept(
        files,
        "toxicity",
        lambda k: _read(files[0], files[1], k),
        expected=EXPECTED,
        keep=keep,
        duplicates=duplicates,
    )


def _read(comments: Path, annotations: Path, keeper: Keeper) -> None:
    ids, means = _judgements(annotations)
    reading = Reading()
    columns = {"rev_id": "name", "comment": "text", "year": "number", "sample": "name"}
    with follow(comments.stat().st_size, f"reading {comments.name}") as advance:
        found = batches([Source(comments, ".tsv")], columns, progress=advance, reading=reading)
        for _, batch in found:
            add_count(keeper.counts, "rows read", batch.num_rows)
            _take(batch, ids, means, keeper)
    count_doubts(keeper.counts, reading)


def _judgements(path: Path) -> tuple[Any, Any]:
    """Ids of comments, and the share of annotators who called each toxic."""
    found = []
    columns = {"rev_id": "name", "toxicity": "number"}
    with follow(path.stat().st_size, f"reading {path.name}") as advance:
        for _, batch in batches([Source(path, ".tsv")], columns, progress=advance):
            ids = names_of(batch.column("rev_id"))
            found.append(pa.table({"id": ids, "toxicity": batch.column("toxicity")}))
    if not found:
        raise InputError(f"{path.name} holds no annotations.")
    table = pa.concat_tables(found).group_by("id").aggregate([("toxicity", "mean")])
    return table["id"].combine_chunks(), table["toxicity_mean"].to_numpy()


def _take(batch: Any, ids: Any, means: Any, keeper: Keeper) -> None:
    own = names_of(batch.column("rev_id"))
    place = pc.index_in(own, ids)
    judged = pc.is_valid(place).to_numpy(zero_copy_only=False)
    share = means[pc.fill_null(place, 0).to_numpy(zero_copy_only=False)]
    judged = judged & np.isfinite(share)
    year = pc.fill_null(batch.column("year"), 0.0).to_numpy(zero_copy_only=False)
    dated = (year >= FIRST_YEAR) & (year <= LAST_YEAR)
    texts = batch.column("comment")
    for token, character in TOKENS.items():
        texts = pc.replace_substring(texts, token, character)
    texts = pc.utf8_trim_whitespace(texts)
    written = has_text(texts)
    for why, wrong in (
        ("without annotations", ~judged),
        ("with a year out of range", judged & ~dated),
        ("without a text", judged & dated & ~written),
    ):
        add_count(keeper.counts, why, wrong.sum())
    rows = np.flatnonzero(judged & dated & written)
    at = pa.array(rows)
    days = (year[rows].astype(np.int64) - 1970).astype("datetime64[Y]").astype("datetime64[D]")
    sample = pc.fill_null(names_of(batch.column("sample")), "").take(at)
    labels = np.where(share[rows] > 0.5, "toxic", "not toxic")
    test = np.asarray(pc.equal(sample, "random").to_numpy(zero_copy_only=False))
    keys = hash_rows([own.take(at).to_pylist()])
    keeper.add(texts.take(at), days.astype(np.int64), labels, sample, test, keys)
