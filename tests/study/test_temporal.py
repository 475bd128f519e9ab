"""Data cut by time: windows, shift, rank correlations, studies over periods and their page."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist, pdist
from scipy.stats import spearmanr
from typer.testing import CliRunner

from headcount import MLLS, PACC, Frame, HDx, InputError, measure
from headcount.cli.app import app
from headcount.data.cutting import Preparation, cut_by_time
from headcount.data.dataset import Dataset
from headcount.data.temporal import Periods
from headcount.data.timed import read_timed_table
from headcount.data.windows import Windows
from headcount.kernels import shift
from headcount.report.page import published
from headcount.report.temporal import temporal_body
from headcount.report.temporal_tables import (
    Carc,
    average_ranks,
    balanced_table,
    data_table,
    errors_table,
    main_methods,
    other_counts,
)
from headcount.study import Method, Results, Study, load, run
from headcount.study.build import quantifier_classes

WORDS = {
    "bad": "awful poor broken slow return",
    "good": "great fine lovely quick happy",
    "meh": "plain usual average normal okay",
}


def plain_mmd(X, Y, sigma):
    """The formula with the whole matrices: pairs of different items within, all pairs between."""
    k = [np.exp(-(cdist(a, b) ** 2) / (2 * sigma**2)) for a, b in ((X, X), (Y, Y), (X, Y))]
    n, m = len(X), len(Y)
    within = (k[0].sum() - n) / (n * (n - 1)) + (k[1].sum() - m) / (m * (m - 1))
    return np.sqrt(max(within - 2 * k[2].mean(), 0))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_mmd_is_the_plain_formula_with_the_median_distance(rng, form):
    X, Y = rng.normal(size=(1100, 4)), rng.normal(size=(700, 4)) + 0.3  # several blocks
    X[rng.random(X.shape) < 0.3] = 0
    distances = np.sort(pdist(X))
    sigma = distances[(len(distances) - 1) // 2]
    assert shift.median_distance(form(X)) == pytest.approx(sigma, rel=1e-9)
    assert shift.mmd(form(X), form(Y)) == pytest.approx(plain_mmd(X, Y, sigma), rel=1e-9)
    assert shift.mmd(X, X[::-1], 1.0) < 0.05


def test_mmd_by_hand_and_where_it_is_not_defined():
    X, Y = np.array([[0.0], [1.0]]), np.array([[2.0], [2.0]])
    between = (2 * np.exp(-(2**2) / 2) + 2 * np.exp(-(1**2) / 2)) / 4
    expected = np.sqrt(np.exp(-0.5) + 1 - 2 * between)
    assert shift.mmd(X, Y, 1.0) == pytest.approx(expected)
    assert np.isnan(shift.mmd(X[:1], Y))
    assert np.isnan(shift.mmd(np.zeros((5, 2)), Y @ np.ones((1, 2))))  # all training items equal


def test_the_median_distance_of_many_equal_distances():
    X = np.repeat(np.eye(3), 40, axis=0)
    assert shift.median_distance(X) == pytest.approx(np.sqrt(2))


def test_label_shift_by_hand():
    found = shift.label_shift([[0.25, 0.75], [0.0, 1.0]], [0.5, 0.5])
    by_hand = 0.25 * np.log(0.5) + 0.75 * np.log(1.5)
    np.testing.assert_allclose(found, [by_hand, np.log(2)])


def test_carc_is_spearman_averaged_and_undefined_series_are_counted(rng):
    truth, estimate = rng.dirichlet(np.ones(4), 12), rng.dirichlet(np.ones(4), 12)
    expected = np.mean([spearmanr(truth[:, c], estimate[:, c])[0] for c in range(4)])
    found = Carc.of(truth, estimate)
    assert found.value == pytest.approx(expected) == measure("carc")(truth, estimate)
    flat = estimate.copy()
    flat[:, 1] = 0.0
    undefined = Carc.of(truth, flat)
    assert np.isnan(undefined.value)
    assert (undefined.undefined, undefined.still) == (1, 0)
    rest = np.mean([spearmanr(truth[:, c], flat[:, c])[0] for c in (0, 2, 3)])
    assert str(undefined) == f"undefined (1; rest {rest:.3f})"
    still = truth.copy()
    still[:, 3] = 0.0
    assert Carc.of(still, estimate).still == 1
    assert not np.isnan(Carc.of(still, estimate).value)


def test_average_ranks_are_those_of_the_paper():
    table = published("temporal")
    rows = table.rows(table["measure"] == "rae_percent")
    values = np.column_stack([rows[c] for c in rows.columns[2:-1]])
    np.testing.assert_allclose(average_ranks(values), rows["average_rank"], atol=0.0051)


def days(*texts):
    return np.array(texts, dtype="datetime64[D]").astype(np.int64)


def test_windows_by_hand():
    dates = days("2013-12-31", "2014-01-01", "2014-06-30", "2014-07-01", "2014-08-15", "2014-10-01")
    cut = Windows(["2014-01", "2014-Q2"], ["", "2014"], minimum=1).cut(dates)
    assert cut.train.tolist() == [1, 2]
    assert (cut.test.tolist(), cut.names) == ([3, 4, 5], ["2014-07", "2014-08", "2014-10"])
    assert cut.outside == {"outside of the windows": 1}
    within = Windows(["2014-01", "2014-07-15"], ["", ""], minimum=1).cut(dates)
    assert within.outside == {"outside of the windows": 1}
    begun = Windows(["2014-01", "2014-08-10"], ["", ""], minimum=1).cut(dates)
    assert (begun.names, begun.outside) == (
        ["2014-10"],
        {"outside of the windows": 1, "in the month in which the training ends": 1},
    )
    quarters = Windows(["", "2014-06-30"], ["2014-07", ""], every="quarter", minimum=2).cut(dates)
    assert quarters.names == ["2014-Q3"]
    assert quarters.outside == {"in a period of fewer than 2 items": 1}
    gap = Windows(["", "2014-06"], ["", ""], gap=2, minimum=1).cut(dates)
    assert (gap.names, gap.outside) == (["2014-10"], {"in the gap of 2": 2})
    early = Windows(["", "2014-06"], ["", ""], gap=2, minimum=1)  # counted from the window's end
    assert early.cut(days("2014-01-01", "2014-07-01", "2014-09-15")).names == ["2014-09"]
    dev = Windows(["2014", "2014-06"], ["2014-08", "2014"], ["2014-07", "2014-07"], minimum=1)
    found = dev.cut(dates, may_test=np.array([1, 1, 1, 1, 0, 1], dtype=bool))
    assert (found.development.tolist(), found.test.tolist()) == ([3], [5])
    assert found.outside == {"outside of the windows": 1, "for training only": 1}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ((["2014", "2013"], ["2015", ""]), "ends before it begins"),
        ((["2014", "2015"], ["2015-12", ""]), "begins before the window before it has ended"),
        ((["2014", "tomorrow"], ["2015", ""]), "'tomorrow' is no moment"),
        ((["2014-13", "2015"], ["2016", ""]), "'2014-13' is no moment"),
        (("2014", ["2016", ""]), "a first and a last moment"),
    ],
)
def test_windows_that_make_no_sense(settings, words):
    with pytest.raises(InputError, match=words):
        Windows(*settings)


def test_windows_without_items_are_refused():
    with pytest.raises(InputError, match="no item lies in the training window"):
        Windows(["2010", "2011"], ["2012", ""]).cut(days("2012-01-01"))
    with pytest.raises(InputError, match=r"no period of the test window .* has 100 items"):
        Windows(["2010", "2011"], ["2012", ""]).cut(days("2011-01-01", "2012-01-01"))


def corpus(path, *, months=12, size=60, seed=0):
    """Texts whose mix of classes drifts by month; the last class appears late."""
    rng = np.random.default_rng(seed)
    rows = ["when,mood,kind,words"]
    for month in range(months):
        bad = 0.2 + 0.5 * month / months
        for mood in rng.choice(["bad", "good", "meh"], size, p=[bad, 0.9 - bad, 0.1]):
            own = rng.choice((WORDS[mood] + " it was the day and so on").split(), 7)
            kind = "old" if rng.random() > month / months else "new"
            rows.append(f"2020-{month + 1:02}-15,{mood},{kind},{' '.join(own)}")
        rows += [f"2020-{month + 1:02}-16,late,new,nobody knows" for _ in range(3 * (month > 8))]
    path.write_text("\n".join(rows) + "\n")


SMALL = """
extends = "temporal"
name = "mine"
[classifiers.base]
kind = "logistic"
[[methods]]
quantifier = "CC"
classifier = "base"
balanced = true
[[methods]]
name = "MLLS-BCTS"
quantifier = "MLLS"
classifier = "base"
balanced = true
intervals = true
parameters = { calibrator = "bcts" }
[[methods]]
quantifier = "PACC"
classifier = "base"
groups = true
parameters = { cv = 3 }
[[methods]]
quantifier = "IWDAN"
needs = "nosuchpackage"
[[datasets]]
name = "moods"
path = "texts.csv"
text = "words"
label = "mood"
min_df = 1
[datasets.temporal]
date = "when"
part = "kind"
train = ["", "2020-06"]
test = ["2020-07", ""]
minimum = 30
"""
FILES = ["results.parquet", "shift.parquet", "provenance.json"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A small study over time that ran through, in its folder."""
    home = tmp_path_factory.mktemp("temporal")
    corpus(home / "texts.csv")
    (home / "mine.toml").write_text(SMALL)
    run(load(home / "mine.toml"), home / "out", n_jobs=1)
    return home


