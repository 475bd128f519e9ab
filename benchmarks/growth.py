"""Time and memory of the methods that compare pairs of items, as a single bag grows.

python benchmarks/growth.py
"""

from __future__ import annotations

import numpy as np

import harness  # first: it sets one thread for everybody
import headcount as hc
from headcount.methods.base import without_calibration

SIZES = (1_000, 10_000, 100_000, 1_000_000)
N_TRAIN = 5_000


def _maker(fitted: hc.ScoreQuantifier, scores: np.ndarray):
    return lambda: lambda bags: fitted.predict_scores(scores, bags)


def main() -> None:
    """Print a table of CPU seconds and peak memory for one bag of each size."""
    rng = np.random.default_rng(0)
    y = rng.choice(2, N_TRAIN, p=[0.8, 0.2])
    train = 1 / (1 + np.exp(-(2.0 * y - 1.5 + rng.normal(size=N_TRAIN))))
    truth = rng.choice(2, max(SIZES), p=[0.5, 0.5])
    pool = 1 / (1 + np.exp(-(2.0 * truth - 1.5 + rng.normal(size=max(SIZES)))))
    print(harness.machine(), end="\n\n")
    print(f"{N_TRAIN:,} labelled items; a matrix of all pairs would take the last column.\n")
    print("| method | items in the bag | CPU s | peak MB | all pairs, MB |")
    print("|---|---:|---:|---:|---:|")
    for method in (hc.KDEyML(), hc.KDEyCS(), hc.EDy(), hc.SORD()):
        fitted = without_calibration(method).fit_scores(train, y)
        for size in SIZES:
            bags = hc.Bags.single(size).with_truth(truth[:size])
            make = _maker(fitted, pool[:size])
            run = harness.run(str(method), "", make, bags)
            pairs = size * N_TRAIN * 8 / 2**20
            print(f"| {method} | {size:,} | {run.seconds:.3g} | {run.memory:.0f} | {pairs:,.0f} |")


if __name__ == "__main__":
    main()
