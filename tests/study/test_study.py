"""Studies: the same table however they are run, stopped or spread; faults are listed at once."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from typer.testing import CliRunner

from headcount import (
    ACC,
    CC,
    PACC,
    SLD,
    GridSearch,
    InputError,
    PrevalenceGrid,
    UniformPrevalence,
    measure,
)
from headcount.cli.app import app
from headcount.data import Dataset
from headcount.data.dataset import Part
from headcount.report.page import published
from headcount.report.study_page import study_table, write_page
from headcount.report.tweets import shift_span
from headcount.study import Method, Results, Study, example, load, run, status
from headcount.study.units import final_units, select_units

TOML = """
name = "tiny"
measures = ["ae", "rae"]
seeds = [0, 1]
[protocol]
kind = "uniform"
n_bags = 40
size = 30
[classifiers.lr]
kind = "logistic"
grid.C = [0.01, 1.0, 100.0]
[[methods]]
quantifier = "CC"
classifier = "lr"
[[methods]]
quantifier = "PACC"
classifier = "lr"
[[methods]]
quantifier = "SVMKLD"
grid.C = [0.1, 10.0]
[[datasets]]
name = "iris"
sklearn = "iris"
[[datasets]]
name = "wine"
sklearn = "wine"
"""
FILES = ["results.parquet", "selection.parquet", "provenance.json"]


def command(config, output, *words):
    return [sys.executable, "-m", "headcount.cli", "study", "run", config, "-o", output, *words]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study that ran through on one core, and its configuration."""
    home = tmp_path_factory.mktemp("study")
    (home / "tiny.toml").write_text(TOML)
    run(load(home / "tiny.toml"), home / "one", n_jobs=1)
    return home


def contents(folder):
    return [(Path(folder) / name).read_bytes() for name in FILES]


def test_any_number_of_jobs_gives_the_same_bytes(whole):
    run(load(whole / "tiny.toml"), whole / "two", n_jobs=2)
    assert contents(whole / "two") == contents(whole / "one")


