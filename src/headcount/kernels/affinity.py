"""Mean distance or kernel between every item and every class, in bounded memory.

All methods that compare a bag with the classes through pairs of items need no more than this
table (a row an item, a column a class): its mean over the bag is the comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.spatial.distance import cdist

from headcount._core.types import Floats, Ints

_BLOCK = 1 << 20  # pairs handled at once


def by_class(rows: Floats, codes: Ints, k: int) -> list[Floats]:
    """Rows of each class."""
    return [np.ascontiguousarray(rows[codes == c]) for c in range(k)]


def gaussian_means(items: Floats, classes: list[Floats], bandwidth: float) -> Floats:
    """Mean of exp(-|x - y|^2 / 2h^2) over the items y of each class, for every item x.

    Single precision is enough unless the kernel is very narrow, and twice as fast.
    """
    dtype = np.float32 if bandwidth >= 0.03 else np.float64
    scale = 1.0 / bandwidth
    stacked = np.vstack(classes) * scale
    centre = stacked.mean(axis=0)
    reference = (stacked - centre).astype(dtype)
    half = 0.5 * (reference.astype(np.float64) ** 2).sum(axis=1)
    ends = np.cumsum([0] + [len(c) for c in classes])
    table = np.ascontiguousarray(reference.T)

    def block(x: Floats) -> Floats:
        z = (x * scale - centre).astype(dtype)
        power = z @ table
        power -= half.astype(dtype)
        power -= (0.5 * (z.astype(np.float64) ** 2).sum(axis=1)).astype(dtype)[:, None]
        np.minimum(power, 0, out=power)
        np.exp(power, out=power)
        return np.column_stack([power[:, a:b].mean(axis=1) for a, b in pairwise(ends)])

    return blocked(items, len(stacked), len(classes), block)


def manhattan_means(items: Floats, classes: list[Floats]) -> Floats:
    """Mean of |x - y|_1 over the items y of each class, for every item x.

    Coordinate by coordinate on sorted values, so the cost is that of sorting.
    """
    from headcount.kernels.compiled.scores import mean_gaps

    out = np.zeros((len(items), len(classes)))
    for j in range(items.shape[1]):
        column = np.ascontiguousarray(items[:, j])
        order = np.argsort(column, kind="stable")
        for c, rows in enumerate(classes):
            mean_gaps(column, order, np.sort(rows[:, j]), out[:, c])
    return out


def euclidean_means(items: Floats, classes: list[Floats]) -> Floats:
    """Mean of |x - y|_2 over the items y of each class, for every item x."""
    widest = max(len(rows) for rows in classes)
    return blocked(
        items,
        widest,
        len(classes),
        lambda x: np.column_stack([cdist(x, rows).mean(axis=1) for rows in classes]),
    )


def blocked(items: Floats, n_reference: int, k: int, block: Callable[[Floats], Floats]) -> Floats:
    """Apply `block` to some items at a time, so that a row may need `n_reference` numbers."""
    out = np.empty((len(items), k))
    step = max(1, _BLOCK // n_reference)
    for start in range(0, len(items), step):
        out[start : start + step] = block(items[start : start + step])
    return out
