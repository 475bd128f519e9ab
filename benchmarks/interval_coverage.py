"""Coverage and width of 95 % intervals, of this version and of another one in the same run.

python benchmarks/interval_coverage.py                                # all cells, this version
python benchmarks/interval_coverage.py --against ../baseline/src      # and another version
python benchmarks/interval_coverage.py --cells "5 classes, 500" --methods PACC --trials 100

Every trial draws labelled items and 20 bags; prevalences are uniform on the simplex, except that
one class of the cells "0 to 2 %" has at most that share. Standard errors are over trials, because
the bags of a trial share its labelled items. "Oracle" is the width of the other version's intervals
after they are scaled, around their midpoints, to cover 95 %. Real data sets are looked for in
HEADCOUNT_SHARED_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression

import harness  # first: it sets one thread for everybody
from headcount import ACC, PACC, SLD, Bags, BayesQuantifier, EDy, HDy, KDEyML

DATA = Path(os.environ.get("HEADCOUNT_SHARED_DATA", "../shared/data"))
TRAINING = {2: [0.7, 0.3], 5: [0.35, 0.25, 0.2, 0.12, 0.08]}
FEATURES = 8
N_BAGS = 20
METHODS = {
    "ACC": lambda c: ACC(c),
    "PACC": lambda c: PACC(c),
    "SLD": lambda c: SLD(c),
    "SLD, BCTS": lambda c: SLD(c, calibrator="bcts"),
    "BayesQuantifier": lambda c: BayesQuantifier(c, expect="any shift"),
    "HDy": lambda c: HDy(c),
    "EDy": lambda c: EDy(c),
    "KDEy-ML": lambda c: KDEyML(c),
}
# Data, number of classes, labelled items (negative: of each class), items of a bag, rare class.
CELLS = {
    "2 classes, 500": ("synthetic", 2, 500, 500, False),
    "2 classes, 500, bags of 5,000": ("synthetic", 2, 500, 5000, False),
    "2 classes, 2,000": ("synthetic", 2, 2000, 500, False),
    "2 classes, 500, 0 to 2 %": ("synthetic", 2, 500, 1000, True),
    "2 classes, 40 of each": ("synthetic", 2, -40, 1000, False),
    "5 classes, 500": ("synthetic", 5, 500, 500, False),
    "5 classes, 500, bags of 5,000": ("synthetic", 5, 500, 5000, False),
    "5 classes, 500, 0 to 2 %": ("synthetic", 5, 500, 1000, True),
    "5 classes, 30 of each": ("synthetic", 5, -30, 1000, False),
    "20 classes, 500": ("synthetic", 20, 500, 1000, False),
    "6 emotions, 500, bags of 2,000": ("emotions", 6, 500, 2000, False),
    "8 classes of krvsk, 500, bags of 2,000": ("krvsk", 8, 500, 2000, False),
}


def items(y: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Overlapping normal classes of unequal spread: a linear classifier is not quite right."""
    fixed = np.random.default_rng(5)
    if k not in TRAINING:
        means = fixed.normal(size=(k, 20))
    else:
        means = {n: fixed.normal(size=(n, FEATURES)) * s for n, s in ((2, 0.55), (5, 0.9))}[k]
    return means[y] + rng.normal(size=(len(y), means.shape[1])) * (1 + 0.3 * (y[:, None] % 2))


