"""A hostile tester's list, an item each."""

import csv
import gzip
import io
import re
import threading
import zipfile
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from people import PASSWORD, START, Person, app_of, phase_form
from sqlalchemy import func, select

from headcount.lequa.runs import write_run
from headcount.site import secrecy
from headcount.site.intake import unpack
from headcount.site.models import Hit, LogIn, Phase, Run, Score, Token, User

SCRIPT = "<script>alert(1)</script>"


def count(site, model):
    with site.database.reading() as session:
        return session.scalar(select(func.count()).select_from(model))


def test_a_stored_script_is_never_run(site, visit, runs_folder, organiser):
    mallory = visit().register("m<b>allory", SCRIPT)
    good = runs_folder / "T1A-dev-good.csv"
    answer = mallory.upload(
        good, description=f"{SCRIPT}<img src=x onerror=alert(2)>", file_name=f"{SCRIPT}.csv"
    )
    run = mallory.run_id(answer)
    organiser.send("/organise", "/organise/announcements", text=SCRIPT)
    mallory.send("/tokens", name=SCRIPT, days="1", scopes=["read"])
    pages = ["/", "/runs", f"/runs/{run}", "/team", "/tokens", "/tasks/T1A/boards/1"]
    pages += ["/tasks/T1A/boards/1/teams/1"]
    for path in pages:
        text = mallory.get(path).text
        assert SCRIPT not in text and "<img src=x" not in text and "m<b>" not in text, path
    for path in ("/organise", "/organise/people", "/organise/log"):
        text = organiser.get(path).text
        assert "alert(1)" in text and SCRIPT not in text, path
    visit().register("other", "Other").upload(good)
    svg = mallory.get("/tasks/T1A/boards/1/ranks.svg")
    assert "<script" not in svg.text and "alert(1)" in svg.text
    assert "sandbox" in svg.headers["content-security-policy"]


@pytest.mark.parametrize("name", ["$\\frac{1}$", "$x", "名前 チーム", "a_b^c", "%s {0} {{7*7}}"])
def test_names_with_signs_of_formulas_are_drawn_as_they_are(visit, runs_folder, name):
    visit().register("one", name).upload(runs_folder / "T1A-dev-good.csv")
    two = visit().register("two", "Plain")
    two.upload(runs_folder / "T1A-dev-bad.csv")
    for kind in ("ranks", "shift", "diagonal"):
        assert two.get(f"/tasks/T1A/boards/1/{kind}.svg").status_code == 200
    assert two.get("/tasks/T1A/boards/1").status_code == 200
    assert f">{name}</a>" in two.get("/tasks/T1A/boards/1").text


def test_the_policy_forbids_inline_scripts_and_styles(alice, runs_folder, organiser):
    alice.upload(runs_folder / "T1A-dev-good.csv")
    pages = ["/", "/login", "/register", "/reset", "/team", "/tokens", "/runs", "/runs/1", "/api"]
    pages += ["/tasks/T1A", "/tasks/T1A/boards/1", "/nowhere"]
    for path in [*pages, "/organise", "/organise/people", "/organise/phases/new", "/organise/log"]:
        answer = organiser.get(path) if "organise" in path else alice.get(path)
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy and "default-src 'none'" in policy, path
        assert not re.search(r"<script(?! src=)|<style|\son\w+=|\sstyle=", answer.text), path
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/tasks/..%2f..%2fetc/files/passwd",
        "/tasks/T1A/files/..%2f..%2f..%2fetc%2fpasswd",
        "/tasks/T1A/files/../../gold/T1A/test_prevalences.txt",
        "/tasks/T1A/files/%2e%2e%2fgold%2fT1A%2ftest_prevalences.txt",
        "/tasks/T1A/files/test_prevalences.txt",
        "/tasks/T1A/files/.T1A.train_dev.zip.json",
        "/tasks/gold",
        "/tasks/gold/files/gold.train_dev.zip",
        "/static/../settings.py",
        "/static/%2e%2e/settings.py",
        "/static/..%5csettings.py",
        "/static//etc/passwd",
        "/gold/T1A/test_prevalences.txt",
        "/lab/gold/T1A/test_prevalences.txt",
        "/site.db",
        "/secret.key",
        "/api/v1/tasks/T1A/files/..%2f..%2fgold%2fT1A%2ftest_prevalences.txt",
    ],
)
def test_no_path_leads_to_the_gold_or_out_of_the_site(site, path):
    client = TestClient(app_of(site))
    answer = client.get(path)
    assert answer.status_code in (404, 422), path
    gold = (site.settings.lab / "gold" / "T1A" / "test_prevalences.txt").read_bytes()
    assert gold[:40] not in answer.content and b"root:" not in answer.content


