"""The eight data sets of the temporal benchmark: windows, counts, and who reads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headcount.data.amazon import read_reviews
from headcount.data.complaints import read_complaints
from headcount.data.timed import TimedItems
from headcount.data.toxicity import read_comments
from headcount.data.windows import Windows

REVIEWS = Windows(["2008-08", "2015-07"], ["2015-08", "2018-07"])
COMPLAINTS = Windows(["2015-04", "2019-07"], ["2019-08", "2021-07"])
COMMENTS = Windows(["2001", "2010"], ["2011", "2015"], every="year")


@dataclass(frozen=True)
class PublishedSet:
    """A data set of the paper's Table 1.

    Attributes
    ----------
    name : column of the published tables
    source : amazon, complaints or toxicity
    windows : as in the paper
    train, test : items, as in the paper
    file : name of the file as published
    binary : whether stars become negative or not
    """

    name: str
    source: str
    windows: Windows
    train: int
    test: int
    file: str = ""
    binary: bool = False


def _reviews(short: str, file: str, train: int, test: int) -> list[PublishedSet]:
    return [
        PublishedSet(f"{short}{k}", "amazon", REVIEWS, train, test, file, k == 2) for k in (2, 5)
    ]


_SETS = [
    *_reviews("clothing", "Clothing_Shoes_and_Jewelry_5.json.gz", 3_749_569, 7_453_848),
    *_reviews("electronics", "Electronics_5.json.gz", 3_283_304, 3_285_326),
    *_reviews("office", "Office_Products_5.json.gz", 316_302, 476_785),
    PublishedSet("toxicity2", "toxicity", COMMENTS, 109_277, 25_809),
    PublishedSet("ccd9", "complaints", COMPLAINTS, 434_482, 345_914),
]
PUBLISHED_SETS = {each.name: each for each in _SETS}


def read_published(
    about: PublishedSet,
    path: Path,
    keep: Path | None = None,
    products: Path | None = None,
    duplicates: str = "keep",
) -> TimedItems:
    """Items of a published data set, from the file or folder that was downloaded."""
    if about.source == "amazon":
        return read_reviews(path, about.file, binary=about.binary, keep=keep, duplicates=duplicates)
    if about.source == "complaints":
        return read_complaints(path, products=products, keep=keep, duplicates=duplicates)
    return read_comments(path, keep=keep, duplicates=duplicates)
