"""Shrinkage estimates of the prevalences of groups, by a random-effects model.

Groups of one table (shops, months, topics) differ in their prevalences, and a model's error in a
group may be larger than its own uncertainty says. Both variances are learnt from groups with known
prevalences. Each estimate is then shrunk towards the mean of the groups, by as much as its expected
error asks for (Efron and Morris 1975; DerSimonian and Laird 1986; Gelman et al. 2013, chapter 5).

Model, for a group g of m_g rows and s = mu (1 - mu):

- theta_g, the prevalences in the group's population, are Dirichlet with mean mu and variance
  tau^2 s.
- y_g, the labelled rows that the group has of its own, are multinomial(n_g, theta_g).
- p_g, the prevalences among the group's unlabelled rows, have mean theta_g and variance
  theta_g (1 - theta_g) / m_g.
- x_g = mu + gain (p_g - mu) + e_g, the model's estimate, where e_g has variance v_g + sigma^2 s:
  v_g is the variance of the draws, and sigma^2 s what belongs to groups.

x_g is the estimate rather than the mean of the draws. Under their flat prior the latter is pulled
towards equal prevalences, the more so the fewer rows there are, and gain would depend on m_g.

Given tau^2, gain and sigma^2, estimates are linear in x_g, with the Dirichlet posterior of theta_g
given y_g as the prior, and one weight serves all classes, so that estimates sum to 1. The three
hyperparameters have a discrete posterior, over which estimates and variances are averaged. A group
without labelled rows has n_g = 0. Groups that the model has seen, and groups that it has not seen,
have the same model; the hyperparameters of the latter are learnt from groups that were left out.

Assumptions: the groups that are estimated vary like those that were learnt from; errors are
independent between groups, apart from the error due to the labelled items, which draws keep.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.special import gammaln, softmax
from scipy.stats import norm, t

from headcount._core.types import Bools, Floats, Ints
from headcount.inference.draws import Draws
from headcount.inference.intervals import bounds
from headcount.kernels.simplex import clip_and_normalise

# Values of the hyperparameters. Variances are in units of mu (1 - mu), and each is twice the one
# before. The prior of tau is uniform (Gelman 2006), that of sigma is uniform in its logarithm, and
# a gain is half as likely as the next higher one. `benchmarks/unseen_groups.py` compares them.
BETWEEN_VARIANCES = 5e-4 * 2.0 ** np.arange(11)
ERROR_VARIANCES = 1e-4 * 2.0 ** np.arange(14)
GAINS = np.linspace(0.0, 1.0, 5)
GAIN_PRIOR = 2.0 ** np.arange(5) / 31.0
POOR_FIT_DOUBLINGS = (0, 2, 4)  # of the error variance, where items fit poorly
POOR_FIT_PRIOR = np.array([3.0, 2.0, 1.0]) / 6.0

GROUPS_PER_BATCH = 1000  # groups; bounds memory, changes no result
LEAVE_OUT_PARTS = 20  # parts of the groups that are left out in turn (convention)
CALIBRATED_COVERAGE = 0.95  # the default level of intervals
UNIT_INFORMATION = 1.0  # groups: weight of the prior of the scale (Kass and Wasserman 1995)
SMALLEST_VARIANCE = 1e-4  # mu (1 - mu) of one row; avoids division by zero
# Variance of estimates of which the draws know nothing; that of a share is at most 1 / 4.
UNINFORMATIVE_VARIANCE = 1e4


@dataclass(frozen=True, eq=False)
class GroupData:
    """What is known of some groups: one row per group.

    Attributes
    ----------
    estimates, variance : arrays of shape (groups, classes)
        Estimates, and variances of their draws.
    sizes : array of shape (groups,)
        Unlabelled rows.
    poor_fit : array of shape (groups,)
    own : array of shape (groups, classes)
        Labelled rows.
    """

    estimates: Floats
    variance: Floats
    sizes: Floats
    poor_fit: Bools
    own: Ints

    def take(self, groups: Any) -> GroupData:
        """Some of the groups."""
        return GroupData(*(getattr(self, f.name)[groups] for f in fields(self)))


@dataclass(frozen=True, eq=False)
class RandomEffects:
    """Posterior of the random-effects model.

    Attributes
    ----------
    mean : array of shape (classes,)
        Mean prevalences of groups, mu.
    mean_variance : float
        Variance of `mean`, in units of mu (1 - mu).
    between : array of shape (variances,)
        Posterior probabilities of `BETWEEN_VARIANCES`, the values of tau^2.
    error : array of shape (2, gains, variances)
        Posterior probabilities of `GAINS` and of `ERROR_VARIANCES`, the values of sigma^2, for
        groups whose items fit the labelled ones, and for groups whose items fit them poorly.
    width_scale : float
        Factor on standard deviations, learnt from groups that were left out.
    n_groups : int
        Groups that all this was learnt from.
    """

    mean: Floats
    mean_variance: float
    between: Floats
    error: Floats
    width_scale: float
    n_groups: int

    def shrink(
        self, draws: Draws, poor_fit: Bools, target: str = "bag", own: Ints | None = None
    ) -> Draws:
        """Draws of the prevalences of groups, given how groups vary and their own labelled rows.

        Parameters
        ----------
        draws : Draws
            Of the prevalences among the unlabelled rows of each group, whatever the target.
        poor_fit : array of shape (groups,)
            Whether the items of a group fit the labelled items poorly.
        target : {'bag', 'population'}
        own : array of shape (groups, classes), optional
            Labelled rows of each group. By default there are none.
        """
        variance = np.where(draws.known[:, None], draws.variance, UNINFORMATIVE_VARIANCE)
        own = np.zeros(draws.mean.shape, dtype=np.int64) if own is None else own
        data = GroupData(draws.estimates, variance, draws.sizes, poor_fit, own)
        return draws.shrunk(*self.moments(data, target))

    @property
    def excess_error(self) -> Floats:
        """Variance of the error where the draws have none, of shape (2, classes), as `error`."""
        mean, none = np.tile(self.mean, (2, 1)), np.zeros((2, len(self.mean)))
        sizes, poor_fit = np.full(2, np.inf), np.array([False, True])
        return self.moments(GroupData(mean, none, sizes, poor_fit, none.astype(int)), "bag")[1]

    @property
    def width(self) -> float:
        """Mean width of the intervals of a group where the draws have no error."""
        low, high = bounds(self.mean, self.excess_error[0], CALIBRATED_COVERAGE)
        return float((high - low).mean())

    def moments(self, data: GroupData, target: str) -> tuple[Floats, Floats, Floats]:
        """Means and variances of prevalences, and the weight of the estimate of each group."""
        starts = range(0, len(data.sizes), GROUPS_PER_BATCH)
        parts = [_moments(self, data.take(slice(s, s + GROUPS_PER_BATCH)), target) for s in starts]
        mean, variance, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
        return mean, variance, weight


def fit_random_effects(
    estimates: Floats, variance: Floats, truth: Floats, sizes: Ints, poor_fit: Bools
) -> tuple[RandomEffects, Floats]:
    """Learn the model from groups with known prevalences, one row per group.

    Parameters
    ----------
    estimates, variance : arrays of shape (groups, classes)
        Estimates and variances of the draws of a quantifier that was fitted to other groups, or,
        for known groups, to other rows of them.
    truth : array of shape (groups, classes)
        Prevalences among the rows that these draws are of.
    sizes : array of shape (groups,)
        Number of these rows.
    poor_fit : array of shape (groups,)

    Returns
    -------
    RandomEffects
    array of shape (groups, classes)
        Shrinkage estimate of each group from what was learnt from the others.

    Notes
    -----
    Width is calibrated as in `headcount.inference.calibration`: groups are left out in turn, and
    the factor on standard deviations is the 95 % quantile of the absolute standardised errors over
    that of a normal distribution. Its square has a scaled inverse chi-squared prior around 1 that
    counts for one group (a unit-information prior: Kass and Wasserman 1995), so the predictive
    distribution is Student's t with n + 1 degrees of freedom (Gelman et al. 2013, section 2.6). It
    is at least 1.
    """
    data = GroupData(
        estimates, variance, np.asarray(sizes, float), poor_fit, np.zeros(truth.shape, int)
    )
    part = _leave_out_parts(estimates, truth)
    share, expected = np.empty_like(truth), np.empty_like(truth)
    for p in np.unique(part):
        left_out, rest = part == p, part != p
        rest = rest if rest.any() else left_out
        effects = _fit(data.take(rest), truth[rest])
        share[left_out], expected[left_out], _ = effects.moments(data.take(left_out), "bag")
    scale = _width_scale((truth - share) / np.sqrt(np.maximum(expected, 1e-12)))
    return replace(_fit(data, truth), width_scale=scale), share


def _fit(data: GroupData, truth: Floats) -> RandomEffects:
    """Posterior of the hyperparameters."""
    mean, mean_variance, between = _fit_between(truth, data.sizes)
    error = _fit_error(data, truth, mean)
    return RandomEffects(mean, mean_variance, between, error, 1.0, len(truth))


def _fit_between(truth: Floats, sizes: Floats) -> tuple[Floats, float, Floats]:
    """Mean over groups, its variance, and the posterior of tau^2, by restricted likelihood."""
    k = truth.shape[1]
    precision = 1.0 / (BETWEEN_VARIANCES[:, None] + 1.0 / sizes)
    total = precision.sum(axis=1)
    means = precision @ truth / total[:, None]
    scale = _row_variance(means.mean(axis=0))
    distance = ((truth - means[:, None, :]) ** 2 / scale).mean(axis=2)
    logs = np.log(precision).sum(axis=1) - np.log(total) - (precision * distance).sum(axis=1)
    weights = softmax(0.5 * (k - 1) * logs + 0.5 * np.log(BETWEEN_VARIANCES))
    mean = clip_and_normalise((weights @ means)[None])[0]
    return mean, float(weights @ (1.0 / total)), weights


def _fit_error(data: GroupData, truth: Floats, mean: Floats) -> Floats:
    """Posterior of gain and sigma^2, for groups that fit and for groups that do not."""
    scale = _row_variance(mean)
    x, p = data.estimates - mean, truth - mean
    distance = np.stack([((x - gain * p) ** 2 / scale).mean(axis=1) for gain in GAINS])
    known = (data.variance / scale).mean(axis=1)
    n_values = len(ERROR_VARIANCES)
    logs = np.empty((len(POOR_FIT_DOUBLINGS), len(GAINS), n_values))
    for i, doublings in enumerate(POOR_FIT_DOUBLINGS):
        factor = np.where(data.poor_fit, 2.0**doublings, 1.0)
        total = known + ERROR_VARIANCES[:, None] * factor
        logs[i] = -_deviance(distance[:, None, :], total, len(mean)).sum(axis=2) / 2
    logs += np.log(POOR_FIT_PRIOR)[:, None, None] + np.log(GAIN_PRIOR)[:, None]
    joint = softmax(logs)
    poor = np.zeros((len(GAINS), n_values))
    for weights, doublings in zip(joint, POOR_FIT_DOUBLINGS, strict=True):
        at = np.minimum(np.arange(n_values) + doublings, n_values - 1)
        np.add.at(poor.T, at, weights.T)
    return np.stack([joint.sum(axis=0), poor])


@dataclass(frozen=True, eq=False)
class _Prior:
    """Moments given a group's own rows and each value of tau^2: (groups, variances, classes).

    `theta` is the variance of theta around `mean`, `sampling` the mean variance of p around theta.
    `learnt` is the weight of other groups in `mean`, and `logs` the log probability of each value.
    """

    mean: Floats
    theta: Floats
    sampling: Floats
    learnt: Floats
    logs: Floats


def _prior(effects: RandomEffects, data: GroupData) -> _Prior:
    """Dirichlet posterior of theta given a group's own labelled rows."""
    own, rows = data.own[:, None, :], data.own.sum(axis=1)[:, None]
    total = 1.0 / BETWEEN_VARIANCES - 1.0  # concentration of a Dirichlet with this variance
    alpha = total[:, None] * np.maximum(effects.mean, 1e-9)
    mean = (alpha + own) / (total + rows)[:, :, None]
    theta = mean * (1 - mean) / (total + rows + 1.0)[:, :, None]
    learnt = (total / (total + rows))[:, :, None]
    logs = (gammaln(alpha + own) - gammaln(alpha)).sum(axis=2)
    logs += gammaln(total) - gammaln(total + rows) + _log(effects.between)
    sampling = (mean * (1 - mean) - theta) / np.maximum(data.sizes, 1.0)[:, None, None]
    of_mean = effects.mean_variance * _row_variance(effects.mean)
    return _Prior(mean, theta + learnt**2 * of_mean, sampling, learnt, logs)


