"""`headcount lab`: host a shared task on a site of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from headcount.site.database import Database
    from headcount.site.settings import Settings

app = typer.Typer(help="Host a shared task: a site for its participants.", no_args_is_help=True)
admin = typer.Typer(help="Look after a site from the terminal.", no_args_is_help=True)
app.add_typer(admin, name="admin")

Data = Annotated[Path | None, typer.Option(help="Folder of the site.")]
DatabaseUrl = Annotated[
    str | None, typer.Option(help="postgresql://user:password@host/name; SQLite in --data if none.")
]
Config = Annotated[Path | None, typer.Option(help="TOML file of settings.")]


@app.command()
def serve(
    lab: Annotated[Path | None, typer.Argument(help="Folder of the tasks.")] = None,
    data: Data = None,
    database: DatabaseUrl = None,
    config: Config = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 8000.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; 1.")] = None,
    url: Annotated[str | None, typer.Option(help="Address that participants see.")] = None,
) -> None:
    """Serve the tasks that `headcount lequa build` made, until stopped."""
    given = {"lab": lab, "data": data, "database": database, "host": host, "port": port}
    given |= {"workers": workers, "url": url}
    if url is None and port is not None:
        given["url"] = f"http://{host or '127.0.0.1'}:{port}"
    settings = _settings(given, config)
    from headcount.site.server import serve as run

    run(settings, typer.echo)


@admin.command()
def organiser(
    name: Annotated[str, typer.Argument(help="Name to log in by.")],
    data: Data = None,
    database: DatabaseUrl = None,
    config: Config = None,
    password: Annotated[
        bool, typer.Option("--stdin", help="Read the password from standard input.")
    ] = False,
) -> None:
    """Add an organiser; the password is asked for."""
    from headcount.site.accounts import add_user
    from headcount.site.clock import now
    from headcount.site.forms import Registration, parse

    if password:
        secret = sys.stdin.readline().rstrip("\n")
    else:
        secret = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    given = parse(Registration, {"name": name, "password": secret})
    with _open(data, database, config).writing() as session:
        add_user(session, now(), name=given.name, password=given.password, role="organiser")
    typer.echo(f"{given.name} can log in and organise.")


@admin.command()
def invite(
    data: Data = None,
    database: DatabaseUrl = None,
    config: Config = None,
    role: Annotated[str, typer.Option(help="participant or organiser.")] = "participant",
    uses: Annotated[int, typer.Option(help="How many people.", min=1)] = 1,
    days: Annotated[int, typer.Option(help="How long it lasts.", min=1)] = 30,
) -> None:
    """Print a code by which people register, whatever the rules of the lab say."""
    from headcount.exceptions import choose
    from headcount.site import accounts
    from headcount.site.clock import now

    choose("role", role, ["participant", "organiser"])
    with _open(data, database, config).writing() as session:
        code = accounts.invite(session, now(), by=None, role=role, uses=uses, days=days)
    typer.echo(code)


@admin.command()
def reset(
    name: Annotated[str, typer.Argument(help="Whose password.")],
    data: Data = None,
    database: DatabaseUrl = None,
    config: Config = None,
) -> None:
    """Print a code by which someone sets a new password, on the page /reset."""
    from headcount.exceptions import InputError
    from headcount.site import accounts
    from headcount.site.clock import now

    with _open(data, database, config).writing() as session:
        user = accounts.find_user(session, name)
        if user is None:
            raise InputError(f"there is no user {name!r}.")
        code = accounts.invite(session, now(), by=None, days=2, resets=user)
    typer.echo(code)


@admin.command()
def backup(
    output: Annotated[Path, typer.Argument(help="Zip file to write.")],
    data: Data = None,
    database: DatabaseUrl = None,
    config: Config = None,
) -> None:
    """Write a consistent copy of everything, while the site runs."""
    from headcount.site.backup import back_up

    counts = back_up(_open(data, database, config, migrate_first=False), output)
    typer.echo(f"Wrote {output}: {counts['runs']:,} runs, {counts['teams']:,} teams.")


@admin.command()
def restore(
    source: Annotated[Path, typer.Argument(help="Zip file of a backup.")],
    data: Data = None,
    database: DatabaseUrl = None,
    config: Config = None,
) -> None:
    """Fill a new site from a backup; it may have another kind of database."""
    from headcount.site.backup import restore as fill

    counts = fill(source, _open(data, database, config))
    typer.echo(f"Restored {counts['runs']:,} runs, {counts['teams']:,} teams.")


@admin.command()
def rescore(
    task: Annotated[str, typer.Argument(help="Name of the task.")],
    gold: Annotated[Path, typer.Argument(help="Corrected prevalences.")],
    note: Annotated[str, typer.Option(help="What was wrong; everyone sees it.")],
    lab: Annotated[Path | None, typer.Option(help="Folder of the tasks.")] = None,
    split: Annotated[str, typer.Option(help="dev or test.")] = "test",
    data: Data = None,
    database: DatabaseUrl = None,
    config: Config = None,
) -> None:
    """Score all runs again after a correction of the gold."""
    from headcount.exceptions import InputError
    from headcount.site.context import Site
    from headcount.site.scoring import correct_gold

    if not gold.is_file():
        raise InputError(f"there is no file {str(gold)!r}.")
    site = Site(_settings({"lab": lab, "data": data, "database": database}, config))
    site.prepare()
    version, count = correct_gold(site, None, task, split, gold.read_bytes(), note)
    typer.echo(f"Version {version.version} of the gold of {task}; {count:,} runs scored again.")


def _settings(given: dict[str, Any], config: Path | None) -> Settings:
    from importlib.util import find_spec

    from headcount.exceptions import HeadcountError
    from headcount.site.settings import read_settings

    needed = ("fastapi", "uvicorn", "jinja2", "sqlalchemy", "alembic", "argon2", "multipart")
    if not all(find_spec(name) for name in needed):
        raise HeadcountError("the site needs more packages: pip install 'headcount[site]'.")
    return read_settings(given, config)


def _open(
    data: Path | None, database: str | None, config: Path | None, *, migrate_first: bool = True
) -> Database:
    """The database of a site; a new one gets its tables."""
    from headcount.exceptions import InputError

    settings = _settings({"lab": Path(), "data": data, "database": database}, config)
    from headcount.site.database import Database, migrate

    opened = Database(settings.database_url)
    if migrate_first:
        migrate(opened)
    elif (
        opened.is_sqlite and settings.database is None and not (settings.data / "site.db").is_file()
    ):
        raise InputError(f"there is no site in {str(settings.data)!r}.")
    return opened
