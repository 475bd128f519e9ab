"""False alarms of `misfit` under pure label shift, through the tables' own path, by kind of score.

python benchmarks/table_alarms.py [trials, or first-last] [number of classes ...]

Scores of a classifier or a judge: continuous, rounded, integers, categories (hard answers); two to
ten classes. In each trial labelled items and twelve groups of other shares are made of the same
classes, so that every alarm is a false one. The level of the test is 0.04. Groups of a trial share
its labelled items, so that standard errors are those of trials.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

import harness  # noqa: F401  first: it sets one thread for everybody
from headcount import PACC
from headcount.data.groups import Grouping
from headcount.inference.diagnosis import FIT_LEVEL
from headcount.tables import Count, Inputs, Model
from headcount.tables.accumulator import Accumulator
from headcount.tables.estimation import estimate_groups
from headcount.tables.result import GroupRows

GROUPS = 12


def scores_of(kind: str, y: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Scores of items: posteriors of Gaussian classes, or what a judge makes of them."""
    z = 1.2 * rng.normal(size=(len(y), k)) + 1.8 * np.eye(k)[y]
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    if kind == "rounded":
        p = np.round(p, 1 if k == 2 else 2) + 1e-9
        return p / p.sum(axis=1, keepdims=True)
    if kind == "category":
        return np.eye(k)[p.argmax(axis=1)]
    if kind.startswith(("1-", "0-")):
        low, top = map(int, kind.split("-"))
        x = np.round(low + (top - low) * p[:, 1]) if k == 2 else np.round(low + (top - low) * p)
        return np.column_stack([1 - x, x]) if k == 2 else x
    return p


def alarms(kind: str, k: int, n: int, size: int, seed: int) -> np.ndarray:
    """Whether each of the groups of one trial is flagged."""
    rng = np.random.default_rng([seed, k, n, size])
    y = np.concatenate([np.arange(k).repeat(10), rng.choice(k, n, p=rng.dirichlet(5 * np.ones(k)))])
    q = PACC(calibrator="platt" if kind[0] in "01" else None)
    q.fit_scores(scores_of(kind, y, k, rng), y)
    groups = []
    for _ in range(GROUPS):
        labels = rng.choice(k, size, p=rng.dirichlet(np.ones(k)))
        groups.append(scores_of(kind, labels, k, rng))
    return estimated(q, groups).diagnosis.fit < FIT_LEVEL


def estimated(quantifier, groups: list[np.ndarray]) -> Count:
    """Estimates of groups of scores by a fitted quantifier, as `headcount estimate` makes them."""
    columns = tuple(map(str, range(groups[0].shape[1])))
    model = Model(quantifier, Inputs("scores", columns), "label")
    accumulator = Accumulator(model.layout)
    for g, scores in enumerate(groups):
        accumulator.add(*model.score(scores), np.full(len(scores), g))
    state = accumulator.finish()
    names = [str(g) for g in range(len(groups))]
    rows = GroupRows(names, Grouping(), state.rows, state.effective, state)
    return Count(model, rows, estimate_groups(model, rows))


def main() -> None:
    warnings.simplefilter("ignore")
    first, _, last = (sys.argv[1] if len(sys.argv) > 1 else "10").partition("-")
    trials = range(int(first), int(last) + 1) if last else range(int(first))
    chosen = [cell for cell in CELLS if str(cell[0]) in sys.argv[2:]] or CELLS
    print("| scores | " + " | ".join(f"{k} classes, groups of {m}" for k, m in chosen) + " |")
    print("|---|" + "---|" * len(chosen))
    for kind in ("continuous", "rounded", "1-5", "1-10", "0-100", "category"):
        cells = []
        for k, size in chosen:
            found = np.array([alarms(kind, k, 600, size, seed).mean() for seed in trials])
            cells.append(f"{found.mean():.3f} ± {found.std(ddof=1) / np.sqrt(len(found)):.3f}")
        print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)


CELLS = [(2, 200), (2, 2000), (3, 200), (3, 2000), (5, 500), (10, 500)]

if __name__ == "__main__":
    main()
