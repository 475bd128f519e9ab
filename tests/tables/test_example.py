"""The example corpus: repeatable, with drift that counting gets wrong and we get right."""

import numpy as np
import pytest
from typer.testing import CliRunner

from headcount import tables
from headcount.cli.app import app
from headcount.tables.example import COMPLAINTS, make_example


def test_counting_fails_visibly_and_the_estimate_does_not():
    labelled, messages = make_example()
    model = tables.fit(labelled, text="message", label="kind", method="SLD")
    found = model.estimate(messages, by="month:date", truth="kind")
    assert found.groups[0] == "2025-01" and len(found.groups) == len(COMPLAINTS)
    ours, plain = found.interval.prevalence[:, 0], found.counted[:, 0]
    off = [np.abs(v - found.truth[:, 0]).mean() for v in (ours, plain)]
    assert off[0] < 0.04 and off[1] > 0.09
    assert not any("misfit" in found.flags(g) for g in range(5))
    changed = found.monitor()
    assert changed["changed"][changed["group"] == "2025-11"].all()


def test_the_corpus_is_the_same_for_the_same_seed(tmp_path):
    runner = CliRunner()
    for name in ("a", "b"):
        done = runner.invoke(app, ["example", "-o", str(tmp_path / name)])
        assert done.exit_code == 0 and "headcount fit" in done.output
    for file in ("labelled.csv", "messages.csv"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    again = runner.invoke(app, ["example", "-o", str(tmp_path / "a")])
    assert "is there already" in str(again.exception)
    assert make_example(1)[0]["message"][0] != make_example(0)[0]["message"][0]


def test_messages_are_no_copies_of_each_other():
    labelled, _ = make_example()
    assert len(set(labelled["message"].tolist())) > 0.95 * labelled.n_rows
    assert pytest.approx(0.5, abs=0.05) == (labelled["kind"] == "complaint").mean()
