"""The tweet sentiment sets of Gao and Sebastiani (2016), as published: sparse feature files.

A line is ``label index:value index:value ...`` with labels -1, 0 and 1 and indexes from 1. The
archive holds two folders, ``train`` and ``test``. Its SemEval parts have two peculiarities that
are taken care of here: 2013, 2014 and 2015 share one training and one validation file, called
``semeval``, and the test file of 2016 is called ``dev-test``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from headcount._core.types import Ints
from headcount.data.dataset import Dataset, Part
from headcount.exceptions import InputError, choose

# Name in the paper's tables -> name in the archive.
TWEET_SETS = {
    "GASP": "gasp",
    "HCR": "hcr",
    "OMD": "omd",
    "Sanders": "sanders",
    "SemEval13": "semeval13",
    "SemEval14": "semeval14",
    "SemEval15": "semeval15",
    "SemEval16": "semeval16",
    "SST": "sst",
    "WA": "wa",
    "WB": "wb",
}
LABELS = {-1: "negative", 0: "neutral", 1: "positive"}


def read_tweets(folder: str | Path, name: str, *, min_df: int = 5) -> Dataset:
    """Read one of the eleven sets from the unpacked archive.

    Parameters
    ----------
    folder : path that holds ``train`` and ``test``
    name : str
        As in the paper's tables, such as 'GASP' or 'SemEval13'.
    min_df : int, default 5
        Features that fewer training documents have are dropped.
    """
    short = TWEET_SETS[choose("tweet set", name, TWEET_SETS)]
    shared = "semeval" if short in ("semeval13", "semeval14", "semeval15") else short
    tested = "dev-test" if short == "semeval16" else "test"
    root = Path(folder)
    files = {
        "train": root / "train" / f"{shared}.train.feature.txt",
        "validation": root / "test" / f"{shared}.dev.feature.txt",
        "test": root / "test" / f"{short}.{tested}.feature.txt",
    }
    missing = [str(path.relative_to(root)) for path in files.values() if not path.is_file()]
    if missing:
        raise InputError(
            f"{name}: {str(root)!r} lacks {', '.join(missing)}. Unpack the archive of Zenodo "
            "record 4255764 and give the folder that holds train and test."
        )
    return sparse_dataset(name, files["train"], files["test"], files["validation"], min_df=min_df)


def sparse_dataset(
    name: str,
    train: str | Path,
    test: str | Path,
    validation: str | Path | None = None,
    *,
    min_df: int = 5,
) -> Dataset:
    """Data set from sparse feature files; features rare in training are dropped."""
    read = {
        part: read_sparse(path)
        for part, path in (("train", train), ("test", test), ("validation", validation))
        if path is not None
    }
    # Files end at different features: one that training never saw carries nothing.
    width = read["train"][0].shape[1]
    kept = np.flatnonzero(np.bincount(read["train"][0].indices, minlength=width) >= min_df)
    if len(kept) == 0:
        raise InputError(f"{name}: no feature occurs in {min_df} training documents.")
    parts = {}
    for part, (X, y) in read.items():
        wide = X[:, :width] if X.shape[1] >= width else _widened(X, width)
        parts[part] = Part(wide[:, kept], np.array([LABELS[v] for v in y.tolist()]))
    return Dataset(name, parts["train"], parts["test"], parts.get("validation"))


def read_sparse(path: str | Path) -> tuple[sparse.csr_matrix, Ints]:
    """Matrix and labels of one feature file; empty lines are passed over, repeats are summed."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}.")
    labels: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    ends = [0]
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            fields = line.split()
            if not fields:
                continue
            try:
                label = int(float(fields[0]))
                pairs = [field.rsplit(":", 1) for field in fields[1:]]
                found = [int(index) - 1 for index, _ in pairs]
                values += [float(value) for _, value in pairs]
            except ValueError:
                label, found = 9, []
            if label not in LABELS or (found and min(found) < 0):
                raise InputError(
                    f"{path.name}, line {number}: expected 'label index:value ...' with a label "
                    f"of -1, 0 or 1 and indexes from 1, got {line.strip()[:60]!r}."
                )
            labels.append(label)
            columns += found
            ends.append(len(columns))
    if not labels:
        raise InputError(f"{path.name} holds no documents.")
    shape = (len(labels), max(columns, default=0) + 1)
    X = sparse.csr_matrix((values, columns, ends), shape=shape)
    X.sum_duplicates()
    return X, np.array(labels)


def _widened(X: sparse.csr_matrix, width: int) -> sparse.csr_matrix:
    return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
