"""The Consumer Complaint Database: one CSV file, complaints with a narrative, nine categories.

Products were renamed and merged over the years. ``products.csv`` beside this module maps what a
complaint says onto the nine categories of the temporal benchmark; its paper does not print a map,
and this one follows the names. A table of one's own with the same columns takes its place.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headcount._core.calendar import DAY
from headcount._core.dates import DateReader
from headcount._core.progress import follow
from headcount.data.cells import names_of
from headcount.data.keep import Keeper, read_kept
from headcount.data.stream import Reading, Source, batches
from headcount.data.tables import as_names, read_table
from headcount.data.timed import TimedItems, add_count, count_doubts, has_text, hash_rows
from headcount.exceptions import InputError

HOME = "https://www.consumerfinance.gov/data-research/consumer-complaints/"
DATE, PRODUCT, PART = "Date received", "Product", "Sub-product"
TEXT, ID = "Consumer complaint narrative", "Complaint ID"
EXPECTED = (
    f"the CSV file of the Consumer Complaint Database, unpacked, with the columns {DATE}, "
    f"{PRODUCT}, {PART}, {TEXT} and {ID}: see {HOME}."
)
NAMES = ("product", "sub_product_contains", "category")
UNMAPPED = ""


def read_complaints(
    path: str | Path, *, products: Path | None, keep: Path | None, duplicates: str
) -> TimedItems:
    """Complaints with a text, by category; sub-products are their parts.

    Parameters
    ----------
    path : the CSV file, or the folder that holds ``complaints.csv``
    products : table with the columns product, sub_product_contains and category
        The first row that fits counts; an empty sub_product_contains fits all.
    keep, duplicates
        As in `headcount.data.keep.read_kept`. Complaints with the same id are duplicates.
    """
    found = Path(path) / "complaints.csv" if Path(path).is_dir() else Path(path)
    if not found.is_file() or found.suffix == ".zip":
        raise InputError(f"there is no CSV file {str(found)!r}. It should be {EXPECTED}")
    category = product_map(products)
    items = read_kept(
        [found],
        "complaints",
        lambda k: _read(found, k),
        expected=EXPECTED,
        keep=keep,
        duplicates=duplicates,
    )
    mapped = items.renamed(category)
    unknown = np.array(mapped.classes)[mapped.labels] == UNMAPPED
    if unknown.any():
        for name in np.unique(items.labels[unknown]).tolist():
            why = f"of the product {items.classes[name]!r}, which the map does not have"
            add_count(mapped.counts, why, (items.labels[unknown] == name).sum())
        mapped = mapped.rows(~unknown)
    return mapped


def product_map(path: Path | None = None) -> Callable[[str, str], str]:
    """Function from product and sub-product to a category; '' for what the map does not have.

    Examples
    --------
    >>> product_map()("Consumer Loan", "Vehicle lease")
    'Vehicle loan or lease'
    """
    if path is None:
        with resources.as_file(resources.files("headcount.data") / "products.csv") as own:
            return product_map(own)
    table = read_table(path, NAMES)
    names, within, targets = (as_names(table[name]).tolist() for name in NAMES)
    rows = list(zip(map(_plain, names), map(_plain, within), targets, strict=True))

    def category(product: str, part: str) -> str:
        for name, inside, target in rows:
            if name == _plain(product) and inside in _plain(part):
                return str(target)
        return UNMAPPED

    return category


def _plain(name: str) -> str:
    """A name without what differs between exports."""
    return " ".join(name.split()).lower()


def _read(path: Path, keeper: Keeper) -> None:
    dates = DateReader(DATE, "month-first")  # as older exports have it; the others are ISO
    reading = Reading()
    columns = {DATE: "date", PRODUCT: "text", PART: "text", TEXT: "text", ID: "name"}
    with follow(path.stat().st_size, f"reading {path.name}") as advance:
        found = batches([Source(path, ".csv")], columns, progress=advance, reading=reading)
        for _, batch in found:
            add_count(keeper.counts, "rows read", batch.num_rows)
            _take(batch, dates, keeper)
    count_doubts(keeper.counts, reading)


def _take(batch: Any, dates: DateReader, keeper: Keeper) -> None:
    seconds, dated = dates.read(batch.column(DATE))
    days = seconds // DAY
    texts = pc.utf8_trim_whitespace(pc.fill_null(batch.column(TEXT), ""))
    written, named = has_text(texts), has_text(batch.column(PRODUCT))
    for why, wrong in (
        ("without a text", ~written),
        ("without a date that can be read", written & ~dated),
        ("without a product", written & dated & ~named),
    ):
        add_count(keeper.counts, why, wrong.sum())
    rows = np.flatnonzero(written & dated & named)
    at = pa.array(rows)
    ids = pc.fill_null(names_of(batch.column(ID)), "").take(at).to_pylist()
    # A complaint without a number is like no other.
    own = [i or f"row {keeper.counts['rows read']} {n}" for n, i in enumerate(ids)]
    products, parts = (pc.fill_null(batch.column(c), "").take(at) for c in (PRODUCT, PART))
    test = np.ones(len(rows), dtype=bool)
    keeper.add(texts.take(at), days[rows], products, parts, test, hash_rows([own]))