def test_the_gold_is_in_no_download(site, organiser, clock):
    """Not even for organisers, and whatever lies in the task's folder."""
    organiser.send("/organise/phases/new", **phase_form(clock))
    for task in site.tasks.values():
        gold = (site.settings.lab / "gold" / task.name / "test_prevalences.txt").read_bytes()
        for archive in task.archives:
            content = organiser.get(f"/tasks/{task.name}/files/{archive.name}").content
            with zipfile.ZipFile(io.BytesIO(content)) as opened:
                for name in opened.namelist():
                    assert opened.read(name) != gold, name
                    assert "test_prev" not in name


def test_a_gold_in_the_task_folder_is_left_out_of_the_archive(make_site, copied_lab):
    (copied_lab / "T1A" / "test_prevalences.txt").write_bytes(
        (copied_lab / "gold" / "T1A" / "test_prevalences.txt").read_bytes()
    )
    (copied_lab / "T1A" / "notes.txt").write_text("secret")
    site = make_site(lab=copied_lab)
    for archive in site.tasks["T1A"].archives:
        names = zipfile.ZipFile(archive.path).namelist()
        assert not any("test_prevalences" in n or "notes" in n for n in names)


def test_hidden_scores_show_in_no_answer(alice, bob, test_phase, runs_folder):
    """Two runs, one perfect and one bad, are told about in the same words."""
    answers = []
    for person, quality in ((alice, "perfect"), (bob, "bad")):
        headers = person.token("read", "submit")
        sent = person.http.post(
            "/api/v1/tasks/T1A/runs?phase=2",
            content=(runs_folder / f"T1A-test-{quality}.csv").read_bytes(),
            headers=headers,
        )
        assert sent.status_code == 201
        run = sent.json()["id"]
        shown = person.get(f"/api/v1/runs/{run}", headers=headers).json()
        assert shown["scores"] is None and shown["rank"] is None and shown["worst"] == []
        listed = person.get("/api/v1/tasks/T1A/runs", headers=headers).json()[0]
        page = person.get(f"/runs/{run}").text
        for text in (str(sent.json()), str(shown), str(listed), page):
            assert "0.0000" not in text and "best" not in text
        told = {k: shown[k] for k in ("counts", "marks", "scores", "rank", "out_of", "worst")}
        answers.append((told, re.sub(r"[0-9a-f]{32,}|Team \w|alice|bob|\d+", "", page)))
    same = [re.sub(r"T1A-test-\w+", "", text) for _, text in answers]
    assert answers[0][0] == answers[1][0]
    assert same[0] == same[1]


def test_the_best_of_hidden_runs_is_not_told(alice, organiser, runs_folder, clock):
    organiser.send("/organise/phases/new", **phase_form(clock, counts="best"))
    for quality in ("good", "bad"):
        alice.run_id(alice.upload(runs_folder / f"T1A-test-{quality}.csv", phase="2"))
    headers = alice.token("read")
    runs = alice.get("/api/v1/tasks/T1A/runs", headers=headers).json()
    assert [run["counts"] for run in runs] == [None, None]
    assert "not told yet" in alice.get("/runs").text


def test_a_forged_form_is_refused(alice, bob, runs_folder, site):
    run = alice.run_id(alice.upload(runs_folder / "T1A-dev-good.csv"))
    path = f"/runs/{run}/withdraw"
    token = alice.token_of(f"/runs/{run}")
    for data in ({}, {"form_token": ""}, {"form_token": "0" * 64}):
        assert alice.http.post(path, data=data).status_code == 403
    assert alice.http.post(path, data={"form_token": bob.token_of("/team")}).status_code == 403
    foreign = {"sec-fetch-site": "cross-site"}
    answer = alice.http.post(path, data={"form_token": token}, headers=foreign)
    assert answer.status_code == 403
    anonymous = Person(site)
    answer = anonymous.http.post("/login", data={"name": "alice", "password": PASSWORD})
    assert answer.status_code == 403
    with site.database.reading() as session:
        assert session.get_one(Run, run).withdrawn_at is None


