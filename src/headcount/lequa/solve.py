"""Solve tasks: one method, or all baselines of the lab and the participants' systems."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from headcount._core.files import write_parquet, write_text
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.data.dataset import Part
from headcount.exceptions import InputError
from headcount.lequa.board import Scores
from headcount.lequa.entries import GRID, lab_entries, short_name
from headcount.lequa.networks import neural_methods
from headcount.lequa.page import TaskResult, result_page
from headcount.lequa.reuse import Leak, Scored
from headcount.lequa.runs import write_run
from headcount.lequa.score import score_runs
from headcount.lequa.task import Task
from headcount.lequa.tasks import SPECS
from headcount.lequa.vectors import features
from headcount.methods.base import Quantifier
from headcount.selection.search import GridSearch
from headcount.study import Results, Study, run


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


def measure_leak(task: Task, vectorizer: str = "tfidf") -> Leak:
    """Attack the items that the test samples of a task share; the gold must be known."""
    samples = task.samples("test")
    if samples.bags.prevalence is None:
        raise InputError(f"the gold of {task.name} is needed to tell how much it gives away.")
    train, pool = features(task, "test", vectorizer)
    return Scored.of(train, task.train.y, pool, task.n_classes).measure(samples.bags)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of the lab's methods on a task.

    Attributes
    ----------
    runs : dict of name to estimates
    failures : dict of name to reason
        Methods that have no run.
    notes : list of str
        Settings that failed while others of the same method did not.
    scores : Scores or None
        None without the gold.
    """

    runs: dict[str, Floats]
    failures: dict[str, str]
    notes: list[str]
    scores: Scores | None = None


def baselines(task: Task, folder: str | Path, **options: Any) -> Scores | None:
    """Run the lab's methods; their scores, if the gold is there. See `run_baselines`."""
    return run_baselines(task, folder, **options).scores


def run_baselines(
    task: Task,
    folder: str | Path,
    *,
    systems: bool = True,
    defaults: bool = True,
    methods: list[str] | None = None,
    vectorizer: str = "tfidf",
    encoder: str | None = None,
    neural: bool = False,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Outcome:
    """Run the lab's methods, write a run file for each and, if the gold is there, the page.

    Killed at any moment, the same call goes on where it stopped.

    Parameters
    ----------
    task : Task
    folder : path
        Gets ``runs/``, ``results.html`` and ``scores.parquet``, and the files of studies.
    systems : bool, default True
        Whether to run the participants' systems too.
    defaults : bool, default True
        Whether to run BayesQuantifier and AutoQuantifier too.
    methods : list of names, optional
        Only these.
    vectorizer : str, default 'tfidf'
        What turns texts into vectors, for a task of texts.
    encoder : str, optional
        A second one, for the rows that the lab computed with RoBERTa: a folder or a model's name.
    neural : bool, default False
        Whether to run QuaNet and UniOviedo (Team1) too; they need torch and take long.
    """
    home = Path(folder)
    entries = lab_entries(
        task, systems=systems, defaults=defaults, vectorizer=vectorizer, encoder=encoder
    )
    if neural:
        entries[vectorizer] = [*entries.get(vectorizer, []), *neural_methods(task, vectorizer)]
    found = Outcome({}, {}, [])
    for name, listed in entries.items():
        wanted = [m for m in listed if methods is None or m.name in methods]
        if wanted:
            data = TaskData(task, name)
            study = Study(f"LeQua {task.name}", [data], wanted, measures=task.measures)
            place = home / "study" / (short_name(name) or "items")
            _run_study(study, place, found, n_jobs=n_jobs, progress=progress)
    for name, table in found.runs.items():
        write_run(home / "runs" / f"{name}.csv", table)
    truth = task.truth("test")
    if truth is None or not found.runs:
        return found
    scores = _scored(task, truth, found)
    write_parquet(home / "scores.parquet", scores.table())
    title = f"LeQua {task.name}: {len(truth):,} samples of {task.size}"
    write_text(home / "results.html", result_page(TaskResult(task, scores), title))
    return replace(found, scores=scores)


def _run_study(study: Study, home: Path, found: Outcome, **options: Any) -> None:
    """Run the methods of one study, and note what each became."""
    names = [m.name for m in study.methods]
    try:
        results = run(study, home, **options)
    except InputError as error:  # nothing at all could be run
        found.failures.update(dict.fromkeys(names, str(error)))
        return
    frame = results.frame
    for name in names:
        part = frame.rows((frame["method"] == name) & (frame["failure"] == ""))
        if part.n_rows:
            columns = [part[f"estimate:{c}"] for c in study.datasets[0].classes]
            found.runs[name] = np.column_stack(columns)
        else:
            found.failures[name] = _reason(results, name)
    found.notes.extend(_trial_notes(results, [n for n in names if n in found.runs]))


def _reason(results: Results, name: str) -> str:
    """Why a method has no estimates: what it said first."""
    for frame in (results.frame, results.selection):
        if frame is not None:
            said = frame["failure"][(frame["method"] == name) & (frame["failure"] != "")]
            if len(said):
                return str(said[0])
    return "no setting could be selected"


def _trial_notes(results: Results, names: Iterable[str]) -> list[str]:
    """A line for each method some of whose settings failed."""
    tried, lines = results.selection, []
    if tried is None:
        return []
    for name in names:
        mine = tried["method"] == name
        failed = mine & (tried["failure"] != "")
        if failed.any():
            first = tried["failure"][failed][0]
            lines.append(f"{failed.sum()} of {mine.sum()} settings of {name} failed: {first}")
    return lines


def _scored(task: Task, truth: Floats, found: Outcome) -> Scores:
    spec = SPECS.get(task.name)
    year = spec.year if spec else 2022
    scores = score_runs(truth, found.runs, size=task.size, ordinal=task.ordinal, year=year)
    return replace(scores, faults={**scores.faults, **found.failures})