def contents(folder):
    return [(folder / name).read_bytes() for name in FILES]


def test_results_are_those_by_hand(done):
    results = run(load(done / "mine.toml"), done / "out", n_jobs=1)
    data = load(done / "mine.toml").datasets[0]
    assert data.story["rare"] == [["late", 9]]
    labelled, pool, bags = data.test_data(None, 0)
    assert len(bags) == 6
    assert bags.sizes.tolist() == [60] * 6
    from sklearn.linear_model import LogisticRegression

    mlls = MLLS(LogisticRegression(max_iter=1000), calibrator="bcts").fit(*labelled)
    frame = results.by("rae", "moods")
    mine = frame.rows(frame["method"] == "MLLS-BCTS")
    estimates = np.column_stack([mine[f"estimate:{c}"] for c in data.classes])
    np.testing.assert_allclose(estimates, mlls.predict_bags(pool, bags), atol=1e-9)
    interval = mlls.predict_interval(pool, bags)
    np.testing.assert_allclose(mine["low:bad"], interval.low[:, 0], atol=1e-9)
    grouped = PACC(LogisticRegression(max_iter=1000), cv=3).fit(*labelled, groups=data.groups)
    pacc = frame.rows(frame["method"] == "PACC")
    found = np.column_stack([pacc[f"estimate:{c}"] for c in data.classes])
    np.testing.assert_allclose(found, grouped.predict_bags(pool, bags), atol=1e-9)
    assert np.isnan(pacc["low:bad"]).all()
    assert set(pacc["flags"].tolist()) == {""}


