"""Tables of any length to shares per month, by the commands."""

import gzip
import json
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headcount import Bags
from headcount.lequa import make_corpus
from headcount.tables import Model
from tests.commands import heap_of, moods, run, table, write


def test_months_with_intervals_from_one_command(folder):
    out = folder / "out.csv"
    run(
        "estimate",
        folder / "m.hc",
        folder / "heap.csv",
        "--by",
        "month:date",
        "--truth",
        "mood",
        "-o",
        out,
    )
    rows = [line.split(",") for line in out.read_text().splitlines()]
    header, body = rows[0], [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    assert header[:7] == ["group", "class", "share", "low", "high", "n", "counted"]
    pos = [row for row in body if row["class"] == "pos"]
    assert [row["group"] for row in pos] == ["2024-01", "2024-02", "2024-03", "2024-04"]
    off = [abs(float(r["share"]) - float(r["truth"])) for r in pos]
    assert np.mean(off) < 0.03
    assert sum(r["inside"] == "1.0" for r in pos) >= 3
    assert all(row["n"] == "500" for row in body)


@pytest.mark.parametrize("k", [2, 3])
def test_the_command_and_python_give_the_same_digits(tmp_path, k):
    corpus = make_corpus(900 + 600, random_state=3)
    stars = np.asarray(corpus["stars"])
    mood = np.where(stars >= 4, "good", np.where(stars <= (2 if k == 3 else 3), "bad", "so-so"))
    parts = {"train": slice(0, 900), "heap": slice(900, None)}
    for name, rows in parts.items():
        write(tmp_path / f"{name}.csv", text=corpus["text"][rows], mood=mood[rows])
    run("fit", tmp_path / "train.csv", "--text", "text", "--label", "mood", "--method", "PACC",
        "-o", tmp_path / "m.hc")  # fmt: skip
    run("estimate", tmp_path / "m.hc", tmp_path / "heap.csv", "-o", tmp_path / "o.parquet")
    model = Model.load(tmp_path / "m.hc")
    texts = np.asarray(corpus["text"][parts["heap"]], dtype=object)
    frame = pq.read_table(tmp_path / "o.parquet")
    shares = np.array(frame["share"].to_pylist())
    np.testing.assert_allclose(shares, model.quantifier.predict(texts), atol=1e-4)
    interval = model.quantifier.predict_interval(texts, Bags.single(len(texts))).first()
    np.testing.assert_allclose(np.array(frame["low"].to_pylist()), interval.low, atol=0.01)
    if k == 3:  # few rows of many classes are kept as they are
        fit = model.quantifier.diagnose(texts).fit[0]
        assert frame["fit"].to_pylist()[0] == pytest.approx(fit, abs=0.02)


def test_what_a_method_would_ignore_is_refused(folder):
    for option in (("--expect", "no shift"), ("--measure", "rae")):
        words = run("fit", folder / "train.csv", "--text", "review", "--label", "mood", "--method",
                    "SLD", *option, "-o", folder / "x.hc", code=2)  # fmt: skip
        assert "SLD takes no account of what is expected or measured" in words


def test_the_page_says_which_shares_the_check_had(folder, tmp_path):
    made = tmp_path / "still.hc"
    run("fit", folder / "scored.csv", "--scores", "p_pos,p_neg", "--label", "mood", "--method",
        "BayesQuantifier", "--expect", "no shift", "-o", made)  # fmt: skip
    page = tmp_path / "page.html"
    run("report", made, folder / "scores.csv", "-o", page)
    assert "with shares as labelled" in page.read_text()


def test_ways_of_showing(folder):
    heap = folder / "heap.csv"
    table = run("estimate", folder / "m.hc", heap, "--by", "shop", "--only", "pos")
    assert "95% interval" in table and "north" in table and "neg" not in table.split("note")[0]
    rows = json.loads(
        run("estimate", folder / "s.hc", folder / "scores.csv", "--as", "json").split("\nnote")[0]
    )
    assert rows[0]["group"] == "all" and rows[0]["n"] == 2000
    for name in ("o.json", "o.parquet"):
        run("estimate", folder / "s.hc", folder / "scores.csv", "-o", folder / name)
        assert (folder / name).stat().st_size > 100
    assert pq.read_table(folder / "o.parquet").num_rows == 2


def test_report_is_one_page(folder):
    page = folder / "page.html"
    run("report", folder / "m.hc", folder / "heap.csv", "--by", "month:date", "-o", page)
    text = page.read_text()
    for part in ("<svg", "2024-03", "What this means", "mood: ", "Can it be trusted?"):
        assert part in text
    assert "<link" not in text and "src=" not in text and "url(" not in text


def test_monitor_finds_what_changed(folder):
    by = ("--by", "month:date")
    said = run("monitor", folder / "m.hc", folder / "heap.csv", *by, "--only", "pos", code=1)
    assert "3 of 3 groups differ from 2024-01" in said
    said = run("monitor", folder / "m.hc", folder / "heap.csv", "--by", "shop")
    assert "0 of 1 groups differ from north" in said
    said = run(
        "monitor",
        folder / "m.hc",
        folder / "heap.csv",
        *by,
        "--reference",
        "2024-01..2024-02",
        "--all",
        code=1,
    )
    assert "2024-03" in said and "2 of 2" in said
    assert "nearest" not in run(
        "monitor", folder / "m.hc", folder / "heap.csv", *by, "--reference", "2023-01", code=2
    )


def test_a_stray_row_is_no_reference(folder, tmp_path):
    head, *rows = (folder / "heap.csv").read_text().splitlines()
    path = heap_of(tmp_path / "h.csv", ["fine day,2023-12-01,north,pos", *rows], head)
    said = run("monitor", folder / "m.hc", path, "--by", "month:date", code=1)
    assert "3 of 4 groups differ" in said


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "jsonl", "jsonl.gz", "parquet"])
def test_kinds_of_files_say_the_same(folder, kind):
    rows = [line.split(",") for line in (folder / "scores.csv").read_text().splitlines()]
    path = folder / f"same.{kind}"
    records = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    for record in records:
        record["p_pos"], record["p_neg"] = float(record["p_pos"]), float(record["p_neg"])
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    else:
        lines = (
            "".join(json.dumps(r) + "\n" for r in records)
            if kind.startswith("jsonl")
            else "\n".join(("\t" if kind == "tsv" else ",").join(row) for row in rows) + "\n"
        )
        opened = gzip.open if kind.endswith(".gz") else open
        with opened(path, "wt", encoding="utf-8") as file:
            file.write(lines)
    by = ("--by", "month:date", "--as", "csv")
    said = run("estimate", folder / "s.hc", path, *by)
    assert said == run("estimate", folder / "s.hc", folder / "scores.csv", *by).replace("", "")


