"""The demonstration: complaints month by month, then all methods compared, then a small lab."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from html import escape
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
from headcount.methods.bayes import BayesQuantifier
from headcount.protocols import UniformPrevalence
from headcount.report.page import frame_table, page
from headcount.report.study_page import write_page
from headcount.selection.auto import AutoQuantifier
from headcount.study import Study
from headcount.study import run as run_study
from headcount.tables import Count, fit
from headcount.tables.charts import asset, chart_key, scale_top, time_chart
from headcount.tables.example import write_example
from headcount.tables.report_data import gather_report
from headcount.tables.result import shares_text

DATASETS: dict[str, Callable[..., Any]] = {
    "breast-cancer (2 classes)": load_breast_cancer,
    "digits (10 classes)": load_digits,
}
DEMO_BAG_SIZE = 100  # items
LAB_TEXTS = 12_000
LAB_TEST_SAMPLES = 200
LAB_PARTS = ("a", "b")  # sentiments, categories
STORY_METHOD = "BayesQuantifier"  # which the choice nearly always ends with; choosing takes longer
DEMO_BUDGET = 60  # units of work


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
        "BayesQuantifier": BayesQuantifier(**shared, measure="rae"),
        # The one that chooses its classifiers too.
        "AutoQuantifier": AutoQuantifier(measure="rae", budget=DEMO_BUDGET, random_state=seed),
    }


def study(n_bags: int, seed: int) -> Study:
    """Every method on every data set: half of the items to train on, half as the pool."""
    datasets = [
        Dataset.split(name, *load(return_X_y=True), test=0.5, random_state=seed)
        for name, load in DATASETS.items()
    ]
    protocol = UniformPrevalence(n_bags=n_bags, size=DEMO_BAG_SIZE)
    return Study("Demonstration", datasets, methods(seed), protocol, seeds=[seed])


def run(n_bags: int = 2000, seed: int = 0, folder: Path = Path("headcount-demo")) -> None:
    """Tell the story, compare all methods, run the lab, and write the pages and their start."""
    console = Console()
    story = tell_story(folder, seed, console)
    boards = compare_methods(n_bags, seed, folder, console)
    results = lab(folder, seed, console)
    write_text(folder / "index.html", _index(story, boards, results))
    console.print(f"\nAll of it, from one page: {folder / 'index.html'}")


def tell_story(folder: Path, seed: int, console: Console) -> Count:
    """How many complaints in each month, on the example corpus: the practitioner's answer."""
    shutil.rmtree(folder / "example", ignore_errors=True)
    labelled, messages = write_example(folder / "example", seed)
    console.print("[bold]How many of each month's messages are complaints?[/bold]")
    model = fit(labelled, text="message", label="kind", method=STORY_METHOD)
    found = model.estimate(messages, by="month:date", truth="kind")
    frame = found.to_frame()
    complaints = frame.rows(frame["class"] == "complaint")
    console.print(shares_text(complaints, found.interval.level), highlight=False)
    found.report("Complaints to a bicycle hire", "complaint").save(folder / "complaints.html")
    console.print(f"The page for a manager: {folder / 'complaints.html'}\n")
    return found


def compare_methods(n_bags: int, seed: int, folder: Path, console: Console) -> dict[str, Frame]:
    """A leaderboard of all methods for each data set, on the screen and with figures on a page."""
    began = time.perf_counter()
    results = run_study(study(n_bags, seed), folder, progress=True)
    boards = {}
    for name in results.datasets:
        part = results.frame.rows(results.frame["dataset"] == name)
        boards[name] = leaderboard(Frame({c: part[c] for c in ("method", "ae", "rae")}))
        console.print(_table(f"{name}: {n_bags:,} bags of {DEMO_BAG_SIZE}", boards[name]))
    console.print(
        f"{len(DATASETS) * n_bags:,} bags, {len(methods(seed))} methods: "
        f"{time.perf_counter() - began:.1f} s. Lower is better."
    )
    write_page(results, folder / "report.html")
    return boards


