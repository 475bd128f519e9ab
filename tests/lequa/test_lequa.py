"""The LeQua lab: formats to the last digit, every fault of a run, tasks that read back."""

import bz2
import gzip
import hashlib
import http.server
import io
import json
import lzma
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from headcount import MLPE, PACC, HeadcountError, InputError
from headcount._core.frame import Frame
from headcount.cli.app import app
from headcount.lequa import (
    TaskData,
    baselines,
    build_lab,
    check_run,
    make_corpus,
    open_task,
    read_run,
    score_runs,
    solve,
    write_run,
)
from headcount.lequa.build import SENTIMENT, Recipe
from headcount.lequa.fetch import fetch, files_of
from headcount.lequa.tasks import SPECS

SIZES = {
    "n_train": 300,
    "n_dev": 20,
    "n_test": 30,
    "size": 50,
    "dimensions": 30,
    "helpful": "helpful",
    "leak_limit": 1.0,  # so small a corpus gives the gold away; see test_leaks.py
    "seed": 0,
    "secret": 1,
}
RECIPE = Recipe(label="stars", labels=SENTIMENT, **SIZES)


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(3000, random_state=0)


@pytest.fixture(scope="module")
def lab(corpus, tmp_path_factory):
    home = tmp_path_factory.mktemp("lab")
    build_lab(corpus, home, RECIPE)
    return home


@pytest.fixture(scope="module")
def official(corpus, tmp_path_factory):
    home = tmp_path_factory.mktemp("official")
    build_lab(corpus, home, RECIPE, official=True, zips=True)
    return home


def simplex(n, k, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(k), n)


@pytest.mark.parametrize(("task", "n", "k"), [("T1A", 1000, 2), ("T1B", 5000, 28)])
def test_scores_equal_a_straightforward_computation(tmp_path, task, n, k):
    true, run = simplex(n, k), simplex(n, k, 1)
    write_run(tmp_path / "truth.txt", true)
    write_run(tmp_path / "run.csv", run)
    size = SPECS[task].size
    scores = score_runs(tmp_path / "truth.txt", {"run": tmp_path / "run.csv"}, size=size)
    eps = 1 / (2 * size)
    ae, rae = [], []
    for p, q in zip(true.tolist(), run.tolist(), strict=True):
        ae.append(sum(abs(a - b) for a, b in zip(p, q, strict=True)) / k)
        smooth = [[(v + eps) / (eps * k + 1) for v in row] for row in (p, q)]
        rae.append(sum(abs(a - b) / a for a, b in zip(*smooth, strict=True)) / k)
    np.testing.assert_allclose(scores.errors["ae"]["run"], ae, atol=1e-12)
    np.testing.assert_allclose(scores.errors["rae"]["run"], rae, atol=1e-12)
    printed = f"MRAE: {np.mean(rae):.4f}\nMAE: {np.mean(ae):.4f}"
    assert scores.official("run") == printed
    # The order of rows means nothing.
    lines = (tmp_path / "run.csv").read_text().splitlines()
    order = np.random.default_rng(2).permutation(n)
    (tmp_path / "shuffled.csv").write_text("\n".join([lines[0], *[lines[1 + i] for i in order]]))
    again = score_runs(tmp_path / "truth.txt", {"run": tmp_path / "shuffled.csv"}, size=size)
    assert again.official("run") == printed
    paths = (tmp_path / "truth.txt", tmp_path / "run.csv")
    done = CliRunner().invoke(
        app,
        ["lequa", "score", task, *map(str, paths), "--official"],
    )
    assert done.output.strip() == printed


def test_ordinal_scores_print_like_the_script_of_2024():
    true = np.array([[1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0.2, 0.2, 0.2, 0.2, 0.2]], dtype=float)
    run = np.array([[0.5, 0.5, 0, 0, 0], [0, 0, 0, 1, 0], [0.2, 0.2, 0.2, 0.2, 0.2]], dtype=float)
    scores = score_runs(true, {"r.csv": run}, size=200, ordinal=True, year=2024)
    nmd = np.array([0.5, 1.0, 0.0]) / 4
    bins = np.array([nmd[0], 0.0, nmd[2], nmd[1]])  # mean stars 1, none in [2, 3), 3, 5
    assert scores.official("r.csv") == (
        f"r.csv\nMNMD: {nmd.mean():.5f} ~ {nmd.std():.5f}\n"
        f"macro-NMD: {bins.mean():.5f} ~ {bins.std():.5f}\n"
    )
    binary = score_runs(true[:, :2] * 0 + 0.5, {"r": true[:, :2] * 0 + 0.5}, size=250, year=2024)
    assert binary.official("r") == "r\nMRAE: 0.00000 ~ 0.00000\nMAE: 0.00000 ~ 0.00000\n"


