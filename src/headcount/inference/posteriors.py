"""Posteriors of class shares given likelihoods of items, and the best answer under them.

The prior of a bag's shares is a mixture of Dirichlet distributions: a flat one, and some around
the training shares whose concentration says how far shares may move.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import gammaln, softmax

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError, choose
from headcount.inference.mixtures import maximise_likelihood
from headcount.kernels.linear import factored
from headcount.kernels.threads import over_ranges
from headcount.measures import Measure, measure

PosteriorDraws = NDArray[np.float32]
Prior = tuple[Floats, Floats]  # a row of Dirichlet parameters a component, and log weights

FLAT = 0.0  # the concentration that stands for the flat prior (code)
EXPECTATIONS = {
    "any shift": (FLAT,),
    "mild shift": (10.0, 30.0, 100.0),
    "no shift": (1e3, 1e4),
    "learn": (FLAT, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4),
}
MEASURES = ["ae", "rae", "se", "kld", "nmd"]
BURN = 30  # sweeps of a chain that are not used (convention); chains start from a mode
# Items of a bag of two classes up to which sums replace sampling; their cost is quadratic.
EXACT = 2048
LARGE = 50_000  # items of a bag from which on log-ratios of shares are taken as normal (convention)


def concentrations(expect: str | Mapping[float, float]) -> dict[float, float]:
    """Weights of concentrations around the training shares, by what is expected."""
    if isinstance(expect, str):
        names = EXPECTATIONS[choose("expect", expect, EXPECTATIONS)]
        return dict.fromkeys(names, 1 / len(names))
    try:
        found = {float(c): float(w) for c, w in expect.items()}
        sound = bool(found) and all(0 <= c <= 1e9 and 0 < w < np.inf for c, w in found.items())
    except (AttributeError, TypeError, ValueError):
        sound = False
    if not sound:
        raise InputError(
            f"expect must be one of {', '.join(map(repr, EXPECTATIONS))}, or a mapping of "
            "concentrations (0 for all shares alike, up to 1e9) to positive weights, got "
            f"{expect!r}."
        )
    total = sum(found.values())
    return {c: w / total for c, w in found.items()}


def prior_around(expect: str | Mapping[float, float], frequency: Floats) -> Prior:
    """Components of the prior around training shares, and logarithms of their weights."""
    found = concentrations(expect)
    rows = [
        np.ones(len(frequency)) if c == FLAT else np.maximum(c * frequency, 1e-3) for c in found
    ]
    return np.array(rows), np.log(list(found.values()))


def component_shares(prevalence: Floats, sizes: Ints, prior: Prior) -> Floats:
    """Probability that each component of the prior made bags whose shares are known."""
    alpha, log_weights = prior
    counts = prevalence[:, None, :] * sizes[:, None, None]
    total = alpha.sum(axis=1)
    parts = gammaln(counts + alpha) - gammaln(alpha)
    whole = gammaln(total) - gammaln(total + sizes[:, None])
    return np.asarray(softmax(parts.sum(axis=2) + whole + log_weights, axis=1))


def sample(
    likelihood: Floats,
    bags: Bags,
    prior: Prior,
    n_draws: int,
    seeds: NDArray[np.uint64],
    starts: Floats,
    n_jobs: int | None = None,
    burn: int = BURN,
    worth: Floats | None = None,
) -> tuple[PosteriorDraws, Floats]:
    """Draws of the realised shares of every bag, and how likely each component of the prior is.

    `starts` are shares to start from, such as `modes`; where the chains are in the end is written
    to it. Up to 2,048 items of two classes the draws are evenly spaced quantiles of the exact
    posterior. `worth` says for each bag what part of an item each of its items counts for, where
    they tell less about the shares than as many independent ones would.
    """
    k = likelihood.shape[1]
    draws = np.empty((len(bags), n_draws, k), dtype=np.float32)
    mix = np.empty((len(bags), len(prior[1])))
    worth = np.ones(len(bags)) if worth is None else worth
    exact = (bags.sizes <= EXACT) & (k == 2) & (worth == 1.0)
    large = bags.sizes > LARGE
    for rows, kernel in (
        (np.flatnonzero(exact), _exact),
        (np.flatnonzero(~exact & ~large), _gibbs),
    ):
        if len(rows):
            states = starts[rows]
            some = bags if len(rows) == len(bags) else bags[rows]
            part = likelihood, some, prior, seeds[rows], states
            draws[rows], mix[rows] = kernel(*part, n_draws, burn, n_jobs, worth[rows])
            starts[rows] = states
    for s in np.flatnonzero(large):
        rng = np.random.default_rng(int(seeds[s]))
        bag, start = bags[s : s + 1], starts[s]
        draws[s], mix[s] = _normal(likelihood, bag, start, prior, n_draws, rng, float(worth[s]))
    return draws, mix


def modes(likelihood: Floats, bags: Bags, prior: Prior, n_jobs: int | None = None) -> Floats:
    """Shares near the most likely ones under the prior's likeliest component, none of them zero."""
    from headcount.kernels.compiled.posterior import log_likelihoods

    k = likelihood.shape[1]
    flat = np.full(k, 1 / k)
    options: Any = {"em": False, "tol": 1e-3, "max_iter": 100, "n_jobs": n_jobs}
    best, most = np.empty((len(bags), k)), np.full(len(bags), -np.inf)
    for alpha, weight in zip(*prior, strict=True):
        found = maximise_likelihood(likelihood, bags, flat, extra=alpha, **options)[0]
        found = np.maximum(found, 1e-300)
        height = np.zeros(len(bags))
        if len(prior[1]) > 1:
            log_likelihoods(likelihood, bags.indptr, bags.indices, found, height, 0, len(bags))
            height += np.log(found) @ alpha + weight + gammaln(alpha.sum()) - gammaln(alpha).sum()
        better = height > most
        best[better], most[better] = found[better], height[better]
    return best


