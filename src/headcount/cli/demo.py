"""The demonstration: a LeQua-style comparison of all methods on data that scikit-learn ships."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from headcount._core.files import write_text
from headcount._core.frame import Frame
from headcount.data import Dataset
from headcount.evaluation import leaderboard
from headcount.lequa import baselines, build_lab, make_corpus, open_task
from headcount.lequa.build import SENTIMENT, Recipe
from headcount.lequa.page import TaskResult, lab_page
from headcount.methods import (
    ACC,
    CC,
    ELSA,
    MLPE,
    MS2,
    PACC,
    PCC,
    RLLS,
    SLD,
    DMy,
    DyS,
    EDy,
    HDx,
    HDy,
    KDEyML,
    Quantifier,
)
from headcount.protocols import UniformPrevalence
from headcount.report.page import page
from headcount.report.study_page import write_page
from headcount.study import Study
from headcount.study import run as run_study

DATASETS: dict[str, Callable[..., Any]] = {
    "breast-cancer (2 classes)": load_breast_cancer,
    "digits (10 classes)": load_digits,
}
BAG_SIZE = 100
LAB_TEXTS = 12_000
LAB_TEST_SAMPLES = 200


def methods(seed: int) -> dict[str, Quantifier]:
    """Every method, on one classifier; kept weak, so that the methods have something to repair."""
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=1e-2, max_iter=1000))
    shared: dict[str, Any] = {"classifier": classifier, "random_state": seed}
    return {
        "MLPE": MLPE(),
        "CC": CC(**shared),
        "PCC": PCC(**shared),
        "ACC": ACC(**shared),
        "PACC": PACC(**shared),
        "PACC, optimal weights": PACC(**shared, weighting="optimal"),
        "RLLS": RLLS(**shared),
        "SLD": SLD(**shared),
        "SLD, MAP": SLD(**shared, alpha=2),
        "SLD, BCTS": SLD(**shared, calibrator="bcts"),
        "SLD, vector scaling": SLD(**shared, calibrator="vs"),
        "SLD, isotonic": SLD(**shared, calibrator="isotonic"),
        "HDy": HDy(**shared),
        "DyS": DyS(**shared),
        "DMy, Topsoe": DMy(**shared, divergence="topsoe"),
        "EDy": EDy(**shared),
        "KDEy-ML, cross-validated": KDEyML(**shared, bandwidth="cv"),
        "MS2": MS2(**shared),
        "ELSA": ELSA(**shared),
        "HDx": HDx(n_bins=10),
    }


def study(n_bags: int, seed: int) -> Study:
    """Every method on every data set: half of the items to train on, half as the pool."""
    datasets = [
        Dataset.split(name, *load(return_X_y=True), test=0.5, random_state=seed)
        for name, load in DATASETS.items()
    ]
    protocol = UniformPrevalence(n_bags=n_bags, size=BAG_SIZE)
    return Study("Demonstration", datasets, methods(seed), protocol, seeds=[seed])


def run(n_bags: int = 2000, seed: int = 0, folder: Path = Path("headcount-demo")) -> None:
    """Run the comparison, print a leaderboard for each data set, and write the page."""
    console = Console()
    began = time.perf_counter()
    results = run_study(study(n_bags, seed), folder, progress=True)
    for name in results.datasets:
        part = results.frame.rows(results.frame["dataset"] == name)
        columns = {c: part[c] for c in ("method", "ae", "rae")}
        title = f"{name}: {n_bags:,} bags of {BAG_SIZE}"
        console.print(_table(title, leaderboard(Frame(columns))))
    console.print(
        f"{len(DATASETS) * n_bags:,} bags, {len(methods(seed))} methods, one classifier pass a "
        f"data set: {time.perf_counter() - began:.1f} s. Lower is better."
    )
    write_page(results, folder / "report.html")
    write_text(folder / "index.html", _index(lab(folder, seed, console)))
    console.print(f"\nAll of it on one page: {folder / 'index.html'}")


def lab(folder: Path, seed: int, console: Console) -> list[TaskResult]:
    """Build a small LeQua from made-up reviews, and run the baselines and systems on it."""
    corpus = make_corpus(LAB_TEXTS, random_state=seed)
    # So small a corpus gives the gold away, which is said; a demonstration has no competitors.
    sizes: dict[str, Any] = {"n_dev": 60, "n_test": LAB_TEST_SAMPLES, "leak_limit": 1.0}
    sizes |= {"helpful": "helpful"}
    sizes |= {"dimensions": 100, "seed": seed, "secret": seed}
    recipes = [
        Recipe(label="stars", labels=SENTIMENT, n_train=LAB_TEXTS // 8, **sizes),
        Recipe(label="category", n_train=LAB_TEXTS // 6, forms=("vector",), size=60, **sizes),
    ]
    results = []
    shutil.rmtree(folder / "lab", ignore_errors=True)
    for part, recipe in zip("ab", recipes, strict=True):
        for place in build_lab(corpus, folder / "lab" / part, recipe, tell=console.print):
            task = open_task(place)
            scores = baselines(task, folder / task.name, n_jobs=-1, progress=True)
            if scores is not None:
                results.append(TaskResult(task, scores))
                console.print(f"\n[bold]{task.name}[/bold] {task!r}\n{scores}")
    write_text(folder / "lab.html", lab_page(results, "A small LeQua lab"))
    return results


def _index(results: list[TaskResult]) -> str:
    about = {
        "T1A": "two sentiments, vectors",
        "T2A": "two sentiments, the same reviews as texts",
        "T1B": "sixteen categories, vectors",
    }
    parts = [
        "<h1>Headcount: a small LeQua lab</h1><p>How often does each class occur in samples of "
        "unlabelled reviews? Every sample has other shares of classes. The reviews are made up by "
        "rule; the methods are the lab's baselines and its participants' systems.</p>"
        "<p><a href='lab.html'>The whole lab on one page</a>: data, teams, tests and figures.</p>"
    ]
    for result in results:
        name = result.task.name
        parts.append(f"<h2>{name}: {about[name]}</h2>{result.scores.board()}")
        parts.append(f"<p><a href='{name}/results.html'>Tests and figures of {name}</a></p>")
    parts.append(
        "<h2>Twenty methods</h2><p><a href='report.html'>All methods on scikit-learn's data</a>: "
        "tables, tests and figures.</p>"
    )
    return page("Headcount: a small LeQua lab", "\n".join(parts))


def _table(title: str, board: Frame) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("rank", justify="right")
    table.add_column("method")
    for name in ("RAE", "AE"):
        table.add_column(name, justify="right")
    table.add_column("rank by AE", justify="right")
    for j in range(board.n_rows):
        best = "bold green" if board["rank(rae)"][j] == 1 else ""
        table.add_row(
            str(board["rank(rae)"][j]),
            str(board["method"][j]),
            f"{board['rae'][j]:.4f}",
            f"{board['ae'][j]:.4f}",
            str(board["rank(ae)"][j]),
            style=best,
        )
    return table