def text_of(rows, header="id,0,1"):
    return header + "\n" + "\n".join(rows) + "\n"


GOOD = ["0,0.5,0.5", "1,0.25,0.75", "2,1,0"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (text_of([*GOOD[:2], "2,nan,0.5"]), ["line 4, column 0 (id 2): 'nan' is not a number"]),
        (text_of(GOOD[:2]), ["1 ids are missing: 2.", "there are 2 rows, and 3 samples"]),
        (text_of([*GOOD, "1,0.5,0.5"]), ["id 1 is there twice, first in line 3", "4 rows"]),
        (text_of(["0,0.5,0.5", "1,0.5,0.5", "7,0.5,0.5"]), ["id 7 is not", "missing: 2."]),
        (text_of(GOOD, "id,0,1,2"), ["the header must be 'id,0,1', got 'id,0,1,2'"]),
        (text_of(["0,0.2,0.3,0.5"], "id,0,1,2"), ["the header must be 'id,0,1'"]),
        (text_of(GOOD, "ID,0,1"), ["small letters"]),
        (text_of(GOOD, "a,b,c"), ["the header must be"]),
        (text_of([*GOOD[:2], "2,1.5,-0.5"]), ["'1.5' is not a number from 0", "column 1 (id 2)"]),
        (text_of([*GOOD[:2], "2,0.5,0.51"]), ["(id 2): the prevalences sum to 1.01, not to 1"]),
        (text_of([*GOOD[:2], "2,0.5"]), ["line 4: 2 cells, and 3 are expected"]),
        (text_of([*GOOD[:2], "x,0.5,0.5"]), ["the id 'x' is no whole number"]),
        (text_of([*GOOD[:2], "2,,1"]), ["'' is not a number"]),
        (text_of([*GOOD[:2], "", "", "0_2,0.5,0.5"]), ["line 6: the id '0_2' is no whole number"]),
        (text_of([*GOOD[:2], "2,0_0.5,0.5"]), ["'0_0.5' is not a number"]),
        (text_of([*GOOD, "", "2,0.5,0.5"]), ["line 6: id 2 is there twice, first in line 4"]),
        ("", ["the file is empty"]),
        ("id,0,1\n", ["there is a header and no row"]),
        (b"PK\x03\x04\x00\x00junk", ["the archive is damaged"]),
        (b"id,0,1\n0,0.5,\x00", ["not a text file"]),
        (b"id,0,1\n0,\xff\xfe,1\n", ["not a text file in UTF-8"]),
        ("id,0,1\n" + "0," * 600_000, ["too long for a run"]),
    ],
)
def test_every_fault_is_listed(tmp_path, text, words):
    path = tmp_path / "run.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    faults = check_run(path, 2, 3)
    for each in words:
        assert any(each in fault for fault in faults), (each, faults)
    if "ids are missing" not in words[0]:  # which cannot be told without the number of samples
        with pytest.raises(InputError):
            read_run(path, 2)