def test_standard_input_and_patterns(folder, tmp_path):
    text = (folder / "scores.csv").read_text()
    head, *lines = text.splitlines(keepends=True)
    for i in range(4):
        (tmp_path / f"part-{i}.csv").write_text(head + "".join(lines[500 * i : 500 * (i + 1)]))
    args = ["--as", "csv", "--by", "month:date"]
    whole = run("estimate", folder / "s.hc", folder / "scores.csv", *args)
    assert run("estimate", folder / "s.hc", tmp_path / "part-*.csv", *args) == whole
    command = [sys.executable, "-m", "headcount.cli", "estimate", str(folder / "s.hc"), "-", *args]
    for data in (text.encode(), gzip.compress(text.encode())):
        done = subprocess.run(command, input=data, capture_output=True, check=True)
        assert done.stdout.decode() in whole


def test_traceback_never_reaches_the_user(folder):
    command = [sys.executable, "-m", "headcount.cli", "estimate", str(folder / "m.hc"), "no.csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.startswith("headcount: 'no.csv' was not found")


def test_interrupted_in_the_middle(folder, tmp_path):
    out = tmp_path / "out.csv"
    command = [
        sys.executable,
        "-m",
        "headcount.cli",
        "estimate",
        str(folder / "s.hc"),
        "-",
        "-o",
        out,
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    # A pipe holds 64 kB: when all of this is written, most of it has been read.
    process.stdin.write(b"p_pos,p_neg\n" + b"0.2,0.8\n" * 100_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and b"Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_features_of_numbers_and_categories(tmp_path):
    rng = np.random.default_rng(0)

    def rows(n, share):
        y = rng.random(n) < share
        amount = np.where(y, rng.normal(60, 20, n), rng.normal(40, 20, n)).round(2)
        kind = np.where(rng.random(n) < np.where(y, 0.7, 0.3), "card", "cash")
        amount = np.where(rng.random(n) < 0.02, "", amount.astype(str))
        return {"amount": amount, "kind": kind, "fraud": np.where(y, "yes", "no")}

    write(tmp_path / "train.csv", **rows(1500, 0.3))
    write(tmp_path / "new.csv", **rows(3000, 0.6))
    said = run(
        "fit",
        tmp_path / "train.csv",
        "--features",
        "amount,kind",
        "--label",
        "fraud",
        "-o",
        tmp_path / "m.hc",
        "--method",
        "PACC",
    )
    assert "Checked on 200 bags" in said
    rows_ = json.loads(
        run("estimate", tmp_path / "m.hc", tmp_path / "new.csv", "--as", "json").split("\nnote")[0]
    )
    yes = next(r for r in rows_ if r["class"] == "yes")
    assert yes["low"] < 0.6 < yes["high"] and yes["high"] - yes["low"] < 0.25


def test_months_of_real_news(shared_data, tmp_path):
    """Health news: outlets by month, learnt from 2013 and counted in early 2014."""
    table = pq.read_table(shared_data / "health_news.parquet").to_pandas()
    table = table[table["outlet"].isin(["nytimeshealth", "nprhealth", "goodhealth"])]
    year = table["time"].dt.year
    table[year == 2013].sample(1200, random_state=0).to_csv(tmp_path / "train.csv", index=False)
    later = table[(year == 2014) & (table["time"].dt.month <= 3)]
    later.to_csv(tmp_path / "heap.csv", index=False)
    run(
        "fit",
        tmp_path / "train.csv",
        "--text",
        "text",
        "--label",
        "outlet",
        "-o",
        tmp_path / "m.hc",
    )
    model = Model.load(tmp_path / "m.hc")
    found = model.estimate(str(tmp_path / "heap.csv"), by="month:time", truth="outlet")
    assert found.groups == ["2014-01", "2014-02", "2014-03"]
    assert np.abs(found.interval.prevalence - found.truth).mean() < 0.06


def test_outputs_are_checked_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    for bad in (tmp_path / "file" / "m.hc", tmp_path / "folder.hc"):
        (tmp_path / "folder.hc").mkdir(exist_ok=True)
        said = run("fit", tmp_path / "file", "--text", "t", "--label", "y", "-o", bad, code=2)
        assert "cannot be written" in said or "is a folder" in said


def test_monitor_fails_on_what_it_is_told_to(tmp_path):
    rng = np.random.default_rng(0)
    y, p = moods(600, rng)
    train = table(tmp_path, "t.csv", p=p, label=y)
    run("fit", train, "--scores", "p", "--label", "label", "--method", "PACC",
        "-o", tmp_path / "m.hc")  # fmt: skip
    _, first = moods(400, rng)
    odd = np.where(rng.random(400) < 0.5, 0.5, first)
    heap = table(tmp_path, "h.csv", p=[*first, *odd], g=["a"] * 400 + ["b"] * 400)
    args = ["monitor", tmp_path / "m.hc", heap, "--by", "g"]
    run(*args, "--fail-on", "misfit", code=3)
    assert "--fail-on" in run(*args, "--fail-on", "nonsense", code=2)
