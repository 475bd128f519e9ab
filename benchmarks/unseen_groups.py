"""Coverage of intervals of groups without labelled rows, by the number of labelled groups.

python benchmarks/unseen_groups.py [sets]

Made-up groups of three classes, whose shares lie apart as a Dirichlet distribution says. A model's
answers for them have the error that the model expects (8 points for the 40 labelled rows of a
group, 2.5 for the 1,000 rows of a new one) and another of which it knows nothing. Each set has
groups of its own to learn from, and four new ones to answer for. Cells are the coverage of 95 %
intervals with its standard error, mean width and mean error in points.
"""

from __future__ import annotations

import sys

import numpy as np

import harness  # noqa: F401  first: it sets one thread for everybody
from headcount.inference.draws import Draws
from headcount.inference.random_effects import fit_random_effects

GROUPS = (5, 6, 8, 12, 25)
ERRORS = (0.0, 0.05, 0.1, 0.2, 0.3)  # standard deviation of the error that is not expected
EXPECTED, ROWS = (0.08, 0.025), (40, 1000)
USUAL = np.array([0.5, 0.3, 0.2])


def groups(
    n: int, rng: np.random.Generator, error: float, expected: float, rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers, the variance that the model expects, and true shares."""
    truth = np.stack([rng.multinomial(rows, p) for p in rng.dirichlet(6 * USUAL, n)]) / rows
    off = rng.normal(size=(n, 3))
    off = np.hypot(expected, error) * np.sqrt(1.5) * (off - off.mean(axis=1, keepdims=True))
    return truth + off, np.full((n, 3), expected**2), truth


def one(n: int, error: float, rng: np.random.Generator) -> list[float]:
    """Coverage, width and error of four new groups."""
    estimates, variance, truth = groups(n, rng, error, EXPECTED[0], ROWS[0])
    poor_fit = np.zeros(n, dtype=bool)
    effects, _ = fit_random_effects(estimates, variance, truth, np.full(n, ROWS[0]), poor_fit)
    estimates, variance, truth = groups(4, rng, error, EXPECTED[1], ROWS[1])
    sizes, known = np.full(4, float(ROWS[1])), np.ones(4, dtype=bool)
    keys, labelled_share = np.arange(4, dtype=np.uint64), np.zeros((4, 3))
    moments = estimates, estimates, variance
    draws = Draws(np.arange(3), *moments, sizes, labelled_share, keys, known)
    found = effects.shrink(draws, poor_fit[:4]).interval()
    inside = (truth >= found.low) & (truth <= found.high)
    off = np.abs(found.prevalence - truth)
    return [inside.mean(), 100 * (found.high - found.low).mean(), 100 * off.mean()]


def main() -> None:
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else 250
    print("| error, points | " + " | ".join(f"{n} groups" for n in GROUPS) + " |")
    print("|---|" + "---|" * len(GROUPS))
    for error in ERRORS:
        cells = []
        for n in GROUPS:
            rng = np.random.default_rng([n, int(1000 * error)])
            found = np.array([one(n, error, rng) for _ in range(sets)])
            held, width, off = found.mean(axis=0)
            sem = found[:, 0].std(ddof=1) / np.sqrt(sets)
            cells.append(f"{held:.3f} ± {sem:.3f} ({width:.0f}, {off:.1f})")
        print(f"| {100 * error:.0f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
