"""Pages of results: one task, or the whole lab as its overview shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from headcount._core.types import Floats
from headcount.lequa.board import Scores, section, task_page
from headcount.lequa.task import Task
from headcount.lequa.tasks import SPECS, is_baseline
from headcount.report.page import frame_table, page, published


@dataclass(frozen=True, eq=False)
class TaskResult:
    """Scores of one task, with what the page says about its data."""

    task: Task
    scores: Scores

    @property
    def training(self) -> Floats:
        """Share of each class among the labelled items."""
        y = self.task.train.y
        return np.asarray(np.bincount(y, minlength=self.task.n_classes) / len(y))


def result_page(result: TaskResult, title: str) -> str:
    """Page of one task with a description of its data and the published results, if any."""
    task = result.task
    more = published_beside(task, result.scores) + "<h2>Data</h2>" + data_table([task])
    return task_page(result.scores, title, more, result.training, task.classes)


def lab_page(results: Sequence[TaskResult], title: str) -> str:
    """One page for the tasks of a lab: its data, who took part in what, and all results."""
    links = "".join(f"<a href='#{escape(r.task.name)}'>{escape(r.task.name)}</a>" for r in results)
    parts = [
        f"<h1>{escape(title)}</h1><nav>{links}</nav><h2>Data</h2>",
        data_table([r.task for r in results]),
        "<h2>Teams by task</h2>",
        teams_table({r.task.name: r.scores for r in results}),
    ]
    for result in results:
        name = escape(result.task.name)
        beside = published_beside(result.task, result.scores)
        parts.append(f"<section id='{name}'><h2>{name}: {escape(_kind(result.task))}</h2>")
        classes = result.task.classes
        body = section(result.scores, beside, result.training, classes, level=3)
        parts.append(body + "</section>")
    return page(title, "\n".join(parts))


def teams_table(scores: dict[str, Scores]) -> str:
    """Which team sent a run for which task; baselines are no teams."""
    runs = [run for each in scores.values() for run in [*each.runs, *each.faults]]
    teams = sorted({run for run in runs if not is_baseline(run)}, key=str.casefold)
    if not teams:
        return "<p class=note>Only baselines were run.</p>"
    rows = [
        [
            team,
            *[
                "x" if team in s.runs else "failed" if team in s.faults else ""
                for s in scores.values()
            ],
        ]
        for team in teams
    ]
    return frame_table(["team", *scores], rows)


def data_table(tasks: Sequence[Task]) -> str:
    """Sizes of the tasks, and the shares of their classes among the labelled items."""
    header = ["task", "items", "classes", "labelled", "dev samples", "test samples", "items each"]
    rows = []
    for task in tasks:
        counts = [f"{len(s.bags):,}" if s is not None else "-" for s in (task.dev, task.test)]
        items = "texts" if task.form == "text" else f"vectors of {task.columns}"
        labelled = f"{len(task.train.y):,}"
        rows.append([task.name, items, str(task.n_classes), labelled, *counts, f"{task.size:,}"])
    shares = "".join(_shares(task) for task in tasks)
    return (
        frame_table(header, rows)
        + "<details><summary>Classes and their shares among the labelled items</summary>"
        + shares
        + "</details>"
    )


def published_beside(task: Task, scores: Scores) -> str:
    """HTML of the lab's published results beside ours, if this is (of the size of) that task."""
    spec = SPECS.get(task.name)
    if spec is None or spec.year != 2022 or task.built:
        return ""
    if (len(task.samples("test").bags), task.size) != (spec.n_test, spec.size):
        return ""
    table = published("lequa2022")
    assert table is not None  # it comes with the package
    rows: list[list[str]] = []
    slanted: set[int] = set()
    ours = scores.errors
    for i in np.flatnonzero(table["task"] == task.name):
        name = str(table["run"][i])
        mine = [f"{ours[m][name].mean():.5f}" if name in ours[m] else "—" for m in ("rae", "ae")]
        if is_baseline(name):
            slanted.add(len(rows))
        rows.append([name, f"{table['rae'][i]:.5f}", mine[0], f"{table['ae'][i]:.5f}", mine[1]])
    header = ["run", "published RAE", "ours", "published AE", "ours"]
    note = (
        f"<h4>Published results</h4><p class=note>Of the lab on its own {escape(task.name)} data; "
        "they compare with ours if these are the same data.</p>"
    )
    return note + frame_table(header, rows, italic=slanted)


def _shares(task: Task) -> str:
    share = np.bincount(task.train.y, minlength=task.n_classes) / len(task.train.y)
    rows = [[name, str(c), f"{share[c]:.4f}"] for c, name in enumerate(task.classes)]
    return f"<h4>{escape(task.name)}</h4>" + frame_table(["class", "code", "share"], rows)


def _kind(task: Task) -> str:
    kind = "ordinal" if task.ordinal else "two classes" if task.n_classes == 2 else ""
    return f"{task.form}s, {kind or f'{task.n_classes} classes'}"
