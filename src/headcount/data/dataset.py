"""Labelled items in parts: to train on, to select on, and to draw test bags from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError


class Part(NamedTuple):
    """Items and their labels."""

    X: Any
    y: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named data set in three parts.

    Parameters
    ----------
    name : str
    train : (X, y)
        Labelled items to learn from.
    test : (X, y)
        Pool that test bags are drawn from.
    validation : (X, y), optional
        Pool that bags for model selection are drawn from; a winner is refitted on train and
        validation together. Without it, a share of `train` is held out when there is a choice.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> data = Dataset.split("iris", *load_iris(return_X_y=True), test=0.5, validation=0.2)
    >>> data
    Dataset('iris': 45 + 30 labelled items, 75 test items, 3 classes)
    """

    name: str
    train: Part
    test: Part
    validation: Part | None = None

    def __post_init__(self) -> None:
        for field in ("train", "test", "validation"):
            part = getattr(self, field)
            if part is None:
                continue
            y = check.labels(part[1])
            check.same_length(_num_samples(part[0]), y)
            object.__setattr__(self, field, Part(part[0], y))
        if len(self.classes) < 2:
            raise InputError(f"{self.name}: the labelled items are all of one class.")
        unknown = sorted(set(np.unique(self.test.y).tolist()) - set(self.classes.tolist()))
        if unknown:
            raise InputError(f"{self.name}: the test items have classes without labels: {unknown}.")

    @classmethod
    def split(
        cls,
        name: str,
        X: Any,
        y: ArrayLike,
        *,
        test: float = 0.5,
        validation: float | None = None,
        random_state: int = 0,
    ) -> Dataset:
        """Split items at random, stratified: shares of all items for test and validation."""
        labels = check.labels(y)
        rows = np.arange(len(labels))
        labelled, held = _stratified(rows, labels, test, random_state, "test")
        chosen = None
        if validation is not None:
            share = validation / (1 - test)
            labelled, chosen = _stratified(labelled, labels, share, random_state, "validation")

        def part(which: Ints) -> Part:
            return Part(_safe_indexing(X, which), labels[which])

        return cls(name, part(labelled), part(held), None if chosen is None else part(chosen))

    @property
    def classes(self) -> NDArray[Any]:
        """Classes of the labelled items, sorted."""
        return np.unique(self.labelled_y)

    @property
    def labelled_y(self) -> NDArray[Any]:
        """Labels of train and validation together."""
        if self.validation is None:
            return self.train.y
        return np.concatenate([self.train.y, self.validation.y])

    @property
    def labelled(self) -> Part:
        """Train and validation together."""
        if self.validation is None:
            return self.train
        return Part(_stack(self.train.X, self.validation.X), self.labelled_y)

    @property
    def prevalence(self) -> Floats:
        """Share of each class among the labelled items."""
        _, codes = check.encode(self.labelled_y)
        return np.bincount(codes) / len(codes)

    def held_out(self, share: float = 0.4, random_state: int = 0) -> tuple[Part, Part]:
        """Items to learn from and items to select on."""
        if self.validation is not None:
            return self.train, self.validation
        rows = np.arange(len(self.train.y))
        kept, held = _stratified(rows, self.train.y, share, random_state, "validation")
        X, y = self.train
        return Part(_safe_indexing(X, kept), y[kept]), Part(_safe_indexing(X, held), y[held])

    def selection_data(self, protocol: Any, seed: int) -> tuple[Part, Any, Bags]:
        """Labelled items to fit on, and the pool and bags to select settings on."""
        train, held = self.held_out(random_state=seed)
        bags = replace(protocol, random_state=seed).draw(held.y, classes=self.classes)
        return train, held.X, bags

    def test_data(self, protocol: Any, seed: int) -> tuple[Part, Any, Bags]:
        """All labelled items, and the pool and bags to test on."""
        bags = replace(protocol, random_state=seed).draw(self.test.y, classes=self.classes)
        return self.labelled, self.test.X, bags

    def faults(self, protocol: Any, selection: Any) -> list[str]:
        """What keeps the protocols from drawing bags; `selection` is None where none is needed."""
        found = _protocol_faults(self, protocol, "protocol", self.test.y)
        if selection is not None:
            pool = self.train if self.validation is None else self.validation
            found += _protocol_faults(self, selection, "selection", pool.y)
        return found

    def about(self) -> dict[str, Any]:
        """Sizes, classes and training prevalence, as plain data."""
        return {
            "train": len(self.train.y),
            "validation": 0 if self.validation is None else len(self.validation.y),
            "test": len(self.test.y),
            "classes": [str(c) for c in self.classes.tolist()],
            "prevalence": self.prevalence.tolist(),
        }

    def fingerprint(self) -> str:
        """Hash of all items and labels."""
        digest = hashlib.sha256()
        for part in (self.train, self.validation, self.test):
            for values in [] if part is None else [part.X, part.y]:
                hash_items(digest, values)
        return digest.hexdigest()

    def __repr__(self) -> str:
        sizes = f"{len(self.train.y):,}"
        if self.validation is not None:
            sizes += f" + {len(self.validation.y):,}"
        return (
            f"Dataset({self.name!r}: {sizes} labelled items, {len(self.test.y):,} test items, "
            f"{len(self.classes)} classes)"
        )


