"""A server in processes of its own, as an organiser runs it."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from postgres import free_port
from sqlalchemy import text

from headcount.site.accounts import SCOPES, Actor, add_user, make_token
from headcount.site.clock import now
from headcount.site.database import Database
from headcount.site.teams import create_team

PASSWORD = "correct horse battery"


class Server:
    """`headcount lab serve` on a free port; the log goes to a file."""

    def __init__(self, lab, data, database=None, **settings):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.data = Path(data)
        self.lab = lab
        self.database = database
        self.settings = {"uploads_per_minute": 100_000, "logins_per_minute": 1000} | settings
        self.process = None
        self.log = self.data.with_suffix(".log")

    def start(self):
        command = [sys.executable, "-m", "headcount.cli", "lab", "serve", str(self.lab)]
        command += ["--data", str(self.data), "--port", str(self.port)]
        command += ["--database", self.database] if self.database else []
        environ = {f"HEADCOUNT_SITE_{k.upper()}": str(v) for k, v in self.settings.items()}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, **environ}, process_group=0
            )
        self.wait()
        return self

    def wait(self):
        """Until it answers; fails with its log if it ends or takes a minute."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log.read_text()
            try:
                with urllib.request.urlopen(f"{self.url}/healthz", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def children(self):
        """Numbers of the worker processes."""
        kids = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [
            int(pid)
            for pid in kids.split()
            if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]

    def kill(self):
        """Kill -9 of all processes at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=60)

    def people(self, names, scopes=("read", "submit"), role="participant"):
        """Users with a team each; gives their tokens."""
        database = Database(self.database_url)
        tokens = []
        with database.writing() as session:
            for name in names:
                user = add_user(session, now(), name=name, password=PASSWORD, role=role)
                create_team(session, user, f"Team {name}", now())
                actor = Actor(user, frozenset(SCOPES))
                _, secret = make_token(session, actor, now(), name="t", scopes=list(scopes), days=9)
                tokens.append(secret)
        database.close()
        return tokens

    def lift_quota(self):
        """As many runs a day as one likes."""
        database = Database(self.database_url)
        with database.writing() as session:
            session.execute(text("UPDATE phases SET quota_day = NULL"))
        database.close()

    @property
    def database_url(self):
        return self.database or f"sqlite:///{self.data / 'site.db'}"

    def request(self, method, path, token=None, data=None, **headers):
        """Status and JSON of an answer of the API."""
        if token:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"null")
