"""Read columns of CSV, Excel, Parquet and JSON-lines files, and data sets made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.frame import Frame
from headcount._core.types import Floats
from headcount.data.dataset import Dataset, Part
from headcount.data.opening import open_text, reading_of, split_head
from headcount.data.sheets import SHEETS, Sheet
from headcount.exceptions import InputError, choose

KINDS = {
    ".csv": ",",
    ".tsv": "\t",
    ".txt": None,
    ".parquet": None,
    ".jsonl": None,
    ".ndjson": None,
    **dict.fromkeys(SHEETS),
}


def read_table(path: str | Path, columns: Sequence[str] | None = None) -> Frame:
    """Read a table, or some of its columns; the kind of file is told by its name.

    CSV and TSV files and JSON lines may be compressed by gzip (``.csv.gz``).
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}.")
    suffix = table_kind(path)
    if suffix not in KINDS:
        raise InputError(f"{path.name!r} is none of {', '.join(KINDS)} (or .gz of a text one).")
    table = _arrow(path, suffix)
    wanted = table.column_names if columns is None else list(columns)
    for name in wanted:
        choose(f"column of {path.name}", name, table.column_names)
    return Frame({name: table[name].to_numpy() for name in wanted})


def table_kind(path: Path) -> str:
    """Ending of a file's name that tells what table it holds, without that of compression."""
    return Path(path.stem).suffix if path.suffix == ".gz" else path.suffix


def _arrow(path: Path, suffix: str) -> Any:
    import pyarrow as pa
    from pyarrow import csv, json, parquet

    with reading_of(path.name):
        if suffix == ".parquet":
            return parquet.read_table(path)
        if suffix in SHEETS:
            sheet = Sheet(path)
            return pa.Table.from_batches(sheet.batches(sheet.names, 1 << 16))
        with path.open("rb") as raw:
            stream = open_text(raw, path.name, "utf8", lambda _: None)
            if suffix in (".jsonl", ".ndjson"):
                return json.read_json(pa.PythonFile(stream, mode="r"))
            separator, _ = split_head(stream, (), KINDS[suffix], path.name)
            return csv.read_csv(
                pa.PythonFile(stream, mode="r"),
                parse_options=csv.ParseOptions(delimiter=separator, newlines_in_values=True),
                convert_options=csv.ConvertOptions(strings_can_be_null=False),
            )


def table_dataset(
    name: str,
    path: str | Path,
    *,
    label: str,
    text: str | None = None,
    features: Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    split: str | None = None,
    parts: Mapping[str, Any] | None = None,
    test: float = 0.5,
    validation: float = 0.2,
    min_df: int = 5,
    vectorizer: Any = "tfidf",
) -> Dataset:
    """Read a data set from a table of texts or features and labels.

    Parameters
    ----------
    name : str
    path : file
    label, text, features : names of columns
        Either `text` or `features` is given; texts become vectors by `vectorizer`: tf-idf weights
        of words and pairs of words that occur in at least `min_df` training texts, or 'words',
        'glove', 'learnt', 'minilm', a file of word vectors, the folder of a model.
    where : mapping of column to a value or several, optional
        Only rows with these are kept.
    split, parts : name of a column, and which of its values are train, validation and test
        By default the values are named so. Without `split`, items are split at random.
    test, validation : float
        Shares of items to split off where `split` is not given.
    """
    if (text is None) == (not features):
        raise InputError("give either text (one column) or features (several).")
    if parts and split is None:
        raise InputError("parts says which marks are which part: give split, the column of marks.")
    where = dict(where or {})
    inputs = [text] if text is not None else list(features or [])
    frame = read_table(
        path, list(dict.fromkeys([*inputs, label, *where, *([split] if split else [])]))
    )
    for column, values in where.items():
        allowed = [str(v) for v in (values if isinstance(values, (list, tuple)) else [values])]
        frame = frame.rows(np.isin(as_names(frame[column]), allowed))
    if frame.n_rows == 0:
        what = f"no row of {Path(path).name!r} has {where}." if where else "there are no rows."
        raise InputError(what)
    unlabelled = int((as_names(frame[label]) == "").sum())
    if unlabelled:
        raise InputError(
            f"{unlabelled} of {frame.n_rows} rows have no label in {label!r}: drop them first."
        )
    X: Any = frame[text] if text is not None else _numbers(frame, inputs)
    y = frame[label]
    if split is None:
        data = Dataset.split(name, X, y, test=test, validation=validation)
    else:
        data = _by_column(name, X, y, frame[split], parts or {})
    return vectorised(data, vectorizer, min_df) if text is not None else data


def as_names(values: NDArray[Any]) -> NDArray[Any]:
    """Cells as texts: whole numbers without a point, missing ones empty."""

    def name(value: Any) -> str:
        if value is None or value != value:
            return ""
        whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
        return str(int(value)) if whole else str(value)

    return np.array([name(v) for v in values.tolist()], dtype=str)


def vectorised(data: Dataset, vectorizer: Any = "tfidf", min_df: int = 5) -> Dataset:
    """Turn texts into vectors, once for all methods; terms come from the training part alone."""
    vectorizer = text_vectorizer(vectorizer, min_df)
    train = vectorizer.fit_transform(data.train.X)
    held = data.validation
    return Dataset(
        data.name,
        Part(train, data.train.y),
        Part(vectorizer.transform(data.test.X), data.test.y),
        None if held is None else Part(vectorizer.transform(held.X), held.y),
    )


def text_vectorizer(spec: Any, min_df: int) -> Any:
    """Fresh vectoriser; terms, if it has any, occur in at least `min_df` training texts."""
    from headcount.text.names import make_vectorizer

    vectorizer = make_vectorizer(spec)
    if "min_df" in vectorizer.get_params():
        vectorizer.set_params(min_df=min_df, min_count=1)
    return vectorizer


def _numbers(frame: Frame, columns: list[str]) -> Floats:
    try:
        return np.column_stack([frame[c].astype(np.float64) for c in columns])
    except (TypeError, ValueError) as error:
        raise InputError(f"features must be numbers: {error}") from None


def _by_column(
    name: str, X: Any, y: NDArray[Any], split: NDArray[Any], parts: Mapping[str, Any]
) -> Dataset:
    values = as_names(split)
    found: dict[str, Part | None] = {}
    for part in ("train", "validation", "test"):
        wanted = parts.get(part, [part])
        names = [str(v) for v in (wanted if isinstance(wanted, (list, tuple)) else [wanted])]
        mine = np.isin(values, names)
        found[part] = Part(X[mine], y[mine]) if mine.any() else None
        if not mine.any() and (part != "validation" or part in parts):
            raise InputError(
                f"{name}: no row is marked {names} for {part}; the marks are "
                f"{sorted(set(values.tolist()))[:10]}."
            )
    train, test = found["train"], found["test"]
    assert train is not None and test is not None
    return Dataset(name, train, test, found["validation"])
