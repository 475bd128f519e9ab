"""Tasks for comparing methods on equal scores: held-out training posteriors, a pool, and bags.

    python benchmarks/tasks.py            # score every task and report how hard it is

T1A and T1B are the synthetic workloads; the real sets are looked for in HEADCOUNT_SHARED_DATA.
Every task has one logistic regression (C = 1), on standardised features or on tf-idf, whose scores
all methods get: five-fold held-out ones for the training items, and for the pool either those of
the classifier refitted on all training items ("refitted"), or those of the five classifiers that
scored the held-out items, one for each pool item ("same"). The small sets are split several times.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import workloads
from headcount import Bags, DirichletPrevalence, NaturalPrevalence, UniformPrevalence
from headcount.scores import cross_fit
from headcount.scores.scorer import mix_views
from headcount.text import TfIdf

HOME = Path(os.environ.get("HEADCOUNT_SHARED_DATA", "../shared/data"))
TABULAR = ("spambase", "magic", "phoneme", "htru", "credit", "letter")
DRAWN = ("T1A", "T1B", *TABULAR, "reviews", "domains", "emotions")
NATURAL = ("semeval", "health_news", "crises")
FEWEST = 20  # labelled items of a class, below which it is left out


@dataclass(frozen=True, eq=False)
class Task:
    """Scores of labelled items and of a pool, and the bags that nature made of it, if any."""

    name: str
    train: np.ndarray
    y: np.ndarray
    pool: np.ndarray
    y_pool: np.ndarray
    groups: np.ndarray | None = None
    past: np.ndarray | None = None  # groups of the labelled items

    @property
    def shares(self) -> np.ndarray:
        """Class shares of the labelled items."""
        return np.bincount(self.y) / len(self.y)

    def bags(self, n: int) -> Iterator[tuple[str, Bags]]:
        """Bags by protocol: drawn ones of LeQua's sizes, or the natural ones."""
        k = self.train.shape[1]
        if self.groups is not None:
            yield "bags", Bags.from_groups(self.groups).with_truth(self.y_pool, classes=range(k))
            return
        size = 250 if k == 2 else 1000
        common = {"n_bags": n, "size": size, "random_state": 1}
        protocols = {
            "Kraemer": UniformPrevalence(**common),
            "mild": DirichletPrevalence(concentration=30, centre=self.shares, **common),
            "natural": NaturalPrevalence(**common),
        }
        for name, protocol in protocols.items():
            yield name, protocol.draw(self.y_pool, classes=np.arange(k))


def load(name: str, split: int = 0, scorer: str = "same") -> Task:
    """A task by name, from the cache if it is there."""
    path = workloads.CACHE / f"task-{name}-{split}.npz"
    if not path.exists():
        workloads.CACHE.mkdir(exist_ok=True)
        np.savez(path, **_scored(name, split))
    saved = dict(np.load(path))
    parts = [saved[part] for part in ("train", "y", scorer, "y_pool")]
    return Task(name, *parts, saved.get("groups"), saved.get("past"))


def _scored(name: str, split: int) -> dict[str, np.ndarray]:
    front, X, y, learnt, other, groups = _items(name, split)
    classes, counts = np.unique(y[learnt], return_counts=True)
    kept = classes[counts >= FEWEST]
    learnt, other = learnt[np.isin(y[learnt], kept)], other[np.isin(y[other], kept)]
    model = make_pipeline(front, LogisticRegression(max_iter=1000))
    done = cross_fit(model, X[learnt], y[learnt], whole=True, n_jobs=2, random_state=0)
    out = {"train": done.scores, "y": done.codes, "same": mix_views(done.views(X[other]))}
    out["refitted"] = done.views(X[other], whole=True)[0]
    out["y_pool"] = np.searchsorted(kept, y[other])
    if groups is not None:
        out["groups"] = groups[other].astype(str)
        out["past"] = groups[learnt].astype(str)
    return out


def _items(name: str, split: int):
    """Front end, items, labels, rows to learn from, rows of the pool, groups of natural bags."""
    import pandas as pd

    rng = np.random.default_rng(split)
    if name in workloads.SPECS:
        data = workloads.make(name)
        X, y = (np.concatenate([data[f"{part}_train"], data[f"{part}_pool"]]) for part in "Xy")
        n = len(data["y_train"])
        rows = np.arange(len(y)) if split == 0 else rng.permutation(len(y))
        return "passthrough", X, y, rows[:n], rows[n:], None
    if name in TABULAR:
        table = pd.read_parquet(HOME / "tabular" / f"{name}.parquet")
        rows = rng.permutation(len(table))
        n = min(5000, len(rows) // 2)
        X = table.drop(columns="label").to_numpy(float)
        return StandardScaler(), X, table["label"].to_numpy(), rows[:n], rows[n:], None
    table = pd.read_parquet(HOME / f"{'reviews' if name == 'domains' else name}.parquet")
    if name in ("reviews", "domains", "emotions"):
        if name == "reviews":
            table = table[table["sentiment"].notna()]
        label = {"reviews": "sentiment", "domains": "domain", "emotions": "label"}[name]
        rows = rng.permutation(len(table))
        n = 5000 if name == "reviews" else 20_000
        parts = rows[:n], rows[n:], None
    else:
        table, label, first, groups = natural(name, table)
        parts = rng.permutation(np.flatnonzero(first)), np.flatnonzero(~first), groups
    return TfIdf(), table["text"].to_numpy(), table[label].astype(str).to_numpy(), *parts


def natural(name: str, table):
    """Table, label, rows to learn from and groups of the sets that fall into bags by themselves."""
    if name == "health_news":  # outlets by month
        months = table["time"].dt.to_period("M").astype(str).to_numpy()
        return table, "outlet", months < "2014-01", months
    if name == "crises":  # types of information by event
        table = table[~table["type"].isin(["Not labeled", "Not applicable"])]
        events = table["event"].to_numpy()
        return table, "type", np.isin(events, np.unique(events)[::2]), events
    table = table[(table["subtask"] == "A") & table["label"].notna()]  # sentiment by year
    years = table["year"].astype(str).to_numpy()
    chunk = (np.arange(len(table)) // 500).astype(str)
    return table, "label", years == years.min(), np.char.add(np.char.add(years, "/"), chunk)


def main() -> None:
    """Score every task."""
    warnings.simplefilter("ignore")
    for name in (*DRAWN, *NATURAL):
        task = load(name)
        hit = task.pool.argmax(axis=1) == task.y_pool
        print(
            f"{name}: {len(task.y):,} labelled, {task.train.shape[1]} classes, pool of "
            f"{len(hit):,}, accuracy {hit.mean():.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