def test_killed_at_three_moments_it_ends_with_the_same_bytes(whole):
    output = whole / "killed"
    total = len(list((whole / "one" / "units").iterdir()))
    for share in (0.2, 0.5, 0.8):
        with subprocess.Popen(
            command(whole / "tiny.toml", output, "--jobs", "1"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as child:
            while child.poll() is None:
                if len(list(output.glob("units/*.parquet"))) >= share * total:
                    os.killpg(child.pid, signal.SIGKILL)
                    break
                time.sleep(0.005)
    (output / "units" / ".x.parquet.1.part").write_bytes(b"half written")
    said = status(output)
    assert said.finished or "Run it again" in str(said)
    done = subprocess.run(
        command(whole / "tiny.toml", output, "--jobs", "2"), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert contents(output) == contents(whole / "one")
    assert not list(output.rglob("*.part"))
    assert status(output).finished


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_gives_the_same_bytes(whole):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        run(load(whole / "tiny.toml"), whole / "dask", dask=cluster.scheduler_address)
    assert contents(whole / "dask") == contents(whole / "one")


def test_no_scheduler_is_a_sentence(whole):
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        run(load(whole / "tiny.toml"), whole / "none", dask="tcp://127.0.0.1:9")


def test_a_finished_study_is_only_read(whole, monkeypatch):
    monkeypatch.setattr("headcount.study.runner.work", lambda unit: 1 / 0)
    assert run(load(whole / "tiny.toml"), whole / "one", n_jobs=1).frame.n_rows > 0


def test_results_are_what_a_search_by_hand_gives(whole):
    data = load(whole / "tiny.toml").datasets[0]
    bags = UniformPrevalence(n_bags=40, size=30, random_state=1).draw(data.validation.y)
    grid = {"classifier__C": [0.01, 1.0, 100.0]}
    base = PACC(LogisticRegression(max_iter=1000), random_state=1)
    search = GridSearch(base, grid, measure="rae", refit=False)
    search.fit(*data.train, pool=data.validation.X, bags=bags)
    winner = base.set_params(**search.best_params_).fit(*data.labelled)
    test = UniformPrevalence(n_bags=40, size=30, random_state=1).draw(data.test.y)
    errors = measure("rae")(test.prevalence, winner.predict_bags(data.test.X, test), sizes=30)
    frame = Results.read(whole / "one").by("rae", "iris")
    mine = (frame["method"] == "PACC") & (frame["seed"] == 1)
    np.testing.assert_allclose(frame["rae"][mine], errors, atol=1e-12)
    assert len(np.unique(frame["bag"])) == 80


def test_provenance_names_no_machine_or_path(whole):
    text = (whole / "one" / "provenance.json").read_text()
    assert str(whole) not in text
    assert os.uname().nodename not in text
    about = json.loads(text)
    assert about["versions"]["headcount"]
    assert about["datasets"]["wine"]["train"] == 53


FITS = []


class Counting(GaussianNB):
    def fit(self, X, y):
        FITS.append(len(y))
        return super().fit(X, y)


def test_each_classifier_is_fitted_once_for_all_methods(tmp_path):
    FITS.clear()
    data = Dataset.split("iris", *load_iris(return_X_y=True))
    methods = {cls.__name__: cls(Counting()) for cls in (CC, ACC, PACC, SLD)}
    run(Study("x", [data], methods, UniformPrevalence(n_bags=5, size=10)), tmp_path, n_jobs=1)
    assert len(FITS) == 6  # on everything, and on five folds


def test_a_method_that_fails_is_reported_and_the_rest_goes_on(tmp_path):
    class Broken(CC):
        def fit(self, X, y):
            raise RuntimeError("no luck")

        def scorer_key(self):
            return None

    data = Dataset.split("iris", *load_iris(return_X_y=True), validation=0.2)
    methods = [
        Method("CC", CC()),
        Method("PACC", PACC()),
        Method("broken", Broken()),
        Method("half", CC(), {"cv": [5, 40], "calibrator": ["platt"]}),
    ]
    study = Study("x", [data], methods, UniformPrevalence(n_bags=5, size=10))
    results = run(study, tmp_path, n_jobs=1)
    assert "broken on iris (seed 0): RuntimeError: no luck" in results.failures()
    assert any("trials of half failed" in line for line in results.failures())
    assert study_table(results, "ae").methods == ["CC", "PACC", "half"]


def test_every_fault_is_listed_at_once_with_its_line(tmp_path):
    text = TOML.replace('measures = ["ae", "rae"]', 'measures = ["ae", "rea"]')
    text = text.replace('quantifier = "CC"', 'quantifier = "CCC"')
    text = text.replace("grid.C = [0.1, 10.0]", "grid.D = [0.1]\nparameters = { toll = 1 }")
    text = text.replace('kind = "uniform"\nn_bags = 40', 'kind = "uniform"\nn_bag = 40')
    text = text.replace("grid.C = [0.01", "grid.CC = [0.01")
    text = text.replace('sklearn = "wine"', 'path = "nowhere.csv"\nlabel = "y"\ntext = "t"')
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load(path)
    said = str(caught.value)
    lines = text.splitlines()
    for words, where in (
        ("unknown measure 'rea'. Did you mean 'rae'?", 'measures = ["ae", "rea"]'),
        ("unknown quantifier 'CCC'", 'quantifier = "CCC"'),
        ("unknown parameter of SVMKLD 'toll'", "parameters = { toll = 1 }"),
        ("unknown setting of uniform 'n_bag'. Did you mean 'n_bags'?", "n_bag = 40"),
        ("unknown parameter of LogisticRegression 'CC'", "grid.CC = [0.01, 1.0, 100.0]"),
        ("there is no file", 'name = "wine"'),
    ):
        fault = next(line for line in said.splitlines() if words in line)
        at = int(re.search(r"line (\d+)", fault)[1])
        assert abs(at - (lines.index(where) + 1)) <= 1, fault
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[protocol]", "[protocl]", "protocl: unknown key 'protocl'. Did you mean 'protocol'?"),
        ('kind = "uniform"', 'kind = "grid"\nn_points = 2001', "unknown setting of grid 'n_bags'"),
        ('name = "wine"', 'name = "iris"', "datasets: 'iris' is there twice"),
        ("seeds = [0, 1]", 'seeds = ["a"]', "line 4, seeds[0]: Input should be a valid integer"),
        (
            'classifier = "lr"',
            'classifier = "rl"',
            "unknown classifier 'rl'. Expected one of: 'lr'",
        ),
        ('kind = "logistic"', 'kind = "sklearn.svm.Nope"', "no classifier 'sklearn.svm.Nope'"),
        ("size = 30", "size = 0", "size"),
        ("seeds = [0, 1]", "seeds = [0, 0]", "different whole numbers"),
        ("seeds = [0, 1]", "seeds = [true, 1]", "valid integer"),
        ("grid.C = [0.01, 1.0, 100.0]", "grid.C = [-1.0]", "'C' parameter"),
        ('kind = "logistic"', 'kind = "sklearn.decomposition.PCA"', "parameter of PCA 'C'"),
        ('quantifier = "PACC"', 'quantifier = "PACC"\nparameters = { cv = "x" }', "cv must be"),
        ('quantifier = "PACC"', 'quantifier = "PACC"\nparameters.classifier = "lr"', "not here"),
        ('sklearn = "iris"', "", "exactly one of path, tweets, sparse, sklearn, amazon"),
        ("name = ", "name == ", "is no TOML"),
        ('quantifier = "CC"', 'quantifier = "CC"\nonly = ["kld"]', "only='kld' is not among"),
    ],
)
def test_faults(tmp_path, old, new, words):
    path = tmp_path / "bad.toml"
    path.write_text(TOML.replace(old, new))
    with pytest.raises(InputError) as caught:
        load(path)
    assert words in str(caught.value)


def test_the_name_of_a_data_set_belongs_to_its_results(tmp_path):
    X, y = load_iris(return_X_y=True)
    methods = {"CC": CC(), "PACC": PACC()}
    protocol = UniformPrevalence(n_bags=5, size=10)
    twins = [Dataset.split(name, X, y) for name in ("a", "b")]
    frame = run(Study("x", twins, methods, protocol), tmp_path, n_jobs=1).frame
    assert sorted(set(frame["dataset"].tolist())) == ["a", "b"]
    renamed = run(Study("x", [Dataset.split("c", X, y)], methods, protocol), tmp_path, n_jobs=1)
    assert set(renamed.frame["dataset"].tolist()) == {"c"}


def test_another_study_in_the_folder_leaves_nothing_behind(tmp_path, monkeypatch):
    data = Dataset.split("iris", *load_iris(return_X_y=True), validation=0.2)
    protocol = UniformPrevalence(n_bags=5, size=10)
    searched = [Method("PCC", CC(), {"cv": [3, 5]}), Method("CC", CC())]
    run(Study("x", [data], searched, protocol), tmp_path, n_jobs=1)
    assert (tmp_path / "selection.parquet").exists()
    run(Study("x", [data], {"CC": CC(), "PACC": PACC()}, protocol), tmp_path, n_jobs=1)
    assert not (tmp_path / "selection.parquet").exists()
    monkeypatch.setattr("headcount.study.runner.work", lambda unit: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(Study("y", [data], {"ACC": ACC()}, protocol), tmp_path, n_jobs=1)
    with pytest.raises(InputError, match="holds no results"):
        Results.read(tmp_path)


def test_a_damaged_unit_is_done_again(whole):
    expected = contents(whole / "one")
    path = sorted((whole / "one" / "units").iterdir())[0]
    path.write_bytes(path.read_bytes()[:100])
    assert not status(whole / "one").finished
    run(load(whole / "tiny.toml"), whole / "one", n_jobs=1)
    assert contents(whole / "one") == expected


def test_a_flipped_byte_is_found_and_the_unit_done_again(whole, caplog):
    import shutil

    home = whole / "flipped"
    shutil.copytree(whole / "one", home)
    path = sorted((home / "units").iterdir())[0]
    data = bytearray(path.read_bytes())
    changed = 0
    for at in range(8, len(data), 97):  # some flips break the file, others change a number
        flipped = bytearray(data)
        flipped[at] ^= 1
        path.write_bytes(flipped)
        assert not status(home).finished
        assert "1 damaged" in str(status(home))
        changed += 1
    assert changed > 20
    run(load(whole / "tiny.toml"), home, n_jobs=1)
    assert "is damaged: its unit is done again" in caplog.text
    assert contents(home) == contents(whole / "one")
    assert status(home).finished


def test_damaged_results_are_not_read(whole):
    import shutil

    home = whole / "results"
    shutil.copytree(whole / "one", home)
    data = bytearray((home / "results.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (home / "results.parquet").write_bytes(data)
    with pytest.raises(InputError, match=r"damaged \(results.parquet is not as it was written"):
        Results.read(home)
    run(load(whole / "tiny.toml"), home, n_jobs=1)
    assert contents(home) == contents(whole / "one")


@pytest.mark.parametrize("name", ["provenance.json", "results.parquet"])
def test_a_flipped_byte_outside_the_units_is_found(whole, name):
    """Table 1 of a page comes from the provenance, so that it needs a checksum as well."""
    import shutil

    home = whole / f"flipped {name}"
    shutil.copytree(whole / "one", home)
    data = (home / name).read_bytes()
    for at in range(3, len(data), len(data) // 40):
        flipped = bytearray(data)
        flipped[at] ^= 1
        (home / name).write_bytes(flipped)
        assert not status(home).finished, data[at - 5 : at + 5]
        with pytest.raises(InputError, match="damaged"):
            Results.read(home)
    run(load(whole / "tiny.toml"), home, n_jobs=1)
    assert contents(home) == contents(whole / "one")
    assert status(home).finished


def test_a_damaged_plan_is_said(whole):
    import shutil

    home = whole / "plan"
    shutil.copytree(whole / "one", home)
    plan = (home / "plan.json").read_text()
    (home / "plan.json").write_text(plan.replace('"test"', '"tesu"'))
    with pytest.raises(InputError, match="damaged"):
        status(home)
    unit = json.loads(plan)["select"][0]
    (home / "plan.json").write_text(plan.replace(unit, unit[::-1]))
    assert not status(home).finished


def wait_for(condition, seconds=60):
    """Poll until something holds; a deadline, not a guess, ends a test that would hang."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def test_a_second_process_waits_for_the_first(whole, caplog):
    from headcount.study.store import worker, working_on

    home = whole / "both"
    with working_on(home):
        assert f"process {os.getpid()} on " in worker(home)
        child = subprocess.Popen(
            command(whole / "tiny.toml", home, "--jobs", "1"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = child.stderr.readline()
        while said and "waiting for it" not in said:
            said = child.stderr.readline()
        assert f"process {os.getpid()}" in said
        assert not list(home.glob("units/*.parquet"))
        run_status = str(status_of_plan(home))
        assert "is working on it" in run_status
    assert child.wait() == 0
    child.stderr.close()
    assert worker(home) == ""
    assert contents(home) == contents(whole / "one")


def status_of_plan(home):
    (home / "plan.json").write_text(json.dumps({"name": "x", "select": ["a"], "test": None}))
    return status(home)


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    """Units that would run for minutes: without the watch, workers outlive their parent."""
    (tmp_path / "slow.py").write_text(
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from joblib import Parallel, delayed\n"
        "from headcount.study.runner import end_with_parent\n"
        "def slow(parent, folder):\n"
        "    end_with_parent(parent)\n"
        "    Path(folder, f'{os.getpid()}.pid').touch()\n"
        "    time.sleep(300)\n"
        "if __name__ == '__main__':\n"
        "    jobs = (delayed(slow)(os.getpid(), sys.argv[1]) for _ in range(2))\n"
        "    Parallel(n_jobs=2)(jobs)\n"
    )
    with subprocess.Popen([sys.executable, tmp_path / "slow.py", tmp_path]) as parent:
        assert wait_for(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
        pids = [int(path.stem) for path in tmp_path.glob("*.pid")]
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
        parent.kill()

    def gone(pid):
        try:
            return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] == "Z"
        except FileNotFoundError:
            return True

    assert wait_for(lambda: all(gone(pid) for pid in pids))


def test_a_method_that_fails_with_one_seed_is_left_out(tmp_path):
    data = Dataset.split("iris", *load_iris(return_X_y=True))
    methods = {"CC": CC(), "PACC": PACC(), "sometimes": FailsOnSeedOne()}
    study = Study("x", [data], methods, UniformPrevalence(n_bags=5, size=10), seeds=[0, 1])
    results = run(study, tmp_path, n_jobs=1)
    assert study_table(results, "ae").methods == ["CC", "PACC"]
    assert results.failures() == ["sometimes on iris (seed 1): RuntimeError: no luck"]
    assert CliRunner().invoke(app, ["study", "report", str(tmp_path)]).exit_code == 0
    text = (tmp_path / "report.html").read_text()
    assert "Left out, because they failed somewhere: sometimes." in text
    assert "no luck" in text


class FailsOnSeedOne(CC):
    def fit(self, X, y):
        if self.random_state == 1:
            raise RuntimeError("no luck")
        return super().fit(X, y)

    def scorer_key(self):
        return None


def test_one_method_is_a_study_too(tmp_path):
    data = Dataset.split("iris", *load_iris(return_X_y=True))
    study = Study("x", [data], {"CC": CC()}, UniformPrevalence(n_bags=5, size=10))
    results = run(study, tmp_path, n_jobs=1)
    assert study_table(results, "ae").methods == ["CC"]
    assert CliRunner().invoke(app, ["study", "report", str(tmp_path)]).exit_code == 0


def test_when_everything_fails_the_reasons_are_given(tmp_path):
    data = Dataset.split("iris", *load_iris(return_X_y=True), validation=0.2)
    study = Study("x", [data], [Method("CC", PACC(), {"cv": [40, 41]})])
    with pytest.raises(InputError, match=r"every setting .* failed:\n.*labelled items, fewer"):
        run(study, tmp_path, n_jobs=1)


def test_paths_of_a_base_stay_where_they_are(tmp_path):
    (tmp_path / "sub").mkdir()
    rows = "\n".join(f"{i},{i % 2}" for i in range(40))
    (tmp_path / "sub" / "d.csv").write_text("a,y\n" + rows + "\n")
    base = TOML[: TOML.index("[[datasets]]")]
    (tmp_path / "sub" / "b.toml").write_text(
        base + '[[datasets]]\nname = "d"\npath = "d.csv"\nfeatures = ["a"]\nlabel = "y"\n'
    )
    (tmp_path / "child.toml").write_text('extends = "sub/b.toml"\nname = "child"\n')
    assert load(tmp_path / "child.toml").datasets[0].name == "d"
    (tmp_path / "loop.toml").write_text('extends = "loop.toml"\n')
    with pytest.raises(InputError, match="extends itself"):
        load(tmp_path / "loop.toml")


def test_an_impossible_grid_is_refused_before_any_work(tmp_path):
    data = Dataset.split("wine", *load_wine(return_X_y=True))
    with pytest.raises(InputError, match="above max_bags"):
        Study("x", [data], {"CC": CC()}, PrevalenceGrid(n_points=5001))


def test_a_study_may_extend_another(tmp_path):
    (tmp_path / "base.toml").write_text(TOML)
    (tmp_path / "mine.toml").write_text('extends = "base.toml"\nname = "mine"\nseeds = [3]\n')
    study = load(tmp_path / "mine.toml")
    assert (study.name, study.seeds, len(study.methods)) == ("mine", [3], 3)


def test_the_tweet_study_runs_on_any_table(tmp_path):
    rng = np.random.default_rng(0)
    words = {"negative": "bad awful poor", "neutral": "plain table chair", "positive": "good fine"}
    rows = []
    for label, own in words.items():
        for _ in range(80):
            text = " ".join(rng.choice((own + " it was the day").split(), 6))
            rows.append(f"{label},{text}")
    (tmp_path / "texts.csv").write_text("mood,text\n" + "\n".join(rows) + "\n")
    (tmp_path / "mine.toml").write_text(
        'extends = "tweets"\nname = "mine"\n[protocol]\nkind = "grid"\nn_points = 3\nrepeats = 2\n'
        'size = 20\n[[datasets]]\nname = "SST"\npath = "texts.csv"\ntext = "text"\n'
        'label = "mood"\n'
    )
    study = load(tmp_path / "mine.toml")
    assert len(study.methods) == 15
    assert {m.name for m in study.methods if "ae" in study.labels(m)} == {
        *("CC", "ACC", "PCC", "PACC", "SLD", "HDy", "SVM(Q)", "SVM(KLD)", "SVM(NKLD)"),
        *("SVM(AE)", "E(PACC)Ptr", "E(PACC)AE"),
    }
    few = [m for m in study.methods if m.name in ("CC", "SLD", "SVM(RAE)")]
    small = Study("mine", study.datasets, few, study.protocol, published="tweets")
    results = run(small, tmp_path / "out", n_jobs=1)
    done = CliRunner().invoke(app, ["study", "report", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Beside the published results" in page
    assert f"{study_table(results, 'rae').means[1, 0]:.3f} / 0.534" in page  # SLD on SST
    assert "/ 3.804" in page  # SVM(RAE) on SST
    assert page.count("<svg") >= 12
    outside = set(re.findall(r"""(?:src|href)=["']?(https?:[^"' >]+)""", page))
    assert all("w3.org" in link for link in outside)


def paper_like(name, sizes):
    """Three classes with the sizes of a data set of the tweet paper."""
    rng = np.random.default_rng(0)
    labels = np.array(["negative", "neutral", "positive"])
    parts = []
    for n in sizes:
        y = np.arange(n) % 3
        parts.append(Part(rng.normal(size=(n, 4)) + 1.5 * np.eye(3, 4)[y], labels[y]))
    return Dataset(name, parts[0], parts[2], parts[1])


def test_the_tweet_page_has_the_tables_of_the_paper(tmp_path):
    data = [paper_like("HCR", (797, 797, 798)), paper_like("OMD", (1576, 263, 787))]
    methods = {"CC": CC(), "PACC": PACC(), "SLD": SLD(), "own": ACC()}
    protocol = PrevalenceGrid(n_points=4, repeats=2, size=40)
    study = Study("t", data, methods, protocol, published="tweets")
    results = run(study, tmp_path, n_jobs=1)
    write_page(results, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    # Table 1: sizes, total, shift, prevalences of labelled and test items, averages.
    for words in ("<td>2,392</td>", "U(positive)", "<tr class=average><th scope=row>average"):
        assert words in text
    about = results.provenance["datasets"]["HCR"]
    shift = np.abs(np.subtract(about["test_prevalence"], about["prevalence"])).mean()
    assert f"<td>{shift:.4f}</td>" in text
    # Tables 4 and 5: ranks among the methods of 2016, whose ranks stand in brackets.
    table = study_table(results, "ae")
    three = [table.methods.index(m) for m in ("CC", "PACC", "SLD")]
    ranks = np.argsort(np.argsort(table.means[three, 0])) + 1
    row = "".join(f"<td>{r} ({old})</td>" for r, old in zip(ranks, (5, 3, 7), strict=True))
    assert f"<th scope=row>HCR</th>{row}" in text
    # Tables 6 and 7: signs of 2016 beside ours.
    assert "<th scope=row>SLD</th><td>&lt;</td>" in text  # RAE: SLD against CC in 2016
    assert (
        text.count("Uncorrected") == 2
        and text.count("Holm&#x27;s correction") + text.count("Holm's correction") >= 2
    )
    # Figures 1 and 2: lines at the shifts of 2016, for the paper's own data alone.
    assert shift_span(results) == (0.0171, 0.0630)
    assert "The dotted lines enclose" in text
    other = Study("t", [paper_like("HCR", (90, 90, 90))], methods, protocol, published="tweets")
    assert shift_span(run(other, tmp_path / "b", n_jobs=1)) is None


def test_published_tables_are_the_papers():
    table = published("tweets_rae")
    row = table["dataset"].tolist().index("GASP")
    assert (table["SLD"][row], table["CC"][row]) == (0.337, 2.850)
    assert published("tweets_kld") is None


def test_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    assert runner.invoke(app, ["study", "new", "small"]).exit_code == 0
    assert Path("small.toml").read_text() == example("small")
    again = subprocess.run(
        [sys.executable, "-m", "headcount.cli", "study", "new", "small"],
        capture_output=True,
        text=True,
    )
    assert again.returncode == 2
    assert "exists" in again.stderr
    Path("tiny.toml").write_text(TOML)
    done = runner.invoke(app, ["study", "run", "tiny.toml", "-o", "out", "--jobs", "1"])
    assert done.exit_code == 0, done.output
    assert "average rank" in done.output
    assert "finished" in runner.invoke(app, ["study", "status", "out"]).output
    for kind, words in (("text", "method (ae)"), ("markdown", "|---|"), ("latex", r"\toprule")):
        shown = runner.invoke(app, ["study", "report", "out", "--table", kind])
        assert words in shown.output
    assert isinstance(runner.invoke(app, ["study", "status", "."]).exception, InputError)
    assert isinstance(runner.invoke(app, ["study", "report", "."]).exception, InputError)


def test_intervals_are_calibrated_only_where_they_are_asked_for(tmp_path):
    (tmp_path / "tiny.toml").write_text(TOML)
    study = load(tmp_path / "tiny.toml")
    methods = [Method("plain", PACC()), Method("bounds", SLD(), intervals=True)]
    units, _ = final_units(replace(study, methods=methods), None)
    calibrated = {t.name: t.quantifier.calibrate_width for unit in units for t in unit.trials}
    assert calibrated == {"plain": False, "bounds": True}
    for unit in select_units(study):
        assert not any(t.quantifier.get_params().get("calibrate_width") for t in unit.trials)
