"""Interval estimates of prevalences: the record, and bounds from moments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, norm

from headcount._core.frame import Frame
from headcount._core.types import Floats

# Standard deviation of a share from which both borders of [0, 1] matter: even the middle is within
# about four of them of either.
BETA_FROM_SD = 0.12
# Parent normals are tabulated by where they are cut, in standard deviations from their mean.
CUTS = np.linspace(-8.0, 6.0, 1401)


@dataclass(frozen=True, eq=False)
class Interval:
    """Prevalence of each class with bounds: vectors for one bag, one row per bag for many.

    Attributes
    ----------
    classes : array of shape (classes,)
    prevalence : array
        Point estimates; they lie on the simplex.
    low, high : arrays
        Bounds; they contain the estimate, and lie within 0 and 1.
    variance : array
        Posterior variance of the prevalences.
    level : float
        Nominal coverage of each interval, or of all classes of a bag if simultaneous.
    """

    classes: NDArray[Any]
    prevalence: Floats
    low: Floats
    high: Floats
    variance: Floats
    level: float

    @property
    def worth(self) -> Floats:
        """Number of randomly drawn items whose labels would be as informative."""
        error = np.maximum(self.variance, 1e-12).sum(axis=-1)
        of_one = (self.prevalence * (1 - self.prevalence)).sum(axis=-1)
        return np.asarray(np.maximum(of_one / error, 1.0))

    @property
    def middle(self) -> Floats:
        """Midpoints of the intervals, normalised to sum to 1."""
        middle = (self.low + self.high) / 2
        return np.asarray(middle / np.maximum(middle.sum(axis=-1, keepdims=True), 1e-12))

    def to_frame(self, ids: Any = None) -> Frame:
        """One row per bag and class."""
        k = len(self.classes)
        rows = np.atleast_2d(self.prevalence)
        ids = np.arange(len(rows)) if ids is None else np.asarray(ids)
        return Frame(
            {
                "bag": np.repeat(ids, k),
                "class": np.tile(self.classes, len(rows)),
                "share": rows.ravel(),
                "low": np.atleast_2d(self.low).ravel(),
                "high": np.atleast_2d(self.high).ravel(),
            }
        )

    def first(self) -> Interval:
        """Interval of the first bag alone, as vectors."""
        arrays = {n: getattr(self, n)[0] for n in ("prevalence", "low", "high", "variance")}
        return replace(self, **arrays)


def bounds(mean: Floats, variance: Floats, level: Floats | float) -> tuple[Floats, Floats]:
    """Bounds of a share in [0, 1] with these moments.

    The highest-density interval of a normal distribution truncated at the nearer border; where the
    share may be almost anywhere, equal-tailed quantiles of a Beta distribution.
    """
    level = np.broadcast_to(np.asarray(level, dtype=float), mean.shape)
    mean = np.clip(mean, 1e-9, 1 - 1e-9)
    mirrored = mean > 0.5
    centre, scale = truncated_normal(np.where(mirrored, 1 - mean, mean), variance)
    low, high = _highest_density(centre, scale, level)
    low, high = np.where(mirrored, 1 - high, low), np.where(mirrored, 1 - low, high)
    wide = np.sqrt(np.maximum(variance, 0.0)) > BETA_FROM_SD
    if wide.any():
        low[wide], high[wide] = _beta(mean[wide], variance[wide], level[wide])
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def truncated_normal(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the normal distribution that has these moments above 0."""
    sd = np.sqrt(np.maximum(variance, 1e-18))
    left = norm.sf(CUTS)
    hazard = norm.pdf(CUTS) / left
    shrunk = np.sqrt(1.0 + CUTS * hazard - hazard**2)
    ratio = (hazard - CUTS) / shrunk  # of mean and standard deviation; it falls with the cut
    cut = np.interp(-mean / sd, -ratio, CUTS)
    scale = sd / np.interp(cut, CUTS, shrunk)
    return np.where(mean / sd >= ratio[0], mean, -cut * scale), scale


def _highest_density(centre: Floats, scale: Floats, level: Floats) -> tuple[Floats, Floats]:
    """Highest-density interval of normals truncated below 0."""
    above = norm.sf(-centre / scale)
    half = scale * norm.ppf((1.0 + level * above) / 2.0)
    reaches = centre - half <= 0.0
    top = centre + scale * norm.ppf(1.0 - (1.0 - level) * above)
    return np.where(reaches, 0.0, centre - half), np.where(reaches, top, centre + half)


def _beta(mean: Floats, variance: Floats, level: Floats) -> tuple[Floats, Floats]:
    total = mean * (1 - mean) / np.minimum(variance, 0.999 * mean * (1 - mean)) - 1
    a, b = mean * total, (1 - mean) * total
    return beta.ppf((1 - level) / 2, a, b), beta.ppf((1 + level) / 2, a, b)