def test_valid_runs_pass_and_spaces_in_the_header_are_fine(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("id, 0, 1\n2, 1, 0\n0,0.5,0.5\n1,0.2504,0.75\n")
    assert check_run(path, 2, 3) == []
    np.testing.assert_allclose(read_run(path), [[0.5, 0.5], [0.2504, 0.75], [1, 0]])


def test_a_zip_with_one_answer_is_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        archive.writestr("answer.csv", text_of(GOOD))
    assert check_run(tmp_path / "run.zip", 2, 3) == []


def zipped(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


QUOTED = '"id","0","1"\n"0","0.5","0.5"\n"1",0.25,0.75\n"2","1",0\n'
REAL_FILES = {
    "as R writes it": QUOTED.encode(),
    "ids with decimals": b"id,0,1\n0.0,0.5,0.5\n1.0,0.25,0.75\n2.0,1,0\n",
    "old line ends": text_of(GOOD).replace("\n", "\r").encode(),
    "byte order mark": b"\xef\xbb\xbf" + text_of(GOOD).encode(),
    "gzip": gzip.compress(text_of(GOOD).encode()),
    "bzip2": bz2.compress(text_of(GOOD).encode()),
    "xz": lzma.compress(text_of(GOOD).encode()),
    "zip": zipped({"answer.csv": text_of(GOOD)}),
    "zip of macOS": zipped(
        {"answer.csv": text_of(GOOD), "__MACOSX/._answer.csv": "x", ".DS_Store": "x"}
    ),
    "zip with a folder": zipped({"mine/": "", "mine/answer.csv": text_of(GOOD)}),
}


@pytest.mark.parametrize("kind", REAL_FILES)
def test_files_as_people_send_them(tmp_path, kind):
    data = REAL_FILES[kind]
    (tmp_path / "run").write_bytes(data)
    for source in (tmp_path / "run", str(tmp_path / "run"), data, io.BytesIO(data)):
        assert check_run(source, 2, 3) == []
    np.testing.assert_allclose(read_run(io.BytesIO(data)), [[0.5, 0.5], [0.25, 0.75], [1, 0]])
    np.testing.assert_allclose(read_run(data, 2, 3)[1], [0.25, 0.75])


def test_archives_that_are_no_run():
    two = zipped({"a.csv": text_of(GOOD), "b.csv": text_of(GOOD)})
    assert "holds 2 files (a.csv, b.csv)" in check_run(two, 2, 3)[0]
    assert "holds no file" in check_run(zipped({"x/": ""}), 2, 3)[0]
    assert "damaged" in check_run(gzip.compress(b"id,0,1\n" * 99)[:-20], 2, 3)[0]
    for cells in ('0,"0.5,0.5', '0,0.5,"0.5'):
        assert check_run(f"id,0,1\n{cells}\n".encode(), 2, 1)


def test_a_bomb_is_refused_before_it_costs_memory():
    import tracemalloc

    zeros = b"0" * (1 << 20)
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.csv", "w") as f,
    ):
        for _ in range(300):
            f.write(zeros)
    bombs = {"zip": out.getvalue(), "gzip": gzip.compress(zeros * 300, 1)}
    lying = bytearray(bombs["zip"])  # the directory says that the file is small
    at = lying.rindex(b"PK\x01\x02")
    lying[at + 24 : at + 28] = (1000).to_bytes(4, "little")
    bombs["a zip that lies"] = bytes(lying)
    bombs["lines"] = gzip.compress(b"\n" * 3_000_000, 1)
    for kind, bomb in bombs.items():
        tracemalloc.start()
        faults = check_run(bomb, 2, 3)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(faults) == 1, kind
        assert peak < 220 << 20, kind


def test_one_faulty_run_does_not_keep_the_others_from_being_scored(tmp_path):
    write_run(tmp_path / "truth.txt", simplex(30, 2))
    write_run(tmp_path / "good.csv", simplex(30, 2, 1))
    write_run(tmp_path / "short.csv", simplex(29, 2, 1))
    (tmp_path / "odd.csv").write_text("id,0,1\n0,2,3\n")
    scores = score_runs(
        tmp_path / "truth.txt",
        {n: tmp_path / f"{n}.csv" for n in ("good", "short", "odd")},
        size=100,
    )
    assert scores.runs == ["good"]
    assert set(scores.faults) == {"short", "odd"}
    assert "1 ids are missing: 29." in scores.faults["short"]
    assert check_run(tmp_path / "short.csv", 2, 30)[0] == "1 ids are missing: 29."
    for text in (str(scores), scores.to_markdown(), scores.to_latex(), scores.to_html("x")):
        assert "missing" in text
    with pytest.raises(InputError, match="1 ids are missing"):
        score_runs(tmp_path / "truth.txt", {"short": tmp_path / "short.csv"}, size=100)
    files = [str(tmp_path / f"{n}") for n in ("truth.txt", "good.csv", "short.csv")]
    done = CliRunner().invoke(app, ["lequa", "score", "T1A", *files])
    assert done.exit_code == 1
    assert "good" in done.output
    assert "not scored: short" in done.output
    done = CliRunner().invoke(app, ["lequa", "score", "T1A", *files, "--official"])
    assert done.exit_code == 1
    assert done.output.count("MRAE") == 1


def test_many_faults_are_cut_off(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text(text_of([f"{i},2,2" for i in range(500)]))
    faults = check_run(path, 2, 500)
    assert len(faults) == 101
    assert faults[-1] == "and 900 more faults."


def test_the_corpus_repeats_and_drifts():
    one, two = (make_corpus(2000, random_state=3) for _ in range(2))
    assert one["text"].tolist() == two["text"].tolist()
    bad = np.isin(one["stars"], [1, 2])
    assert bad[:500].mean() < bad[-500:].mean()
    assert (one["date"][1:] >= one["date"][:-1]).all()


def test_samples_have_the_prevalences_they_are_said_to_have(lab, corpus):
    task, texts = open_task(lab / "T1A"), open_task(lab / "T2A")
    stars = dict(zip(corpus["text"].tolist(), corpus["stars"].tolist(), strict=True))
    for split in ("dev", "test"):
        samples = texts.samples(split)
        for items, truth in zip(samples.bags, samples.bags.prevalence, strict=True):
            positive = np.mean([stars[t] >= 4 for t in samples.X[items]])
            assert positive == pytest.approx(truth[1])
    np.testing.assert_array_equal(task.truth("test"), texts.truth("test"))
    pools = [set(texts.samples(s).X.tolist()) for s in ("dev", "test")] + [
        set(texts.train.X.tolist())
    ]
    assert not (pools[0] & pools[1] or pools[0] & pools[2] or pools[1] & pools[2])
    assert min(len(t) for t in texts.train.X) >= 200
    # Nothing in the order of items tells their classes: mixed samples change class often.
    for items, truth in zip(texts.test.bags, texts.test.bags.prevalence, strict=True):
        order = np.array([stars[t] >= 4 for t in texts.test.X[items]])
        if 0.3 < truth[0] < 0.7:
            assert (order[1:] != order[:-1]).sum() > 8
    assert not (lab / "T1A" / "test_prevalences.txt").exists()


def test_a_lab_repeats_to_the_byte(corpus, lab, tmp_path):
    build_lab(corpus, tmp_path, RECIPE)
    files = [
        p.relative_to(lab) for p in lab.rglob("*") if p.is_file() and ".headcount" not in str(p)
    ]
    assert len(files) > 20
    for name in files:
        assert (lab / name).read_bytes() == (tmp_path / name).read_bytes(), name


@pytest.mark.parametrize("name", ["T1A", "T2A"])
def test_the_official_layout_reads_back(lab, official, tmp_path, name):
    compact = open_task(lab / name)
    shutil.copytree(official, tmp_path / "x")
    for place in (
        tmp_path / "x" / name,
        tmp_path / "x" / name / "public",
        tmp_path / "x" / f"{name}.train_dev.zip",
    ):
        task = open_task(place)
        assert (task.name, task.form, task.size, task.classes) == (
            *(name, compact.form, 50),
            compact.classes,
        )
        np.testing.assert_array_equal(task.train.X, compact.train.X)
        np.testing.assert_array_equal(task.train.y, compact.train.y)
        for split in ("dev", "test"):
            ours, theirs = task.samples(split), compact.samples(split)
            assert len(ours.bags) == len(theirs.bags)
            for a, b in zip(ours.bags, theirs.bags, strict=True):
                assert sorted(ours.X[a].tolist()) == sorted(theirs.X[b].tolist())
    np.testing.assert_array_equal(task.truth("dev"), compact.truth("dev"))


def test_the_cache_is_used_until_a_file_changes(official, tmp_path, monkeypatch):
    shutil.copytree(official / "T1A", tmp_path / "T1A")
    first = open_task(tmp_path / "T1A").test.X[0, 0]
    with monkeypatch.context() as patch:
        patch.setattr("headcount.lequa.official._convert", lambda *a: 1 / 0)
        open_task(tmp_path / "T1A")
    path = tmp_path / "T1A" / "public" / "test_samples" / "0.txt"
    lines = path.read_text().splitlines()
    cells = lines[1].split(",")
    path.write_text("\n".join([lines[0], ",".join(["123.5", *cells[1:]]), *lines[2:]]) + "\n")
    task = open_task(tmp_path / "T1A")
    assert task.test.X[next(iter(task.test.bags))[0], 0] == 123.5 != first


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("test_samples/3.txt", lambda t: t.replace("\n", "\nx", 1), r"test_samples/3.txt, line 2"),
        (
            "test_samples/3.txt",
            lambda t: t[: t.rindex("\n") - 40],
            r"line \d+: 30 numbers are expected",
        ),
        ("test_samples/3.txt", None, "test_samples/3.txt is missing"),
        ("label_map.txt", lambda t: t.replace("1", "7"), "codes must run from 0"),
        ("label_map.txt", lambda t: t.replace("1", "0"), "code 0 is there twice"),
        ("label_map.txt", lambda t: "", "names 0 classes"),
        ("test_samples/4.txt", lambda t: t.split("\n", 1)[1], r"test_samples/4.txt: the header"),
        ("test_samples/5.txt", lambda t: t[: t.index("\n", 3000) + 1], "is it cut short"),
        ("test_samples/6.txt", lambda t: t.replace("\n", "\n1e99,", 1), "line 2"),
        ("training_data.txt", lambda t: t.replace("\n1,", "\n-1,", 1), "the label -1 is none of"),
        ("training_data.txt", lambda t: t.replace("\n1,", "\n0.9,", 1), "the label 0.9 is none"),
        ("training_data.txt", lambda t: t.split("\n", 1)[0] + "\n", "holds no items"),
        ("dev_prevalences.txt", lambda t: t.replace("\n1,", "\n1,9"), "not a valid run"),
        ("training_data.txt", lambda t: t.replace("label,0,", "label,9,", 1), "the header must be"),
    ],
)
def test_damaged_tasks_are_named(official, tmp_path, file, change, words):
    shutil.copytree(official / "T1A", tmp_path / "T1A")
    path = tmp_path / "T1A" / "public" / file
    if change is None:
        path.unlink()
    else:
        path.write_text(change(path.read_text()))
    with pytest.raises(InputError, match=words):
        open_task(tmp_path / "T1A")


