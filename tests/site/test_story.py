"""The life of a lab without a browser: people, runs, boards, phases, organisers."""

import csv
import io
import json
import zipfile
from datetime import timedelta

import numpy as np
import pyarrow.parquet as pq
import pytest
from people import PASSWORD, phase_form

from headcount.lequa.runs import read_run, write_run
from headcount.measures import measure


def test_a_run_is_checked_scored_and_ranked_at_once(alice, bob, runs_folder, truth):
    run = alice.run_id(alice.upload(runs_folder / "T1A-dev-good.csv", description="first"))
    bob.run_id(bob.upload(runs_folder / "T1A-dev-bad.csv"))
    page = alice.get(f"/runs/{run}").text
    estimates = read_run(runs_folder / "T1A-dev-good.csv")
    true = truth("T1A", "dev")
    rae = measure("rae")(true, estimates, sizes=np.full(len(true), 40))
    assert f"{rae.mean():.5f}" in page and f"{rae.std():.5f}" in page
    assert "1 <small>of 2</small>" in page
    worst = int(np.argmax(rae))
    assert f'<th scope="row">{worst}</th>' in page
    rows = bob.get("/tasks/T1A/boards/1/board.json").json()
    assert [(row["rank"], row["team"]) for row in rows] == [(1, "Team A"), (2, "Team B")]
    assert rows[0]["rae"] == pytest.approx(rae.mean(), abs=0)
    assert rows[0]["mark_rae"] == "best"


@pytest.mark.parametrize("task", ["T1B", "T3", "T2A"])
def test_every_kind_of_task_has_a_board(alice, bob, runs_folder, task, truth):
    alice.run_id(alice.upload(runs_folder / f"{task}-dev-good.csv", task))
    bob.run_id(bob.upload(runs_folder / f"{task}-dev-middle.csv", task))
    rows = alice.get(f"/tasks/{task}/boards/1/board.json").json()
    assert [row["team"] for row in rows] == ["Team A", "Team B"]
    estimates, true = read_run(runs_folder / f"{task}-dev-good.csv"), truth(task, "dev")
    name = "nmd" if task == "T3" else "rae"
    expected = measure(name)(true, estimates, sizes=np.full(len(true), 40)).mean()
    assert rows[0][name] == pytest.approx(expected)
    assert alice.get(f"/tasks/{task}/boards/1").status_code == 200
    assert alice.get("/tasks/T1A/boards/1/board.json").json() == []


def test_a_faulty_run_lists_all_faults_and_costs_nothing(alice, organiser, runs_folder, clock):
    form = phase_form(clock, name="Development", split="dev", quota_day="1", closes_at="")
    assert organiser.send("/organise/phases/1", **form | {"hidden": ""}).status_code == 303
    for _ in range(3):
        answer = alice.upload(runs_folder / "faulty.csv")
        assert answer.status_code == 422
        assert "line 4, column 0" in answer.text and "line 6" in answer.text
        assert "1 ids are missing: 11" in answer.text
    assert alice.get("/tasks/T1A/boards/1/board.json").json() == []
    alice.run_id(alice.upload(runs_folder / "T1A-dev-good.csv"))
    answer = alice.upload(runs_folder / "T1A-dev-good.csv")
    assert answer.status_code == 429 and "of this day are used" in answer.text
    clock.move(days=1)
    alice.run_id(alice.upload(runs_folder / "T1A-dev-good.csv"))


def test_ties_share_a_rank_and_withdrawing_brings_back_the_next(alice, bob, runs_folder):
    first = alice.run_id(alice.upload(runs_folder / "T1A-dev-middle.csv"))
    best = alice.run_id(alice.upload(runs_folder / "T1A-dev-good.csv"))
    bob.run_id(bob.upload(runs_folder / "T1A-dev-good.csv"))
    rows = alice.get("/tasks/T1A/boards/1/board.json").json()
    assert (rows[0]["rank"], rows[0]["run"]) == (1, best)
    assert [row["rank"] for row in rows] == [1, 1]
    assert "1=" in alice.get("/tasks/T1A/boards/1").text
    assert alice.send(f"/runs/{best}", f"/runs/{best}/withdraw").status_code == 303
    rows = alice.get("/tasks/T1A/boards/1/board.json").json()
    assert [(row["rank"], row["team"]) for row in rows] == [(1, "Team B"), (2, "Team A")]
    assert rows[1]["run"] == first
    assert "withdrawn" in alice.get("/runs").text


