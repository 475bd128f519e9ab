"""BayesQuantifier and AutoQuantifier against QuaPy's and mlquantify's best, on equal scores.

    python benchmarks/contest.py [refitted] [--tasks T1A,magic] [--protocols Kraemer,mild]
        [--skip Auto] [--kept]

The real sets are looked for in HEADCOUNT_SHARED_DATA; run it in the environment of `make peers`.

Every method gets the same held-out scores to learn from and the same pool scores; ours are told the
measure that is reported and the kind of bags to expect ("any shift" for Kraemer's, "mild shift",
"no shift"). Every set is parted five times into labelled items and pool, and ratios of mean errors
come with their standard errors over these splits. For natural bags BayesQuantifier learns from the
labelled months, events and parts of years how far shares move. "Undeclared" is told the measure
only. Errors are kept in the cache by task and method, so that a run that was cut off goes on, and
with --kept the tables are made of them alone.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Collection, Iterator

import numpy as np

import harness  # first: it sets one thread for everybody
import peers
import tasks
import workloads
from headcount import PCC, SLD, AutoQuantifier, Bags, BayesQuantifier, DMy, DyS, measure

SPLITS = 5
N_BAGS = {"emotions": 10, "domains": 10, "T1B": 10}  # a peer takes seconds for each of them
EXPECT = {
    "Kraemer": "any shift",
    "mild": "mild shift",
    "natural": "no shift",
    "bags": "learn",
}
MEASURES = ("ae", "rae")
SKIPPED = sys.argv[sys.argv.index("--skip") + 1].split(",") if "--skip" in sys.argv else []
Answer = Callable[[Bags, str, str], np.ndarray]  # bags, measure, protocol


def _clipped(scores: np.ndarray) -> np.ndarray:
    inner = np.clip(scores, 1e-9, 1.0)
    return inner / inner.sum(axis=1, keepdims=True)


def theirs(make: Callable[[], peers.Estimator]) -> Answer:
    """A peer's estimates, the same whatever the measure."""
    kept: dict[int, np.ndarray] = {}
    estimator: list[peers.Estimator] = []

    def answer(bags: Bags, _which: str, _protocol: str) -> np.ndarray:
        if not estimator:
            estimator.append(make())
        if id(bags) not in kept:
            kept[id(bags)] = np.asarray(estimator[0](bags))
        return kept[id(bags)]

    return answer


def contestants(task: tasks.Task) -> Iterator[tuple[str, Answer]]:
    """Methods by name."""
    y = task.y
    # Scores of exactly 0 make a peer's calibrator fail, so nobody gets any.
    train, pool = (_clipped(scores) for scores in (task.train, task.pool))
    given = train, y, pool
    two = train.shape[1] == 2

    def quapy(name: str, **options) -> Answer:
        return theirs(lambda: peers.quapy(name, *given, **options))

    def mlquantify(name: str, **options) -> Answer:
        return theirs(lambda: peers.mlquantify(name, *given, **options))

    def ours(make: Callable[[dict], object]) -> Answer:
        fitted: dict = {}

        def answer(bags: Bags, which: str, protocol: str) -> np.ndarray:
            key = which, EXPECT[protocol]
            if key not in fitted:
                known = {"measure": which, "expect": key[1], "size": int(np.median(bags.sizes))}
                method = make(known)
                method.calibrate_width = False
                fitted[key] = method.fit_scores(train, y)
            return fitted[key].predict_scores(pool, bags)

        return answer

    yield "QuaPy EMQ", quapy("EMQ")
    yield "QuaPy EMQ-BCTS", quapy("EMQ", calib="bcts", exact_train_prev=False)
    yield "QuaPy PACC", quapy("PACC")
    yield "QuaPy KDEyML", quapy("KDEyML")
    yield "QuaPy DMy", quapy("DMy")
    if two:
        yield "mlquantify DyS", mlquantify("DyS")
    else:
        yield "mlquantify GHDy", mlquantify("GHDy")
    yield "PCC, bcts", ours(lambda _: PCC(calibrator="bcts"))
    yield "SLD, bcts", ours(lambda _: SLD(calibrator="bcts"))
    yield "DyS" if two else "DMy", ours(lambda _: DyS() if two else DMy())
    yield "Bayes, undeclared", ours(lambda known: BayesQuantifier(measure=known["measure"]))
    yield "Bayes", ours(lambda known: _Told(task, **_without_size(known)))
    yield "Auto", ours(lambda known: AutoQuantifier(**known))