def test_shift_in_the_table_is_the_measured_one(done):
    results = run(load(done / "mine.toml"), done / "out", n_jobs=1)
    data = load(done / "mine.toml").datasets[0]
    _, pool, bags = data.test_data(None, 0)
    expected = [shift.mmd(data.train.X, pool[rows]) for rows in bags]
    np.testing.assert_allclose(results.shift["mmd"], expected, atol=1e-9)
    kld = shift.label_shift(bags.prevalence, data.prevalence)
    np.testing.assert_allclose(results.shift["kld"], kld)


def test_a_lost_unit_is_done_again_to_the_same_bytes(done):
    before = contents(done / "out")
    units = sorted((done / "out" / "units").iterdir())
    for path in units[::2]:
        path.unlink()
    run(load(done / "mine.toml"), done / "out", n_jobs=1)
    assert contents(done / "out") == before


def test_another_encoder_measures_shift_anew(done):
    text = SMALL.replace("minimum = 30", 'minimum = 30\nencoder = "learnt"')
    (done / "encoder.toml").write_text(text)
    same, other = (load(done / name).datasets[0] for name in ("mine.toml", "encoder.toml"))
    assert same.fingerprint() != other.fingerprint()
    assert other.shift_samples()[0].shape[1] != same.shift_samples()[0].shape[1]


