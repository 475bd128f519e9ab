"""Answers of tables that can be trusted: alarms, small groups, odd labelled rows."""

import sys

import numpy as np
import pytest
from headcount.inference.diagnostics import LEVEL, edges_between

from headcount import PACC, SLD
from headcount.data.groups import Grouping
from headcount.tables import Inputs, Model
from headcount.tables.accumulator import Accumulator
from headcount.tables.estimation import estimate_groups
from headcount.tables.result import GroupRows
from headcount.tables.store import Store
from tests.tables.test_tables import run, write


def judged(y, k, rng, top):
    """A judge's whole numbers from 1 to `top` for each class."""
    clear = 1.2 * rng.normal(size=(len(y), k)) + 1.8 * np.eye(k)[y]
    p = np.exp(clear) / np.exp(clear).sum(axis=1, keepdims=True)
    x = np.round(1 + (top - 1) * p)
    return np.column_stack([1 - x[:, 1], x[:, 1]]) if k == 2 else x


def estimated(quantifier, groups):
    """Estimates of groups of scores."""
    columns = tuple(f"s{c}" for c in range(groups[0].shape[1]))
    model = Model(quantifier, Inputs("scores", columns), "label")
    accumulator = Accumulator(model.layout)
    for g, group in enumerate(groups):
        accumulator.add(*model.score(group), np.full(len(group), g))
    scores = accumulator.finish()
    names = [str(g) for g in range(len(groups))]
    return estimate_groups(
        model, GroupRows(names, Grouping(), scores.rows, scores.effective, scores)
    )


@pytest.mark.parametrize(("k", "top"), [(2, 5), (2, 100), (4, 5)])
def test_tied_scores_raise_no_false_alarm(k, top):
    alarms = []
    for seed in range(6):
        rng = np.random.default_rng([seed, k, top])
        y = rng.integers(k, size=500)
        q = PACC(calibrator="platt").fit_scores(judged(y, k, rng, top), y)
        groups = []
        for _ in range(8):
            labels = rng.choice(k, 300, p=rng.dirichlet(np.ones(k)))
            groups.append(judged(labels, k, rng, top))
        alarms.append(estimated(q, groups).diagnosis.fit < LEVEL)
    assert np.mean(alarms) <= 0.11  # of 48 groups; 0.05 is expected


def test_cells_lie_between_values():
    values = np.repeat([1.0, 2.0, 3.0, 4.0], [500, 3, 2, 495])
    assert edges_between(values, 4).tolist() == [1.5, 3.5]
    even = np.arange(100.0)
    assert edges_between(even, 4).tolist() == [24.5, 49.5, 74.5]


