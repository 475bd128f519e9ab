"""One pass over each source."""

import os
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headcount import tables
from headcount.data import stream
from headcount.data.groups import Grouping
from headcount.data.stream import Reading, Source, batches, sources, sources_of
from headcount.exceptions import InputError
from headcount.tables.reading import look_ahead
from tests.commands import messages


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


def test_batches_stop_at_the_first_unreadable_file(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(InputError, match=r"a\.parquet"):
        list(batches(sources([str(tmp_path / "a.parquet")]), {"x": "any"}))
