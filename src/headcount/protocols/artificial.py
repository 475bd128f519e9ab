"""Protocols that set the class shares of each bag by design, then draw items to match."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincinv, softmax

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.kernels.random import as_seed, streams, uniforms


@dataclass(frozen=True, kw_only=True)
class ArtificialProtocol(ABC):
    """Base of the protocols that choose prevalences and then items.

    Items of a class are drawn without replacement while the class has enough of them, else with
    replacement. The true prevalence of a bag is the realised one. What bag i holds depends on
    the seed and on i alone.
    """

    size: int = 100
    random_state: int | np.random.Generator | np.random.RandomState | None = None

    def __post_init__(self) -> None:
        check.whole("size", self.size)

    @abstractmethod
    def count(self, n_classes: int) -> int:
        """Tell how many bags there will be for this number of classes."""

    @abstractmethod
    def prevalences(self, n_classes: int, seed: int, natural: Floats) -> Floats:
        """Target prevalence of each bag; `natural` is that of the pool."""

    def draw(self, y: ArrayLike, *, classes: ArrayLike | None = None) -> Bags:
        """Draw bags from a pool with labels `y`.

        Parameters
        ----------
        y : array of labels
        classes : array, optional
            Classes and their order; by default those of `y`, sorted. Give the quantifier's
            ``classes_`` if the pool may lack one.

        Returns
        -------
        Bags
            With the realised prevalence of every bag.
        """
        known, codes = check.encode(check.labels(y), classes)
        check.two_or_more(known)
        seed = as_seed(self.random_state)
        class_sizes = np.bincount(codes, minlength=len(known))
        target = self.prevalences(len(known), seed, class_sizes / len(codes))
        counts = round_counts(target, self.size, uniforms(seed, "rounding", len(target), 1)[:, 0])
        _refuse_missing(known, class_sizes, counts)
        return fill_bags(counts, codes, class_sizes, streams(seed, "items", len(counts)), known)


@dataclass(frozen=True, kw_only=True)
class UniformPrevalence(ArtificialProtocol):
    """Prevalences uniform on the simplex, by Kraemer's sorted spacings: the protocol of LeQua.

    Parameters
    ----------
    n_bags : int, default 1000
    size : int, default 100
        Items in each bag.
    random_state : int, generator or None

    Examples
    --------
    >>> y = ["neg"] * 900 + ["pos"] * 100
    >>> UniformPrevalence(n_bags=5000, size=250, random_state=0).draw(y)
    Bags(5000 bags of 250 items, pool of 1000, true prevalences of 2 classes)
    """

    n_bags: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check.whole("n_bags", self.n_bags)

    def count(self, n_classes: int) -> int:  # noqa: ARG002 - the same for any number
        """Tell how many bags there will be."""
        return self.n_bags

    def prevalences(self, n_classes: int, seed: int, natural: Floats) -> Floats:  # noqa: ARG002
        """Draw the spacings of sorted uniform numbers."""
        cuts = np.sort(uniforms(seed, "prevalence", self.n_bags, n_classes - 1), axis=1)
        return np.diff(cuts, axis=1, prepend=0.0, append=1.0)


@dataclass(frozen=True, kw_only=True)
class DirichletPrevalence(UniformPrevalence):
    """Prevalences from a Dirichlet distribution around the pool's own prevalence.

    Parameters
    ----------
    concentration : float, default 30
        The Dirichlet's parameters are `concentration` times `centre`: the larger, the milder the
        shift.
    centre : array, optional
        By default the prevalence of the pool.
    n_bags, size, random_state
        As in `UniformPrevalence`.

    Examples
    --------
    >>> y = ["neg"] * 900 + ["pos"] * 100
    >>> bags = DirichletPrevalence(n_bags=500, concentration=50, random_state=0).draw(y)
    >>> bags.prevalence.mean(axis=0).round(2)
    array([0.9, 0.1])
    """

    concentration: float = 30.0
    centre: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check.at_least("concentration", self.concentration, 1e-9)

    def prevalences(self, n_classes: int, seed: int, natural: Floats) -> Floats:
        """Draw gamma variates by inversion, so that each bag uses its own numbers only."""
        centre = natural if self.centre is None else check.prevalences(self.centre, "centre")[0]
        if len(centre) != n_classes:
            raise InputError(f"centre has {len(centre)} shares for {n_classes} classes.")
        alpha = np.maximum(self.concentration * centre, 1e-12)
        u = uniforms(seed, "prevalence", self.n_bags, 2 * n_classes) + 2.0**-54
        # G(a) = G(a + 1) U^(1/a), in logarithms, because G(a) itself underflows for small a.
        logs = np.log(gammaincinv(alpha + 1, u[:, :n_classes])) + np.log(u[:, n_classes:]) / alpha
        return np.asarray(softmax(logs, axis=1))


@dataclass(frozen=True, kw_only=True)
class PrevalenceGrid(ArtificialProtocol):
    """The classic artificial-prevalence protocol: every combination of a grid of shares.

    Parameters
    ----------
    n_points : int, default 21
        Shares 0, 1 / (n_points - 1), ..., 1 for each class.
    repeats : int, default 25
        Bags drawn at each combination.
    size, random_state
        As in `UniformPrevalence`.
    max_bags : int, default 1_000_000
        More than this are refused: the grid explodes with the number of classes.

    Examples
    --------
    >>> protocol = PrevalenceGrid(n_points=21, repeats=25, random_state=0)
    >>> protocol.count(n_classes=3)
    5775
    >>> protocol.count(n_classes=28)
    244061991977650
    """

    n_points: int = 21
    repeats: int = 25
    max_bags: int = 1_000_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check.whole("repeats", self.repeats)
        check.whole("n_points", self.n_points, 2)

    def count(self, n_classes: int) -> int:
        """Tell how many bags there will be: the combinations times the repeats."""
        return math.comb(self.n_points - 1 + n_classes - 1, n_classes - 1) * self.repeats

    def prevalences(self, n_classes: int, seed: int, natural: Floats) -> Floats:  # noqa: ARG002
        """Enumerate the grid, each point `repeats` times in a row."""
        n_bags = self.count(n_classes)
        if n_bags > self.max_bags:
            raise InputError(
                f"{self.n_points} points and {n_classes} classes make {n_bags:,} bags, above "
                f"max_bags={self.max_bags:,}. Use UniformPrevalence(n_bags=...), which covers the "
                "simplex evenly with any number of bags, or fewer points."
            )
        points = compositions(self.n_points - 1, n_classes) / (self.n_points - 1)
        return np.repeat(points, self.repeats, axis=0)


def compositions(total: int, parts: int) -> Ints:
    """All ways to write `total` as an ordered sum of `parts` non-negative integers."""
    table = np.arange(total + 1)[:, None]
    for _ in range(parts - 2):
        left = total - table.sum(axis=1)
        repeated = np.repeat(table, left + 1, axis=0)
        ends = np.cumsum(left + 1)
        added = np.arange(ends[-1]) - np.repeat(ends - (left + 1), left + 1)
        table = np.column_stack([repeated, added])
    return np.column_stack([table, total - table.sum(axis=1)])


def round_counts(prevalences: Floats, size: int, offsets: Floats) -> Ints:
    """Whole counts that sum to `size` and whose mean over uniform `offsets` is size * prevalence.

    Systematic rounding: the running total is shifted by one uniform number and cut at the
    integers, so that no count is off by one or more.
    """
    edges = np.cumsum(prevalences, axis=1) * size
    edges[:, -1] = size
    nearest = np.round(edges)
    edges = np.where(np.abs(edges - nearest) < 1e-9 * size, nearest, edges)
    return np.diff(np.floor(edges + offsets[:, None]), axis=1, prepend=0.0).astype(np.int64)


def fill_bags(
    counts: Ints,
    codes: Ints,
    class_sizes: Ints,
    states: NDArray[np.uint64],
    classes: NDArray[Any] | None,
) -> Bags:
    """Bags with these numbers of items of each class, drawn by each bag's own stream."""
    from headcount.kernels.compiled.bags import draw_items

    n_bags, size = len(counts), int(counts[0].sum())
    by_class = np.argsort(codes, kind="stable")
    class_ptr = np.concatenate([[0], np.cumsum(class_sizes)])
    items = np.empty((n_bags, size), dtype=np.int32 if len(codes) < 2**31 else np.int64)
    draw_items(counts, by_class.astype(items.dtype), class_ptr, states, items)
    indptr = np.arange(n_bags + 1, dtype=np.int64) * size
    truth = counts / float(size) if classes is not None else None
    return Bags(indptr, items.ravel(), len(codes), prevalence=truth, classes=classes)


def _refuse_missing(classes: NDArray[Any], class_sizes: Ints, counts: Ints) -> None:
    wanted = (class_sizes == 0) & (counts.sum(axis=0) > 0)
    if wanted.any():
        raise InputError(
            f"the pool has no item of class {classes[wanted].tolist()[0]!r}, and the protocol "
            "calls for some. Leave the class out of classes=..., or add items of it."
        )
