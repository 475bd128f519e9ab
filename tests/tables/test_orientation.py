"""Which column of scores is of which class."""

import numpy as np
import pytest

from headcount.tables import Model, fit
from tests.commands import moods, run, table, write


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