def _moments(effects: RandomEffects, data: GroupData, target: str) -> tuple[Floats, Floats, Floats]:
    """Moments of prevalences, averaged over the hyperparameters."""
    prior, mu = _prior(effects, data), effects.mean
    none = np.zeros_like(prior.sampling)
    wanted, noise = (prior.sampling, none) if target == "bag" else (none, prior.sampling)
    spread = prior.theta + wanted
    probability, weight = _posterior(effects, data, prior, spread, noise)
    rest = 1.0 - GAINS[:, None] * weight

    def average(values: Floats) -> Floats:
        """Sums over gain and sigma^2, which leave the axes group and tau^2."""
        return np.asarray((probability * values).sum(axis=(2, 3)))[:, :, None]

    x, centre = (data.estimates - mu)[:, None, :], prior.mean - mu
    shift = (average(rest) * centre + average(weight) * x).sum(axis=1)
    square = average(rest**2) * centre**2 + average(weight**2) * x**2
    square += 2 * average(rest * weight) * centre * x
    between_values = np.maximum(square.sum(axis=1) - shift**2, 0.0)
    mean = clip_and_normalise(mu + shift)
    # A Dirichlet has a quadratic variance function: the posterior variance is proportional to
    # p (1 - p) at the posterior mean (Morris 1983). Its prior mean follows from the moments.
    expected = probability.sum(axis=(2, 3))[:, :, None] * prior.mean * (1 - prior.mean)
    expected -= average(GAINS[:, None] * weight) * spread
    local = _row_variance(mean) / np.maximum(expected.sum(axis=1), SMALLEST_VARIANCE)
    # What follows from a group's own labelled rows needs no calibration.
    factor = effects.width_scale**2
    calibrated = 1.0 + (factor - 1.0) * prior.learnt
    variance = (average(rest**2) * spread * calibrated).sum(axis=1) * local
    of_error = average(weight**2 * ERROR_VARIANCES) * _row_variance(mu)
    of_error += average((weight * GAINS[:, None]) ** 2) * noise
    variance += factor * (of_error.sum(axis=1) * local + between_values)
    variance += factor * average(weight**2).sum(axis=1) * data.variance
    return mean, variance, average(weight).sum(axis=1)