def test_every_form_of_every_page_has_a_token(alice, organiser, runs_folder):
    alice.upload(runs_folder / "T1A-dev-good.csv")
    pages = ["/team", "/tokens", "/runs/1", "/tasks/T1A"]
    for path in [*pages, "/organise", "/organise/people", "/organise/phases/new"]:
        person = organiser if "organise" in path else alice
        for form in re.findall(r"<form[^>]*method=\"post\".*?</form>", person.get(path).text, re.S):
            assert 'name="form_token"' in form, (path, form[:80])


def test_every_changing_page_refuses_a_request_without_a_token(organiser, site):
    routes = [
        (route.path, method)
        for route in _routes(app_of(site))
        for method in getattr(route, "methods", ()) or ()
        if method == "POST" and not route.path.startswith("/api/")
    ]
    assert len(routes) > 15
    for path, _ in routes:
        filled = re.sub(r"{task}", "T1A", re.sub(r"{(?!task)\w+}", "1", path))
        assert organiser.http.post(filled, data={"x": "1"}).status_code == 403, path


def _routes(app):
    found = []
    for route in app.routes:
        inner = getattr(route, "original_router", None)
        found += inner.routes if inner is not None else [route]
    return found


def test_a_session_cannot_be_fixed_beforehand(site, visit):
    visit().register("alice")
    mallory = Person(site)
    mallory.http.cookies.set("headcount_session", "chosen-by-mallory")
    mallory.get("/login")
    answer = mallory.log_in("alice")
    assert answer.status_code == 303
    given = answer.cookies["headcount_session"]
    assert given != "chosen-by-mallory" and len(given) > 40
    with site.database.reading() as session:
        hashes = set(session.scalars(select(LogIn.hash)))
    assert secrecy.hash_secret("chosen-by-mallory") not in hashes
    assert secrecy.hash_secret(given) in hashes


def test_logging_in_again_ends_the_session_before(site, alice):
    old = alice.http.cookies["headcount_session"]
    assert alice.log_in("alice").status_code == 303
    thief = TestClient(app_of(site), cookies={"headcount_session": old})
    assert thief.get("/team", follow_redirects=False).headers["location"].startswith("/login")


def test_cookies_and_secrets(make_site, site, alice):
    cookie = alice.send("/login", name="alice", password=PASSWORD).headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie and "secure" not in cookie
    with site.database.reading() as session:
        user = session.scalar(select(User))
        assert user.password.startswith("$argon2id$")
        assert alice.http.cookies["headcount_session"] not in set(
            session.scalars(select(LogIn.hash))
        )
    headers = alice.token("read")
    with site.database.reading() as session:
        kept = session.scalar(select(Token.hash))
    assert kept not in headers["Authorization"] and len(kept) == 64
    assert (site.settings.data / "secret.key").stat().st_mode & 0o077 == 0


def test_cookies_are_secure_behind_https(make_site):
    person = Person(make_site(url="https://lab.example"))
    answer = person.get("/login")
    assert "secure" in answer.headers["set-cookie"].lower()
    assert "strict-transport-security" in answer.headers


def test_the_real_hash_is_argon2id_with_its_recommended_cost():
    from argon2 import PasswordHasher

    hashed = PasswordHasher().hash("x")
    assert hashed.startswith("$argon2id$v=19$m=65536,t=3,p=4$")


def test_another_teams_run_does_not_exist(alice, bob, runs_folder, organiser):
    run = alice.run_id(alice.upload(runs_folder / "T1A-dev-good.csv"))
    headers = bob.token("read", "submit")
    for number in (run, run + 999):
        page = bob.get(f"/runs/{number}")
        assert page.status_code == 404
        assert "there is no such run" in page.text
        assert bob.get(f"/runs/{number}/file").status_code == 404
        for deed in ("withdraw", "choose", "describe"):
            answer = bob.send("/team", f"/runs/{number}/{deed}", description="x")
            assert answer.status_code == 404, deed
        api = f"/api/v1/runs/{number}"
        assert bob.get(api, headers=headers).status_code == 404
        assert bob.get(f"{api}/file", headers=headers).status_code == 404
        assert bob.http.patch(api, headers=headers, json={"tags": "x"}).status_code == 404
        assert bob.http.post(f"{api}/withdraw", headers=headers).status_code == 404
    assert organiser.get(f"/runs/{run}").status_code == 200


