"""Bags: which items of a pool belong to which sample. A sample is never copied out of its pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from headcount._core import validation as check
from headcount._core.calendar import period_codes, period_starts
from headcount._core.types import Floats, Ints
from headcount.exceptions import InputError
from headcount.kernels.threads import over_ranges

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

    indptr: Ints
    indices: NDArray[Any]
    n_items: int
    ids: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    prevalence: Floats | None = None
    classes: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        check.whole("n_items", self.n_items, 0)
        indptr = np.ascontiguousarray(self.indptr, dtype=np.int64)
        _check_structure(indptr, np.asarray(self.indices), self.n_items)
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
        if self.prevalence is not None:
            rows = check.prevalences(self.prevalence, "true prevalences of the bags")
            if len(rows) != len(self):
                raise InputError(f"{len(rows)} rows of prevalences for {len(self)} bags.")

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
        if not len(rows):
            raise InputError("no bags: at least one is needed.")
        # Bags of sound bags are sound: nothing is checked again.
        chosen = Bags.unchecked(indptr, indices, self.n_items)
        truth = None if self.prevalence is None else self.prevalence[rows]
        known = {"ids": self.ids[rows], "prevalence": truth, "classes": self.classes}
        for name, value in known.items():
            object.__setattr__(chosen, name, value)
        return chosen

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Items of each bag in turn."""
        return (self.items(s) for s in range(len(self)))

    @property
    def sizes(self) -> Ints:
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
    ) -> Floats:
        """Share of each code 0..n_codes-1 among the items of each bag."""
        from headcount.kernels.compiled.bags import bag_counts

        if len(codes) != self.n_items:
            raise InputError(f"{len(codes)} codes for a pool of {self.n_items} items.")
        if codes.min() < 0 or codes.max() >= n_codes:
            raise InputError(f"codes must lie between 0 and {n_codes - 1}.")
        narrow: Any = codes.astype(np.int8 if n_codes < 128 else np.int32)
        counts = np.zeros((len(self), n_codes), dtype=np.int64)
        over_ranges(
            lambda a, b: bag_counts(narrow, self.indptr, self.indices, counts, a, b),
            len(self),
            n_jobs,
        )
        return counts / self.sizes[:, None]

    def means(self, features: Any, n_jobs: int | None = None) -> Floats:
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

    def histograms(self, cells: NDArray[Any], n_cells: int, n_jobs: int | None = None) -> Floats:
        """Share of each bag's items in each cell; an item has one cell in every column."""
        from headcount.kernels.compiled.matching import bag_histograms

        out = np.empty((len(self), n_cells))
        narrow: Any = np.ascontiguousarray(cells, dtype=np.uint16 if n_cells < 2**16 else np.uint32)
        over_ranges(
            lambda a, b: bag_histograms(narrow, self.indptr, self.indices, out, a, b),
            len(self),
            n_jobs,
        )
        return out

    @classmethod
    def side_by_side(cls, several: Sequence[Bags]) -> Bags:
        """Each bag with all its items in several pools that are stacked one after the other."""
        if len(several) == 1:
            return several[0]
        offsets = np.cumsum([0, *[bags.n_items for bags in several]])
        n_bags = len(several[0])
        owner = np.concatenate([np.repeat(np.arange(n_bags), bags.sizes) for bags in several])
        items = [
            bags.indices.astype(np.int64) + at for bags, at in zip(several, offsets, strict=False)
        ]
        order = np.argsort(owner, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_bags))])
        return cls.unchecked(indptr, np.concatenate(items)[order], int(offsets[-1]))

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
        check.whole("n_items", n_items, 0)
        arrays = [np.asarray(a) for a in lists]
        if not arrays:
            raise InputError("no bags: the list is empty.")
        if any(a.ndim != 1 for a in arrays):
            raise InputError("each bag must be a list of item numbers.")
        if any(a.dtype.kind not in "iu" for a in arrays if a.size):
            raise InputError("bags must hold whole numbers: positions of items in the pool.")
        indptr = np.concatenate([[0], np.cumsum([len(a) for a in arrays])])
        joined = np.concatenate(arrays).astype(np.int64)
        bags = cls(indptr, joined, n_items, np.empty(0) if ids is None else np.asarray(ids))
        return bags if y is None else bags.with_truth(y)

    @classmethod
    def from_groups(cls, groups: Any, *, y: ArrayLike | None = None) -> Bags:
        """One bag for each distinct value of a column."""
        array = check.present(check.column(groups, "groups"), "the group")
        if len(array) == 0:
            raise InputError("there are no items to group.")
        names, codes = np.unique(array, return_inverse=True)
        order = np.argsort(codes, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(names)))])
        bags = cls(indptr, order, len(array), names)
        return bags if y is None else bags.with_truth(y)

    @classmethod
    def from_time(cls, times: Any, *, every: str = "month", y: ArrayLike | None = None) -> Bags:
        """One bag for each period of a time column: year, quarter, month, week, day or hour.

        Weeks start on Monday. Times with a time zone are cut by their own wall clock.
        """
        from headcount._core.dates import wall_times  # which needs Arrow

        stamps = wall_times(times)
        if np.isnat(stamps).any():
            raise InputError("a time is missing (NaT): fill or drop those rows.")
        codes = period_codes(stamps.astype(np.int64), every)
        return cls.from_groups(period_starts(codes, every), y=y)

    @classmethod
    def unchecked(cls, indptr: Ints, indices: NDArray[Any], n_items: int) -> Bags:
        """Bags that are sound by construction: nothing is checked, and items are not sorted."""
        bags = object.__new__(cls)
        values = (indptr, _narrow(indices, n_items), n_items, np.arange(len(indptr) - 1))
        for name, value in zip(("indptr", "indices", "n_items", "ids"), values, strict=True):
            object.__setattr__(bags, name, value)
        return bags

    @classmethod
    def from_samples(
        cls, samples: Sequence[Any], *, ids: ArrayLike | None = None
    ) -> tuple[Any, Bags]:
        """Stack samples that come one by one; gives the pool and its bags.

        Samples are matrices with the same columns, dense or sparse, or lists of texts.
        """
        if not len(samples):
            raise InputError("no samples: the list is empty.")
        pool: Any
        if sp.issparse(samples[0]):
            pool = sp.vstack(list(samples), format="csr")
        elif np.ndim(samples[0]) == 1:
            pool = [item for sample in samples for item in sample]
        else:
            pool = np.vstack([np.asarray(s) for s in samples])
        sizes = [s.shape[0] if hasattr(s, "shape") else len(s) for s in samples]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        names = np.empty(0) if ids is None else np.asarray(ids)
        return pool, cls(indptr, np.arange(indptr[-1]), int(indptr[-1]), names)


