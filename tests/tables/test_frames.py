"""Tables in Python: data frames of any library, and the same answers as the commands'."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from headcount import tables
from headcount.cli.app import app
from headcount.exceptions import InputError

WORDS = {"neg": ["awful", "broken", "poor", "slow"], "pos": ["fine", "lovely", "great", "quick"]}


def rows(n, shares, rng):
    """Texts, dates and moods of months with these shares of neg."""
    found = {"review": [], "date": [], "mood": []}
    for m, share in enumerate(shares, start=1):
        for mood in np.where(rng.random(n) < share, "neg", "pos"):
            other = "pos" if mood == "neg" else "neg"
            said = [*rng.choice(WORDS[mood], 3), *rng.choice(WORDS[other], 1), "the", "shop"]
            found["review"].append(" ".join(rng.permutation(said)))
            found["date"].append(f"2026-{m:02}-{rng.integers(1, 28):02}")
            found["mood"].append(str(mood))
    return pd.DataFrame(found)


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    heap = rows(200, [0.2, 0.2, 0.7], rng)
    model = tables.fit(rows(400, [0.5], rng), text="review", label="mood", method="PACC")
    return model, heap


def natives(heap):
    """The same table in every library."""
    import duckdb
    import polars as pl
    import pyarrow as pa

    return {
        "polars": pl.DataFrame(heap.to_dict("list")),
        "lazy polars": pl.LazyFrame(heap.to_dict("list")),
        "arrow": pa.Table.from_pandas(heap),
        "duckdb": duckdb.sql("select * from heap"),
        "dates": heap.assign(date=pd.to_datetime(heap["date"])),
        "categories": heap.assign(mood=heap["mood"].astype("category")),
    }


def test_every_library_of_frames_gives_the_same_answer(made):
    model, heap = made
    expected = model.estimate(heap, by="month:date", truth="mood")
    assert expected.groups == ["2026-01", "2026-02", "2026-03"]
    assert abs(expected.interval.prevalence[:, 0] - expected.truth[:, 0]).max() < 0.1
    for name, native in natives(heap).items():
        found = model.estimate(native, by="month:date", truth="mood")
        np.testing.assert_array_equal(found.interval.prevalence, expected.interval.prevalence, name)
        np.testing.assert_array_equal(found.truth, expected.truth, name)


def test_python_and_the_commands_are_one(made, tmp_path):
    model, heap = made
    heap.to_csv(tmp_path / "heap.csv", index=False)
    model.save(tmp_path / "m.hc")
    done = CliRunner().invoke(
        app, ["estimate", str(tmp_path / "m.hc"), str(tmp_path / "heap.csv"), "--by", "month:date"]
    )
    for line in repr(model.estimate(heap, by="month:date")).splitlines():
        assert line in done.output
    from_file = tables.Model.load(tmp_path / "m.hc").estimate(tmp_path / "heap.csv", "month:date")
    assert repr(from_file) == repr(model.estimate(heap, by="month:date"))


def test_a_notebook_shows_models_counts_and_pages(made):
    model, heap = made
    found = model.estimate(heap, by="month:date")
    assert "Learnt from 400 labelled rows" in model._repr_html_()
    assert "<table>" in found._repr_html_() and "2026-03" in found._repr_html_()
    page = found.report("Moods")
    assert page.html.startswith("<!doctype html>") and "<iframe srcdoc=" in page._repr_html_()
    assert model.report(heap, "month:date", title="Moods").html == page.html


def test_changes_are_found_from_the_same_count(made):
    model, heap = made
    frame = model.estimate(heap, by="month:date").monitor("2026-01..2026-02")
    assert frame["changed"].tolist() == [True, True]
    asked = model.monitor(heap, "month:date", "2026-01..2026-02", target="population")
    np.testing.assert_array_equal(frame["p"], asked["p"])


def test_frames_with_odd_cells(made):
    model, heap = made
    odd = heap.astype(object)
    odd.loc[0, "review"], odd.loc[1, "review"], odd.loc[2, "review"] = 7, None, float("nan")
    found = model.estimate(odd)
    assert found.rows.left_out == 2 and found.sizes.tolist() == [598]
    with pytest.raises(InputError, match="expected a data frame"):
        model.estimate(7)
    with pytest.raises(InputError, match="the data frame cannot be read"):
        model.estimate(pd.concat([heap, heap["review"]], axis=1))
    with pytest.raises(InputError, match="column of the data frame"):
        tables.fit(heap, text="revew", label="mood")
    with pytest.raises(InputError, match="text, features, both of these, or scores"):
        tables.fit(heap, label="mood")


def test_periods_of_pandas_are_what_they_say(made):
    model, heap = made
    heap = heap.assign(month=pd.to_datetime(heap["date"]).dt.to_period("M"))
    for by in ("month", "month:month"):  # not months since 1970 read as seconds
        assert model.estimate(heap, by=by).groups == ["2026-01", "2026-02", "2026-03"]
    heap["part"] = pd.cut(np.arange(len(heap)), 3)
    assert len(model.estimate(heap, by="part").groups) == 3


def test_a_frame_or_file_given_twice_is_refused(made, tmp_path):
    model, heap = made
    heap.to_csv(tmp_path / "heap.csv", index=False)
    for one in (heap, str(tmp_path / "heap.csv")):
        with pytest.raises(InputError, match="given twice"):
            model.estimate([one, one])
    with pytest.raises(InputError, match="expected a data frame"):
        model.estimate(heap["review"])


def test_notes_and_warnings_are_shown_in_notebooks(made):
    _, heap = made
    heap = heap.assign(shop=np.where(np.arange(len(heap)) % 2, "<a>", "b"))
    model = tables.fit(heap, text="review", label="mood", method="PACC")
    found = model.estimate(heap.head(40), by="shop")
    for shown in (repr(found), found._repr_html_()):
        assert "fitted without knowing the groups" in shown.replace("&#x27;", "'")
        assert "few items" in shown
    assert "<a>" not in found._repr_html_()


def test_groups_is_another_name_of_by(made):
    _, heap = made
    heap = heap.assign(shop=[f"s{i % 6}" for i in range(len(heap))])
    settings = {"text": "review", "label": "mood", "method": "PACC"}
    one = tables.fit(heap, groups="shop", **settings)
    assert one.training.by == "shop" and len(one.training.groups.names) == 6
    with pytest.raises(InputError, match="mean the same"):
        tables.fit(heap, groups="shop", by="shop", **settings)