def test_training_samples_of_2024(official, tmp_path):
    shutil.copytree(official / "T1A", tmp_path / "T3")
    public = tmp_path / "T3" / "public"
    lines = (public / "training_data.txt").read_text().splitlines()
    (public / "training_samples").mkdir()
    for i in range(3):
        part = [lines[0], *lines[1 + 100 * i : 101 + 100 * i]]
        (public / "training_samples" / f"{i}.txt").write_text("\n".join(part) + "\n")
    (public / "training_data.txt").unlink()
    task = open_task(tmp_path / "T3")
    assert len(task.train.y) == 300
    assert task.ordinal


def test_damaged_prevalences_stay_refused(official, tmp_path):
    shutil.copytree(official / "T1A", tmp_path / "T1A")
    path = tmp_path / "T1A" / "public" / "dev_prevalences.txt"
    path.write_text(path.read_text().replace("\n1,", "\n1,9"))
    for _ in range(2):
        with pytest.raises(InputError, match="not a valid run"):
            open_task(tmp_path / "T1A")
    lines = (official / "T1A" / "public" / "dev_prevalences.txt").read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(InputError, match="20 dev samples, and there are prevalences of 19"):
        open_task(tmp_path / "T1A").dev  # noqa: B018


def test_a_folder_of_several_tasks_is_not_mixed(official, lab):
    with pytest.raises(InputError, match=r"several tasks \(T1A, T2A\)"):
        open_task(zips_of(official))
    with pytest.raises(InputError, match="open one of T1A, T2A"):
        open_task(lab)


