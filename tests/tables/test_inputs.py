"""What tables are learnt from: texts with features, scores of classes, dates, repeated rows."""

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info

from headcount import tables
from headcount.exceptions import InputError
from headcount.tables import Model, fit
from tests.commands import moods, run, table, write


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
        assert len(model.training.groups.names) == months


def test_a_table_that_holds_every_row_several_times_counts_once():
    rng = np.random.default_rng(3)
    rows = complaints(200, 0.5, rng)
    settings = {"features": ["amount", "channel"], "label": "kind", "method": "SLD"}
    once = tables.fit(rows, **settings)
    often = tables.fit(pd.concat([rows] * 12), **settings)
    assert [note.kind for note in often.notes] == ["copies"]
    assert often.training.rows == 200 and often.training.quality == once.training.quality
    judge = pd.DataFrame({"p": rng.integers(1, 6, 400), "kind": ["no", "yes"] * 200})
    found = tables.fit(judge, scores="p", label="kind", method="SLD", force=True)
    assert found.training.rows == 400  # ties are no copies


def test_short_answers_that_are_the_same_are_no_copies_and_long_ones_are():
    rng = np.random.default_rng(4)
    y = np.where(rng.random(600) < 0.5, "yes", "no")
    short = np.where(rng.random(600) < np.where(y == "yes", 0.8, 0.2), "ok good", "so bad")
    rows = pd.DataFrame({"text": short, "kind": y})
    model = tables.fit(rows, text="text", label="kind", method="SLD")
    assert model.training.rows == 600 and not model.notes
    mails = [f"this is mail {i} about {w}" for i, w in enumerate(short[:100])]
    again = rng.integers(100, size=500)
    copied = pd.DataFrame({"text": np.array(mails)[again], "kind": y[again]})
    model = tables.fit(copied, text="text", label="kind", method="SLD", force=True)
    assert model.training.rows == len(set(again)) and model.notes[0].kind == "copies"


@pytest.mark.parametrize("turned", [False, True])
def test_a_judges_scale_is_counted_from_where_the_labels_say(turned, tmp_path):
    rng = np.random.default_rng(5)
    y = rng.random(400) < 0.4
    score = np.clip(np.round(np.where(y, 4.2, 2.0) + rng.normal(0, 0.7, 400)), 1, 5)
    rows = pd.DataFrame({"judge": 6 - score if turned else score, "kind": np.where(y, "b", "a")})
    model = tables.fit(rows, scores="judge", label="kind", method="PACC")  # needs no posteriors
    model.save(tmp_path / "m.hc")
    assert model.training.quality.counting < 0.15  # 0.5 as a border would count all as one
    found = tables.Model.load(tmp_path / "m.hc").estimate(rows, truth="kind")
    np.testing.assert_allclose(found.counted, found.truth, atol=0.1)
    np.testing.assert_allclose(found.interval.prevalence, found.truth, atol=0.05)


def test_a_copy_of_a_file_under_another_name_is_refused(tmp_path):
    rows = complaints(50, 0.5, np.random.default_rng(6))
    for name in ("a.csv", "b.csv"):
        rows.to_csv(tmp_path / name, index=False)
    with pytest.raises(InputError, match=r"b\.csv is a copy of .*a\.csv"):
        tables.fit(str(tmp_path / "*.csv"), text="text", label="kind")


@pytest.mark.parametrize("encoding", ["utf-32", "utf-16-be", "cp1252"])
@pytest.mark.parametrize(("separator", "end"), [("sep=;\n", "\n"), ("", "\r"), ("", "\r\n")])
def test_files_as_spreadsheets_write_them(tmp_path, encoding, separator, end):
    rows = complaints(120, 0.5, np.random.default_rng(4))
    rows["text"] += " café"
    text = separator + rows.to_csv(index=False, sep=";", lineterminator="\n")
    (tmp_path / "t.csv").write_bytes(text.replace("\n", end).encode(encoding))
    settings = {"text": "text", "label": "kind", "method": "SLD", "force": True}
    found = tables.fit(str(tmp_path / "t.csv"), **settings)
    assert found.training.shares == tables.fit(rows, **settings).training.shares


