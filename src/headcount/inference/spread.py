"""Where the shares of bags may be, given their estimates: by bags of known shares around them.

Among simulated bags whose estimate is near the real one, the true shares spread as they may in
the real bag. So bias is taken out together with noise, whatever the method, and nothing has to be
assumed about how it works (approximate Bayesian computation with local regression under a flat
prior, Beaumont et al. 2002).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.exceptions import choose
from headcount.inference.simulation import ITEMS_AT_ONCE, Simulator, labelled_part
from headcount.kernels.simplex import clip_and_normalise

REACH = 4.5  # standard errors that proposals go to either side
KEEP = 0.35  # share of them that is near enough; the rest must reach well beyond
EVEN = 0.5  # how far to equal shares simulated bags of several classes are looked at, too
PILOT = 60  # simulated bags that tell where to look, and how far
PLACES = 8  # shares at which the luck of large bags is looked at
MANY = 100  # bags of two classes from which on some stand for others


@dataclass(frozen=True, eq=False)
class Spread:
    """Where the shares of bags may be: means and variances, and the level each class needs."""

    mean: Floats
    variance: Floats
    levels: Floats

    @classmethod
    def joined(cls, parts: Sequence[Spread]) -> Spread:
        """That of the bags of all parts."""
        columns = zip(*((p.mean, p.variance, p.levels) for p in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))


@dataclass(frozen=True)
class Request:
    """What interval is wanted.

    Parameters
    ----------
    level : float, default 0.95
    simultaneous : bool, default False
        True widens the intervals so that all classes of a bag are inside at once.
    target : {'bag', 'population'}
        Shares among the very items of the bag, or in the population that it was drawn from.
    n_draws : int, default 300
        Simulated bags for every bag.
    random_state : int, default 0
    doubt : bool, default True
        Whether the interval is 0 to 1 where scores tell no class from the others.
    tried : bool, default True
        Whether a method that bends to the labelled items is tried on halves of them, and its
        intervals widened by what is missing; False where the one who asks does that.
    """

    level: float = 0.95
    simultaneous: bool = False
    target: str = "bag"
    n_draws: int = 300
    random_state: int = 0
    doubt: bool = True
    tried: bool = True

    def __post_init__(self) -> None:
        check.at_least("level", self.level, 0.5, 0.999)
        check.whole("n_draws", self.n_draws, 50)
        choose("target", self.target, ["bag", "population"])


def spread_of(simulator: Simulator, estimates: Floats, sizes: Ints, request: Request) -> Spread:
    """Where the shares of bags of these sizes may be, given their estimates.

    The cost does not grow with the size of a bag beyond twice the number of labelled items (or
    20,000). What the luck of a larger bag's own items adds to the variance is told from there: it
    falls as their number grows, and what the labelled items add stays.
    """
    whole, sizes = sizes, np.minimum(sizes, simulator.enough)
    rng = np.random.default_rng(request.random_state)
    if estimates.shape[1] == 2 and len(estimates) > MANY:
        sizes = _coarse(sizes)
        anchors, owner = _anchors(simulator, estimates, sizes, rng)
    else:
        anchors = owner = np.arange(len(estimates))
    shape = estimates.shape
    mean, variance, levels = np.empty(shape), np.empty(shape), np.empty(shape[0])
    step = max(1, min((1 << 22) // (request.n_draws * shape[1]), ITEMS_AT_ONCE // int(sizes.max())))
    for start in range(0, len(anchors), step):
        chosen = anchors[start : start + step]
        found, truths = _near(simulator, estimates[chosen], sizes[chosen], rng, request)
        for near in _blocks(np.flatnonzero((owner >= start) & (owner < start + step)), step):
            own = owner[near] - start
            part = from_pairs(found[own], truths[own], estimates[near], request)
            mean[near], variance[near], levels[near] = part.mean, part.variance, part.levels
    less = np.minimum(simulator.enough / whole, 1.0)[:, None]
    if (less < 1).any():
        luck = 1.0 - _labelled_part(simulator, request)
        variance *= 1.0 - luck + luck * less
    return Spread(mean, variance, levels)


def from_pairs(
    found: Floats, truths: Floats, estimates: Floats, request: Request, keep: float = KEEP
) -> Spread:
    """Where shares may be, from simulated bags: estimates and truths, both of shape (S, T, k).

    Of the simulated bags the nearest count, the nearer the more, and a line through them carries
    each truth to the estimate that was really made.
    """
    distance = found - estimates[:, None, :]
    away = np.abs(distance)
    last = int(found.shape[1] * keep)
    radius = np.partition(away, last, axis=1)[:, last : last + 1]
    safe = np.maximum(radius, 1e-12) * 1.0001
    weight = np.maximum(1.0 - (away / safe) ** 2, 0.0)
    weight = np.where(radius > 0, weight, (away <= 1e-12).astype(float))
    weight /= weight.sum(axis=1, keepdims=True)
    centre = (weight * distance).sum(axis=1, keepdims=True)
    middle = (weight * truths).sum(axis=1, keepdims=True)
    across = (weight * (distance - centre) ** 2).sum(axis=1, keepdims=True)
    along = (weight * (distance - centre) * (truths - middle)).sum(axis=1, keepdims=True)
    slope = np.where(across > 1e-14, along / np.maximum(across, 1e-14), 0.0)
    carried = np.clip(truths - slope * distance, 0.0, 1.0)
    mean = (weight * carried).sum(axis=1)
    effective = 1.0 / (weight**2).sum(axis=1)
    variance = (weight * (carried - mean[:, None, :]) ** 2).sum(axis=1)
    variance *= effective / np.maximum(effective - 2.0, 1.0)
    levels = np.full(len(mean), request.level)
    if request.simultaneous:
        levels = joint_level(weight, carried, mean, variance, request.level)
    return Spread(mean, variance, levels)


def spread_of_draws(draws: Any, sizes: Ints, request: Request) -> Spread:
    """The same from draws of a posterior, of shape (bags, draws, classes)."""
    exact = draws.astype(np.float64)
    mean, variance = exact.mean(axis=1), exact.var(axis=1)
    if request.target == "population":
        variance = variance + (exact * (1 - exact)).mean(axis=1) / sizes[:, None]
    levels = np.full(len(draws), request.level)
    if request.simultaneous:
        weight = np.full_like(exact, 1 / exact.shape[1])
        levels = joint_level(weight, exact, mean, variance, request.level)
    return Spread(mean, variance, levels)


def joint_level(
    weight: Floats, carried: Floats, mean: Floats, variance: Floats, level: float
) -> Floats:
    """Level for each class that puts all classes of a bag inside at once."""
    scaled = np.abs(carried - mean[:, None, :]) / np.sqrt(np.maximum(variance, 1e-14))[:, None, :]
    worst = scaled.max(axis=2)
    together = weight.mean(axis=2)
    order = np.argsort(worst, axis=1)
    summed = np.cumsum(np.take_along_axis(together, order, axis=1), axis=1)
    first = np.argmax(summed >= level * summed[:, -1:], axis=1)
    reach = np.take_along_axis(worst, np.take_along_axis(order, first[:, None], axis=1), axis=1)
    k = mean.shape[1]
    return np.asarray(np.clip(2 * norm.cdf(reach[:, 0]) - 1, level, 1 - (1 - level) / k))


def _near(
    simulator: Simulator, estimates: Floats, sizes: Ints, rng: np.random.Generator, request: Request
) -> tuple[Floats, Floats]:
    """Simulated bags around each real one: first a few to find where, then the rest.

    Of several classes, some more reach as far as they would if the shares were more even: a method
    that says 0 of a class may do so whatever its share, up to a point, and near 0 alone that would
    not be seen.
    """
    n_bags, k = estimates.shape
    least = 1.0 / np.minimum(sizes, len(simulator.codes))[:, None]
    found = []
    for even, n_draws in ((0.0, request.n_draws), (EVEN, request.n_draws // 2))[: min(k - 1, 2)]:
        bias, root = _pilot(simulator, estimates, sizes, np.maximum(even, k * least), rng, request)
        steps = rng.uniform(-REACH, REACH, size=(n_bags, n_draws, k))
        around = clip_and_normalise(estimates - bias)
        found.append(around[:, None, :] + np.einsum("skl,stl->stk", root, steps))
    proposals = np.concatenate(found, axis=1)
    inside = 1.0 - np.abs(1.0 - np.mod(np.abs(proposals), 2.0))  # folded back at 0 and 1
    inside /= np.maximum(inside.sum(axis=2, keepdims=True), 1e-12)
    return simulator.run(inside, sizes, rng, request.target)


def _pilot(
    simulator: Simulator,
    estimates: Floats,
    sizes: Ints,
    pull: Floats,
    rng: np.random.Generator,
    request: Request,
) -> tuple[Floats, Floats]:
    """Bias and a root of the covariance of estimates, at shares pulled to even ones."""
    k = estimates.shape[1]
    least = 1.0 / np.minimum(sizes, len(simulator.codes))[:, None]
    pull = np.minimum(0.5, pull)
    start = estimates * (1 - pull) + pull / k
    at_start = np.repeat(start[:, None, :], PILOT, axis=1)
    found, truths = simulator.run(at_start, sizes, rng, request.target)
    errors = found - truths
    bias = errors.mean(axis=1)
    centred = errors - bias[:, None, :]
    spread = np.einsum("stk,stl->skl", centred, centred) / (PILOT - 1)
    spread += (least**2)[:, :, None] * (np.eye(k) - 1 / k)
    values, vectors = np.linalg.eigh(spread)
    return bias, vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]


def _labelled_part(simulator: Simulator, request: Request) -> Floats:
    """What the labelled items add to the variance of the largest simulated bags, for each class.

    At shares that are drawn once and for all: an answer must not depend on what else is asked.
    """
    rng = np.random.default_rng(request.random_state)
    shares = rng.dirichlet(np.ones(simulator.n_classes), size=PLACES)
    sizes = np.full(PLACES, simulator.enough)
    return labelled_part(simulator, shares, sizes, rng, request.target)


def _coarse(sizes: Ints) -> Ints:
    """Sizes rounded down to steps of a tenth, so that many bags have the same."""
    steps = np.floor(np.log(sizes) / np.log(1.1) + 1e-9)
    return np.asarray(np.maximum((1.1**steps).astype(np.int64), 1))


def _anchors(
    simulator: Simulator, estimates: Floats, sizes: Ints, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Bags of two classes to simulate around, and for every bag the one that stands for it.

    Bags of one size differ in a single number, and those within a standard error of each other
    have the same bags around them: some dozens tell about thousands.
    """
    anchors: list[int] = []
    owner = np.empty(len(estimates), dtype=np.int64)
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        step = _least_error(simulator, estimates[members], int(size), rng)
        cells = np.floor(estimates[members, 1] / step).astype(np.int64)
        _, firsts, own = np.unique(cells, return_index=True, return_inverse=True)
        owner[members] = len(anchors) + own
        anchors += members[firsts].tolist()
    return np.array(anchors), owner


def _least_error(
    simulator: Simulator, estimates: Floats, size: int, rng: np.random.Generator
) -> float:
    """Smallest standard error among bags of one size, at a few of their estimates."""
    few = estimates[np.argsort(estimates[:, 1])[np.linspace(0, len(estimates) - 1, 5).astype(int)]]
    inner = few * 0.9 + 0.05
    shares = np.repeat(inner[:, None, :], PILOT, axis=1)
    found, truths = simulator.run(shares, np.full(5, size), rng, "bag")
    return max(float((found - truths)[:, :, 1].std(axis=1).min()), 1e-4)


def _blocks(rows: Ints, size: int) -> list[Ints]:
    return [rows[i : i + size] for i in range(0, len(rows), size)]