def zips_of(official):
    home = official.parent / "zips"
    home.mkdir(exist_ok=True)
    for path in official.glob("*.zip"):
        shutil.copy(path, home)
    return home


def test_compact_tasks_that_are_damaged(lab, tmp_path):
    for name, data, words in (
        ("task.json", b"{", "task.json' is damaged"),
        ("task.json", b"{}", "task.json' is damaged"),
        ("test.indices.npy", b"junk", "test samples of T1A are damaged"),
        ("test.f32", b"", "has no test items"),
    ):
        shutil.copytree(lab / "T1A", tmp_path / "T1A")
        (tmp_path / "T1A" / name).write_bytes(data)
        with pytest.raises(InputError, match=words):
            open_task(tmp_path / "T1A").test  # noqa: B018
        shutil.rmtree(tmp_path / "T1A")


def test_gold_that_is_given_wins(lab, tmp_path):
    shutil.copytree(lab / "T1A", tmp_path / "T1A")
    truth = read_run(lab / "gold" / "T1A" / "test_prevalences.txt")
    write_run(tmp_path / "T1A" / "test_prevalences.txt", truth)
    write_run(tmp_path / "other.txt", truth[:, ::-1])
    task = open_task(tmp_path / "T1A", tmp_path / "other.txt")
    np.testing.assert_array_equal(task.truth("test"), truth[:, ::-1])


def test_the_size_of_samples_comes_from_the_folder(lab, tmp_path, monkeypatch):
    monkeypatch.chdir(lab)
    gold = "gold/T1A/test_prevalences.txt"
    flat = "T1A/dummy_test_predictions.txt"
    said = [
        CliRunner().invoke(app, ["lequa", "score", t, gold, flat]).output for t in ("T1A", "./T1A")
    ]
    assert said[0] == said[1]
    write_run(tmp_path / "odd.txt", simplex(30, 3))
    done = CliRunner().invoke(app, ["lequa", "score", "T1A", str(tmp_path / "odd.txt"), flat])
    assert "30 samples of 3 classes, and T1A has 20 or 30 of 2" in str(done.exception)


def test_not_a_task(tmp_path):
    with pytest.raises(InputError, match="is no LeQua task"):
        open_task(tmp_path)
    with pytest.raises(InputError, match="there is no task"):
        open_task(tmp_path / "nowhere")
    (tmp_path / "T1A.train_dev.zip").write_bytes(b"junk")
    with pytest.raises(InputError, match="not a zip file"):
        open_task(tmp_path / "T1A.train_dev.zip")


def test_recipes_that_cannot_be_built(corpus, tmp_path):
    for recipe, words in (
        (Recipe(label="stars", n_train=100_000), "too few items"),
        (Recipe(label="stars", min_length=10_000), "no text has 10000 characters"),
        (Recipe(label="stars", labels={"5": "good"}), "not two classes"),
        (Recipe(label="stars", labels=SENTIMENT, prevalence={"good": 1.0}), "positive share"),
        (Recipe(label="star"), "Did you mean 'stars'"),
        (Recipe(label="stars", n_train=3), "too few for 5 classes"),
        (Recipe(label="stars", helpful="category"), "must be numbers"),
        (Recipe(label="stars", labels={"1": " ", "5": "good"}), "cannot be called ' '"),
        (
            Recipe(
                label="stars",
                labels=SENTIMENT,
                prevalence={"negative": float("nan"), "positive": 1.0},
            ),
            "positive share",
        ),
    ):
        with pytest.raises(InputError, match=words):
            build_lab(corpus, tmp_path, recipe)


