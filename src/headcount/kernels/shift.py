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

from headcount._core.types import Floats

ROWS = 512  # of a block
CELLS = 1 << 14  # of a histogram of distances
FEW = 1 << 20  # distances that are sorted
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
    pairs = n * (n - 1) if Y is None else n * Y.shape[0]
    if pairs == 0 or not sigma > 0:
        return np.nan
    total = 0.0
    for start, squares in _squares(X, X if Y is None else Y):
        np.multiply(squares, -0.5 / sigma**2, out=squares)
        np.exp(squares, out=squares)
        total += float(squares.sum())
        if Y is None:  # an item is no pair with itself
            own = np.arange(len(squares))
            total -= float(squares[own, start + own].sum())
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
    low, high = 0.0, 4.0 * float(_norms(X).max()) + 1e-300
    rank = (n * (n - 1) // 2 - 1) // 2  # among the squared distances from `low` on
    while high - low > NARROW * high:
        counts = np.zeros(CELLS, dtype=np.int64)
        edges = np.linspace(low, high, CELLS + 1)
        for inside in _distances_within(X, low, high):
            counts += np.histogram(inside, bins=edges)[0]
        cell = int(np.searchsorted(np.cumsum(counts), rank, side="right"))
        rank -= int(counts[:cell].sum())
        # The last cell is closed, the others are open above.
        low, high = float(edges[cell]), float(edges[cell + 1])
        if cell < CELLS - 1:
            high = float(np.nextafter(high, -np.inf))
        if counts[cell] <= FEW:
            few = np.concatenate(list(_distances_within(X, low, high)))
            return float(np.sqrt(np.partition(few, rank)[rank]))
    return float(np.sqrt(high))


def _distances_within(X: Any, low: float, high: float) -> Iterator[Floats]:
    """Squared distances of the pairs of different items that lie in an interval."""
    for start, squares in _squares(X, X):
        rows, columns = np.arange(len(squares))[:, None], np.arange(squares.shape[1])
        later = columns > start + rows
        found = squares[later]
        yield found[(found >= low) & (found <= high)]


def _squares(X: Any, Y: Any) -> Iterator[tuple[int, Floats]]:
    """Squared distances of some rows of `X` to all of `Y`, with the number of the first row."""
    mine, other = _norms(X), _norms(Y)
    for start in range(0, X.shape[0], ROWS):
        part = X[start : start + ROWS]
        product = part @ Y.T
        product = product.toarray() if sparse.issparse(product) else np.asarray(product, float)
        squares = mine[start : start + ROWS, None] + other - 2 * product
        yield start, np.maximum(squares, 0.0, out=squares)


def _norms(X: Any) -> Floats:
    squared = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    return np.asarray(squared, dtype=float).ravel()
