"""Files as people have them: separators, encodings, workbooks, damaged and binary ones."""

import datetime
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headcount.data import read_table
from headcount.data.stream import Reading, batches, sources
from headcount.exceptions import HeadcountError, InputError
from headcount.tables.notes import reading_notes

ROWS = [("café, fine", "pos", 0.5), ("naïve; bad", "neg", 0.25), ("über\ngut", "pos", 1.5)] * 20
WANTED = {"review": "text", "mood": "name", "num": "number"}


def as_csv(separator=",", point="."):
    lines = ["review,mood,num".replace(",", separator)]
    lines += [f'"{a}"{separator}{b}{separator}{c}'.replace("0.", f"0{point}") for a, b, c in ROWS]
    return "\n".join(lines).replace("1.5", f"1{point}5") + "\n"


def read(path, wanted=WANTED, encoding="utf8"):
    """Rows of a file, and what was doubtful."""
    reading = Reading()
    parts = [
        b for _, b in batches(sources([str(path)]), wanted, encoding=encoding, reading=reading)
    ]
    rows = [tuple(r.values()) for r in pa.Table.from_batches(parts).to_pylist()]
    return rows, [str(note) for note in reading_notes(reading)]


@pytest.mark.parametrize(
    ("name", "separator", "encoding", "point"),
    [
        ("a.csv", ";", "utf8", ","),
        ("a.csv", "\t", "utf8", "."),
        ("a.tsv", "\t", "utf8", ","),
        ("a.txt", "|", "utf8", "."),
        ("a.csv", ",", "utf-8-sig", "."),
        ("a.csv", ",", "utf-16", "."),
        ("a.csv", ";", "utf-16-le", "."),
        ("a.tsv", "\t", "utf-16-be", "."),
    ],
)
def test_separators_and_encodings_are_found(tmp_path, name, separator, encoding, point):
    path = tmp_path / name
    path.write_bytes(as_csv(separator, point).encode(encoding))
    assert read(path) == (ROWS, [])
    assert read_table(path)["mood"].tolist() == [b for _, b, _ in ROWS]


def test_lines_of_another_encoding_are_read_and_counted(tmp_path):
    lines = as_csv().encode("utf8").splitlines(keepends=True)
    lines[1] = lines[1].decode().encode("cp1252")
    lines[5] = lines[5].decode().encode("cp1252")
    path = tmp_path / "mixed.csv"
    path.write_bytes(b"".join(lines))
    rows, notes = read(path)
    assert rows == ROWS
    assert notes == ["2 lines of mixed.csv are not UTF-8 and were read as Windows-1252."]
    with pytest.raises(InputError, match="is not ascii throughout"):
        read(path, encoding="ascii")
    whole = tmp_path / "latin.csv"
    whole.write_bytes(as_csv().encode("latin-1"))
    assert read(whole, encoding="latin-1") == (ROWS, [])


def test_rows_with_too_many_cells_are_left_out_and_counted(tmp_path):
    path = tmp_path / "ragged.csv"
    path.write_text(as_csv() + "a,b,1,2,3\n")
    rows, notes = read(path)
    assert len(rows) == 60
    assert notes == ["1 rows of ragged.csv have too many or too few columns and were left out."]
    path.write_text("review,mood,num\n" + "a, b,pos,1\n" * 9)
    with pytest.raises(InputError, match="most rows of ragged"):
        read(path)


def test_workbooks(tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["about this file"])
    sheet = book.create_sheet("data")
    sheet.append(["review", "mood", "num", "when", "flag"])
    for a, b, c in ROWS:
        sheet.append([a, b, c, datetime.datetime(2026, 1, 31, 12), True])
    path = tmp_path / "book.xlsx"
    book.save(path)
    rows, notes = read(path, {**WANTED, "when": "date", "flag": "any"})
    assert rows == [(*row, "2026-01-31T12:00:00", "true") for row in ROWS]
    assert notes == ["of the sheets of book.xlsx, 'data' was read."]
    with pytest.raises(InputError, match=r"column of book.xlsx 'reviews'. Did you mean 'review'"):
        read(path, {"reviews": "text"})


def test_a_workbook_without_its_reader_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    (tmp_path / "x.xlsx").write_bytes(b"PK")
    with pytest.raises(HeadcountError, match="pip install python-calamine"):
        read(tmp_path / "x.xlsx")


@pytest.mark.parametrize(
    "name", ["x.csv", "x.tsv", "x.jsonl", "x.xlsx", "x.xls", "x.ods", "x.parquet", "x.csv.gz"]
)
def test_random_bytes_are_refused_in_a_sentence(tmp_path, name):
    path = tmp_path / name
    rng = np.random.default_rng(0)
    for size in (0, 40, 5000):
        path.write_bytes(rng.bytes(size))
        with pytest.raises(InputError, match="x"):
            read(path)
        with pytest.raises(InputError):
            read_table(path)


@pytest.mark.parametrize("magic", [b"PK\x03\x04", b"%PDF-1.7", b"PAR1"])
def test_files_of_another_kind_are_called_by_it(tmp_path, magic):
    path = tmp_path / "x.csv"
    path.write_bytes(magic + b"review,mood\n" * 9)
    with pytest.raises(InputError, match="not a text file"):
        read(path)


def test_numbers_and_texts_as_dates_of_json_lines(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"t": 1769860800000}\n' * 3)
    assert read(path, {"t": "date"})[0] == [(1769860800000.0,)] * 3
    path.write_text('{"t": "2026-01-31"}\n' * 3)
    assert read(path, {"t": "date"})[0] == [("2026-01-31",)] * 3


def test_the_same_file_is_not_counted_twice(tmp_path, monkeypatch):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"x.parquet is given twice"):
        sources(["*.parquet", "./x.parquet"])


def test_no_traceback_for_a_file(tmp_path):
    (tmp_path / "x.csv").write_bytes(np.random.default_rng(0).bytes(3000))
    words = ["fit", "x.csv", "--text", "a", "--label", "b", "-o", "m.hc"]
    done = subprocess.run(
        [sys.executable, "-m", "headcount.cli", *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2 and "binary data" in done.stderr
    assert "Traceback" not in done.stderr