def test_baselines_resume_and_come_in_the_order_of_the_field(lab, tmp_path, monkeypatch):
    task = open_task(lab / "T1A")
    names = ["MLPE", "CC", "PCC", "PACC", "SLD"]
    scores = baselines(task, tmp_path, methods=names, n_jobs=1)
    mean = {name: values.mean() for name, values in scores.errors["rae"].items()}
    assert mean["SLD"] < mean["CC"] < mean["MLPE"]
    assert mean["PACC"] < mean["PCC"]
    for name in names:
        assert check_run(tmp_path / "runs" / f"{name}.csv", 2, 30) == []
    assert (
        "critical" in (tmp_path / "results.html").read_text()
        or "Nemenyi" in (tmp_path / "results.html").read_text()
    )
    monkeypatch.setattr("headcount.study.runner.work", lambda unit: 1 / 0)
    again = baselines(task, tmp_path, methods=names, n_jobs=1)
    assert str(again) == str(scores)


def test_methods_that_fail_are_listed_with_their_reason(lab, tmp_path):
    """A training set so small that most methods cannot be fitted."""
    shutil.copytree(lab / "T1A", tmp_path / "T1A")
    y = np.load(tmp_path / "T1A" / "train.y.npy")
    rows = np.concatenate([np.flatnonzero(y == 0)[:1], np.flatnonzero(y == 1)[:9]])
    X = np.fromfile(tmp_path / "T1A" / "train.f32", dtype="<f4").reshape(len(y), -1)
    X[rows].tofile(tmp_path / "T1A" / "train.f32")
    np.save(tmp_path / "T1A" / "train.y.npy", y[rows])
    gold = lab / "gold" / "T1A" / "test_prevalences.txt"
    words = ["lequa", "baselines", str(tmp_path / "T1A"), "-o", str(tmp_path / "out")]
    words += ["--no-defaults"]
    done = CliRunner().invoke(app, [*words, "--gold", str(gold), "-j", "1", "--no-systems"])
    assert done.exit_code == 1, done.output
    page = (tmp_path / "out" / "results.html").read_text()
    for name in ("PACC", "SLD", "HDy"):
        assert f"failed: {name}: " in done.output
        assert f"not scored: {name}: " in done.output
        assert f"not scored: {name}: " in page
    assert (tmp_path / "out" / "runs" / "MLPE.csv").is_file()


def test_the_lab_page_has_all_tasks_and_teams(lab, tmp_path):
    for name in ("T1A", "T2A"):
        folder = tmp_path / "runs" / name
        for run, seed in (("Team", 1), ("SLD" if name == "T1A" else "SLD-tfidf", 2)):
            write_run(folder / f"{run}.csv", simplex(30, 2, seed))
    write_run(tmp_path / "runs" / "T2A" / "runs" / "Other.csv", simplex(30, 2, 3))
    words = ["lequa", "overview", str(lab / "T1A"), str(lab / "T2A")]
    page = tmp_path / "lab.html"
    done = CliRunner().invoke(app, [*words, "--runs", str(tmp_path / "runs"), "-o", str(page)])
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert "<th scope=row>Team</th><td>x</td><td>x</td>" in text
    assert "<th scope=row>Other</th><td></td><td>x</td>" in text
    assert "<i>SLD-tfidf</i>" in text and "<i>Team</i>" not in text
    for words in ("Estimated against true share of positive", "Signed error", "by the shift"):
        assert text.count(words) >= 2
    assert text.count("CD = ") == 2
    write_run(tmp_path / "runs" / "T1A" / "Late.csv", simplex(9, 2, 1))
    done = CliRunner().invoke(
        app,
        ["lequa", "overview", str(lab / "T1A"), "--runs", str(tmp_path / "runs"), "-o", str(page)],
    )
    assert done.exit_code == 1
    assert "<td>failed</td>" in page.read_text()