def _posterior(
    effects: RandomEffects, data: GroupData, prior: _Prior, spread: Floats, noise: Floats
) -> tuple[Floats, Floats]:
    """Probability of all hyperparameters, and weight of the estimate given them.

    Axes are group, tau^2, gain and sigma^2. Variances are averaged over classes.
    """
    mu, unit, gain = effects.mean, _row_variance(effects.mean), GAINS[:, None]
    between, within = ((v / unit).mean(axis=2)[:, :, None, None] for v in (spread, noise))
    known = (data.variance / unit).mean(axis=1)[:, None, None, None]
    total = gain**2 * (between + within) + known + ERROR_VARIANCES
    offset = (data.estimates - mu)[:, None, None] - gain * (prior.mean - mu)[:, :, None]
    distance = (offset**2 / unit).mean(axis=3)[..., None]
    logs = prior.logs[:, :, None, None] - _deviance(distance, total, len(mu)) / 2
    logs += _log(effects.error)[data.poor_fit.astype(int)][:, None]
    return softmax(logs, axis=(1, 2, 3)), gain * between / total


def _deviance(distance: Floats, variance: Floats, n_classes: int) -> Floats:
    """Minus twice the log-likelihood of squared distances that are averaged over classes."""
    return np.asarray((n_classes - 1) * (np.log(variance) + distance / variance))


def _leave_out_parts(mean: Floats, truth: Floats) -> Ints:
    """Part of each group, by the rank of its data, whatever the order of groups."""
    order = np.lexsort(np.column_stack([mean, truth]).T)
    part = np.empty(len(order), dtype=np.int64)
    part[order] = np.arange(len(order)) % LEAVE_OUT_PARTS
    return part


def _width_scale(errors: Floats) -> float:
    """Calibration factor from standardised errors, of shape (groups, classes)."""
    level = (1 + CALIBRATED_COVERAGE) / 2
    n, normal = len(errors), norm.ppf(level)
    ratio = np.quantile(np.abs(errors), CALIBRATED_COVERAGE) / normal
    square = (n * ratio**2 + UNIT_INFORMATION) / (n + UNIT_INFORMATION)
    few = t.ppf(level, n + UNIT_INFORMATION) / normal
    return float(np.sqrt(max(square, 1.0)) * few)


def _row_variance(mean: Floats) -> Floats:
    """Variance mu (1 - mu) of one row."""
    return np.maximum(mean * (1 - mean), SMALLEST_VARIANCE)


def _log(probability: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(probability, 1e-300)))