def test_a_person_without_a_team_sees_no_baseline(visit, organiser, runs_folder):
    headers = organiser.token("read", "submit", "organise")
    answer = organiser.http.post(
        "/api/v1/tasks/T1A/runs?baseline=SLD",
        content=(runs_folder / "T1A-dev-good.csv").read_bytes(),
        headers=headers,
    )
    loner = visit().register("loner")
    assert loner.get(f"/runs/{answer.json()['id']}").status_code == 404


def test_participants_cannot_organise(alice, site):
    headers = alice.token("read", "submit")
    for route in _routes(app_of(site)):
        path = getattr(route, "path", "")
        if "/organise" not in path:
            continue
        filled = re.sub(r"{task}", "T1A", re.sub(r"{(?!task)\w+}", "1", path))
        for method in route.methods - {"HEAD"}:
            if path.startswith("/api/"):
                answer = alice.http.request(method, filled, headers=headers, json={})
            elif method == "GET":
                answer = alice.get(filled)
            else:
                answer = alice.send("/team", filled)
            assert answer.status_code in (403, 422), (method, path, answer.status_code)
            assert answer.status_code == 403 or "mend" in answer.text
    refused = alice.send("/tokens", name="x", days="1", scopes=["organise"])
    assert refused.status_code == 403


@pytest.mark.parametrize("name", ["x\r\nSet-Cookie: a=b", "a\nb.csv", "a\x00b", 'a"; b="c.csv'])
def test_headers_cannot_be_injected(alice, runs_folder, name):
    headers = alice.token("read", "submit")
    answer = alice.http.post(
        "/api/v1/tasks/T1A/runs",
        params={"file_name": name},
        content=(runs_folder / "T1A-dev-good.csv").read_bytes(),
        headers=headers,
    )
    assert answer.status_code == 201, answer.text
    assert not set(answer.json()["file_name"]) & set("\r\n\0")
    file = alice.get(f"/runs/{answer.json()['id']}/file")
    assert file.headers["content-disposition"] == 'attachment; filename="Team_A-T1A-1.csv"'
    assert "set-cookie" not in file.headers
    led = alice.send("/login", name="alice", password=PASSWORD, next="//evil.example")
    assert led.headers["location"] == "/"
    led = alice.send("/login", name="alice", password=PASSWORD, next="/\r\nSet-Cookie: a=b")
    assert led.headers["location"] == "/"


QUOTES = ["' OR 1=1 --", '"; DROP TABLE runs; --', "') UNION SELECT password FROM users --"]


@pytest.mark.parametrize("text", QUOTES)
def test_sql_in_every_field_is_only_text(site, visit, organiser, runs_folder, text):
    person = visit()
    assert person.log_in(text, text).status_code == 401
    person.register(text, text[:40])
    run = person.run_id(person.upload(runs_folder / "T1A-dev-good.csv", description=text))
    person.send("/team", "/team/join", code=text)
    visit().send("/register", name="v", password=PASSWORD, invitation=text)
    visit().send("/reset", code=text, password=PASSWORD)
    organiser.send("/organise", "/organise/announcements", text=text)
    rules = {"title": text, "about": text, "timezone": "UTC", "registration": "open"}
    organiser.send("/organise", "/organise/lab", **rules)
    for path in ("tasks/T1A/boards/1", "tasks/T1A/boards/1/board.csv"):
        assert person.get(f"/{path}", params={"sort": text, "run": "1"}).status_code in (200, 404)
    assert person.get("/tasks/" + text).status_code == 404
    headers = {"Authorization": f"Bearer {text}"}
    assert person.get("/api/v1/me", headers=headers).status_code == 401
    assert count(site, Run) == 1 and count(site, User) == 2
    with site.database.reading() as session:
        assert session.get_one(Run, run).description == text


