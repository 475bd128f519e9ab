"""How often the tables' intervals hold, on real corpora under pure label shift, by size of group.

python benchmarks/table_coverage.py [method] [corpus ...]

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
from headcount.inference.spread import Request
from headcount.scores.scorer import mix_views
from headcount.tables import Inputs, Model, quality
from headcount.tables.answer import bound_part
from headcount.tables.kept import Part
from headcount.text import TfIdf

FOLDER = Path(os.environ.get("HEADCOUNT_SHARED_DATA", "../shared/data"))
SIZES = (3, 10, 29, 100, 500, 5000)
GROUPS = 60
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
    """Groups of rows whose shares differ, without putting rows back where there are enough."""
    natural = np.bincount(codes, minlength=k) / len(codes)
    each = [np.flatnonzero(codes == c) for c in range(k)]
    rows = []
    for g in range(GROUPS):
        mix = 1.0 if g % 2 else 1 / 3
        shares = mix * rng.dirichlet(np.ones(k)) + (1 - mix) * natural
        counts = rng.multinomial(size, shares)
        rows.append(
            np.concatenate(
                [rng.choice(e, n, replace=n > len(e)) for e, n in zip(each, counts, strict=True)]
            )
        )
    return Bags.from_lists(rows, n_items=len(codes))


def measure(name: str, method: str, seed: int) -> list[str]:
    """Coverage and error by size of group, with what the model said of itself."""
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
    said = quality(quantifier)
    model = Model(quantifier, Inputs("text", ("t",)), "label", {"quality": said})
    views = quantifier.scorer_.views(texts[n:])
    cells, k = [], len(classes)
    for size in SIZES:
        bags = groups_of(codes[n:], k, size, rng)
        truth = bags.shares(codes[n:], k)
        numbers = np.arange(len(bags))
        pairs = [(v, bags) for v in views]
        part = Part(numbers, pairs, (mix_views(views), bags), None, np.zeros((len(bags), 0)))
        found = bound_part(model, part, bags.sizes, Request())
        inside = (truth >= found.low - 1e-6) & (truth <= found.high + 1e-6)
        off = np.abs(found.prevalence - truth).mean()
        width = (found.high - found.low).mean()
        cells.append(f"{inside.mean():.3f} ({100 * off:.1f}, {100 * width:.0f})")
    claim = "" if said is None else f"{said['plain']:.2f}, {said['coverage']:.2f}"
    return [name, str(k), method, claim, *cells]


def main() -> None:
    warnings.simplefilter("ignore")
    method = sys.argv[1] if len(sys.argv) > 1 else "SLD"
    names = sys.argv[2:] or ["reviews", "topics", "semeval", "crises", "emotions", "health_news"]
    header = [
        "corpus",
        "classes",
        "method",
        "checked",
        *[f"{s:,} rows" for s in SIZES],
    ]
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for name in names:
        print("| " + " | ".join(measure(name, method, 0)) + " |", flush=True)


if __name__ == "__main__":
    main()