def lab(folder: Path, seed: int, console: Console) -> list[TaskResult]:
    """Build a small LeQua from made-up reviews, and run the baselines and systems on it."""
    corpus = make_corpus(LAB_TEXTS, random_state=seed)
    # So small a corpus gives the gold away, which is said; a demonstration has no competitors.
    sizes: dict[str, Any] = {"n_dev": 60, "n_test": LAB_TEST_SAMPLES, "leak_limit": 1.0}
    sizes |= {"helpful": "helpful"}
    sizes |= {"dimensions": 100, "seed": seed, "secret": seed}
    recipes = {
        "a": Recipe(label="stars", labels=SENTIMENT, n_train=LAB_TEXTS // 8, **sizes),
        "b": Recipe(label="category", n_train=LAB_TEXTS // 6, forms=("vector",), size=60, **sizes),
    }
    results = []
    shutil.rmtree(folder / "lab", ignore_errors=True)
    for part in LAB_PARTS:
        for place in build_lab(corpus, folder / "lab" / part, recipes[part], tell=console.print):
            task = open_task(place)
            scores = baselines(task, folder / task.name, defaults=False, n_jobs=-1, progress=True)
            if scores is not None:
                results.append(TaskResult(task, scores))
                console.print(f"\n[bold]{task.name}[/bold] {task!r}\n{scores}")
    write_text(folder / "lab.html", lab_page(results, "A small LeQua lab"))
    return results


def _index(story: Count, boards: dict[str, Frame], results: list[TaskResult]) -> str:
    """The start page: the story, the comparison, the lab, each with its link."""
    parts = [
        "<h1>Not which, but how many</h1><p class=lead>Headcount estimates how often each class "
        "occurs in sets of unlabelled items, although the world has moved since the labels were "
        "made.</p>",
        _story_part(story),
        _boards_part(boards),
        _lab_part(results),
    ]
    return page("Headcount: the demonstration", "\n".join(parts), asset("charts.css"))


def _story_part(found: Count) -> str:
    """The chart of complaints, and how far counting and the estimate are off."""
    data = gather_report(found, "complaint")
    series = data.series(data.shown[0])
    assert series.truth is not None
    off, plain = (100 * abs(v - series.truth).mean() for v in (series.share, series.counted))
    key = chart_key(series, reference=data.reference)
    return (
        "<h2>1. Complaints, month by month</h2><p>Somebody labelled some messages to a bicycle "
        "hire, half of them complaints. How many of each month's messages complain? Counting what "
        f"a classifier says is {plain:.1f} points off on average, the estimate {off:.1f}.</p>"
        f"{key}{time_chart(series, scale_top(series.top()))}"
        "<p><a href='complaints.html'>The page for a manager</a>: how many now, what changed, "
        "whether to trust it. The messages are made up by rule.</p>"
    )


def _boards_part(boards: dict[str, Frame]) -> str:
    parts = ["<h2>2. All methods on scikit-learn's data</h2><div class=beside>"]
    for name, board in boards.items():
        rows = [
            [str(board["method"][j]), f"{board['rae'][j]:.4f}", f"{board['ae'][j]:.4f}"]
            for j in range(board.n_rows)
        ]
        own = [j for j, row in enumerate(rows) if row[0] in ("BayesQuantifier", "AutoQuantifier")]
        table = frame_table(["method", "RAE", "AE"], rows, italic=own)
        parts.append(f"<div><h4>{escape(name)}</h4>{table}</div>")
    return "".join(parts) + (
        "</div><p class=note>Relative and absolute error of samples with every mix of classes; "
        "lower is better. In italics: what is used if nothing is said.</p>"
        "<p><a href='report.html'>Tables, tests and figures of all methods</a></p>"
    )


def _lab_part(results: list[TaskResult]) -> str:
    about = {
        "T1A": "two sentiments, vectors",
        "T2A": "two sentiments, the same reviews as texts",
        "T1B": "sixteen categories, vectors",
    }
    parts = [
        "<h2>3. A small LeQua lab</h2><p>A shared task in a box: samples of made-up reviews with "
        "other shares of classes each, solved by the lab's baselines and its participants' "
        "systems.</p><p><a href='lab.html'>The whole lab on one page</a>: data, teams, tests and "
        "figures.</p>"
    ]
    for result in results:
        name = result.task.name
        parts.append(f"<h3>{name}: {about[name]}</h3>{result.scores.board()}")
        parts.append(f"<p><a href='{name}/results.html'>Tests and figures of {name}</a></p>")
    return "\n".join(parts)


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
