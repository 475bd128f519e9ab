"""Rows of tables to counts of groups: which rows, which dates, which groups."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headcount.data.stream import sources
from headcount.tables import Model
from tests.commands import heap_of, moods, run, shares, table, write


def test_a_count_in_python(folder):
    model = Model.load(folder / "m.hc")
    found = model.estimate(sources([str(folder / "heap.csv")]), by="shop", truth="mood")
    assert found.groups == ["north", "south"]
    assert found.sizes.sum() == 2000
    assert found.to_frame()["truth"].shape == (4,)
    quality = model.training.quality
    assert quality.error < quality.counting + 0.01


def test_doubtful_rows_are_said_and_counted(folder, tmp_path):
    lines = (folder / "heap.csv").read_text().splitlines()
    lines += [",2024-02-03,north,pos", "fine day,sometime,north,pos", "lovely shop,,north,meh"]
    lines += ["great day,2025-07-01,north,pos"] * 3
    (tmp_path / "odd.csv").write_text("\n".join(lines) + "\n")
    said = run(
        "estimate", folder / "m.hc", tmp_path / "odd.csv", "--by", "month:date", "--truth", "mood"
    )
    assert "1 rows without text were left out" in said
    assert "2 rows have no readable date" in said and "(no date)" in said
    assert "'meh', which the model never saw" in said
    assert "2025-07, (no date): few items" in said
    assert "--truth mood" in run("estimate", folder / "m.hc", folder / "heap.csv")


@pytest.mark.parametrize("empty", ["a", "b", "c"])
def test_a_group_without_anything_to_look_at_is_left_out(folder, tmp_path, empty):
    rows = [
        f"{'' if g == empty else 'fine day'},2024-01-01,{g},pos" for g in "abc" for _ in range(40)
    ]
    found = shares(folder / "m.hc", heap_of(tmp_path / "h.csv", rows), "--by", "shop")
    assert {r["group"] for r in found} == set("abc") - {empty}
    assert {r["n"] for r in found} == {40}


def test_dates_of_left_out_rows_do_not_count(folder, tmp_path):
    rows = [",?,a,pos"] * 20 + ["fine day,2024-01-01,a,pos"] * 20
    found = shares(folder / "m.hc", heap_of(tmp_path / "h.csv", rows), "--by", "month:date")
    assert [r["group"] for r in found] == ["2024-01"] * 2
    rows = [",?,a,pos"] * 4 + ["fine day,31st of Undecember,a,pos"] * 36
    path = heap_of(tmp_path / "h.csv", rows)
    assert "could be read as a date" in run(
        "estimate", folder / "m.hc", path, "--by", "day:date", code=2
    )


def test_a_date_keeps_its_own_clock(folder, tmp_path):
    for other in ("?", "2026-11-30", "2026-11-30T23:30:00-05:00"):
        rows = ["fine day,2026-11-30T23:30:00-05:00,a,pos"] * 40 + [f"fine day,{other},a,pos"]
        found = shares(folder / "m.hc", heap_of(tmp_path / "h.csv", rows), "--by", "day:date")
        assert found[0]["group"] == "2026-11-30"


def test_codes_are_no_numbers(folder, tmp_path):
    rows = [f"fine day,2024-01-01,{g},pos" for g in ("01234", "1234") for _ in range(40)]
    found = shares(folder / "m.hc", heap_of(tmp_path / "h.csv", rows), "--by", "shop")
    assert {r["group"] for r in found} == {"01234", "1234"}


def test_order_of_rows_does_not_matter(folder, tmp_path):
    head, *rows = (folder / "heap.csv").read_text().splitlines()
    np.random.default_rng(0).shuffle(rows)
    mixed = heap_of(tmp_path / "h.csv", rows, head)
    by = ("--by", "month:date")
    ours, theirs = (
        shares(folder / "m.hc", folder / "heap.csv", *by),
        shares(folder / "m.hc", mixed, *by),
    )
    assert [r["share"] for r in ours] == pytest.approx([r["share"] for r in theirs], abs=1e-9)
    assert [r["counted"] for r in ours] == [r["counted"] for r in theirs]


def test_types_do_not_depend_on_the_first_block(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("headcount.data.stream.BLOCK", 2000)
    rows = ["fine day,2024-01-01,1,pos"] * 200 + ["fine day,unknown,x,pos"] * 5
    path = heap_of(tmp_path / "h.csv", rows)
    found = shares(folder / "m.hc", path, "--by", "month:date")
    assert [r["n"] for r in found] == [200, 200, 5, 5]
    assert [r["n"] for r in shares(folder / "m.hc", path, "--by", "shop")] == [200, 200, 5, 5]


def test_categories_are_the_same_however_they_are_stored(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=600)
    code = np.where(rng.random(600) < np.where(y == 1, 0.8, 0.2), "1", "2").astype(object)
    code[:2] = "x"  # most folds of a split see numbers alone
    write(tmp_path / "train.csv", code=code, y=y)
    run(
        "fit", tmp_path / "train.csv", "--features", "code", "--label", "y", "-o", tmp_path / "m.hc"
    )
    stored = np.where(code == "x", None, code)
    kinds = {
        "text": pa.array(stored.tolist()),
        "float": pa.array(stored.tolist()).cast(pa.float64()),
    }
    found = {}
    for name, column in kinds.items():
        pq.write_table(pa.table({"code": column}), tmp_path / f"{name}.parquet")
        found[name] = shares(tmp_path / "m.hc", tmp_path / f"{name}.parquet")[1]["counted"]
    assert found["text"] == found["float"] > 0.2


def test_weights_are_repetitions_that_make_nothing_surer(tmp_path):
    rng = np.random.default_rng(0)
    y, p = moods(600, rng)
    train = table(tmp_path, "t.csv", p=p, label=y)
    run("fit", train, "--scores", "p", "--label", "label", "--method", "PACC",
        "-o", tmp_path / "m.hc")  # fmt: skip
    y, p = moods(300, rng)
    times = np.where(y == "yes", 4, 1)
    weighted = table(tmp_path, "w.csv", p=p, w=times, label=y)
    repeated = table(tmp_path, "r.csv", p=np.repeat(p, times), label=np.repeat(y, times))
    model = Model.load(tmp_path / "m.hc")
    ours = model.estimate(weighted, weight="w", truth="label")
    theirs = model.estimate(repeated, truth="label")
    np.testing.assert_allclose(ours.interval.prevalence, theirs.interval.prevalence, atol=1e-3)
    np.testing.assert_allclose(ours.truth, theirs.truth)
    wide, narrow = (f.interval.high - f.interval.low for f in (ours, theirs))
    assert (wide > 1.2 * narrow).all()
    bad = table(tmp_path, "b.csv", p=p, w=-times)
    assert "cannot be negative" in run("estimate", tmp_path / "m.hc", bad, "--weight", "w", code=2)
