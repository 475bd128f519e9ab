"""The test of label shift: alarms where only shares change, and where more than that does.

python benchmarks/fit_test.py [synthetic] [health_news] [crises] [semeval]

The real sets are looked for in HEADCOUNT_SHARED_DATA. On each, bags of shares drawn at random are
made of rows like the labelled ones (nothing but shares has changed), then come the natural bags:
later months, other events, other years. Of those whose true shares the 95 % intervals miss, how
many were flagged?
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import harness  # first: it sets one thread for everybody
from headcount import SLD, Bags, UniformPrevalence
from headcount.inference.diagnosis import DRIFT_LEVEL, FIT_LEVEL
from headcount.inference.goodness_of_fit import FitTest
from headcount.tables.covariate_bins import CovariateBins
from headcount.text import TfIdf
from interval_coverage import TRAINING, items

FOLDER = Path(os.environ.get("HEADCOUNT_SHARED_DATA", "../shared/data"))


def synthetic(k: int, n: int, size: int, trials: int = 60) -> list[str]:
    """Pure label shift, and three ways for the items of classes to change."""
    alarms: dict[str, list] = {}
    for seed in range(trials):
        rng = np.random.default_rng([k, n, size, seed])
        y = np.concatenate([np.arange(k).repeat(10), rng.choice(k, n - 10 * k, p=TRAINING[k])])
        X = items(y, k, rng)
        model = SLD(LogisticRegression(), calibrator="bcts").fit(X, y)
        look = CovariateBins("features").fit(X, y)
        labels = [rng.choice(k, size, p=rng.dirichlet(np.ones(k))) for _ in range(3)]
        pool, every = items(np.concatenate(labels), k, rng), np.concatenate(labels)
        bags = Bags.from_groups(np.repeat(np.arange(3), size)).with_truth(every)
        noise = rng.normal(size=pool.shape[1])
        worlds = {
            "only shares": pool,
            "all items move": pool + 2.0 * noise / np.linalg.norm(noise),
            "one class moves": pool + np.where(every[:, None] == 0, 1.5 * noise, 0),
            "spread doubles": pool * 2,
        }
        for name, moved in worlds.items():
            found = model.predict_interval(moved, bags, n_draws=100)
            alarm = alarmed(model.diagnose(moved, bags).fit, look, moved, bags)
            alarms.setdefault(name, []).append(judged(alarm, found, bags))
    rows = []
    for name, parts in alarms.items():
        rows.append(row(f"synthetic, {k} classes, {n:,} labelled, bags of {size:,}", name, parts))
    return rows


def alarmed(fit: np.ndarray, look: CovariateBins, pool, bags: Bags) -> np.ndarray:
    """Columns: alarm by the scores, alarm by the scores or by the items themselves."""
    test = FitTest(look.bins_, look.widths, look.codes_)
    drift = test.p_values(test.shares(bags, look.bins(pool)), bags.sizes) < DRIFT_LEVEL
    return np.column_stack([fit < FIT_LEVEL, (fit < FIT_LEVEL) | drift])


def judged(alarm: np.ndarray, found, bags: Bags) -> np.ndarray:
    """For each bag: the alarms, and whether a true share is outside its interval."""
    outside = (bags.prevalence < found.low) | (bags.prevalence > found.high)
    return np.column_stack([alarm, outside.any(axis=1)])


def row(data: str, world: str, parts: list[np.ndarray]) -> str:
    """Alarms among all bags, and among those that the intervals miss."""
    both = np.concatenate(parts).astype(bool)
    every, missed = both[:, :2].mean(axis=0), both[both[:, 2], :2]
    found = [f"{v:.2f}" for v in (missed.mean(axis=0) if len(missed) else (np.nan, np.nan))]
    cells = (data, world, f"{every[0]:.3f}", f"{every[1]:.3f}", len(missed), *found)
    return "| " + " | ".join(map(str, cells)) + " |"


def real(name: str, table, label: str, is_train: np.ndarray, groups) -> list[str]:
    """Bags of rows like the labelled ones, then the natural ones."""
    rng = np.random.default_rng(0)
    train = rng.permutation(np.flatnonzero(is_train))
    texts, y = table["text"].to_numpy(), table[label].astype(str).to_numpy()
    half = len(train) * 2 // 3
    learnt, same = train[:half], train[half:]
    # The vocabulary is part of the classifier: held-out texts must not have shaped it.
    pipeline = make_pipeline(TfIdf(), LogisticRegression(max_iter=1000))
    quantifier = SLD(pipeline, calibrator="bcts")
    quantifier.fit(texts[learnt], y[learnt])
    classes = quantifier.classes_
    look = CovariateBins("text").fit(texts[learnt], np.searchsorted(classes, y[learnt]))
    own = UniformPrevalence(n_bags=300, size=200, random_state=0).draw(y[same])
    rows = [row(name, "only shares", [counted(quantifier, look, texts[same], own)])]
    later = np.flatnonzero(~is_train & np.isin(y, classes))
    bags = Bags.from_groups(groups[later]).with_truth(y[later], classes=classes)
    parts = counted(quantifier, look, texts[later], bags)
    return [*rows, row(name, f"{len(bags)} natural bags", [parts])]


def counted(q: SLD, look: CovariateBins, texts: np.ndarray, bags: Bags) -> np.ndarray:
    """Judge bags of texts."""
    found, fit = q.predict_interval(texts, bags), q.diagnose(texts, bags).fit
    return judged(alarmed(fit, look, texts, bags), found, bags)


def tables(which: str):
    """Arguments of `real` for a set by name."""
    import pandas as pd

    data = pd.read_parquet(FOLDER / f"{which}.parquet")
    if which == "health_news":
        often = data["outlet"].value_counts().index[:6]
        data = data[data["outlet"].isin(often)]
        months = data["time"].dt.to_period("M").astype(str).to_numpy()
        return data, "outlet", months < "2014-01", months
    if which == "crises":
        data = data[data["type"].map(data["type"].value_counts()) > 500]
        events = np.sort(data["event"].unique())
        return data, "type", data["event"].isin(events[::2]).to_numpy(), data["event"].to_numpy()
    data = data[(data["subtask"] == "A") & data["label"].notna()]
    years = data["year"].astype(str).to_numpy()
    parts = (np.arange(len(data)) // 500).astype(str)
    first = years == years.min()
    return data, "label", first, np.char.add(np.char.add(years, "/"), parts)


def main() -> None:
    """Print a table for the sets named on the command line, or for all."""
    warnings.simplefilter("ignore")
    print(harness.machine(), end="\n\n")
    print("| data | what has changed | alarms | or drift | missed | alarms then | or drift |")
    print("|---|---|---|---|---|---|---|")
    for which in sys.argv[1:] or ["synthetic", "health_news", "crises", "semeval"]:
        if which == "synthetic":
            for k, n, size in ((2, 500, 500), (2, 2000, 5000), (5, 500, 500), (5, 2000, 5000)):
                print("\n".join(synthetic(k, n, size)), flush=True)
        else:
            print("\n".join(real(which, *tables(which))), flush=True)


if __name__ == "__main__":
    main()
