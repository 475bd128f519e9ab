"""The commands; each is a thin layer over the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headcount.cli.lab import app as lab_app
from headcount.cli.lequa import app as lequa_app
from headcount.cli.study import app as study_app
from headcount.cli.tables import estimate, fit, monitor, report

app = typer.Typer(
    help="Not which, but how many: class shares of unlabelled data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


for command in (fit, estimate, report, monitor):
    app.command()(command)
app.add_typer(study_app, name="study")
app.add_typer(lequa_app, name="lequa")
app.add_typer(lab_app, name="lab")


@app.callback()
def headcount() -> None:
    """Not which, but how many: class shares of unlabelled data."""


@app.command()
def example(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path("."),
    seed: Annotated[int, typer.Option(help="Seed of the made-up texts.", min=0)] = 0,
) -> None:
    """Write a small corpus to try the commands on: messages of eighteen months, made up by rule."""
    from headcount.tables.example import write_example

    labelled, messages = write_example(output, seed)
    model = output / "model.hc"
    typer.echo(
        f"Wrote {labelled} (messages with their kind) and {messages} (of eighteen months).\n"
        f"Now: headcount fit {labelled} --text message --label kind -o {model}\n"
        f"     headcount estimate {model} {messages} --by month:date --only complaint\n"
        f"     headcount report {model} {messages} --by month:date -o {output / 'report.html'}"
    )


@app.command()
def demo(
    bags: Annotated[int, typer.Option(help="Bags drawn from each data set.", min=1)] = 2000,
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0, max=2**32 - 1)] = 0,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path(
        "headcount-demo"
    ),
) -> None:
    """Complaints month by month, all methods compared, a small LeQua lab; ends in a page."""
    from headcount.cli.demo import run

    run(n_bags=bags, seed=seed, folder=output)


@app.command()
def version() -> None:
    """Print the version."""
    from headcount import __version__

    typer.echo(f"headcount {__version__}")
