"""Partial pooling: a group's own labelled rows, what the model says of it, and the usual share.

The model is tried on labelled groups that it had not seen. How its answers relate to the true
shares there says how much to believe it about a new group, and how far off it may be beyond its
own interval. Where a group has labelled rows of its own, these and the model are averaged, each
weighing by how little it is off: many rows nearly decide, none leave the model alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm, t

from headcount._core.types import Bools, Floats, Ints
from headcount.inference.bounds import bounds
from headcount.inference.intervals import Interval

FEWEST = 5  # groups on each side from which on flagged ones have an error of their own
PULL = 5.0  # groups' worth of belief that classes are equally hard
DOUBT = 4.0  # rows' worth of belief in the model when the spread of a few own rows is judged


@dataclass(frozen=True, eq=False)
class Pooling:
    """What held-out groups tell about a model's answers for groups.

    Attributes
    ----------
    middle : mean share of each class over the groups
    slope : how much of an answer's distance from the middle is believed
    beyond : variance of the error beyond the model's own, for unflagged and for flagged groups
    n_groups : groups that this was learnt from
    """

    middle: Floats
    slope: float
    beyond: Floats
    n_groups: int

    def answer(self, found: Interval, flagged: Bools) -> tuple[Floats, Floats]:
        """Shares of groups without labelled rows, and the variance of their error."""
        share = self.middle + self.slope * (found.prevalence - self.middle)
        usual = self.middle * (1 - self.middle) / self.n_groups
        variance = self.slope**2 * found.variance + self.beyond[flagged.astype(int)]
        return share, variance + (1 - self.slope) ** 2 * usual

    def pool(
        self, found: Interval, flagged: Bools, own: Ints, sizes: Ints, target: str
    ) -> Interval:
        """Answers for groups with their own labelled rows, `own` by class, where they have some."""
        share, variance = self.answer(found, flagged)
        n = own.sum(axis=1, keepdims=True)
        smooth = (own + DOUBT * share) / (n + DOUBT)
        noise = smooth * (1 - smooth)
        of_own = noise / np.maximum(n, 1)
        if target == "bag":  # the rows are others than the labelled ones
            of_own = of_own + noise / np.maximum(sizes[:, None], 1)
        # One weight for all classes, since shares sum to 1: the one with the least squared error.
        off, off_own = variance.sum(axis=1, keepdims=True), of_own.sum(axis=1, keepdims=True)
        weight = np.where(n > 0, off / np.maximum(off + off_own, 1e-18), 0.0)
        mixed = weight * own / np.maximum(n, 1) + (1 - weight) * share
        # Few groups leave open how far off answers are; own rows do not.
        spread = weight**2 * of_own + (1 - weight) ** 2 * variance * self._excess(found.level)
        low, high = bounds(mixed, spread, found.level)
        low, high = np.minimum(low, mixed), np.maximum(high, mixed)
        return Interval(found.classes, mixed, low, high, spread, found.level)

    def _excess(self, level: float) -> float:
        """Factor on a variance that was learnt from few groups (Student's t for the normal).

        Classes were judged partly together, so that each tells something of the others.
        """
        together = PULL / (self.n_groups + PULL)
        others = max(len(self.middle) - 1, 1)
        alone = (1 - together) ** 2
        free = max(self.n_groups - 1, 2) / (alone + (1 - alone) / others)
        return float((t.ppf((1 + level) / 2, free) / norm.ppf((1 + level) / 2)) ** 2)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for a file."""
        return {
            "middle": self.middle.tolist(),
            "slope": self.slope,
            "beyond": self.beyond.tolist(),
            "n_groups": self.n_groups,
        }

    @classmethod
    def from_dict(cls, about: dict[str, Any]) -> Pooling:
        """The same from a file."""
        middle, beyond = np.array(about["middle"], float), np.array(about["beyond"], float)
        return cls(middle, float(about["slope"]), beyond, int(about["n_groups"]))


def learn_pooling(
    estimates: Floats, variance: Floats, truth: Floats, sizes: Ints, flagged: Bools
) -> Pooling:
    """Learn from held-out groups: estimates, variances and true shares, a row a group.

    Groups of few rows tell less of how the model errs, and weigh less.
    """
    weight = sizes / (sizes + 50.0)
    weight = weight / weight.sum()
    middle = weight @ truth
    x, y = estimates - middle, truth - middle
    across = (weight[:, None] * x**2).sum()
    # One group's worth of belief that the model is right.
    prior = across / len(sizes)
    along = (weight[:, None] * x * y).sum()
    slope = float(np.clip((along + prior) / max(across + prior, 1e-18), 0.0, 1.0))
    scale = np.maximum(middle * (1 - middle), 1e-4)
    seen, claimed = (y - slope * x) ** 2 / scale, slope**2 * variance / scale
    lost = len(sizes) / max(len(sizes) - 2, 1)

    def beyond(chosen: Bools) -> Floats:
        part, n = weight * chosen / (weight * chosen).sum(), chosen.sum()

        def pulled(values: Floats) -> Floats:
            by_class = part @ values
            return np.asarray((n * by_class + PULL * by_class.mean()) / (n + PULL)) * lost

        found = _positive(pulled(seen - claimed), pulled(seen) * np.sqrt(2 / n))
        return np.asarray(np.maximum(found, 1e-5) * scale)

    every = np.ones(len(sizes), dtype=bool)
    apart = min(flagged.sum(), (~flagged).sum()) >= FEWEST
    rows = [beyond(~flagged), beyond(flagged)] if apart else [beyond(every)] * 2
    rows[1] = np.maximum(rows[0], rows[1])
    return Pooling(middle, slope, np.array(rows), len(sizes))


def _positive(value: Floats, error: Floats) -> Floats:
    """Mean of what a variance may be that was found with a normal error and cannot be negative.

    Few groups may seem to have no error beyond what was claimed, by chance alone.
    """
    error = np.maximum(error, 1e-12)
    z = np.maximum(value / error, -5.0)
    return np.asarray(error * (z + norm.pdf(z) / norm.cdf(z)))
