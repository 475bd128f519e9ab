"""Every library as its own user would use it: labelled items in, estimates of bags out.

    python benchmarks/as_users.py [--tasks magic,reviews] [--labelled 2000] [--splits 5] [--kept]
        [--only Auto]

Peers get the best single classifier of those that AutoQuantifier tries, by the likelihood of
held-out items, and do their own cross-validation and refitting; AutoQuantifier gets the items and
is told the measure and that any shares may come. "SLD" and "Bayes" are ours with the same single
classifier. Each split draws other labelled items and another pool; means over splits come with
their standard errors. `--only` measures one method, on the same splits and bags. Run it in the
environment of `make peers`. The real sets are looked for in
HEADCOUNT_SHARED_DATA.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np

import harness  # first: it sets one thread for everybody
import tasks
import workloads
from headcount import SLD, AutoQuantifier, Bags, BayesQuantifier, UniformPrevalence, measure
from headcount.methods.base import without_calibration
from headcount.scores.sources import sources_for
from headcount.selection import auto
from headcount.selection.budget import Budget
from headcount.selection.classifiers import Labelled, fit_classifiers

MEASURES = ("ae", "rae")
N_BAGS = 100
BUDGET = 1000  # units of work, so that everything is tried
Answer = Callable[[str], np.ndarray]  # estimates for a measure


def items_of(name: str, split: int, n: int):
    """Labelled items, their labels, and the pool with its labels; classes of fewer than 20 go."""
    _, X, y, learnt, other, _ = tasks._items(name, split)
    learnt = learnt[:n]
    classes, counts = np.unique(y[learnt], return_counts=True)
    kept = classes[counts >= tasks.FEWEST]
    learnt, other = learnt[np.isin(y[learnt], kept)], other[np.isin(y[other], kept)]
    return X[learnt], np.searchsorted(kept, y[learnt]), X[other], np.searchsorted(kept, y[other])


def best_single(X, y):
    """Name and classifier with the best likelihood of held-out items.

    AutoQuantifier is given the same classifiers for either measure.
    """
    sources = sources_for(X, len(np.unique(y)))
    passes = fit_classifiers(sources, Labelled(X, y), Budget(1e4), lambda _: None)
    auto.fit_classifiers = lambda *_: passes
    single = [p for p in passes if p.scorer is not None and len(p.recipe) == 1]
    best = min(single, key=lambda p: p.loss)
    (family,) = best.recipe[0].families.values()
    (head,) = family.values()
    return best.name, best.recipe[0].joined(best.recipe[0].front, head)


def quapy(name: str, classifier, X, y, pool, bags: Bags, **options) -> np.ndarray:
    """A QuaPy method from items to estimates."""
    from quapy.method import aggregative
    from sklearn.base import clone

    method = getattr(aggregative, name)(clone(classifier), **options)
    method.fit(X, y)
    scores = method.classify(pool)
    return np.array([method.aggregate(scores[items]) for items in bags])


def mlquantify(name: str, classifier, X, y, pool, bags: Bags) -> np.ndarray:
    """A method of mlquantify from items to estimates."""
    from mlquantify import matching
    from sklearn.base import clone

    method = getattr(matching, name)(clone(classifier)).fit(X, y)
    answers = (method.predict(pool[items]) for items in bags)
    return np.array([[a[c] for c in range(len(a))] if isinstance(a, dict) else a for a in answers])


def contestants(X, y, pool, bags: Bags) -> Iterator[tuple[str, Answer]]:
    """Methods by name."""
    name, classifier = best_single(X, y)
    print(f"  best single classifier: {name}", file=sys.stderr, flush=True)
    options = {
        "QuaPy EMQ": ("EMQ", {}),
        "QuaPy EMQ-BCTS": ("EMQ", {"calib": "bcts", "exact_train_prev": False}),
        "QuaPy PACC": ("PACC", {}),
        "QuaPy KDEyML": ("KDEyML", {}),
        "QuaPy DMy": ("DMy", {}),
    }

    def theirs(method: str, more: dict) -> Answer:
        return lambda _: quapy(method, classifier, X, y, pool, bags, **more)

    for label, (method, more) in options.items():
        yield label, theirs(method, more)
    matching = "DyS" if len(np.unique(y)) == 2 else "GHDy"
    yield (
        f"mlquantify {matching}",
        lambda _: mlquantify(matching, classifier, X, y, pool, bags),
    )
    bcts = SLD(classifier, calibrator="bcts", calibrate_width=False)
    yield "SLD", lambda _: bcts.fit(X, y).predict_bags(pool, bags)
    yield (
        "Bayes",
        lambda which: (
            without_calibration(
                BayesQuantifier(classifier=classifier, measure=which, expect="any shift")
            )
            .fit(X, y)
            .predict_bags(pool, bags)
        ),
    )
    size = int(np.median(bags.sizes))
    yield (
        "Auto",
        lambda which: (
            without_calibration(
                AutoQuantifier(measure=which, expect="any shift", size=size, budget=BUDGET)
            )
            .fit(X, y)
            .predict_bags(pool, bags)
        ),
    )


def measured(name: str, split: int, n: int) -> dict[str, list[float]]:
    """Mean AE and RAE of every method on a split, kept in the cache."""
    workloads.CACHE.mkdir(exist_ok=True)
    path = workloads.CACHE / f"as-users-{name}-{n}-{split}.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    if "--kept" in sys.argv or "Auto" in kept:
        return kept
    X, y, pool, y_pool = items_of(name, split, n)
    k = len(np.unique(y))
    size = 250 if k == 2 else 1000
    drawing = UniformPrevalence(n_bags=N_BAGS, size=size, random_state=split)
    bags = drawing.draw(y_pool, classes=np.arange(k))
    for method, answer in contestants(X, y, pool, bags):
        if method in kept or _option("--only", method) != method:
            continue
        began = time.process_time()
        same = None if method in ("Bayes", "Auto") else _tried(answer, "ae")
        estimates = [_tried(answer, w) if same is None else same for w in MEASURES]
        kept[method] = [
            float(measure(w)(bags.prevalence, p, sizes=bags.sizes).mean()) if len(p) else np.nan
            for w, p in zip(MEASURES, estimates, strict=True)
        ]
        path.write_text(json.dumps(kept))
        taken = time.process_time() - began
        print(
            name,
            split,
            method,
            np.round(kept[method], 4),
            f"{taken:.0f} s",
            file=sys.stderr,
            flush=True,
        )
    return kept


def _tried(answer: Answer, which: str) -> np.ndarray:
    """Estimates; none where a peer fails."""
    try:
        found = answer(which)
        return found if np.isfinite(found).all() else np.array([])
    except Exception as error:
        print("  failed:", str(error).splitlines()[:1], file=sys.stderr)
        return np.array([])


def table(results: dict[str, list[dict[str, list[float]]]]) -> Iterator[str]:
    """Errors with standard errors, and ratios to the best peer of each set."""
    for column, which in enumerate(MEASURES):
        methods = list(dict.fromkeys(m for runs in results.values() for run in runs for m in run))
        yield f"\n### {which.upper()}\n"
        yield "| set | splits | " + " | ".join(methods) + " | Auto / best peer | s.e. |"
        yield "|---|---:" + "|---:" * (len(methods) + 2) + "|"
        logs = []
        for name, runs in results.items():
            errors = {m: np.array([run[m][column] for run in runs]) for m in methods}
            peers = [m for m in methods if m.startswith(("QuaPy", "mlquantify"))] or ["Auto"]
            best = min(peers, key=lambda m: np.nan_to_num(errors[m].mean(), nan=9e9))
            ratio = errors["Auto"].mean() / errors[best].mean()
            each = np.log(errors["Auto"] / errors[best])
            se = ratio * each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
            logs.append(np.log(ratio))
            cells = [f"{errors[m].mean():.4f}" for m in methods]
            yield f"| {name} | {len(runs)} | {' | '.join(cells)} | {ratio:.3f} | {se:.3f} |"
        yield f"| geometric mean | | {' | ' * (len(methods) - 1)} | {np.exp(np.mean(logs)):.3f} | |"


def _option(name: str, default: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def main() -> None:
    """Measure what is missing, and print the tables."""
    warnings.simplefilter("ignore")
    n, splits = int(_option("--labelled", "2000")), int(_option("--splits", "5"))
    usual = (*tasks.TABULAR, "T1A", "reviews", "domains", "emotions")
    names = _option("--tasks", ",".join(usual)).split(",")
    results: dict = {name: [] for name in names}
    for split in range(splits):
        for name in names:
            run = measured(name, split, n)
            results[name] += [run] if "Auto" in run else []
    print(harness.machine("quapy"))
    print("\n".join(table({name: runs for name, runs in results.items() if runs})))


if __name__ == "__main__":
    main()
