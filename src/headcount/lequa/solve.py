"""Solve tasks: one method, or all baselines of the lab and the participants' systems."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from headcount._core.files import write_parquet, write_text
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.data.dataset import Part
from headcount.exceptions import InputError
from headcount.lequa.runs import write_run
from headcount.lequa.score import Scores, score_runs
from headcount.lequa.task import Task
from headcount.lequa.tasks import SPECS
from headcount.methods import ACC, CC, MLPE, PACC, PCC, SLD, HDy
from headcount.methods.base import Quantifier
from headcount.report.page import frame_table, published
from headcount.selection.search import GridSearch
from headcount.study import Method, Study, run
from headcount.systems import lequa2022
from headcount.text.names import make_vectorizer

GRID: dict[str, list[Any]] = {
    "classifier__C": [10.0**i for i in range(-3, 4)],
    "classifier__class_weight": [None, "balanced"],
}


class TaskData:
    """A task as a data set of a study: its samples are the bags, whatever the protocol.

    Only the task's place is sent to workers; its items stay on disk.
    """

    def __init__(self, task: Task, vectorizer: str = "tfidf"):
        self.task = task
        self.vectorizer = vectorizer
        self.name = task.name
        if task.dev is None or task.test is None:
            raise InputError(f"{task.name} needs dev and test samples to be solved.")

    @property
    def classes(self) -> Ints:
        """Codes of the classes."""
        return np.arange(self.task.n_classes)

    def selection_data(self, protocol: Any, seed: int) -> tuple[Part, Any, Bags]:  # noqa: ARG002
        """Training items, dev items and dev samples."""
        return self._split("dev")

    def test_data(self, protocol: Any, seed: int) -> tuple[Part, Any, Bags]:  # noqa: ARG002
        """Training items, test items and test samples."""
        return self._split("test")

    def _split(self, split: str) -> tuple[Part, Any, Bags]:
        train, pool = features(self.task, split, self.vectorizer)
        return Part(train, self.task.train.y), pool, self.task.samples(split).bags

    def faults(self, protocol: Any, selection: Any) -> list[str]:  # noqa: ARG002
        """What keeps the task from being solved."""
        missing = sorted(set(range(self.task.n_classes)) - set(self.task.train.y.tolist()))
        if missing:
            names = [self.task.classes[c] for c in missing]
            return [f"datasets: {self.name} has no training item of {names}."]
        if self.task.truth("dev") is None:
            return [f"datasets: {self.name} has no dev_prevalences.txt to select settings on."]
        return []

    def about(self) -> dict[str, Any]:
        """Sizes, classes and training prevalence."""
        y = self.task.train.y
        return {
            "train": len(y),
            "validation": len(self.task.samples("dev").bags),
            "test": len(self.task.samples("test").bags),
            "classes": [str(c) for c in self.classes.tolist()],
            "prevalence": (np.bincount(y, minlength=self.task.n_classes) / len(y)).tolist(),
        }

    def fingerprint(self) -> str:
        """Hash of the task's files, and of the gold."""
        digest = hashlib.sha256(self.vectorizer.encode())
        for path in sorted(self.task.folder.iterdir()):
            if path.suffix in (".f32", ".npy", ".parquet") or path.name.endswith("valences.txt"):
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        truth = self.task.truth("test")
        digest.update(b"" if truth is None else truth.tobytes())
        return digest.hexdigest()


def features(task: Task, split: str, vectorizer: str = "tfidf") -> tuple[Any, Any]:
    """Vectors of the training items and of a split; texts by `vectorizer`, or as they are ('')."""
    if task.form == "vector" or not vectorizer:
        train = task.train.X if task.form == "text" else np.asarray(task.train.X)
        return train, task.samples(split).X
    return _vectors(str(task.folder), split, vectorizer)


@lru_cache(maxsize=2)
def _vectors(folder: str, split: str, vectorizer: str) -> tuple[Any, Any]:
    task = Task(Path(folder))
    made = make_vectorizer(vectorizer)
    train = made.fit_transform(task.train.X)
    return train, made.transform(task.samples(split).X)


def lab_methods(task: Task, systems: bool = True) -> list[Method]:
    """The lab's baselines with its settings, and the participants' systems for this task.

    Logistic regression, C from 1e-3 to 1e3, class weights balanced or not, chosen by the ranking
    measure on the dev samples; ACC, PACC and HDy hold out 40 %; SLD is calibrated.
    """
    by = (task.measures[0],)
    lr = LogisticRegression(max_iter=1000)
    found = [
        Method("MLPE", MLPE()),
        Method("CC", CC(lr, cv=0.4), GRID, by),
        Method("PCC", PCC(lr, cv=0.4), GRID, by),
        Method("ACC", ACC(lr, cv=0.4), GRID, by),
        Method("PACC", PACC(lr, cv=0.4), GRID, by),
        Method("SLD", SLD(lr, calibrator="platt"), GRID, by),
    ]
    two = task.n_classes == 2
    if two:
        found.append(Method("HDy", HDy(lr, cv=0.4), GRID, by))
    if systems and task.form == "vector":
        found.append(Method("UniDortmund", lequa2022.dortmund_ai(), GRID, by))
        if two:
            found.append(Method("KULeuven", lequa2022.ku_leuven()))
            found.append(Method("UniLeiden", lequa2022.uni_leiden(), GRID, by))
            found.append(Method("UniOviedo(Team2)", lequa2022.uni_oviedo2_binary(), GRID, by))
        else:
            found.append(Method("UniOviedo(Team2)", lequa2022.uni_oviedo2_multiclass(), GRID, by))
    return found