def test_no_cell_of_an_export_is_a_formula(visit, organiser, runs_folder):
    person = visit().register("=cmd|' /C calc'!A0", "=1+1")
    person.upload(runs_folder / "T1A-dev-good.csv", description="@SUM(1)", tags="-tag")
    board = organiser.get("/tasks/T1A/boards/1/board.csv").text
    content = organiser.get("/organise/export.zip").content
    archive = zipfile.ZipFile(io.BytesIO(content))
    texts = [board, archive.read("runs.csv").decode(), archive.read("teams.csv").decode()]
    for text in texts:
        assert "=1+1" in text
        for row in csv.reader(io.StringIO(text)):
            for cell in row:
                assert not cell.startswith(("=", "+", "@", "\t")), cell
                assert not cell.startswith("-") or re.fullmatch(r"-[\d.e-]+", cell), cell
    assert all(".." not in name and not name.startswith("/") for name in archive.namelist())


def test_expired_revoked_and_foreign_tokens(site, alice, bob, clock, runs_folder):
    short, long = alice.token("read", days=1), alice.token("read", days=90)
    assert alice.get("/api/v1/me", headers=short).json()["name"] == "alice"
    clock.move(days=1)
    assert alice.get("/api/v1/me", headers=short).status_code == 401
    assert alice.get("/api/v1/me", headers=long).status_code == 200
    content = (runs_folder / "T1A-dev-good.csv").read_bytes()
    post = alice.http.post
    assert post("/api/v1/tasks/T1A/runs", content=content, headers=long).status_code == 403
    for bad in ("", "Bearer", "Bearer hct_x", "Basic YTpi", "Bearer " + "x" * 5000):
        headers = {"Authorization": bad}
        assert alice.get("/api/v1/me", headers=headers).status_code == 401, bad[:20]
    assert alice.get("/api/v1/me").status_code == 401, "a cookie is no token"
    clock.move(hours=-1)
    bob.log_in("bob")
    assert bob.send("/tokens", "/tokens/2/revoke").status_code == 404
    alice.log_in("alice")
    assert alice.send("/tokens", "/tokens/2/revoke").status_code == 303
    assert alice.get("/api/v1/me", headers=long).status_code == 401
    wide = post("/api/v1/tokens", headers=bob.token("read"), json={"scopes": ["submit"]})
    assert wide.status_code == 403


def test_two_uploads_race_for_the_last_slot(site, alice, organiser, runs_folder, clock):
    form = phase_form(clock, name="Development", split="dev", quota_total="1") | {"hidden": ""}
    assert organiser.send("/organise/phases/1", **form).status_code == 303
    headers = alice.token("read", "submit")
    content = (runs_folder / "T1A-dev-good.csv").read_bytes()
    gate = threading.Barrier(6)
    codes = []

    def send():
        client = TestClient(app_of(site))
        gate.wait()
        answer = client.post("/api/v1/tasks/T1A/runs", content=content, headers=headers)
        codes.append(answer.status_code)

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [201, 429, 429, 429, 429, 429]
    assert count(site, Run) == 1 and count(site, Score) == 2


