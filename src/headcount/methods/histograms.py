"""Methods that match histograms of posteriors: HDy, DyS and DMy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from headcount._core.types import Bools, Floats
from headcount.bags import Bags
from headcount.exceptions import InputError, choose
from headcount.methods.base import Tags
from headcount.methods.binary import BinaryQuantifier
from headcount.methods.matching import MatchingQuantifier, Parts
from headcount.methods.objectives import DIVERGENCES, Divergence
from headcount.methods.representations import Histogram
from headcount.scores.scorer import Held

RULES = ["equal_width", "equal_count", "normal", "binormal"]
GRID = np.linspace(0, 1, 101)


@dataclass(eq=False, repr=False, kw_only=True)
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
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> DyS(n_bins=2).fit_scores(scores, y).predict_scores([0.1, 0.9, 0.8, 0.9]).round(2)
    array([0., 1.])
    """

    n_bins: int | Sequence[int] = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 30)
    divergence: str = "topsoe"
    binning: str = "equal_width"
    search: str = "exact"

    def method_tags(self) -> Tags:
        """Fine histograms remember, and want all the items that there are."""
        return Tags(remembers=True, joins_folds=True)

    def check_params(self) -> None:
        """Refuse impossible settings."""
        super().check_params()
        choose("divergence", self.divergence, DIVERGENCES)
        choose("binning", self.binning, RULES)
        choose("search", self.search, ["exact", "grid"])
        bin_counts(self.n_bins)

    def learn_two(self, scores: Floats, positive: Bools, held: Held) -> Any:  # noqa: ARG002
        """Histograms of both classes, for every number of bins."""
        learnt = []
        for n_bins in bin_counts(self.n_bins):
            edges = inner_edges(scores, positive, n_bins, self.binning)
            cells = np.searchsorted(edges, scores, side="right")
            counts = [np.bincount(cells[positive == c], minlength=n_bins) for c in (False, True)]
            learnt.append((edges, *(c / c.sum() for c in counts)))
        return learnt

    def aggregate_two(self, learnt: Any, scores: Floats, bags: Bags) -> Floats:
        """Median over the numbers of bins."""
        shares = []
        for edges, negative, positive in learnt:
            cells = np.searchsorted(edges, scores, side="right")[:, None]
            q = bags.histograms(cells, len(negative), self.n_jobs)
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


@dataclass(eq=False, repr=False, kw_only=True)
class HDy(DyS):
    """Match histograms by the Hellinger distance, as published: González-Castro et al. (2013).

    The median over 10, 20, ..., 110 bins of the best of 0, 0.01, ..., 1.

    Parameters
    ----------
    n_bins, divergence, binning, search, classifier, calibrator, cv, refit, n_jobs, random_state
        As in `DyS`, with other defaults; UniOviedo (Team2) tuned the first three for LeQua 2022.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> HDy().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.8, 0.9])
    array([0.19, 0.81])
    """

    n_bins: int | Sequence[int] = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110)
    divergence: str = "hd"
    binning: str = "equal_width"
    search: str = "grid"


@dataclass(eq=False, repr=False, kw_only=True)
class DMy(MatchingQuantifier):
    """Match a histogram of every posterior column at once, for any number of classes.

    p minimises the divergence between the bag's histograms and V p, summed over the columns.
    Firat (2016); Moreo, González and del Coz (2024). `Histogram` with `Divergence`.

    Parameters
    ----------
    n_bins : int, default 8
    divergence : {'hd', 'topsoe', 'probsymm', 'l2', 'l1'}
        'hd' is the squared Hellinger distance, which is convex and has one minimum.
    cdf : bool, default False
        Whether to compare cumulative histograms.
    tau : float, default 0
        For ordered classes: adds tau / 2 times the squared second differences of p (o-HDy).
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> DMy().fit(X, y).predict(X[:100]).round(2)
    array([0.5, 0.5, 0. ])
    """

    n_bins: int = 8
    divergence: str = "hd"
    cdf: bool = False
    tau: float = 0.0

    def match_parts(self) -> Parts:
        """Histograms and a divergence."""
        return Histogram(self.n_bins, self.cdf), Divergence(self.divergence, self.tau)


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
