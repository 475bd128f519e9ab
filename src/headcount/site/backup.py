"""Backups: all tables as they were at one moment, in one file, for either kind of database."""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path

from sqlalchemy import Connection, func, insert, select, text

from headcount import __version__
from headcount._core.files import write_whole
from headcount.exceptions import InputError
from headcount.site.database import Database, migrate
from headcount.site.lab import hash_file
from headcount.site.models import Base

ROWS_PER_COPY = 50  # copied at once; runs are large
TABLES = "site.db"


def back_up(database: Database, path: Path) -> dict[str, int]:
    """Write a consistent copy while the site runs; gives the number of rows of each table."""
    if path.exists():
        raise InputError(f"{str(path)!r} exists; give another name.")
    with tempfile.TemporaryDirectory(dir=_folder(path)) as folder:
        copy = Database(f"sqlite:///{Path(folder) / TABLES}")
        migrate(copy)
        counts = copy_rows(database, copy)
        copy.close()
        manifest = {
            "headcount": __version__,
            "rows": counts,
            "sha256": hash_file(Path(folder) / TABLES),
        }

        def write(beside: Path) -> None:
            with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                archive.write(Path(folder) / TABLES, TABLES)
                archive.writestr("manifest.json", json.dumps(manifest, indent=1))

        write_whole(path, write)
    return counts


def restore(path: Path, database: Database) -> dict[str, int]:
    """Fill an empty database from a backup, which may be of an older version."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                manifest = json.loads(archive.read("manifest.json"))
                archive.extract(TABLES, folder)
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise InputError(f"{str(path)!r} is not a backup: {error}.") from None
        if hash_file(Path(folder) / TABLES) != manifest.get("sha256"):
            raise InputError(f"{str(path)!r} is damaged: its checksum is wrong.")
        copy = Database(f"sqlite:///{Path(folder) / TABLES}")
        migrate(copy)
        migrate(database)
        with database.reading() as session:
            taken = [
                t.name
                for t in Base.metadata.sorted_tables
                if session.scalar(select(func.count()).select_from(t))
            ]
        if taken:
            raise InputError(
                f"the database is not empty ({', '.join(taken)}): restore into a new one."
            )
        counts = copy_rows(copy, database)
        copy.close()
    return counts


def copy_rows(source: Database, target: Database) -> dict[str, int]:
    """Copy every row of every table, as the source is at one moment, in one transaction."""
    counts = {}
    with source.reading() as reading, target.writing() as writing:
        for table in Base.metadata.sorted_tables:
            counts[table.name] = 0
            rows = reading.execute(select(table).execution_options(yield_per=ROWS_PER_COPY))
            for part in rows.mappings().partitions(ROWS_PER_COPY):
                writing.execute(insert(table), [dict(row) for row in part])
                counts[table.name] += len(part)
        if not target.is_sqlite:
            _set_sequences(writing.connection())
    return counts


def _set_sequences(connection: Connection) -> None:
    """New rows get numbers after the copied ones."""
    for table in Base.metadata.sorted_tables:
        if "id" in table.columns:
            connection.execute(
                text(
                    f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), "
                    f"greatest((SELECT max(id) FROM {table.name}), 1))"
                )
            )


def _folder(path: Path) -> Path:
    path.absolute().parent.mkdir(parents=True, exist_ok=True)
    return path.absolute().parent