def test_entries_are_those_of_the_lab(lab):
    from headcount.lequa.entries import lab_entries

    vector = lab_entries(open_task(lab / "T1A"))[""]
    names = [m.name for m in vector]
    assert names[:7] == ["MLPE", "CC", "PCC", "ACC", "PACC", "SLD", "HDy"]
    by_name = {m.name: m for m in vector}
    assert [by_name[n].quantifier.cv for n in ("CC", "PCC", "ACC", "PACC", "HDy", "SLD")] == [
        *(None, None, 0.4, 0.4, 0.4, None)
    ]
    # The lab inverted and clipped, and stopped its iteration early: the order of its baselines
    # comes from that.
    solvers = [by_name[n].quantifier.solver for n in ("ACC", "PACC", "SLD")]
    assert solvers == ["inverse", "inverse", "em"]
    assert by_name["KULeuven"].grid["classifier__svc__C"]
    text = lab_entries(open_task(lab / "T2A"), encoder="models/roberta-tuned")
    assert [m.name for m in text["tfidf"]][:3] == ["MLPE", "CC-tfidf", "PCC-tfidf"]
    assert "SLD-RoBERTa" in [m.name for m in text["models/roberta-tuned"]]
    assert [m.name for m in text[""]] == ["AutoQuantifier", "UniPadova"]
    assert "BayesQuantifier-tfidf" in [m.name for m in text["tfidf"]]
    assert names[-2:] == ["BayesQuantifier", "AutoQuantifier"]
    plain = lab_entries(open_task(lab / "T1A"), defaults=False)[""]
    assert not {"BayesQuantifier", "AutoQuantifier"} & {m.name for m in plain}
    task = open_task(lab / "T1A")
    task.classes = ["a", "b", "c"]
    several = [m.name for m in lab_entries(task)[""]]
    assert "KULeuven" in several and "HDy" not in several and "UniLeiden" not in several
    task.form = "text"
    # UniPadova took part in T2A alone.
    assert [m.name for m in lab_entries(task)[""]] == ["AutoQuantifier"]


def test_importing_changes_no_global_state():
    code = (
        "import csv, logging; before = csv.field_size_limit(), logging.root.handlers[:];"
        "import headcount.lequa.official, headcount.lequa.solve, headcount.lequa.build;"
        "print(before == (csv.field_size_limit(), logging.root.handlers[:]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_long_texts_are_read(official, tmp_path):
    shutil.copytree(official / "T2A", tmp_path / "T2A")
    path = tmp_path / "T2A" / "public" / "training_data.txt"
    long = 'one "two", ' * 50_000
    quoted = long.replace('"', '""')
    path.write_text(path.read_text() + f'1,"{quoted}"\n')
    assert open_task(tmp_path / "T2A").train.X[-1] == long


def test_without_gold_there_are_runs_and_no_page(official, tmp_path):
    shutil.copytree(official / "T1A", tmp_path / "T1A")
    task = open_task(tmp_path / "T1A")
    assert task.truth("test") is None
    assert baselines(task, tmp_path / "out", methods=["MLPE", "PACC"], n_jobs=1) is None
    assert check_run(tmp_path / "out" / "runs" / "PACC.csv", 2, 30) == []
    assert not (tmp_path / "out" / "results.html").exists()


def test_solving_fills_classes_in_order(lab):
    task = open_task(lab / "T2A")
    estimates, chosen = solve(task, PACC(), search=False)
    assert estimates.shape == (30, 2)
    assert not chosen
    flat, _ = solve(task, MLPE(), split="dev")
    np.testing.assert_allclose(flat, np.tile(np.bincount(task.train.y) / 300, (20, 1)))


def test_published_results_stand_beside_official_tasks(lab, monkeypatch):
    from headcount.lequa import page as module

    task = open_task(lab / "T1A")
    truth = task.truth("test")
    scores = score_runs(truth, {"SLD": truth}, size=50)
    assert task.built
    assert module.published_beside(task, scores) == ""  # built here, not official
    task.built = False
    spec = SPECS["T1A"]
    monkeypatch.setitem(module.SPECS, "T1A", type(spec)("T1A", 2022, 2, "vector", 50, 20, 30))
    beside = module.published_beside(task, scores)
    assert "0.11382" in beside
    assert "KULeuven" in beside


def test_task_data_travels_light(lab):
    import pickle

    data = TaskData(open_task(lab / "T1A"))
    assert data.task.train.X.nbytes > 10_000
    assert len(pickle.dumps(data)) < 2000


@pytest.fixture
def server(tmp_path):
    """A server that plays a record of Zenodo; it cuts the first download of T1A short."""
    body = bytes(range(256)) * 2000
    state = {"cut": True, "ranges": []}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path.startswith("/api/records/"):
                host = f"http://127.0.0.1:{self.server.server_port}"
                entry = {
                    "size": len(body),
                    "checksum": "md5:" + hashlib.md5(body).hexdigest(),
                }
                files = [
                    {"key": f"{t}.train_dev.zip", "links": {"self": f"{host}/{t}"}, **entry}
                    for t in ("T1A", "T1B")
                ]
                answer = json.dumps({"files": files}).encode()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(answer)
                return
            begin = 0
            asked = self.headers.get("Range")
            state["ranges"].append(asked)
            if asked:
                begin = int(asked.removeprefix("bytes=").rstrip("-"))
            self.send_response(206 if asked else 200)
            self.end_headers()
            data = state.get("bad") or body
            stop = 100_000 if state["cut"] and self.path == "/T1A" else len(data)
            state["cut"] = False
            self.wfile.write(data[begin:stop])

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}", state, body
        made.shutdown()


