"""Methods that match histograms of posteriors: HDy, DyS and DMy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.stats import norm

from headcount._core import validation as check
from headcount._core.types import Bools, Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError, choose
from headcount.kernels.threads import over_ranges
from headcount.methods.adjusting import check_tau, roughness
from headcount.methods.base import ScoreQuantifier, warn_unconverged
from headcount.methods.binary import BinaryQuantifier
from headcount.scores.calibration import Calibrator

DIVERGENCES = {"hd": 0, "topsoe": 1, "probsymm": 2, "l2": 3, "l1": 4}
RULES = ["equal_width", "equal_count", "normal", "binormal"]
GRID = np.linspace(0, 1, 101)


class DyS(BinaryQuantifier):
    """Match the histogram of the positive class's posterior; the median over bin counts.

    The bag's histogram q is compared with p V+ + (1 - p) V-, the labelled items' histograms.
    Maletzke et al. (2019). With other settings it is HDy as tuned by UniOviedo at LeQua 2022.

    Parameters
    ----------
    n_bins : int or several, default (2, 4, ..., 20, 30)
        With several, the answer is the median over them.
    divergence : {'topsoe', 'hd', 'probsymm', 'l2', 'l1'}
    binning : {'equal_width', 'equal_count', 'normal', 'binormal'}
        Edges at equal distances in [0, 1], at quantiles of the labelled scores, or at quantiles
        of a normal curve with the scores' mean and spread, both classes weighing the same ('normal'
        takes the spread of all scores, 'binormal' the mean spread within the classes).
    search : {'exact', 'grid'}
        The exact minimum, or the best of 0, 0.01, ..., 1.
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> DyS(n_bins=2).fit_scores(scores, y).predict_scores([0.1, 0.9, 0.8, 0.9]).round(2)
    array([0., 1.])
    """

    _remembers = True

    def __init__(
        self,
        classifier: Any = None,
        *,
        n_bins: int | Sequence[int] = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 30),
        divergence: str = "topsoe",
        binning: str = "equal_width",
        search: str = "exact",
        calibrator: str | Calibrator | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            classifier, calibrator=calibrator, cv=cv, n_jobs=n_jobs, random_state=random_state
        )
        self.n_bins = n_bins
        self.divergence = divergence
        self.binning = binning
        self.search = search

    def _check_params(self) -> None:
        super()._check_params()
        choose("divergence", self.divergence, DIVERGENCES)
        choose("binning", self.binning, RULES)
        choose("search", self.search, ["exact", "grid"])
        bin_counts(self.n_bins)

    def _learn_two(self, scores: Floats, positive: Bools, frequency: float) -> Any:  # noqa: ARG002
        learnt = []
        for n_bins in bin_counts(self.n_bins):
            edges = inner_edges(scores, positive, n_bins, self.binning)
            cells = np.searchsorted(edges, scores, side="right")
            counts = [np.bincount(cells[positive == c], minlength=n_bins) for c in (False, True)]
            learnt.append((edges, *(c / c.sum() for c in counts)))
        return learnt

    def _aggregate_two(self, learnt: Any, scores: Floats, bags: Bags) -> Floats:
        shares = []
        for edges, negative, positive in learnt:
            cells = np.searchsorted(edges, scores, side="right")[:, None]
            q = histograms(cells, len(negative), bags, self.n_jobs)
            shares.append(self._shares(negative, positive, q))
        return np.asarray(np.median(shares, axis=0))

    def _shares(self, negative: Floats, positive: Floats, q: Floats) -> Floats:
        from headcount.kernels.compiled.matching import match_two

        if self.search == "exact":
            out = np.empty(len(q))
            match_two(negative, positive, q, DIVERGENCES[self.divergence], out)
            return out
        mixtures = np.outer(GRID, positive) + np.outer(1 - GRID, negative)
        if self.divergence == "hd":  # least distance is most overlap: one matrix product
            return np.asarray(GRID[np.argmax(np.sqrt(q) @ np.sqrt(mixtures).T, axis=1)])
        return np.asarray(GRID[grid_losses(q, mixtures, self.divergence).argmin(axis=1)])


class HDy(DyS):
    """Match histograms by the Hellinger distance, as published: González-Castro et al. (2013).

    The median over 10, 20, ..., 110 bins of the best of 0, 0.01, ..., 1.

    Parameters
    ----------
    n_bins, divergence, binning, search, classifier, calibrator, cv, n_jobs, random_state
        As in `DyS`, with other defaults; UniOviedo (Team2) tuned the first three for LeQua 2022.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> HDy().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.8, 0.9])
    array([0.19, 0.81])
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        n_bins: int | Sequence[int] = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110),
        divergence: str = "hd",
        binning: str = "equal_width",
        search: str = "grid",
        calibrator: str | Calibrator | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            classifier,
            n_bins=n_bins,
            divergence=divergence,
            binning=binning,
            search=search,
            calibrator=calibrator,
            cv=cv,
            n_jobs=n_jobs,
            random_state=random_state,
        )


