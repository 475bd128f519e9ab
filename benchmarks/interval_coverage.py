"""How often 95 % intervals hold the true share, and how wide they are.

python benchmarks/interval_coverage.py                    # all cells, both libraries
python benchmarks/interval_coverage.py --trials 100 --labelled 500 --classes 2 --sizes 500,5000
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression

import harness  # first: it sets one thread for everybody
from headcount import ACC, CC, PACC, PCC, SLD, BayesQuantifier, EDy, HDy, KDEyML
from headcount.methods.sharing import SharedPasses

METHODS = {
    "ACC": lambda c: ACC(c),
    "PACC": lambda c: PACC(c),
    "SLD": lambda c: SLD(c),
    "SLD, BCTS": lambda c: SLD(c, calibrator="bcts"),
    "BayesQuantifier": lambda c: BayesQuantifier(c, expect="any shift"),
    "HDy": lambda c: HDy(c),
    "EDy": lambda c: EDy(c),
    "KDEy-ML": lambda c: KDEyML(c),
    "CC (cannot)": lambda c: CC(c),
    "PCC (cannot)": lambda c: PCC(c),
}
TRAINING = {2: [0.7, 0.3], 5: [0.35, 0.25, 0.2, 0.12, 0.08]}
FEATURES = 8


def items(y: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Overlapping normal classes of unequal spread: a linear classifier is not quite right."""
    world = np.random.default_rng(5)
    means = {n: world.normal(size=(n, FEATURES)) * scale for n, scale in ((2, 0.55), (5, 0.9))}
    return means[k][y] + rng.normal(size=(len(y), FEATURES)) * (1 + 0.3 * (y[:, None] % 2))


def trial(k: int, n: int, size: int, seed: int, quapy: bool) -> dict[str, tuple]:
    """Fresh labelled items and a fresh bag: per method whether each share is inside, and widths."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([k, n, size, seed])
    y = np.concatenate([np.arange(k).repeat(10), rng.choice(k, n - 10 * k, p=TRAINING[k])])
    X = items(y, k, rng)
    drawn = rng.choice(k, size, p=rng.dirichlet(np.ones(k)))
    pool = items(drawn, k, rng)
    truth = np.bincount(drawn, minlength=k) / size
    quantifiers = {name: make(LogisticRegression()) for name, make in METHODS.items()}
    shared = SharedPasses(list(quantifiers.values()), X, y)
    out = {}
    for name, q in quantifiers.items():
        fitted = shared.fit(q)
        found = fitted.predict_interval(pool, random_state=seed)
        out[name] = judged(found.low, found.high, truth)
    if quapy:
        out["QuaPy PACC, its bootstrap"] = judged(*theirs(X, y, pool), truth)
    return out


def judged(low: np.ndarray, high: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Share of classes inside, and mean width; borders count as inside."""
    inside = (truth >= low - 1e-12) & (truth <= high + 1e-12)
    return float(inside.mean()), float((high - low).mean())


def theirs(X: np.ndarray, y: np.ndarray, pool: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """QuaPy's interval for PACC with default settings."""
    from quapy.method.aggregative import PACC as TheirPACC
    from quapy.method.confidence import AggregativeBootstrap

    method = AggregativeBootstrap(TheirPACC(LogisticRegression()), confidence_level=0.95)
    _, region = method.fit(X, y).predict_conf(pool)
    return np.asarray(region.I_low), np.asarray(region.I_high)


def main() -> None:
    """Print a table, a row for each method and cell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="seed of the first trial")
    parser.add_argument("--quapy", type=int, default=40, help="trials of two classes with QuaPy")
    parser.add_argument("--classes", default="2,5")
    parser.add_argument("--labelled", default="500,2000")
    parser.add_argument("--sizes", default="500,5000,50000")
    parser.add_argument("--methods", default=";".join(METHODS))
    parser.add_argument("--n-jobs", type=int, default=2)
    args = parser.parse_args()
    for name in set(METHODS) - set(args.methods.split(";")):
        METHODS.pop(name)
    print(harness.machine(*(["quapy"] if args.quapy else [])), end="\n\n")
    print("| classes | labelled | bag | method | coverage | width | trials |")
    print("|---|---|---|---|---|---|---|")
    for k in map(int, args.classes.split(",")):
        for n in map(int, args.labelled.split(",")):
            for size in map(int, args.sizes.split(",")):
                start = time.perf_counter()
                results = Parallel(n_jobs=args.n_jobs)(
                    delayed(trial)(k, n, size, seed, seed < args.quapy and (k, n) == (2, 500))
                    for seed in range(args.first, args.first + args.trials)
                )
                for name in dict.fromkeys(name for r in results for name in r):
                    rows = np.array([r[name] for r in results if name in r])
                    cover, width = rows.mean(axis=0)
                    cells = (k, f"{n:,}", f"{size:,}", name, f"{cover:.3f}", f"{width:.3f}")
                    print("|", " | ".join(map(str, (*cells, len(rows)))), "|", flush=True)
                print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
