"""Read the data sets of a study from where its specification says they are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from headcount.data.cutting import Preparation, cut_by_time
from headcount.data.dataset import Dataset
from headcount.data.published import PUBLISHED_SETS, PublishedSet, read_published
from headcount.data.tables import table_dataset
from headcount.data.timed import TimedItems, read_timed_table
from headcount.data.tweets import read_tweets, sparse_dataset
from headcount.exceptions import InputError, choose
from headcount.study.specs import DatasetSpec, TemporalSpec

SOURCES = ("path", "tweets", "sparse", "sklearn", "amazon", "complaints", "toxicity")
SKLEARN_DATA = ["breast_cancer", "digits", "iris", "wine"]
BY_TIME = ("amazon", "complaints", "toxicity")


def read_source(spec: DatasetSpec, home: Path) -> Dataset:
    """Read a data set; paths are relative to the folder `home`."""
    sources = [k for k in SOURCES if getattr(spec, k) is not None]
    if len(sources) != 1:
        raise InputError(f"give exactly one of {', '.join(SOURCES[:-1])} and {SOURCES[-1]}.")
    if spec.temporal is not None or sources[0] in BY_TIME:
        return _temporal(spec, home, sources[0])
    if spec.path is not None:
        return _table(spec, resolve(home, spec.path))
    if spec.tweets is not None:
        return read_tweets(resolve(home, spec.tweets), spec.name, min_df=spec.min_df)
    if spec.sparse is not None:
        files = {part: resolve(home, path) for part, path in spec.sparse.items()}
        if not {"train", "test"} <= set(files):
            raise InputError("sparse needs at least train and test files.")
        return sparse_dataset(
            spec.name, files["train"], files["test"], files.get("validation"), min_df=spec.min_df
        )
    assert spec.sklearn is not None
    return _sklearn_dataset(spec.name, spec.sklearn, spec.test, spec.validation)


def _label(spec: DatasetSpec) -> str:
    if spec.label is None:
        raise InputError("label is missing: the name of the column with the classes.")
    return spec.label


def _table(spec: DatasetSpec, path: Path) -> Dataset:
    return table_dataset(
        spec.name,
        path,
        label=_label(spec),
        text=spec.text,
        features=spec.features,
        where=spec.where,
        split=spec.split,
        parts={str(part): value for part, value in spec.parts.items()},
        test=spec.test,
        validation=spec.validation,
        min_df=spec.min_df,
        vectorizer=spec.vectorizer,
    )


def _temporal(spec: DatasetSpec, home: Path, source: str) -> Dataset:
    """Data set that is cut by time."""
    told = spec.temporal or TemporalSpec()
    about: PublishedSet | None = None
    if source in BY_TIME:
        version = choose("version", spec.version or spec.name, PUBLISHED_SETS)
        about = PUBLISHED_SETS[version]
        if about.source != source:
            raise InputError(f"{version!r} is made of {about.source}, not of {source}.")
        keep = None if spec.keep is None else resolve(home, spec.keep)
        products = None if spec.products is None else resolve(home, spec.products)
        path = resolve(home, getattr(spec, source))
        items = read_published(about, path, keep, products, told.duplicates)
    elif source == "path":
        items = _timed_table(spec, told, home)
    else:
        raise InputError(f"temporal goes with path or a source with dates, not with {source}.")
    prepared = Preparation(
        spec.vectorizer,
        told.encoder,
        spec.min_df,
        told.min_class,
        told.most_train,
        told.most_test,
    )
    return cut_by_time(
        spec.name,
        items,
        told.windows(None if about is None else about.windows, spec.name),
        prepared,
        published=None if about is None else about.name,
        scores=None if told.scores is None else list(told.scores),
    )


def _timed_table(spec: DatasetSpec, told: TemporalSpec, home: Path) -> TimedItems:
    if told.date is None:
        raise InputError("date is missing in temporal: the name of the column with the dates.")
    numbers = list(told.scores.values()) if told.scores else spec.features or []
    assert spec.path is not None
    return read_timed_table(
        resolve(home, spec.path),
        label=_label(spec),
        date=told.date,
        text=spec.text,
        features=numbers,
        part=told.part,
        where=spec.where,
        test_where=told.test_where,
        duplicates=told.duplicates,
        date_format=told.date_format,
    )


def _sklearn_dataset(name: str, which: str, test: float, validation: float) -> Dataset:
    """One of the small data sets that scikit-learn carries."""
    from sklearn import datasets

    load = getattr(datasets, f"load_{choose('data set of scikit-learn', which, SKLEARN_DATA)}")
    return Dataset.split(name, *load(return_X_y=True), test=test, validation=validation)


def resolve(home: Path, text: str) -> Path:
    """Path relative to the file it stands in; $NAME is taken from the environment."""
    return home / Path(os.path.expandvars(text)).expanduser()


def anchor(values: dict[str, Any], home: Path) -> None:
    """Make the paths of a base's data sets independent of the file that extends it."""
    listed = values.get("datasets")
    for data in listed if isinstance(listed, list) else []:
        if not isinstance(data, dict):
            continue
        for key in ("path", "tweets", *BY_TIME, "products", "keep"):
            if isinstance(data.get(key), str):
                data[key] = str(resolve(home, data[key]))
        if isinstance(data.get("sparse"), dict):
            data["sparse"] = {k: str(resolve(home, str(v))) for k, v in data["sparse"].items()}
