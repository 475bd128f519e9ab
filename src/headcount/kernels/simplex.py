"""Points on the simplex: projection, and exact least squares for many right-hand sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog, nnls

from headcount._core.types import Bools, Floats

# Of the mean square of the design: decides what the data leave open, and moves what they determine
# by a relative 1e-10 (times the condition number), far below the sampling variance.
RELATIVE_RIDGE = 1e-10


def project(v: Floats) -> Floats:
    """Nearest points of the simplex to the rows of `v` (Euclidean; sort and threshold)."""
    ordered = -np.sort(-v, axis=1)
    excess = np.cumsum(ordered, axis=1) - 1.0
    ranks = np.arange(1, v.shape[1] + 1)
    support = (ordered - excess / ranks > 0).sum(axis=1)
    threshold = excess[np.arange(len(v)), support - 1] / support
    return np.asarray(np.maximum(v - threshold[:, None], 0.0))


def clip_and_normalise(v: Floats) -> Floats:
    """Rows clipped to [0, 1] and divided by their sum; uniform where nothing is left."""
    clipped = np.clip(v, 0.0, 1.0)
    totals = clipped.sum(axis=1, keepdims=True)
    safe = np.where(totals > 0, totals, 1.0)
    return np.where(totals > 0, clipped / safe, 1.0 / v.shape[1])


def rest_columns(k: int) -> range:
    """Classes to treat one against the rest: the second of two, or all."""
    return range(1, 2) if k == 2 else range(k)


def from_each_against_rest(shares: Sequence[Floats]) -> Floats:
    """Rows on the simplex from one column for the second of two classes, or one a class."""
    if len(shares) == 1:
        return np.column_stack([1 - shares[0], shares[0]])
    return clip_and_normalise(np.column_stack(shares))


def least_squares(design: Floats, targets: Floats) -> Floats:
    """Minimise |design p - target| over the simplex, exactly, for every row of `targets`.

    Parameters
    ----------
    design : array of shape (d, k)
        Of full column rank; callers add a small ridge where it may not be.
    targets : array of shape (S, d)

    Notes
    -----
    All rows share the Gram matrix, so its inverse is taken once and each row is a small linear
    complementarity problem. Rows whose optimality conditions do not hold to rounding error, as
    happens when the design is nearly singular, are solved again by `nnls`, slower but stable.
    """
    if design.shape[1] == 2:
        line = design[:, 1] - design[:, 0]
        second = np.clip((targets - design[:, 0]) @ line / (line @ line), 0.0, 1.0)
        return np.column_stack([1 - second, second])
    gram = design.T @ design
    linear = targets @ design
    return quadratic(gram, linear, design, targets)


def quadratic(
    gram: Floats, linear: Floats, design: Floats | None = None, targets: Floats | None = None
) -> Floats:
    """Minimise p'Gp/2 - b'p over the simplex for every row b of `linear`; G positive definite.

    `gram` is one matrix for all rows or a stack with one a row. `design` and `targets` are the
    least-squares form of the same problem, if there is one: it keeps more digits when a row has
    to be solved the slow way.
    """
    from headcount.kernels.compiled.simplex import complementary

    grams = gram if gram.ndim == 3 else gram[None]
    inverse = np.linalg.inv(grams)
    ones = inverse.sum(axis=2)
    spread = inverse - ones[:, :, None] * (ones / ones.sum(axis=1, keepdims=True))[:, None, :]
    centre = _each(spread, linear) + ones / ones.sum(axis=1, keepdims=True)
    out, solved = np.empty_like(centre), np.zeros(len(centre), dtype=bool)
    complementary(centre, np.ascontiguousarray(spread), out, solved)
    for s in np.flatnonzero(~solved | ~optimal(grams, linear, out)):
        if design is None or targets is None:
            root, goal = square_root(grams[s % len(grams)], linear[s])
        else:
            root, goal = design, targets[s]
        out[s] = nearest_point(root, goal)
    return np.asarray(out)


def optimal(grams: Floats, linear: Floats, p: Floats, tol: float = 1e-10) -> Bools:
    """Whether each row satisfies the optimality conditions, relative to the scale of G."""
    slope = _each(grams, p) - linear
    gap = (p * slope).sum(axis=1) - slope.min(axis=1)
    scale = np.abs(grams).max(axis=(1, 2)) + np.abs(linear).max(axis=1)
    return np.asarray(gap <= tol * scale)


def _each(matrices: Floats, rows: Floats) -> Floats:
    """Symmetric matrix times row, one matrix for all rows or one a row."""
    if len(matrices) == 1:
        return np.asarray(rows @ matrices[0])
    return np.asarray((matrices @ rows[:, :, None])[:, :, 0])


def nearest_point(design: Floats, target: Floats) -> Floats:
    """Solve one simplex least squares by non-negative least squares, without approximation.

    With sum p = 1 the residual is (design - target 1') p, so p is the nearest point to zero of a
    convex hull. Scaling p = t u gives t^2 |r(u)|^2 + (1 - t)^2, whose minimum over t grows with
    |r(u)|: the minimiser, normalised, is the answer for any weight of the extra row of ones.
    """
    residual = design - target[:, None]
    weight = max(float(np.abs(residual).max()), 1e-8)
    stacked = np.vstack([residual, np.full((1, design.shape[1]), weight)])
    goal = np.zeros(len(stacked))
    goal[-1] = weight
    p: Floats = nnls(stacked, goal)[0]
    return np.asarray(p / p.sum())


def square_root(gram: Floats, linear: Floats) -> tuple[Floats, Floats]:
    """Write a positive definite quadratic as least squares: G = R'R and b = R'q."""
    values, vectors = np.linalg.eigh(gram)
    roots = np.sqrt(np.maximum(values, values.max() * 1e-15))
    return (vectors * roots).T, (linear @ vectors) / roots


def pulled_least_squares(
    design: Floats, targets: Floats, centre: Floats, tau: float = 0.0
) -> Floats:
    """Simplex least squares in which what is left open goes to `centre`."""
    k = design.shape[1]
    pull = np.sqrt(RELATIVE_RIDGE * (design**2).sum() / k)
    smooth = np.sqrt(tau / 2) * np.diff(np.eye(k), n=2, axis=0)
    stacked = np.vstack([design, pull * np.eye(k), smooth])
    n = len(targets)
    goals = np.hstack([targets, np.broadcast_to(pull * centre, (n, k)), np.zeros((n, len(smooth)))])
    return least_squares(stacked, goals)


def roughness(k: int, first: float = 0.0, second: float = 0.0) -> Floats:
    """Matrix R with p'Rp = first |first differences|^2 + second |second differences|^2."""
    d1 = np.diff(np.eye(k), axis=0)
    d2 = np.diff(np.eye(k), n=2, axis=0)
    return np.asarray(first * d1.T @ d1 + second * d2.T @ d2)


def least_absolute(rows: Floats, target: Floats) -> Floats:
    """Minimise |V p - q|_1 over the simplex, a linear programme."""
    k, n = rows.shape
    slack = -np.eye(n)
    found = linprog(
        np.concatenate([np.zeros(k), np.ones(n)]),
        A_ub=np.block([[rows.T, slack], [-rows.T, slack]]),
        b_ub=np.concatenate([target, -target]),
        A_eq=np.concatenate([np.ones(k), np.zeros(n)])[None],
        b_eq=[1.0],
    )
    p = np.maximum(found.x[:k], 0.0)
    return np.asarray(p / p.sum())