class _Told(BayesQuantifier):
    """Learns from the groups of the labelled items how far shares move, if there are any."""

    def __init__(self, task: tasks.Task, **options):
        super().__init__(**options)
        self.task = task

    def fit_scores(self, scores, y):
        super().fit_scores(scores, y)
        if self.task.past is not None:
            classes = range(scores.shape[1])
            past = Bags.from_groups(self.task.past).with_truth(y, classes=classes)
            self.learn_shift(scores, past)
        return self


def _without_size(known: dict) -> dict:
    return {name: value for name, value in known.items() if name != "size"}


Errors = dict[str, np.ndarray]  # AE and RAE of every split, by "method|protocol"


def measured(name: str, scorer: str, protocols: Collection[str], kept_only: bool) -> Errors:
    """Mean errors of every method on the splits of a task."""
    found: dict[str, list] = {}
    for split in range(1 if name in tasks.NATURAL else SPLITS):
        if kept_only and not (workloads.CACHE / f"contest-{scorer}-{name}-{split}.json").exists():
            continue
        task = tasks.load(name, split, scorer)
        path = workloads.CACHE / f"contest-{scorer}-{name}-{split}.json"
        kept = json.loads(path.read_text()) if path.exists() else {}
        drawn = dict(task.bags(N_BAGS.get(name, 150 if task.train.shape[1] == 2 else 100)))
        for method, answer in () if kept_only else contestants(task):
            if method in SKIPPED:
                continue
            for protocol, bags in drawn.items():
                if protocol not in protocols:
                    continue
                key = f"{method}|{protocol}"
                if key not in kept:
                    errors = []
                    for which in MEASURES:
                        errors.append(_error(answer, bags, which, protocol))
                    kept[key] = errors
                    path.write_text(json.dumps(kept))
                    print(name, split, key, np.round(errors, 4), file=sys.stderr, flush=True)
        for key, errors in kept.items():
            found.setdefault(key, []).append(errors)
    most = max((len(errors) for errors in found.values()), default=0)
    return {key: np.array(errors) for key, errors in found.items() if len(errors) == most}


def _error(answer: Answer, bags: Bags, which: str, protocol: str) -> float:
    """Mean error; NaN for a peer that fails."""
    try:
        p = answer(bags, which, protocol)
    except RuntimeError as error:  # abstention's optimiser gives up, and QuaPy with it
        print(str(error).splitlines()[0], file=sys.stderr)
        return float("nan")
    sizes = bags.sizes if which == "rae" else None
    return float(measure(which)(bags.prevalence, p, sizes=sizes).mean())


def tables(results: dict[str, Errors]) -> Iterator[str]:
    """For each protocol and measure: errors of all methods on all tasks, and ratios."""
    for protocol in EXPECT:
        for column, which in enumerate(MEASURES):
            rows = {
                task: {
                    key.split("|")[0]: float(errors[:, column].mean())
                    for key, errors in found.items()
                    if key.endswith(f"|{protocol}")
                }
                for task, found in results.items()
            }
            rows = {task: row for task, row in rows.items() if row}
            if rows:
                yield from _table(f"{which.upper()}, {protocol}", rows)


