"""How close methods come to the least error possible, on workloads whose densities are known.

    python benchmarks/efficiency.py [T1A] [T1B]

The Bayes risk is that of someone who knows the class densities, the protocol and the measure, from
3,000 draws a bag; efficiency is the risk over the error achieved. Methods learn from scores of the
same five classifiers that score the pool; "true densities" methods get those instead.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

import harness  # first: it sets one thread for everybody
import tasks
import workloads
from headcount import (
    ELSA,
    PACC,
    SLD,
    BayesQuantifier,
    DMy,
    DyS,
    KDEyML,
    UniformPrevalence,
    measure,
)
from headcount.inference import limits
from headcount.methods.base import without_calibration

N_BAGS = 300


def errors(p, bags, which: str) -> float:
    """Mean error."""
    sizes = bags.sizes if which == "rae" else None
    return float(measure(which)(bags.prevalence, p, sizes=sizes).mean())


def rows(task: str):
    """Names, and errors by measure."""
    spec, data = workloads.SPECS[task], workloads.make(task)
    protocol = UniformPrevalence(n_bags=N_BAGS, size=spec.bag_size, random_state=7)
    bags = protocol.draw(data["y_pool"], classes=np.arange(spec.n_classes))
    true = workloads.densities(task)
    share = np.bincount(data["y_pool"]) / len(true)
    posterior = true * share / (true @ share)[:, None]
    ratios = limits.likelihood_ratios(posterior)
    some = ratios[:: max(1, len(ratios) // 20_000)]
    labelled = np.bincount(data["y_train"])
    risk = {w: limits.bayes_risk(true, bags, w).mean() for w in ("ae", "rae")}
    yield "Bayes risk", risk
    for name, n in (("known densities", None), ("labels as given", labelled)):
        found = dict.fromkeys(risk, 0.0)
        for w in risk:
            each = limits.attainable(some, bags.prevalence, bags.sizes, w, labelled=n)
            found[w] = float(each.mean())
        yield f"unbiased limit, {name}", found
    known = {"calibrator": None, "n_worlds": 0, "expect": "any shift"}
    for name, make in (
        ("SLD, true densities", lambda _: SLD()),
        ("BayesQuantifier, true densities", lambda w: BayesQuantifier(measure=w, **known)),
    ):
        fit = {w: without_calibration(make(w)).fit_scores(posterior, data["y_pool"]) for w in risk}
        yield name, {w: errors(fit[w].predict_scores(posterior, bags), bags, w) for w in risk}
    scored = tasks.load(task)
    methods = {
        "SLD": lambda _: SLD(),
        "SLD, bcts": lambda _: SLD(calibrator="bcts"),
        "PACC": lambda _: PACC(),
        "DMy": lambda _: DMy(),
        "KDEyML": lambda _: KDEyML(),
        "BayesQuantifier": lambda w: BayesQuantifier(measure=w, expect="any shift"),
    }
    if spec.n_classes == 2:
        methods |= {"DyS": lambda _: DyS(), "ELSA": lambda _: ELSA()}
    for name, make in methods.items():
        fit = {w: without_calibration(make(w)).fit_scores(scored.train, scored.y) for w in risk}
        yield name, {w: errors(fit[w].predict_scores(scored.pool, bags), bags, w) for w in risk}


def main() -> None:
    """Print a table for each workload."""
    warnings.simplefilter("ignore")
    print(harness.machine())
    for task in sys.argv[1:] or workloads.SPECS:
        print(f"\n### {task}-like, {N_BAGS} Kraemer bags\n")
        print("| | AE | efficiency | RAE | efficiency |\n|---|---:|---:|---:|---:|")
        risk: dict[str, float] = {}
        for name, found in rows(task):
            risk = risk or found
            cells = [f"{found[w]:.4f} | {risk[w] / found[w]:.2f}" for w in ("ae", "rae")]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