def test_the_page_has_every_table_and_figure(done):
    assert CliRunner().invoke(app, ["study", "report", str(done / "out")]).exit_code == 0
    page = (done / "out" / "report.html").read_text()
    for words in (
        "Table 1",
        "Table 2",
        "Table 3",
        "CARC",
        *(f"Figure {i}" for i in range(2, 7)),
        "Best average rank",
        "IWDAN is left out: it needs nosuchpackage.",
        "9 of the class &#x27;late&#x27;",
        "of the true shares lie inside the 95 % intervals of MLLS-BCTS",
    ):
        assert words in page, words
    assert page.count("<svg") == 11  # strip, 2 to 6, two of ranks, and a series for each class
    assert "MLLS-BCTS, balanced" not in page.split("Table 3")[0].split("Table 2")[1]


def test_methods_that_failed_are_told_and_left_out(done):
    results = Results.read(done / "out")
    frame = results.frame.to_dict()
    failed = frame["failure"].astype(object)
    failed[frame["method"] == "CC, balanced"] = "no luck"
    some = replace(results, frame=Frame({**frame, "failure": failed}))
    assert main_methods(some) == ["CC", "MLLS-BCTS", "PACC"]
    assert "MLLS-BCTS" in balanced_table(some) and "CC<" not in balanced_table(some)
    none = replace(results, frame=Frame({**frame, "failure": np.full(len(failed), "no luck")}))
    page = "".join(temporal_body(none))
    assert "PACC on moods (seed 0): no luck" in page and "No method could be run" in page


def test_published_numbers_stand_beside_ours_where_the_data_are_the_papers(done):
    results = Results.read(done / "out")
    assert "(11.02)" not in errors_table(results, ["CC", "MLLS-BCTS"])
    results.provenance["datasets"]["moods"]["temporal"]["published"] = "office5"
    assert list(other_counts(results)) == ["moods"]
    counts = data_table(results)
    assert "360 (316,302)" in counts and "360 (476,785)" in counts
    errors = errors_table(results, ["CC", "MLLS-BCTS"])
    assert "(11.02)" in errors and "(0.733)" in errors
    balanced = balanced_table(results)
    assert "14.71" in balanced and "+25.0%" in balanced


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('date = "when"', "", "date is missing in temporal"),
        ('date = "when"', 'date = "wen"', "unknown column of texts.csv 'wen'"),
        ('train = ["", "2020-06"]', "", "train is missing in temporal"),
        ("minimum = 30", "minimun = 30", "unknown key 'minimun'. Did you mean 'minimum'?"),
        ("minimum = 30", "minimum = 3000", "no period of the test window"),
        ("minimum = 30", 'every = "week"', "unknown every 'week'"),
        ('train = ["", "2020-06"]', "train = [2020-07-01, 2020-06-30]", "ends before it begins"),
        ("minimum = 30", 'duplicates = "no"', "unknown duplicates 'no'"),
        ("minimum = 30", "minimum = 30\nmin_class = 900", "fewer than two classes have 900 items"),
        (
            '[[datasets]]\nname = "moods"',
            '[[datasets]]\nname = "m"\nsklearn = "wine"',
            "exactly one",
        ),
        ('kind = "logistic"', 'kind = "gaussian-nb"', "balanced training needs"),
        ('kind = "logistic"', 'kind = "logistic"\ngrid.C = [1.0, 2.0]', "no development window"),
        ('name = "mine"', 'name = "mine"\nprotocol.kind = "uniform"', "use kind = 'periods'"),
    ],
)
def test_faults(done, tmp_path, old, new, words):
    assert old in SMALL
    (tmp_path / "texts.csv").write_bytes((done / "texts.csv").read_bytes())
    (tmp_path / "bad.toml").write_text(SMALL.replace(old, new))
    with pytest.raises(InputError) as caught:
        load(tmp_path / "bad.toml")
    assert words in str(caught.value)