@pytest.mark.parametrize(("rule", "counting"), [("last", 1), ("best", 0), ("chosen", 1)])
def test_the_run_that_counts_is_what_the_organiser_says(
    alice, organiser, runs_folder, clock, rule, counting
):
    form = phase_form(clock, name="Development", split="dev", counts=rule) | {"hidden": ""}
    assert organiser.send("/organise/phases/1", **form).status_code == 303
    runs = [alice.run_id(alice.upload(runs_folder / f"T1A-dev-{q}.csv")) for q in ("good", "bad")]

    def counted():
        return alice.get("/tasks/T1A/boards/1/board.json").json()[0]["run"]

    assert counted() == runs[counting]
    answer = alice.send(f"/runs/{runs[0]}", f"/runs/{runs[0]}/choose")
    if rule == "chosen":
        assert answer.status_code == 303 and counted() == runs[0]
    else:
        assert answer.status_code == 409


def test_the_test_phase_hides_scores_until_it_is_published(
    alice, bob, organiser, test_phase, runs_folder, visit, clock
):
    run = alice.run_id(alice.upload(runs_folder / "T1A-test-good.csv"))
    bob.run_id(bob.upload(runs_folder / "T1A-test-bad.csv"))
    page = alice.get(f"/runs/{run}").text
    assert "hidden" in page and "RAE</dt>" not in page and "worst" not in page
    for path in ("", "/board.json", "/board.csv", "/ranks.svg", "/shift.svg"):
        assert alice.get(f"/tasks/T1A/boards/2{path}").status_code == 403, path
    assert alice.get("/tasks/T1A/boards/2/teams/1").status_code == 403
    assert organiser.get("/tasks/T1A/boards/2/board.json").json()[0]["team"] == "Team A"
    assert organiser.send("/organise", "/organise/phases/2/freeze").status_code == 303
    assert (
        "no phase is open" in alice.upload(runs_folder / "T1A-test-good.csv", phase="").text.lower()
    )
    assert organiser.send("/organise", "/organise/phases/2/publish").status_code == 303
    rows = visit().get("/tasks/T1A/boards/2/board.json").json()
    assert [row["team"] for row in rows] == ["Team A", "Team B"]
    assert "published" in visit().get("/").text


def test_scores_appear_by_themselves_at_their_date(alice, organiser, runs_folder, clock, visit):
    shown = clock() + timedelta(days=2)
    form = phase_form(clock, publish_at=shown.strftime("%Y-%m-%dT%H:%M:%S"))
    assert organiser.send("/organise/phases/new", **form).status_code == 303
    alice.run_id(alice.upload(runs_folder / "T1A-test-good.csv", phase="2"))
    clock.at = shown - timedelta(microseconds=1)
    assert visit().get("/tasks/T1A/boards/2").status_code == 403
    clock.at = shown
    assert visit().get("/tasks/T1A/boards/2").status_code == 200


def test_teams_are_numbers_until_the_phase_ends(alice, bob, organiser, runs_folder, visit, clock):
    rules = {"title": "Lab", "timezone": "UTC", "registration": "open", "anonymous": "true"}
    assert organiser.send("/organise", "/organise/lab", **rules).status_code == 303
    alice.run_id(alice.upload(runs_folder / "T1A-dev-good.csv", tags="secret-method"))
    bob.run_id(bob.upload(runs_folder / "T1A-dev-bad.csv"))
    text = visit().get("/tasks/T1A/boards/1").text
    assert "Team A" not in text and "Team B" not in text and "secret-method" not in text
    rows = visit().get("/tasks/T1A/boards/1/board.json").json()
    assert all(row["team"].removeprefix("Team ").isdigit() for row in rows)
    mine = alice.get("/tasks/T1A/boards/1").text
    assert "Team A" in mine and "Team B" not in mine
    assert organiser.send("/organise", "/organise/phases/1/publish").status_code == 303
    assert "Team B" in visit().get("/tasks/T1A/boards/1").text


