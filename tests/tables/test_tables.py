"""Tables of any length to shares per month: streams, groups, sketches, and the commands."""

import gzip
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from headcount.inference.check import widen_by
from typer.testing import CliRunner

from headcount import ACC, PACC, SLD, Bags, InputError, KDEyML
from headcount.cli.app import app
from headcount.data.groups import Grouping
from headcount.data.stream import batches, sources
from headcount.exceptions import HeadcountError
from headcount.lequa import make_corpus
from headcount.scores.columns import column_encoder
from headcount.tables import Count, Inputs, Model, changes, fit
from headcount.tables.accumulator import Accumulator
from headcount.tables.result import Estimates, GroupRows
from headcount.tables.sketch import Sketch, _ManyClasses

GOOD = ["fine", "lovely", "great", "happy", "bright", "kind"]
BAD = ["awful", "broken", "poor", "sad", "slow", "rude"]
COMMON = ["the", "day", "shop", "thing", "again", "today"]


def sentences(y, rng):
    """Short texts whose words lean to their class."""
    out = []
    for label in y:
        own, other = (GOOD, BAD) if label == "pos" else (BAD, GOOD)
        words = [*rng.choice(own, 2), *rng.choice(other, 1), *rng.choice(COMMON, 4)]
        out.append(" ".join(rng.permutation(words)))
    return np.array(out, dtype=object)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Labelled rows and a heap of months whose share of pos falls from 80 % to 20 %."""
    path = tmp_path_factory.mktemp("practice")
    rng = np.random.default_rng(0)
    y = np.where(rng.random(800) < 0.5, "pos", "neg")
    write(path / "train.csv", review=sentences(y, rng), mood=y)
    months, labels = [], []
    for m, share in enumerate([0.8, 0.6, 0.4, 0.2]):
        labels.append(np.where(rng.random(500) < share, "pos", "neg"))
        months += [f"2024-{m + 1:02d}-{d:02d}" for d in rng.integers(1, 29, 500)]
    labels = np.concatenate(labels)
    shop = rng.choice(["north", "south"], 2000)
    write(path / "heap.csv", review=sentences(labels, rng), date=months, shop=shop, mood=labels)
    p = np.where(labels == "pos", rng.beta(4, 2, 2000), rng.beta(2, 4, 2000))
    held = np.where(y == "pos", rng.beta(4, 2, 800), rng.beta(2, 4, 800))
    write(path / "scored.csv", p_pos=held, p_neg=1 - held, mood=y)
    write(path / "scores.csv", p_pos=p, p_neg=1 - p, date=months, mood=labels)
    run("fit", path / "train.csv", "--text", "review", "--label", "mood", "-o", path / "m.hc")
    run(
        "fit",
        path / "scored.csv",
        "--scores",
        "p_pos,p_neg",
        "--label",
        "mood",
        "-o",
        path / "s.hc",
    )
    return path


def write(path, **columns):
    """A CSV file of columns."""
    import csv

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def run(*args, code=0):
    """Output of a command that ends as it should."""
    done = CliRunner().invoke(app, [str(a) for a in args], catch_exceptions=True)
    if code == 2:
        assert isinstance(done.exception, HeadcountError), (done.output, done.exception)
        setting = getattr(done.exception, "setting", None)  # as the command's main prints it
        return str(done.exception) + (f" (option --{setting})" if setting else "")
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


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
    found = model.quantifier.predict_interval(texts, Bags.single(len(texts)))
    factors = model.training.quality.factors
    found = found.widened(widen_by(factors, np.array([len(texts)]))).first()
    np.testing.assert_allclose(np.array(frame["low"].to_pylist()), found.low, atol=0.01)
    if k == 3:  # few rows of many classes are kept as they are
        fit = model.quantifier.diagnose(texts).fit[0]
        assert frame["fit"].to_pylist()[0] == pytest.approx(fit, abs=0.02)


def test_a_model_file_is_read_once(folder, monkeypatch):
    import headcount.methods.files as files

    reads = []
    original = files._read
    monkeypatch.setattr(files, "_read", lambda path: reads.append(path) or original(path))
    Model.load(folder / "m.hc")
    assert len(reads) == 1


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


def test_no_false_alarm_of_a_quiet_year():
    """Twelve months of the same share: at most a false alarm now and then, over many looks."""
    rng = np.random.default_rng(0)
    from headcount.inference.diagnostics import Diagnosis
    from headcount.inference.spread import Request

    from headcount.data.groups import Grouping

    y = rng.integers(2, size=1000)
    s = np.where(y == 1, rng.beta(4, 2, 1000), rng.beta(2, 4, 1000))
    q = PACC().fit_scores(s, y)
    alarms = 0
    for seed in range(15):
        draw = np.random.default_rng(seed)
        new = draw.random((12, 300)) < 0.3
        pool = np.where(new, draw.beta(4, 2, new.shape), draw.beta(2, 4, new.shape)).ravel()
        from headcount import Bags

        bags = Bags.from_groups(np.repeat(np.arange(12), 300))
        raw = np.column_stack([1 - pool, pool])
        found = q.bound([(raw, bags)], bags.sizes, Request(target="population", n_draws=100))
        quiet = Diagnosis(bags.ids, bags.sizes, np.ones(12), np.zeros(12), 1.0)
        names = [str(i) for i in range(12)]
        rows = GroupRows(names, Grouping(), bags.sizes, bags.sizes.astype(float))
        model = Model(q, Inputs("scores", ("no", "yes")), "label")
        counted = Count(model, rows, Estimates(found, found.prevalence, quiet))
        alarms += bool(changes(counted)["changed"].any())
    assert alarms <= 3


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
    assert "2025-07, (no date): fewer than 30 items" in said
    assert "--truth mood" in run("estimate", folder / "m.hc", folder / "heap.csv")


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


def test_column_encoder_by_hand():
    X = np.array([[1, "a"], [2, "b"], [3, None]], dtype=object)
    encoder = column_encoder([True, False]).fit(X)
    new = np.asarray(encoder.transform(np.array([["", "c"], [3, "b"]], dtype=object)))
    assert new.tolist() == [[0, 0, 0, 0], [pytest.approx(np.sqrt(1.5)), 0, 0, 1]]
    with pytest.raises(InputError, match="held numbers when the model was fitted"):
        encoder.transform(np.array([["x", "a"]], dtype=object))


@pytest.mark.parametrize(
    ("period", "names"),
    [
        ("year", ["2023", "2024"]),
        ("quarter", ["2023-Q4", "2024-Q1"]),
        ("month", ["2023-12", "2024-01", "2024-02"]),
        ("week", ["2023-12-25", "2024-01-01", "2024-02-26"]),
        ("day", ["2023-12-31", "2024-01-01", "2024-02-29"]),
        ("hour", ["2023-12-31T23", "2024-01-01T00", "2024-02-29T12"]),
    ],
)
@pytest.mark.parametrize("as_text", [False, True])
def test_periods(period, names, as_text):
    texts = ["2024-02-29 12:30:00", "2023-12-31 23:59:59", "2024-01-01 00:00:00"]
    column = pa.array(texts)
    if not as_text:
        column = column.cast(pa.timestamp("us"))
    grouping = Grouping("when", period)
    numbers = grouping.numbers(column, 3)
    shown = [grouping.names()[g] for g in grouping.order()]
    assert shown == names
    assert grouping.names()[numbers[1]] == names[0]


def test_groups_of_other_things():
    grouping = Grouping("shop")
    assert grouping.numbers(pa.array(["b", None, "a", "b"]), 4).tolist() == [0, 1, 2, 0]
    assert [grouping.names()[g] for g in grouping.order()] == ["a", "b", "(missing)"]
    dates = Grouping("d", "month")
    assert dates.numbers(pa.array(["2024-01-05", "some day", "2024-01", "2024"]), 4).tolist() == [
        0,
        1,
        0,
        0,
    ]
    assert dates.unreadable == 1
    with pytest.raises(InputError, match="are no dates that are known"):
        Grouping("d", "day").numbers(pa.array([15]), 1)
    plain = pa.array(["2024-01-01 00:30:00"]).cast(pa.timestamp("s"))
    zoned = pc.assume_timezone(plain, "UTC").cast(pa.timestamp("s", "America/New_York"))
    late = Grouping("d", "day")
    late.numbers(zoned, 1)
    assert late.names() == ["2023-12-31"]


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("make", [lambda: SLD(calibrator="bcts"), PACC, ACC, KDEyML])
def test_the_sketch_hardly_moves_an_estimate(k, make):
    """A group of many more rows than are kept, against all of them."""
    rng = np.random.default_rng(k)
    centres = 1.3 * np.eye(k)

    def scores(y):
        z = rng.normal(size=(len(y), k)) + centres[y]
        e = np.exp(z)
        return e / e.sum(axis=1, keepdims=True)

    y = rng.integers(k, size=1500)
    q = make().fit_scores(scores(y), y)
    heap = scores(rng.choice(k, 500_000, p=rng.dirichlet(np.ones(k))))
    sketch = Sketch.of(k, "posterior")
    for part in np.array_split(heap, 23):
        sketch.add(part, np.zeros(len(part), dtype=np.int64))
    pool, bags = sketch.points()
    assert len(pool) <= 8 * _ManyClasses.rows_per_level
    off = np.abs(q.estimate([(pool, bags)])[0] - q.predict_scores(heap))
    assert off.max() < (5e-4 if k == 2 else 0.001)


def test_small_groups_are_kept_exactly():
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(3), 500)
    groups = rng.integers(4, size=500)
    sketch = Sketch.of(3, "posterior")
    for part in np.array_split(np.arange(500), 7):
        sketch.add(scores[part], groups[part])
    pool, bags = sketch.points()
    for g in range(4):
        assert np.allclose(
            np.sort(pool[bags.items(g)], axis=0), np.sort(scores[groups == g], axis=0), atol=1e-6
        )


def test_decision_values_go_through_the_sketch():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=600)
    values = rng.normal(2.0 * y - 1)
    both = np.column_stack([-values / 2, values / 2])
    q = SLD(calibrator="platt").fit_scores(both, y)
    heap = rng.normal(np.where(rng.random(50_000) < 0.2, 1.0, -1.0))
    heap = np.column_stack([-heap / 2, heap / 2])
    sketch = Sketch.of(2, "decision")
    sketch.add(heap, np.zeros(len(heap), dtype=np.int64))
    pool, bags = sketch.points()
    assert np.abs(q.estimate([(pool, bags)])[0] - q.predict_scores(heap)).max() < 1e-3


def test_too_many_groups(folder, monkeypatch):
    accumulator = Accumulator(Model.load(folder / "s.hc").layout)
    monkeypatch.setattr(Accumulator, "max_groups", 20)
    with pytest.raises(InputError, match="more than 20 groups"):
        accumulator.add(np.array([[[0.5, 0.5]]]), np.zeros((1, 0)), np.array([20]))


def test_memory_does_not_grow_with_the_rows(tmp_path):
    """The same part again and again: what is kept stays the same size."""
    rng = np.random.default_rng(0)
    sketch = Sketch.of(4, "posterior")
    sizes = []
    for _ in range(60):
        sketch.add(rng.dirichlet(np.ones(4), 20_000), np.zeros(20_000, dtype=np.int64))
        sizes.append(sum(len(p) for level in sketch.levels[0] for p in level))
    assert max(sizes) < 12 * _ManyClasses.rows_per_level
    assert sizes[-1] < 2 * max(sizes[:10]) + 6 * _ManyClasses.rows_per_level


def test_columns_of_scores_find_their_classes(folder):
    model = Model.load(folder / "s.hc")
    assert model.inputs.columns == ("p_neg", "p_pos")
    notes = []
    fit(str(folder / "scored.csv"), scores="p_pos", label="mood", on_note=notes.append)
    assert "taken as the score of 'pos'" in str(notes[0])


def test_a_count_in_python(folder):
    model = Model.load(folder / "m.hc")
    found = model.estimate(sources([str(folder / "heap.csv")]), by="shop", truth="mood")
    assert found.groups == ["north", "south"]
    assert found.sizes.sum() == 2000
    assert found.to_frame()["truth"].shape == (4,)
    quality = model.training.quality
    assert quality.error < quality.counting + 0.01


def test_batches_stop_at_the_first_unreadable_file(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(InputError, match=r"a\.parquet"):
        list(batches(sources([str(tmp_path / "a.parquet")]), {"x": "any"}))


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


def heap_of(path, rows, header="review,date,shop,mood"):
    path.write_text(header + "\n" + "\n".join(rows) + "\n")
    return path


def shares(*args):
    """Rows of a printed estimate, as JSON."""
    return json.loads(run("estimate", *args, "--as", "json").split("\nnote")[0].split("\nwarn")[0])


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


def test_types_do_not_depend_on_the_first_block(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("headcount.data.stream.BLOCK", 2000)
    rows = ["fine day,2024-01-01,1,pos"] * 200 + ["fine day,unknown,x,pos"] * 5
    path = heap_of(tmp_path / "h.csv", rows)
    found = shares(folder / "m.hc", path, "--by", "month:date")
    assert [r["n"] for r in found] == [200, 200, 5, 5]
    assert [r["n"] for r in shares(folder / "m.hc", path, "--by", "shop")] == [200, 200, 5, 5]


CHANGES = [
    lambda m: m.pop("about"),
    lambda m: m.update(about=None),
    lambda m: m["about"]["inputs"].update(columns=5),
    lambda m: m["about"]["inputs"].update(kind="features"),
    lambda m: m["about"].update(training=None),
    lambda m: m["about"]["training"].update(rows="many"),
    lambda m: m["about"]["training"]["quality"].pop("error") and m["about"].update(label=3),
    lambda m: m["about"].update(surprise=1),
    lambda m: m.update(format=float("inf")),
]


@pytest.mark.parametrize("change", CHANGES)
def test_manifests_of_strangers(folder, tmp_path, change):
    import zipfile

    path = tmp_path / "m.hc"
    with zipfile.ZipFile(folder / "m.hc") as old, zipfile.ZipFile(path, "w") as new:
        manifest = json.loads(old.read("manifest.json"))
        change(manifest)
        new.writestr("manifest.json", json.dumps(manifest))
        for name in ("model.skops", "covariate_bins.skops"):
            new.writestr(name, old.read(name))
    assert "it again" in run("estimate", path, folder / "heap.csv", code=2) or change is CHANGES[-1]


def test_a_stray_row_is_no_reference(folder, tmp_path):
    head, *rows = (folder / "heap.csv").read_text().splitlines()
    path = heap_of(tmp_path / "h.csv", ["fine day,2023-12-01,north,pos", *rows], head)
    said = run("monitor", folder / "m.hc", path, "--by", "month:date", code=1)
    assert "3 of 4 groups differ" in said
