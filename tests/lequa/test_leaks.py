"""A lab gives nothing away: attacks on what participants get, written as a participant would."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from headcount import Bags, InputError, UniformPrevalence
from headcount.cli.app import app
from headcount.lequa import build_lab, make_corpus, open_task, read_run
from headcount.lequa.build import SENTIMENT, Recipe
from headcount.lequa.draw import derive_seed, draw_counts, draw_samples, drop_unused
from headcount.lequa.duplicates import find_repeats, repeated_inside
from headcount.lequa.reuse import Scored, attack
from headcount.lequa.solve import measure_leak

RECIPE = Recipe(
    label="stars", labels=SENTIMENT, n_train=400, n_dev=30, n_test=20, size=40, dimensions=30
)


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(12_000, random_state=0)


@pytest.fixture(scope="module")
def lab(corpus, tmp_path_factory):
    """What build makes by default, each item in one sample so that so small a corpus is enough."""
    home = tmp_path_factory.mktemp("lab")
    build_lab(corpus, home, replace(RECIPE, max_reuse=1))
    return home


def participants_files(home):
    return [p for p in sorted(home.rglob("*")) if p.is_file() and "gold" not in p.parts]


def test_no_seed_gives_the_gold(lab):
    """Draw with every seed a participant might try, and with those found in their files."""
    gold = read_run(lab / "gold" / "T1A" / "test_prevalences.txt")
    kept = json.loads((lab / "gold" / "drawn_A.json").read_text())
    tried = set(range(1000))
    for path in participants_files(lab):
        data = path.read_bytes()
        assert str(kept["secret"]).encode() not in data, path
        assert str(kept["seed"]).encode() not in data, path
    for seed in tried:
        for guess in (
            UniformPrevalence(n_bags=20, size=40).prevalences(2, seed, np.ones(2) / 2),
            draw_counts(20, 40, 2, seed) / 40,
            draw_counts(20, 40, 2, derive_seed(seed, "test")) / 40,
        ):
            assert np.abs(guess - gold).mean() > 0.05
    # The organiser, who has the secret, draws the same.
    again = draw_counts(20, 40, 2, derive_seed(kept["secret"], "test")) / 40
    np.testing.assert_array_equal(again, gold)


def test_nothing_but_the_test_samples_depends_on_the_secret(corpus, tmp_path):
    recipe = replace(RECIPE, seed=3, secret=4, leak_limit=1.0)
    build_lab(corpus, tmp_path / "a", recipe)
    build_lab(corpus, tmp_path / "b", replace(recipe, secret=5))
    build_lab(corpus, tmp_path / "c", replace(recipe, seed=6))
    differ = []
    for path in participants_files(tmp_path / "a"):
        other = tmp_path / "b" / path.relative_to(tmp_path / "a")
        if path.read_bytes() != other.read_bytes():
            differ.append(path.name)
    assert differ
    assert all(name.startswith("test.") for name in differ), differ
    # Nor do the test prevalences depend on the seed of the rest.
    name = "gold/T1A/test_prevalences.txt"
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "c" / name).read_bytes()
    assert (tmp_path / "a" / name).read_bytes() != (tmp_path / "b" / name).read_bytes()
    dev = "T1A/dev_prevalences.txt"
    assert (tmp_path / "a" / dev).read_bytes() != (tmp_path / "c" / dev).read_bytes()


def test_two_builds_differ_by_default(corpus, lab, tmp_path):
    build_lab(corpus, tmp_path, replace(RECIPE, max_reuse=1, forms=("vector",)))
    for name in ("gold/T1A/test_prevalences.txt", "T1A/dev_prevalences.txt"):
        assert (tmp_path / name).read_bytes() != (lab / name).read_bytes()


def test_neither_position_nor_twin_tells_the_class(lab, corpus):
    stars = dict(zip(corpus["text"].tolist(), corpus["stars"].tolist(), strict=True))
    task = open_task(lab / "T2A")
    for texts in (task.train.X, task.dev.X, task.test.X):
        good = np.array([stars[t] >= 4 for t in texts])
        place = np.arange(len(good)) / len(good)
        assert abs(place[good].mean() - place[~good].mean()) < 4 * np.sqrt(1 / 12 / (~good).sum())
    for items in task.test.bags:
        assert (np.diff(items) > 0).all()  # the order of the pool, which is that of a hash
    # Rows of the vector form do not stand where the texts do.
    vectors = open_task(lab / "T1A")
    own = np.corrcoef(vectors.train.y, task.train.y)[0, 1]
    assert abs(own) < 0.3


def by_membership(task):
    """The attack, written as a participant would: loops over what is in the task's folder."""
    y = task.train.y
    model = LogisticRegression(C=0.1, max_iter=1000).fit(np.asarray(task.train.X), y)
    scores = np.log(model.predict_proba(np.asarray(task.test.X)) / np.bincount(y) * len(y))
    bags = list(task.test.bags)
    inside = [[] for _ in range(len(scores))]
    for s, items in enumerate(bags):
        for i in items:
            inside[i].append(s)
    posterior = softmax(scores, axis=1)
    for _ in range(30):
        shares = np.array([posterior[items].mean(axis=0) for items in bags])
        pool = posterior.mean(axis=0)
        chance = np.clip(task.size * shares / (len(scores) * pool), 1e-9, 0.999)
        never = np.log(1 - chance).sum(axis=0)
        odds = np.log(chance / (1 - chance))
        evidence = np.array([odds[s].sum(axis=0) for s in inside]) + never
        posterior = softmax(scores + np.log(pool) + evidence, axis=1)
    return shares


