"""Counter-based random numbers: what bag i gets depends on (seed, i) alone.

The generator is splitmix64 (Steele, Lea and Flood, 2014). A stream starts at a hash of the
seed, the stream's name and the bag's number, so that a subset of the bags, a longer series or
another order of work sees the same numbers.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.types import Floats
from headcount.exceptions import InputError

GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)
HASHED_STEPS = 1e4  # steps of a score that tell items apart in a hash


def as_seed(random_state: object) -> int:
    """Turn None, an integer, a Generator or a RandomState into an integer seed."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    raise InputError(
        f"random_state must be None, a non-negative integer or a numpy generator, "
        f"got {random_state!r}."
    )


def streams(seed: int, name: str, n: int) -> NDArray[np.uint64]:
    """Start states of the streams `name` of bags 0..n-1."""
    key = zlib.crc32(name.encode())
    root = np.array([seed % 2**64, key], dtype=np.uint64)
    with np.errstate(over="ignore"):
        base = _mix(_mix(root[0] + GAMMA) ^ (root[1] * GAMMA))
        return _mix(base + (np.arange(1, n + 1, dtype=np.uint64) * GAMMA))


def uniforms(seed: int, name: str, n: int, width: int) -> Floats:
    """Uniform numbers in [0, 1), `width` for each of `n` bags."""
    with np.errstate(over="ignore"):
        steps = np.arange(1, width + 1, dtype=np.uint64) * GAMMA
        bits = _mix(streams(seed, name, n)[:, None] + steps)
    return np.asarray((bits >> np.uint64(11)) * (1.0 / 2**53), dtype=np.float64)


def _mix(z: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    z = np.asarray(z)
    z = (z ^ (z >> np.uint64(30))) * MIX1
    z = (z ^ (z >> np.uint64(27))) * MIX2
    return np.asarray(z ^ (z >> np.uint64(31)))


def keyed_uniforms(seed: int, keys: NDArray[np.uint64], width: int) -> Floats:
    """Uniform numbers in (0, 1), `width` for each key: equal keys give equal numbers."""
    root = streams(seed, "keys", 1)[0]
    with np.errstate(over="ignore"):
        states = _mix(keys ^ root)
        bits = _mix(states[:, None] + np.arange(1, width + 1, dtype=np.uint64) * GAMMA)
    return np.asarray(((bits >> np.uint64(11)) + 0.5) * (1.0 / 2**53), dtype=np.float64)


def content_keys(scores: Floats, indptr: NDArray[Any], indices: NDArray[Any]) -> NDArray[np.uint64]:
    """Hash of the items of each bag that does not depend on their order or on the last digits.

    Parameters
    ----------
    scores : array of shape (items, columns)
    indptr, indices : the bags, as in `Bags`
    """
    digits = np.round(scores * HASHED_STEPS).astype(np.int64).view(np.uint64)
    with np.errstate(over="ignore"):
        item = np.full(len(scores), GAMMA, dtype=np.uint64)
        for column in np.ascontiguousarray(digits.T):
            item = _mix(item + _mix(column * MIX1 + GAMMA))
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(item[indices])])
        return _mix(sums[indptr[1:]] - sums[indptr[:-1]])
