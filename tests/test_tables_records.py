"""Records of tables: results that can be pickled, typed models and files, one pass over sources."""

import json
import os
import pickle
import threading
import zipfile
from dataclasses import fields, is_dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headcount import tables
from headcount._core.codec import decode, encode
from headcount._core.frame import Frame
from headcount.data import stream
from headcount.data.groups import Grouping
from headcount.data.stream import Reading, Source, batches, sources_of
from headcount.exceptions import InputError
from headcount.tables.accumulator import Accumulator, Part, ScoreLayout
from headcount.tables.estimation import join_groups
from headcount.tables.model import FILE_FORMAT
from headcount.tables.reading import look_ahead
from headcount.tables.result import Estimates, GroupRows
from headcount.tables.settings import EstimateSettings, ReadSettings, collect
from headcount.tables.store import Store
from headcount.tables.training import GroupInfo, QualityReport, RareClasses, Training


def messages(n, share, rng, dates=("2024-01", "2024-02", "2024-03")):
    """Rows of two classes, with texts, a number and dates."""
    y = rng.random(n) < share
    texts = [
        f"{rng.choice(['bad', 'poor'] if c else ['good', 'fine'])} w{i % 50}"
        for i, c in enumerate(y)
    ]
    day = [f"{rng.choice(dates)}-{rng.integers(1, 29):02d}" for _ in range(n)]
    amount = rng.normal(size=n) + y
    return pd.DataFrame(
        {"text": texts, "amount": amount, "date": day, "kind": np.where(y, "b", "g")}
    )


@pytest.fixture(scope="module")
def model():
    rows = messages(600, 0.5, np.random.default_rng(0))
    return tables.fit(rows, text="text", label="kind", method="SLD")


@pytest.fixture(scope="module")
def scored():
    """A model of scores, and rows of three shops of which one is large."""
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=400)
    labelled = pd.DataFrame({"p": rng.beta(2 + 2 * y, 4 - 2 * y), "y": np.array(["n", "y"])[y]})
    fitted = tables.fit(labelled, scores="p", label="y", method="PACC")
    rows = pd.DataFrame(
        {"p": rng.random(12_000), "shop": ["a"] * 11_000 + ["b"] * 990 + ["c"] * 10}
    )
    return fitted, rows


def copy_of(value):
    return pickle.loads(pickle.dumps(value))


def test_a_count_survives_pickling(model):
    count = model.estimate(messages(900, 0.3, np.random.default_rng(2)), "month:date", truth="kind")
    again = copy_of(count)
    assert again == count and type(again) is tables.Count
    assert again.to_frame().to_csv() == count.to_frame().to_csv()
    assert again.monitor().to_csv() == count.monitor().to_csv()
    assert again.report("x").html == count.report("x").html
    assert again.of_population == count.of_population != count
    assert repr(again) == repr(count)
    assert copy_of(again.of_population).monitor().to_csv() == count.monitor().to_csv()


def test_a_count_with_large_and_small_groups_survives_pickling(scored):
    fitted, rows = scored
    count = fitted.estimate(rows, "shop")
    assert copy_of(count).of_population == count.of_population
    owner = np.array([0, 1, 1])
    assert join_groups(copy_of(count), owner).low.tolist() == join_groups(count, owner).low.tolist()


def test_asking_twice_changes_nothing(scored):
    fitted, rows = scored
    count = fitted.estimate(rows, "shop")
    before = pickle.dumps(count.rows.scores)
    first = join_groups(count, np.zeros(3, dtype=np.int64)).low.tolist()
    assert join_groups(count, np.zeros(3, dtype=np.int64)).low.tolist() == first
    assert pickle.dumps(count.rows.scores) == before


def test_counts_of_other_rows_are_not_equal(scored):
    fitted, rows = scored
    assert fitted.estimate(rows, "shop") != fitted.estimate(rows[:11_500], "shop")
    assert fitted.estimate(rows, "shop") != "a count"


def test_a_store_on_disk_survives_pickling():
    kind = np.dtype([("group", np.int32), ("value", np.float64)])
    rng = np.random.default_rng(0)
    store = Store(kind, memory=300)
    for _ in range(20):
        batch = np.empty(30, dtype=kind)
        batch["group"], batch["value"] = rng.integers(40, size=30), rng.random(30)
        store.add(batch)
    assert store.files
    for mine, theirs in zip(copy_of(store).parts(), store.parts(), strict=True):
        assert (mine == theirs).all()


def test_settings_are_collected_and_unknown_ones_refused(model):
    what, how = collect({"level": 0.9, "encoding": "latin-1"}, EstimateSettings, ReadSettings)
    assert (what.level, how.encoding) == (0.9, "latin-1")
    with pytest.raises(InputError, match="Did you mean 'level'"):
        model.estimate(messages(10, 0.5, np.random.default_rng(0)), levle=0.9)
    with pytest.raises(InputError, match="unknown setting 'metod'"):
        tables.fit(Frame({"x": [1.0], "y": ["a"]}).to_arrow(), features="x", label="y", metod="SLD")


