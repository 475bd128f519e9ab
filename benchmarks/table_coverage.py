"""How often the tables' intervals hold, on real corpora under pure label shift, by size of group.

python benchmarks/table_coverage.py [method] [splits, or first-last] [corpus ...]

A model learns from 2,000 labelled rows. Groups of 3 to 5,000 other rows of the corpus are drawn
with shares from a flat Dirichlet distribution, each a third of the way or all of the way from the
natural ones, and estimated as `headcount estimate` does. Coverage is per class and group.
The corpora are looked for in HEADCOUNT_SHARED_DATA.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import harness  # noqa: F401  first: it sets one thread for everybody
from headcount import SLD, Bags, BayesQuantifier
from headcount.data.groups import Grouping
from headcount.tables import Inputs, Model
from headcount.tables.accumulator import Accumulator
from headcount.tables.estimation import estimate_groups
from headcount.tables.quality import measure_quality
from headcount.tables.result import GroupRows
from headcount.text import TfIdf

FOLDER = Path(os.environ.get("HEADCOUNT_SHARED_DATA", "../shared/data"))
SIZES = (3, 10, 29, 100, 500, 5000)
GROUPS = 30
LABELLED = 2000
METHODS = {
    "SLD": lambda c: SLD(c, calibrator="bcts"),
    "Bayes": lambda c: BayesQuantifier(c, n_worlds=4, n_draws=120),
}


def corpus(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Texts and labels."""
    table = pq.read_table(FOLDER / f"{'reviews' if name == 'topics' else name}.parquet").to_pandas()
    if name == "reviews":
        table = table[table["sentiment"].notna()]
        label = table["sentiment"].astype(int).astype(str)
    elif name == "topics":
        label = table["domain"]
    elif name == "semeval":
        table = table[(table["subtask"] == "A")]
        label = table["label"]
    else:
        label = table[{"crises": "type", "health_news": "outlet", "emotions": "label"}[name]]
    return table["text"].to_numpy(dtype=object), label.astype(str).to_numpy()


def groups_of(codes: np.ndarray, k: int, size: int, rng: np.random.Generator) -> Bags:
    """Groups of rows whose shares differ, no row twice in a group.

    What a class has too few rows for goes to the others: a row that is there several times would
    make a group tell less than its size promises.
    """
    natural = np.bincount(codes, minlength=k) / len(codes)
    each = [np.flatnonzero(codes == c) for c in range(k)]
    there = np.array([len(e) for e in each])
    rows = []
    for g in range(GROUPS):
        mix = 1.0 if g % 2 else 1 / 3
        shares = mix * rng.dirichlet(np.ones(k)) + (1 - mix) * natural
        counts = np.minimum(rng.multinomial(size, shares), there)
        while counts.sum() < size:
            open_ = shares * (counts < there)
            more = rng.multinomial(size - counts.sum(), open_ / open_.sum())
            counts = np.minimum(counts + more, there)
        drawn = [rng.choice(e, n, replace=False) for e, n in zip(each, counts, strict=True)]
        rows.append(np.concatenate(drawn))
    return Bags.from_lists(rows, n_items=len(codes))


def measure(name: str, method: str, seed: int) -> tuple[int, list[float], np.ndarray]:
    """Number of classes, what the model said of itself, and coverage, error, width by size."""
    texts, labels = corpus(name)
    classes, codes = np.unique(labels, return_inverse=True)
    rng = np.random.default_rng(seed)
    often = np.bincount(codes) >= 400
    keep = rng.permutation(np.flatnonzero(often[codes]))[:22_000]
    texts, labels = texts[keep], labels[keep]
    quantifier = METHODS[method](make_pipeline(TfIdf(), LogisticRegression(max_iter=1000)))
    n = LABELLED
    classes, codes = np.unique(labels, return_inverse=True)
    quantifier.fit(texts[:n], labels[:n])
    if len(quantifier.classes_) < len(classes):
        raise SystemExit(f"{name}: a class has no labelled row")
    said = measure_quality(quantifier)
    model = Model(quantifier, Inputs("text", ("t",)), "label")
    scores, bins = model.score(texts[n:])
    cells, k = [], len(classes)
    for size in SIZES:
        bags = groups_of(codes[n:], k, size, rng)
        truth = bags.shares(codes[n:], k)
        accumulator = Accumulator(model.layout)
        accumulator.add(
            scores[bags.indices], bins[bags.indices], np.repeat(np.arange(GROUPS), size)
        )
        state = accumulator.finish()
        names = [str(g) for g in range(GROUPS)]
        rows = GroupRows(names, Grouping(), state.rows, state.effective, state)
        found = estimate_groups(model, rows).interval
        inside = (truth >= found.low - 1e-6) & (truth <= found.high + 1e-6)
        off, width = np.abs(found.prevalence - truth), found.high - found.low
        cells.append([inside.mean(), 100 * off.mean(), 100 * width.mean()])
    claims = [np.nan, np.nan] if said is None else [said.plain, said.coverage]
    return k, claims, np.array(cells)


def row(name: str, method: str, seeds: range) -> list[str]:
    """A line of the table: means over the splits, with the standard error of the coverage."""
    splits = len(seeds)
    found = [measure(name, method, seed) for seed in seeds]
    claims = np.mean([claims for _, claims, _ in found], axis=0)
    cells = np.array([c for _, _, c in found])
    error = cells[..., 0].std(axis=0, ddof=1) / np.sqrt(splits) if splits > 1 else np.zeros(6)
    shown = [
        f"{held:.3f} ± {e:.3f} ({off:.1f}, {width:.0f})"
        for (held, off, width), e in zip(cells.mean(axis=0), error, strict=True)
    ]
    return [name, str(found[0][0]), method, f"{claims[0]:.2f}, {claims[1]:.2f}", *shown]


def main() -> None:
    warnings.simplefilter("ignore")
    method = sys.argv[1] if len(sys.argv) > 1 else "SLD"
    first, _, last = (sys.argv[2] if len(sys.argv) > 2 else "5").partition("-")
    seeds = range(int(first), int(last) + 1) if last else range(int(first))
    names = sys.argv[3:] or ["reviews", "topics", "semeval", "crises", "emotions", "health_news"]
    header = ["corpus", "classes", "method", "checked", *[f"{s:,} rows" for s in SIZES]]
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for name in names:
        print("| " + " | ".join(row(name, method, seeds)) + " |", flush=True)


if __name__ == "__main__":
    main()
