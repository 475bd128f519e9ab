"""Posterior moments of a bag's prevalences given its estimate, by simulation.

Approximate Bayesian computation with local-linear regression (Beaumont, Zhang and Balding 2002)
under a flat prior on the simplex. Bags of known prevalence are simulated around the estimate. Those
whose own estimates come closest are weighted with an Epanechnikov kernel, and a regression line
moves each of their prevalences to the estimate of the real bag. Bias is thus removed together with
noise, whatever the method, and nothing is assumed about how the method works.

Each bag is handled alone: its moments depend on the seed, the labelled items and its own estimate
and size.
"""

from __future__ import annotations

import numpy as np

from headcount._core.types import Floats, Ints
from headcount.inference.simulation import ITEMS_PER_BATCH, Simulator
from headcount.kernels.random import uniforms
from headcount.kernels.simplex import clip_and_normalise

# Settings chosen by `benchmarks/interval_coverage.py`.
PROPOSAL_REACH = 4.5  # standard errors that proposals reach to either side of the estimate
KEPT_SHARE = 0.35  # share of the simulated bags with a positive weight
EVEN_SHARE = 0.5  # part of the way to equal prevalences at which a second set of bags starts
PILOT_BAGS = 60  # simulated bags that measure bias and covariance at one place
GRID_PLACES = np.linspace(0.05, 0.95, 5)  # where the standard error of two classes is measured
SIZE_STEP = 1.1  # ratio between neighbouring bag sizes of two classes that are simulated
NUMBERS_PER_BATCH = 1 << 22  # simulated prevalences held in memory at once: 32 MB

Moments = tuple[Floats, Floats]