def solve(
    task: Task,
    quantifier: Quantifier,
    *,
    split: str = "test",
    search: bool = True,
    vectorizer: str = "tfidf",
    n_jobs: int | None = None,
    progress: bool = False,
) -> tuple[Floats, dict[str, Any]]:
    """Estimate the samples of a split; with `search`, settings of the lab are tried on dev first.

    Returns
    -------
    estimates, and the settings that were chosen
    """
    train, pool = features(task, split, vectorizer)
    y = task.train.y
    chosen: dict[str, Any] = {}
    fitted = quantifier
    names = quantifier.get_params(deep=True)
    grid = {name: values for name, values in GRID.items() if name in names}
    if search and grid and task.dev is not None and task.dev.bags.prevalence is not None:
        _, dev = features(task, "dev", vectorizer)
        searcher = GridSearch(
            quantifier, grid, measure=task.measures[0], n_jobs=n_jobs, verbose=progress
        ).fit(train, y, pool=dev, bags=task.dev.bags)
        fitted, chosen = searcher.best_quantifier_, searcher.best_params_
    else:
        try:
            fitted.fit(train, y)
        except TypeError as error:
            kind = type(quantifier).__name__
            raise InputError(f"{kind} cannot work on the items of {task.name}: {error}") from None
    estimates = fitted.predict_bags(pool, task.samples(split).bags)
    whole = np.zeros((len(estimates), task.n_classes))
    whole[:, fitted.classes_] = estimates
    return whole, chosen


def baselines(
    task: Task,
    folder: str | Path,
    *,
    systems: bool = True,
    methods: list[str] | None = None,
    vectorizer: str = "tfidf",
    n_jobs: int | None = None,
    progress: bool = False,
) -> Scores | None:
    """Run the lab's methods, write a run file for each and, if the gold is there, the page.

    Killed at any moment, the same call goes on where it stopped.

    Parameters
    ----------
    task : Task
    folder : path
        Gets ``runs/``, ``results.html`` and ``scores.parquet``, and the study's files.
    systems : bool, default True
        Whether to run the participants' systems too.
    methods : list of names, optional
        Only these.
    vectorizer : str, default 'tfidf'
        What turns texts into vectors, for a task of texts.
    """
    home = Path(folder)
    wanted = [m for m in lab_methods(task, systems) if methods is None or m.name in methods]
    study = Study(
        f"LeQua {task.name}", [TaskData(task, vectorizer)], wanted, measures=task.measures
    )
    frame = run(study, home / "study", n_jobs=n_jobs, progress=progress).frame
    truth = task.truth("test")
    runs: dict[str, str | Path | Floats] = {}
    for method in dict.fromkeys(frame["method"].tolist()):
        part = frame.rows((frame["method"] == method) & (frame["failure"] == ""))
        if part.n_rows == 0:
            continue
        table = np.column_stack([part[f"estimate:{c}"] for c in range(task.n_classes)])
        runs[method] = table
        write_run(home / "runs" / f"{method}.csv", table)
    if task.form == "text" and systems and (methods is None or "UniPadova" in methods):
        table, _ = solve(task, lequa2022.uni_padova(), search=False, vectorizer="")
        runs["UniPadova"] = table
        write_run(home / "runs" / "UniPadova.csv", table)
    if truth is None:
        return None
    spec = SPECS.get(task.name)
    scores = score_runs(
        truth, runs, size=task.size, ordinal=task.ordinal, year=spec.year if spec else 2022
    )
    write_parquet(home / "scores.parquet", scores.table())
    title = f"LeQua {task.name}: {len(truth):,} samples of {task.size}"
    write_text(home / "results.html", scores.to_html(title, published_beside(task, scores)))
    return scores


def published_beside(task: Task, scores: Scores) -> str:
    """HTML of the lab's published results beside ours, if this is (of the size of) that task."""
    spec = SPECS.get(task.name)
    if spec is None or spec.year != 2022 or task.seed is not None:
        return ""
    if (len(task.samples("test").bags), task.size) != (spec.n_test, spec.size):
        return ""
    table = published("lequa2022")
    assert table is not None  # it comes with the package
    rows = []
    ours = scores.errors
    for i in np.flatnonzero(table["task"] == task.name):
        theirs = str(table["run"][i])
        name = theirs.removesuffix("-tfidf")
        mine = [f"{ours[m][name].mean():.5f}" if name in ours[m] else "—" for m in ("rae", "ae")]
        rae, ae = table["rae"][i], table["ae"][i]
        rows.append([theirs, f"{rae:.5f}", mine[0], f"{ae:.5f}", mine[1]])
    header = ["run", "published RAE", "ours", "published AE", "ours"]
    note = (
        f"<h2>Published results</h2><p class=note>Of the lab on its own {escape(task.name)} data; "
        "they compare with ours if these are the same data.</p>"
    )
    return note + frame_table(header, rows)
