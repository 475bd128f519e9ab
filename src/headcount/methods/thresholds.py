"""Methods for two classes that look at the order of the scores: adjusted counts at thresholds.

They take any classifier, by its posteriors or its decision values.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from headcount._core import validation as check
from headcount._core.types import Bools, Floats
from headcount.bags import Bags
from headcount.exceptions import UnreliableWarning
from headcount.kernels.threads import over_ranges
from headcount.methods.base import Tags
from headcount.methods.binary import BinaryQuantifier
from headcount.scores.scorer import Held

ROUNDING = 1e-12  # by which the same score may differ when it is computed again


class OrderQuantifier(BinaryQuantifier):
    """Base of the methods for two classes that take any scores."""

    def method_tags(self) -> Tags:
        """Decision values do as well as posteriors."""
        return Tags(scores="any")


class ThresholdQuantifier(OrderQuantifier):
    """Adjusted count at the one threshold that a rule prefers."""

    @abstractmethod
    def badness(self, tpr: Floats, fpr: Floats) -> Floats:
        """How bad each threshold is; the least bad one is taken."""

    def learn_two(self, scores: Floats, positive: Bools, held: Held) -> Any:
        """Find the threshold and its rates."""
        cuts, tpr, fpr = candidates(scores, positive, neutral=neutral_cut(held))
        best = int(np.argmin(self.badness(tpr, fpr)))
        return cuts[best], tpr[best], fpr[best]

    def aggregate_two(self, learnt: Any, scores: Floats, bags: Bags) -> Floats:
        """Counts at the threshold, adjusted."""
        cut, tpr, fpr = learnt
        share = bags.shares((scores >= cut).astype(np.int8), 2, self.n_jobs)[:, 1]
        return np.asarray(np.clip((share - fpr) / (tpr - fpr), 0, 1))


class X(ThresholdQuantifier):
    """Adjusted count where false positives and false negatives are equally frequent.

    The threshold minimises |1 - (tpr + fpr)|. Forman (2008).

    Parameters
    ----------
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> X().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.2, 0.9]).round(2)
    array([0.43, 0.57])
    """

    def badness(self, tpr: Floats, fpr: Floats) -> Floats:
        """How bad each threshold is."""
        return np.abs(1 - (tpr + fpr))


class MAX(ThresholdQuantifier):
    """Adjusted count at the threshold with the largest tpr - fpr. Forman (2008).

    Parameters
    ----------
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> MAX().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.2, 0.9]).round(2)
    array([0.6, 0.4])
    """

    def badness(self, tpr: Floats, fpr: Floats) -> Floats:
        """How bad each threshold is."""
        return fpr - tpr


class T50(ThresholdQuantifier):
    """Adjusted count at the threshold that finds half of the positives. Forman (2008).

    Parameters
    ----------
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> T50().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.2, 0.3, 0.2]).round(2)
    array([0.6, 0.4])
    """

    def badness(self, tpr: Floats, fpr: Floats) -> Floats:  # noqa: ARG002 - only tpr counts
        """How bad each threshold is."""
        return np.abs(tpr - 0.5)


@dataclass(eq=False, repr=False, kw_only=True)
class MS(OrderQuantifier):
    """Median sweep: the median of the adjusted counts at all thresholds. Forman (2008).

    Parameters
    ----------
    n_thresholds : int, optional
        Every distinct score is a threshold by default. With a number, that many are spaced evenly
        between the least and the largest score (0 and 1 for posteriors), which does better when
        most scores crowd at one end.
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> MS().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.2, 0.9]).round(2)
    array([0.43, 0.57])
    """

    least_useful_gap: ClassVar[float] = (
        0.0  # thresholds whose tpr - fpr is not above this are left out
    )

    n_thresholds: int | None = None

    def check_params(self) -> None:
        """Refuse impossible settings."""
        super().check_params()
        if self.n_thresholds is not None:
            check.whole("n_thresholds", self.n_thresholds, 2)

    def learn_two(self, scores: Floats, positive: Bools, held: Held) -> Any:
        """Find the thresholds that are worth looking at, and their rates."""
        cuts = None
        if self.n_thresholds is not None:
            posterior = scores.min() >= 0 and scores.max() <= 1
            ends = (0.0, 1.0) if posterior else (scores.min(), scores.max())
            cuts = np.linspace(ends[0], ends[1], self.n_thresholds)
        neutral = neutral_cut(held)
        cuts, tpr, fpr = candidates(scores, positive, cuts, neutral=neutral)
        kept = tpr - fpr > self.least_useful_gap if self.least_useful_gap else tpr != fpr
        if not kept.any():
            warn_useless(f"no threshold has tpr - fpr above {self.least_useful_gap:g}")
            return np.array([neutral]), np.ones(1), np.zeros(1)
        return cuts[kept], tpr[kept], fpr[kept]

    def aggregate_two(self, learnt: Any, scores: Floats, bags: Bags) -> Floats:
        """Median of the adjusted counts."""
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
    n_thresholds, classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> MS2().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.2, 0.9]).round(2)
    array([0.51, 0.49])
    """

    least_useful_gap: ClassVar[float] = 0.25


def neutral_cut(held: Held) -> float:
    """Where the classifier itself cuts: half for posteriors, zero for decision values."""
    return 0.5 if held.kind == "posterior" else 0.0


def candidates(
    scores: Floats, positive: Bools, cuts: Floats | None = None, *, neutral: float
) -> tuple[Floats, Floats, Floats]:
    """Thresholds, every distinct score by default, with tpr and fpr; those with equal ones go.

    If none is left, the counts are taken as they are at the neutral cut.
    """
    if cuts is None:
        # A hair below each score, so that rounding does not move an equal item over it.
        distinct = np.unique(scores)
        cuts = distinct - ROUNDING * np.maximum(np.abs(distinct), 1.0)
    rates = []
    for c in (True, False):
        own = np.sort(scores[positive == c])
        rates.append(1 - np.searchsorted(own, cuts, side="left") / len(own))
    tpr, fpr = rates
    useful = tpr != fpr
    if not useful.any():
        warn_useless("every threshold has tpr equal to fpr")
        return np.array([neutral]), np.ones(1), np.zeros(1)
    return cuts[useful], tpr[useful], fpr[useful]


def warn_useless(what: str) -> None:
    """Say that the scores tell next to nothing."""
    warnings.warn(
        f"the classifier separates nothing here: {what}. The answer is little better than a "
        "guess; use a better classifier.",
        UnreliableWarning,
        stacklevel=6,
    )
