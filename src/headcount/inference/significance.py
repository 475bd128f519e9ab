"""Tests of whether one method is better than another, on errors of the same bags or data sets."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.stats import bootstrap

from headcount._core import validation as check
from headcount._core.frame import Frame
from headcount._core.types import Floats
from headcount.exceptions import InputError
from headcount.kernels.random import as_seed

LEGEND = (
    "* best; ‡ not significantly different from it by a paired t-test (p >= 0.05); † p < 0.05 but "
    "not beyond doubt (p > 0.001)."
)


def error_table(frame: Frame, measure: str, by: str = "method") -> tuple[Floats, list[str]]:
    """Errors with one row per bag and one column per method, from a tidy results frame.

    Every method must have the same bags, in any order.

    Examples
    --------
    >>> frame = Frame({"method": ["a", "a", "b", "b"], "bag": [0, 1, 1, 0], "ae": [1., 2., 3., 4.]})
    >>> errors, names = error_table(frame, "ae")
    >>> errors.tolist(), names
    ([[1.0, 4.0], [2.0, 3.0]], ['a', 'b'])
    """
    names = list(dict.fromkeys(frame[by].tolist()))
    keys = [c for c in ("dataset", "bag") if c in frame]
    columns, first = [], None
    for name in names:
        part = frame.rows(frame[by] == name)
        order = np.lexsort([part[c] for c in reversed(keys)]) if keys else slice(None)
        where = [part[c][order].tolist() for c in keys]
        if first is not None and where != first:
            raise InputError(f"{name!r} was not run on the same bags as {names[0]!r}.")
        first = where
        columns.append(part[measure][order])
    return np.column_stack(columns), names


def against_best(errors: ArrayLike, names: Sequence[str]) -> Frame:
    """Mean and deviation of each method, and a paired two-tailed t-test against the best.

    The mark is that of the LeQua papers: '‡' where p >= 0.05, '†' where 0.001 < p < 0.05, nothing
    where the difference is beyond doubt, and 'best' for the best.

    Examples
    --------
    >>> errors = [[0.1, 0.3], [0.2, 0.4], [0.1, 0.1], [0.2, 0.5]]
    >>> against_best(errors, ["SLD", "CC"])
    method   mean     sd      p  mark
    SLD     0.150  0.050  1.000  best
    CC      0.325  0.148  0.069  ‡
    """
    table = _table(errors, names)
    means = table.mean(axis=0)
    order = np.argsort(means, kind="stable")
    best = order[0]
    p = np.array([1.0 if j == best else paired_t(table[:, best], table[:, j]) for j in order])
    marks = ["best" if j == best else mark(v) for j, v in zip(order, p, strict=True)]
    return Frame(
        {
            "method": np.asarray(names)[order],
            "mean": means[order],
            "sd": table.std(axis=0)[order],
            "p": p,
            "mark": marks,
        }
    )


def mark(p: float) -> str:
    """Give '‡' for p >= 0.05, '†' for 0.001 < p < 0.05, else nothing."""
    if p >= 0.05:
        return "‡"
    return "†" if p > 0.001 else ""


def paired_t(a: ArrayLike, b: ArrayLike) -> float:
    """Two-tailed p-value of a paired t-test; 1 for equal series, 0 for a constant difference."""
    gap = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    if not gap.any():
        return 1.0
    if np.ptp(gap) <= 1e-12 * np.abs(gap).max():
        return 0.0
    return float(stats.ttest_1samp(gap, 0.0).pvalue)


def wilcoxon_holm(errors: ArrayLike, names: Sequence[str]) -> Frame:
    """Wilcoxon signed-rank test of every pair of methods, p-values corrected by Holm's rule.

    Which method is better is read from the signed ranks that the test is about, not from the
    means: a method may have the smaller error on most bags and the larger mean error.

    Returns
    -------
    Frame
        A row a pair: ``difference`` of the means (method minus other), ``effect`` (the
        rank-biserial correlation: sum of the ranks of positive differences minus that of negative
        ones, divided by all; negative where `method` has the smaller errors), ``p``, ``p_holm``,
        ``better`` (by the ranks; empty where they balance) and ``conflict`` (whether the means
        say the opposite).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a = rng.random(50)
    >>> table = wilcoxon_holm(np.column_stack([a, a + 0.1 + 0.01 * rng.random(50)]), ["a", "b"])
    >>> table["better"].tolist(), bool(table["p_holm"][0] < 0.001)
    (['a'], True)
    """
    table = _table(errors, names)
    pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
    tests = [signed_ranks(table[:, i] - table[:, j]) for i, j in pairs]
    p = [test[0] for test in tests]
    effect = np.array([test[1] for test in tests])
    means = table.mean(axis=0)
    difference = np.array([means[i] - means[j] for i, j in pairs])
    return Frame(
        {
            "method": [names[i] for i, _ in pairs],
            "other": [names[j] for _, j in pairs],
            "difference": difference,
            "effect": effect,
            "p": p,
            "p_holm": holm(p),
            "better": [
                names[i] if e < 0 else names[j] if e > 0 else ""
                for (i, j), e in zip(pairs, effect.tolist(), strict=True)
            ],
            "conflict": difference * effect < 0,
        }
    )


def signed_ranks(gaps: ArrayLike) -> tuple[float, float]:
    """Two-sided p-value of Wilcoxon's test, and the rank-biserial correlation of the gaps.

    The correlation is 1 where all gaps are positive and -1 where all are negative; zeros are left
    out, as the test does.

    Examples
    --------
    >>> p, effect = signed_ranks([0.3, 0.2, -0.1, 0.4])
    >>> round(p, 3), round(effect, 3)
    (0.25, 0.8)
    """
    given = np.asarray(gaps, dtype=float)
    kept = given[given != 0]
    if not kept.size:
        return 1.0, 0.0
    ranks = stats.rankdata(np.abs(kept))
    effect = float(np.sign(kept) @ ranks / ranks.sum())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few pairs or ties: the p-value is still valid
        return float(stats.wilcoxon(given).pvalue), effect


def holm(p: ArrayLike) -> Floats:
    """Adjust p-values for many tests by Holm's step-down rule.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=float)
    order = np.argsort(values)
    steps = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


