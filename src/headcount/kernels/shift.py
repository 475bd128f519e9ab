"""How far a sample has moved from the training data: by its items (MMD) and by its labels (KLD).

The kernel matrices are summed a block of rows at a time, so that no matrix of all pairs is held.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import rel_entr

from headcount._core.types import Floats, Ints

ROWS_PER_BLOCK = 512  # distances to 10,000 items take 40 MB
LOOKED_AT = 500  # items whose distances tell where the median will lie
HISTOGRAM_CELLS = 1 << 12  # of distances: each pass narrows the interval by this factor
MAX_SORTED_DISTANCES = 1 << 20  # 8 MB; more are counted in cells again
NARROW = 1e-13  # relative width of an interval that counts as one number


def label_shift(shares: ArrayLike, training: ArrayLike) -> Floats:
    """Kullback-Leibler divergence of shares, a row a sample, from those of the training data.

    A class that the sample lacks adds nothing; one that the training data lack makes it infinite.

    Examples
    --------
    >>> label_shift([[0.5, 0.5], [1.0, 0.0]], [0.5, 0.5]).round(4).tolist()
    [0.0, 0.6931]
    """
    found = rel_entr(np.atleast_2d(np.asarray(shares, float)), np.asarray(training, float))
    return np.asarray(found.sum(axis=1))


def mmd(X: Any, Y: Any, sigma: float | None = None) -> float:
    """Maximum mean discrepancy between items, by the kernel exp(-d^2 / (2 sigma^2)).

    The root of the unbiased estimate of its square (Gretton et al., 2012, eq. 3), which does not
    depend on the sizes of the samples; 0 where that estimate is negative.

    Parameters
    ----------
    X, Y : items, dense or sparse, at least two each
    sigma : float, optional
        The median distance between the items of `X` by default.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(300, 2)), rng.normal(size=(200, 2))
    >>> mmd(X, Y) < 0.1 < mmd(X, Y + 1)
    True
    """
    width = median_distance(X) if sigma is None else sigma
    parts = mean_kernel(X, None, width), mean_kernel(Y, None, width), mean_kernel(X, Y, width)
    return discrepancy(*parts)


def discrepancy(xx: float, yy: float, xy: float) -> float:
    """MMD from the mean kernels within the two samples and between them."""
    return float(np.sqrt(max(xx + yy - 2 * xy, 0.0))) if np.isfinite(xx + yy + xy) else np.nan


def mean_kernel(X: Any, Y: Any | None, sigma: float) -> float:
    """Mean kernel of the pairs of `X` and `Y`; without `Y`, of the pairs of different items of `X`.

    NaN where there is no pair, or sigma is zero.
    """
    n = X.shape[0]
    pairs = n * (n - 1) // 2 if Y is None else n * Y.shape[0]
    if pairs == 0 or not sigma > 0:
        return np.nan
    total = 0.0
    for squares in _pairs_within(X) if Y is None else _pairs_between(X, Y):
        squares *= -0.5 / sigma**2
        total += float(np.exp(squares, out=squares).sum())
    return float(total / pairs)


def median_distance(X: Any) -> float:
    """Median Euclidean distance between items, the lower one of two; NaN for fewer than two items.

    Found by counting distances in ever narrower intervals, as exact as the distances are.

    Examples
    --------
    >>> median_distance(np.array([[0.0], [1.0], [5.0]]))
    4.0
    """
    n = X.shape[0]
    if n < 2:
        return np.nan
    rank = (n * (n - 1) // 2 - 1) // 2
    whole = 0.0, 4.0 * float(_norms(X).max())
    low, high = _likely(X)
    while high - low > NARROW * high:
        edges = np.linspace(low, high, HISTOGRAM_CELLS + 1)
        below, counts = _count(X, edges)
        if not below <= rank < below + counts.sum():
            low, high = whole
            continue
        cell = int(np.searchsorted(below + np.cumsum(counts), rank, side="right"))
        low, high = float(edges[cell]), float(edges[cell + 1])
        if counts[cell] <= MAX_SORTED_DISTANCES:
            few = np.concatenate([s[(s >= low) & (s <= high)] for s in _pairs_within(X)])
            place = rank - below - int(counts[:cell].sum())
            return float(np.sqrt(np.partition(few, place)[place]))
    return float(np.sqrt(high))


def _likely(X: Any) -> tuple[float, float]:
    """Interval of squared distances that most likely holds their median, from some of the items."""
    step = max(1, X.shape[0] // LOOKED_AT)
    some = np.concatenate(list(_pairs_within(X[::step])))
    low, high = np.quantile(some, [0.45, 0.55])
    return float(low), float(high)


def _count(X: Any, edges: Floats) -> tuple[int, Ints]:
    """Number of squared distances below the first edge, and in each cell between the edges."""
    below, counts = 0, np.zeros(len(edges) - 1, dtype=np.int64)
    for squares in _pairs_within(X):
        under = squares < edges[0]
        below += int(under.sum())
        inside = squares[~under & (squares <= edges[-1])]
        # By the edges themselves, so that a distance is in the cell that is looked into later.
        counts += np.bincount(
            np.clip(np.searchsorted(edges, inside, side="right") - 1, 0, len(counts) - 1),
            minlength=len(counts),
        )
    return below, counts


def _pairs_within(X: Any) -> Iterator[Floats]:
    """Squared distances of all pairs of different items, some at a time."""
    for start in range(0, X.shape[0], ROWS_PER_BLOCK):
        part = X[start : start + ROWS_PER_BLOCK]
        squares = _squares(part, X[start:])
        n = len(squares)
        yield squares[:, :n][np.triu_indices(n, 1)]
        yield squares[:, n:].ravel()


def _pairs_between(X: Any, Y: Any) -> Iterator[Floats]:
    for start in range(0, X.shape[0], ROWS_PER_BLOCK):
        yield _squares(X[start : start + ROWS_PER_BLOCK], Y)


def _squares(X: Any, Y: Any) -> Floats:
    """Squared distances of the rows of `X` to those of `Y`."""
    product = X @ Y.T
    product = product.toarray() if sparse.issparse(product) else np.asarray(product, float)
    squares = np.asarray(_norms(X)[:, None] + _norms(Y) - 2 * product)
    np.maximum(squares, 0.0, out=squares)
    return squares


def _norms(X: Any) -> Floats:
    squared = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    return np.asarray(squared, dtype=float).ravel()
