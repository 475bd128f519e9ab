"""Labelled rows: copies, rare classes, and labels of nothing."""

import numpy as np

from headcount.tables import Model
from tests.commands import run, table


def test_a_useless_model_is_not_written_unless_asked_for(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.choice(["yes", "no"], 400)
    noise = table(tmp_path, "noise.csv", p=rng.random(400), label=y)
    args = ["fit", noise, "--scores", "p", "--label", "label", "--method", "PACC"]
    said = run(*args, "-o", tmp_path / "m.hc", code=2)
    assert "hardly tell the classes apart" in said
    assert "--force" in said
    assert not (tmp_path / "m.hc").exists()
    run(*args, "-o", tmp_path / "m.hc", "--force")
    assert (tmp_path / "m.hc").exists()
    same = table(tmp_path, "same.csv", t=["the same text"] * 60, label=["a", "b"] * 30)
    more = ["--text", "t", "--label", "label", "--method", "SLD", "-o", tmp_path / "s.hc"]
    assert "all 60 texts are the same" in run("fit", same, *more, code=2)


def test_copies_count_once_and_labels_of_nothing_not_at_all(tmp_path):
    rng = np.random.default_rng(0)
    texts = [f"{rng.choice(['good', 'fine'])} w{i}" for i in range(50)]
    texts += [f"{rng.choice(['bad', 'poor'])} w{i}" for i in range(50)]
    labels = ["pos"] * 50 + ["neg"] * 50
    many = table(tmp_path, "many.csv", t=texts * 12 + ["odd"] * 3, label=labels * 12 + ["NaN"] * 3)
    said = run("fit", many, "--text", "t", "--label", "label", "--method", "SLD",
               "-o", tmp_path / "m.hc")  # fmt: skip
    assert "1,100 of 1,200 labelled rows are copies" in said
    assert "'NaN' in 'label' is taken as no label" in said
    assert "Learnt from 100 labelled rows" in said
    assert "given twice" in run(
        "fit", many, many, "--text", "t", "--label", "label", "-o", tmp_path / "m.hc", code=2
    )
    assert "given twice" in run("estimate", tmp_path / "m.hc", many, tmp_path / "ma*.csv", code=2)


def test_rare_classes_are_named_at_once_and_joined_or_dropped(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c", "d", "e"], [200, 200, 4, 3, 3])
    x = (labels == "a") + 0.5 * (labels > "b") + rng.normal(0, 0.2, len(labels))
    path = table(tmp_path, "t.csv", x=x, label=labels)
    args = ["fit", path, "--features", "x", "--label", "label", "--method", "PACC",
            "-o", tmp_path / "m.hc"]  # fmt: skip
    said = run(*args, code=2)
    assert "'c' (4), 'd' (3), 'e' (3)" in said
    assert "--min-rows" in said
    assert "joined into 'other' (10 rows)" in run(*args, "--min-rows", "8")
    found = Model.load(tmp_path / "m.hc").estimate(path)
    assert found.interval.classes.tolist() == ["a", "b", "other"]
    assert any("'c', 'd', 'e'" in str(note) for note in found.notes)
    assert "left out (10 rows)" in run(*args, "--min-rows", "8", "--rare", "drop")
    assert Model.load(tmp_path / "m.hc").quantifier.classes_.tolist() == ["a", "b"]