def real(name: str, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and codes of the most frequent classes (of emotions: after the neutral one)."""
    import pyarrow.parquet as pq

    if name == "krvsk":
        table = pq.read_table(DATA / "tabular" / "krvsk.parquet").to_pandas()
        labels = table.pop("label")
        kept = labels.isin(labels.value_counts().index[:k])
        X = table[kept].to_numpy(float)
        X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    else:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        table = pq.read_table(DATA / "emotions.parquet").to_pandas()
        labels = table["label"]
        kept = labels.isin(labels.value_counts().index[1 : k + 1])
        X = TfidfVectorizer(sublinear_tf=True, min_df=3).fit_transform(table["text"][kept])
        X = 10 * TruncatedSVD(100, random_state=0).fit_transform(X)
    return X, np.unique(labels[kept], return_inverse=True)[1]


def sample(cell: str, seed: int, data: tuple | None) -> tuple:
    """Labelled items with codes, a pool, bags of it, and their true prevalences."""
    _, k, n, size, rare = CELLS[cell]
    rng = np.random.default_rng([seed, k, abs(n), size])
    shares = rng.dirichlet(np.ones(k), size=10 * N_BAGS)
    if rare:
        shares[:, 0] = rng.uniform(0, 0.02, len(shares))
        shares[:, 1:] *= ((1 - shares[:, 0]) / shares[:, 1:].sum(axis=1))[:, None]
    counts = np.stack([rng.multinomial(size, p) for p in shares])
    if data is None:
        rest = TRAINING.get(k, np.full(k, 1 / k))
        y = np.repeat(np.arange(k), -n if n < 0 else 10)
        y = y if n < 0 else np.concatenate([y, rng.choice(k, n - 10 * k, p=rest)])
        X, counts = items(y, k, rng), counts[:N_BAGS]
        codes = np.concatenate([np.repeat(np.arange(k), row) for row in counts])
        pool, rows = items(codes, k, rng), np.arange(N_BAGS * size).reshape(N_BAGS, size)
    else:
        every, labels = data
        order = rng.permutation(len(labels))
        X, y = every[order[:n]], labels[order[:n]]
        pool, rest = every[order[n:]], labels[order[n:]]
        each = [np.flatnonzero(rest == c) for c in range(k)]
        counts = counts[(counts <= [len(own) for own in each]).all(axis=1)][:N_BAGS]
        rows = [
            np.concatenate(
                [rng.choice(e, m, replace=False) for e, m in zip(each, row, strict=True)]
            )
            for row in counts
        ]
    return X, y, pool, Bags.from_lists(rows, n_items=len(pool)), counts / size


def trial(cell: str, seed: int, methods: list[str], data: tuple | None) -> dict[str, list]:
    """Per method: how far each true share is from the middle, half the width, and CPU seconds."""
    import time

    warnings.simplefilter("ignore")
    X, y, pool, bags, truth = sample(cell, seed, data)
    out: dict[str, list] = {}
    for name in methods:
        began = time.process_time()
        interval = METHODS[name](LogisticRegression(max_iter=1000)).fit(X, y)
        interval = interval.predict_interval(pool, bags)
        middle, half = (interval.low + interval.high) / 2, (interval.high - interval.low) / 2
        out[name] = [np.abs(truth - middle), half, time.process_time() - began]
    return out


def run(cell: str, args: argparse.Namespace) -> dict[str, dict[str, list]]:
    """Distances from midpoints and half widths of all trials of a cell, and mean CPU seconds."""
    name, k, *_ = CELLS[cell]
    data = None if name == "synthetic" else real(name, k)
    seeds = range(args.first, args.first + args.trials)
    methods = args.methods.split(";")
    results = Parallel(n_jobs=args.n_jobs)(delayed(trial)(cell, s, methods, data) for s in seeds)
    return {
        m: {
            "distance": [r[m][0].tolist() for r in results],
            "half": [r[m][1].tolist() for r in results],
            "seconds": float(np.mean([r[m][2] for r in results])),
        }
        for m in methods
    }


def other(cell: str, args: argparse.Namespace) -> dict[str, dict[str, list]]:
    """The same by another version, in a process of its own."""
    command = [sys.executable, __file__, "--worker", "--cells", cell, "--methods", args.methods]
    command += ["--trials", str(args.trials), "--first", str(args.first)]
    command += ["--n-jobs", str(args.n_jobs)]
    environment = os.environ | {"PYTHONPATH": args.against}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def summary(result: dict) -> tuple[float, float, float]:
    """Coverage, its standard error over trials, and mean width."""
    distance, half = np.array(result["distance"]), np.array(result["half"])
    inside = (distance <= half + 1e-9).mean(axis=(1, 2))
    return inside.mean(), inside.std(ddof=1) / np.sqrt(len(inside)), 2 * half.mean()


def oracle(result: dict) -> float:
    """Mean width of intervals that are scaled around their midpoints to cover 95 %."""
    distance, half = np.array(result["distance"]), np.array(result["half"])
    return 2 * half.mean() * float(np.quantile(distance / np.maximum(half, 1e-9), 0.95))


def main() -> None:
    """Print a table: one row per cell and method."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", default=";".join(CELLS))
    parser.add_argument("--methods", default="PACC;SLD, BCTS;BayesQuantifier")
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--first", type=int, default=1000, help="seed of the first trial")
    parser.add_argument("--against", default="", help="folder of another version's source")
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(run(args.cells, args)))
        return
    print(harness.machine(), end="\n\n")
    print("| cell | method | before | width | oracle | after | width | CPU s, before and after |")
    print("|---|---|---|---:|---:|---|---:|---|", flush=True)
    for cell in args.cells.split(";"):
        after = run(cell, args)
        before = other(cell, args) if args.against else {}
        for method, result in after.items():
            old = ["", "", ""]
            seconds = f"{result['seconds']:.1f}"
            if method in before:
                mean, error, width = summary(before[method])
                old = [f"{mean:.3f} ± {error:.3f}", f"{width:.3f}", f"{oracle(before[method]):.3f}"]
                seconds = f"{before[method]['seconds']:.1f}, {seconds}"
            mean, error, width = summary(result)
            new = [f"{mean:.3f} ± {error:.3f}", f"{width:.3f}"]
            print("|", " | ".join([cell, method, *old, *new, seconds]), "|", flush=True)


if __name__ == "__main__":
    main()