def _stratified(
    rows: Ints, labels: NDArray[Any], share: float, seed: int, what: str
) -> tuple[Ints, Ints]:
    if not 0 < share < 1:
        raise InputError(f"the share of {what} items must lie between 0 and 1, got {share:g}.")
    try:
        kept, held = train_test_split(
            rows, test_size=share, stratify=labels[rows], random_state=seed
        )
    except ValueError as error:
        raise InputError(f"the {what} items cannot be split off: {error}") from None
    return np.sort(kept), np.sort(held)


def _stack(a: Any, b: Any) -> Any:
    if sparse.issparse(a):
        return sparse.vstack([a, b], format="csr")
    if hasattr(a, "iloc"):
        import pandas as pd

        return pd.concat([a, b], ignore_index=True)
    if isinstance(a, list):
        return a + list(b)
    return np.concatenate([np.asarray(a), np.asarray(b)])


def hash_items(digest: Any, X: Any) -> None:
    """Add items, or their labels, to a hash."""
    for array in _arrays(X):
        if array.dtype.kind in "OUS":
            text = "\0".join(map(str, array.ravel().tolist()))
            digest.update(text.encode("utf-8", "surrogatepass"))
        else:
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(f"{array.shape}".encode())


def _arrays(X: Any) -> list[NDArray[Any]]:
    if sparse.issparse(X):
        return [X.data, X.indices, X.indptr]
    return [np.asarray(X)]


def _protocol_faults(data: Dataset, protocol: Any, what: str, y: Any) -> list[str]:
    if not hasattr(protocol, "draw") or not hasattr(protocol, "count"):
        return [f"{what}: {protocol!r} draws no bags at random."]
    try:
        n_bags = protocol.count(len(data.classes))
        limit = getattr(protocol, "max_bags", n_bags)
        missing = sorted(set(data.classes.tolist()) - set(np.unique(y).tolist()))
    except InputError as error:
        return [f"{what}: {error}"]
    found = []
    if n_bags > limit:
        found.append(
            f"{what}: {len(data.classes)} classes of {data.name!r} make {n_bags:,} bags, above "
            f"max_bags={limit:,}; use kind 'uniform', or fewer points."
        )
    if missing and what == "protocol":
        found.append(f"{what}: {data.name!r} has no test items of class {missing[0]!r}.")
    if missing and what == "selection":
        found.append(f"{what}: {data.name!r} has no item of class {missing[0]!r} to select on.")
    return found