def test_groups_need_a_method_and_data_that_have_them(done):
    data = load(done / "mine.toml").datasets[0]
    with pytest.raises(InputError, match="HDx is not fitted with groups"):
        Study("x", [data], [Method("HDx", HDx(), groups=True)], Periods())
    plain = Dataset("plain", data.train, data.test)
    with pytest.raises(InputError, match="'plain' has no periods for groups"):
        Study("x", [plain], [Method("PACC", PACC(), groups=True)])


def test_settings_are_selected_on_the_development_window(done, tmp_path):
    (tmp_path / "texts.csv").write_bytes((done / "texts.csv").read_bytes())
    text = SMALL.replace('kind = "logistic"', 'kind = "logistic"\ngrid.C = [0.01, 1.0]')
    text = text.replace(
        'test = ["2020-07', 'development = ["2020-07", "2020-08"]\ntest = ["2020-09'
    )
    text = text.replace("groups = true\n", "").replace("intervals = true\n", "")
    (tmp_path / "dev.toml").write_text(text)
    study = load(tmp_path / "dev.toml")
    results = run(study, tmp_path / "out", n_jobs=1)
    train, _, bags = study.datasets[0].selection_data(None, 0)
    assert (len(train.y), len(bags)) == (360, 2)
    assert len(study.datasets[0].labelled.y) == 480
    assert results.selection is not None
    assert "MLLS-BCTS" in errors_table(results, main_methods(results))


def test_classifiers_that_read_texts_are_given_texts(done, tmp_path):
    (tmp_path / "texts.csv").write_bytes((done / "texts.csv").read_bytes())
    text = SMALL.replace("min_df = 1", 'min_df = 1\nvectorizer = "texts"')
    text = text.replace('kind = "logistic"', 'kind = "headcount.text.bm25.BM25Classifier"')
    text = text.replace("balanced = true\n", "").replace("intervals = true\n", "")
    (tmp_path / "texts.toml").write_text(text)
    study = load(tmp_path / "texts.toml")
    results = run(study, tmp_path / "out", n_jobs=1)
    assert isinstance(study.datasets[0].train.X[0], str)
    assert not results.failures()
    same = Results.read(done / "out")
    np.testing.assert_allclose(results.shift["mmd"], same.shift["mmd"])  # tf-idf, as there


def test_balanced_training_is_a_parameter_of_the_classifier(tmp_path):
    from headcount.study import build
    from headcount.study.config import ClassifierSpec, MethodSpec

    kinds = {
        "lr": ClassifierSpec(kind="logistic"),
        "net": ClassifierSpec(kind="fine-tuned", parameters={"learning_rate": 2e-5}),
    }
    for name, parameter, value in (("lr", "class_weight", "balanced"), ("net", "balanced", True)):
        plain, twin = build.methods(
            MethodSpec(quantifier="PACC", classifier=name, balanced=True), kinds
        )
        assert (plain.balances, twin.balances, twin.name) == ("", "PACC", "PACC, balanced")
        assert getattr(twin.quantifier.classifier, parameter) == value
        assert getattr(plain.quantifier.classifier, parameter) in (None, False)


