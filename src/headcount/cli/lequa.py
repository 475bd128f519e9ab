"""`headcount lequa`: run a quantification shared task, or take part in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

app = typer.Typer(help="Build, check, score and solve shared tasks.", no_args_is_help=True)
Task = Annotated[Path, typer.Argument(help="Folder or zip file of the task.")]
Gold = Annotated[Path | None, typer.Option(help="True prevalences of the test samples.")]
Vectorizer = Annotated[
    str, typer.Option(help="For tasks of texts: tfidf, words, glove, learnt, minilm, a path.")
]


def _jobs(value: int) -> int:
    if value == 0:
        raise typer.BadParameter("0 processes do nothing; -1 means all cores.")
    return value


Jobs = Annotated[
    int, typer.Option("--jobs", "-j", help="Processes; -1: all cores.", callback=_jobs)
]


@app.command()
def fetch(
    edition: Annotated[str, typer.Argument(help="2022 or 2024.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the archives.")],
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    server: Annotated[str, typer.Option(help="Server of the record.")] = "https://zenodo.org",
) -> None:
    """Download the official archives, checked by size and checksum."""
    from headcount.lequa.fetch import fetch as get

    paths = get(edition, output, only=task, server=server, tell=typer.echo)
    typer.echo(f"{len(paths)} files in {output}")


@app.command()
def corpus(
    output: Annotated[Path, typer.Argument(help="Parquet file to write.")],
    n: Annotated[int, typer.Option("--size", help="Number of reviews.", min=1)] = 20_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Write a corpus of made-up reviews, to try the lab with."""
    from headcount._core.files import write_parquet
    from headcount.exceptions import InputError
    from headcount.lequa.corpus import make_corpus

    if output.suffix != ".parquet":
        raise InputError(
            f"the corpus is a Parquet file: call it {output.stem or 'corpus'}.parquet."
        )
    write_parquet(output, make_corpus(n, random_state=seed))
    typer.echo(f"Wrote {n:,} reviews to {output}: text, stars, category, helpful, date.")