def _narrow(indices: NDArray[Any], n_items: int) -> NDArray[Any]:
    """32 bits an index where the pool allows it: half the memory traffic."""
    return np.ascontiguousarray(indices, dtype=np.int32 if n_items < 2**31 else np.int64)


def _sorted(indptr: Ints, indices: NDArray[Any]) -> NDArray[Any]:
    """Indices in ascending order within each bag."""
    falls = np.flatnonzero(indices[1:] < indices[:-1]) + 1
    starts = indptr[1:-1]
    at = np.searchsorted(starts, falls)
    inner = (at == len(starts)) | (np.append(starts, -1)[at] != falls)
    if not inner.any():
        return indices
    above = np.int64(indices.max()) + 1  # one key for bag and item sorts much faster than two
    base = np.repeat(np.arange(len(indptr) - 1) * above, np.diff(indptr))
    return np.ascontiguousarray(np.sort(base + indices) - base, dtype=indices.dtype)


def _check_structure(indptr: Ints, indices: NDArray[Any], n_items: int) -> None:
    """Refuse what would make a kernel read outside the pool."""
    if indptr.ndim != 1 or len(indptr) < 2:
        raise InputError("no bags: at least one is needed.")
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise InputError("indptr must rise from 0 to the number of indices.")
    if len(indices) and indices.dtype.kind not in "iu":
        raise InputError("bags must hold whole numbers: positions of items in the pool.")
    if len(indices) and (indices.min() < 0 or indices.max() >= n_items):
        wrong = indices.min() if indices.min() < 0 else indices.max()
        raise InputError(f"a bag holds item {wrong}, and the pool has items 0 to {n_items - 1}.")
