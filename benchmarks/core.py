"""Counting, adjusting and likelihood methods against the peers, from scores to 5,000 estimates.

make bench                                  # or: python benchmarks/core.py [T1A] [T1B]
"""

from __future__ import annotations

import sys

from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import harness  # first: it sets one thread for everybody
import peers
import workloads
from headcount import ACC, CC, PACC, PCC, RLLS, SLD, Quantifier
from headcount.methods.base import without_calibration


def contestants(train, y, pool):
    """Rows of the table: method, library, and how to make it."""

    def ours(method: Quantifier):
        def make():
            fitted = without_calibration(method).fit_scores(train, y)
            return lambda bags: fitted.predict_scores(pool, bags)

        return make

    def theirs(*args, **options):
        return lambda: peers.quapy(*args, train, y, pool, **options)

    def lib(name):
        return lambda: peers.quantificationlib(name, train, y, pool)

    yield "CC", "Headcount", ours(CC())
    yield "CC", "QuaPy", theirs("CC")
    yield "PCC", "Headcount", ours(PCC())
    yield "PCC", "QuaPy", theirs("PCC")
    for name, method, other in (("ACC", ACC, "AC"), ("PACC", PACC, "PAC")):
        yield name, "Headcount", ours(method())
        yield name, "QuaPy, default", theirs(name)
        yield name, "quantificationlib", lib(other)
        yield f"{name}, textbook inverse", "Headcount", ours(method(solver="inverse"))
        yield f"{name}, textbook inverse", "QuaPy, exact", theirs(name, solver="exact-cc")
    yield "PACC, optimal weights", "Headcount", ours(PACC(weighting="optimal"))
    yield "RLLS", "Headcount", ours(RLLS())
    yield "SLD, same stopping rule", "Headcount", ours(SLD(solver="em"))
    yield "SLD, same stopping rule", "QuaPy", theirs("EMQ")
    yield "SLD, exact maximum", "Headcount", ours(SLD())
    yield "SLD, exact maximum", "QuaPy (its own rule)", theirs("EMQ")


def main() -> None:
    """Print a table for each workload named on the command line, or for both."""
    print(harness.machine("quapy", "quantificationlib"), end="\n\n")
    for task in sys.argv[1:] or workloads.SPECS:
        train, y, pool, bags = workloads.scores(task)
        results = []
        for method, library, make in contestants(train, y, pool):
            results.append(harness.run(method, library, make, bags))
            print(f"{task} {method} {library}: {results[-1].seconds:.4g} s", file=sys.stderr)
        print(harness.table(results, f"{task}-like: {bags}"), flush=True)
        memory(task, bags)


def memory(task: str, bags) -> None:
    """Peak memory of `predict_bags` from features to estimates, against the pool's scores."""
    data = workloads.make(task)
    model = LogisticRegression(max_iter=100, tol=0.1).fit(data["X_train"], data["y_train"])
    sld = SLD(FrozenEstimator(model), calibrate_width=False).fit(data["X_train"], data["y_train"])
    peak = harness.run(
        "SLD", "", lambda: lambda b: sld.predict_bags(data["X_pool"], b), bags
    ).memory
    scores = len(data["X_pool"]) * bags.prevalence.shape[1] * 8 / 2**20
    print(f"predict_bags on {task}: {peak:.0f} MB at the peak, {scores:.0f} MB of them scores.\n")


if __name__ == "__main__":
    main()