def _exact(
    likelihood: Floats,
    bags: Bags,
    prior: Prior,
    _: NDArray[np.uint64],
    starts: Floats,
    n_draws: int,
    _burn: int,
    n_jobs: int | None,
    _worth: Floats,
) -> tuple[PosteriorDraws, Floats]:
    from headcount.kernels.compiled.posterior import exact_two

    return _filled(exact_two, likelihood, bags, (starts, *prior), n_draws, n_jobs)


def _gibbs(
    likelihood: Floats,
    bags: Bags,
    prior: Prior,
    seeds: NDArray[np.uint64],
    starts: Floats,
    n_draws: int,
    burn: int,
    n_jobs: int | None,
    worth: Floats,
) -> tuple[PosteriorDraws, Floats]:
    from headcount.kernels.compiled.posterior import gibbs

    given = starts, *prior, seeds, worth, burn
    return _filled(gibbs, likelihood, bags, given, n_draws, n_jobs)


def _filled(
    kernel: Any, likelihood: Floats, bags: Bags, given: Any, n_draws: int, n_jobs: int | None
) -> tuple[PosteriorDraws, Floats]:
    """Draws and components that a kernel writes, bag by bag; `given` are starts, prior and more."""
    draws = np.empty((len(bags), n_draws, likelihood.shape[1]), dtype=np.float32)
    mix = np.empty((len(bags), len(given[2])))
    common = likelihood, bags.indptr, bags.indices, *given
    over_ranges(lambda a, b: kernel(*common, draws, mix, a, b), len(bags), n_jobs)
    return draws, mix


def _normal(
    likelihood: Floats,
    bag: Bags,
    mode: Floats,
    prior: Prior,
    n_draws: int,
    rng: np.random.Generator,
    worth: float = 1.0,
) -> tuple[Floats, Floats]:
    """Draws for one large bag: log-ratios of shares are normal around each component's mode."""
    rows = likelihood[bag.indices]
    m, k = rows.shape
    pieces, evidence = [], np.empty(len(prior[0]))
    for j, alpha in enumerate(prior[0]):
        found, _ = maximise_likelihood(
            likelihood, bag, mode, extra=alpha / worth, em=False, tol=1e-9, max_iter=1000
        )
        p = np.maximum(found[0], 1e-300)
        density = rows @ p
        owner = rows * p / density[:, None]  # responsibilities
        inner = np.diag(owner.sum(axis=0)) - owner.T @ owner
        whole = (worth * m + alpha.sum()) * (np.diag(p) - np.outer(p, p))
        curvature = whole - worth * inner
        free = np.delete(np.arange(k), int(np.argmax(p)))
        factor = np.triu(factored(curvature[np.ix_(free, free)])[0])
        height = gammaln(alpha.sum()) - gammaln(alpha).sum() + alpha @ np.log(p)
        height += worth * np.log(density).sum()
        evidence[j] = height - np.log(np.diag(factor)).sum() + prior[1][j]
        values, vectors = np.linalg.eigh(inner)
        root = vectors * np.sqrt(np.maximum(values, 0))
        pieces.append((owner.mean(axis=0), inner, root, free, factor))
    mix = softmax(evidence)
    draws = np.empty((n_draws, k))
    for t, j in enumerate(rng.choice(len(mix), n_draws, p=mix)):
        centre, inner, root, free, factor = pieces[j]
        move = np.zeros(k)
        move[free] = solve_triangular(factor, rng.normal(size=k - 1), lower=False)
        noise = root @ rng.normal(size=k)
        draws[t] = np.maximum(centre + (inner @ move + noise) / m, 0.0)
    return draws / draws.sum(axis=1, keepdims=True), mix


def decide(
    draws: PosteriorDraws, spec: str | Measure, sizes: Any, n_jobs: int | None = None
) -> Floats:
    """Answers of least expected error, for draws of shape (bags, draws, classes).

    Examples
    --------
    >>> draws = np.array([[[0.0, 1.0], [0.1, 0.9], [0.5, 0.5]]], dtype=np.float32)
    >>> decide(draws, "ae", [100]).round(2)
    array([[0.1, 0.9]])
    >>> decide(draws, "se", [100]).round(2)
    array([[0.2, 0.8]])
    >>> decide(draws, "rae", [100]).round(2)  # close to 0, where errors weigh most
    array([[0.01, 0.99]])
    """
    from headcount.kernels.compiled.action import least_absolute

    each = measure(spec)
    choose("measure", each.name, MEASURES)
    if each.name in ("se", "kld"):
        return np.asarray(draws.mean(axis=1, dtype=np.float64))
    if each.name == "nmd":
        middle = np.median(np.cumsum(draws, axis=2, dtype=np.float64), axis=1)
        return np.diff(middle, axis=1, prepend=0.0)
    out = np.empty((len(draws), draws.shape[2]))
    sizes = np.asarray(sizes, dtype=float)
    eps = np.full(len(draws), -1.0)
    if each.name == "rae":
        eps = 1 / (2 * sizes) if each.eps is None else np.full(len(draws), each.eps)
        eps = np.maximum(eps, 1e-9)
    over_ranges(lambda a, b: least_absolute(draws, eps, out, a, b), len(draws), n_jobs)
    return out
