"""The demonstration: a LeQua-style comparison of all methods on data that scikit-learn ships."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from headcount.evaluation import evaluate_many, leaderboard
from headcount.exceptions import HeadcountWarning
from headcount.frame import Frame
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

# name -> loader, size of a bag; both as small as scikit-learn's data allow
DATASETS: dict[str, tuple[Callable[..., Any], int]] = {
    "breast-cancer (2 classes)": (load_breast_cancer, 100),
    "digits (10 classes)": (load_digits, 250),
}


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


def compare(name: str, n_bags: int, seed: int, tick: Callable[[str], None]) -> Frame:
    """Evaluate every method on bags from one data set: half to train on, half as the pool."""
    load, size = DATASETS[name]
    X, y = load(return_X_y=True)
    X, pool, y, y_pool = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    bags = UniformPrevalence(n_bags=n_bags, size=size, random_state=seed).draw(y_pool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeadcountWarning)  # the table shows what they warn of
        return evaluate_many(methods(seed), X, y, pool, bags, ["ae", "rae"], progress=tick)


def run(n_bags: int = 2000, seed: int = 0) -> None:
    """Run the comparison with a progress bar and print a leaderboard for each data set."""
    console = Console()
    began = time.perf_counter()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    boards = {}
    with Progress(*columns, console=console) as progress:
        for name in DATASETS:
            task = progress.add_task(name, total=len(methods(seed)))
            result = compare(name, n_bags, seed, lambda _, task=task: progress.advance(task))  # type: ignore[misc]
            boards[name] = leaderboard(result)
    for name, board in boards.items():
        console.print(_table(f"{name}: {n_bags:,} bags of {DATASETS[name][1]}", board))
    console.print(
        f"{len(DATASETS) * n_bags:,} bags, {len(methods(seed))} methods, one classifier pass a "
        f"data set: {time.perf_counter() - began:.1f} s. Lower is better."
    )


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
