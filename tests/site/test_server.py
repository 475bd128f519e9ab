"""The real server: broken lines, huge and slow requests, kills, backups under load, full disks."""

import contextlib
import errno
import os
import random
import signal
import socket
import subprocess
import threading
import time

import pytest
from people import Person
from serving import Server
from sqlalchemy import func, select, text

from headcount.site.backup import back_up, restore
from headcount.site.context import Site
from headcount.site.database import Database
from headcount.site.models import Run, RunFile, Score
from headcount.site.settings import Settings

UPLOADS = 200


@pytest.fixture
def server(lab_folder, tmp_path, database_url):
    made = Server(lab_folder, tmp_path / "served", database_url, body_seconds=2).start()
    yield made
    if made.process.poll() is None:
        made.kill()


def raw(server, data, wait=20):
    """What comes back for bytes as they are."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=wait) as line:
        line.settimeout(wait)
        for chunk in [data] if isinstance(data, bytes) else data:
            try:
                line.sendall(chunk)
            except OSError:
                break
        answer = b""
        with contextlib.suppress(OSError):
            while chunk := line.recv(65536):
                answer += chunk
        return answer


def test_huge_headers_slow_bodies_and_nonsense(server):
    assert raw(server, b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"y" * 100_000 + b"\r\n\r\n")[:12] in (
        b"HTTP/1.1 400",
        b"HTTP/1.1 431",
        b"",
    )
    assert raw(server, b"\x16\x03\x01 nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
    token = server.people(["slow"])[0]
    head = (
        "POST /api/v1/tasks/T1A/runs HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n"
        f"authorization: Bearer {token}\r\n\r\nid,0"
    )
    answer = raw(server, head.encode())  # the rest never comes
    assert answer.startswith(b"HTTP/1.1 408"), answer
    huge = head.replace("content-length: 1000", "content-length: 99999999999")
    assert raw(server, huge.encode()).startswith(b"HTTP/1.1 413")
    assert server.request("GET", "/healthz")[0] == 200


def test_a_stop_finishes_what_was_begun(server, runs_folder):
    token = server.people(["anna"])[0]
    content = (runs_folder / "T1A-dev-good.csv").read_bytes()
    head = (
        "POST /api/v1/tasks/T1A/runs HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        f"content-length: {len(content)}\r\nauthorization: Bearer {token}\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as line:
        line.sendall(head + content[:100])
        assert server.request("GET", "/healthz")[0] == 200  # the first part has been read
        server.process.terminate()
        line.sendall(content[100:])
        answer = line.recv(65536)
    assert answer.startswith(b"HTTP/1.1 201"), answer
    assert server.process.wait(timeout=60) in (0, -signal.SIGTERM)


def check_whole(url, acknowledged):
    """Every acknowledged run is there; every run is whole and scored once."""
    database = Database(url)
    with database.reading() as session:
        ids = set(session.scalars(select(Run.id)))
        keys = [key for key in session.scalars(select(Run.client_key)) if key]
        assert set(acknowledged) <= ids
        assert len(keys) == len(set(keys))
        assert set(session.scalars(select(RunFile.run_id))) == ids
        scored = session.execute(select(Score.run_id, func.count()).group_by(Score.run_id)).all()
        assert dict(map(tuple, scored)) == dict.fromkeys(ids, 2)
    database.close()
    return ids


def test_kill_9_at_any_moment_loses_nothing(lab_folder, runs_folder, tmp_path, database_url):
    """200 uploads by four at once; processes are killed when random counts of them are through."""
    server = Server(
        lab_folder,
        tmp_path / "served",
        database_url,
        workers=2 if "postgres" in database_url else 1,
    ).start()
    tokens = server.people([f"p{i}" for i in range(4)])
    server.lift_quota()
    content = (runs_folder / "T1A-dev-good.csv").read_bytes()
    acknowledged, arrived = [], threading.Condition()

    def send(number):
        for i in range(UPLOADS // 4):
            key = f"upload-{number}-{i:04d}"
            while True:  # as `headcount lequa submit` does after a broken line
                try:
                    status, body = server.request(
                        "POST",
                        "/api/v1/tasks/T1A/runs",
                        tokens[number],
                        content,
                        **{"Idempotency-Key": key},
                    )
                except (OSError, ValueError):
                    time.sleep(0.02)
                    continue
                if status != 201:
                    refused.append(body)
                    return
                with arrived:
                    acknowledged.append(body["id"])
                    arrived.notify()
                break

    refused: list[object] = []
    threads = [threading.Thread(target=send, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    chance = random.Random(0)
    for count in sorted(chance.sample(range(1, UPLOADS - 20), 6)):
        with arrived:
            enough = arrived.wait_for(lambda n=count: len(acknowledged) >= n, timeout=120)
        assert enough, refused
        workers = server.children()
        if workers and chance.random() < 0.5:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)
        else:
            server.kill()
            check_whole(server.database_url, list(acknowledged))
            server.start()
    for thread in threads:
        thread.join()
    server.stop()
    assert not refused
    ids = check_whole(server.database_url, acknowledged)
    assert len(acknowledged) == UPLOADS and set(acknowledged) == ids and len(ids) == UPLOADS


def test_a_backup_under_load_restores_to_a_consistent_site(
    server, runs_folder, tmp_path, lab_folder, request
):
    tokens = server.people(["anna", "ben"])
    server.lift_quota()
    content = (runs_folder / "T1A-dev-good.csv").read_bytes()
    stop, acknowledged = threading.Event(), []

    def send(token):
        while not stop.is_set():
            status, body = server.request("POST", "/api/v1/tasks/T1A/runs", token, content)
            assert status == 201, body
            acknowledged.append(body["id"])

    threads = [threading.Thread(target=send, args=(token,)) for token in tokens]
    for thread in threads:
        thread.start()
    copies = []
    for i in range(3):
        while len(acknowledged) < 5 * (i + 1):
            time.sleep(0.01)
        before = list(acknowledged)
        source = Database(server.database_url)
        back_up(source, tmp_path / f"copy{i}.zip")
        source.close()
        copies.append((tmp_path / f"copy{i}.zip", before))
    stop.set()
    for thread in threads:
        thread.join()
    for i, (path, before) in enumerate(copies):
        url = f"sqlite:///{tmp_path / f'restored{i}.db'}"
        if server.database.startswith("postgresql") and i == 0:
            postgres = request.getfixturevalue("postgres")
            url = postgres.url(postgres.create())
        target = Database(url)
        restore(path, target)
        check_whole(url, before)
        target.close()
    site = Site(Settings(lab=lab_folder, data=tmp_path / "new", database=url))
    site.prepare()
    rows = Person(site).get("/tasks/T1A/boards/1/board.json").json()
    assert {row["team"] for row in rows} == {"Team anna", "Team ben"}
    assert Person(site).log_in("anna").status_code == 303
    site.close()


def test_a_full_disk_is_told_and_survived(lab_folder, runs_folder, tmp_path):
    """SQLite's own limit of pages gives the error that a full disk gives."""
    site = Site(Settings(lab=lab_folder, data=tmp_path / "data"))
    site.prepare()
    alice = Person(site).register("alice", "Team A")
    with site.database.engine.connect() as connection:
        pages = connection.execute(text("PRAGMA page_count")).scalar()
    from sqlalchemy import event

    def limit(connection, record):
        connection.execute(f"PRAGMA max_page_count={pages}")

    event.listen(site.database.engine, "connect", limit)
    site.database.engine.dispose()
    answer = alice.upload(runs_folder / "T1B-dev-good.csv", "T1B", description="d" * 5000)
    tries = 1
    while answer.status_code == 303 and tries < 50:
        answer = alice.upload(runs_folder / "T1B-dev-good.csv", "T1B", description="d" * 5000)
        tries += 1
    assert answer.status_code == 507, answer.text
    assert "disk is full" in answer.text
    assert alice.get("/tasks/T1B/boards/1").status_code == 200
    event.remove(site.database.engine, "connect", limit)
    site.database.engine.dispose()
    alice.run_id(alice.upload(runs_folder / "T1B-dev-good.csv", "T1B"))
    check_whole(site.settings.database_url, [])
    site.close()


def test_a_full_temporary_folder_is_told_and_survived(site, alice, runs_folder, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("headcount.site.intake.tempfile.mkstemp", full)
        assert alice.upload(runs_folder / "faulty.csv").status_code == 507
    assert alice.upload(runs_folder / "faulty.csv").status_code == 422


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_disk_that_really_fills_up(lab_folder, runs_folder, tmp_path):
    """A real file system of two megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    server = None
    try:
        server = Server(lab_folder, disk / "site")
        server.log = tmp_path / "log"
        server.start()
        token = server.people(["anna"])[0]
        server.lift_quota()
        content = (runs_folder / "T1B-dev-good.csv").read_bytes()
        statuses = []
        path = "/api/v1/tasks/T1B/runs?description=" + "d" * 4000
        while 507 not in statuses and len(statuses) < 500:
            statuses.append(server.request("POST", path, token, content)[0])
        assert set(statuses) == {201, 507}
        assert server.request("GET", "/api/v1/tasks/T1B/runs", token)[0] == 200
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        assert server.request("POST", path, token, content)[0] == 201
        check_whole(server.database_url, [])
    finally:
        if server is not None and server.process is not None:
            server.kill()
        subprocess.run(["umount", "-l", disk], check=True)