@pytest.mark.parametrize(
    ("weight", "match"),
    [(-1, "cannot be negative"), (np.inf, "infinite weight"), (0, "no weight above 0")],
)
def test_weights_that_are_none(weight, match):
    rows = complaints(300, 0.5, np.random.default_rng(5)).assign(w=weight)
    model = tables.fit(rows, features=["amount", "channel"], label="kind", method="SLD")
    with pytest.raises(InputError, match=match):
        model.estimate(rows, weight="w")
    with pytest.raises(InputError, match="in another column"):
        model.estimate(rows, weight="channel")
    rows["w"] = np.where(np.arange(300) % 3, 1.0, np.nan)
    said = [str(note) for note in model.estimate(rows, weight="w").notes]
    assert "100 rows without a weight above 0 were left out." in said
    assert not any("without features" in text for text in said)


def test_unnamed_scores_are_of_the_classes_whose_rows_score_high(capsys):
    rng = np.random.default_rng(6)
    y = rng.choice(["a", "b", "c"], 600)
    scores = rng.dirichlet(np.ones(3), 600) + 0.6 * (y[:, None] == np.array(["c", "a", "b"]))
    scores /= scores.sum(axis=1, keepdims=True)
    rows = pd.DataFrame(scores, columns=["u", "v", "w"]).assign(y=y)
    model = tables.fit(rows, scores=["u", "v", "w"], label="y", method="SLD")
    assert model.inputs.columns == ("v", "w", "u")
    assert "'v' = a, 'w' = b, 'u' = c" in repr(model)
    wrong = rows.rename(columns={"u": "p_a", "v": "p_b", "w": "p_c"})
    settings = {"scores": ["p_a", "p_b", "p_c"], "label": "y", "method": "SLD", "force": True}
    assert "are these the scores of the right classes?" in repr(tables.fit(wrong, **settings))


def test_a_class_other_does_not_take_the_rare_ones_in():
    rows = complaints(300, 0.5, np.random.default_rng(7))
    rows.loc[:11, "kind"] = ["praise", "request"] * 6
    settings = {"features": ["amount", "channel"], "label": "kind", "method": "SLD", "force": True}
    model = tables.fit(rows, min_rows=10, **settings)
    assert model.class_names == ["complaint", "other", "other (rare)"]
    assert "'praise', 'request'; joined into 'other (rare)' (12 rows)" in repr(model)


def test_labels_that_may_be_none_are_said():
    rows = complaints(300, 0.5, np.random.default_rng(8))
    rows.loc[:29, "kind"] = "None"
    rows.loc[30:39, "kind"] = "NaT"
    rows.loc[40:69, "kind"] = "Other"
    settings = {"features": ["amount", "channel"], "label": "kind", "method": "SLD", "force": True}
    said = repr(tables.fit(rows, **settings))
    assert "'None' in 'kind' is taken as a class" in said
    assert "'Other', 'other' in 'kind' differ only in capitals" in said
    assert "10 rows without a label were left out." in said


def test_outputs_and_classes_are_checked_before_the_work(tmp_path, monkeypatch):
    rows = complaints(300, 0.5, np.random.default_rng(9))
    rows.to_csv(tmp_path / "t.csv", index=False)
    tables.fit(rows, features="amount", label="kind", method="SLD").save(tmp_path / "m.hc")
    monkeypatch.setattr(tables.Model, "estimate", lambda *_, **__: pytest.fail("it worked"))
    args = [tmp_path / "m.hc", tmp_path / "t.csv"]
    assert "Did you mean 'complaint'" in run("estimate", *args, "--only", "complain", code=2)

    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    said = run("report", *args, "-o", tmp_path / "page.html", code=2)
    assert "takes no new files (No space left on device)" in said


def test_warnings_while_fitting_are_notes(tmp_path, capsys):
    rows = complaints(200, 0.5, np.random.default_rng(10)).assign(p=0.7)
    rows.to_csv(tmp_path / "t.csv", index=False)
    run(
        "fit",
        tmp_path / "t.csv",
        "--scores",
        "p",
        "--label",
        "kind",
        "--method",
        "SLD",
        "-o",
        tmp_path / "m.hc",
        code=2,
    )  # fmt: skip; warnings are errors here


def test_a_date_that_cannot_be_read_is_shown(tmp_path):
    rows = complaints(200, 0.5, np.random.default_rng(11)).assign(date="2026-03-01")
    model = tables.fit(rows, features="amount", label="kind", method="SLD")
    rows.loc[:4, "date"] = "soon"
    said = [str(n) for n in model.estimate(rows, by="month:date").notes]
    assert any("5 rows have no readable date in 'date' (such as 'soon')" in s for s in said)
    with pytest.raises(InputError, match="group by the column itself"):
        model.estimate(rows.assign(date="2026-W09"), by="month:date")


