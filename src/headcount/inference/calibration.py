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
from headcount.inference.simulation import Simulator, make_simulator, round_to_counts

# Settings chosen by `benchmarks/interval_coverage.py`, except where a reason is given.
N_HALVINGS = 8  # random halvings, each used in both directions
N_ERRORS = 800  # standardised errors in all, about
CALIBRATION_BAG_SIZE = 500  # items
N_CALIBRATION_DRAWS = 100  # simulated bags around each
SAMPLING_DRAWS = 60  # bags that measure the sampling variance
QUANTILE = 0.95  # of the errors: the default level of intervals
NORMAL = float(norm.ppf((1 + QUANTILE) / 2))  # the same of normal errors
NARROWEST = 0.9  # smallest factor: a lower one is more likely noise
MIN_CLASS_SIZE = 4  # labelled items of a class: two in each half, the fewest with a variance
MAX_CLASS_SIZE = 1000  # labelled items of a class that take part
SUFFICIENT = 2000  # labelled items of every class that make calibration unnecessary


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
    if counts.min() >= SUFFICIENT and not quantifier.method_tags().remembers:
        return WidthCalibration()
    chosen = _at_most(scorer.codes, MAX_CLASS_SIZE)
    scorer = scorer.part(chosen) if len(chosen) < len(scorer.codes) else scorer
    k = len(counts)
    n_bags = max(3, N_ERRORS // (2 * N_HALVINGS * k))
    errors = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # halves have nothing to tell the user
        splitter = StratifiedShuffleSplit(N_HALVINGS, test_size=0.5, random_state=0)
        for split, halves in enumerate(splitter.split(scorer.scores, scorer.codes)):
            for number, (fitted, other) in enumerate((halves, halves[::-1])):
                rng = np.random.default_rng([split, number])
                half = quantifier.fit_copy(scorer.part(fitted))
                held_out = scorer.scores[other], scorer.codes[other]
                errors.append(_standardised_errors(half, held_out, n_bags, rng))
    distance = np.abs(errors).reshape(N_HALVINGS, -1)
    rest = [_scale(np.delete(distance, split, axis=0)) for split in range(N_HALVINGS)]
    covered = [distance <= NORMAL, distance <= NORMAL * np.array(rest)[:, None]]
    return WidthCalibration(_scale(distance), *(float(c.mean()) for c in covered))


def _scale(distance: Floats) -> float:
    """Factor that makes the intervals just cover these absolute standardised errors."""
    return float(max(NARROWEST, np.quantile(distance, QUANTILE) / NORMAL))


def _standardised_errors(
    half: Any, held_out: tuple[Floats, Ints], n_bags: int, rng: np.random.Generator
) -> Floats:
    """Errors of a method on bags of items that it has not seen, over their standard deviations."""
    scores, codes = held_out
    k = len(half.classes_)
    simulator = make_simulator(half)
    bags = _draw_bags(codes, rng.dirichlet(np.ones(k), size=n_bags), rng)
    truth = bags.shares(codes, k)
    estimates = half.simulation_twin().estimate([(scores, bags)])
    mean, variance = posterior_moments(simulator, estimates, bags.sizes, N_CALIBRATION_DRAWS)
    total = variance * (1.0 + _labelled_share(simulator, truth))
    return np.asarray((truth - mean) / np.sqrt(np.maximum(total, 1e-18))).ravel()


def _labelled_share(simulator: Simulator, prevalences: Floats) -> Floats:
    """Share of the error variance of simulated bags that is due to the labelled items."""
    shares = np.repeat(prevalences[:, None, :], SAMPLING_DRAWS, axis=1)
    same_items = simulator.replicates(SAMPLING_DRAWS, "sampling", resample=False)
    simulated, truths = simulator.run(
        shares, np.full(len(prevalences), CALIBRATION_BAG_SIZE), same_items
    )
    sampling = (simulated - truths).var(axis=1).mean(axis=0)
    labelled = labelled_error(simulator).variance(prevalences).mean(axis=0)
    return np.asarray(labelled / np.maximum(labelled + sampling, 1e-18))


def _draw_bags(codes: Ints, shares: Floats, rng: np.random.Generator) -> Bags:
    """Bags of these prevalences, drawn with replacement."""
    items = [np.flatnonzero(codes == c) for c in range(shares.shape[1])]
    counts = round_to_counts(shares, np.full(len(shares), CALIBRATION_BAG_SIZE))
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