def posterior_moments(
    simulator: Simulator, estimates: Floats, sizes: Ints, n_draws: int
) -> Moments:
    """Posterior means and variances of bags, given their estimates and sizes.

    Sizes beyond `Simulator.max_size` are taken as that; `labelled_error` extrapolates from there.
    """
    sizes = np.minimum(sizes, simulator.max_size)
    anchors, owner = estimates, np.arange(len(estimates))
    if estimates.shape[1] == 2:
        sizes = _size_steps(sizes)
        anchors, owner, sizes = _grid(simulator, estimates, sizes)
    mean, variance = np.empty_like(estimates), np.empty_like(estimates)
    per_bag = n_draws * estimates.shape[1]
    step = max(1, min(NUMBERS_PER_BATCH // per_bag, ITEMS_PER_BATCH // int(sizes.max())))
    order = np.argsort(owner, kind="stable")
    for start in range(0, len(anchors), step):
        part = slice(start, start + step)
        simulated, truths = _simulate_near(simulator, anchors[part], sizes[part], n_draws)
        first, last = np.searchsorted(owner[order], [start, start + step])
        for at in range(first, last, step):
            bags = order[at : min(at + step, last)]
            own = owner[bags] - start
            mean[bags], variance[bags] = regress(simulated[own], truths[own], estimates[bags])
    return mean, variance


def regress(
    simulated: Floats, truths: Floats, estimates: Floats, kept_share: float = KEPT_SHARE
) -> Moments:
    """Means and variances of prevalences given estimates, from simulated bags.

    Parameters
    ----------
    simulated, truths : arrays of shape (bags, draws, classes)
        Estimates and true prevalences of simulated bags, which reach beyond the real estimates.
    estimates : array of shape (bags, classes)
    kept_share : float
        Share of the simulated bags that count; the nearer they are, the more.
    """
    offset = simulated - estimates[:, None, :]
    distance = np.abs(offset)
    last = int(simulated.shape[1] * kept_share)
    radius = np.partition(distance, last, axis=1)[:, last : last + 1]
    scale = np.maximum(radius, 1e-12) * 1.0001
    weight = np.maximum(1.0 - (distance / scale) ** 2, 0.0)
    weight = np.where(radius > 0, weight, (distance <= 1e-12).astype(float))
    weight /= weight.sum(axis=1, keepdims=True)
    centre = (weight * offset).sum(axis=1, keepdims=True)
    middle = (weight * truths).sum(axis=1, keepdims=True)
    across = (weight * (offset - centre) ** 2).sum(axis=1, keepdims=True)
    along = (weight * (offset - centre) * (truths - middle)).sum(axis=1, keepdims=True)
    slope = np.where(across > 1e-14, along / np.maximum(across, 1e-14), 0.0)
    adjusted = np.clip(truths - slope * offset, 0.0, 1.0)
    mean = (weight * adjusted).sum(axis=1)
    variance = (weight * (adjusted - mean[:, None, :]) ** 2).sum(axis=1)
    # Unbiased for Kish's effective number of draws, less the two parameters of the line.
    effective = 1.0 / (weight**2).sum(axis=1)
    return mean, variance * effective / np.maximum(effective - 2.0, 1.0)


def _simulate_near(
    simulator: Simulator, estimates: Floats, sizes: Ints, n_draws: int
) -> tuple[Floats, Floats]:
    """Simulated bags around each estimate: a pilot measures where and how far, then the rest.

    With more than two classes, a second set reaches as far as it would at more even prevalences. A
    method that reports 0 for a class may do so over a whole range of true prevalences, which a
    pilot at 0 alone does not show.
    """
    k = estimates.shape[1]
    least = _smallest_shares(simulator, sizes)
    sets = [(0.0, n_draws)] if k == 2 else [(0.0, n_draws), (EVEN_SHARE, n_draws // 2)]
    proposals = []
    for number, (even, n) in enumerate(sets):
        pull = np.minimum(0.5, np.maximum(even, k * least))
        bias, root = _pilot(simulator, estimates, sizes, pull)
        steps = uniforms(simulator.seed, f"proposals {number}", n, k)
        steps = PROPOSAL_REACH * (2 * steps - 1)
        around = clip_and_normalise(estimates - bias)
        proposals.append(around[:, None, :] + np.einsum("skl,tl->stk", root, steps))
    shares = np.concatenate(proposals, axis=1)
    inside = 1.0 - np.abs(1.0 - np.mod(np.abs(shares), 2.0))  # reflected at 0 and 1
    inside /= np.maximum(inside.sum(axis=2, keepdims=True), 1e-12)
    replicates = simulator.replicates(inside.shape[1], "draws")
    return simulator.run(inside, sizes, replicates)


def _pilot(
    simulator: Simulator, estimates: Floats, sizes: Ints, pull: Floats
) -> tuple[Floats, Floats]:
    """Bias of estimates and the symmetric root of their covariance, at more even prevalences."""
    k = estimates.shape[1]
    start = estimates * (1 - pull) + pull / k
    shares = np.repeat(start[:, None, :], PILOT_BAGS, axis=1)
    simulated, truths = simulator.run(shares, sizes, simulator.replicates(PILOT_BAGS, "pilot"))
    errors = simulated - truths
    bias = errors.mean(axis=1)
    centred = errors - bias[:, None, :]
    covariance = np.einsum("stk,stl->skl", centred, centred) / (PILOT_BAGS - 1)
    least = _smallest_shares(simulator, sizes)
    covariance += (least**2)[:, :, None] * (np.eye(k) - 1 / k)
    values, vectors = np.linalg.eigh(covariance)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return bias, roots @ vectors.transpose(0, 2, 1)  # symmetric: unlike vectors, it has no sign


def _smallest_shares(simulator: Simulator, sizes: Ints) -> Floats:
    """One item of the bag, or of the labelled items where these are fewer."""
    return np.asarray(1.0 / np.minimum(sizes, len(simulator.codes))[:, None])


def _size_steps(sizes: Ints) -> Ints:
    """Sizes rounded down to a geometric grid."""
    steps = np.floor(np.log(sizes) / np.log(SIZE_STEP) + 1e-9)
    return np.asarray(np.maximum((SIZE_STEP**steps).astype(np.int64), 1))


def _grid(simulator: Simulator, estimates: Floats, sizes: Ints) -> tuple[Floats, Ints, Ints]:
    """Grid points of two classes to simulate around, the one of each bag, and their sizes.

    Bags of two classes differ in one number. Those within a standard error of each other share
    their simulated bags, so that thousands of bags cost no more than some dozens. The grid depends
    on the size alone.
    """
    lengths, of_size = np.unique(sizes, return_inverse=True)
    steps = _standard_errors(simulator, lengths)
    cells = np.floor(estimates[:, 1] / steps[of_size]).astype(np.int64)
    pairs, owner = np.unique(np.column_stack([of_size, cells]), axis=0, return_inverse=True)
    centre = np.clip((pairs[:, 1] + 0.5) * steps[pairs[:, 0]], 0.0, 1.0)
    return np.column_stack([1 - centre, centre]), owner.ravel(), lengths[pairs[:, 0]]


def _standard_errors(simulator: Simulator, sizes: Ints) -> Floats:
    """Smallest standard error of bags of two classes, for each size, over a few prevalences."""
    n_places = len(GRID_PLACES)
    places = np.column_stack([1 - GRID_PLACES, GRID_PLACES])
    shares = np.repeat(np.tile(places, (len(sizes), 1))[:, None, :], PILOT_BAGS, axis=1)
    replicates = simulator.replicates(PILOT_BAGS, "grid")
    simulated, truths = simulator.run(shares, np.repeat(sizes, n_places), replicates)
    errors = (simulated - truths)[:, :, 1].std(axis=1)
    return np.asarray(np.maximum(errors.reshape(len(sizes), n_places).min(axis=1), 1e-4))
