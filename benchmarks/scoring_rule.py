"""Who scores new items: one classifier of all labelled items, or those of the folds.

    python benchmarks/scoring_rule.py            # errors, coverage and cost; about ten minutes
    python benchmarks/scoring_rule.py errors     # one part: errors, coverage or cost

The workload has the shape of LeQua's T1A (300 features, 4 : 1), drawn anew for every split; bags
hold 250 items and have shares drawn uniformly (Kraemer). Numbers are means over five splits, with
standard errors.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from headcount import (
    CC,
    PACC,
    PCC,
    SLD,
    BayesQuantifier,
    DyS,
    HDy,
    KDEyML,
    UniformPrevalence,
)
from headcount.lequa import make_corpus
from headcount.methods.base import without_calibration
from headcount.scores import cross_fit
from headcount.text import TfIdf
from workloads import SPECS, Model, natural_prevalence

LABELLED = (500, 1000, 2000, 5000)
SPLITS = 5
N_BAGS, SIZE = 100, 250
METHODS = {
    "CC": CC,
    "PCC": PCC,
    "PACC": PACC,
    "SLD": SLD,
    "SLD, BCTS": lambda: SLD(calibrator="bcts"),
    "HDy": HDy,
    "DyS": DyS,
    "KDEyML": KDEyML,
    "BayesQuantifier": BayesQuantifier,
}
WITH_INTERVALS = ("PACC", "SLD, BCTS", "BayesQuantifier")


def draw(n: int, seed: int, n_pool: int = 20_000):
    """Labelled items, pool and its labels of one split."""
    rng = np.random.default_rng([seed, n])
    spec = SPECS["T1A"]
    model = Model(spec, rng)
    share = natural_prevalence(spec, rng)
    y, y_pool = (rng.choice(2, size, p=share) for size in (n, n_pool))
    return model.draw(y, rng), y, model.draw(y_pool, rng), y_pool


def logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def errors() -> None:
    print("AE on bags of 250, refitted / folds (standard errors of five splits)\n")
    print("| method |" + "".join(f" {n:,} labelled |" for n in LABELLED))
    print("|---|" + "---|" * len(LABELLED))
    found = {name: [] for name in METHODS}
    for n in LABELLED:
        parts = {name: [] for name in METHODS}
        for seed in range(SPLITS):
            X, y, pool, y_pool = draw(n, seed)
            bags = UniformPrevalence(n_bags=N_BAGS, size=SIZE, random_state=seed).draw(y_pool)
            scorer = cross_fit(logistic(), X, y, whole=True, random_state=seed)
            for name, make in METHODS.items():
                fitted = without_calibration(make()).fit_scorer(scorer)
                pair = []
                for whole in (True, False):
                    views = fitted.views(pool, bags, whole=whole)
                    off = np.abs(fitted.estimate(views) - bags.prevalence)
                    pair.append(off.mean())
                parts[name].append(pair)
        for name, pairs in parts.items():
            found[name].append(np.array(pairs))
    for name, cells in found.items():
        texts = []
        for pairs in cells:
            mean, se = pairs.mean(axis=0), pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs))
            texts.append(f" {mean[0]:.4f} ({se[0]:.4f}) / {mean[1]:.4f} ({se[1]:.4f}) |")
        print(f"| {name} |" + "".join(texts))


def coverage(n_worlds: int = 20, n_bags: int = 20) -> None:
    print(
        f"\nCoverage and mean width of 95 % intervals, bags of 500, {n_worlds} draws of the "
        f"labelled items x {n_bags} bags\n"
    )
    print("| method |" + "".join(f" {n:,} labelled |" for n in LABELLED))
    print("|---|" + "---|" * len(LABELLED))
    cells = {name: [] for name in WITH_INTERVALS}
    for n in LABELLED:
        inside = {name: [] for name in WITH_INTERVALS}
        width = {name: [] for name in WITH_INTERVALS}
        for seed in range(n_worlds):
            X, y, pool, y_pool = draw(n, 100 + seed)
            bags = UniformPrevalence(n_bags=n_bags, size=500, random_state=seed).draw(y_pool)
            scorer = cross_fit(logistic(), X, y, random_state=seed)
            for name in WITH_INTERVALS:
                q = METHODS[name]().fit_scorer(scorer)
                got = q.predict_interval(pool, bags)
                held = (got.low <= bags.prevalence) & (bags.prevalence <= got.high)
                inside[name].append(held[:, 1].mean())
                width[name].append((got.high - got.low)[:, 1].mean())
        for name in WITH_INTERVALS:
            se = np.std(inside[name], ddof=1) / np.sqrt(n_worlds)
            text = f"{np.mean(inside[name]):.3f} ({se:.3f}), {np.mean(width[name]):.3f}"
            cells[name].append(f" {text} |")
    for name, texts in cells.items():
        print(f"| {name} |" + "".join(texts))


def cost() -> None:
    print("\nTime to score a pool by five folds over that by one classifier, the least of five\n")
    X, y, pool, _ = draw(5000, 0, n_pool=100_000)
    corpus = make_corpus(12_000, random_state=0)
    stars = np.array(corpus["stars"]) > 3
    texts = np.asarray(corpus["text"], dtype=object)
    cases = {
        "logistic regression, 100,000 x 300": (logistic(), X, y, pool),
        "scaler and logistic regression": (
            make_pipeline(StandardScaler(), logistic()),
            X,
            y,
            pool,
        ),
        "tf-idf and logistic regression, 10,000 texts": (
            make_pipeline(TfIdf(), logistic()),
            texts[:2000],
            stars[:2000],
            texts[2000:],
        ),
    }
    for name, (classifier, A, labels, items) in cases.items():
        scorer = cross_fit(classifier, A, labels, whole=True, random_state=0)
        took = {True: [], False: []}
        for _ in range(5):
            for whole in (True, False):
                began = time.process_time()
                scorer.views(items, whole=whole)
                took[whole].append(time.process_time() - began)
        print(f"- {name}: {min(took[False]) / min(took[True]):.2f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parts = {"errors": errors, "coverage": coverage, "cost": cost}
    for part in sys.argv[1:] or parts:
        parts[part]()
