"""Let many participants upload to the lab's site at once: nothing may be lost or kept twice.

Needs PostgreSQL and the environment of `make test-site`::

    .venv-site/bin/python benchmarks/site_load.py --people 50 --seconds 60 --workers 4
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "site"))

from people import make_task
from postgres import start_postgres
from serving import Server
from sqlalchemy import func, select

from headcount.lequa.runs import write_run
from headcount.site.database import Database
from headcount.site.models import Run, RunFile, Score

TASK = "T1B"


def make_lab(folder: Path, n_samples: int, n_classes: int) -> bytes:
    """A lab of the size of LeQua's T1B, and a valid run for it."""
    make_task(folder, TASK, n_classes, n_dev=n_samples, n_test=10, size=100)
    rng = np.random.default_rng(0)
    write_run(folder.parent / "run.csv", rng.dirichlet(np.ones(n_classes), n_samples))
    return (folder.parent / "run.csv").read_bytes()


def post(
    line: http.client.HTTPConnection, token: str, key: str, content: bytes
) -> tuple[int, dict]:
    """Send one run over an open line."""
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
    line.request("POST", f"/api/v1/tasks/{TASK}/runs", content, headers)
    answer = line.getresponse()
    return answer.status, json.loads(answer.read())


class Participant(threading.Thread):
    """Uploads one run after the other until the time is over."""

    def __init__(self, server: Server, token: str, number: int, content: bytes, until: float):
        super().__init__()
        self.server, self.token, self.number = server, token, number
        self.content, self.until = content, until
        self.statuses: Counter[str] = Counter()
        self.ids: list[int] = []
        self.times: list[float] = []

    def run(self) -> None:
        """Upload until the end."""
        line = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=300)
        i = 0
        while time.monotonic() < self.until:
            start = time.perf_counter()
            try:
                key = f"load-{self.number:03d}-{i:05d}"
                status, body = post(line, self.token, key, self.content)
            except (OSError, http.client.HTTPException) as error:
                self.statuses[type(error).__name__] += 1
                line.close()
                continue
            i += 1
            self.statuses[str(status)] += 1
            if status == 201:
                self.ids.append(body["id"])
                self.times.append(time.perf_counter() - start)
        line.close()


def measure_idle(server: Server, token: str, content: bytes, n: int = 15) -> list[float]:
    """Seconds from the start of an upload to the scores in its answer, one at a time."""
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    times = []
    for i in range(n):
        start = time.perf_counter()
        status, body = post(line, token, f"idle-{i:05d}", content)
        assert status == 201 and body["scores"], body
        times.append(time.perf_counter() - start)
    line.close()
    return times


def check_database(url: str, acknowledged: list[int], extra: int) -> dict[str, int]:
    """Lost, doubled and half-kept runs, which must all be none."""
    database = Database(url)
    with database.reading() as session:
        ids = set(session.scalars(select(Run.id)))
        keys = session.execute(select(Run.client_key, func.count()).group_by(Run.client_key)).all()
        scores = dict(
            session.execute(select(Score.run_id, func.count()).group_by(Score.run_id)).all()
        )
        files = session.scalar(select(func.count()).select_from(RunFile))
    database.close()
    return {
        "runs": len(ids),
        "lost": len(set(acknowledged) - ids),
        "unacknowledged": len(ids) - len(set(acknowledged)) - extra,
        "twice": sum(count > 1 for _, count in keys),
        "not scored once": sum(scores.get(i) != 2 for i in ids),
        "without file": len(ids) - (files or 0),
    }


def main() -> None:
    """Run the load and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--classes", type=int, default=28)
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="headcount-load-") as home,
        start_postgres() as postgres,
    ):
        (Path(home) / "lab").mkdir()
        content = make_lab(Path(home) / "lab", args.samples, args.classes)
        url = postgres.url(postgres.create())
        server = Server(Path(home) / "lab", Path(home) / "site", url, workers=args.workers).start()
        tokens = server.people([f"p{i}" for i in range(args.people)])
        server.lift_quota()
        idle = measure_idle(server, tokens[0], content)
        until = time.monotonic() + args.seconds
        people = [Participant(server, t, n, content, until) for n, t in enumerate(tokens)]
        for person in people:
            person.start()
        for person in people:
            person.join()
        server.stop()
        found = check_database(url, [i for p in people for i in p.ids], len(idle))
        times = np.array([t for p in people for t in p.times])
        statuses = sum((p.statuses for p in people), Counter())
        print(f"run: {args.samples} x {args.classes}, {len(content):,} bytes")
        print(f"idle: median {np.median(idle):.2f} s to the scores, worst {max(idle):.2f} s")
        print(f"load: {args.people} people, {args.workers} processes, {args.seconds:g} s")
        print(f"answers: {dict(statuses)}, {len(times) / args.seconds:.1f} runs scored a second")
        worst = np.quantile(times, 0.95)
        print(f"time to answer: median {np.median(times):.1f} s, 95 % within {worst:.1f} s")
        print(f"database: {found}")


if __name__ == "__main__":
    main()
