"""How often intervals hold and alarms are false under a change of shares alone, real sets included.

    python benchmarks/auto_coverage.py [--sets made2,made5,made20,digits,emotions,domains]
        [--labelled 500,2000] [--splits 20] [--first 0] [--kept] [--only Auto]

Every split draws other labelled items; 20 bags of each size with any shares are drawn from the
rest. Intervals are 95 % ones; coverage is per class, alarms are those of `diagnose`, in bags of 250
and 2,000. Standard errors are over the splits, because bags of one split share what was learnt.
Bags are no larger than the pool: items that come twice would make them noisier than they are said
to be.
The real sets are looked for in HEADCOUNT_SHARED_DATA.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import harness  # first: it sets one thread for everybody
import interval_coverage
import tasks
import workloads
from headcount import SLD, AutoQuantifier, BayesQuantifier, UniformPrevalence
from headcount.text import TfIdf

SETS = ("made2", "made5", "made20", "digits", "emotions", "domains")
N_BAGS = 20
SIZES = (500, 5000)  # of bags with intervals
ALARMS = (250, 2000)  # of bags that are diagnosed
Items = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def split_of(name: str, n: int, seed: int) -> Items:
    """Labelled items with labels, and a pool with labels; classes of fewer than 20 items go."""
    rng = np.random.default_rng([n, seed])
    if name.startswith("made"):
        k = int(name.removeprefix("made"))
        y = np.concatenate([np.arange(k).repeat(20), rng.integers(k, size=n + 20_000 - 20 * k)])
        X = _made(y, k, rng)
        rows = np.arange(len(y))
    else:
        X, y = _real(name)
        rows = rng.permutation(len(y))
    learnt, other = rows[:n], rows[n:]
    classes, counts = np.unique(y[learnt], return_counts=True)
    kept = classes[counts >= tasks.FEWEST]
    learnt, other = learnt[np.isin(y[learnt], kept)], other[np.isin(y[other], kept)]
    return X[learnt], np.searchsorted(kept, y[learnt]), X[other], np.searchsorted(kept, y[other])


def _made(y: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Overlapping normal classes of unequal spread, as in `interval_coverage`."""
    if k in interval_coverage.TRAINING:
        return interval_coverage.items(y, k, rng)
    means = np.random.default_rng(5).normal(size=(k, 20))
    return means[y] + rng.normal(size=(len(y), 20)) * (1 + 0.3 * (y[:, None] % 2))


def _real(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "digits":
        return load_digits(return_X_y=True)
    _, X, y, *_ = tasks._items(name, 0)
    return X, y


def quantifiers(is_text: bool) -> Iterator[tuple[str, object]]:
    """Methods by name."""
    model = LogisticRegression(max_iter=1000)
    model = make_pipeline(TfIdf(), model) if is_text else model
    yield "SLD, bcts", SLD(model, calibrator="bcts")
    yield "Bayes", BayesQuantifier(classifier=model, expect="any shift")
    yield "Auto", AutoQuantifier(expect="any shift")


def measured(name: str, n: int, seed: int) -> dict[str, list[float]]:
    """Coverage, widths and alarms of every method on a split, kept in the cache."""
    workloads.CACHE.mkdir(exist_ok=True)
    path = workloads.CACHE / f"auto-coverage-{name}-{n}-{seed}.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    if "Auto" in kept or "--kept" in sys.argv:
        return kept
    X, y, pool, y_pool = split_of(name, n, seed)
    only = ",".join(_option("--only", ""))
    for method, q in quantifiers(X.ndim == 1):
        if method in kept or only not in ("", method):
            continue
        q.fit(X, y)
        row = []
        for size in SIZES:
            if size > len(y_pool):
                row += [np.nan, np.nan]
                continue
            bags = _bags(size, seed, y_pool)
            found = q.predict_interval(pool, bags)
            inside = (bags.prevalence >= found.low - 1e-12) & (
                bags.prevalence <= found.high + 1e-12
            )
            row += [float(inside.mean()), float((found.high - found.low).mean())]
        for size in ALARMS:
            if size > len(y_pool):
                row.append(np.nan)
                continue
            found = q.diagnose(pool, _bags(size, seed, y_pool))
            flags = [found.flags(b) for b in range(N_BAGS)]
            row.append(float(np.mean(["misfit" in f for f in flags])))
        kept[method] = row
        path.write_text(json.dumps(kept))
        print(name, n, seed, method, np.round(row, 3), file=sys.stderr, flush=True)
    return kept


def _bags(size: int, seed: int, y_pool: np.ndarray):
    drawing = UniformPrevalence(n_bags=N_BAGS, size=size, random_state=seed)
    return drawing.draw(y_pool, classes=np.unique(y_pool))


def table(results: dict[tuple[str, int], list[dict[str, list[float]]]]) -> Iterator[str]:
    """A row for every set and method."""
    heads = [f"holds, bags of {s:,} | width" for s in SIZES]
    heads += [f"alarms, bags of {s:,}" for s in ALARMS]
    yield f"| set | labelled | method | {' | '.join(heads)} | splits |"
    yield "|---|---:|---|" + "---:|" * 7
    for (name, n), runs in results.items():
        for method in dict.fromkeys(m for run in runs for m in run):
            rows = np.array([run[method] for run in runs if method in run])
            mean = rows.mean(axis=0)
            se = rows.std(axis=0, ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else mean * np.nan
            cells = [
                f"{m:.3f}" if i in (1, 3) else f"{m:.3f} ± {se[i]:.3f}" for i, m in enumerate(mean)
            ]
            yield f"| {name} | {n:,} | {method} | {' | '.join(cells)} | {len(rows)} |"


def _option(name: str, default: str) -> list[str]:
    return (sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default).split(",")


def main() -> None:
    """Measure what is missing, and print the table."""
    warnings.simplefilter("ignore")
    names, sizes = _option("--sets", ",".join(SETS)), _option("--labelled", "500,2000")
    results: dict = {(name, int(n)): [] for name in names for n in sizes}
    first = int(_option("--first", "0")[0])
    for seed in range(first, first + int(_option("--splits", "20")[0])):
        for (name, n), runs in results.items():
            if name == "digits" and n > 1000:  # there are 1,797
                continue
            run = measured(name, n, seed)
            runs += [run] if run else []
    print(harness.machine())
    print("\n".join(table(results)))


if __name__ == "__main__":
    main()
