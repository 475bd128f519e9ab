"""Methods for two classes on the scores as they are ordered: a sweep, and two matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from headcount._core import validation as check
from headcount._core.types import Bools, Floats
from headcount.bags import Bags
from headcount.kernels.threads import over_ranges
from headcount.methods.thresholds import OrderQuantifier, warn_useless
from headcount.scores.scorer import Held


@dataclass(eq=False, repr=False, kw_only=True)
class ContinuousSweep(OrderQuantifier):
    """Mean of the adjusted count over a continuum of thresholds: the system of UniLeiden.

    The classes' score distributions are smoothed by Gaussian kernels (Silverman's bandwidth), on
    the log-odds of posteriors or on decision values as they are. The mean runs over the
    thresholds with tpr - fpr >= `least_gap`, unclipped, so that it is linear in the bag: a single
    pass gives it. Kloos et al. (2023); LeQua 2022 saw the simplified form with 1/4.

    Parameters
    ----------
    least_gap : float, default 0.25
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> ContinuousSweep().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.2, 0.8]).round(1)
    array([0.4, 0.6])
    """

    least_gap: float = 0.25

    def check_params(self) -> None:
        """Refuse impossible settings."""
        super().check_params()
        check.at_least("least_gap", self.least_gap, 1e-6, 1)

    def _axis(self, scores: Floats, kind: str) -> Floats:
        if kind != "posterior":
            return scores
        inside = np.clip(scores, 1e-6, 1 - 1e-6)
        return np.asarray(np.log(inside / (1 - inside)))

    def learn_two(self, scores: Floats, positive: Bools, held: Held) -> Any:
        """Find the curve that an item counts by."""
        z = self._axis(scores, held.kind)
        pad = 0.1 * np.ptp(z)
        grid = np.linspace(z.min() - pad, z.max() + pad, 2001)
        tpr, fpr = (survival(z[positive == c], grid) for c in (True, False))
        gap = tpr - fpr
        least = self.least_gap
        if gap.max() < least:
            warn_useless(f"tpr - fpr is nowhere above {least:g}")
            least = max(gap.max() / 2, 1e-3)
            gap = np.maximum(gap, 1e-3)
        good = gap >= least
        inner = np.where(good, 1 / np.maximum(gap, 1e-3), 0.0) / good.sum()
        weight = np.concatenate([[0], np.cumsum(inner)])[:-1]  # of the thresholds below each point
        return grid, weight, float((fpr * inner).sum()), held.kind

    def aggregate_two(self, learnt: Any, scores: Floats, bags: Bags) -> Floats:
        """Mean over the thresholds."""
        grid, weight, offset, kind = learnt
        psi = np.interp(self._axis(scores, kind), grid, weight)
        mean = bags.means(psi[:, None], self.n_jobs)[:, 0]
        return np.asarray(np.clip(mean - offset, 0, 1))


class SORD(OrderQuantifier):
    """Match scores by the earth mover's distance, without bins. Maletzke et al. (2019).

    Parameters
    ----------
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> y = [0] * 6 + [1] * 4
    >>> scores = [0.1, 0.2, 0.1, 0.3, 0.2, 0.6, 0.9, 0.8, 0.7, 0.4]
    >>> SORD().fit_scores(scores, y).predict_scores([0.1, 0.9, 0.2, 0.9]).round(2)
    array([0.43, 0.57])
    """

    def learn_two(self, scores: Floats, positive: Bools, held: Held) -> Any:  # noqa: ARG002
        """Keep the sorted scores and how many of each class are below."""
        order = np.argsort(scores, kind="stable")
        own = positive[order]
        below = [np.cumsum(own == c) / (own == c).sum() for c in (True, False)]
        return scores[order], below[0], below[1]

    def aggregate_two(self, learnt: Any, scores: Floats, bags: Bags) -> Floats:
        """Share of least distance."""
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


class SMM(OrderQuantifier):
    """Sample mean matching: where the bag's mean score lies between the classes' means.

    A running mean is all it keeps of a bag. Hassan, Maletzke and Batista (2020).

    Parameters
    ----------
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> smm = SMM().fit_scores([0.1, 0.3, 0.6, 0.8], [0, 0, 1, 1])
    >>> smm.predict_scores([0.3, 0.6]).round(2)
    array([0.5, 0.5])
    """

    def learn_two(self, scores: Floats, positive: Bools, held: Held) -> Any:  # noqa: ARG002
        """Keep the classes' mean scores."""
        low, high = scores[~positive].mean(), scores[positive].mean()
        if not abs(high - low) > 1e-9 * (1 + np.abs(scores).max()):
            warn_useless("the classes have the same mean score")
        return low, high, float(positive.mean())

    def aggregate_two(self, learnt: Any, scores: Floats, bags: Bags) -> Floats:
        """Where the bag's mean lies between them."""
        low, high, frequency = learnt
        mean = bags.means(scores[:, None], self.n_jobs)[:, 0]
        if low == high:
            return np.full(len(bags), frequency)
        return np.asarray(np.clip((mean - low) / (high - low), 0, 1))


def survival(values: Floats, grid: Floats) -> Floats:
    """Share of values above each grid point, smoothed by a Gaussian kernel."""
    spread = min(np.std(values), np.subtract(*np.percentile(values, [75, 25])) / 1.349)
    spread = spread if spread > 0 else np.std(values)
    width = max(0.9 * spread * len(values) ** -0.2, 1e-6 * float(np.ptp(grid)), 1e-300)
    out = np.zeros(len(grid))
    for part in np.array_split(values, -(-len(values) // 4096)):  # memory: 4096 x grid
        out += ndtr((part[:, None] - grid) / width).sum(axis=0)
    return out / len(values)
