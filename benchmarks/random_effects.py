"""Shrinkage estimates of groups on simulated groups: coverage, width and error by known parameters.

python benchmarks/random_effects.py [replications]

Prevalences of populations are Dirichlet with tau^2 = 1/8. The model is learnt from 5, 12 or 40
held-out groups of 25 to 80 rows, and used for groups of 60 to 2,000 rows that have 0 to 100
labelled rows. Estimates have an error that their variance accounts for, and a group error with a
variance of 0 or 0.04 p (1 - p) that it does not. `gain`: estimates show half of the difference
between groups; `heavy`: a fifth of the groups have four times the error variance; `poor fit`: these
are flagged. Cells are the coverage of 95 % intervals of the prevalences among a group's rows, with
its standard error, mean width, and mean absolute error with that of the estimates themselves.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np

import harness  # noqa: F401  first: it sets one thread for everybody
from headcount.inference.draws import Draws
from headcount.inference.random_effects import fit_random_effects

CASES = ("all alike", "gain", "heavy", "poor fit")
GROUPS = (5, 12, 40)
OWN_ROWS = (0, 5, 20, 100)
MEANS = {2: np.array([0.75, 0.25]), 5: np.array([0.4, 0.25, 0.2, 0.1, 0.05])}
CONCENTRATION = 7.0
ERRORS = (0.0, 0.2)


def dirichlet(rng: np.random.Generator, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Shares with this mean and a variance of so many times mean (1 - mean)."""
    total = 1 / np.maximum(variance, 1e-6)[:, None] - 1
    draws = rng.gamma(np.maximum(mean * total, 1e-3))
    return draws / draws.sum(axis=1, keepdims=True)


def simulate(
    case: str, mean: np.ndarray, error: float, sizes: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, ...]:
    """Prevalences of populations and bags, estimates, their variances, and poor fits."""
    k, n = len(mean), len(sizes)
    population = rng.dirichlet(CONCENTRATION * mean, n)
    drawn = zip(sizes, population, strict=True)
    truth = np.stack([rng.multinomial(m, p) / m for m, p in drawn])
    large = rng.random(n) < 0.2
    errors = np.full(n, error)
    if case in ("heavy", "poor fit"):
        errors = np.where(large, 2 * error, error / 2)
    shown = mean + (0.5 if case == "gain" else 1.0) * (truth - mean)
    shown = dirichlet(rng, shown, errors**2) if error else shown
    noise = 2 / sizes + 0.004
    estimates = dirichlet(rng, shown, noise)
    smooth = (estimates / noise[:, None] + 1) / (1 / noise + k)[:, None]
    variance = smooth * (1 - smooth) * noise[:, None]
    return population, truth, estimates, variance, large & (case == "poor fit")


def replicate(
    case: str, mean: np.ndarray, error: float, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Coverage, width, error and error of the estimates, for each number of own rows."""
    sizes = rng.choice([25, 40, 80], n)
    _, truth, estimates, variance, poor = simulate(case, mean, error, sizes, rng)
    effects = fit_random_effects(estimates, variance, truth, sizes, poor)[0]
    sizes = rng.choice([60, 300, 2000], 8)
    population, truth, estimates, variance, poor = simulate(case, mean, error, sizes, rng)
    none, keys = np.zeros_like(truth), np.arange(8, dtype=np.uint64)
    known = np.ones(8, dtype=bool)
    moments = estimates, estimates, variance, sizes.astype(float)
    draws = Draws(np.arange(len(mean)), *moments, none, keys, known)
    rows = []
    for n_own in OWN_ROWS:
        own = np.stack([rng.multinomial(n_own, p) for p in population])
        interval = effects.shrink(draws, poor, "bag", own).interval()
        inside = (truth >= interval.low) & (truth <= interval.high)
        off = [np.abs(x - truth).mean() for x in (interval.prevalence, estimates)]
        rows.append([inside.mean(), (interval.high - interval.low).mean(), *off])
    return np.array(rows)


def main() -> None:
    n_replications = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(
        "| case, classes, error, groups | " + " | ".join(f"{n} own rows" for n in OWN_ROWS) + " |"
    )
    print("|---|" + "---|" * len(OWN_ROWS))
    for case, k, error, n in product(CASES, MEANS, ERRORS, GROUPS):
        cells = []
        streams = (np.random.default_rng([i, n, k]) for i in range(n_replications))
        results = np.array([replicate(case, MEANS[k], error, n, rng) for rng in streams])
        sem = results[:, :, 0].std(axis=0, ddof=1) / np.sqrt(n_replications)
        for (inside, width, off, plain), s in zip(results.mean(axis=0), sem, strict=True):
            cells.append(f"{inside:.3f} ± {s:.3f} ({width:.2f}, {off:.3f} of {plain:.3f})")
        print(f"| {case}, {k}, {error}, {n} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