def test_a_corrected_gold_scores_everything_again(alice, bob, organiser, runs_folder, tmp_path):
    alice.run_id(alice.upload(runs_folder / "T1A-dev-good.csv"))
    bob.run_id(bob.upload(runs_folder / "T1A-dev-bad.csv"))
    right = read_run(runs_folder / "T1A-dev-bad.csv")
    write_run(tmp_path / "gold.csv", right)
    files = {"file": ("gold.csv", (tmp_path / "gold.csv").read_bytes())}
    answer = organiser.send(
        "/organise",
        "/organise/tasks/T1A/gold",
        files=files,
        note="two classes swapped",
        split="dev",
    )
    assert answer.status_code == 303, answer.text
    rows = alice.get("/tasks/T1A/boards/1/board.json").json()
    assert [row["team"] for row in rows] == ["Team B", "Team A"]
    assert rows[0]["rae"] == pytest.approx(0)
    board = alice.get("/tasks/T1A/boards/1").text
    assert "version 2" in board and "two classes swapped" in board
    assert "All 2 runs were scored again" in alice.get("/").text


def test_export_holds_every_run_and_no_secret(alice, bob, organiser, runs_folder):
    run = alice.run_id(alice.upload(runs_folder / "T1A-dev-good.csv"))
    bob.run_id(bob.upload(runs_folder / "T1B-dev-bad.csv", "T1B"))
    answer = organiser.get("/organise/export.zip")
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    rows = list(csv.DictReader(io.StringIO(archive.read("runs.csv").decode())))
    assert [row["team"] for row in rows] == ["Team A", "Team B"]
    content = archive.read(rows[0]["file"])
    assert content == (runs_folder / "T1A-dev-good.csv").read_bytes()
    assert content == alice.get(f"/runs/{run}/file").content
    scores = pq.read_table(io.BytesIO(archive.read("scores.parquet"))).to_pylist()
    assert {row["measure"] for row in scores} == {"rae", "ae"} and len(scores) == 4
    assert PASSWORD.encode() not in answer.content and b"argon2" not in archive.read("teams.csv")
    assert alice.get("/organise/export.zip").status_code == 403


def test_removed_teams_leave_the_board_and_come_back(alice, bob, organiser, runs_folder):
    alice.run_id(alice.upload(runs_folder / "T1A-dev-good.csv"))
    bob.run_id(bob.upload(runs_folder / "T1A-dev-bad.csv"))
    send = organiser.send
    assert send("/organise/people", "/organise/teams/1", state="removed").status_code == 303
    assert [r["team"] for r in bob.get("/tasks/T1A/boards/1/board.json").json()] == ["Team B"]
    assert alice.upload(runs_folder / "T1A-dev-good.csv").status_code == 403
    assert send("/organise/people", "/organise/teams/1", state="active").status_code == 303
    assert len(bob.get("/tasks/T1A/boards/1/board.json").json()) == 2
    log = organiser.get("/organise/log").text
    assert "team removed" in log and "Team A" in log


def test_approval_and_invitation(organiser, visit, runs_folder):
    rules = {"title": "Lab", "timezone": "UTC", "registration": "invitation", "approval": "true"}
    assert organiser.send("/organise", "/organise/lab", **rules).status_code == 303
    refused = visit().send("/register", name="carol", password=PASSWORD)
    assert refused.status_code == 403 and "invitation" in refused.text
    answer = organiser.send(
        "/organise", "/organise/invitations", role="participant", uses="1", days="3"
    )
    code = answer.text.split("register?code=")[1].split("<")[0]
    carol = visit().register("carol", invitation=code)
    assert (
        visit().send("/register", name="dave", password=PASSWORD, invitation=code).status_code
        == 403
    )
    assert carol.send("/team", name="Team C").status_code == 303
    assert "approve" in carol.upload(runs_folder / "T1A-dev-good.csv").text
    assert "Team C" in organiser.get("/organise").text
    assert organiser.send("/organise", "/organise/teams/1", state="active").status_code == 303
    carol.run_id(carol.upload(runs_folder / "T1A-dev-good.csv"))


