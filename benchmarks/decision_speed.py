"""What deciding for the measure costs, against QuaPy's EM on the same scores, in one thread.

    python benchmarks/decision_speed.py

Then AutoQuantifier from 5,000 items of 300 features to a fitted quantifier, on all cores.
"""

from __future__ import annotations

import time
import warnings

import harness  # first: it sets one thread for everybody
import peers
import workloads
from headcount import SLD, AutoQuantifier, BayesQuantifier
from headcount.methods.base import without_calibration


def main() -> None:
    """Print a table for each workload, and the time of the automatic choice."""
    warnings.simplefilter("ignore")
    print(harness.machine("quapy"))
    for task, n, options in (
        ("T1A", 5000, {}),
        ("T1B", 500, {"calib": "bcts", "exact_train_prev": False}),
    ):
        train, y, pool, bags = workloads.scores(task)

        def ours(method, train=train, y=y, pool=pool):
            fitted = without_calibration(method).fit_scores(train, y)
            return lambda b: fitted.predict_scores(pool, b)

        def theirs(train=train, y=y, pool=pool, options=options):
            return peers.quapy("EMQ", train, y, pool, **options)

        rows = [
            ("BayesQuantifier", lambda ours=ours: ours(BayesQuantifier(measure="rae"))),
            ("SLD, bcts", lambda ours=ours: ours(SLD(calibrator="bcts"))),
        ]
        found = [harness.run(name, "Headcount", make, bags[:n]) for name, make in rows]
        name = "EMQ-BCTS" if options else "EMQ"
        found.append(harness.run(name, "QuaPy", theirs, bags[:n]))
        print(f"\n### {task}-like, {n} bags\n\n| method | library | CPU s |\n|---|---|---:|")
        for r in found:
            print(f"| {r.method} | {r.library} | {r.seconds:.2f} |", flush=True)
    data = workloads.make("T1A")
    began = time.perf_counter()
    auto = AutoQuantifier(measure="rae", n_jobs=-1, calibrate_width=False)
    auto.fit(data["X_train"], data["y_train"])
    print(f"\nAutoQuantifier on 5,000 x 300: {time.perf_counter() - began:.0f} s. {auto.summary_}")


if __name__ == "__main__":
    main()
