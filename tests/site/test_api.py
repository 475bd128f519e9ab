"""Everything by the API and by the command, and an OpenAPI page that tells the truth."""

import json
import re
import subprocess
import sys

import pytest
from people import PASSWORD
from serving import Server
from typer.testing import CliRunner

from headcount.cli.app import app
from headcount.exceptions import InputError
from headcount.site.client import Client, RefusedError, post_baselines


def test_a_participants_whole_life_by_api(visit, runs_folder, organiser):
    http = visit().http
    made = http.post("/api/v1/register", json={"name": "ann", "password": PASSWORD})
    assert made.status_code == 201 and made.json()["state"] == "active"
    body = {"name": "ann", "password": PASSWORD, "scopes": ["read", "submit"], "days": 3}
    token = http.post("/api/v1/tokens/by-password", json=body).json()["token"]
    http.headers["Authorization"] = f"Bearer {token}"
    assert http.get("/api/v1/team").status_code == 409
    assert http.post("/api/v1/team", json={"name": "Ann's"}).status_code == 201
    code = http.post("/api/v1/team/code").json()["code"]
    friend = visit().register("friend")
    headers = friend.token("read", "submit")
    joined = friend.http.post("/api/v1/team/join", json={"code": code}, headers=headers)
    assert joined.json()["name"] == "Ann's"
    assert http.get("/api/v1/team").json()["members"] == ["ann", "friend"]
    task = http.get("/api/v1/tasks/T1B").json()
    assert task["classes"] == [f"class {c}" for c in range(4)] and task["samples"]["dev"] == 12
    file = http.get(f"/api/v1/tasks/T1B/files/{task['files'][0]['name']}")
    assert len(file.content) == task["files"][0]["size"]
    content = (runs_folder / "T1B-dev-good.csv").read_bytes()
    run = http.post(
        "/api/v1/tasks/T1B/runs",
        files={"file": ("run.csv", content)},
        data={"description": "mine", "tags": "SLD bcts"},
    ).json()
    assert run["tags"] == ["SLD", "bcts"] and run["rank"] == 1 and len(run["worst"]) == 10
    changed = http.patch(f"/api/v1/runs/{run['id']}", json={"description": "new", "tags": ""})
    assert changed.json()["description"] == "new" and changed.json()["tags"] == []
    board = http.get("/api/v1/tasks/T1B/boards/1").json()
    assert board["rows"][0]["rae"] == run["scores"]["rae"]["mean"]
    assert http.get("/api/v1/tasks/T1B/boards/1/csv").text.startswith("rank,team")
    assert http.get("/api/v1/tasks/T1B/boards/1/figures/shift").text.startswith("<svg")
    assert http.post(f"/api/v1/runs/{run['id']}/withdraw").json()["withdrawn"]
    assert http.get("/api/v1/tasks/T1B/boards/1").json()["rows"] == []
    faulty = http.post("/api/v1/tasks/T1B/runs", content=b"id,0\n").json()["error"]
    assert faulty["code"] == "faulty" and "header" in faulty["faults"][0]
    tokens = http.get("/api/v1/tokens").json()
    assert http.delete(f"/api/v1/tokens/{tokens[0]['id']}").status_code == 204
    assert http.get("/api/v1/me").status_code == 401


def test_an_organisers_whole_life_by_api(organiser, alice, runs_folder, clock, truth, tmp_path):
    http = organiser.http
    http.headers |= organiser.token("read", "submit", "organise")
    base = "/api/v1/organise"
    rules = {"title": "Our lab", "timezone": "Europe/Rome", "approval": True}
    assert http.put(f"{base}/lab", json=rules).json()["timezone"] == "Europe/Rome"
    phase = {
        "name": "Final",
        "split": "test",
        "opens_at": "2026-05-01T10:00:00+02:00",
        "closes_at": "2026-06-01T10:00:00+02:00",
        "hidden": True,
    }
    made = http.post(f"{base}/phases", json=phase).json()
    assert made["is_open"] and made["opens_at"] == "2026-05-01T08:00:00Z"
    assert http.post(f"{base}/phases", json=phase).status_code == 409
    wrong = http.post(f"{base}/phases", json=phase | {"closes_at": "2026-04-01T10:00:00Z"})
    assert wrong.status_code == 422 and "closes before" in wrong.text
    naive = http.post(f"{base}/phases", json=phase | {"opens_at": "2026-05-01T10:00:00"})
    assert naive.status_code == 422
    number = made["id"]
    assert (
        http.put(f"{base}/phases/{number}", json=phase | {"quota_day": 3}).json()["quota_day"] == 3
    )
    content = (runs_folder / "T1A-test-good.csv").read_bytes()
    posted = http.post(f"/api/v1/tasks/T1A/runs?baseline=SLD&phase={number}", content=content)
    assert posted.status_code == 201 and posted.json()["team"] == "SLD"
    for deed in ("freeze", "thaw", "publish"):
        answer = http.post(f"{base}/phases/{number}/{deed}")
        assert answer.status_code == 200, deed
    assert answer.json()["is_published"] and not answer.json()["is_open"]
    assert http.delete(f"{base}/phases/{number}").status_code == 409
    assert [t["name"] for t in http.get(f"{base}/teams").json()] == ["Team A", "SLD"]
    assert len(http.get(f"{base}/users").json()) == 2
    removed = http.put(f"{base}/users/2/state", json={"state": "removed"})
    assert removed.json()["state"] == "removed"
    assert alice.get("/team", follow_redirects=False).status_code == 303
    assert http.put(f"{base}/users/1/state", json={"state": "removed"}).status_code == 409
    assert http.post(f"{base}/invitations", json={}).json()["code"].startswith("hci_")
    note = http.post(f"{base}/announcements", json={"text": "Hello"}).json()
    assert http.get("/api/v1/announcements").json()[0]["text"] == "Hello"
    assert http.delete(f"{base}/announcements/{note['id']}").status_code == 204
    assert http.put(f"{base}/tasks/T1A/reference", json={"reference": "T1A"}).status_code == 200
    assert http.get("/api/v1/tasks/T1A/reference").json()[0]["run"] == "KULeuven"
    gold = http.post(f"{base}/tasks/T1A/gold?note=oops", content=content).json()
    assert gold["version"] == 2 and gold["runs_scored"] == 1
    rows = http.get(f"/api/v1/tasks/T1A/boards/{number}").json()["rows"]
    assert rows[0]["rae"] == pytest.approx(0)
    assert http.get(f"{base}/export").content[:2] == b"PK"
    actions = {deed["action"] for deed in http.get(f"{base}/log").json()}
    assert {"freeze", "publish", "correct gold", "user removed", "change lab"} <= actions