# Model files


def rewritten(path, change):
    """The same model file after a change of its manifest."""
    content = BytesIO(path.read_bytes())
    with zipfile.ZipFile(content) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "manifest.json":
                manifest = json.loads(data)
                change(manifest["about"])
                data = json.dumps(manifest)
            new.writestr(name, data)
    return path


def test_a_model_file_keeps_everything(tmp_path):
    rng = np.random.default_rng(3)
    rows = pd.concat(
        [
            messages(150, s, rng).assign(shop=f"s{i}")
            for i, s in enumerate([0.2, 0.5, 0.6, 0.8, 0.4, 0.3])
        ]
    )
    columns = {"text": "text", "features": "amount", "label": "kind"}
    fitted = tables.fit(rows, **columns, by="shop", method="PACC", min_rows=20)
    fitted.save(tmp_path / "m.hc")
    loaded = tables.Model.load(tmp_path / "m.hc")
    assert encode(loaded.training) == encode(fitted.training)
    assert (loaded.inputs, loaded.label) == (fitted.inputs, fitted.label)
    assert (loaded.bins.bins_ == fitted.bins.bins_).all()
    assert not hasattr(loaded.quantifier, "channels_") and not hasattr(
        fitted.quantifier, "channels_"
    )
    assert loaded.estimate(rows, "shop") == fitted.estimate(rows, "shop")
    with zipfile.ZipFile(tmp_path / "m.hc") as archive:
        assert sorted(archive.namelist()) == [
            "covariate_bins.skops",
            "manifest.json",
            "model.skops",
        ]
        assert json.loads(archive.read("manifest.json"))["about"]["tables"] == FILE_FORMAT


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda about: about.update(tables=FILE_FORMAT + 1), "another version of headcount"),
        (lambda about: about.pop("tables"), "another version of headcount"),
        (lambda about: about["training"].update(rows="many"), "training.rows: int expected"),
        (lambda about: about["training"]["quality"].update(factors=[1, "x"]), "fit it again"),
        (lambda about: about["training"].update(other=1), "unknown or missing other"),
        (lambda about: about["inputs"].update(kind="features"), "changed since"),
        (lambda about: about.pop("label"), "unknown or missing label"),
    ],
)
def test_damaged_and_other_files_are_refused(model, tmp_path, change, match):
    model.save(tmp_path / "m.hc")
    with pytest.raises(InputError, match=match) as caught:
        tables.Model.load(rewritten(tmp_path / "m.hc", change))
    assert "fit it again" in str(caught.value)


def test_a_missing_or_changed_part_is_refused(model, tmp_path):
    path = tmp_path / "m.hc"
    for data in (None, b"junk"):
        model.save(path)
        content = BytesIO(path.read_bytes())
        with zipfile.ZipFile(content) as old, zipfile.ZipFile(path, "w") as new:
            for name in old.namelist():
                own = data if name == "covariate_bins.skops" else old.read(name)
                if own is not None:
                    new.writestr(name, own)
        with pytest.raises(InputError, match=r"cut short|changed after it was written"):
            tables.Model.load(path)


def records(kind, seen):
    """Dataclasses that a record is made of."""
    if is_dataclass(kind) and kind not in seen:
        seen.add(kind)
        for hint in get_type_hints(kind).values():
            records(hint, seen)
    for argument in get_args(kind):
        records(argument, seen)
    return seen


@pytest.mark.parametrize("kind", [Training, GroupRows, Estimates, Part, ScoreLayout])
def test_no_record_holds_untyped_dictionaries(kind):
    for record in records(kind, set()):
        if not record.__module__.startswith("headcount.tables"):
            continue
        for name, hint in get_type_hints(record).items():
            assert hint is not Any and "dict[str, typing.Any]" not in str(hint), (record, name)


def test_the_codec_is_its_own_inverse():
    quality = QualityReport(200, 100, "x", 0.1, 0.2, 0.3, factors=(1.0, 1.5))
    training = Training(3, "SLD", {"a": 0.5}, ["x"], None, None, RareClasses(("q",), 2), quality)
    plain = json.loads(json.dumps(encode(training)))
    again = decode(Training, plain)
    assert all(getattr(again, f.name) == getattr(training, f.name) for f in fields(Training))
    assert get_type_hints(GroupInfo)["counts"] == get_type_hints(Part)["groups"]
    with pytest.raises(ValueError, match=r"Training.shares.a: float expected, got str"):
        decode(Training, {**plain, "shares": {"a": "half"}})


# One pass over each source


