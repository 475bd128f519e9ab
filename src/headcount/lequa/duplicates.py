"""Find equal and nearly equal texts of a corpus, so that no text is in two parts of a lab."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.types import Bools, Ints

WORD = re.compile(r"\w+")
SHINGLE = 3  # words that are compared together
# Pairs with a Jaccard index of 0.8 share a band with probability 1 - (1 - 0.8^4)^16 = 0.9998
# (locality-sensitive hashing: Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, 3.4).
BANDS, ROWS_PER_BAND = 16, 4
TEXTS_PER_BLOCK = 20_000  # hashed at once
MIX = np.uint64(0xBF58476D1CE4E5B9)
PRIME = np.uint64((1 << 61) - 1)


@dataclass(frozen=True, eq=False)
class Repeats:
    """Which texts to keep, and how many are left out and why."""

    keep: Bools
    equal: int
    near: int

    def __str__(self) -> str:
        return f"left out {self.equal:,} equal and {self.near:,} nearly equal texts"


def find_repeats(texts: Sequence[str] | NDArray[Any], threshold: float | None = 0.8) -> Repeats:
    """Mark all but the first of equal and nearly equal texts.

    Texts are equal if their words are, whatever their case, spaces and punctuation; nearly equal
    if the sets of their runs of three words have a Jaccard index of at least `threshold` (None:
    only equal ones count). Candidates are found by MinHash signatures and then compared exactly.

    Examples
    --------
    >>> found = find_repeats(["Good value!", "good  value", "Poor value."])
    >>> found.keep.tolist(), str(found)
    ([True, False, True], 'left out 1 equal and 0 nearly equal texts')
    """
    words = [WORD.findall(str(text).casefold()) for text in texts]
    keep = np.ones(len(words), dtype=bool)
    seen: dict[tuple[str, ...], int] = {}
    for i, each in enumerate(words):
        keep[i] = seen.setdefault(tuple(each), i) == i
    equal = int((~keep).sum())
    if threshold is not None:
        rows = np.flatnonzero(keep)
        sets = _Shingles([words[i] for i in rows])
        for i in sorted(sets.later_of_pairs(threshold)):
            keep[rows[i]] = False
    return Repeats(keep, equal, int((~keep).sum()) - equal)


class _Shingles:
    """Hashes of the runs of words of every text."""

    def __init__(self, words: list[list[str]]):
        codes: dict[str, int] = {}
        self.sets = [_hash_runs([codes.setdefault(w, len(codes) + 1) for w in t]) for t in words]

    def later_of_pairs(self, threshold: float) -> set[int]:
        """Numbers of the texts that are nearly equal to an earlier one that is kept."""
        dropped: set[int] = set()
        signatures = self._signatures()
        for band in range(BANDS):
            keys = _mixed(signatures[:, band * ROWS_PER_BAND : (band + 1) * ROWS_PER_BAND])
            order = np.argsort(keys, kind="stable")
            groups = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
            for group in groups:
                if len(group) > 1:
                    self._compare(group.tolist(), threshold, dropped)
        return dropped

    def _compare(self, group: list[int], threshold: float, dropped: set[int]) -> None:
        """Drop each text of a group that is nearly equal to an earlier one of it."""
        kept: list[int] = []
        for i in group:
            if i in dropped:
                continue
            if any(_jaccard(self.sets[i], self.sets[j]) >= threshold for j in kept):
                dropped.add(i)
            else:
                kept.append(i)

    def _signatures(self) -> NDArray[np.uint64]:
        """MinHash signatures: the least of each text's hashes under each of many hash functions."""
        rng = np.random.default_rng(0)  # any functions do; the outcome is compared exactly
        factors = rng.integers(1, 1 << 61, BANDS * ROWS_PER_BAND, dtype=np.uint64) | np.uint64(1)
        shifts = rng.integers(1 << 61, size=BANDS * ROWS_PER_BAND, dtype=np.uint64)
        parts = []
        for start in range(0, len(self.sets), TEXTS_PER_BLOCK):
            sets = self.sets[start : start + TEXTS_PER_BLOCK]
            flat = np.concatenate(sets)
            begins = np.concatenate([[0], np.cumsum([len(s) for s in sets])[:-1]])
            with np.errstate(over="ignore"):
                rows = [
                    np.minimum.reduceat((flat * a + b) >> np.uint64(3), begins)
                    for a, b in zip(factors, shifts, strict=True)
                ]
            parts.append(np.column_stack(rows))
        return np.concatenate(parts)


def _mixed(columns: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One number for each row of numbers."""
    with np.errstate(over="ignore"):
        total = np.zeros(len(columns), dtype=np.uint64)
        for column in columns.T:
            total = (total ^ column) * MIX
            total ^= total >> np.uint64(31)
    return total


def _hash_runs(codes: list[int]) -> NDArray[np.uint64]:
    """Distinct hashes of all runs of words; a shorter text is one run."""
    words = np.array(codes or [0], dtype=np.uint64)
    length = min(SHINGLE, len(words))
    with np.errstate(over="ignore"):
        total = np.zeros(len(words) - length + 1, dtype=np.uint64)
        for t in range(length):
            total = total * PRIME + words[t : len(words) - length + 1 + t]
        total ^= total >> np.uint64(29)
        return np.unique(total * MIX)


def _jaccard(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> float:
    shared = len(np.intersect1d(a, b, assume_unique=True))
    return shared / (len(a) + len(b) - shared)


def repeated_inside(indptr: Ints, indices: NDArray[Any]) -> Ints:
    """Number of items that each bag holds more than once."""
    n_bags = len(indptr) - 1
    owner = np.repeat(np.arange(n_bags), np.diff(indptr))
    pairs = np.unique(np.column_stack([owner, indices]), axis=0)
    return np.asarray(np.diff(indptr) - np.bincount(pairs[:, 0], minlength=n_bags))
