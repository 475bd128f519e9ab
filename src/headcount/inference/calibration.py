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
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.model_selection import StratifiedShuffleSplit

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.inference.labelled_error import labelled_error
from headcount.inference.local_regression import posterior_moments
from headcount.inference.simulation import make_simulator, round_to_counts

# Settings chosen by `benchmarks/interval_coverage.py`.
N_SPLITS = 8  # random halvings, each used in both directions
N_ERRORS = 1600  # standardised errors in all, about
BAG_SIZE = 500  # items
N_DRAWS = 100  # simulated bags around each
QUANTILE = 0.95  # of the errors
NARROWEST = 0.9  # smallest factor: a lower one is more likely noise
MIN_CLASS_SIZE = 4  # labelled items of a class without which halves cannot be compared
MAX_CLASS_SIZE = 1000  # labelled items of a class that take part
SUFFICIENT = 2000  # labelled items of every class that make calibration unnecessary


def calibrate_width(quantifier: Any) -> float:
    """Factor on the standard deviation of the labelled error that makes intervals cover.

    Parameters
    ----------
    quantifier : fitted quantifier on scores

    Returns
    -------
    float
        1.0 where every class has very many labelled items, and NaN where one has too few.
    """
    scorer = quantifier.scorer_
    counts = np.bincount(scorer.codes, minlength=len(scorer.classes))
    if not len(scorer.codes) or counts.min() < MIN_CLASS_SIZE:
        return float("nan")
    if counts.min() >= SUFFICIENT and not quantifier.method_tags().remembers:
        return 1.0
    chosen = _at_most(scorer.codes, MAX_CLASS_SIZE)
    scorer = scorer.part(chosen) if len(chosen) < len(scorer.codes) else scorer
    k = len(counts)
    n_bags = max(3, N_ERRORS // (2 * N_SPLITS * k))
    errors = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # halves have nothing to tell the user
        splitter = StratifiedShuffleSplit(N_SPLITS, test_size=0.5, random_state=0)
        for split, halves in enumerate(splitter.split(scorer.scores, scorer.codes)):
            for number, (fitted, other) in enumerate((halves, halves[::-1])):
                rng = np.random.default_rng([split, number])
                half = quantifier.fit_copy(scorer.part(fitted))
                held_out = scorer.scores[other], scorer.codes[other]
                errors.append(_standardised_errors(half, held_out, n_bags, rng))
    factor = np.quantile(np.abs(np.concatenate(errors)), QUANTILE)
    return float(max(NARROWEST, factor / norm.ppf((1 + QUANTILE) / 2)))


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
    mean, variance = posterior_moments(simulator, estimates, bags.sizes, N_DRAWS)
    of_other_half = labelled_error(simulator).variance(truth)
    share = np.clip(of_other_half / np.maximum(variance, 1e-18), 0.0, 1.0)
    total = np.maximum(variance * (1.0 + share), 1e-18)
    return np.asarray((truth - mean) / np.sqrt(total)).ravel()


def _draw_bags(codes: Ints, shares: Floats, rng: np.random.Generator) -> Bags:
    """Bags of these prevalences, drawn with replacement."""
    items = [np.flatnonzero(codes == c) for c in range(shares.shape[1])]
    counts = round_to_counts(shares, np.full(len(shares), BAG_SIZE))
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
