"""`headcount lequa`: run a quantification shared task, or take part in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headcount.cli.lequa_scores import check, overview, score

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
    max_reuse: Annotated[
        int | None, typer.Option(help="Test samples that an item may be in.", min=1)
    ] = None,
    leak_limit: Annotated[
        float,
        typer.Option(
            help="Share of the error that an attack on shared items may take off; 1: any.",
            min=0,
            max=1,
        ),
    ] = 0.1,
    near: Annotated[
        float, typer.Option(help="Overlap of texts that are nearly equal.", min=0.1, max=1)
    ] = 0.8,
    seed: Annotated[
        int | None, typer.Option(help="Of the split and the dev samples; fresh otherwise.", min=0)
    ] = None,
    secret: Annotated[
        int | None, typer.Option(help="Of the test samples; keep it. Fresh otherwise.", min=0)
    ] = None,
) -> None:
    """Build a task from a corpus: vectors (T1) and texts (T2) of the same items, gold apart.

    Refused if the test samples share so many items that the gold can be worked out from them.
    """
    from headcount.data import read_table
    from headcount.exceptions import InputError, choose
    from headcount.lequa.build import SENTIMENT, Recipe, build_lab
    from headcount.lequa.opening import open_task

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
        max_reuse=max_reuse,
        leak_limit=leak_limit,
        near=near,
        seed=seed,
        secret=secret,
    )
    wanted = [text, label, *([helpful] if helpful else [])]
    frame = read_table(corpus, list(dict.fromkeys(wanted)))
    folders = build_lab(
        frame, output, recipe, official=layout == "official", zips=zips, tell=typer.echo
    )
    for folder in folders:
        shown = repr(open_task(folder)) if layout == "compact" else str(folder / "public")
        typer.echo(shown)
    typer.echo(
        f"Tasks in {output}; the truth about the test samples, and the seeds they were drawn with, "
        f"are apart, in {output}/gold: publish it after the deadline, and not before."
    )


@app.command()
def leak(
    task: Task,
    gold: Gold = None,
    vectorizer: Vectorizer = "tfidf",
    limit: Annotated[float, typer.Option(help="Share of the error; above it, exit code 1.")] = 0.1,
) -> None:
    """Measure how much the items that test samples share give away about the gold."""
    from headcount.lequa.opening import open_task
    from headcount.lequa.solve import measure_leak

    found = measure_leak(open_task(task, gold), vectorizer)
    typer.echo(f"{found}.")
    if found.share > limit:
        raise typer.Exit(1)


@app.command()
def convert(
    task: Task,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the new form.")],
) -> None:
    """Convert a task: compact to the official layout, official to compact."""
    import shutil

    from headcount.exceptions import InputError
    from headcount.lequa.opening import open_task
    from headcount.lequa.publish import write_official

    if output.exists():
        raise InputError(f"{str(output)!r} exists; give another folder.")
    opened = open_task(task)
    if opened.folder == task:
        write_official(opened, output)
    else:
        shutil.copytree(opened.folder, output, ignore=shutil.ignore_patterns("stamps.json"))
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
    from headcount.lequa.opening import open_task
    from headcount.lequa.runs import write_run
    from headcount.lequa.score import score_runs
    from headcount.lequa.solve import solve
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
    defaults: Annotated[bool, typer.Option(help="Run our own defaults too.")] = True,
    vectorizer: Vectorizer = "tfidf",
    encoder: Annotated[
        str | None,
        typer.Option(help="For tasks of texts: a second set of rows, on this model (a path)."),
    ] = None,
    neural: Annotated[
        bool, typer.Option("--neural", help="Run QuaNet and UniOviedo (Team1) too; needs torch.")
    ] = False,
    jobs: Jobs = -1,
    to: Annotated[str | None, typer.Option("--to", help="Post the runs to a lab's site.")] = None,
    token: Annotated[
        str | None, typer.Option(envvar="HEADCOUNT_TOKEN", help="Of an organiser, for --to.")
    ] = None,
) -> None:
    """Run all baselines of the lab and write the results page; goes on where it stopped.

    Methods that failed are listed with the reason; the exit code is then 1.
    """
    from headcount.exceptions import InputError
    from headcount.inference.significance import LEGEND
    from headcount.lequa.opening import open_task
    from headcount.lequa.solve import run_baselines

    if to is not None and token is None:
        raise InputError("a token is needed to post runs: give it by --token or HEADCOUNT_TOKEN.")
    opened = open_task(task, gold)
    typer.echo(repr(opened), err=True)
    try:
        found = run_baselines(
            opened,
            output,
            systems=systems,
            defaults=defaults,
            vectorizer=vectorizer,
            encoder=encoder,
            neural=neural,
            n_jobs=jobs,
            progress=True,
        )
    except KeyboardInterrupt:
        typer.echo("\nStopped. Run the same command again: it goes on where it was.", err=True)
        raise typer.Exit(130) from None
    if found.scores is not None:
        typer.echo(f"{found.scores}\n{LEGEND}")
        typer.echo(f"\nRuns in {output / 'runs'}; the page: {output / 'results.html'}")
    elif found.runs:
        typer.echo(f"Runs in {output / 'runs'}. Without the gold there is nothing to score.")
    if to is not None and token is not None:
        from headcount.site.client import post_baselines

        post_baselines(output, opened.name, to, token, typer.echo)
    for name, why in found.failures.items():
        typer.echo(f"failed: {name}: {why}", err=True)
    for note in found.notes:
        typer.echo(f"note: {note}", err=True)
    if found.failures:
        raise typer.Exit(1)


def submit(
    run: Annotated[Path, typer.Argument(help="File of estimated prevalences.")],
    to: Annotated[str, typer.Option("--to", help="Address of the lab's site.")],
    task: Annotated[str, typer.Option(help="Name of the task, such as T1A.")],
    token: Annotated[
        str | None, typer.Option(envvar="HEADCOUNT_TOKEN", help="From the site's page of tokens.")
    ] = None,
    description: Annotated[str, typer.Option(help="What the run is.")] = "",
    tags: Annotated[str, typer.Option(help="Of the method, such as 'SLD, bcts'.")] = "",
    phase: Annotated[int | None, typer.Option(help="Number of the phase, if several.")] = None,
) -> None:
    """Check a run here, then send it; exit code 1 if there are faults."""
    from headcount.exceptions import InputError
    from headcount.site.client import Client, RefusedError

    if not run.is_file():
        raise InputError(f"there is no file {str(run)!r}.")
    if token is None:
        raise InputError("give a token by --token or HEADCOUNT_TOKEN; the site's page makes one.")
    client = Client(to, token)
    faults = client.check(run, task, phase)
    if not faults:
        try:
            sent = client.submit(run, task, description=description, tags=tags, phase=phase)
        except RefusedError as error:
            if not error.faults:
                raise
            faults = error.faults
    for fault in faults:
        typer.echo(f"{run.name}: {fault}")
    if faults:
        raise typer.Exit(1)
    typer.echo(f"Run {sent['id']} is valid and scored: {sent['url']}")
    if sent["scores"] is None:
        typer.echo("The phase hides its scores for now.")
        return
    typer.echo(f"Rank {sent['rank']} of {sent['out_of']}")
    for measure, value in sent["scores"].items():
        typer.echo(f"{measure.upper()}: {value['mean']:.5f} ± {value['sd']:.5f}")


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


for _command in (check, score, overview, submit):
    app.command()(_command)
