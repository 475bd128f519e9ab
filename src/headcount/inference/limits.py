"""The error that no method can beat: what is attainable with given scores, bags and labels.

Three limits, from the most generous to the truest. With class densities known, the Cramér-Rao bound
of a bag of m items. With densities learnt from n labelled items a class, the semiparametric bound.
And for bags drawn by a protocol, the Bayes risk: the mean error of the best answer, given the
densities, the prior and the measure. The first two hold for estimators without bias, away from
the border of the simplex; the third holds for all, on average over the protocol.

Likelihoods are ratios f_k(x) / g(x) of each class's density to that of the items given, a row an
item; `likelihood_ratios` makes them of calibrated posteriors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from headcount._core import validation as check
from headcount._core.types import Floats
from headcount.bags import Bags
from headcount.exceptions import InputError, choose
from headcount.inference.posteriors import decide, modes, prior_around, sample
from headcount.kernels.random import as_seed, streams
from headcount.measures import Measure, measure

PART = 16  # bags whose expectations are taken at once; bounds memory, changes no result


def likelihood_ratios(posteriors: ArrayLike, prior: ArrayLike | None = None) -> Floats:
    """Densities of classes over the density of all items, from calibrated posteriors.

    Parameters
    ----------
    posteriors : array of shape (n, k)
        Of items like those that the bags are made of, at the shares `prior`.
    prior : array, optional
        The mean posterior by default.

    Examples
    --------
    >>> likelihood_ratios([[0.9, 0.1], [0.3, 0.7]], [0.6, 0.4]).round(2)
    array([[1.5 , 0.25],
           [0.5 , 1.75]])
    """
    matrix = _numbers(posteriors, "posteriors")
    if matrix.ndim != 2 or not matrix.size:
        raise InputError(f"posteriors must have a row an item, got the shape {matrix.shape}.")
    check.posteriors(matrix)
    share = matrix.mean(axis=0) if prior is None else check.prevalences(prior, "prior")[0]
    if len(share) != matrix.shape[1]:
        raise InputError(f"prior has {len(share)} shares for {matrix.shape[1]} classes.")
    if (share <= 0).any():
        raise InputError("a class with a share of zero among the items has no known density.")
    return np.asarray(matrix / share)


def covariance(
    likelihood: ArrayLike,
    prevalence: ArrayLike,
    size: int,
    *,
    labelled: ArrayLike | None = None,
    target: str = "bag",
) -> Floats:
    """The least covariance of an unbiased estimate of a bag's shares.

    Parameters
    ----------
    likelihood : array of shape (n, k)
        Of items drawn from the density that the ratios are over.
    prevalence : array of shape (k,)
    size : int
        Items of the bag.
    labelled : array of shape (k,), optional
        Labelled items of each class from which densities are learnt; known without.
    target : {'bag', 'population'}
        Error about the shares realised in the bag, or those it was drawn with.

    Notes
    -----
    With s = p / m + p^2 / n, the covariance is at least J^-1 - diag(s), where J_kl is the integral
    of f_k f_l / sum_j s_j f_j; about the population, J^-1 - p p' / m - diag(p^2 / n). With n
    infinite these are the Cramér-Rao bounds. The moments f_k / sum_j s_j f_j, those of `ELSA`,
    attain them.

    Examples
    --------
    >>> separated = np.repeat(2 * np.eye(2), 100, axis=0)
    >>> np.abs(covariance(separated, [0.7, 0.3], 100)).max() < 1e-9  # nothing to err about
    np.True_
    >>> covariance(separated, [0.7, 0.3], 100, target="population").round(6)
    array([[ 0.0021, -0.0021],
           [-0.0021,  0.0021]])
    """
    ratios, shares = _checked(likelihood, prevalence)
    if len(shares) > 1:
        raise InputError("prevalence must be one vector; see attainable for many.")
    choose("target", target, ["bag", "population"])
    check.whole("size", size)
    p = shares[0]
    return _bound(ratios, p, size, _training(p, labelled), target)


def attainable(
    likelihood: ArrayLike,
    prevalences: ArrayLike,
    sizes: ArrayLike,
    which: str | Measure = "ae",
    *,
    labelled: ArrayLike | None = None,
    target: str = "bag",
) -> Floats:
    """The error of an efficient unbiased estimate for every bag: 'ae', 'rae' or 'se'.

    Parameters
    ----------
    likelihood, labelled, target
        As in `covariance`.
    prevalences : array of shape (bags, k)
    sizes : int or array of shape (bags,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=20000) + 1.5 * rng.integers(0, 2, 20000)
    >>> f = np.exp(-0.5 * (x[:, None] - [0, 1.5]) ** 2)
    >>> ratios = f / f.mean(axis=1, keepdims=True)
    >>> attainable(ratios, [[0.7, 0.3], [0.5, 0.5]], 500).round(3)
    array([0.022, 0.023])
    """
    each = measure(which)
    choose("measure", each.name, ["ae", "rae", "se"])
    choose("target", target, ["bag", "population"])
    ratios, shares = _checked(likelihood, prevalences)
    lengths = _sizes(sizes, len(shares))
    out = np.empty(len(shares))
    for s, p in enumerate(shares):
        bound = _bound(ratios, p, lengths[s], _training(p, labelled), target)
        variance = np.maximum(np.diag(bound), 0.0)
        if each.name == "se":
            out[s] = variance.mean()
            continue
        expected = np.sqrt(2 * variance / np.pi)
        if each.name == "rae":
            eps = 1 / (2 * lengths[s]) if each.eps is None else each.eps
            expected = expected / (p + eps)
        out[s] = expected.mean()
    return out


def bayes_risk(
    likelihood: ArrayLike,
    bags: Bags,
    which: str | Measure = "ae",
    *,
    expect: Any = "any shift",
    centre: ArrayLike | None = None,
    n_draws: int = 3000,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Floats:
    """Error on each bag of the best answer by someone who knows the class densities.

    Its mean over bags of a protocol is the least that any method can have there.

    Parameters
    ----------
    likelihood : array of shape (pool, k)
        Densities of the classes at the pool's items, up to a factor an item.
    bags : Bags with known prevalences
    which : {'ae', 'rae', 'se', 'kld', 'nmd'}
    expect, centre
        The protocol, as in `BayesQuantifier`, and the shares that it is about; equal ones by
        default. Kraemer's is "any shift".
    n_draws : int, default 3000
    """
    ratios = _numbers(likelihood, "likelihood")
    check.whole("n_draws", n_draws)
    if not isinstance(bags, Bags):
        raise InputError(f"bags must be Bags, got {type(bags).__name__}: see Bags.from_lists.")
    if ratios.ndim != 2 or not (np.isfinite(ratios).all() and (ratios >= 0).all()):
        raise InputError("likelihood must be a matrix of densities, a row an item.")
    if len(ratios) != bags.n_items:
        raise InputError(f"{len(ratios)} items have likelihoods, and the pool {bags.n_items}.")
    if bags.prevalence is None:
        raise InputError("the bags have no true prevalences to compare with.")
    k = ratios.shape[1]
    middle = np.full(k, 1 / k) if centre is None else check.prevalences(centre, "centre")[0]
    if len(middle) != k:
        raise InputError(f"centre has {len(middle)} shares for {k} classes.")
    scaled = np.maximum(ratios / np.maximum(ratios.max(axis=1, keepdims=True), 1e-300), 1e-300)
    prior = prior_around(expect, middle)
    seeds = streams(as_seed(random_state), "risk", len(bags))
    answers = []
    for at in range(0, len(bags), PART):
        some = bags[at : at + PART]
        starts = modes(scaled, some, prior, n_jobs)
        draws, _ = sample(scaled, some, prior, n_draws, seeds[at : at + PART], starts, n_jobs)
        answers.append(decide(draws, which, some.sizes, n_jobs))
    sizes = bags.sizes if measure(which).smooths else None
    return np.asarray(measure(which)(bags.prevalence, np.vstack(answers), sizes=sizes))


def _numbers(values: Any, what: str) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers, got {values!r}.") from None


def _sizes(sizes: Any, n: int) -> Floats:
    lengths = _numbers(sizes, "sizes")
    if lengths.shape not in ((), (n,)) or not (lengths >= 1).all():
        raise InputError(f"sizes must be one number of at least 1, or {n} of them, got {sizes!r}.")
    return np.broadcast_to(lengths, n)


def _checked(likelihood: ArrayLike, prevalences: ArrayLike) -> tuple[Floats, Floats]:
    ratios = _numbers(likelihood, "likelihood")
    shares = check.prevalences(prevalences, "prevalence")
    if ratios.ndim != 2 or ratios.shape[1] != shares.shape[1] or not len(ratios):
        raise InputError(
            f"likelihood has shape {ratios.shape} and {shares.shape[1]} classes have shares: a row "
            "an item and a column a class is expected."
        )
    if not np.isfinite(ratios).all() or (ratios < 0).any():
        raise InputError("likelihood must be finite and not negative.")
    mean = ratios.mean(axis=0)
    if np.abs(mean - 1).max() > 0.2:
        raise InputError(
            f"ratios of densities have mean 1 over the items given, and these have "
            f"{np.round(mean, 2).tolist()[:6]}: divide posteriors by their mean, as "
            "likelihood_ratios does."
        )
    return ratios / mean, shares


def _training(p: Floats, labelled: ArrayLike | None) -> Floats:
    """p^2 / n: what learning from n items a class adds."""
    if labelled is None:
        return np.zeros_like(p)
    n = _numbers(labelled, "labelled")
    if n.shape != p.shape or not (n > 0).all():
        raise InputError(f"labelled must be {len(p)} numbers above 0, one a class.")
    return np.asarray(p**2 / n)


def _bound(ratios: Floats, p: Floats, m: float, spread: Floats, target: str) -> Floats:
    """Least covariance; classes without a share are known to have none."""
    there = np.flatnonzero(p > 0)
    noise = p[there] / m + spread[there]
    some = ratios[:, there]
    weight = 1.0 / np.maximum(some @ noise, 1e-300)
    matrix = (some * weight[:, None]).T @ some / len(ratios)
    out = np.zeros((len(p), len(p)))
    if np.linalg.cond(matrix) > 1e12:  # classes that cannot be told apart: no limit
        out[there, there] = np.inf
        return out
    inverse = np.linalg.inv(matrix)
    if target == "bag":
        inverse -= np.diag(noise)
    else:
        inverse -= np.outer(p[there], p[there]) / m + np.diag(spread[there])
    out[np.ix_(there, there)] = inverse
    return out
