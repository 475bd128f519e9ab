"""Bags: which items of a pool belong to which sample. A sample is never copied out of its pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from headcount import _validation as check
from headcount.exceptions import InputError
from headcount.kernels.threads import over_ranges

PERIODS = {"year": "Y", "month": "M", "week": "W", "day": "D", "hour": "h"}
_CHUNK_ITEMS = 1 << 22  # memory of a pass over sparse features stays below 100 MB


@dataclass(frozen=True, eq=False)
class Bags:
    """Index sets over a pool of items, in the manner of a CSR matrix.

    Bag s holds the items ``indices[indptr[s]:indptr[s + 1]]``, in ascending order; an item may
    be in many bags, and many times in one. Use the ``from_...`` constructors or a protocol.

    Parameters
    ----------
    indptr, indices : integer arrays
    n_items : int
        Size of the pool.
    ids : array, optional
        A name for each bag; 0, 1, ... by default.
    prevalence : array of shape (n_bags, n_classes), optional
        True share of each class in each bag, if known.
    classes : array, optional
        The class of each column of `prevalence`.

    Examples
    --------
    >>> bags = Bags.from_groups(["may", "june", "may"], y=["neg", "pos", "pos"])
    >>> bags
    Bags(2 bags of 1 to 2 items, pool of 3, true prevalences of 2 classes)
    >>> bags.ids.tolist(), bags.prevalence.tolist()
    (['june', 'may'], [[0.0, 1.0], [0.5, 0.5]])
    >>> bags.means(np.array([[1.0], [5.0], [2.0]])).tolist()
    [[5.0], [1.5]]
    """

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    n_items: int
    ids: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    prevalence: NDArray[np.float64] | None = None
    classes: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        indptr = np.ascontiguousarray(self.indptr, dtype=np.int64)
        indices = _sorted(indptr, _narrow(self.indices, self.n_items))
        ids = np.asarray(self.ids) if len(self.ids) else np.arange(len(indptr) - 1)
        for name, value in (("indptr", indptr), ("indices", indices), ("ids", ids)):
            object.__setattr__(self, name, value)
        if len(ids) != len(self):
            raise InputError(f"{len(ids)} ids for {len(self)} bags: one each is expected.")
        empty = np.flatnonzero(np.diff(indptr) <= 0)
        if len(empty):
            raise InputError(
                f"bag {ids.tolist()[empty[0]]!r} is empty ({len(empty)} of {len(self)} bags are): "
                "a share of nothing is undefined. Leave empty bags out."
            )

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __repr__(self) -> str:
        sizes = self.sizes
        spread = f"{sizes.min()} to {sizes.max()}" if np.ptp(sizes) else f"{sizes[0]}"
        truth = (
            f", true prevalences of {self.prevalence.shape[1]} classes"
            if self.prevalence is not None
            else ""
        )
        return f"Bags({len(self)} bags of {spread} items, pool of {self.n_items}{truth})"

    def __getitem__(self, which: slice | ArrayLike) -> Bags:
        """Subset of the bags, over the same pool."""
        rows = np.arange(len(self))[which if isinstance(which, slice) else np.asarray(which)]
        rows = np.atleast_1d(rows)
        sizes = self.sizes[rows]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], sizes)
        indices = self.indices[np.repeat(self.indptr[rows], sizes) + within]
        truth = None if self.prevalence is None else self.prevalence[rows]
        return replace(self, indptr=indptr, indices=indices, ids=self.ids[rows], prevalence=truth)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Items of each bag in turn."""
        return (self.items(s) for s in range(len(self)))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of items in each bag."""
        return np.diff(self.indptr)

    def items(self, s: int) -> NDArray[Any]:
        """Items of bag number `s`."""
        return self.indices[self.indptr[s] : self.indptr[s + 1]]

    def with_truth(self, y: ArrayLike, classes: ArrayLike | None = None) -> Bags:
        """Same bags with the realised prevalence of each, counted from the pool's labels."""
        array = check.labels(y)
        if len(array) != self.n_items:
            raise InputError(f"y has {len(array)} labels for a pool of {self.n_items} items.")
        known, codes = check.encode(array, classes)
        return replace(self, prevalence=self.shares(codes, len(known)), classes=known)

    def shares(
        self, codes: NDArray[np.integer[Any]], n_codes: int, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Share of each code 0..n_codes-1 among the items of each bag."""
        from headcount.kernels.compiled.bags import bag_counts

        narrow: Any = codes.astype(np.int8 if n_codes < 128 else np.int32)
        counts = np.zeros((len(self), n_codes), dtype=np.int64)
        over_ranges(
            lambda a, b: bag_counts(narrow, self.indptr, self.indices, counts, a, b),
            len(self),
            n_jobs,
        )
        return counts / self.sizes[:, None]

    def means(self, features: Any, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Mean of a feature matrix over each bag: one product, for dense or sparse features."""
        if features.shape[0] != self.n_items:
            raise InputError(f"{features.shape[0]} rows of features for {self.n_items} items.")
        if sp.issparse(features):
            parts = [part._membership() @ features for part in self.chunks()]
            dense = np.vstack([part.toarray() for part in parts])
            return np.asarray(dense / self.sizes[:, None])
        from headcount.kernels.compiled import bags as kernels

        out = np.empty((len(self), features.shape[1]))
        if features.shape[1] == 1:
            values, target, kernel = features[:, 0], out[:, 0], kernels.bag_mean_column
        else:
            values, target, kernel = features, out, kernels.bag_means
        values = np.ascontiguousarray(values, dtype=np.float64)
        over_ranges(
            lambda a, b: kernel(values, self.indptr, self.indices, target, a, b), len(self), n_jobs
        )
        return out

    def chunks(self, max_items: int = _CHUNK_ITEMS) -> Iterator[Bags]:
        """Consecutive runs of bags that together hold about `max_items` items."""
        start = 0
        while start < len(self):
            limit = self.indptr[start] + max_items
            stop = int(np.searchsorted(self.indptr, limit, side="right")) - 1
            stop = min(max(stop, start + 1), len(self))
            yield self[start:stop]
            start = stop

    def _membership(self) -> sp.csr_array:
        shape = (len(self), self.n_items)
        return sp.csr_array((np.ones(len(self.indices)), self.indices, self.indptr), shape=shape)

    @classmethod
    def single(cls, n_items: int) -> Bags:
        """One bag that holds the whole pool."""
        return cls(np.array([0, n_items]), np.arange(n_items), n_items)

    @classmethod
    def from_lists(
        cls,
        lists: Sequence[ArrayLike],
        n_items: int,
        *,
        ids: ArrayLike | None = None,
        y: ArrayLike | None = None,
    ) -> Bags:
        """Bags given as lists of item numbers of a pool of `n_items`."""
        arrays = [np.asarray(a) for a in lists]
        if not arrays:
            raise InputError("no bags: the list is empty.")
        if any(a.dtype.kind not in "iu" for a in arrays if a.size):
            raise InputError("bags must hold whole numbers: positions of items in the pool.")
        indptr = np.concatenate([[0], np.cumsum([len(a) for a in arrays])])
        joined = np.concatenate(arrays).astype(np.int64)
        if len(joined) and (joined.min() < 0 or joined.max() >= n_items):
            raise InputError(
                f"a bag holds item {joined.min() if joined.min() < 0 else joined.max()}, and the "
                f"pool has items 0 to {n_items - 1}."
            )
        bags = cls(indptr, joined, n_items, np.empty(0) if ids is None else np.asarray(ids))
        return bags if y is None else bags.with_truth(y)

    @classmethod
    def from_groups(cls, groups: Any, *, y: ArrayLike | None = None) -> Bags:
        """One bag for each distinct value of a column."""
        array = check.column(groups, "groups")
        if array.dtype.kind == "O":
            array = _text_groups(array)
        missing = np.isnat(array) if array.dtype.kind in "mM" else array != array
        if np.any(missing):
            raise InputError(
                f"the group is missing at row {int(np.argmax(missing))}. Fill or drop those rows."
            )
        names, codes = np.unique(array, return_inverse=True)
        order = np.argsort(codes, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(names)))])
        bags = cls(indptr, order, len(array), names)
        return bags if y is None else bags.with_truth(y)

    @classmethod
    def from_time(cls, times: Any, *, every: str = "month", y: ArrayLike | None = None) -> Bags:
        """One bag for each period of a time column: year, month, week, day or hour."""
        from headcount.exceptions import choose

        unit = PERIODS[choose("period", every, PERIODS)]
        array = check.column(times, "times")
        try:
            stamps = array.astype("datetime64[s]")
        except (TypeError, ValueError) as error:
            raise InputError(
                f"times cannot be read as dates ({error}). Expected datetimes or ISO texts such "
                "as 2026-11-30."
            ) from None
        return cls.from_groups(stamps.astype(f"datetime64[{unit}]"), y=y)

    @classmethod
    def from_samples(
        cls, samples: Sequence[Any], *, ids: ArrayLike | None = None
    ) -> tuple[Any, Bags]:
        """Stack samples that come as matrices of their own; gives the pool and its bags."""
        if not len(samples):
            raise InputError("no samples: the list is empty.")
        sizes = [s.shape[0] for s in samples]
        pool: Any = (
            sp.vstack(list(samples), format="csr")
            if sp.issparse(samples[0])
            else np.vstack([np.asarray(s) for s in samples])
        )
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        names = np.empty(0) if ids is None else np.asarray(ids)
        return pool, cls(indptr, np.arange(indptr[-1]), int(indptr[-1]), names)


def _narrow(indices: NDArray[Any], n_items: int) -> NDArray[Any]:
    """32 bits an index where the pool allows it: half the memory traffic."""
    return np.ascontiguousarray(indices, dtype=np.int32 if n_items < 2**31 else np.int64)


def _sorted(indptr: NDArray[np.int64], indices: NDArray[Any]) -> NDArray[Any]:
    """Indices in ascending order within each bag."""
    falls = np.flatnonzero(indices[1:] < indices[:-1]) + 1
    starts = indptr[1:-1]
    at = np.searchsorted(starts, falls)
    inner = (at == len(starts)) | (np.append(starts, -1)[at] != falls)
    if not inner.any():
        return indices
    bag = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return np.ascontiguousarray(indices[np.lexsort((indices, bag))])


def _text_groups(array: NDArray[Any]) -> NDArray[Any]:
    missing = np.array([v is None or v != v for v in array], dtype=bool)
    if missing.any():
        raise InputError(
            f"the group is missing at row {int(np.argmax(missing))}. Fill or drop those rows."
        )
    return np.array(array.tolist())