def test_a_method_is_told_each_measure_and_judged_by_it(done, tmp_path):
    (tmp_path / "texts.csv").write_bytes((done / "texts.csv").read_bytes())
    method = (
        '[[methods]]\nquantifier = "BayesQuantifier"\nclassifier = "base"\nby_measure = true\n'
        "balanced = true\nparameters = { n_worlds = 2, n_draws = 40 }\n"
        '[[methods]]\nquantifier = "PCC"\nclassifier = "base"\n'
    )
    head, rest = SMALL.split("[[methods]]", 1)
    text = head + method + rest[rest.index("[[datasets]]") :]
    text = text.replace('name = "mine"', 'name = "mine"\nmeasures = ["rae", "ae", "nae"]')
    (tmp_path / "told.toml").write_text(text)
    study = load(tmp_path / "told.toml")
    told = [(m.name, m.quantifier.measure, list(m.only)) for m in study.methods[:3]]
    # What it cannot aim at leaves it as it is.
    assert told == [
        ("BayesQuantifier", m, [o])
        for m, o in zip(("rae", "ae", "ae"), ("rae", "ae", "nae"), strict=True)
    ]
    assert [m.balances for m in study.methods[3:6]] == ["BayesQuantifier"] * 3
    results = run(study, tmp_path / "out", n_jobs=1)
    assert not results.failures()
    assert main_methods(results) == ["BayesQuantifier", "PCC"]
    for name in ("rae", "ae"):
        frame = results.by(name)
        mine = frame.rows(frame["method"] == "BayesQuantifier")
        assert set(mine["selected_by"].tolist()) == {name}
        assert mine.n_rows == 6
        expected = f"{100 * mine[name].mean():.2f}"
        part = errors_table(results, main_methods(results)).split(f"<h4>{name.upper()}, %")[1]
        assert expected in part.split("<h4>")[0]
    (tmp_path / "bad.toml").write_text(text.replace('"PCC"', '"PCC"\nby_measure = true'))
    with pytest.raises(InputError, match="PCC has no parameter measure to be told"):
        load(tmp_path / "bad.toml")


def test_scores_of_a_file_take_the_place_of_a_classifier(rng, tmp_path):
    rows = ["when,label,p,q"]
    for month in range(1, 9):
        for y in (rng.random(80) < month / 10).astype(int):
            p = np.clip(0.5 + 0.3 * (2 * y - 1) + rng.normal(0, 0.15), 0.01, 0.99)
            rows.append(f"2021-{month:02}-01,{'yes' if y else 'no'},{p:.6f},{1 - p:.6f}")
    (tmp_path / "scores.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "scores.toml").write_text(
        'extends = "temporal"\nname = "scores"\n[classifiers.base]\nkind = "given"\n'
        '[[methods]]\nquantifier = "PCC"\nclassifier = "base"\n'
        '[[datasets]]\nname = "s"\npath = "scores.csv"\nlabel = "label"\n[datasets.temporal]\n'
        'date = "when"\ntrain = ["", "2021-04"]\ntest = ["2021-05", ""]\nminimum = 10\n'
        'scores = { yes = "p", no = "q" }\n'
    )
    results = run(load(tmp_path / "scores.toml"), tmp_path / "out", n_jobs=1)
    given = [float(r.split(",")[2]) for r in rows[1:] if r.startswith("2021-05")]
    assert results.frame["estimate:yes"][0] == pytest.approx(np.mean(given), abs=1e-6)


def test_ugly_rows_of_a_table_are_counted(tmp_path):
    (tmp_path / "t.csv").write_text(
        "when,label,text,use\n2020-01-01,a,x,1\n2020-01-01,a,x,1\n,a,y,1\n2020-02-30,a,y,1\n"
        "2020-01-02,,z,1\n2020-01-03,b,  ,1\n2020-01-04,b,w,0\n2020-01-05,b,v,1\n"
    )
    options = {"label": "label", "date": "when", "text": "text", "where": {"use": 1}}
    kept = read_timed_table(tmp_path / "t.csv", **options)
    assert len(kept) == 3
    assert kept.counts == {
        "rows read": 8,
        "not of the wanted kind": 1,
        "without a date that can be read": 2,
        "without a class": 1,
        "without a text": 1,
        "equal to an earlier row": 1,
    }
    once = read_timed_table(tmp_path / "t.csv", **options, duplicates="drop")
    assert once.texts(np.arange(2)).tolist() == ["x", "v"]
    with pytest.raises(InputError, match=r"no row of 't.csv' can be used"):
        read_timed_table(tmp_path / "t.csv", **{**options, "where": {"use": 7}})