@pytest.fixture
def opened(monkeypatch):
    """How often files and data frames are opened for reading."""
    counts = {}

    def counting(original, name_of):
        def call(*args, **kwargs):
            name = name_of(*args)
            counts[name] = counts.get(name, 0) + 1
            return original(*args, **kwargs)

        return call

    monkeypatch.setattr(Path, "open", counting(Path.open, lambda path, *_: path.name))
    monkeypatch.setattr(stream.pq, "ParquetFile", counting(pq.ParquetFile, lambda p: p.name))
    monkeypatch.setattr(stream, "Sheet", counting(stream.Sheet, lambda p, *_: p.name))
    monkeypatch.setattr(stream, "frame_batches", counting(stream.frame_batches, lambda *_: "frame"))
    return counts


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "xlsx", "frame"])
def test_each_source_is_opened_once(model, tmp_path, opened, kind):
    rows = messages(300, 0.4, np.random.default_rng(4))
    path = tmp_path / f"rows.{kind}"
    {
        "csv": lambda: rows.to_csv(path, index=False),
        "parquet": lambda: rows.to_parquet(path),
        "jsonl": lambda: path.write_text(rows.to_json(orient="records", lines=True)),
        "xlsx": lambda: rows.to_excel(path, index=False),
        "frame": lambda: None,
    }[kind]()
    opened.clear()
    data = rows if kind == "frame" else str(path)
    count = model.estimate(data, "month:date", truth="kind")
    assert count.sizes.sum() == 300
    assert opened == {"frame" if kind == "frame" else path.name: 1}
    opened.clear()
    tables.fit(data, text="text", label="kind", by="month:date", method="SLD", force=True)
    assert set(opened.values()) == {1}


def test_a_pipe_is_read_like_a_file(model, tmp_path):
    """What can be read once only gives the same, though dates must be looked at first."""
    rows = messages(300, 0.4, np.random.default_rng(5))
    rows["date"] = [f"{d[8:]}/{d[5:7]}/{d[:4]}" for d in rows["date"]]  # days come first
    rows.to_csv(tmp_path / "rows.csv", index=False)
    os.mkfifo(tmp_path / "pipe")
    write = threading.Thread(
        target=lambda: (tmp_path / "pipe").write_bytes((tmp_path / "rows.csv").read_bytes())
    )
    write.start()
    piped = model.estimate(str(tmp_path / "pipe"), "month:date", truth="kind")
    write.join()
    assert piped == model.estimate(str(tmp_path / "rows.csv"), "month:date", truth="kind")
    assert piped.groups == ["2024-01", "2024-02", "2024-03"]


@pytest.mark.parametrize("memory", [1 << 20, 100, 0])
def test_dates_are_looked_at_before_the_first_batch_in_bounded_memory(memory):
    """All dates are doubtful but the last: which is the day decides for the first, too."""
    columns = [["1/2/2024", "3/2/2024"]] * 5 + [["13/2/2024", "1/3/2024"]] + [["2/3/2024"]] * 2
    parts = [pa.record_batch({"d": column, "x": list(range(len(column)))}) for column in columns]
    source = Source(None, ".csv")
    grouping = Grouping.parse("month:d")
    batches = list(look_ahead(iter([(source, part) for part in parts]), grouping, memory))
    assert [b.to_pydict() for _, b in batches] == [part.to_pydict() for part in parts]
    for _, batch in batches:
        grouping.numbers(batch.column("d"), batch.num_rows)
    assert grouping.names() == ["2024-02", "2024-03"]


def test_json_lines_without_a_column_are_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a", "n": 1}\n{"text": "b", "n": 2}\n')
    with pytest.raises(InputError, match="Did you mean 'text'"):
        list(batches(sources_of(str(path)), {"texts": "text"}))
    path.write_text('{"text": "a"}\n{"text": "b", "late": "x"}\n')
    ((_, batch),) = batches(sources_of(str(path)), {"late": "text"}, reading=Reading())
    assert batch.column("late").to_pylist() == [None, "x"]


# Accumulation


def test_the_order_of_groups_is_that_of_finish(scored):
    fitted, _ = scored
    sizes = [50, 9000, 20]

    def scores(order):
        accumulator = Accumulator(fitted.layout)
        draw = np.random.default_rng(7)
        for g, n in enumerate(sizes):
            p = draw.random(n)
            accumulator.add(*fitted.score(np.column_stack([1 - p, p])), np.full(n, g))
        return accumulator.finish(order)

    plain, turned = scores([0, 1, 2]), scores([2, 0, 1])
    assert turned.rows.tolist() == [20, 50, 9000]
    share = {}
    for state, order in ((plain, [0, 1, 2]), (turned, [2, 0, 1])):
        for part in state.parts():
            for g, value in zip(part.groups, part.mixed[1].histograms(
                (part.mixed[0][:, 1:] > 0.5).astype(int), 2)[:, 1], strict=True):  # fmt: skip
                share.setdefault(order[g], []).append(value)
    assert all(first == second for first, second in share.values())
    assert plain.effective.tolist() == sizes