def test_the_same_upload_sent_twice_at_once_is_kept_once(site, alice, runs_folder):
    headers = alice.token("read", "submit") | {"Idempotency-Key": "0123456789abcdef"}
    content = (runs_folder / "T1A-dev-good.csv").read_bytes()
    gate = threading.Barrier(5)
    ids = []

    def send():
        client = TestClient(app_of(site))
        gate.wait()
        answer = client.post("/api/v1/tasks/T1A/runs", content=content, headers=headers)
        ids.append(answer.json()["id"])

    threads = [threading.Thread(target=send) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 5 and len(set(ids)) == 1 and count(site, Run) == 1


def test_the_deadline_is_exact(site, alice, organiser, runs_folder, clock):
    form = phase_form(clock, name="Development", split="dev") | {"hidden": ""}
    assert organiser.send("/organise/phases/1", **form).status_code == 303
    with site.database.reading() as session:
        closes = session.get_one(Phase, 1).closes_at
    good = runs_folder / "T1A-dev-good.csv"
    headers = alice.token("read", "submit")

    def send():
        content = good.read_bytes()
        return alice.http.post("/api/v1/tasks/T1A/runs?phase=1", content=content, headers=headers)

    clock.at = closes - timedelta(microseconds=1)
    assert send().status_code == 201
    clock.at = closes
    late = send()
    assert late.status_code == 409 and "takes no runs" in late.json()["error"]["message"]
    run = "/runs/1"
    assert alice.send(run, "/runs/1/withdraw").status_code == 409
    clock.at = START - timedelta(hours=2)
    assert send().status_code == 409
    assert count(site, Run) == 1


def test_the_deadline_has_a_time_zone(organiser, site, clock):
    rules = {"title": "Lab", "timezone": "Pacific/Kiritimati", "registration": "open"}
    assert organiser.send("/organise", "/organise/lab", **rules).status_code == 303
    form = phase_form(clock, closes_at="2026-07-01T12:00")
    assert organiser.send("/organise/phases/new", **form).status_code == 303
    with site.database.reading() as session:
        closes = session.get_one(Phase, 2).closes_at
    assert closes.isoformat() == "2026-06-30T22:00:00+00:00"
    assert "2026-07-01 12:00 +14" in organiser.get("/").text
    wrong = organiser.send("/organise", "/organise/lab", **rules | {"timezone": "Mars/Olympus"})
    assert wrong.status_code == 422 and "unknown time zone" in wrong.text


def test_log_in_is_limited_by_name_and_address(make_site, clock):
    site = make_site(logins_per_minute=5)
    Person(site).register("alice")
    thief = Person(site)
    codes = [thief.log_in("alice", "wrong password").status_code for _ in range(7)]
    assert codes == [401] * 5 + [429] * 2
    assert thief.log_in("alice").status_code == 429, "even with the right one"
    others = [thief.log_in(f"user{i}", "wrong password").status_code for i in range(12)]
    assert others[-1] == 429, "by address"
    clock.move(minutes=1)
    assert thief.log_in("alice").status_code == 303


def test_unknown_and_known_names_are_refused_in_the_same_words(visit, alice):
    texts = {
        re.sub(r"[0-9a-f]{64}|alice|nobody", "", visit().log_in(name, "wrong password").text)
        for name in ("alice", "nobody")
    }
    assert len(texts) == 1


def test_uploads_are_limited(make_site, runs_folder):
    site = make_site(uploads_per_minute=3)
    alice = Person(site).register("alice", "Team A")
    codes = [alice.upload(runs_folder / "faulty.csv").status_code for _ in range(5)]
    assert codes == [422] * 3 + [429] * 2
    headers = alice.token("read", "submit")
    answer = alice.http.post("/api/v1/tasks/T1A/runs", content=b"x", headers=headers)
    assert answer.status_code == 429 and 0 < int(answer.headers["retry-after"]) <= 60
    assert count(site, Hit) > 0


def test_a_body_is_limited_while_it_is_read(make_site):
    site = make_site(upload_bytes=10_000)
    alice = Person(site).register("alice", "Team A")
    headers = alice.token("read", "submit")
    sent = 0

    def endless():
        nonlocal sent
        while sent < 50_000_000:
            sent += 50_000
            yield b"x" * 50_000

    answer = alice.http.post("/api/v1/tasks/T1A/runs", content=endless(), headers=headers)
    assert answer.status_code == 413
    large = b"x" * 20_000
    answer = alice.http.post("/api/v1/tasks/T1A/runs", content=large, headers=headers)
    assert answer.status_code == 413 and "10,000" in answer.json()["error"]["message"]
    answer = alice.http.post("/api/v1/register", content=b"x" * 300_000)
    assert answer.status_code == 413
    files = {"file": ("run.csv", b"x" * 1_000_000)}
    data = {"form_token": alice.token_of("/tasks/T1A")}
    assert alice.http.post("/tasks/T1A/runs", data=data, files=files).status_code == 413


def zipped(*contents):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for i, content in enumerate(contents):
            archive.writestr(f"{i}.csv", content)
    return out.getvalue()


def test_bombs_are_not_unpacked(alice):
    bomb = b"0" * 60_000_000
    headers = alice.token("read", "submit")
    for content in (
        zipped(bomb),
        gzip.compress(bomb),
        zipped(zipped(bomb)),
        zipped(gzip.compress(bomb)),
        zipped(b"a", b"b"),
        gzip.compress(b"id,0,1")[:-4],
        b"PK\x03\x04 broken",
        b"\x1f\x8b broken",
        b"\n1" * 4_000_000,
        b"\r" * 4_000_000,
        b"",
        b"\0" * 1000,
        b"\xff\xfe" * 100,
    ):
        answer = alice.http.post("/api/v1/tasks/T1A/runs", content=content, headers=headers)
        assert answer.status_code == 422, content[:20]
        assert answer.json()["error"]["faults"]


def test_a_zip_that_lies_about_its_size_is_cut_off():
    import tracemalloc

    content = bytearray(zipped(b"0" * 50_000_000))
    where = content.index(b"PK\x01\x02")
    content[where + 24 : where + 28] = (100).to_bytes(4, "little")
    tracemalloc.start()
    with pytest.raises(Exception, match="valid run"):
        unpack(bytes(content), 1_000_000)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_good_runs_come_as_csv_zip_and_gzip(alice, runs_folder):
    content = (runs_folder / "T1A-dev-good.csv").read_bytes()
    headers = alice.token("read", "submit")
    scores = []
    for packed in (
        content,
        zipped(content),
        gzip.compress(content),
        content.replace(b"\n", b"\r\n"),
    ):
        answer = alice.http.post("/api/v1/tasks/T1A/runs", content=packed, headers=headers)
        assert answer.status_code == 201, answer.text
        scores.append(answer.json()["scores"])
        run = answer.json()["id"]
        assert alice.get(f"/api/v1/runs/{run}/file", headers=headers).content == packed
    assert all(score == scores[0] for score in scores)


def test_the_fast_reader_agrees_with_the_checker(tmp_path, rng_runs):
    """Whatever the fast reader takes, the checker takes, with the same numbers."""
    from headcount.lequa.runs import check_run, read_run
    from headcount.site.intake import _read_plainly_valid

    taken = 0
    for text in rng_runs:
        path = tmp_path / "run.csv"
        path.write_bytes(text)
        fast = _read_plainly_valid(text, 3, 4)
        if fast is not None:
            taken += 1
            assert check_run(path, 3, 4) == [], text
            np.testing.assert_array_equal(fast, read_run(path, 3))
    assert taken > 20


@pytest.fixture
def rng_runs(tmp_path):
    """Valid runs, and the same with one thing changed."""
    rng = np.random.default_rng(1)
    write_run(tmp_path / "seed.csv", rng.dirichlet(np.ones(3), 4))
    base = (tmp_path / "seed.csv").read_bytes()
    odd = [
        b"",
        b" ",
        b"nan",
        b"inf",
        b"-0.1",
        b"1e-3",
        b"+0.2",
        b'"0.1"',
        b"0x1",
        b",",
        b"\n",
        b"#",
    ]
    odd += [
        b"1.",
        b".5",
        b"1_0",
        b"\t",
        b"\r",
        b"0",
        b"1",
        b"true",
        b"NULL",
        "٣".encode(),
        b"1e999",
    ]
    runs = [base] * 30
    for _ in range(600):
        at, width = int(rng.integers(len(base))), int(rng.integers(0, 12))
        runs.append(base[:at] + odd[int(rng.integers(len(odd)))] + base[at + width :])
    return runs


def test_secrets_are_in_no_log(site, visit, runs_folder, caplog):
    caplog.set_level("DEBUG")
    person = visit().register("alice", "Team A")
    person.log_in("alice")
    headers = person.token("read", "submit")
    person.get("/register?code=hci_secretcode")
    person.get("/api/v1/me", headers=headers)
    person.log_in("alice", "a wrong password")
    ours = [record for record in caplog.records if not record.name.startswith("httpx")]
    text = "".join(str(record.__dict__) for record in ours)
    assert "/register" in text
    secrets = [PASSWORD, "a wrong password", "hci_secretcode", headers["Authorization"][-30:]]
    for secret in [*secrets, person.http.cookies["headcount_session"]]:
        assert secret not in text


def test_answers_do_not_echo_passwords(visit):
    answer = visit().send("/register", name="x", password="short-1")
    assert answer.status_code == 422 and "short-1" not in answer.text
    sent = visit().http.post("/api/v1/register", json={"name": "x", "password": "short-1"})
    assert sent.status_code == 422 and "short-1" not in sent.text


def test_gold_correction_is_only_for_organisers_and_never_shown(alice, organiser, site):
    headers = organiser.token("organise")
    gold = Path(site.settings.lab / "gold" / "T1A" / "test_prevalences.txt").read_bytes()
    path = "/api/v1/organise/tasks/T1A/gold?note=typo"
    answer = organiser.http.post(path, content=gold, headers=headers)
    assert answer.status_code == 201
    assert answer.json()["version"] == 2
    assert gold.splitlines()[1].split(b",")[1] not in answer.content
    wrong = organiser.http.post(path, content=gold[:-30], headers=headers)
    assert wrong.status_code == 422
