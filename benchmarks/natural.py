"""Groups as they came: AutoQuantifier told the groups of the labelled items, against every method.

    python benchmarks/natural.py [--sets semeval,health_news,crises] [--kept]

Tweets of later years by 500 (trained on the years before), health news by month (twelve months
before), messages by crisis (half of the crises, drawn five times). Every other method works on
tf-idf and one logistic regression; `BayesQuantifier` has learnt from the labelled groups how far
shares move. The best of them on a set is chosen with hindsight. At most 500 items of a group, and
24 groups on either side, are used. The sets are looked for in
HEADCOUNT_SHARED_DATA.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import harness  # first: it sets one thread for everybody
import tasks
import workloads
from headcount import (
    ACC,
    CC,
    PACC,
    PCC,
    SLD,
    AutoQuantifier,
    Bags,
    BayesQuantifier,
    DMy,
    KDEyML,
    measure,
)
from headcount.methods.base import without_calibration
from headcount.scores import cross_fit
from headcount.selection import auto
from headcount.selection.classifiers import ClassifierPass, fit_classifiers
from headcount.text import TfIdf

MEASURES = ("ae", "rae")
SETS = ("semeval", "health_news", "crises")
ENDS = ("2013-06", "2013-09", "2013-12", "2014-03", "2014-06")  # of twelve months of news
PERIODS = {"health_news", "semeval"}  # whose groups are in the order of time
MOST = 500  # items of a group, and
MOST_GROUPS = 24  # groups on either side: what is more is left out, to be done in an hour
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def splits_of(name: str) -> Iterator[Split]:
    """Texts, labels and groups to learn from, then those to estimate."""
    table = pd.read_parquet(tasks.HOME / f"{name}.parquet")
    table, label, _, groups = tasks.natural(name, table)
    texts, y = table["text"].to_numpy(), table[label].astype(str).to_numpy()
    for first, then in _rows(name, groups):
        counts = pd.Series(y[first]).value_counts()
        known = counts.index[counts >= tasks.FEWEST]
        first, then = (_thin(rows & np.isin(y, known), groups) for rows in (first, then))
        yield texts[first], y[first], groups[first], texts[then], y[then], groups[then]


def _rows(name: str, groups: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    if name == "health_news":
        months = pd.PeriodIndex(groups, freq="M")
        for end in (pd.Period(e, "M") for e in ENDS):
            yield (months > end - 12) & (months <= end), (months > end) & (months <= end + 6)
    elif name == "crises":
        events = np.unique(groups)
        for seed in range(5):
            drawn = np.random.default_rng(seed).permutation(events)[: len(events) // 2]
            yield np.isin(groups, drawn), ~np.isin(groups, drawn)
    else:
        years = np.char.partition(groups.astype(str), "/")[:, 0]
        for last in ("2013", "2014", "2015"):
            yield years <= last, years > last


def _thin(chosen: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Numbers of some rows of some groups."""
    rng = np.random.default_rng(0)
    rows = rng.permutation(np.flatnonzero(chosen))
    names = rng.permutation(np.unique(groups[rows]))[:MOST_GROUPS]
    return np.sort(np.concatenate([rows[groups[rows] == name][:MOST] for name in names]))


def single_methods(which: str) -> dict[str, object]:
    """Every method but the automatic one."""
    return {
        "CC": CC(),
        "PCC": PCC(),
        "PCC, bcts": PCC(calibrator="bcts"),
        "ACC": ACC(),
        "PACC": PACC(),
        "SLD": SLD(),
        "SLD, bcts": SLD(calibrator="bcts"),
        "DMy": DMy(),
        "KDEyML": KDEyML(),
        "Bayes": BayesQuantifier(measure=which),
    }


