"""Readers: tables of texts and numbers, and the tweet sets in their published form."""

import gzip

import numpy as np
import pytest
from scipy import sparse

from headcount import InputError
from headcount.data import Dataset, read_sparse, read_table, read_tweets
from headcount.data.tables import table_dataset


def test_a_feature_file_is_read_line_by_line(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("-1 1:0.5 3:2\n\n+1 2:1 2:1\n0\n")
    X, y = read_sparse(path)
    np.testing.assert_array_equal(X.toarray(), [[0.5, 0, 2], [0, 2, 0], [0, 0, 0]])
    assert y.tolist() == [-1, 1, 0]


@pytest.mark.parametrize("line", ["2 1:1", "1 0:1", "1 x:1", "positive 1:1", "1 1", "1 1:x"])
def test_a_bad_line_is_named(tmp_path, line):
    path = tmp_path / "x.txt"
    path.write_text(f"1 1:1\n{line}\n")
    with pytest.raises(InputError, match="line 2"):
        read_sparse(path)


def archive(home, name, parts):
    """Files of one set: a document of class c has feature c + 2, and feature 9 is rare."""
    for folder, part in parts:
        lines = [f"{c} {c + 2}:1 4:0.5" for c in (-1, 0, 1) for _ in range(6)]
        if part == "train":
            lines[0] += " 9:1"
        if part == "test":
            lines[0] += " 12:1"
        path = home / folder / f"{name}.{part}.feature.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")


def test_the_semeval_sets_share_their_training_files(tmp_path):
    archive(tmp_path, "semeval", [("train", "train"), ("test", "dev")])
    archive(tmp_path, "semeval13", [("test", "test")])
    archive(tmp_path, "semeval16", [("train", "train"), ("test", "dev"), ("test", "dev-test")])
    for name in ("SemEval13", "SemEval16"):
        data = read_tweets(tmp_path, name)
        assert data.classes.tolist() == ["negative", "neutral", "positive"]
        assert sparse.issparse(data.train.X)
        # features 1 to 4 are common; 9 is rare, 12 unknown to training
        assert data.train.X.shape[1] == data.test.X.shape[1] == data.validation.X.shape[1] == 4
    with pytest.raises(InputError, match=r"lacks test/semeval14\.test\.feature\.txt"):
        read_tweets(tmp_path, "SemEval14")
    with pytest.raises(InputError, match="Did you mean 'Sanders'"):
        read_tweets(tmp_path, "Sander")


def test_tables_of_every_kind(tmp_path):
    text = "text,stars,part\nfine day,5,train\n"
    (tmp_path / "a.csv").write_text(text)
    with gzip.open(tmp_path / "b.csv.gz", "wt") as file:
        file.write(text)
    (tmp_path / "c.jsonl").write_text('{"text": "fine day", "stars": 5, "part": "train"}\n')
    (tmp_path / "d.tsv").write_text(text.replace(",", "\t"))
    for name in ("a.csv", "b.csv.gz", "c.jsonl", "d.tsv"):
        frame = read_table(tmp_path / name, ["stars", "text"])
        assert frame["stars"].tolist() == [5]
        assert frame["text"].tolist() == ["fine day"]
    with pytest.raises(InputError, match="Did you mean 'stars'"):
        read_table(tmp_path / "a.csv", ["star"])
    (tmp_path / "e.parquet").write_bytes(b"junk")
    with pytest.raises(InputError, match="cannot be read"):
        read_table(tmp_path / "e.parquet")
    (tmp_path / "f.docx").write_text("")
    with pytest.raises(InputError, match="is none of"):
        read_table(tmp_path / "f.docx")


def test_a_split_column_and_filters(tmp_path):
    rows = [
        f"{a},{a + 1},{label},{part},{year}"
        for year in (2013, 2014)
        for part in ("train", "dev", "test")
        for label in "xy"
        for a in range(4)
    ]
    path = tmp_path / "t.csv"
    path.write_text("a,b,label,part,year\n" + "\n".join(rows) + "\n")
    options = {"label": "label", "features": ["a", "b"], "split": "part"}
    data = table_dataset("t", path, where={"year": 2013}, parts={"validation": "dev"}, **options)
    assert repr(data) == "Dataset('t': 8 + 8 labelled items, 8 test items, 2 classes)"
    assert data.labelled.X.shape == (16, 2)
    with pytest.raises(InputError, match="no row is marked"):
        table_dataset("t", path, parts={"test": "final"}, **options)
    with pytest.raises(InputError, match="no row of"):
        table_dataset("t", path, where={"year": 1999}, **options)
    with pytest.raises(InputError, match="features must be numbers"):
        table_dataset("t", path, label="a", features=["label"])


def test_missing_labels_and_empty_cells(tmp_path):
    rows = [f"t{i},{'' if i == 3 else 'xy'[i % 2]},{'' if i == 5 else 2024}" for i in range(12)]
    (tmp_path / "t.csv").write_text("text,label,year\n" + "\n".join(rows) + "\n")
    with pytest.raises(InputError, match="1 of 12 rows have no label"):
        table_dataset("t", tmp_path / "t.csv", label="label", text="text")
    (tmp_path / "u.csv").write_text("text,label,year\n" + "\n".join(rows[4:]) + "\n")
    options = {"label": "label", "text": "text", "min_df": 1, "validation": 0.3}
    with pytest.raises(InputError):  # too few of them to split, but they are found
        table_dataset("u", tmp_path / "u.csv", where={"year": 1999}, **options)
    (tmp_path / "v.csv").write_text("text,label\n")
    with pytest.raises(InputError, match="there are no rows"):
        table_dataset("v", tmp_path / "v.csv", label="label", text="text")


def test_fingerprints_tell_data_apart():
    X, y = np.arange(20.0)[:, None], np.tile([0, 1], 10)
    one = Dataset.split("a", X, y)
    assert one.fingerprint() == Dataset.split("b", X, y).fingerprint()
    assert one.fingerprint() != Dataset.split("a", X + 1, y).fingerprint()


def test_test_items_of_unknown_class_are_refused():
    with pytest.raises(InputError, match="classes without labels"):
        Dataset("a", ([[1], [2]], [0, 1]), ([[1], [2]], [0, 2]))