def test_large_data_are_drawn_from_and_it_is_told(done):
    items = read_timed_table(done / "texts.csv", label="mood", date="when", text="words")
    windows = Windows(["", "2020-06"], ["", ""], minimum=30)
    few = Preparation(min_df=1, min_class=2, most_train=100, most_test=40)
    data = cut_by_time("m", items, windows, few)
    assert (len(data.train.y), len(data.test.y)) == (100, 240)
    assert data.story["drawn"]["train"] == [100, 360]
    again = cut_by_time("m", items, windows, few)
    assert data.fingerprint() == again.fingerprint()


def test_classes_that_are_rare_among_the_drawn_items_are_left_out(done):
    items = read_timed_table(done / "texts.csv", label="mood", date="when", text="words")
    windows = Windows(["", "2020-06"], ["", ""], minimum=30)
    data = cut_by_time("m", items, windows, Preparation(min_df=1, most_train=60))
    assert data.classes.tolist() == ["bad", "good"]
    assert [name for name, _ in data.story["rare"]] == ["late", "meh"]
    assert min(np.unique(data.train.y, return_counts=True)[1]) >= 20


def test_every_item_that_was_read_is_accounted_for(done):
    """Classes that are too rare have items in the windows and outside of them."""
    items = read_timed_table(done / "texts.csv", label="mood", date="when", text="words")
    windows = Windows(["2020-03", "2020-06"], ["", "2020-10"], gap=1, minimum=50)
    story = cut_by_time("m", items, windows, Preparation(min_df=1)).story
    assert story["rare"] == [["late", 3]]
    assert story["outside"] == [["outside of the windows", 246], ["in the gap of 1", 60]]
    used = int(np.sum(story["counts"]))
    assert used + 3 + sum(n for _, n in story["outside"]) == len(items)


def test_the_automatic_quantifier_is_given_past_periods(tmp_path):
    """With a class that is too new to leave whole months out, and with too few months."""
    corpus(tmp_path / "texts.csv")
    late = "".join(
        f"2020-{m:02}-20,new,new,fresh start {m} {i}\n" for m in (5, 6, 8) for i in range(25)
    )
    with (tmp_path / "texts.csv").open("a") as file:
        file.write(late)
    method = (
        '[[methods]]\nquantifier = "AutoQuantifier"\nclassifier = "base"\ngroups = true\n'
        "parameters = { periods = true, budget = 0 }\n"
    )
    head, rest = SMALL.split("[[methods]]", 1)
    text = head + method + rest[rest.index("[[datasets]]") :]
    second = text[text.index("[[datasets]]") :].replace('"moods"', '"few"')
    second = second.replace('train = ["",', 'train = ["2020-05",')
    (tmp_path / "auto.toml").write_text(text + second)
    study = load(tmp_path / "auto.toml")
    assert [data.groups is None for data in study.datasets] == [False, True]
    results = run(study, tmp_path / "out", n_jobs=1)
    assert not results.failures()
    assert results.by("ae")["ae"].mean() < 0.15


def test_the_example_is_whole():
    """Every method of the paper is there under its name, and every quantifier exists."""
    import tomllib

    from headcount.study import example

    values = tomllib.loads(example("temporal"))
    names = [m.get("name", m["quantifier"]) for m in values["methods"]]
    assert {"CC", "PCC", "BBSE", "RLLS", "MLLS", "MLLS-BCTS", "IWDAN"} < set(names)
    known = {*quantifier_classes(), "IWDAN"}
    assert {m["quantifier"] for m in values["methods"]} < known
    assert [d["name"] for d in values["datasets"]] == published("temporal").columns[2:-1]
