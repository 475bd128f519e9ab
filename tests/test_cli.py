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


def test_demo_ends_in_a_leaderboard_of_every_method(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "LAB_TEST_SAMPLES", 40)
    done = runner.invoke(app, ["demo", "--bags", "30", "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    for name in demo.methods(0):
        assert done.stdout.count(name) >= 2, name
    assert "Lower is better" in done.stdout
    assert (tmp_path / "report.html").read_text().count("<svg") >= 6


def test_demo_orders_methods_as_the_field_knows_them(tmp_path):
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