def test_downloads_resume_and_are_checked(server, tmp_path):
    address, state, body = server
    with pytest.raises(HeadcountError, match="goes on where it stopped"):
        fetch("2022", tmp_path, only=["T1A"], server=address, tell=lambda _: None)
    (path,) = fetch("2022", tmp_path, only=["T1A"], server=address, tell=lambda _: None)
    assert path.read_bytes() == body
    assert state["ranges"] == [None, "bytes=100000-"]
    said = []
    assert len(fetch("2022", tmp_path, server=address, tell=said.append)) == 2
    assert said[0] == "T1A.train_dev.zip: here already"
    state["bad"] = b"x" * len(body)
    (tmp_path / "T1B.train_dev.zip").unlink()
    with pytest.raises(HeadcountError, match="checksum is wrong"):
        fetch("2022", tmp_path, only=["T1B"], server=address, tell=lambda _: None)
    assert not list(tmp_path.glob("T1B*"))
    with pytest.raises(InputError, match="unknown task 'T9'"):
        fetch("2022", tmp_path, only=["T9"], server=address)


def test_no_network_is_a_sentence():
    with pytest.raises(HeadcountError, match=r"cannot be reached.*record 11661820"):
        files_of("2024", "http://127.0.0.1:9")


def test_commands_of_an_organiser_and_a_participant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()

    def call(*words, code=0):
        done = runner.invoke(app, ["lequa", *words])
        assert done.exit_code == code, (words, done.output, done.exception)
        return done.output

    call("corpus", "reviews.parquet", "--size", "2500")
    call(
        *("build", "reviews.parquet", "--label", "stars", "--sentiment", "--helpful", "helpful"),
        *("--train", "300", "--dev", "15", "--test", "20", "--size", "40", "-o", "lab"),
        *("--form", "vector", "--leak-limit", "1"),
    )
    assert "valid run" in call("check", "lab/T1A/dummy_test_predictions.txt", "--task", "lab/T1A")
    assert "ids are missing" in call(
        "check", "lab/T1A/dummy_test_predictions.txt", "--task", "T1A", code=1
    )
    said = call("run", "lab/T1A", "--method", "PACC", "-o", "mine.csv", "-j", "1")
    assert "Chosen: C=" in said or "chosen C=" in said
    gold = "lab/gold/T1A/test_prevalences.txt"
    dummy = "lab/T1A/dummy_test_predictions.txt"
    for kind, words in (
        ("text", "Wilcoxon"),
        ("markdown", "|---:|"),
        ("latex", r"\toprule"),
        ("html", "<svg"),
    ):
        assert words in call("score", "lab/T1A", gold, "mine.csv", dummy, "--table", kind)
    call("convert", "lab/T1A", "-o", "official/T1A")
    assert Path("official/T1A/public/test_samples/19.txt").is_file()
    call("convert", "official/T1A", "-o", "back")
    assert Path("back/test.indptr.npy").is_file()
    assert Path("back/dev.f32").stat().st_size > 0
    done = subprocess.run(
        [sys.executable, "-m", "headcount.cli", "lequa", "check", "mine.csv", "--task", "T1Z"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "neither a task's folder nor one of" in done.stderr


def test_nothing_is_built_over_a_task(corpus, lab):
    with pytest.raises(InputError, match="holds a task T1A already"):
        build_lab(corpus, lab, RECIPE)


def test_vectors_that_know_no_word_are_refused(corpus, tmp_path):
    from dataclasses import replace

    for text in ("zzzz 1 2\n", "the nan inf\n"):
        (tmp_path / "v.txt").write_text(text)
        with pytest.raises(InputError, match=r"tell no document|not finite"):
            build_lab(corpus, tmp_path / "x", replace(RECIPE, vectors=str(tmp_path / "v.txt")))


def test_a_frame_of_numbers_as_labels(tmp_path):
    texts = [" ".join(f"word w{i}x{j}" for j in range(60)) for i in range(40)]
    frame = Frame({"text": texts, "label": np.array([0.0, 1.0] * 19 + [np.nan] * 2)})
    recipe = Recipe(
        labels={"0": "no", "1": "yes"},
        n_train=6,
        n_dev=2,
        n_test=2,
        size=4,
        forms=("text",),
        leak_limit=1,
        seed=0,
        secret=0,
    )
    build_lab(frame, tmp_path, recipe)
    assert open_task(tmp_path / "T2A").classes == ["no", "yes"]
