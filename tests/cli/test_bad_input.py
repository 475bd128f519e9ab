"""Input that cannot be counted is explained, and leaves nothing behind."""

import gzip
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.commands import heap_of, run

FIT = ("fit", "train.csv", "--text")

BAD_INPUT = [
    (["estimate", "M", "heap.csv", "--by", "month:dat"], "Did you mean 'date'"),
    (["estimate", "M", "nothing.csv"], "was not found"),
    (["estimate", "M", "empty.csv"], "empty"),
    (["estimate", "M", "head.csv"], "nothing to count"),
    (["estimate", "M", "blank.csv"], "all 3 rows are empty"),
    (["estimate", "M", "heap.csv", "heap.csv"], "heap.csv is given twice"),
    (["estimate", "M", "latin.csv", "--encoding", "ascii"], "is not ascii throughout"),
    (["estimate", "M", "heap.csv", "--by", "month:shop"], "could be read as a date"),
    (["estimate", "M", "heap.csv", "--by", "moon:date"], "is not understood"),
    (["estimate", "M", "heap.csv", "--only", "posi"], "Did you mean 'pos'"),
    (["estimate", "M", "heap.csv", "--level", "95"], "level must be between"),
    (["estimate", "M", "heap.csv", "-o", "x.xlsx"], "ending of --output"),
    (["estimate", "heap.csv", "heap.csv"], "not a model file"),
    (["estimate", "S", "heap.csv"], "heap.csv has no column 'p_neg', which the model looks at"),
    (["estimate", "S", "wrong.csv"], "are not posterior probabilities"),
    (["estimate", "S", "words.csv"], "words.csv"),
    (["estimate", "M", "image.png"], "say what it is. (option --format)"),
    (
        [*FIT, "reviews", "--label", "mood", "-o", "x.hc"],
        "Did you mean 'review'",
    ),
    (
        ["fit", "train.csv", "--label", "mood", "-o", "x.hc"],
        "give text, features, both of these, or scores",
    ),
    ([*FIT, "review", "--label", "review", "-o", "x.hc"], "both the label"),
    (
        [*FIT, "mood", "--label", "review", "-o", "x.hc"],
        "is it the column of labels",
    ),
    (
        ["fit", "one.csv", "--text", "review", "--label", "mood", "-o", "x.hc"],
        "at least two classes",
    ),
    (
        ["fit", "rare.csv", "--text", "review", "--label", "mood", "-o", "x.hc"],
        "fewer than 5 labelled rows",
    ),
    ([*FIT, "review", "--label", "mood", "-o", "x.bin"], "ends in .hc"),
    (
        [
            "fit",
            "train.csv",
            "--text",
            "review",
            "--label",
            "mood",
            "-o",
            "x.hc",
            "--method",
            "SDL",
        ],
        "Did you mean 'SLD'",
    ),
    (
        ["fit", "scored.csv", "--scores", "p_pos,p_neg,p_pos", "--label", "mood", "-o", "x.hc"],
        "each once",
    ),
]


@pytest.mark.parametrize(("args", "match"), BAD_INPUT, ids=[m for _, m in BAD_INPUT])
def test_bad_input_is_explained(folder, args, match, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "empty.csv").write_text("")
    (folder / "head.csv").write_text("review,mood\n")
    (folder / "blank.csv").write_text('review,mood\n"",pos\n"  ",neg\n"",pos\n')
    (folder / "latin.csv").write_bytes("review,mood\ncaf\xe9,pos\n".encode("latin-1"))
    (folder / "wrong.csv").write_text("p_pos,p_neg\n0.2,0.8\n0.7,0.7\n")
    (folder / "words.csv").write_text("p_pos,p_neg\nhigh,low\n")
    (folder / "one.csv").write_text("review,mood\n" + "fine day,pos\n" * 20)
    (folder / "rare.csv").write_text("review,mood\n" + "fine,pos\n" * 20 + "bad,neg\n" * 2)
    (folder / "image.png").write_bytes(b"\x89PNG")
    args = [{"M": "m.hc", "S": "s.hc"}.get(a, a) for a in args]
    before = set(os.listdir(folder))
    assert match in run(*args, code=2)
    assert set(os.listdir(folder)) == before  # nothing half-written


MORE_BAD_INPUT = [
    (["estimate", "M", "heap.csv", "--encoding", "klingon"], "there is no encoding 'klingon'"),
    (["estimate", "M", "twice.csv"], "has 'review' twice"),
    (["estimate", "M", "-", "-"], "once only"),
    (["estimate", "M", "cut.csv.gz"], "cut.csv.gz cannot be read"),
    (["estimate", "M", "lists.parquet", "--by", "g"], "holds lists"),
    (["estimate", "M", "heap.csv", "--truth", "shop"], "is it the column of true labels"),
    (["report", "M", "heap.csv", "-o", "."], "ends in .html"),
]


@pytest.mark.parametrize(("args", "match"), MORE_BAD_INPUT, ids=[m for _, m in MORE_BAD_INPUT])
def test_more_bad_input_is_explained(folder, args, match, monkeypatch):
    monkeypatch.chdir(folder)
    heap_of(folder / "twice.csv", ["fine,fine"], "review,review")
    (folder / "cut.csv.gz").write_bytes(
        gzip.compress(b"review,mood\n" + b"fine day,pos\n" * 999)[:40]
    )
    pq.write_table(pa.table({"review": ["fine"], "g": [[1, 2]]}), folder / "lists.parquet")
    assert match in run(*[{"M": "m.hc"}.get(a, a) for a in args], code=2)