def test_the_openapi_page_is_complete(site, visit):
    schema = visit().get("/api/v1/openapi.json").json()
    assert len(schema["paths"]) > 30
    page = visit().get("/api").text
    for path, methods in schema["paths"].items():
        for method, each in methods.items():
            assert f"{method.upper()} {path}" in page
            assert each["description"], path


@pytest.fixture
def server(lab_folder, tmp_path, database_url):
    made = Server(lab_folder, tmp_path / "served", database_url).start()
    yield made
    if made.process.poll() is None:
        made.kill()


def test_the_command_checks_here_and_sends(server, runs_folder, monkeypatch):
    token = server.people(["ann"])[0]
    monkeypatch.setenv("HEADCOUNT_TOKEN", token)
    run = CliRunner().invoke
    words = ["lequa", "submit", "--to", server.url, "--task", "T1A"]
    good = run(app, [*words, str(runs_folder / "T1A-dev-good.csv"), "--tags", "SLD"])
    assert good.exit_code == 0, good.output
    assert "Rank 1 of 1" in good.output and re.search(r"RAE: 0\.\d{5} ± 0\.\d{5}", good.output)
    bad = run(app, [*words, str(runs_folder / "faulty.csv")])
    assert bad.exit_code == 1 and "line 4, column 0" in bad.output
    before = server.request("GET", "/api/v1/tasks/T1A/runs", token)[1]
    assert len(before) == 1 and before[0]["tags"] == ["SLD"]
    missing = run(app, [*words, "nothing.csv"])
    assert isinstance(missing.exception, InputError)
    with pytest.raises(RefusedError, match="token is not valid"):
        Client(server.url, "hct_wrong").submit(runs_folder / "T1A-dev-good.csv", "T1A")


def test_baselines_are_posted_as_baselines(server, runs_folder, tmp_path):
    token = server.people(["boss"], ["read", "submit", "organise"], "organiser")[0]
    (tmp_path / "runs").mkdir()
    for method, quality in (("SLD", "good"), ("CC", "bad")):
        content = (runs_folder / f"T1A-dev-{quality}.csv").read_bytes()
        (tmp_path / "runs" / f"{method}.csv").write_bytes(content)
    told = []
    assert post_baselines(tmp_path, "T1A", server.url, token, told.append) == 2
    rows = server.request("GET", "/api/v1/tasks/T1A/boards/1")[1]["rows"]
    assert [(r["team"], r["kind"]) for r in rows] == [("SLD", "baseline"), ("CC", "baseline")]
    with pytest.raises(InputError, match="no runs"):
        post_baselines(tmp_path / "runs", "T1A", server.url, token)


def test_curl_with_a_token(server, runs_folder):
    import shutil

    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    token = server.people(["ann"])[0]
    words = ["curl", "-sS", "-H", f"Authorization: Bearer {token}"]
    path = runs_folder / "T1A-dev-good.csv"
    url = f"{server.url}/api/v1/tasks/T1A/runs"
    for more in (["-F", f"file=@{path}", url], ["--data-binary", f"@{path}", url]):
        done = subprocess.run([*words, *more], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["rank"] == 1, done.stdout


def test_random_requests_find_no_500(server, tmp_path):
    """Schemathesis over the OpenAPI page; MINUTES in the environment makes it longer."""
    import os

    pytest.importorskip("schemathesis")
    token = server.people(["boss"], ["read", "submit", "organise"], "organiser")[0]
    examples = os.environ.get("HEADCOUNT_TEST_EXAMPLES", "8")
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/api/v1/openapi.json"]
    command += ["-H", f"Authorization: Bearer {token}", "-n", examples, "--checks"]
    command += ["not_a_server_error", "--phases", "examples,coverage,fuzzing", "--seed", "1"]
    command += ["--exclude-path-regex", "tokens"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=280)
    log = server.log.read_text()
    assert '"level": "error"' not in log, re.findall(r'.*"level": "error".*', log)[0][-3000:]
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
