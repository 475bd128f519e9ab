"""Model selection against QuaPy's GridSearchQ: the same grid, the same bags, one run.

    python benchmarks/selection.py

14 logistic regressions (C from 1e-3 to 1e3, class weights balanced or not) under PACC and SLD, on
1,000 bags of 250 from a development pool, T1A-like. CPU time of one thread. The winners are then
fitted by Headcount and judged on 5,000 bags of a pool that neither search has seen.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression

import harness  # sets the number of threads, so it must come before anything that uses numpy
import workloads
from headcount import PACC, SLD, Bags, GridSearch, UniformPrevalence, evaluate
from headcount.methods.base import without_calibration

GRID = {
    "classifier__C": [10.0**i for i in range(-3, 4)],
    "classifier__class_weight": [None, "balanced"],
}
METHODS = {"PACC": PACC, "SLD": SLD}


def ours(name: str, X: np.ndarray, y: np.ndarray, pool: np.ndarray, bags: Bags) -> GridSearch:
    base = METHODS[name](LogisticRegression(max_iter=1000))
    return GridSearch(base, GRID, measure="rae", refit=False).fit(X, y, pool=pool, bags=bags)


def theirs(
    name: str, X: np.ndarray, y: np.ndarray, pool: np.ndarray, y_pool: np.ndarray, bags: Bags
):
    """QuaPy's search by its fast route: the pool is classified once a setting."""
    import quapy
    from quapy.data import LabelledCollection
    from quapy.method import aggregative
    from quapy.model_selection import GridSearchQ
    from quapy.protocol import UPP

    class Given(UPP):
        """QuaPy's protocol, with the items of the bags that are at hand."""

        def samples_parameters(self):
            return list(bags)

    quapy.environ["SAMPLE_SIZE"] = 250
    cls = {"PACC": aggregative.PACC, "SLD": aggregative.EMQ}[name]
    base = cls(LogisticRegression(max_iter=1000))
    protocol = Given(LabelledCollection(pool, y_pool), sample_size=250, repeats=len(bags))
    return GridSearchQ(base, GRID, protocol, error="mrae", refit=False, raise_errors=True).fit(X, y)


def timed(work: Callable):
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def main() -> None:
    warnings.simplefilter("ignore")
    data = workloads.make("T1A")
    X, y = data["X_train"], data["y_train"]
    half = len(data["y_pool"]) // 2
    dev, y_dev = data["X_pool"][:half], data["y_pool"][:half]
    test, y_test = data["X_pool"][half:], data["y_pool"][half:]
    bags = UniformPrevalence(n_bags=1000, size=250, random_state=0).draw(y_dev)
    fresh = UniformPrevalence(n_bags=5000, size=250, random_state=1).draw(y_test)
    ours("SLD", X[:500], y[:500], dev, bags[:10])  # compile
    ours("PACC", X[:500], y[:500], dev, bags[:10])
    print(harness.machine("quapy"), "\n")
    print("| method | library | CPU s | chosen | RAE on dev bags | RAE on fresh bags |")
    print("|---|---|---:|---|---:|---:|")
    totals = {"Headcount": 0.0, "QuaPy": 0.0}
    for name in METHODS:
        searches = {
            "Headcount": lambda name=name: ours(name, X, y, dev, bags),
            "QuaPy": lambda name=name: theirs(name, X, y, dev, y_dev, bags),
        }
        for library, search in searches.items():
            found, seconds = timed(search)
            totals[library] += seconds
            chosen = found.best_params_
            winner = METHODS[name](LogisticRegression(max_iter=1000)).set_params(**chosen)
            winner = without_calibration(winner)
            error = evaluate(winner.fit(X, y), test, fresh, "rae")["rae"].mean()
            words = ", ".join(f"{k.removeprefix('classifier__')}={v}" for k, v in chosen.items())
            score = f"{found.best_score_:.4f} | {error:.4f}"
            print(f"| {name} | {library} | {seconds:.2f} | {words} | {score} |", flush=True)
    print(f"\nThe pair: {totals['QuaPy'] / totals['Headcount']:.1f} times faster.")


if __name__ == "__main__":
    main()
