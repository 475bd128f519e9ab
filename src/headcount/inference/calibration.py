"""Calibration of interval width on held-out halves of the labelled items.

Split calibration of a scale factor, as in normalised conformal prediction (Papadopoulos et al.
2008; Lei et al. 2018): the method is fitted on one half of the held-out scores, and its posterior
moments are compared with the known prevalences of bags drawn from the other half. The factor is the
empirical 95 % quantile of the standardised errors over that of a normal distribution. It covers
whatever makes intervals too narrow: small classes, calibrators and densities that fit the very
items that simulated bags are drawn from, methods that are nonlinear near the border of the simplex.

A bag drawn from half of the items is not a bag of the population. Its half has an error of the
same size as that of the half that was fitted, which is allowed for.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.model_selection import StratifiedShuffleSplit

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.inference.labelled_error import labelled_error
from headcount.inference.local_regression import posterior_moments
from headcount.inference.simulation import make_simulator, round_to_counts

# Settings chosen by `benchmarks/interval_coverage.py`, except where a reason is given.
MIN_HALVINGS = 5  # random halvings, each used in both directions
MIN_DIMENSIONS = 10  # halvings times free prevalences: few classes need more halvings
N_ERRORS = 400  # standardised errors in all, about
HALF_BAG_SIZE = 500  # items of a bag
DRAWS_PER_BAG = 80  # simulated bags around each
SAMPLING_DRAWS = 60  # simulated bags that measure the sampling variance
NARROWEST = 0.9  # smallest factor: a lower one is more likely noise
MIN_CLASS_SIZE = 4  # labelled items of a class: two in each half, the fewest with a variance
MAX_CLASS_SIZE = 1000  # labelled items of a class that take part
SUFFICIENT_CLASS_SIZE = 2000  # labelled items of every class that make calibration unnecessary
QUANTILE = 0.95  # of the errors: the default level of intervals
NORMAL_QUANTILE = float(norm.ppf((1 + QUANTILE) / 2))
# Relative standard error of that quantile for one normal error: sqrt(q (1 - q)) / (density at the
# quantile), over the quantile.
ERROR_OF_ONE = float(
    np.sqrt(QUANTILE * (1 - QUANTILE)) / (2 * norm.pdf(NORMAL_QUANTILE)) / NORMAL_QUANTILE
)
INDEPENDENT_ERRORS = 1.5  # of one half and class, after the first: errors of one half correlate


class WidthCalibration(NamedTuple):
    """Factor on standard deviations, and coverage of 95 % intervals without it and with it.

    The latter uses, for each split, the factor of the other splits.
    """

    scale: float = 1.0
    uncalibrated: float = float("nan")
    calibrated: float = float("nan")


def calibrate_width(quantifier: Any) -> WidthCalibration:
    """Calibrate the width of the intervals of a fitted quantifier that works on scores.

    The factor is 1 where every class has very many labelled items, or one has too few.
    """
    scorer = quantifier.scorer_
    counts = np.bincount(scorer.codes, minlength=len(scorer.classes))
    if not len(scorer.codes) or counts.min() < MIN_CLASS_SIZE:
        return WidthCalibration()
    if counts.min() >= SUFFICIENT_CLASS_SIZE and not quantifier.method_tags().remembers:
        return WidthCalibration()
    chosen = _at_most(scorer.codes, MAX_CLASS_SIZE)
    scorer = scorer.part(chosen) if len(chosen) < len(scorer.codes) else scorer
    k = len(counts)
    n_halvings = max(MIN_HALVINGS, MIN_DIMENSIONS // (k - 1))
    n_bags = max(3, N_ERRORS // (2 * n_halvings * k))
    errors = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about bags of few items
        share = _labelled_share(quantifier, n_bags)
        splitter = StratifiedShuffleSplit(n_halvings, test_size=0.5, random_state=0)
        for split, halves in enumerate(splitter.split(scorer.scores, scorer.codes)):
            for number, (fitted, other) in enumerate((halves, halves[::-1])):
                rng = np.random.default_rng([split, number])
                half = quantifier.fit_copy(scorer.part(fitted))
                held_out = scorer.scores[other], scorer.codes[other]
                errors.append(_standardised_errors(half, held_out, n_bags, rng) / (1 + share))
    distance = np.sqrt(errors).reshape(n_halvings, -1)
    rest = [_scale(np.delete(distance, split, axis=0), k) for split in range(n_halvings)]
    limit = NORMAL_QUANTILE * np.array([[1.0] * n_halvings, rest])
    covered = (distance <= limit[:, :, None]).mean(axis=(1, 2))
    return WidthCalibration(_scale(distance, k), float(covered[0]), float(covered[1]))


def _scale(distance: Floats, n_classes: int) -> float:
    """Factor that makes intervals cover these standardised errors, shrunken towards 1.

    The shrinkage is that of the positive-part James-Stein estimator: what does not exceed its own
    standard error is taken as noise.
    """
    excess = float(np.quantile(distance, QUANTILE)) / NORMAL_QUANTILE - 1.0
    n_errors = INDEPENDENT_ERRORS * 2 * len(distance) * (n_classes - 1)
    noise = ERROR_OF_ONE**2 / n_errors
    weight = max(0.0, 1.0 - noise / max(excess**2, 1e-12))
    return float(max(NARROWEST, 1.0 + weight * excess))


def _standardised_errors(
    half: Any, held_out: tuple[Floats, Ints], n_bags: int, rng: np.random.Generator
) -> Floats:
    """Squared errors on bags of items that a method has not seen, over their variances."""
    scores, codes = held_out
    k = len(half.classes_)
    simulator = make_simulator(half)
    bags = _draw_bags(codes, rng.dirichlet(np.ones(k), size=n_bags), rng)
    truth = bags.shares(codes, k)
    estimates = half.simulation_twin().estimate([(scores, bags)])
    mean, variance = posterior_moments(simulator, estimates, bags.sizes, DRAWS_PER_BAG)
    return np.asarray((truth - mean) ** 2 / np.maximum(variance, 1e-18))


def _labelled_share(quantifier: Any, n_bags: int) -> Floats:
    """Share of a half's error variance that is due to its labelled items, for each class.

    Half of the items have twice the variance of all.
    """
    simulator = make_simulator(quantifier)
    k = simulator.n_classes
    prevalences = np.random.default_rng(0).dirichlet(np.ones(k), size=n_bags)
    shares = np.repeat(prevalences[:, None, :], SAMPLING_DRAWS, axis=1)
    same_items = simulator.replicates(SAMPLING_DRAWS, "sampling", resample=False)
    simulated, truths = simulator.run(shares, np.full(n_bags, HALF_BAG_SIZE), same_items)
    sampling = (simulated - truths).var(axis=1).mean(axis=0)
    labelled = 2.0 * labelled_error(simulator).variance(prevalences).mean(axis=0)
    return np.asarray(labelled / np.maximum(labelled + sampling, 1e-18))


def _draw_bags(codes: Ints, shares: Floats, rng: np.random.Generator) -> Bags:
    """Bags of these prevalences, drawn with replacement."""
    items = [np.flatnonzero(codes == c) for c in range(shares.shape[1])]
    counts = round_to_counts(shares, np.full(len(shares), HALF_BAG_SIZE))
    rows = [
        np.concatenate([rng.choice(own, n) for own, n in zip(items, row, strict=True)])
        for row in counts
    ]
    return Bags.from_lists(rows, n_items=len(codes))


def _at_most(codes: Ints, per_class: int) -> Ints:
    """Items, with a random sample of the classes that have more than `per_class`."""
    order = np.random.default_rng(0).permutation(len(codes))
    rank = np.empty(len(codes), dtype=np.int64)
    for c in np.unique(codes):
        own = order[codes[order] == c]
        rank[own] = np.arange(len(own))
    return np.flatnonzero(rank < per_class)
