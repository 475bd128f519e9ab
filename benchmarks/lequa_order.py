"""Whether LeQua's baselines come in the order of the paper on real corpora.

    python benchmarks/lequa_order.py FOLDER [--tasks sentiment,domains,emotions]

A lab is built for every split from the reviews (two classes of sentiment; 16 domains) or the
emotions (14 classes that are frequent enough) in `HEADCOUNT_SHARED_DATA`, and the lab's baselines
are run on its vectors (means of word vectors) and its texts (tf-idf). Mean errors over the splits,
with standard errors; stopped at any moment, the same command goes on.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headcount.data import read_table
from headcount.lequa import build_lab, open_task
from headcount.lequa.recipe import Recipe
from headcount.lequa.solve import run_baselines

DATA = Path(os.environ.get("HEADCOUNT_SHARED_DATA", "../shared/data"))
PAPER = ["MLPE", "PCC", "CC", "ACC", "PACC", "SLD"]  # from the largest RAE to the least
FREQUENT = (
    *("neutral", "admiration", "gratitude", "approval", "amusement", "annoyance", "disapproval"),
    *("love", "curiosity", "anger", "optimism", "confusion", "joy", "sadness"),
)
TWO = Recipe(label="sentiment", n_train=5000, n_dev=200, n_test=500)
MANY = Recipe(label="domain", min_length=100, n_train=5000, n_dev=100, n_test=300, size=1000)
MADE = {  # corpus and recipe; samples share items, which no baseline looks at
    "sentiment": ("reviews", TWO),
    "domains": ("reviews", MANY),
    "emotions": (
        "emotions",
        replace(MANY, label="label", labels={c: c for c in FREQUENT}, min_length=1, size=500),
    ),
}


def solve_split(home: Path, task: str, split: int, **options: Any) -> None:
    """Build one lab, and run the baselines on it."""
    corpus, recipe = MADE[task]
    recipe = replace(recipe, leak_limit=1.0, seed=split, secret=split + 2**70, **options)
    if not home.is_dir():
        build_lab(read_table(DATA / f"{corpus}.parquet", ["text", recipe.label]), home, recipe)
    for folder in sorted(p.parent for p in home.glob("T*/task.json")):
        if not (home / "runs" / folder.name / "scores.parquet").is_file():
            opened = open_task(folder)
            out = home / "runs" / opened.name
            print(f"{task}, split {split}: {opened}", flush=True)
            found = run_baselines(opened, out, systems=False, defaults=False, n_jobs=1)
            print(found.scores, found.failures or "", flush=True)


def mean_errors(homes: list[Path], name: str) -> dict[str, np.ndarray]:
    """RAE and AE of every baseline of a task: an array of splits x measures for each."""
    found: dict[str, list[list[float]]] = {method: [] for method in PAPER}
    for home in homes:
        scores = read_table(home / "runs" / name / "scores.parquet")
        names = [str(n).removesuffix("-tfidf") for n in scores["run"]]
        for method, rows in found.items():
            i = names.index(method)
            rows.append([float(scores["rae"][i]), float(scores["ae"][i])])
    return {method: np.array(rows) for method, rows in found.items()}


def report(task: str, homes: list[Path]) -> None:
    """Print the table of a task, and how much each baseline gains on the one before it."""
    done = [h for h in homes if (h / "runs").is_dir()]
    for name in sorted({p.name for h in done for p in (h / "runs").iterdir()}):
        mine = [h for h in done if (h / "runs" / name / "scores.parquet").is_file()]
        if not mine:
            continue
        errors = mean_errors(mine, name)
        print(f"\n{task}, {name}: {len(mine)} splits\n")
        print("| baseline | RAE | AE | RAE less than the one above |\n|---|---:|---:|---:|")
        above = None
        for method, rows in errors.items():
            cells = [f"{rows[:, j].mean():.4f} ± {stderr(rows[:, j]):.4f}" for j in (0, 1)]
            gain = "" if above is None else above[:, 0] - rows[:, 0]
            cells += [f"{np.mean(gain):+.4f} ± {stderr(gain):.4f}" if above is not None else ""]
            print(f"| {method} | {' | '.join(cells)} |")
            above = rows


def stderr(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", default="sentiment,domains,emotions")
    parser.add_argument("--forms", default="vector,text")
    parser.add_argument("--vectors", default="words")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--train", type=int, default=5000)
    asked = parser.parse_args()
    options = {
        "forms": tuple(asked.forms.split(",")),
        "vectors": asked.vectors,
        "n_train": asked.train,
    }
    for task in asked.tasks.split(","):
        homes = [asked.folder / f"{task}-{asked.train}-{split}" for split in range(asked.splits)]
        for split, home in enumerate(homes):
            solve_split(home, task, split, **options)
        report(task, homes)


if __name__ == "__main__":
    main()
