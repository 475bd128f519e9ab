"""`headcount study`: write, run, watch and report studies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Compare methods on data sets and publish the result.", no_args_is_help=True)
Folder = Annotated[Path, typer.Argument(help="Folder of the study's results.")]


@app.command()
def new(
    name: Annotated[
        str, typer.Argument(help="Study to start from: small, tweets or temporal.")
    ] = "small",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write.")] = None,
) -> None:
    """Write a study that comes with the package, to run or to change."""
    from headcount._core.files import write_text
    from headcount.exceptions import InputError
    from headcount.study import example

    text = example(name)
    path = output or Path(f"{name}.toml")
    if path.exists():
        raise InputError(f"{str(path)!r} exists; give another name by --output.")
    write_text(path, text)
    typer.echo(f"Wrote {path}. Run it: headcount study run {path} -o {path.stem}/")


@app.command()
def run(
    config: Annotated[Path, typer.Argument(help="The study, a TOML file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")],
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Units at once; -1: all cores.")] = -1,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")] = None,
) -> None:
    """Run a study, or go on where it stopped."""
    from headcount.exceptions import InputError
    from headcount.inference.significance import LEGEND
    from headcount.report.study_page import study_table
    from headcount.study import load
    from headcount.study import run as run_study
    from headcount.study import status as study_status

    if jobs == 0:
        raise InputError("--jobs must not be 0.")
    study = load(config)
    for data in study.datasets:
        typer.echo(repr(data), err=True)
    try:
        results = run_study(study, output, n_jobs=jobs, dask=dask, progress=True)
    except KeyboardInterrupt:
        typer.echo(f"\nStopped. {study_status(output)}", err=True)
        raise typer.Exit(130) from None
    failed = results.failures()
    for line in failed:
        typer.echo(f"failed: {line}", err=True)
    for measure in results.measures:
        typer.echo(f"\n{study_table(results, measure)}")
    typer.echo(f"\n{LEGEND}")
    typer.echo(f"Results: {output / 'results.parquet'}. A page: headcount study report {output}")
    if failed:
        raise typer.Exit(1)


@app.command()
def status(folder: Folder) -> None:
    """Tell how far a study is."""
    from headcount.study import status as study_status

    typer.echo(str(study_status(folder)))


@app.command()
def report(
    folder: Folder,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Page to write; report.html inside.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="Print tables instead: text, markdown or latex.")
    ] = None,
) -> None:
    """Write a study's page: tables, tests, figures, and how it was run."""
    from headcount.exceptions import choose
    from headcount.report.study_page import study_table, write_page
    from headcount.study import Results

    results = Results.read(folder)
    if table is not None:
        choose("kind of table", table, ["text", "markdown", "latex"])
        for measure in results.measures:
            made = study_table(results, measure)
            text = {"text": str(made), "markdown": made.to_markdown(), "latex": made.to_latex()}
            typer.echo(text[table] + "\n")
        return
    path = output or folder / "report.html"
    write_page(results, path)
    typer.echo(f"Wrote {path}")
