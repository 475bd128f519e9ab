"""Groups without labelled rows: between what a model says of them and what groups usually are.

Held-out groups tell two things: how far the shares of groups lie apart, and how far a model's
answers are off for groups that it has not seen. Of few groups neither is known well. So all sizes
of both that the groups allow for are weighed, and each gives its own answer: one that leans on the
model where groups lie farther apart than the model errs, and on the usual shares otherwise. The
large group of a heap, of which the model says more than of a few dozen labelled rows, leans on
the model more than these did. Last, groups are left out of all this in turn, and where intervals
held less than they promise they are widened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from headcount._core.types import Bools, Floats, Ints
from headcount.inference.bounds import cut_bounds
from headcount.inference.intervals import Interval
from headcount.kernels.simplex import clip_and_normalise

# Variances are in units of m (1 - m), m the mean share of a class.
SPREADS = np.geomspace(5e-4, 0.6, 14)  # of true shares around the mean
ERRORS = np.geomspace(1e-4, 1.0, 15)  # of answers, beyond those that the model itself expects
GAINS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])  # how much of a true difference an answer shows
LIKELY = np.array([0.05, 0.1, 0.15, 0.3, 0.4])  # before any group was seen
FEWEST = 5  # groups on each side from which on flagged ones are widened by themselves
PULL = 2.0  # groups' worth of belief that intervals are as wide as they should be
FARTHEST = 25.0  # squared error, in variances, that is believed of a single group
SCARCE = 1.5  # groups that seem to be missing: of five to ten, intervals held 92 % without it
PARTS = 20  # groups are left out in at most so many parts
LEVEL = 0.95
NORMAL = 3.841  # square of an error in variances that 95 % stay under
HOPELESS = 1e-9  # of the likeliest: that is left out
AT_ONCE = 2000  # groups


@dataclass(frozen=True, eq=False)
class Unseen:
    """What held-out groups tell about groups that a model has not seen.

    Attributes
    ----------
    middle : mean share of each class over the groups
    spreads : weights of `SPREADS`
    errors : weights of `GAINS` x `ERRORS`
    widen : factors on the variance of each class, for unflagged and for flagged groups
    n_groups : groups that this was learnt from
    """

    middle: Floats
    spreads: Floats
    errors: Floats
    widen: Floats
    n_groups: int

    @property
    def beyond(self) -> Floats:
        """Variance of the error of answers that the model is sure of, as `widen`."""
        sure = np.zeros_like(self.middle)[None]
        return np.asarray(self.answer(self.middle[None], sure, np.zeros(1))[1] * self.widen)

    @property
    def width(self) -> float:
        """Mean width of the intervals of a group that the model is sure of."""
        low, high = cut_bounds(self.middle, self.beyond[0], LEVEL)
        return float((high - low).mean())

    def bound(self, found: Interval, flagged: Bools, sizes: Ints, target: str) -> Interval:
        """Shares of groups, and where they may be."""
        luck = 1.0 / np.maximum(sizes, 1) if target == "bag" else np.zeros(len(sizes))
        told = halfway(found)
        parts = [
            self.answer(told[part], found.variance[part], luck[part])
            for part in (slice(i, i + AT_ONCE) for i in range(0, len(sizes), AT_ONCE))
        ]
        share, variance = (np.concatenate(column) for column in zip(*parts, strict=True))
        variance = variance * self.widen[flagged.astype(int)]
        low, high = cut_bounds(share, variance, found.level)
        return Interval(found.classes, share, low, high, variance, found.level)

    def answer(self, told: Floats, variance: Floats, luck: Floats) -> tuple[Floats, Floats]:
        """Shares and the variance of their error, before widening.

        Parameters
        ----------
        told, variance : what the model says, and how far off it expects to be
        luck : variance of the shares of a group's rows around those that they are drawn from
        """
        k, scale = len(self.middle), _scale(self.middle)
        x = told - self.middle
        logs, spread, gain, error = self._cells
        spread, error = spread + luck, error + (variance / scale).mean(axis=1)
        total = gain**2 * spread + error
        # A group that lies far out speaks for groups that lie far apart.
        far = (x**2 / scale).mean(axis=1)
        weight = _weights(logs - 0.5 * (k - 1) * (np.log(total) + far / total), 1)
        believed = gain * spread / total
        mean = (weight * believed).sum(axis=0)
        unsure = (weight * believed**2).sum(axis=0) - mean**2
        left = (weight * spread * error / total).sum(axis=0)
        left += (1 - mean) ** 2 * (self.spreads @ SPREADS) / self.n_groups  # of the middle
        share = clip_and_normalise(self.middle + mean[:, None] * x)
        return share, left[:, None] * scale + np.maximum(unsure, 0.0)[:, None] * x**2

    @cached_property
    def _cells(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Logarithms of weights, spreads, gains and errors, as columns, where not hopeless."""
        weights = self.spreads[:, None, None] * self.errors
        s, g, e = np.nonzero(weights > HOPELESS * weights.max())
        columns = np.log(weights[s, g, e]), SPREADS[s], GAINS[g], ERRORS[e]
        return columns[0][:, None], columns[1][:, None], columns[2][:, None], columns[3][:, None]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for a file."""
        names = ("middle", "spreads", "errors", "widen")
        return {name: getattr(self, name).tolist() for name in names} | {"n_groups": self.n_groups}

    @classmethod
    def from_dict(cls, about: dict[str, Any]) -> Unseen:
        """The same from a file."""
        middle, spreads, errors, widen = (
            np.array(about[name], float) for name in ("middle", "spreads", "errors", "widen")
        )
        return cls(middle, spreads, errors, widen, int(about["n_groups"]))


def halfway(found: Interval) -> Floats:
    """Between estimates and the middles of their intervals.

    Of few rows an estimate is often 0 or 1, which the true share is not; the middle errs less
    there, and more where it rightly is.
    """
    return np.asarray((found.prevalence + found.middle) / 2)


def learn_unseen(
    told: Floats, variance: Floats, truth: Floats, sizes: Ints, flagged: Bools
) -> tuple[Unseen, Floats]:
    """Learn from held-out groups: answers, variances and true shares, a row a group.

    Returns
    -------
    Unseen
    array
        What is said of each group by what the others tell.
    """
    part = np.arange(len(sizes)) % PARTS
    share, expected = np.empty_like(truth), np.empty_like(truth)
    for p in np.unique(part):
        here, others = part == p, part != p
        if not others.any():
            others = here
        seen = _weigh(told[others], variance[others], truth[others], sizes[others])
        share[here], expected[here] = seen.answer(told[here], variance[here], 1 / sizes[here])
    off = np.minimum((truth - share) ** 2 / np.maximum(expected, 1e-12), FARTHEST)
    widen = [_widening(off)] * 2
    if min(flagged.sum(), (~flagged).sum()) >= FEWEST:
        widen = [_widening(off[~flagged]), _widening(off[flagged])]
        widen[1] = np.maximum(*widen)
    whole = _weigh(told, variance, truth, sizes)
    return replace(whole, widen=np.array(widen) * (1 + SCARCE / len(sizes))), share


def _weigh(told: Floats, variance: Floats, truth: Floats, sizes: Ints) -> Unseen:
    """How likely all spreads and errors are, not yet widened."""
    part = sizes / (sizes + 50.0)
    middle = part @ truth / part.sum()
    k, scale = len(middle), _scale(middle)
    x, y = told - middle, truth - middle
    n = len(sizes)
    apart = (y**2 / scale).mean(axis=1) * n / max(n - 1, 0.5)  # the middle is theirs, too
    total = SPREADS[:, None] + 1 / sizes
    spreads = -0.5 * (k - 1) * (np.log(total) + apart / total).sum(axis=1)
    spreads += np.log(SPREADS)  # equally likely in equal steps: others may lie farther apart
    off = np.stack([((x - gain * y) ** 2 / scale).mean(axis=1) for gain in GAINS])
    total = (variance / scale).mean(axis=1) + ERRORS[:, None]
    fits = -0.5 * (k - 1) * (np.log(total) + off[:, None, :] / total).sum(axis=2)
    errors = _weights(fits + np.log(LIKELY)[:, None], 2)
    return Unseen(middle, _weights(spreads, 1), errors, np.ones((2, k)), n)


def _widening(off: Floats) -> Floats:
    """Factors on variances, by squared errors in variances: a row a group, a column a class.

    Classes are widened by their mean squares; all of them at least so far that 95 % hold.
    """
    n = len(off)
    every = (n * off.mean() + PULL) / (n + PULL)
    by_class = (off.sum(axis=0) + PULL * every) / (n + PULL)
    needed = (n * np.quantile(off, LEVEL) / NORMAL + PULL) / (n + PULL)
    return np.asarray(np.maximum(by_class, needed))


def _scale(middle: Floats) -> Floats:
    return np.maximum(middle * (1 - middle), 1e-4)


def _weights(logs: Floats, axes: int) -> Floats:
    """Weights that sum to 1 over the first axes."""
    over = tuple(range(axes))
    weights = np.exp(logs - logs.max(axis=over))
    return np.asarray(weights / weights.sum(axis=over))
