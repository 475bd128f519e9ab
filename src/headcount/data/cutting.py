"""Cut items by their dates, make vectors of their texts, and tell what became of all of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.data.dataset import Part
from headcount.data.tables import text_vectorizer
from headcount.data.temporal import SHIFT_SAMPLE_ITEMS, TemporalDataset, draw_some
from headcount.data.timed import TimedItems
from headcount.data.windows import Cut, Windows
from headcount.exceptions import InputError

TEXTS = "texts"  # the vectorizer that leaves texts as they are, for classifiers that read them
MAX_SUBCATEGORIES = 6  # of a class that a figure shows apart; the others are drawn as one


@dataclass(frozen=True)
class Preparation:
    """How items become vectors, and how many of them are taken.

    Parameters
    ----------
    vectorizer : str, default 'tfidf'
        As for every data set; 'texts' leaves them as they are, for `FineTuned`.
    encoder : str, optional
        What covariate shift is measured on; as `vectorizer` by default, tf-idf for 'texts'.
    min_df : int, default 5
        Training texts that a word must occur in.
    min_class : int, default 20
        Training items of a class; rarer ones are left out altogether, and counted.
    most_train, most_test : int, optional
        Training items, and items of a test period, that are drawn where there are more.
    """

    vectorizer: str = "tfidf"
    encoder: str | None = None
    min_df: int = 5
    min_class: int = 20
    most_train: int | None = None
    most_test: int | None = None


def cut_by_time(
    name: str,
    items: TimedItems,
    windows: Windows,
    prepared: Preparation | None = None,
    *,
    published: str | None = None,
    scores: list[str] | None = None,
) -> TemporalDataset:
    """Data set of items with dates.

    Parameters
    ----------
    published : str, optional
        Column of the published tables that these data are, such as 'ccd9'.
    scores : list of classes, optional
        Of the columns, where the items are posteriors.
    """
    prepared = prepared or Preparation()
    items, rare = _without_rare(items, windows, prepared)
    cut = windows.cut(items.days, items.may_test)
    rows = {
        "train": draw_some(cut.train, prepared.most_train, "train"),
        "development": cut.development,
        "test": _some_of_each(cut, prepared.most_test),
    }
    labels = np.array(items.classes)[items.labels]
    raw = {part: items.texts(which) for part, which in rows.items() if len(which)}
    if scores is not None:
        raw = {k: _in_order(X, scores, np.unique(labels[rows["train"]])) for k, X in raw.items()}
    is_text = raw["train"].dtype.kind in "OU"
    vectors = _vectors(raw, prepared.vectorizer, prepared.min_df) if is_text else raw
    part = {k: Part(X, labels[rows[k]]) for k, X in vectors.items()}
    held = rows["development"]
    return TemporalDataset(
        name,
        part["train"],
        part["test"],
        part.get("development"),
        train_periods=cut.codes[rows["train"]],
        test_periods=cut.codes[rows["test"]],
        validation_periods=cut.codes[held] if len(held) else None,
        story=_story(items, cut, windows, rare, rows) | {"published": published},
        encoded=_encoded(raw, cut.codes[rows["test"]], prepared) if is_text else None,
    )


def _without_rare(
    items: TimedItems, windows: Windows, prepared: Preparation
) -> tuple[TimedItems, dict[str, int]]:
    """Items of classes that were seen often enough in training; and how many others there are.

    Items of the others that are in no window stay, and are counted there.
    """
    check.whole("min_class", prepared.min_class)
    rare: dict[str, int] = {}
    while True:  # without a class another sample is drawn, which may lack another class
        cut = windows.cut(items.days, items.may_test)
        k = len(items.classes)
        drawn = draw_some(cut.train, prepared.most_train, "train")
        seen = np.bincount(items.labels[drawn], minlength=k)
        if (seen >= prepared.min_class).sum() < 2:
            most = {items.classes[c]: int(seen[c]) for c in np.argsort(-seen)[:5]}
            raise InputError(
                f"fewer than two classes have {prepared.min_class} items in the training window: "
                f"{most}. Move the window, or lower min_class."
            )
        used = cut.is_train | cut.is_development | cut.is_test
        there = np.bincount(items.labels[used], minlength=k)
        lost = (there > 0) & (seen < prepared.min_class)
        if not lost.any():
            return items, rare
        rare |= {items.classes[c]: int(there[c]) for c in np.flatnonzero(lost)}
        items = items.rows(~(used & lost[items.labels]))


def _some_of_each(cut: Cut, most: int | None) -> NDArray[Any]:
    """Test items, at most so many of each period."""
    rows = cut.test
    if most is None:
        return rows
    codes = cut.codes[rows]
    kept = [draw_some(rows[codes == c], most, f"test, {c}") for c in np.unique(codes)]
    return np.sort(np.concatenate(kept))


def _in_order(X: Floats, columns: list[str], classes: NDArray[Any]) -> Floats:
    """Scores with a column a class, in the order of the classes."""
    if sorted(columns) != sorted(classes.tolist()):
        raise InputError(
            f"scores are given for the classes {sorted(columns)}, and the training items have "
            f"{classes.tolist()}."
        )
    return np.asarray(X[:, [columns.index(c) for c in classes.tolist()]])


def _vectors(raw: dict[str, Any], vectorizer: str, min_df: int) -> dict[str, Any]:
    """Vectors of texts; what is learnt for them is learnt from the training part."""
    if vectorizer == TEXTS:
        return raw
    fitted = text_vectorizer(vectorizer, min_df)
    first = fitted.fit_transform(raw["train"])
    return {k: first if k == "train" else fitted.transform(v) for k, v in raw.items()}


def _encoded(
    raw: dict[str, Any], periods: Ints, prepared: Preparation
) -> tuple[Any, list[Any]] | None:
    """Vectors to measure shift on, where the classifier sees others."""
    encoder = prepared.encoder or ("tfidf" if prepared.vectorizer == TEXTS else prepared.vectorizer)
    if encoder == prepared.vectorizer:
        return None
    fitted = text_vectorizer(encoder, prepared.min_df)
    rows = np.arange(len(raw["train"]))
    train = fitted.fit_transform(
        raw["train"][draw_some(rows, SHIFT_SAMPLE_ITEMS, "shift, training")]
    )
    splits = []
    for s, period in enumerate(np.unique(periods)):
        some = draw_some(np.flatnonzero(periods == period), SHIFT_SAMPLE_ITEMS, f"shift, {s}")
        splits.append(fitted.transform(raw["test"][some]))
    return train, splits


def _story(
    items: TimedItems, cut: Cut, windows: Windows, rare: dict[str, int], rows: dict[str, Any]
) -> dict[str, Any]:
    """What the page of a study tells about the data, as plain data."""
    roles = {"train": cut.is_train, "development": cut.is_development, "test": cut.is_test}
    used = cut.is_train | cut.is_development | cut.is_test
    periods = np.unique(cut.codes[used])
    place = np.searchsorted(periods, cut.codes[used])
    kept = np.unique(items.labels[cut.is_train])
    role = [next(r for r, mine in roles.items() if mine[cut.codes == p].any()) for p in periods]
    given = {k: v for k, v in asdict(windows).items() if v is not None}
    return {
        "windows": {k: [str(e) for e in v] if k in roles else v for k, v in given.items()},
        "periods": cut.names_of(periods),
        "roles": role,
        "counts": _table(place, items.labels[used], len(periods), len(items.classes))[
            :, kept
        ].T.tolist(),
        # Lists of pairs, because files of JSON have their keys in alphabetical order.
        "outside": list(map(list, cut.outside.items())),
        "rare": list(map(list, rare.items())),
        "read": list(map(list, items.counts.items())),
        "notes": items.notes,
        "drawn": {part: [len(which), int(roles[part].sum())] for part, which in rows.items()},
        "parts": {} if items.parts is None else _parts(items, used, place, len(periods), kept),
    }


def _parts(
    items: TimedItems, used: NDArray[Any], place: Ints, n_periods: int, kept: NDArray[Any]
) -> dict[str, Any]:
    """For each class its most frequent sub-categories, and their numbers in every period."""
    assert items.parts is not None
    found = {}
    labels, parts = items.labels[used], items.parts[used]
    for c in kept.tolist():
        mine = labels == c
        table = _table(place[mine], parts[mine], n_periods, len(items.part_names))
        order = np.argsort(-table.sum(axis=0), kind="stable")
        top = [p for p in order[:MAX_SUBCATEGORIES].tolist() if table[:, p].any()]
        rest = table.sum(axis=1) - table[:, top].sum(axis=1)
        names = [items.part_names[p] or "(none)" for p in top]
        counts = table[:, top].T.tolist()
        if rest.any():
            names, counts = [*names, "other"], [*counts, rest.tolist()]
        found[items.classes[c]] = {"names": names, "counts": counts}
    return found


def _table(rows: Ints, columns: Ints, n_rows: int, n_columns: int) -> NDArray[Any]:
    """How often each pair occurs."""
    flat = np.bincount(rows * n_columns + columns, minlength=n_rows * n_columns)
    return np.asarray(flat.reshape(n_rows, n_columns))
