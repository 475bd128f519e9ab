"""What tables are learnt from: texts with features, dates of labelled rows, repeated rows."""

import numpy as np
import pandas as pd
import pytest

from headcount import tables
from headcount.exceptions import InputError
from test_tables import run


def complaints(n, share, rng):
    """Half of what there is to know is in the text, half in the other columns."""
    y = rng.random(n) < share
    words = np.where(rng.random(n) < np.where(y, 0.75, 0.25), "broken late", "thanks fine")
    return pd.DataFrame(
        {
            "text": [f"{w} word{i % 7}" for i, w in enumerate(words)],
            "amount": np.where(y, rng.normal(60, 15, n), rng.normal(40, 15, n)).round(2),
            "channel": np.where(rng.random(n) < np.where(y, 0.7, 0.3), "phone", "web"),
            "kind": np.where(y, "complaint", "other"),
        }
    )


@pytest.mark.parametrize("method", ["SLD", "auto"])
def test_texts_and_features_together(tmp_path, method):
    rng = np.random.default_rng(0)
    train, heap = complaints(600, 0.5, rng), complaints(2000, 0.2, rng)
    settings = {"label": "kind", "method": method, "budget": 0, "force": True}
    both = tables.fit(train, text="text", features=["amount", "channel"], **settings)
    alone = tables.fit(train, text="text", label="kind", method="SLD")
    held = [(m.scorer.scores.argmax(axis=1) == m.scorer.codes).mean() for m in (both, alone)]
    assert held[0] > held[1] + 0.03  # features tell what the text does not
    both.save(tmp_path / "m.hc")
    found = tables.Model.load(tmp_path / "m.hc").estimate(heap, truth="kind")
    np.testing.assert_allclose(found.interval.prevalence, found.truth, atol=0.06)
    assert np.isfinite(found.diagnosis.drift).all()  # words and columns are both looked at


def test_the_command_takes_texts_with_features(tmp_path):
    rng = np.random.default_rng(1)
    rows = complaints(300, 0.5, rng)
    rows.loc[:4, "text"] = ""
    rows.to_csv(tmp_path / "t.csv", index=False)
    said = run("fit", tmp_path / "t.csv", "--text", "text", "--features", "amount,channel",
               "--label", "kind", "--method", "SLD", "-o", tmp_path / "m.hc")  # fmt: skip
    assert "5 rows without text and features were left out" in said
    assert tables.Model.load(tmp_path / "m.hc").inputs.columns == ("text", "amount", "channel")


def test_what_is_looked_at_is_one_thing():
    rows = pd.DataFrame({"text": ["a"], "p": [0.5], "y": ["u"]})
    with pytest.raises(InputError, match="text, features, both of these, or scores"):
        tables.fit(rows, text="text", scores="p", label="y")
    with pytest.raises(InputError, match="text, features, both of these, or scores"):
        tables.fit(rows, label="y")
    with pytest.raises(InputError, match="each once"):
        tables.fit(rows, text="text", features="text", label="y")


def test_dates_of_labelled_rows_are_read_as_told():
    rng = np.random.default_rng(2)
    rows = complaints(400, 0.5, rng)
    rows["date"] = [f"0{1 + i % 8}/0{1 + i % 4}/2026" for i in range(len(rows))]
    settings = {"text": "text", "label": "kind", "by": "month:date", "method": "SLD"}
    with pytest.raises(InputError, match="day-first"):
        tables.fit(rows, **settings)
    for told, months in (("day-first", 4), ("month-first", 8)):
        model = tables.fit(rows, **settings, date_format=told)
        assert len(model.summary["groups"]["names"]) == months


def test_a_table_that_holds_every_row_several_times_counts_once():
    rng = np.random.default_rng(3)
    rows = complaints(200, 0.5, rng)
    settings = {"features": ["amount", "channel"], "label": "kind", "method": "SLD"}
    once = tables.fit(rows, **settings)
    often = tables.fit(pd.concat([rows] * 12), **settings)
    assert [note.kind for note in often.notes] == ["copies"]
    assert often.summary["rows"] == 200 and often.summary["quality"] == once.summary["quality"]
    judge = pd.DataFrame({"p": rng.integers(1, 6, 400), "kind": ["no", "yes"] * 200})
    found = tables.fit(judge, scores="p", label="kind", method="SLD", force=True)
    assert found.summary["rows"] == 400  # ties are no copies


def test_short_answers_that_are_the_same_are_no_copies_and_long_ones_are():
    rng = np.random.default_rng(4)
    y = np.where(rng.random(600) < 0.5, "yes", "no")
    short = np.where(rng.random(600) < np.where(y == "yes", 0.8, 0.2), "ok good", "so bad")
    rows = pd.DataFrame({"text": short, "kind": y})
    model = tables.fit(rows, text="text", label="kind", method="SLD")
    assert model.summary["rows"] == 600 and not model.notes
    mails = [f"this is mail {i} about {w}" for i, w in enumerate(short[:100])]
    again = rng.integers(100, size=500)
    copied = pd.DataFrame({"text": np.array(mails)[again], "kind": y[again]})
    model = tables.fit(copied, text="text", label="kind", method="SLD", force=True)
    assert model.summary["rows"] == len(set(again)) and model.notes[0].kind == "copies"


@pytest.mark.parametrize("turned", [False, True])
def test_a_judges_scale_is_counted_from_where_the_labels_say(turned, tmp_path):
    rng = np.random.default_rng(5)
    y = rng.random(400) < 0.4
    score = np.clip(np.round(np.where(y, 4.2, 2.0) + rng.normal(0, 0.7, 400)), 1, 5)
    rows = pd.DataFrame({"judge": 6 - score if turned else score, "kind": np.where(y, "b", "a")})
    model = tables.fit(rows, scores="judge", label="kind", method="PACC")  # needs no posteriors
    model.save(tmp_path / "m.hc")
    assert model.summary["quality"]["counting"] < 0.15  # 0.5 as a border would count all as one
    found = tables.Model.load(tmp_path / "m.hc").estimate(rows, truth="kind")
    np.testing.assert_allclose(found.counted, found.truth, atol=0.1)
    np.testing.assert_allclose(found.interval.prevalence, found.truth, atol=0.05)


def test_a_copy_of_a_file_under_another_name_is_refused(tmp_path):
    rows = complaints(50, 0.5, np.random.default_rng(6))
    for name in ("a.csv", "b.csv"):
        rows.to_csv(tmp_path / name, index=False)
    with pytest.raises(InputError, match=r"b\.csv is a copy of .*a\.csv"):
        tables.fit(str(tmp_path / "*.csv"), text="text", label="kind")
