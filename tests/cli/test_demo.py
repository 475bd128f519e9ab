import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import headcount
from headcount.cli import demo
from headcount.cli.app import app
from headcount.study import run

runner = CliRunner()


def test_version():
    assert runner.invoke(app, ["version"]).stdout.strip() == f"headcount {headcount.__version__}"


def test_demo_tells_the_story_then_compares_then_runs_the_lab(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "LAB_TEST_SAMPLES", 40)
    monkeypatch.setattr(demo, "LAB_PARTS", ("a",))
    monkeypatch.setattr(demo, "STORY_METHOD", "SLD")
    small = {name: load for name, load in demo.DATASETS.items() if "2 classes" in name}
    monkeypatch.setattr(demo, "DATASETS", small)
    done = runner.invoke(app, ["demo", "--bags", "30", "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    places = [
        done.stdout.index(part) for part in ("complaints?", "2025-09", "AutoQuantifier", "T1A")
    ]
    assert places == sorted(places)
    for name in demo.methods(0):
        assert name in done.stdout, name
    assert "Lower is better" in done.stdout
    assert (tmp_path / "report.html").read_text().count("<svg") >= 6
    start = (tmp_path / "index.html").read_text()
    for link in re.findall(r"href='([^']+)'", start):
        assert (tmp_path / link).is_file(), link
    assert "complaints.html" in start and "<svg" in start


def test_demo_orders_methods_as_the_field_knows_them(tmp_path, monkeypatch):
    known = ("SLD, BCTS", "CC", "MLPE", "PACC", "PCC")
    some = {name: q for name, q in demo.methods(0).items() if name in known}
    monkeypatch.setattr(demo, "methods", lambda _: some)
    frame = run(demo.study(300, 0), tmp_path).frame
    digits = frame.rows(frame["dataset"] == "digits (10 classes)")
    board = headcount.leaderboard(headcount.Frame({c: digits[c] for c in ("method", "rae")}))
    rank = dict(zip(board["method"].tolist(), board["rank(rae)"].tolist(), strict=True))
    assert rank["SLD, BCTS"] < rank["CC"] < rank["MLPE"]
    assert rank["PACC"] < rank["PCC"]


@pytest.mark.parametrize("words", [["demmo"], ["demo", "--bags", "0"], ["demo", "--bags", "x"]])
def test_mistakes_end_with_code_two_and_no_traceback(words):
    done = subprocess.run(
        [sys.executable, "-m", "headcount.cli", *words], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_every_command_is_documented():
    for command in app.registered_commands:
        assert command.callback.__doc__