def test_large_decision_values_keep_their_order():
    """Scores of 0 to 100 in groups that are summed up give the same as all of them at once."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=800)
    q = SLD(calibrator="platt").fit_scores(judged(y, 2, rng, 100), y)
    heap = judged((rng.random(30_000) < 0.3).astype(int), 2, rng, 100)
    found = estimated(q, [heap]).interval
    np.testing.assert_allclose(found.prevalence[0], q.predict_scores(heap), atol=1e-3)


def test_records_come_back_by_group_whether_in_memory_or_not():
    kind = np.dtype([("group", np.int32), ("value", np.float64)])
    rng = np.random.default_rng(0)
    records = np.empty(1000, dtype=kind)
    records["group"], records["value"] = rng.integers(90, size=1000), rng.random(1000)
    for memory in (1 << 20, 200):
        store = Store(kind, memory)
        for part in np.array_split(records, 13):
            store.add(part)
        parts = list(store.parts())
        owners = [set(part["group"].tolist()) for part in parts]
        assert sum(map(len, owners)) == len(set().union(*owners)) == 90
        back = np.sort(np.concatenate(parts), order=["group", "value"])
        assert (back == np.sort(records, order=["group", "value"])).all()


def table(folder, name, **columns):
    write(folder / name, **columns)
    return str(folder / name)


def moods(n, rng, clear=4.0):
    y = np.where(rng.random(n) < 0.4, "yes", "no")
    return y, 1 / (1 + np.exp(-clear * (np.where(y == "yes", 0.5, -0.5) + rng.normal(0, 0.4, n))))


@pytest.mark.parametrize(("column", "is_of"), [("judge", "no"), ("p_no", "no"), ("p_yes", "no")])
def test_the_labels_tell_whose_score_a_single_column_is(tmp_path, column, is_of):
    rng = np.random.default_rng(0)
    y, p = moods(600, rng)
    heap_y, heap_p = moods(500, rng)
    train = table(tmp_path, "train.csv", **{column: 1 - p, "label": y})
    heap = table(tmp_path, "heap.csv", **{column: 1 - heap_p, "label": heap_y})
    said = run("fit", train, "--scores", column, "--label", "label", "--method", "PACC",
               "-o", tmp_path / "m.hc")  # fmt: skip
    assert f"taken as the score of '{is_of}'" in said
    assert ("named after the other class" in said) == (column == "p_yes")
    found = Model.load(tmp_path / "m.hc").estimate(heap, truth="label")
    np.testing.assert_allclose(found.interval.prevalence, found.truth, atol=0.05)


def test_a_useless_model_is_not_written_unless_asked_for(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.choice(["yes", "no"], 400)
    noise = table(tmp_path, "noise.csv", p=rng.random(400), label=y)
    args = ["fit", noise, "--scores", "p", "--label", "label", "--method", "PACC"]
    said = run(*args, "-o", tmp_path / "m.hc", code=2)
    assert "hardly tell the classes apart" in said
    assert "--force" in said
    assert not (tmp_path / "m.hc").exists()
    run(*args, "-o", tmp_path / "m.hc", "--force")
    assert (tmp_path / "m.hc").exists()
    same = table(tmp_path, "same.csv", t=["the same text"] * 60, label=["a", "b"] * 30)
    more = ["--text", "t", "--label", "label", "--method", "SLD", "-o", tmp_path / "s.hc"]
    assert "all 60 texts are the same" in run("fit", same, *more, code=2)


def test_copies_count_once_and_labels_of_nothing_not_at_all(tmp_path):
    rng = np.random.default_rng(0)
    texts = [f"{rng.choice(['good', 'fine'])} w{i}" for i in range(50)]
    texts += [f"{rng.choice(['bad', 'poor'])} w{i}" for i in range(50)]
    labels = ["pos"] * 50 + ["neg"] * 50
    many = table(tmp_path, "many.csv", t=texts * 12 + ["odd"] * 3, label=labels * 12 + ["NaN"] * 3)
    said = run("fit", many, "--text", "t", "--label", "label", "--method", "SLD",
               "-o", tmp_path / "m.hc")  # fmt: skip
    assert "1,100 of 1,200 labelled rows are copies" in said
    assert "'NaN' in 'label' is taken as no label" in said
    assert "Learnt from 100 labelled rows" in said
    assert "given twice" in run(
        "fit", many, many, "--text", "t", "--label", "label", "-o", tmp_path / "m.hc", code=2
    )
    assert "given twice" in run("estimate", tmp_path / "m.hc", many, tmp_path / "ma*.csv", code=2)


def test_rare_classes_are_named_at_once_and_joined_or_dropped(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c", "d", "e"], [200, 200, 4, 3, 3])
    x = (labels == "a") + 0.5 * (labels > "b") + rng.normal(0, 0.2, len(labels))
    path = table(tmp_path, "t.csv", x=x, label=labels)
    args = ["fit", path, "--features", "x", "--label", "label", "--method", "PACC",
            "-o", tmp_path / "m.hc"]  # fmt: skip
    said = run(*args, code=2)
    assert "'c' (4), 'd' (3), 'e' (3)" in said
    assert "--min-rows" in said
    assert "joined into 'other' (10 rows)" in run(*args, "--min-rows", "8")
    found = Model.load(tmp_path / "m.hc").estimate(path)
    assert found.interval.classes.tolist() == ["a", "b", "other"]
    assert any("'c', 'd', 'e'" in str(note) for note in found.notes)
    assert "left out (10 rows)" in run(*args, "--min-rows", "8", "--rare", "drop")
    assert Model.load(tmp_path / "m.hc").quantifier.classes_.tolist() == ["a", "b"]


def test_outputs_are_checked_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    for bad in (tmp_path / "file" / "m.hc", tmp_path / "folder.hc"):
        (tmp_path / "folder.hc").mkdir(exist_ok=True)
        said = run("fit", tmp_path / "file", "--text", "t", "--label", "y", "-o", bad, code=2)
        assert "cannot be written" in said or "is a folder" in said


def test_intervals_of_small_groups_hold():
    """Three rows: the share is 0, 1/3, 2/3 or 1, and 95 % of the answers hold it."""
    rng = np.random.default_rng(0)
    inside = []
    y, p = moods(800, rng, clear=2.0)
    q = SLD(calibrator="bcts").fit_scores(np.column_stack([1 - p, p]), y)
    truth, groups = [], []
    for _ in range(300):
        labels = rng.random(3) < rng.random()
        x = 1 / (1 + np.exp(-2 * (np.where(labels, 0.5, -0.5) + rng.normal(0, 0.4, 3))))
        groups.append(np.column_stack([1 - x, x]))
        truth.append(labels.mean())
    found = estimated(q, groups).interval
    inside = (np.array(truth) >= found.low[:, 1] - 1e-6) & (truth <= found.high[:, 1] + 1e-6)
    assert 0.92 <= inside.mean() <= 0.995
    assert (found.high - found.low).mean() < 0.97


def test_intervals_that_hold_too_rarely_are_widened():
    """A method whose intervals are made too narrow is found out, and they are widened."""
    from headcount.inference.check import check_intervals

    from headcount.inference.intervals import Interval

    class Narrow(PACC):
        def bound(self, views, sizes, request):
            found = super().bound(views, sizes, request)
            return Interval.widened(found, np.full(len(sizes), 0.5))

    def shares(n, rng):
        return rng.dirichlet(np.ones(2), size=n)

    rng = np.random.default_rng(0)
    y, p = moods(600, rng)
    scores = np.column_stack([1 - p, p])
    good = check_intervals(PACC().fit_scores(scores, y), shares)
    assert good.plain > 0.9
    assert max(good.factors) < 1.3
    bad = check_intervals(Narrow().fit_scores(scores, y), shares)
    assert bad.plain < 0.8
    assert min(bad.factors) > 1.4
    assert bad.coverage > 0.88


def test_flags_have_a_size_and_share_a_line():
    rng = np.random.default_rng(0)
    y, p = moods(800, rng)
    q = PACC().fit_scores(np.column_stack([1 - p, p]), y)
    groups = []
    for moved in (0.0, 0.05, 0.3, 0.3):
        _, x = moods(300, rng)
        x = np.clip(x + moved * (rng.random(300) < 0.5) * (0.5 - x) * 2, 0, 1)
        groups.append(np.column_stack([1 - x, x]))
    seen = estimated(q, groups).diagnosis
    off = seen.off.max(axis=1)
    assert off[0] == 0
    assert off[2] > 0.01
    assert list(seen.summaries()) in (["misfit"], ["misfit", "strange"])
    text, bags = seen.summaries()["misfit"]
    assert {2, 3} <= set(bags.tolist())
    assert "points beyond what chance does" in text


def test_weak_names_the_classes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 200)
    z = rng.normal(size=(600, 3)) + 3 * np.eye(3)[np.minimum(y, 1)]
    scores = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    found = PACC().fit_scores(scores, np.array(["ape", "bee", "cat"])[y]).diagnose(scores)
    assert found.flags(0) == ["weak"]
    assert "hardly tells bee and cat apart" in found.messages(0)[0]


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


def test_weights_are_repetitions_that_make_nothing_surer(tmp_path):
    rng = np.random.default_rng(0)
    y, p = moods(600, rng)
    train = table(tmp_path, "t.csv", p=p, label=y)
    run("fit", train, "--scores", "p", "--label", "label", "--method", "PACC",
        "-o", tmp_path / "m.hc")  # fmt: skip
    y, p = moods(300, rng)
    times = np.where(y == "yes", 4, 1)
    weighted = table(tmp_path, "w.csv", p=p, w=times, label=y)
    repeated = table(tmp_path, "r.csv", p=np.repeat(p, times), label=np.repeat(y, times))
    model = Model.load(tmp_path / "m.hc")
    ours = model.estimate(weighted, weight="w", truth="label")
    theirs = model.estimate(repeated, truth="label")
    np.testing.assert_allclose(ours.interval.prevalence, theirs.interval.prevalence, atol=1e-3)
    np.testing.assert_allclose(ours.truth, theirs.truth)
    wide, narrow = (f.interval.high - f.interval.low for f in (ours, theirs))
    assert (wide > 1.2 * narrow).all()
    bad = table(tmp_path, "b.csv", p=p, w=-times)
    assert "cannot be negative" in run("estimate", tmp_path / "m.hc", bad, "--weight", "w", code=2)


def test_the_check_of_intervals_lives_on_its_part_of_the_budget(monkeypatch):
    from headcount import tables
    from headcount._core.frame import Frame
    from headcount.selection.auto import AutoQuantifier

    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    scores = 1 / (1 + np.exp(-(rng.normal(size=300) + 2 * y - 1)))
    spent = {}
    module = sys.modules["headcount.tables.estimation"]
    checked, fitted = module.check_coverage, AutoQuantifier.fit_scores

    def check(*parts, **settings):
        spent["check"] = settings["seconds"]
        return checked(*parts, **settings)

    def choose(auto, *parts):
        spent["choice"] = auto.budget
        return fitted(auto, *parts)

    monkeypatch.setattr(module, "check_coverage", check)
    monkeypatch.setattr(AutoQuantifier, "fit_scores", choose)
    table = Frame({"p": scores, "label": y}).to_arrow()
    tables.fit(table, scores="p", label="label", budget=5)
    assert sum(spent.values()) == pytest.approx(5)
    tables.fit(table, scores="p", label="label", method="SLD", budget=5)
    assert spent["check"] == 25  # a named method is quickly fitted
