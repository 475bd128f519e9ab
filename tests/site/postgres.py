"""A PostgreSQL server for tests: Debian's package, started in a folder of its own."""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest


def find_programs():
    """Folder of the server's programs; installed by `make test-site` where it may."""
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if homes:
        return homes[-1]
    found = shutil.which("initdb")
    if found is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    return Path(found).parent


class Server:
    """Databases on demand."""

    def __init__(self, port):
        self.port = port

    def url(self, name):
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{name}"

    def run(self, command):
        address = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(command)

    def create(self):
        name = f"t{secrets.token_hex(6)}"
        self.run(f"CREATE DATABASE {name}")
        return name

    def drop(self, name):
        self.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def start_postgres():
    """A running server; as root it runs as the user postgres, since it refuses root."""
    programs = find_programs()
    with tempfile.TemporaryDirectory(prefix="headcount-") as folder:
        yield from _run(programs, Path(folder))


def _run(programs, folder):
    data = folder / "data"
    prefix = []
    if os.geteuid() == 0:
        if shutil.which("runuser") is None:
            pytest.skip("PostgreSQL does not run as root, and runuser is missing")
        prefix = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
    port = free_port()

    def call(*words):
        subprocess.run([*prefix, *words], check=True, capture_output=True, text=True, cwd="/")

    call(programs / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c max_connections=400"
    log = folder / "log"
    call(programs / "pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start")
    try:
        yield Server(port)
    finally:
        call(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")