def _table(title: str, rows: dict[str, dict[str, float]]) -> Iterator[str]:
    methods = list(dict.fromkeys(m for row in rows.values() for m in row))
    peer = [m for m in methods if m.startswith(("QuaPy", "mlquantify"))]
    yield f"\n### {title}\n"
    yield "| set | " + " | ".join(methods) + " | Bayes / best peer | Auto / best peer |"
    yield "|---" * (len(methods) + 3) + "|"
    ratios = []
    for task, row in rows.items():
        best = np.nanmin([row[m] for m in peer if m in row])
        ratios.append([row.get(m, np.nan) / best for m in ("Bayes", "Auto")])
        cells = [f"{row[m]:.4f}" if m in row else "" for m in methods]
        cells += [f"{r:.3f}" for r in ratios[-1]]
        yield f"| {task} | " + " | ".join(cells) + " |"
    mean = np.nanmean(ratios, axis=0)
    ranks = _ranks(rows, methods)
    blank = [f"{ranks[m]:.2f}" if m in ranks else "" for m in methods]
    yield f"| mean ratio, mean rank | {' | '.join(blank)} | {mean[0]:.3f} | {mean[1]:.3f} |"


def summary(results: dict[str, Errors], protocols: Collection[str]) -> Iterator[str]:
    """Ratios of ours to the best peer of each set, with standard errors over the splits."""
    for protocol in protocols:
        for column, which in enumerate(MEASURES):
            yield f"\n### {which.upper()}, {protocol}: ratio to the best peer of each set\n"
            yield "| set | splits | best peer | its error | Bayes | Auto | Bayes / PCC, bcts |"
            yield "|---|---:|---|---:|---:|---:|---:|"
            logs = []
            for task, found in results.items():
                of = {k.split("|")[0]: e[:, column] for k, e in found.items() if protocol in k}
                peer = [m for m in of if m.startswith(("QuaPy", "mlquantify"))]
                if "Bayes" not in of:
                    continue
                best = min(peer, key=lambda m: np.nan_to_num(of[m].mean(), nan=9e9))
                pairs = [("Bayes", best), ("Auto", best), ("Bayes", "PCC, bcts")]
                ratios = [_ratio(of[a], of[b]) if a in of else (np.nan, np.nan) for a, b in pairs]
                logs.append(np.log([ratio for ratio, _ in ratios]))
                cells = " | ".join(f"{r:.3f} ± {se:.3f}" for r, se in ratios)
                error = of[best].mean()
                yield f"| {task} | {len(of[best])} | {best} | {error:.4f} | {cells} |"
            means = " | ".join(f"{m:.3f}" for m in np.exp(np.nanmean(logs, axis=0)))
            yield f"| geometric mean | | | | {means} |"


def _ratio(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """Ratio of mean errors, and its standard error over the splits."""
    ratio = ours.mean() / theirs.mean()
    each = (ours - ratio * theirs) / theirs.mean()
    return ratio, each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan


def _ranks(rows: dict[str, dict[str, float]], methods: list[str]) -> dict[str, float]:
    """Mean rank of the methods that were run on every set."""
    from scipy.stats import rankdata

    common = [m for m in methods if all(m in row for row in rows.values())]
    ranks = [rankdata([np.nan_to_num(row[m], nan=9e9) for m in common]) for row in rows.values()]
    return dict(zip(common, np.mean(ranks, axis=0), strict=True))


def main() -> None:
    """Measure what is missing, and print the tables."""
    warnings.simplefilter("ignore")
    words = sys.argv[1:]
    scorer = "refitted" if "refitted" in words else "same"
    names = (*tasks.DRAWN, *tasks.NATURAL)
    if "--tasks" in words:
        names = tuple(words[words.index("--tasks") + 1].split(","))
    protocols = list(EXPECT)
    if "--protocols" in words:
        protocols = words[words.index("--protocols") + 1].split(",")
    results = {name: measured(name, scorer, protocols, "--kept" in words) for name in names}
    print(harness.machine("quapy", "mlquantify"), end="\n")
    drawn = {name: found for name, found in results.items() if name in tasks.DRAWN}
    if drawn:
        print("\n".join(summary(drawn, [p for p in protocols if p != "bags"])))
    print("\n".join(tables(results)))


if __name__ == "__main__":
    main()
