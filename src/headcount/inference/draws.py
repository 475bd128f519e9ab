"""Joint draws of the prevalences of many bags: the one object from which uncertainty is computed.

A draw is an array (bag, replicate, class) on the simplex. A replicate is one bootstrap of the
labelled items, shared by all bags, so that the error which the labelled items cause is the same
function of the prevalences in every bag. Intervals, unions, differences and population targets are
arithmetic on draws.

Model: the share of a class in a bag has a truncated normal distribution with the posterior moments
of that bag. Its normal score is the sum of two independent parts: the error of the labelled items
in that replicate (`labelled_error`), and the sampling error of the bag's own items, which is
multinomial. (A Gaussian copula with truncated normal margins.) The random numbers of the second
part come from a hash of the bag's content, so a bag's draws depend on the seed, the labelled items
and that bag alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from headcount._core.types import Bools, Floats, Ints
from headcount.inference.intervals import Interval, bounds, truncated_normal
from headcount.inference.labelled_error import LabelledError
from headcount.kernels.random import keyed_uniforms
from headcount.kernels.simplex import clip_and_normalise

NUMBERS_PER_BATCH = 1 << 22  # values of draws held in memory at once: 32 MB
POSTERIOR_COUNT = 1.0  # items: the flat prior Beta(1, 1) on a population's prevalence

# Arrays with one row per bag.
BAG_ARRAYS = ("estimates", "mean", "variance", "sizes", "labelled_share", "keys", "known")


@dataclass(frozen=True, eq=False)
class Draws:
    """Joint draws of the prevalences of bags, as `Quantifier.predict_draws` returns them.

    Usually only moments are stored, with what bags have in common; `array` computes the draws.

    Attributes
    ----------
    classes : array of shape (classes,)
    estimates : array of shape (bags, classes)
        Point estimates, which intervals always contain.
    mean, variance : arrays of shape (bags, classes)
        Posterior moments of the prevalences.
    sizes : array of shape (bags,)
        Items of each bag.
    labelled_share : array of shape (bags, classes)
        Share of the variance that is due to the labelled items, and so common to all bags.
    keys : array of shape (bags,)
        Hash of each bag's content, which determines its random numbers.
    known : array of shape (bags,)
        False for bags of which nothing is known; their interval is [0, 1].
    labelled : LabelledError or None
        Error due to the labelled items in each replicate; None if bags do not share it.
    values : array of shape (bags, replicates, classes), optional
        The draws themselves, if they do not follow from the moments.
    n_replicates, seed : int

    Examples
    --------
    >>> from headcount import PACC, Bags
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(2, 1000)
    >>> scores = np.clip(0.2 + 0.6 * y + rng.normal(0, 0.1, 1000), 0, 1)
    >>> q = PACC(calibrate_width=False).fit_scores(np.column_stack([1 - scores, scores]), y)
    >>> bags = Bags.from_lists([np.flatnonzero(y == 0), np.arange(1000)], n_items=1000)
    >>> draws = q.predict_draws(np.column_stack([1 - scores, scores]), bags)
    >>> len(draws), draws.array().shape
    (2, (2, 100, 2))
    >>> draws.estimates.round(1)
    array([[1. , 0. ],
           [0.5, 0.5]])
    """

    classes: NDArray[Any]
    estimates: Floats
    mean: Floats
    variance: Floats
    sizes: Floats
    labelled_share: Floats
    keys: NDArray[np.uint64]
    known: Bools
    labelled: LabelledError | None = None
    values: Floats | None = None
    n_replicates: int = 300
    seed: int = 0

    def __len__(self) -> int:
        return len(self.estimates)

    @classmethod
    def uninformative(cls, classes: NDArray[Any], estimates: Floats, sizes: Any) -> Draws:
        """Draws for bags of which nothing is known: uniform on the simplex.

        Examples
        --------
        >>> draws = Draws.uninformative(np.array(["no", "yes"]), np.array([[0.7, 0.3]]), [50])
        >>> draws.interval().high
        array([[1., 1.]])
        """
        k = len(classes)
        n = len(estimates)
        rng = np.random.default_rng(0)
        flat = np.broadcast_to(rng.dirichlet(np.ones(k), size=300), (n, 300, k))  # no copies
        drawn = cls.of_values(classes, estimates, flat, sizes)
        return replace(drawn, known=np.zeros(n, dtype=bool))

    @classmethod
    def of_values(cls, classes: NDArray[Any], estimates: Floats, values: Any, sizes: Any) -> Draws:
        """Draws with these values, such as those of a posterior.

        Parameters
        ----------
        classes : array of shape (classes,)
        estimates : array of shape (bags, classes)
        values : array of shape (bags, replicates, classes)
        sizes : array of shape (bags,)

        Examples
        --------
        >>> values = np.random.default_rng(0).dirichlet([30, 70], size=(1, 300))
        >>> draws = Draws.of_values(np.array(["no", "yes"]), np.array([[0.3, 0.7]]), values, [100])
        >>> draws.interval().low.round(1)
        array([[0.2, 0.6]])
        """
        exact = np.asarray(values, dtype=np.float64)
        n = len(exact)
        return cls(
            classes,
            estimates,
            exact.mean(axis=1),
            exact.var(axis=1),
            np.asarray(sizes, dtype=float),
            np.zeros((n, exact.shape[2])),
            np.arange(n, dtype=np.uint64),
            np.ones(n, dtype=bool),
            values=exact,
            n_replicates=exact.shape[1],
        )

    def take(self, bags: Any) -> Draws:
        """Draws of some of the bags, by their numbers, a slice or a mask."""
        parts: dict[str, Any] = {name: getattr(self, name)[bags] for name in BAG_ARRAYS}
        return replace(self, **parts, values=None if self.values is None else self.values[bags])

    @classmethod
    def concatenate(cls, parts: Sequence[Draws]) -> Draws:
        """Draws of the bags of all parts, which must come from the same quantifier.

        `values` are kept if every part has them.
        """
        if len(parts) == 1:
            return parts[0]
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in BAG_ARRAYS
        }
        given = [p.values for p in parts if p.values is not None]
        values = np.concatenate(given) if len(given) == len(parts) else None
        first = next((p for p in parts if p.labelled is not None), parts[0])
        return replace(first, **joined, values=values)

    def array(self) -> Floats:
        """Values of shape (bags, replicates, classes), each on the simplex."""
        if self.values is not None:
            return self.values
        share = np.clip(self.labelled_share, 0.0, 1.0)[:, None, :]
        scores = np.sqrt(1.0 - share) * self._sampling_scores()
        if self.labelled is not None:
            error = self.labelled.at(self.mean)
            scale = np.maximum(np.sqrt(self.labelled.variance(self.mean)), 1e-12)
            scores = scores - np.sqrt(share) * error / scale[:, None, :]
        return self._shares(scores)

    def chunks(self) -> Iterator[tuple[slice, Floats]]:
        """Values of some bags at a time, with the slice of these bags, in bounded memory."""
        step = max(1, NUMBERS_PER_BATCH // (self.n_replicates * len(self.classes)))
        for start in range(0, len(self), step):
            part = slice(start, start + step)
            yield part, self.take(part).array()

    def interval(self, level: float = 0.95, *, simultaneous: bool = False) -> Interval:
        """Highest-density interval of each class, from the moments.

        A bound less than half an item from 0 or 1 is moved there: among three items a share is 0 or
        at least 1/3 (continuity correction).

        Parameters
        ----------
        level : float, default 0.95
        simultaneous : bool, default False
            Whether all classes of a bag are to be inside at once.

        Examples
        --------
        >>> values = np.random.default_rng(0).dirichlet([20, 30, 50], size=(1, 300))
        >>> draws = Draws.of_values(np.arange(3), np.array([[0.2, 0.3, 0.5]]), values, [100])
        >>> each, joint = draws.interval(), draws.interval(simultaneous=True)
        >>> bool((joint.low < each.low).all() and (joint.high > each.high).all())
        True
        """
        levels: Any = level
        if simultaneous:
            levels = np.concatenate([self._joint_levels(p, v, level) for p, v in self.chunks()])
            levels = levels[:, None]
        low, high = bounds(self.mean, self.variance, levels)
        half = 0.5 / np.maximum(self.sizes, 1.0)[:, None]
        low, high = np.where(low < half, 0.0, low), np.where(high > 1.0 - half, 1.0, high)
        open_ = ~self.known[:, None]
        low = np.where(open_, 0.0, np.minimum(low, self.estimates))
        high = np.where(open_, 1.0, np.maximum(high, self.estimates))
        return Interval(self.classes, self.estimates, low, high, self.variance, level)

    def inflated(self, error: Floats) -> Draws:
        """Draws with an additional independent error of this standard deviation."""
        total = self.variance + error**2
        share = self.labelled_share * self.variance / np.maximum(total, 1e-300)
        return replace(self, variance=total, labelled_share=share).smooth()

    def smooth(self) -> Draws:
        """Draws by the same moments, without stored values."""
        return replace(self, values=None)

    def about(self, estimates: Floats) -> Draws:
        """Same draws with other point estimates; intervals are extended to contain them."""
        return replace(self, estimates=estimates)

    def population(self) -> Draws:
        """Draws for the populations that the bags are random samples of.

        Given a bag of n items with share p, its population has a Dirichlet posterior under a flat
        prior, whose variance p (1 - p) / (n + 1) is added.

        Examples
        --------
        >>> values = np.full((1, 300, 2), 0.5)  # the shares among 99 items are known exactly
        >>> draws = Draws.of_values(np.arange(2), np.array([[0.5, 0.5]]), values, [99])
        >>> np.sqrt(draws.population().variance)
        array([[0.05, 0.05]])
        """
        n = self.sizes[:, None] + POSTERIOR_COUNT
        extra = np.maximum(self.mean * (1 - self.mean) - self.variance, 0.0) / n
        total = self.variance + extra
        share = self.labelled_share * self.variance / np.maximum(total, 1e-300)
        return replace(self, variance=total, labelled_share=share).smooth()

    def shrunk(self, mean: Floats, variance: Floats, weight: Floats) -> Draws:
        """Draws of weighted means of these draws and an independent source of information.

        Parameters
        ----------
        mean, variance : arrays of shape (bags, classes)
            Moments of the weighted means; the means are also the estimates.
        weight : array of shape (bags, 1)
            Weight of these draws in the means.
        """
        own = np.minimum(weight**2 * self.variance * self.known[:, None], variance)
        share = self.labelled_share * own / np.maximum(variance, 1e-300)
        moments: Any = {"estimates": mean, "mean": mean, "variance": variance}
        known = np.ones(len(self), dtype=bool)
        return replace(self, **moments, labelled_share=share, known=known).smooth()

    def union(self, owner: Ints, weights: Floats | None = None) -> Draws:
        """Draws of unions of bags, as weighted means of their draws, replicate by replicate.

        Parameters
        ----------
        owner : array of shape (bags,)
            Number of the union that each bag belongs to, from 0.
        weights : array of shape (bags,), optional
            By default the sizes of the bags.

        Examples
        --------
        >>> values = np.random.default_rng(0).dirichlet([50, 50], size=(2, 300))
        >>> estimates = np.array([[0.4, 0.6], [0.7, 0.3]])
        >>> draws = Draws.of_values(np.arange(2), estimates, values, [200, 100])
        >>> both = draws.union(np.array([0, 0]))
        >>> both.estimates.round(2), both.sizes
        (array([[0.5, 0.5]]), array([300.]))
        >>> bool(np.allclose(both.array()[0], (2 * values[0] + values[1]) / 3))
        True
        """
        weights = self.sizes if weights is None else np.asarray(weights, dtype=float)
        n = int(owner.max()) + 1
        share = weights / np.bincount(owner, weights, minlength=n)[owner]
        k = len(self.classes)
        values = np.zeros((n, self.n_replicates, k))
        estimates = np.zeros((n, k))
        np.add.at(estimates, owner, share[:, None] * self.estimates)
        for part, drawn in self.chunks():
            np.add.at(values, owner[part], share[part, None, None] * drawn)
        keys = np.zeros(n, dtype=np.uint64)
        np.add.at(keys, owner, self.keys)
        merged = Draws.of_values(self.classes, estimates, values, np.bincount(owner, self.sizes))
        known = np.bincount(owner, ~self.known, minlength=n) == 0
        return replace(merged, keys=keys, known=known, seed=self.seed)

    def merge_classes(self, groups: Sequence[Sequence[int]], names: Sequence[Any]) -> Draws:
        """Draws for sums of classes, such as all but a few.

        Parameters
        ----------
        groups : numbers of the classes of each sum
        names : of the sums

        Examples
        --------
        >>> values = np.random.default_rng(0).dirichlet([20, 30, 50], size=(1, 300))
        >>> draws = Draws.of_values(np.arange(3), np.array([[0.2, 0.3, 0.5]]), values, [100])
        >>> draws.merge_classes([[0], [1, 2]], ["first", "others"]).estimates
        array([[0.2, 0.8]])
        """
        parts = [self.estimates[:, list(g)].sum(axis=1) for g in groups]
        values = np.stack([self.array()[:, :, list(g)].sum(axis=2) for g in groups], axis=2)
        merged = Draws.of_values(np.asarray(names), np.column_stack(parts), values, self.sizes)
        return replace(merged, keys=self.keys, known=self.known, seed=self.seed)

    def changes(self, weights: Floats) -> tuple[Floats, Floats]:
        """Differences of bags from a weighted mean of bags, and their variances.

        The error due to the labelled items cancels as far as prevalences agree; sampling variances
        add up. Where bags do not share that error (`labelled` is None, as for unions and given
        values), nothing cancels.

        Parameters
        ----------
        weights : array of shape (bags,)
            Weight of each bag in the mean, summing to 1.

        Returns
        -------
        difference, variance : arrays of shape (bags, classes)

        Examples
        --------
        >>> values = np.random.default_rng(0).dirichlet([50, 50], size=(2, 300))
        >>> draws = Draws.of_values(np.arange(2), values.mean(axis=1), values, [100, 100])
        >>> difference, variance = draws.changes(np.array([1.0, 0.0]))  # from the first bag
        >>> bool(np.abs(difference[1]).max() < 0.05), np.sqrt(variance[1]).round(2)
        (True, array([0.07, 0.07]))
        """
        gap = self.mean - weights @ self.mean
        if self.labelled is None:
            return gap, self.variance + weights**2 @ self.variance
        sampling = self.variance * (1.0 - self.labelled_share)
        return gap, self.labelled.variance(gap) + sampling + weights**2 @ sampling

    def _sampling_scores(self) -> Floats:
        """Standard normal scores with the correlations of multinomial counts at the means."""
        n, r, k = len(self), self.n_replicates, len(self.classes)
        uniform = keyed_uniforms(self.seed, self.keys, r * k).reshape(n, r, k)
        normal = ndtri(uniform)
        smooth = (self.mean * self.sizes[:, None] + 1 / k) / (self.sizes[:, None] + 1)
        p = smooth / smooth.sum(axis=1, keepdims=True)
        root = np.sqrt(p)[:, None, :]
        counts = root * normal - p[:, None, :] * (root * normal).sum(axis=2, keepdims=True)
        return np.asarray(counts / np.sqrt(np.maximum(p * (1 - p), 1e-12))[:, None, :])

    def _shares(self, scores: Floats) -> Floats:
        """Draws on the simplex with the bags' moments and these normal scores."""
        mirrored = self.mean > 0.5
        near = np.where(mirrored, 1 - self.mean, self.mean)
        centre, scale = (a[:, None, :] for a in truncated_normal(near, self.variance))
        sign = np.where(mirrored, -1.0, 1.0)[:, None, :]
        below = ndtr(-centre / scale)
        quantile = below + (1 - below) * ndtr(sign * scores)
        values = centre + scale * ndtri(np.clip(quantile, 1e-300, 1 - 1e-16))
        values = np.where(mirrored[:, None, :], 1 - values, values)
        # Conditioning normal shares on their sum moves each in proportion to its variance.
        part = (
            np.maximum(self.variance, 1e-18) / np.maximum(self.variance, 1e-18).sum(axis=1)[:, None]
        )
        values += (1.0 - values.sum(axis=2, keepdims=True)) * part[:, None, :]
        return clip_and_normalise(values.reshape(-1, values.shape[2])).reshape(values.shape)

    def _joint_levels(self, part: slice, values: Floats, level: float) -> Floats:
        """Level of each class at which all classes of a bag are inside with the level asked for."""
        sd = np.sqrt(np.maximum(self.variance[part], 1e-14))
        worst = (np.abs(values - self.mean[part][:, None, :]) / sd[:, None, :]).max(axis=2)
        reach = np.quantile(worst, level, axis=1)
        k = len(self.classes)
        return np.asarray(np.clip(2 * ndtr(reach) - 1, level, 1 - (1 - level) / k))
