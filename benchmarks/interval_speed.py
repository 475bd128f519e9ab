"""Intervals for the 5,000 bags of the T1A-like workload, against QuaPy's bootstrap.

python benchmarks/interval_speed.py
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from joblib import parallel_config
from sklearn.linear_model import LogisticRegression

import harness  # first: it sets one thread for everybody
import workloads
from headcount import ACC, PACC, SLD, EDy, HDy, KDEyML

SOME = 20  # bags that QuaPy is timed on


def main() -> None:
    """Print a table."""
    from quapy.method import aggregative
    from quapy.method.confidence import AggregativeBootstrap

    warnings.simplefilter("ignore")
    train, y, pool, bags = workloads.scores("T1A")
    dummy = LogisticRegression().fit(np.repeat(np.eye(2), 3, axis=0), np.repeat([0, 1], 3))
    print(harness.machine("quapy"), end="\n\n")
    print("| method | QuaPy, s | Headcount, s | times faster | coverage, QuaPy | ours |")
    print("|---|---|---|---|---|---|")
    ours = {
        "ACC": ACC(),
        "PACC": PACC(),
        "SLD": SLD(),
        "EDy": EDy(),
        "HDy": HDy(),
        "KDEy-ML": KDEyML(),
    }
    theirs = {"ACC": "ACC", "PACC": "PACC", "SLD": "EMQ", "HDy": "HDy"}
    for name, method in ours.items():
        fitted = method.fit_scores(train, y)
        fitted.predict_interval(pool, bags[:3], n_draws=50)  # compile first
        began = time.process_time()
        found = fitted.predict_interval(pool, bags)
        seconds = time.process_time() - began
        inside = ((bags.prevalence >= found.low) & (bags.prevalence <= found.high)).mean()
        slow, covered = "", ""
        if name in theirs:
            peer = quapy(AggregativeBootstrap, getattr(aggregative, theirs[name]), dummy, train, y)
            began = time.process_time()
            with parallel_config(backend="sequential"):
                regions = [peer(pool[items]) for items in bags[:SOME]]
            spent = (time.process_time() - began) / SOME * len(bags)
            low, high = np.array([r.I_low for r in regions]), np.array([r.I_high for r in regions])
            truth = bags.prevalence[:SOME]
            covered = f"{((truth >= low) & (truth <= high)).mean():.2f} of {SOME}"
            slow = f"{spent:,.0f}"
            ratio = f"{spent / seconds:,.0f}"
        print(
            f"| {name} | {slow} | {seconds:.2f} | {ratio if slow else ''} | {covered} | "
            f"{inside:.3f} |",
            flush=True,
        )


def quapy(bootstrap, method, dummy, train: np.ndarray, y: np.ndarray):
    """QuaPy's bootstrap with its defaults, from scores to a region."""
    options = {} if method.__name__ == "EMQ" else {"val_split": None}
    inner = method(dummy, fit_classifier=False, **options)
    made = bootstrap(inner, confidence_level=0.95)
    hard = method.__name__ == "ACC"
    made.quantifiers = []
    inner.train_prevalence = np.bincount(y) / len(y)  # EMQ would take it from the classifier's fit
    made.aggregation_fit(train.argmax(axis=1) if hard else train, y)
    return lambda scores: made.aggregate_conf(scores.argmax(axis=1) if hard else scores)[1]


if __name__ == "__main__":
    main()