@dataclass(frozen=True, eq=False)
class Nemenyi:
    """Average ranks of methods over data sets, and which of them differ."""

    names: list[str]
    ranks: Floats
    friedman_p: float
    critical_distance: float
    p: Floats  # of every pair

    def groups(self) -> list[tuple[int, int]]:
        """Runs of methods, best first, whose ranks lie within the critical distance.

        Numbers refer to the methods in order of rank; runs inside another run are left out.
        """
        ordered = np.sort(self.ranks)
        last = -1
        found = []
        for i in range(len(ordered)):
            j = int(np.flatnonzero(ordered - ordered[i] <= self.critical_distance)[-1])
            if j > i and j > last:
                found.append((i, j))
                last = j
        return found


def nemenyi(errors: ArrayLike, names: Sequence[str], alpha: float = 0.05) -> Nemenyi:
    """Friedman's test over rows (data sets or bags), and Nemenyi's for every pair. Demsar (2006).

    Examples
    --------
    >>> errors = np.array([[0.1, 0.2, 0.3]] * 10)
    >>> result = nemenyi(errors, ["a", "b", "c"])
    >>> result.ranks.tolist(), round(result.critical_distance, 3)
    ([1.0, 2.0, 3.0], 1.048)
    """
    table = _table(errors, names)
    n, k = table.shape
    ranks = stats.rankdata(table, axis=1).mean(axis=0)
    if k > 2:
        friedman_p = float(stats.friedmanchisquare(*table.T).pvalue)
    else:
        friedman_p = float(wilcoxon_holm(table, names)["p"][0])
    spread = np.sqrt(k * (k + 1) / (6 * n))
    gaps = np.abs(ranks[:, None] - ranks) / spread
    p = stats.studentized_range.sf(gaps * np.sqrt(2), k, np.inf)
    np.fill_diagonal(p, 1.0)
    distance = critical_distance(k, n, alpha)
    return Nemenyi(list(names), ranks, friedman_p, distance, np.asarray(p))


def critical_distance(n_methods: int, n_rows: int, alpha: float = 0.05) -> float:
    """Least difference of average ranks that is significant by Nemenyi's test."""
    q = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_rows)))


def bootstrap_difference(
    a: ArrayLike,
    b: ArrayLike,
    *,
    level: float = 0.95,
    n_resamples: int = 10_000,
    random_state: object = 0,
) -> tuple[float, float, float]:
    """Mean of a - b with a percentile interval, resampling the pairs.

    Examples
    --------
    >>> mean, low, high = bootstrap_difference([0.2, 0.3, 0.25], [0.1, 0.1, 0.1])
    >>> round(mean, 3), 0.1 <= low <= mean <= high <= 0.2
    (0.15, True)
    """
    check.at_least("level", level, 1e-6, 1 - 1e-6)
    check.whole("n_resamples", n_resamples)
    gap = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    found = bootstrap(
        (gap,),
        np.mean,
        confidence_level=level,
        n_resamples=n_resamples,
        batch=max(1, 2_000_000 // len(gap)),  # memory: two million draws at a time
        method="percentile",
        rng=np.random.default_rng(as_seed(random_state)),
    ).confidence_interval
    return float(gap.mean()), float(found.low), float(found.high)


def _table(errors: ArrayLike, names: Sequence[str]) -> Floats:
    table = np.asarray(errors, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(names):
        raise InputError(
            f"errors must have a row a bag and a column for each of {len(names)} methods, "
            f"got {table.shape}."
        )
    if len(names) < 2 or len(table) < 2:
        raise InputError("a comparison needs at least two methods and two rows of errors.")
    if not np.isfinite(table).all():
        column = int(np.argmin(np.isfinite(table).all(axis=0)))
        raise InputError(f"errors of {names[column]!r} contain NaN or infinity.")
    return table