@pytest.mark.parametrize("ends", [True, False])
def test_rows_that_an_open_quote_swallows_are_said(tmp_path, ends):
    rows = complaints(300, 0.5, np.random.default_rng(12))
    rows.loc[5, "text"] = "several lines\n" * 9  # which is no fault
    lines = rows[["text", "kind"]].to_csv(index=False).split("\n")
    settings = {"text": "text", "label": "kind", "method": "SLD", "force": True}
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert not tables.fit(str(tmp_path / "t.csv"), **settings).notes
    lines[200] = f'"{lines[200]}'
    lines[280] = '"so it ends",other' if ends else lines[280]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    said = repr(tables.fit(str(tmp_path / "t.csv"), **settings))
    assert "lines of t.csv are inside of a cell where rows should be, and lost" in said


def test_an_array_of_json_is_explained(tmp_path):
    (tmp_path / "t.jsonl").write_text('[{"text": "a", "kind": "b"}]')
    with pytest.raises(InputError, match="one JSON array"):
        tables.fit(str(tmp_path / "t.jsonl"), text="text", label="kind")


@pytest.mark.parametrize("by", ["kind", "text"])
def test_labels_and_texts_are_no_groups(by):
    rows = complaints(100, 0.5, np.random.default_rng(13))
    with pytest.raises(InputError, match="which are no groups"):
        tables.fit(rows, text="text", label="kind", by=by)


def test_a_page_of_groups_that_the_model_did_not_know_is_not_trusted_blindly():
    rows = complaints(400, 0.5, np.random.default_rng(14))
    model = tables.fit(rows, features="amount", label="kind", method="SLD")
    page = model.report(rows, "channel").html
    assert "<b>Can it be trusted?</b> Yes" not in page
    assert "fitted without knowing the groups" in page


def test_blas_has_one_thread_while_fitting(monkeypatch):
    from headcount.tables import api

    found = []

    def learn(*args, **settings):
        found.extend(i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas")
        raise InputError("seen")

    monkeypatch.setattr(api, "learn", learn)
    rows = complaints(20, 0.5, np.random.default_rng(15))
    with pytest.raises(InputError, match="seen"):
        tables.fit(rows, features="amount", label="kind")
    assert set(found) == {1}


@pytest.mark.parametrize(("column", "is_of"), [("judge", "no"), ("p_no", "no"), ("p_yes", "no")])
def test_the_labels_tell_whose_score_a_single_column_is(tmp_path, column, is_of):
    rng = np.random.default_rng(0)
    y, p = moods(600, rng)
    heap_y, heap_p = moods(500, rng)
    train = table(tmp_path, "train.csv", **{column: 1 - p, "label": y})
    heap = table(tmp_path, "heap.csv", **{column: 1 - heap_p, "label": heap_y})
    said = run("fit", train, "--scores", column, "--label", "label", "--method", "PACC",
               "-o", tmp_path / "m.hc")  # fmt: skip
    assert f"taken as the score of '{is_of}'" in said
    assert ("named after the other class" in said) == (column == "p_yes")
    found = Model.load(tmp_path / "m.hc").estimate(heap, truth="label")
    np.testing.assert_allclose(found.interval.prevalence, found.truth, atol=0.05)


def test_columns_of_scores_find_their_classes(folder):
    model = Model.load(folder / "s.hc")
    assert model.inputs.columns == ("p_neg", "p_pos")
    notes = []
    fit(str(folder / "scored.csv"), scores="p_pos", label="mood", on_note=notes.append)
    assert "taken as the score of 'pos'" in str(notes[0])


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        (["p_neg", "other"], "tell some of the classes"),
    ],
)
def test_scores_of_the_wrong_class_are_refused(folder, columns, match):
    path = folder / "scored.csv"
    text = path.read_text()
    renamed = folder / "renamed.csv"
    renamed.write_text(text.replace("p_pos", "other", 1))
    args = ("fit", renamed, "--scores", ",".join(columns), "--label", "mood", "-o", folder / "w.hc")
    assert match in run(*args, code=2)


def test_the_longest_name_of_a_class_wins(tmp_path):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(300) < 0.5, "neg", "non-neg")
    p = np.where(y == "neg", rng.beta(5, 2, 300), rng.beta(2, 5, 300))
    write(tmp_path / "s.csv", **{"p_non-neg": 1 - p, "p_neg": p, "y": y})
    run(
        "fit",
        tmp_path / "s.csv",
        "--scores",
        "p_non-neg,p_neg",
        "--label",
        "y",
        "-o",
        tmp_path / "m.hc",
    )
    assert Model.load(tmp_path / "m.hc").inputs.columns == ("p_neg", "p_non-neg")
