"""The database: SQLite with one writer at a time, or PostgreSQL; and its migrations."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from headcount.exceptions import HeadcountError

LOCK = 7_294_021  # PostgreSQL's advisory lock for migrations; any number of our own


class Database:
    """Transactions on the site's database.

    Parameters
    ----------
    url : str
        In SQLAlchemy's form.
    """

    def __init__(self, url: str):
        self.url = url
        self.engine = make_engine(url)
        self._writing = self.engine.execution_options(headcount_write=True)
        self._reading = self.engine
        if not self.is_sqlite:  # SQLite's transactions see one state anyway
            self._reading = self.engine.execution_options(isolation_level="REPEATABLE READ")

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A transaction that sees one state of the database and changes nothing."""
        with Session(self._reading, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction that is kept whole at the end, or not at all if an error comes."""
        with Session(self._writing, expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def make_engine(url: str) -> Engine:
    """An engine whose SQLite connections use a write-ahead log and honour foreign keys."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return create_engine(
            parsed, hide_parameters=True, pool_size=10, max_overflow=20, pool_pre_ping=True
        )
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        parsed,
        hide_parameters=True,
        connect_args={"timeout": 30},
        pool_size=20,
        max_overflow=40,
        pool_timeout=60,
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, record: object) -> None:  # noqa: ARG001
    connection.isolation_level = None  # we say BEGIN ourselves
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "foreign_keys=ON", "synchronous=FULL"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get("headcount_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def migrate(database: Database, revision: str = "head") -> None:
    """Bring the tables to a revision; processes that start at once wait for each other."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with _connect(database) as connection:
        if not database.is_sqlite:
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": LOCK})
            connection.commit()
        try:
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
            connection.commit()
        finally:
            if not database.is_sqlite:
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": LOCK})
                connection.commit()


def _connect(database: Database) -> Connection:
    try:
        return database.engine.connect()
    except OperationalError as error:
        raise HeadcountError(f"cannot open the database: {str(error.orig).strip()}") from None


def is_full(error: BaseException) -> bool:
    """Whether an error of the database says that the disk is full."""
    cause: Any = getattr(error, "orig", error)
    if isinstance(cause, sqlite3.OperationalError):
        return cause.sqlite_errorcode in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
    return getattr(cause, "sqlstate", "") == "53100"
