"""Work that automatic selection computes, and the CPU seconds that it takes.

    python benchmarks/selection_cost.py

One unit of work should be about one second of one core, to a factor of about two, on synthetic
tables of several sizes and on reviews (looked for in HEADCOUNT_SHARED_DATA).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

import harness
import tasks
from headcount import BayesQuantifier, UniformPrevalence
from headcount.methods.base import without_calibration
from headcount.scores import cross_fit
from headcount.scores.crossfit import cross_fit_source
from headcount.scores.sources import sources_for
from headcount.selection.budget import Size, cross_fit_cost, trial_cost
from headcount.selection.candidates import FOR_TRIALS, default_candidates

SIZES = [(2000, 10, 2), (2000, 100, 2), (10000, 20, 2), (2000, 16, 10)]


def table(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes of correlated features."""
    rng = np.random.default_rng(0)
    y = rng.integers(k, size=n)
    return (rng.normal(size=(k, d))[y] + rng.normal(size=(n, d))) @ rng.normal(size=(d, d)), y


def problems() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Named data sets."""
    for n, d, k in SIZES:
        yield f"{n} x {d}, {k} classes", *table(n, d, k)
    reviews = pd.read_parquet(tasks.HOME / "reviews.parquet").query("split != 'unlabel'")
    some = reviews.sample(1000, random_state=0)
    yield "1000 reviews", some["text"].to_numpy(), some["sentiment"].to_numpy().astype(int)


def measured(work) -> float:
    """CPU seconds."""
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    """Print computed work and measured seconds."""
    warnings.simplefilter("ignore")
    print(
        f"{harness.machine()}\n\n| problem | work | units | CPU s | ratio |\n|---|---|--:|--:|--:|"
    )
    for name, X, y in problems():
        size = Size.of(X, len(np.unique(y)))
        rows = []
        for source in sources_for(X, size.classes):
            firsts = {f: dict([*some.items()][:1]) for f, some in source.families.items()}
            first = replace(source, families=firsts)
            seconds = measured(partial(cross_fit_source, first, X, y, random_state=0))
            rows.append((source.name, cross_fit_cost(first, size, 5), seconds))
        if not isinstance(X[0], str):
            rows += trials(X, y, size)
        for what, units, seconds in rows:
            ratio = seconds / units
            print(f"| {name} | {what} | {units:.3f} | {seconds:.3f} | {ratio:.2f} |", flush=True)


def trials(X: np.ndarray, y: np.ndarray, size: Size) -> Iterator[tuple[str, float, float]]:
    """Work and seconds to try each method on 60 bags."""
    scorer = cross_fit(LogisticRegression(max_iter=1000), X, y, random_state=0)
    ((train, test),) = StratifiedShuffleSplit(1, test_size=0.2, random_state=0).split(X, y)
    bags = UniformPrevalence(n_bags=60, size=250).draw(y[test], classes=scorer.classes)
    part, learned = scorer.part(train), replace(size, items=len(train))
    for name, quantifier in default_candidates("ae", "learn", size.classes, natural=True).items():
        trial = without_calibration(quantifier)
        if isinstance(trial, BayesQuantifier):
            trial.set_params(**FOR_TRIALS)

        def run(q=trial):
            q.fit_scorer(part).estimate([(scorer.scores[test], bags)])

        measured(run)  # compiles
        yield name, trial_cost(trial, learned, 60 * 250), measured(run)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