def test_the_attack_fails_on_what_build_makes(lab):
    task = open_task(lab / "T1A")
    truth = task.truth("test")
    honest = measure_leak(task)
    assert honest.share <= 0.1
    assert np.abs(by_membership(task) - truth).mean() > 0.8 * honest.honest


def test_the_attack_works_on_a_corpus_too_small_and_is_reported(corpus, tmp_path):
    many = replace(RECIPE, n_test=200, size=80, forms=("vector",), seed=0, secret=0)
    with pytest.raises(InputError) as caught:
        build_lab(corpus, tmp_path, many)
    said = str(caught.value)
    for words in ("of the error is given away, more than 10%", "max_reuse=1", "draw at most"):
        assert words in said, said
    assert "texts is needed after the filters" in said
    assert not list(tmp_path.iterdir())
    build_lab(corpus, tmp_path, replace(many, leak_limit=1.0))
    task = open_task(tmp_path / "T1A")
    truth = task.truth("test")
    leak = measure_leak(task)
    assert leak.share > 0.5
    theirs = np.abs(by_membership(task) - truth).mean()
    assert theirs < 0.6 * leak.honest
    kept = json.loads((tmp_path / "gold" / "drawn_A.json").read_text())
    assert kept["reuse"]["attack"] == pytest.approx(leak.attack, abs=1e-6)
    done = CliRunner().invoke(app, ["lequa", "leak", str(tmp_path / "T1A")])
    assert done.exit_code == 1
    assert "is given away" in done.output


def test_sharing_is_measured_also_where_another_method_is_better():
    """The attack must not hide behind a baseline that its scores cannot reach."""
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=400)
    bags, used = drop_unused(
        draw_samples(codes, ["a", "b"], n_bags=60, size=40, entropy=5, max_reuse=None)
    )
    logits = np.outer(2 * codes[used] - 1 + 1.5 * rng.normal(size=len(used)), [-0.5, 0.5])
    posterior = softmax(
        logits + np.array([0.0, 1.5]), axis=1
    )  # its prior is wrong, and SLD with it
    truth = bags.prevalence

    class Oracle:
        def predict_bags(self, X, bags):
            return truth

    flat = np.full(2, 0.5)
    scored = Scored({"plain": posterior}, flat, {"oracle": Oracle()}, None)
    leak = scored.measure(bags)
    assert leak.honest == 0 and leak.baseline == "oracle"
    assert leak.share > 0.3, leak
    alone = Bags(bags.indptr, np.arange(len(bags.indices)), len(bags.indices), prevalence=truth)
    apart = Scored({"plain": posterior[bags.indices]}, flat, {"oracle": Oracle()}, None)
    assert apart.measure(alone).share == 0