def errors_of(name: str, number: int, split: Split) -> dict[str, list[float]]:
    """Mean AE and RAE of every method on a split, kept in the cache."""
    workloads.CACHE.mkdir(exist_ok=True)
    path = workloads.CACHE / f"natural-{name}-{number}.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    if "Auto" in kept or "--kept" in sys.argv:
        return kept
    X, y, groups, pool, y_pool, later = split
    classes = np.unique(y)
    bags = Bags.from_groups(later).with_truth(y_pool, classes=classes)
    past = Bags.from_groups(groups).with_truth(y, classes=classes)

    def keep(method: str, answers: list[np.ndarray]) -> None:
        kept[method] = [
            float(measure(w)(bags.prevalence, p, sizes=bags.sizes).mean())
            for w, p in zip(MEASURES, answers, strict=True)
        ]
        path.write_text(json.dumps(kept))
        print(name, number, method, np.round(kept[method], 4), file=sys.stderr, flush=True)

    if "Bayes" not in kept:
        model = make_pipeline(TfIdf(), LogisticRegression(max_iter=1000))
        scorer = cross_fit(model, X, y, whole=True, random_state=0)
        views = [(scores, bags) for scores in scorer.views(pool)]
        whole = [(scores, bags) for scores in scorer.views(pool, whole=True)]
        for method in single_methods("ae"):
            answers = []
            for which in MEASURES:
                q = without_calibration(single_methods(which)[method]).fit_scorer(scorer)
                if method == "Bayes":
                    q.learn_shift(None, past)
                answers.append(q.estimate(whole if q.uses_whole() else views))
            keep(method, answers)
    answers = []
    share_passes()
    for which in MEASURES:
        q = AutoQuantifier(measure=which, periods=name in PERIODS, budget=3000)
        q.calibrate_width = False
        answers.append(q.fit(X, y, groups=groups).predict_bags(pool, bags))
        print("  " + q.summary_, file=sys.stderr, flush=True)
    keep("Auto", answers)
    return kept


def share_passes() -> None:
    """Let AutoQuantifier use the same classifiers for either measure."""
    kept: list = []
    refitted: dict = {}
    refit = ClassifierPass.refit

    def once(*settings) -> list:
        if not kept:
            kept.extend(fit_classifiers(*settings))
        return kept

    def once_each(chosen, data):
        key = chosen.name, tuple(data.X)
        if key not in refitted:
            refitted[key] = refit(chosen, data)
        return refitted[key]

    auto.fit_classifiers = once
    ClassifierPass.refit = once_each


def table(results: dict[str, list[dict[str, list[float]]]]) -> Iterator[str]:
    """Mean errors over the splits, and the ratio of Auto to the best with its standard error."""
    for column, which in enumerate(MEASURES):
        methods = list(dict.fromkeys(m for runs in results.values() for run in runs for m in run))
        yield f"\n### {which.upper()}\n"
        yield f"| set | splits | {' | '.join(methods)} | best of the others | Auto / best | s.e. |"
        yield "|---|---:" + "|---:" * len(methods) + "|---|---:|---:|"
        for name, runs in results.items():
            errors = {m: np.array([run[m][column] for run in runs]) for m in methods}
            best = min((m for m in methods if m != "Auto"), key=lambda m: errors[m].mean())
            ratio = errors["Auto"].mean() / errors[best].mean()
            gaps = (errors["Auto"] - errors[best]) / errors[best].mean()
            se = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.nan
            cells = " | ".join(f"{errors[m].mean():.4f}" for m in methods)
            yield f"| {name} | {len(runs)} | {cells} | {best} | {ratio:.3f} | {se:.3f} |"


def main() -> None:
    """Measure what is missing, and print the tables."""
    warnings.simplefilter("ignore")
    words = sys.argv[1:]
    names = words[words.index("--sets") + 1].split(",") if "--sets" in words else SETS
    results = {}
    for name in names:
        runs = [errors_of(name, i, split) for i, split in enumerate(splits_of(name))]
        results[name] = [run for run in runs if "Auto" in run]
    print(harness.machine())
    print("\n".join(table(results)))


if __name__ == "__main__":
    main()
