"""Bounds of shares with a known mean and variance, which must not leave [0, 1]."""

from __future__ import annotations

import numpy as np
from scipy.stats import beta, norm

from headcount._core.types import Floats

WIDE = 0.12  # standard deviation from which both borders count


def bounds(mean: Floats, variance: Floats, level: Floats | float) -> tuple[Floats, Floats]:
    """Likeliest interval of shares with these moments.

    Near a border the shares are taken as normal but cut off there, so that the interval ends at
    the border where that is among the likely values. Where they are spread over much of the range,
    both borders count, and they are taken as Beta.
    """
    level = np.broadcast_to(np.asarray(level, dtype=float), mean.shape)
    mean = np.clip(mean, 1e-9, 1 - 1e-9)
    sd = np.sqrt(np.maximum(variance, 1e-18))
    mirrored = mean > 0.5
    low, high = _cut_normal(np.where(mirrored, 1 - mean, mean), sd, level)
    low, high = np.where(mirrored, 1 - high, low), np.where(mirrored, 1 - low, high)
    wide = sd > WIDE
    if wide.any():
        low[wide], high[wide] = _beta(mean[wide], variance[wide], level[wide])
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def cut_bounds(top: Floats, variance: Floats, level: float) -> tuple[Floats, Floats]:
    """Likeliest interval of normals that are cut off at 0 and 1.

    Parameters
    ----------
    top, variance : the likeliest share, and the variance before cutting
    """
    sd = np.sqrt(np.maximum(variance, 1e-18))
    below, above = norm.cdf(-top / sd), norm.cdf((1.0 - top) / sd)
    inside = level * (above - below)
    half = sd * norm.ppf((1.0 + inside) / 2.0)
    first, last = top - half < 0.0, top + half > 1.0  # never both: less than all is inside
    from_end = top + sd * norm.ppf(np.maximum(above - inside, 1e-16))
    from_start = top + sd * norm.ppf(np.minimum(below + inside, 1.0 - 1e-16))
    low = np.where(first, 0.0, np.where(last, from_end, top - half))
    high = np.where(last, 1.0, np.where(first, from_start, top + half))
    return np.clip(low, 0.0, top), np.clip(high, top, 1.0)


def _cut_normal(mean: Floats, sd: Floats, level: Floats) -> tuple[Floats, Floats]:
    """Likeliest interval of normals that are cut off below 0, by the moments that remain."""
    cut = np.linspace(-8.0, 6.0, 1401)  # where the cut is, in standard deviations from the middle
    left = norm.sf(cut)
    pull = norm.pdf(cut) / left
    shrunk = np.sqrt(1.0 + cut * pull - pull**2)
    ratio = (pull - cut) / shrunk  # of mean and standard deviation; it falls as more is cut off
    at = np.interp(-mean / sd, -ratio, cut)
    sigma = sd / np.interp(at, cut, shrunk)
    middle = np.where(mean / sd >= ratio[0], mean, -at * sigma)
    left = norm.sf(-middle / sigma)
    half = sigma * norm.ppf((1.0 + level * left) / 2.0)
    reaches = middle - half <= 0.0
    top = middle + sigma * norm.ppf(1.0 - (1.0 - level) * left)
    return np.where(reaches, 0.0, middle - half), np.where(reaches, top, middle + half)


def _beta(mean: Floats, variance: Floats, level: Floats) -> tuple[Floats, Floats]:
    total = mean * (1 - mean) / np.minimum(variance, 0.999 * mean * (1 - mean)) - 1
    a, b = mean * total, (1 - mean) * total
    return beta.ppf((1 - level) / 2, a, b), beta.ppf((1 + level) / 2, a, b)
