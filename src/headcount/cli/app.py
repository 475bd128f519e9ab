"""The commands; each is a thin layer over the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headcount.cli import lab, lequa, study, submit, tables

app = typer.Typer(
    help="Not which, but how many: class shares of unlabelled data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


for command in (tables.fit, tables.estimate, tables.report, tables.monitor):
    app.command()(command)
app.add_typer(study.app, name="study")
app.add_typer(lequa.app, name="lequa")
lequa.app.command()(submit.submit)
app.add_typer(lab.app, name="lab")


@app.callback()
def headcount() -> None:
    """Not which, but how many: class shares of unlabelled data."""


@app.command()
def demo(
    bags: Annotated[int, typer.Option(help="Bags drawn from each data set.", min=1)] = 2000,
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0, max=2**32 - 1)] = 0,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path(
        "headcount-demo"
    ),
) -> None:
    """Compare all methods on scikit-learn's data, then run a small LeQua lab; ends in a page."""
    from headcount.cli.demo import run

    run(n_bags=bags, seed=seed, folder=output)


@app.command()
def version() -> None:
    """Print the version."""
    from headcount import __version__

    typer.echo(f"headcount {__version__}")
