"""`headcount lequa submit`: send a run to a lab's site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


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
    for measure, score in sent["scores"].items():
        typer.echo(f"{measure.upper()}: {score['mean']:.5f} ± {score['sd']:.5f}")
