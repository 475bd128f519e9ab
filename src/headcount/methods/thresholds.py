"""Methods for two classes that look at the order of the scores: thresholds, sweeps, distances.

They take any classifier, by its posteriors or its decision values.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.special import ndtr

from headcount._core import validation as check
from headcount._core.types import Bools, Floats
from headcount.bags import Bags
from headcount.exceptions import UnreliableWarning
from headcount.kernels.threads import over_ranges
from headcount.methods.binary import BinaryQuantifier
from headcount.scores.calibration import Calibrator


class _Threshold(BinaryQuantifier):
    """Adjusted count at the one threshold that a rule prefers."""

    _any_scores = True

    @abstractmethod
    def _worst(self, tpr: Floats, fpr: Floats) -> Floats:
        """How bad each threshold is; the least bad one is taken."""

    def _learn_two(self, scores: Floats, positive: Bools, frequency: float) -> Any:  # noqa: ARG002
        cuts, tpr, fpr = candidates(scores, positive, neutral=neutral_cut(self))
        best = int(np.argmin(self._worst(tpr, fpr)))
        return cuts[best], tpr[best], fpr[best]

    def _aggregate_two(self, learnt: Any, scores: Floats, bags: Bags) -> Floats:
        cut, tpr, fpr = learnt
        share = bags.shares((scores >= cut).astype(np.int8), 2, self.n_jobs)[:, 1]
        return np.asarray(np.clip((share - fpr) / (tpr - fpr), 0, 1))


class X(_Threshold):
    """Adjusted count where false positives and false negatives are equally frequent.

    The threshold minimises |1 - (tpr + fpr)|. Forman (2008).

    Parameters
    ----------
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> X().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.2, 0.9]).round(2)
    array([0.43, 0.57])
    """

    def _worst(self, tpr: Floats, fpr: Floats) -> Floats:
        return np.abs(1 - (tpr + fpr))


class MAX(_Threshold):
    """Adjusted count at the threshold with the largest tpr - fpr. Forman (2008).

    Parameters
    ----------
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> MAX().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.2, 0.9]).round(2)
    array([0.6, 0.4])
    """

    def _worst(self, tpr: Floats, fpr: Floats) -> Floats:
        return fpr - tpr


class T50(_Threshold):
    """Adjusted count at the threshold that finds half of the positives. Forman (2008).

    Parameters
    ----------
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> T50().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.2, 0.3, 0.2]).round(2)
    array([0.6, 0.4])
    """

    def _worst(self, tpr: Floats, fpr: Floats) -> Floats:  # noqa: ARG002 - only tpr counts
        return np.abs(tpr - 0.5)


class MS(BinaryQuantifier):
    """Median sweep: the median of the adjusted counts at all thresholds. Forman (2008).

    Parameters
    ----------
    n_thresholds : int, optional
        Every distinct score is a threshold by default. With a number, that many are spaced evenly
        between the least and the largest score (0 and 1 for posteriors), which does better when
        most scores crowd at one end.
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> MS().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.2, 0.9]).round(2)
    array([0.43, 0.57])
    """

    _any_scores = True
    _least_gap = 0.0  # thresholds whose tpr - fpr is not above this are left out

    def __init__(
        self,
        classifier: Any = None,
        *,
        n_thresholds: int | None = None,
        calibrator: str | Calibrator | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            classifier, calibrator=calibrator, cv=cv, n_jobs=n_jobs, random_state=random_state
        )
        self.n_thresholds = n_thresholds

    def _check_params(self) -> None:
        super()._check_params()
        if self.n_thresholds is not None:
            check.whole("n_thresholds", self.n_thresholds, 2)

    def _learn_two(self, scores: Floats, positive: Bools, frequency: float) -> Any:  # noqa: ARG002
        cuts = None
        if self.n_thresholds is not None:
            posterior = scores.min() >= 0 and scores.max() <= 1
            ends = (0.0, 1.0) if posterior else (scores.min(), scores.max())
            cuts = np.linspace(ends[0], ends[1], self.n_thresholds)
        neutral = neutral_cut(self)
        cuts, tpr, fpr = candidates(scores, positive, cuts, neutral=neutral)
        kept = tpr - fpr > self._least_gap if self._least_gap else tpr != fpr
        if not kept.any():
            _warn_useless(f"no threshold has tpr - fpr above {self._least_gap:g}")
            return np.array([neutral]), np.ones(1), np.zeros(1)
        return cuts[kept], tpr[kept], fpr[kept]

    def _aggregate_two(self, learnt: Any, scores: Floats, bags: Bags) -> Floats:
        from headcount.kernels.compiled.scores import median_sweep

        cuts, tpr, fpr = learnt
        above = np.searchsorted(cuts, scores, side="right")
        out = np.empty(len(bags))
        over_ranges(
            lambda a, b: median_sweep(above, fpr, tpr - fpr, bags.indptr, bags.indices, out, a, b),
            len(bags),
            self.n_jobs,
        )
        return out


class MS2(MS):
    """Median sweep over the thresholds with tpr - fpr above 1/4 only. Forman (2008).

    Parameters
    ----------
    n_thresholds, classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> MS2().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.2, 0.9]).round(2)
    array([0.51, 0.49])
    """

    _least_gap = 0.25


class ContinuousSweep(BinaryQuantifier):
    """Mean of the adjusted count over a continuum of thresholds: the system of UniLeiden.

    The classes' score distributions are smoothed by Gaussian kernels (Silverman's bandwidth), on
    the log-odds of posteriors or on decision values as they are. The mean runs over the
    thresholds with tpr - fpr >= `least_gap`, unclipped, so that it is linear in the bag: a single
    pass gives it. Kloos et al. (2023); LeQua 2022 saw the simplified form with 1/4.

    Parameters
    ----------
    least_gap : float, default 0.25
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> ContinuousSweep().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.2, 0.8]).round(1)
    array([0.4, 0.6])
    """

    _any_scores = True

    def __init__(
        self,
        classifier: Any = None,
        *,
        least_gap: float = 0.25,
        calibrator: str | Calibrator | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(
            classifier, calibrator=calibrator, cv=cv, n_jobs=n_jobs, random_state=random_state
        )
        self.least_gap = least_gap

    def _check_params(self) -> None:
        super()._check_params()
        check.at_least("least_gap", self.least_gap, 1e-6, 1)

    def _axis(self, scores: Floats) -> Floats:
        if self.score_kind_ != "posterior" and self.calibrator_ is None:
            return scores
        inside = np.clip(scores, 1e-6, 1 - 1e-6)
        return np.asarray(np.log(inside / (1 - inside)))

    def _learn_two(self, scores: Floats, positive: Bools, frequency: float) -> Any:  # noqa: ARG002
        z = self._axis(scores)
        pad = 0.1 * np.ptp(z)
        grid = np.linspace(z.min() - pad, z.max() + pad, 2001)
        tpr, fpr = (survival(z[positive == c], grid) for c in (True, False))
        gap = tpr - fpr
        least = self.least_gap
        if gap.max() < least:
            _warn_useless(f"tpr - fpr is nowhere above {least:g}")
            least = max(gap.max() / 2, 1e-3)
            gap = np.maximum(gap, 1e-3)
        good = gap >= least
        inner = np.where(good, 1 / np.maximum(gap, 1e-3), 0.0) / good.sum()
        weight = np.concatenate([[0], np.cumsum(inner)])[:-1]  # of the thresholds below each point
        return grid, weight, float((fpr * inner).sum())

    def _aggregate_two(self, learnt: Any, scores: Floats, bags: Bags) -> Floats:
        grid, weight, offset = learnt
        psi = np.interp(self._axis(scores), grid, weight)
        mean = bags.means(psi[:, None], self.n_jobs)[:, 0]
        return np.asarray(np.clip(mean - offset, 0, 1))


class SORD(BinaryQuantifier):
    """Match scores by the earth mover's distance, without bins. Maletzke et al. (2019).

    Parameters
    ----------
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> SORD().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.2, 0.9]).round(2)
    array([0.43, 0.57])
    """

    _any_scores = True

    def _learn_two(self, scores: Floats, positive: Bools, frequency: float) -> Any:  # noqa: ARG002
        order = np.argsort(scores, kind="stable")
        own = positive[order]
        below = [np.cumsum(own == c) / (own == c).sum() for c in (True, False)]
        return scores[order], below[0], below[1]

    def _aggregate_two(self, learnt: Any, scores: Floats, bags: Bags) -> Floats:
        from headcount.kernels.compiled.scores import ordered_match

        out = np.empty(len(bags))
        reference, positive, negative = learnt
        over_ranges(
            lambda a, b: ordered_match(
                reference, positive, negative, scores, bags.indptr, bags.indices, out, a, b
            ),
            len(bags),
            self.n_jobs,
        )
        return out


class SMM(BinaryQuantifier):
    """Sample mean matching: where the bag's mean score lies between the classes' means.

    A running mean is all it keeps of a bag. Hassan, Maletzke and Batista (2020).

    Parameters
    ----------
    classifier, calibrator, cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> smm = SMM().fit_scores([0.1, 0.3, 0.6, 0.8], [0, 0, 1, 1])
    >>> smm.predict_scores([0.3, 0.6]).round(2)
    array([0.5, 0.5])
    """

    _any_scores = True

    def _learn_two(self, scores: Floats, positive: Bools, frequency: float) -> Any:
        low, high = scores[~positive].mean(), scores[positive].mean()
        if not abs(high - low) > 1e-9 * (1 + np.abs(scores).max()):
            _warn_useless("the classes have the same mean score")
        return low, high, frequency

    def _aggregate_two(self, learnt: Any, scores: Floats, bags: Bags) -> Floats:
        low, high, frequency = learnt
        mean = bags.means(scores[:, None], self.n_jobs)[:, 0]
        if low == high:
            return np.full(len(bags), frequency)
        return np.asarray(np.clip((mean - low) / (high - low), 0, 1))


def neutral_cut(quantifier: BinaryQuantifier) -> float:
    """Where the classifier itself cuts: half for posteriors, zero for decision values."""
    posterior = quantifier.score_kind_ == "posterior" or quantifier.calibrator_ is not None
    return 0.5 if posterior else 0.0


def candidates(
    scores: Floats, positive: Bools, cuts: Floats | None = None, *, neutral: float
) -> tuple[Floats, Floats, Floats]:
    """Thresholds, every distinct score by default, with tpr and fpr; those with equal ones go.

    If none is left, the counts are taken as they are at the neutral cut.
    """
    cuts = np.unique(scores) if cuts is None else cuts
    rates = []
    for c in (True, False):
        own = np.sort(scores[positive == c])
        rates.append(1 - np.searchsorted(own, cuts, side="left") / len(own))
    tpr, fpr = rates
    useful = tpr != fpr
    if not useful.any():
        _warn_useless("every threshold has tpr equal to fpr")
        return np.array([neutral]), np.ones(1), np.zeros(1)
    return cuts[useful], tpr[useful], fpr[useful]


def survival(values: Floats, grid: Floats) -> Floats:
    """Share of values above each grid point, smoothed by a Gaussian kernel."""
    spread = min(np.std(values), np.subtract(*np.percentile(values, [75, 25])) / 1.349)
    spread = spread if spread > 0 else np.std(values)
    width = max(0.9 * spread * len(values) ** -0.2, 1e-6 * float(np.ptp(grid)), 1e-300)
    out = np.zeros(len(grid))
    for part in np.array_split(values, -(-len(values) // 4096)):  # memory: 4096 x grid
        out += ndtr((part[:, None] - grid) / width).sum(axis=0)
    return out / len(values)


def _warn_useless(what: str) -> None:
    warnings.warn(
        f"the classifier separates nothing here: {what}. The answer is little better than a "
        "guess; use a better classifier.",
        UnreliableWarning,
        stacklevel=6,
    )