def test_the_attack_is_expectation_maximisation_where_nothing_is_shared():
    """Against a plain loop: with every item in one sample, samples are independent mixtures."""
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=12_000)
    likelihood = np.exp(rng.normal(size=(12_000, 2)) + 1.2 * np.eye(2)[codes])
    drawn = draw_samples(codes, ["a", "b"], n_bags=200, size=40, entropy=1, max_reuse=1)
    bags, used = drop_unused(drawn)
    found = attack(bags, likelihood[used], max_iter=2000, tolerance=1e-9)
    alone = []
    for items in bags:
        rows, q = likelihood[used][items], np.full(2, 0.5)
        for _ in range(500):
            r = rows * q
            q = (r / r.sum(axis=1, keepdims=True)).mean(axis=0)
        alone.append(q)
    apart = np.abs(found - np.array(alone))  # a chance of 1 in 200 is not 0, but near it
    assert apart.mean() < 0.003
    assert apart.max() < 0.02
    assert np.abs(np.array(alone) - bags.prevalence).mean() > 0.03


@pytest.mark.parametrize("reuse", [None, 1, 2, 5])
def test_items_are_used_as_often_as_allowed(reuse):
    codes = np.repeat([0, 1, 2], [900, 700, 800])
    names = ["a", "b", "c"]
    bags = draw_samples(codes, names, n_bags=40, size=40, entropy=9, max_reuse=reuse)
    assert not repeated_inside(bags.indptr, bags.indices).any()
    for items, truth in zip(bags, bags.prevalence, strict=True):
        np.testing.assert_array_equal(np.bincount(codes[items], minlength=3) / 40, truth)
    if reuse is not None:
        assert np.bincount(bags.indices).max() <= reuse


def test_decks_are_crossed_without_repeating_an_item():
    codes = np.repeat([0, 1], [25, 25])
    bags = draw_samples(codes, ["a", "b"], n_bags=6, size=20, entropy=2, max_reuse=4)
    assert not repeated_inside(bags.indptr, bags.indices).any()
    assert np.bincount(bags.indices).max() <= 4
    with pytest.raises(InputError, match=r"at most 1 of them: a \(25 items, \d+ needed\)"):
        draw_samples(codes, ["a", "b"], n_bags=6, size=20, entropy=2, max_reuse=1)
    with pytest.raises(InputError, match="without repeating an item inside a sample"):
        draw_samples(codes, ["a", "b"], n_bags=60, size=40, entropy=2)


def test_repeated_items_are_counted_by_sample():
    found = repeated_inside(np.array([0, 3, 6]), np.array([1, 2, 1, 0, 1, 2]))
    assert found.tolist() == [1, 0]


def near_copies(texts, rng):
    found = []
    for text in texts:
        words = text.split()
        words[int(rng.integers(len(words)))] = "elsewhere"
        found.append(" ".join(words))
    return found


def test_equal_and_nearly_equal_texts_are_found(corpus):
    long = [t for t in corpus["text"].tolist() if len(t.split()) > 40][:1500]
    assert find_repeats(long).keep.all()
    near = near_copies(long[:100], np.random.default_rng(0))
    equal = [f"  {t.upper()}!" for t in long[200:228]]
    found = find_repeats([*long, *near, *equal])
    assert (found.equal, found.near) == (28, 100)
    assert found.keep[:1500].all()
    assert not found.keep[1500:].any()
    exact = find_repeats([*long, *near, *equal], threshold=None)
    assert (exact.equal, exact.near) == (28, 0)
    # An independent count: pairs by brute force.
    few = [*long[:60], *near[:20]]
    runs = [{tuple(w[i : i + 3]) for i in range(len(w) - 2)} for w in map(str.split, few)]
    by_hand = {
        j
        for j in range(len(few))
        if any(len(runs[i] & runs[j]) / len(runs[i] | runs[j]) >= 0.8 for i in range(j))
    }
    assert set(np.flatnonzero(~find_repeats(few).keep)) == by_hand