class DMy(ScoreQuantifier):
    """Match a histogram of every posterior column at once, for any number of classes.

    p minimises the divergence between the bag's histograms and V p, summed over the columns.
    Firat (2016); Moreo, González and del Coz (2024).

    Parameters
    ----------
    n_bins : int, default 8
    divergence : {'hd', 'topsoe', 'probsymm', 'l2', 'l1'}
        'hd' is the squared Hellinger distance, which is convex and has one minimum.
    cdf : bool, default False
        Whether to compare cumulative histograms.
    tau : float, default 0
        For ordered classes: adds tau / 2 times the squared second differences of p (o-HDy).
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> DMy().fit(X, y).predict(X[:100]).round(2)
    array([0.51, 0.49, 0.  ])
    """

    _flat_to_prior = True
    _remembers = True

    def __init__(
        self,
        classifier: Any = None,
        *,
        n_bins: int = 8,
        divergence: str = "hd",
        cdf: bool = False,
        tau: float = 0.0,
        calibrator: str | Calibrator | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            classifier, calibrator=calibrator, cv=cv, n_jobs=n_jobs, random_state=random_state
        )
        self.n_bins = n_bins
        self.divergence = divergence
        self.cdf = cdf
        self.tau = tau

    def _check_params(self) -> None:
        super()._check_params()
        choose("divergence", self.divergence, DIVERGENCES)
        check.whole("n_bins", self.n_bins, 2)
        check_tau(self.tau)

    def _features(self, scores: Floats, bags: Bags) -> Floats:
        """Histograms of each bag, channel after channel; two classes need one channel."""
        columns = scores[:, 1:] if scores.shape[1] == 2 else scores
        cells = np.clip((columns * self.n_bins).astype(np.int64), 0, self.n_bins - 1)
        offsets = self.n_bins * np.arange(columns.shape[1])
        shares = histograms(cells + offsets, self.n_bins * len(offsets), bags, self.n_jobs)
        if self.cdf:
            shape = (len(shares), len(offsets), self.n_bins)
            shares = np.cumsum(shares.reshape(shape), axis=2).reshape(len(shares), -1)
        return shares / len(offsets)

    def _learn(self, scores: Floats | None, codes: Ints | None, frequency: Floats) -> None:
        assert scores is not None and codes is not None
        groups = Bags.from_groups(codes)
        self.mixture_ = self._features(scores, groups)
        self.frequency_ = frequency

    def _aggregate(self, scores: Floats, bags: Bags) -> Floats:
        q = self._features(scores, bags)
        return match_features(
            self.mixture_, q, self.divergence, self.frequency_, self.tau, self.n_jobs
        )


