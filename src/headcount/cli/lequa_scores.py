"""`headcount lequa check`, `score` and `overview`: what came in, and how good it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from headcount.lequa.board import Scores
    from headcount.lequa.task import Task


def check(
    run: Annotated[Path, typer.Argument(help="File of estimated prevalences.")],
    task: Annotated[str, typer.Option(help="Official name (T1A), or the task's folder.")],
    split: Annotated[str, typer.Option(help="dev or test.")] = "test",
) -> None:
    """List every fault of a run; exit code 1 if there are any."""
    from headcount.exceptions import InputError, choose
    from headcount.lequa.runs import check_run

    choose("split", split, ["dev", "test"])
    rules = _rules(task)
    if split not in rules.counts:
        raise InputError(f"{task} has no {split} samples.")
    n_classes, n_samples = rules.n_classes, rules.counts[split]
    faults = check_run(run, n_classes, n_samples)
    for fault in faults:
        typer.echo(f"{run.name}: {fault}")
    if faults:
        raise typer.Exit(1)
    typer.echo(f"{run.name} is a valid run: {n_samples:,} samples, {n_classes} classes.")


def score(
    task: Annotated[str, typer.Argument(help="Official name (T1A), or the task's folder.")],
    truth: Annotated[Path, typer.Argument(help="File of true prevalences.")],
    runs: Annotated[list[Path], typer.Argument(help="Files of estimates.")],
    official: Annotated[
        bool, typer.Option("--official", help="Print what the official script prints.")
    ] = False,
    table: Annotated[str, typer.Option(help="text, markdown, latex or html.")] = "text",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file.")] = None,
) -> None:
    """Score runs: mean and deviation, ranked, with marks and pairwise tests.

    Runs with faults are listed, the others scored; the exit code is then 1.
    """
    from headcount._core.files import write_text
    from headcount.exceptions import choose
    from headcount.lequa.score import score_runs

    choose("kind of table", table, ["text", "markdown", "latex", "html"])
    names = _run_names(runs, whole=official)
    rules = _rules(task)
    true = _checked_truth(truth, task, rules)
    scores = score_runs(
        true,
        dict(zip(names, runs, strict=True)),
        size=rules.size,
        ordinal=rules.ordinal,
        year=rules.year,
    )
    if official:
        text = "\n".join(scores.official(name) for name in names if name not in scores.faults)
    elif table == "html":
        text = scores.to_html(f"{Path(task).name}: scores", training=rules.training)
    else:
        text = {"text": _words(scores), "markdown": scores.to_markdown()}.get(
            table, scores.to_latex()
        )
    if output is None:
        typer.echo(text)
    else:
        write_text(output, text + "\n")
        typer.echo(f"Wrote {output}")
    seen = output is None and not official and table in ("text", "markdown")
    for line in [] if seen else scores.fault_lines():
        typer.echo(line, err=True)
    if scores.faults:
        raise typer.Exit(1)


def overview(
    tasks: Annotated[list[Path], typer.Argument(help="Folders of the lab's tasks.")],
    runs: Annotated[
        Path, typer.Option(help="Folder with a folder of run files for each task, such as T1A.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Page to write.")] = Path(
        "lab.html"
    ),
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Results of the lab",
) -> None:
    """Write one page for all tasks: data, teams by task, tables, tests and figures."""
    from headcount._core.files import write_text
    from headcount.lequa.opening import open_task
    from headcount.lequa.page import TaskResult, lab_page
    from headcount.lequa.score import score_runs

    results, bad = [], False
    for path in tasks:
        opened = open_task(path)
        files = _run_files(runs / opened.name)
        truth = _gold_of(opened)
        year = _rules(str(path)).year
        scores = score_runs(truth, files, size=opened.size, ordinal=opened.ordinal, year=year)
        for line in scores.fault_lines():
            typer.echo(f"{opened.name}: {line}", err=True)
            bad = True
        results.append(TaskResult(opened, scores))
    write_text(output, lab_page(results, title))
    typer.echo(f"Wrote {output}")
    if bad:
        raise typer.Exit(1)


def _run_files(folder: Path) -> dict[str, Path]:
    """Runs of one task by name; ``runs/`` inside, as baselines leaves it, counts too."""
    from headcount.exceptions import InputError

    kinds = (".csv", ".txt", ".zip", ".gz")
    found = {}
    for home in (folder, folder / "runs"):
        for path in sorted(home.glob("*")) if home.is_dir() else ():
            if path.is_file() and path.suffix in kinds and not path.name.startswith("."):
                found[_stem(path)] = path
    if not found:
        raise InputError(f"there are no runs in {str(folder)!r}: one CSV file a run is expected.")
    return found


def _gold_of(task: Task) -> Any:
    from headcount.exceptions import InputError

    truth = task.truth("test")
    if truth is None:
        raise InputError(
            f"the gold of {task.name} is not there: put test_prevalences.txt into "
            f"gold/{task.name} beside the task's folder."
        )
    return truth


def _stem(path: Path) -> str:
    """Name of a run: that of its file without endings such as .csv.gz."""
    name = path.name
    for ending in (".gz", ".zip", ".csv", ".txt"):
        name = name.removesuffix(ending)
    return name or path.name


def _run_names(runs: list[Path], *, whole: bool) -> list[str]:
    from headcount.exceptions import InputError

    names = [str(path) for path in runs]
    if len(set(names)) < len(names):
        raise InputError("a run is given twice.")
    short = [_stem(path) for path in runs]
    return short if not whole and len(set(short)) == len(short) else names


def _checked_truth(path: Path, task: str, rules: _Rules) -> Any:
    """True prevalences from a file, which must fit the task."""
    from headcount.exceptions import InputError
    from headcount.lequa.runs import read_run

    true = read_run(path)
    counts = sorted(set(rules.counts.values()))
    if true.shape[1] != rules.n_classes or (len(true) not in counts and Path(task).exists()):
        raise InputError(
            f"{path.name} has {len(true)} samples of {true.shape[1]} classes, and {task} has "
            f"{' or '.join(map(str, counts))} of {rules.n_classes}."
        )
    return true


def _words(scores: Scores) -> str:
    """The board as text, with the pairwise tests below it."""
    from headcount.inference.significance import LEGEND

    if len(scores.runs) < 2 or len(next(iter(scores.errors.values()))[scores.runs[0]]) < 2:
        return str(scores)
    tests = scores.pairwise()
    lines = [
        f"{tests['method'][i]} - {tests['other'][i]}: {tests['difference'][i]:+.5f}, "
        f"p = {tests['p_holm'][i]:.2g}"
        + (f" (by ranks {tests['better'][i]} is better)" if tests["conflict"][i] else "")
        for i in range(tests.n_rows)
    ]
    first = next(iter(scores.errors)).upper()
    title = f"Wilcoxon signed-rank tests by {first}, Holm's correction:"
    return "\n".join([str(scores), f"{LEGEND}\n", title, *lines])


class _Rules(NamedTuple):
    """What runs of a task must look like, and how they are scored."""

    n_classes: int
    size: int
    ordinal: bool
    year: int
    counts: dict[str, int]  # samples of dev and test
    training: Any = None  # prevalences of the labelled items, if they are at hand


def _rules(task: str) -> _Rules:
    """Rules of a task's folder, or of an official task; a folder of that name comes first."""
    import numpy as np

    from headcount.exceptions import InputError
    from headcount.lequa.opening import open_task
    from headcount.lequa.tasks import SPECS

    if Path(task).exists():
        opened = open_task(task)
        found = {"dev": opened.dev, "test": opened.test}
        counts = {split: len(s.bags) for split, s in found.items() if s is not None}
        year = SPECS[opened.name].year if opened.name in SPECS else 2022
        shares = np.bincount(opened.train.y, minlength=opened.n_classes) / len(opened.train.y)
        return _Rules(opened.n_classes, opened.size, opened.ordinal, year, counts, shares)
    if task not in SPECS:
        raise InputError(f"{task!r} is neither a task's folder nor one of {', '.join(SPECS)}.")
    spec = SPECS[task]
    counts = {"dev": spec.n_dev, "test": spec.n_test}
    return _Rules(spec.n_classes, spec.size, spec.ordinal, spec.year, counts)