def test_texts_without_words_and_short_ones():
    found = find_repeats(["", "!!", "a", "a b", "a b", "b a"])
    assert found.keep.tolist() == [True, False, True, True, False, True]


def test_no_text_is_in_two_parts(corpus, tmp_path):
    from headcount._core.frame import Frame

    texts = corpus["text"].tolist()
    rng = np.random.default_rng(1)
    double = Frame(
        {
            "text": np.array([*texts, *near_copies(texts[:400], rng), *texts[:300]], dtype=object),
            "stars": np.concatenate(
                [corpus["stars"], corpus["stars"][:400], corpus["stars"][:300]]
            ),
        }
    )
    said = []
    build_lab(double, tmp_path, replace(RECIPE, forms=("text",), leak_limit=1.0), tell=said.append)
    assert "left out" in said[0]
    task = open_task(tmp_path / "T2A")
    parts = [set(p.tolist()) for p in (task.train.X, task.dev.X, task.test.X)]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])
    together = [t for part in parts for t in sorted(part)]
    assert find_repeats(together).keep.all()


def test_class_names_pass_the_official_reader(corpus, tmp_path):
    names = {
        "1": "Home & Garden",
        "2": "Home & Garden",
        "4": "Arts  & Crafts",
        "5": "Arts  & Crafts",
    }
    recipe = replace(RECIPE, labels=names, leak_limit=1.0, forms=("vector",))
    build_lab(corpus, tmp_path, recipe, official=True)
    path = tmp_path / "T1A" / "public" / "label_map.txt"
    codes = {}
    for line in path.read_text().splitlines():
        name, code = line.split()  # what the official load_category_map does
        codes[name] = int(code)
    assert codes == {"Arts_&_Crafts": 0, "Home_&_Garden": 1}
    assert open_task(tmp_path / "T1A").n_classes == 2


def test_a_build_that_is_killed_leaves_no_half_task(corpus, tmp_path, monkeypatch):
    """A folder with half of the samples would open as a task with fewer of them."""

    class Killed(BaseException):
        pass

    few = replace(RECIPE, n_dev=5, n_test=5, size=10, forms=("text",), max_reuse=1)
    written = []

    def die_at_the_third(self, data, write=Path.write_bytes):
        if self.parent.name == "test_samples":
            written.append(self)
            if len(written) == 3:
                raise Killed
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", die_at_the_third)
    with pytest.raises(Killed):
        build_lab(corpus, tmp_path, few, official=True)
    assert len(written) == 3
    assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".")] == ["gold"]


def test_colliding_class_names_stay_apart(tmp_path):
    from headcount.lequa.task import write_label_map

    write_label_map(tmp_path, ["a b", "a_b", "a  b"])
    assert (tmp_path / "label_map.txt").read_text() == "a_b 0\na_b_ 1\na_b__ 2\n"


def test_data_that_cannot_be_written_to(corpus, tmp_path, monkeypatch):
    build_lab(
        corpus, tmp_path / "x", replace(RECIPE, leak_limit=1.0, forms=("vector",)), official=True
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "x" / "T1A" / ".headcount-T1A").write_text("in the way: no folder can be made")
    task = open_task(tmp_path / "x" / "T1A")
    assert len(task.test.bags) == 20
    assert task.folder.is_relative_to(tmp_path / "cache")
    assert open_task(tmp_path / "x" / "T1A").folder == task.folder


def test_items_twice_in_a_sample_are_said(corpus, tmp_path, caplog):
    build_lab(corpus, tmp_path, replace(RECIPE, leak_limit=1.0, forms=("vector",)), official=True)
    path = tmp_path / "T1A" / "public" / "test_samples" / "3.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], lines[1]]) + "\n")
    open_task(tmp_path / "T1A")
    assert "1 of 20 test samples hold an item more than once, first sample 3" in caplog.text