def test_teams_are_joined_by_code_and_names_are_unique(alice, visit):
    answer = alice.send("/team", "/team/code")
    code = answer.text.split('<pre tabindex="0">')[1].split("<")[0]
    carol = visit().register("carol")
    assert carol.send("/team", name="team  a").status_code == 409
    assert carol.send("/team", "/team/join", code="hcj_wrong").status_code == 403
    assert carol.send("/team", "/team/join", code=code).status_code == 303
    assert "alice" in carol.get("/team").text
    assert (
        carol.http.post(
            "/team", data={"form_token": carol.token_of("/team"), "name": "X"}
        ).status_code
        == 409
    )
    assert visit().send("/register", name="ALICE", password=PASSWORD).status_code == 409


def test_data_by_ranges_with_checksums_and_test_samples_only_in_their_phase(
    alice, organiser, site, clock, visit
):
    import hashlib

    archive = site.tasks["T1A"].archives[0]
    whole = visit().get(f"/tasks/T1A/files/{archive.name}")
    assert hashlib.sha256(whole.content).hexdigest() == archive.sha256
    assert archive.sha256 in visit().get("/tasks/T1A/SHA256SUMS").text
    part = visit().get(f"/tasks/T1A/files/{archive.name}", headers={"Range": "bytes=10-19"})
    assert part.status_code == 206 and part.content == whole.content[10:20]
    names = zipfile.ZipFile(io.BytesIO(whole.content)).namelist()
    assert "T1A/task.json" in names and not any("test" in name for name in names)
    assert visit().get("/tasks/T1A/files/T1A.test.zip").status_code == 404
    about = json.loads(zipfile.ZipFile(io.BytesIO(whole.content)).read("T1A/task.json"))
    assert "seed" not in about
    form = phase_form(clock, opens_at=clock().strftime("%Y-%m-%dT%H:%M:%S"))
    assert organiser.send("/organise/phases/new", **form).status_code == 303
    opened = visit().get("/tasks/T1A/files/T1A.test.zip")
    inside = zipfile.ZipFile(io.BytesIO(opened.content)).namelist()
    assert "T1A/test.f32" in inside and not any("prevalences" in name for name in inside)


def test_the_published_results_stand_beside_the_board(organiser, visit):
    answer = organiser.send("/organise", "/organise/tasks/T1A/reference", reference="T1A")
    assert answer.status_code == 303
    text = visit().get("/tasks/T1A/boards/1").text
    assert "KULeuven" in text and "0.10858" in text
    bad = organiser.send("/organise", "/organise/tasks/T1A/reference", reference="T9")
    assert bad.status_code == 422


def test_the_board_sorts_and_draws(alice, bob, runs_folder):
    run = alice.run_id(alice.upload(runs_folder / "T1A-dev-good.csv"))
    bob.run_id(bob.upload(runs_folder / "T1A-dev-bad.csv"))
    text = alice.get("/tasks/T1A/boards/1?sort=ae&down=true").text
    assert text.index(">Team B<") < text.index(">Team A<")
    assert alice.get("/tasks/T1A/boards/1?sort=password").status_code == 404
    for kind in ("ranks", "shift", "diagonal"):
        answer = alice.get(f"/tasks/T1A/boards/1/{kind}.svg?run={run}")
        assert answer.headers["content-type"] == "image/svg+xml"
        assert ("Team B" in answer.text) == (kind == "ranks"), kind
        assert "Team A" in answer.text
    history = bob.get("/tasks/T1A/boards/1/teams/1").text
    assert "Team A" in history and f"/runs/{run}" not in history


def test_a_new_password_ends_every_session(alice, organiser, site, clock):
    from headcount.site.accounts import find_user, invite

    headers = alice.token("read")
    with site.database.writing() as session:
        code = invite(session, clock(), by=None, resets=find_user(session, "alice"))
    from people import Person

    other = Person(site)
    assert other.send("/reset", code=code, password="a new password").status_code == 303
    assert alice.get("/team", follow_redirects=False).status_code == 303
    assert alice.get("/api/v1/me", headers=headers).status_code == 401
    assert Person(site).log_in("alice").status_code == 401
    assert Person(site).log_in("alice", "a new password").status_code == 303
    assert Person(site).send("/reset", code=code, password="another password").status_code == 403