@app.command()
def build(
    corpus: Annotated[Path, typer.Argument(help="CSV, Parquet or JSON lines of items.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the lab.")],
    text: Annotated[str, typer.Option(help="Column of texts.")] = "text",
    label: Annotated[str, typer.Option(help="Column of labels.")] = "label",
    sentiment: Annotated[
        bool, typer.Option("--sentiment", help="Labels are stars: 1-2 negative, 4-5 positive.")
    ] = False,
    labels: Annotated[
        str | None, typer.Option("--map", help="old=new,...; other labels are dropped.")
    ] = None,
    prevalence: Annotated[
        str | None, typer.Option(help="class=share,... of the training set; natural otherwise.")
    ] = None,
    helpful: Annotated[str | None, typer.Option(help="Column of votes; none: dropped.")] = None,
    min_length: Annotated[int, typer.Option(help="Characters of the shortest text.")] = 200,
    train: Annotated[int, typer.Option(help="Labelled items.")] = 5000,
    dev: Annotated[int, typer.Option(help="Development samples.")] = 1000,
    test: Annotated[int, typer.Option(help="Test samples.")] = 5000,
    size: Annotated[int, typer.Option(help="Items a sample.")] = 250,
    form: Annotated[str, typer.Option(help="vector, text or both.")] = "both",
    vectors: Annotated[str, typer.Option(help="learnt, or a file of word vectors.")] = "learnt",
    layout: Annotated[str, typer.Option("--format", help="compact or official.")] = "compact",
    zips: Annotated[bool, typer.Option("--zip", help="Zip files too (official format).")] = False,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Build a task from a corpus: vectors (T1) and texts (T2) of the same items, gold apart."""
    from headcount.data import read_table
    from headcount.exceptions import InputError, choose
    from headcount.lequa.build import SENTIMENT, Recipe, build_lab
    from headcount.lequa.task import open_task

    choose("format", layout, ["compact", "official"])
    choose("form", form, ["vector", "text", "both"])
    if zips and layout != "official":
        raise InputError("--zip needs --format official.")
    if sentiment and labels:
        raise InputError("give either --sentiment or --map.")
    recipe = Recipe(
        text=text,
        label=label,
        labels=SENTIMENT if sentiment else _pairs(labels, "--map"),
        helpful=helpful,
        min_length=min_length,
        n_train=train,
        n_dev=dev,
        n_test=test,
        size=size,
        prevalence=_shares(_pairs(prevalence, "--prevalence")),
        forms=("vector", "text") if form == "both" else (form,),
        vectors=vectors,
        seed=seed,
    )
    wanted = [text, label, *([helpful] if helpful else [])]
    frame = read_table(corpus, list(dict.fromkeys(wanted)))
    folders = build_lab(frame, output, recipe, official=layout == "official", zips=zips)
    for folder in folders:
        shown = repr(open_task(folder)) if layout == "compact" else str(folder / "public")
        typer.echo(shown)
    typer.echo(f"Tasks in {output}; the truth about the test samples is apart, in {output}/gold.")


@app.command()
def convert(
    task: Task,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the new form.")],
) -> None:
    """Convert a task: compact to the official layout, official to compact."""
    import shutil

    from headcount.exceptions import InputError
    from headcount.lequa.publish import write_official
    from headcount.lequa.task import open_task

    if output.exists():
        raise InputError(f"{str(output)!r} exists; give another folder.")
    opened = open_task(task)
    if opened.folder == task:
        write_official(opened, output)
    else:
        shutil.copytree(opened.folder, output, ignore=shutil.ignore_patterns("stamps.json"))
    typer.echo(f"Wrote {output}")


@app.command()
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


@app.command()
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
    """Score runs: mean and deviation, ranked, with marks and pairwise tests."""
    from headcount._core.files import write_text
    from headcount.exceptions import InputError, choose
    from headcount.inference.significance import LEGEND
    from headcount.lequa.runs import read_run
    from headcount.lequa.score import score_runs

    choose("kind of table", table, ["text", "markdown", "latex", "html"])
    names = [path.stem for path in runs]
    if len(set(names)) < len(names):
        names = [str(path) for path in runs]
    if len(set(names)) < len(names):
        raise InputError("a run is given twice.")
    if official:
        names = [str(path) for path in runs]
    true = read_run(truth)
    rules = _rules(task)
    counts = sorted(set(rules.counts.values()))
    if true.shape[1] != rules.n_classes or (len(true) not in counts and Path(task).exists()):
        raise InputError(
            f"{truth.name} has {len(true)} samples of {true.shape[1]} classes, and {task} has "
            f"{' or '.join(map(str, counts))} of {rules.n_classes}."
        )
    scores = score_runs(
        true,
        dict(zip(names, runs, strict=True)),
        size=rules.size,
        ordinal=rules.ordinal,
        year=rules.year,
    )
    if official:
        text = "\n".join(scores.official(name) for name in names)
    elif table == "html":
        text = scores.to_html(f"{Path(task).name}: scores")
    else:
        text = {"text": str(scores), "markdown": scores.to_markdown(), "latex": scores.to_latex()}[
            table
        ]
        if table == "text" and len(names) > 1:
            tests = scores.pairwise()
            lines = [
                f"{tests['method'][i]} - {tests['other'][i]}: {tests['difference'][i]:+.5f}, "
                f"p = {tests['p_holm'][i]:.2g}"
                for i in range(tests.n_rows)
            ]
            first = next(iter(scores.errors)).upper()
            title = f"Wilcoxon signed-rank tests by {first}, Holm's correction:"
            text += "\n".join([f"\n{LEGEND}\n", title, *lines])
    if output is None:
        typer.echo(text)
    else:
        write_text(output, text + "\n")
        typer.echo(f"Wrote {output}")


@app.command()
def run(
    task: Task,
    method: Annotated[str, typer.Option(help="Quantifier, such as SLD.")] = "SLD",
    calibrator: Annotated[str | None, typer.Option(help="Such as bcts or platt.")] = None,
    split: Annotated[str, typer.Option(help="dev or test.")] = "test",
    search: Annotated[bool, typer.Option(help="Choose C and class weights on dev.")] = True,
    vectorizer: Vectorizer = "tfidf",
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")] = Path(
        "run.csv"
    ),
    jobs: Jobs = -1,
) -> None:
    """Solve a task with one method and write a submission."""
    from headcount.exceptions import InputError, choose
    from headcount.lequa.runs import write_run
    from headcount.lequa.score import score_runs
    from headcount.lequa.solve import solve
    from headcount.lequa.task import open_task
    from headcount.selection.search import setting_text
    from headcount.study.build import quantifier_classes

    choose("split", split, ["dev", "test"])
    if output.is_dir():
        raise InputError(f"{str(output)!r} is a folder: give the name of a file by --output.")
    known = quantifier_classes()
    quantifier = known[choose("method", method, known)]()
    names = quantifier.get_params()
    if calibrator is not None:
        if "calibrator" not in names:
            raise InputError(f"{method} takes no calibrator.")
        quantifier.set_params(calibrator=calibrator)
    if "classifier" in names:
        from sklearn.linear_model import LogisticRegression

        quantifier.set_params(classifier=LogisticRegression(max_iter=1000))
    opened = open_task(task)
    estimates, chosen = solve(
        opened,
        quantifier,
        split=split,
        search=search,
        vectorizer=vectorizer,
        n_jobs=jobs,
        progress=True,
    )
    write_run(output, estimates)
    words = setting_text(chosen)
    typer.echo(
        f"Wrote {output}: {len(estimates):,} samples" + (f"; chosen {words}" if words else "")
    )
    if search and not words:
        typer.echo("No settings were searched: there is nothing to search, or no dev prevalences.")
    truth = opened.truth(split)
    if truth is not None:
        name = f"{method}-{calibrator}" if calibrator else method
        scores = score_runs(truth, {name: estimates}, size=opened.size, ordinal=opened.ordinal)
        found = opened.gold if split == "test" and opened.gold is not None else opened.folder
        typer.echo(f"Errors on the {split} samples, whose truth is in {found}:\n{scores}")


@app.command()
def baselines(
    task: Task,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for runs and results.")],
    gold: Gold = None,
    systems: Annotated[bool, typer.Option(help="Run the participants' systems too.")] = True,
    vectorizer: Vectorizer = "tfidf",
    jobs: Jobs = -1,
) -> None:
    """Run all baselines of the lab and write the results page; goes on where it stopped."""
    from headcount.inference.significance import LEGEND
    from headcount.lequa.solve import baselines as solve_all
    from headcount.lequa.task import open_task

    opened = open_task(task, gold)
    typer.echo(repr(opened), err=True)
    try:
        scores = solve_all(
            opened, output, systems=systems, vectorizer=vectorizer, n_jobs=jobs, progress=True
        )
    except KeyboardInterrupt:
        typer.echo("\nStopped. Run the same command again: it goes on where it was.", err=True)
        raise typer.Exit(130) from None
    if scores is None:
        typer.echo(f"Runs in {output / 'runs'}. Without the gold there is nothing to score.")
        return
    typer.echo(f"{scores}\n{LEGEND}")
    typer.echo(f"\nRuns in {output / 'runs'}; the page: {output / 'results.html'}")


def _pairs(text: str | None, option: str) -> dict[str, str] | None:
    from headcount.exceptions import InputError

    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not (k and sep and v) for k, sep, v in pairs):
        raise InputError(f"{option} must look like a=b,c=d; got {text!r}.")
    return {k.strip(): v.strip() for k, _, v in pairs}


def _shares(pairs: dict[str, str] | None) -> dict[str, float] | None:
    from headcount.exceptions import InputError

    if pairs is None:
        return None
    try:
        return {k: float(v) for k, v in pairs.items()}
    except ValueError:
        raise InputError(f"--prevalence must give numbers, got {pairs}.") from None


class _Rules(NamedTuple):
    """What runs of a task must look like, and how they are scored."""

    n_classes: int
    size: int
    ordinal: bool
    year: int
    counts: dict[str, int]  # samples of dev and test


def _rules(task: str) -> _Rules:
    """Rules of a task's folder, or of an official task; a folder of that name comes first."""
    from headcount.exceptions import InputError
    from headcount.lequa.task import open_task
    from headcount.lequa.tasks import SPECS

    if Path(task).exists():
        opened = open_task(task)
        found = {"dev": opened.dev, "test": opened.test}
        counts = {split: len(s.bags) for split, s in found.items() if s is not None}
        return _Rules(opened.n_classes, opened.size, opened.ordinal, 2022, counts)
    if task not in SPECS:
        raise InputError(f"{task!r} is neither a task's folder nor one of {', '.join(SPECS)}.")
    spec = SPECS[task]
    counts = {"dev": spec.n_dev, "test": spec.n_test}
    return _Rules(spec.n_classes, spec.size, spec.ordinal, spec.year, counts)