def match_features(
    rows: Floats,
    targets: Floats,
    divergence: str,
    start: Floats,
    tau: float = 0.0,
    n_jobs: int | None = None,
) -> Floats:
    """Prevalences whose mixture of class features (a row a class) is nearest to each target."""
    from headcount.kernels.compiled import matching

    kind = DIVERGENCES[divergence]
    if len(rows) == 2 and tau == 0:
        share = np.empty(len(targets))
        matching.match_two(rows[0], rows[1], targets, kind, share)
        return np.column_stack([1 - share, share])
    if divergence == "l1":
        if tau > 0:
            raise InputError("tau does not go with divergence='l1' and more than two classes.")
        return np.array([_least_absolute(rows, target) for target in targets])
    out, converged = np.empty((len(targets), len(rows))), np.zeros(len(targets), dtype=bool)
    pull = roughness(len(rows), second=tau) + 1e-10 * np.eye(len(rows))
    inner = np.maximum(start, 0.1 / len(start))
    inner /= inner.sum()
    used = np.flatnonzero(rows.max(axis=0) > 0)  # no share changes the others
    rows, targets = np.ascontiguousarray(rows[:, used]), np.ascontiguousarray(targets[:, used])
    over_ranges(
        lambda a, b: matching.match(rows, targets, pull, kind, inner, 1e-9, out, converged, a, b),
        len(targets),
        n_jobs,
    )
    warn_unconverged(converged, "the match")
    return out


def _least_absolute(rows: Floats, target: Floats) -> Floats:
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


def histograms(cells: Ints, n_cells: int, bags: Bags, n_jobs: int | None = None) -> Floats:
    """Share of each bag's items in each cell; an item has one cell in every channel (column)."""
    from headcount.kernels.compiled.matching import bag_histograms

    out = np.empty((len(bags), n_cells))
    narrow: Any = np.ascontiguousarray(cells, dtype=np.uint16 if n_cells < 2**16 else np.uint32)
    over_ranges(
        lambda a, b: bag_histograms(narrow, bags.indptr, bags.indices, out, a, b),
        len(bags),
        n_jobs,
    )
    return out


def bin_counts(n_bins: int | Sequence[int]) -> list[int]:
    """Bin counts as a list, each at least 2."""
    try:
        several = [n_bins] if isinstance(n_bins, (int, np.integer)) else list(n_bins)
    except TypeError:
        several = []
    if not several or not all(isinstance(n, (int, np.integer)) and n >= 2 for n in several):
        raise InputError(f"n_bins must be whole numbers of at least 2, got {n_bins!r}.")
    return [int(n) for n in several]


def inner_edges(scores: Floats, positive: Bools, n_bins: int, rule: str) -> Floats:
    """Inner edges of the bins; the outer ones are infinite."""
    share = np.arange(1, n_bins) / n_bins
    if rule == "equal_width":
        return share
    if rule == "equal_count":
        return np.quantile(scores, share)
    groups = [scores[positive], scores[~positive]]
    means, sds = [g.mean() for g in groups], [g.std() for g in groups]
    if rule == "binormal":
        return np.asarray(np.mean(means) + np.mean(sds) * norm.ppf(share))
    # normal: mean and spread of the scores with both classes weighing the same
    variance = np.mean([s**2 + (m - np.mean(means)) ** 2 for s, m in zip(sds, means, strict=True)])
    return np.asarray(np.mean(means) + np.sqrt(variance) * norm.ppf(share))


def grid_losses(q: Floats, mixtures: Floats, divergence: str) -> Floats:
    """Divergence of every row of `q` from every mixture."""
    out = np.empty((len(q), len(mixtures)))
    with np.errstate(divide="ignore", invalid="ignore"):
        for g, u in enumerate(mixtures):
            if divergence == "topsoe":
                parts = q * np.log(2 * q / (q + u)), u * np.log(2 * u / (q + u))
                out[:, g] = sum(np.nan_to_num(part).sum(axis=1) for part in parts)
            elif divergence == "probsymm":
                out[:, g] = np.nan_to_num(2 * (q - u) ** 2 / (q + u)).sum(axis=1)
            elif divergence == "l2":
                out[:, g] = ((q - u) ** 2).sum(axis=1)
            elif divergence == "l1":
                out[:, g] = np.abs(q - u).sum(axis=1)
            else:
                out[:, g] = ((np.sqrt(q) - np.sqrt(u)) ** 2).sum(axis=1)
    return out
