"""Groups that the rows reveal: fitted by group, each group's own labelled rows are used."""

from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest
from headcount.inference.pooling import Pooling, learn_pooling
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from headcount.bags import Bags
from headcount.inference.intervals import Interval
from headcount.methods.bayes import BayesQuantifier
from headcount.tables import fit
from headcount.tables.formatting import training_text
from headcount.tables.groups import even_rows, fit_evenly, learn_shift
from headcount.tables.labelled import Labelled
from tests.tables.test_tables import run, write

COMPANIES = [f"company{i}" for i in range(8)]
SHARES = np.array(  # of bad, fair and good posts; the companies differ a lot
    [
        [0.7, 0.2, 0.1],
        [0.1, 0.3, 0.6],
        [0.4, 0.4, 0.2],
        [0.2, 0.2, 0.6],
        [0.55, 0.3, 0.15],
        [0.15, 0.55, 0.3],
        [0.3, 0.1, 0.6],
        [0.6, 0.25, 0.15],
    ]
)
MOODS = np.array(["bad", "fair", "good"])


def posts(company, shares, n, rng):
    """Posts that name their company, with few and weak words of mood."""
    labels = rng.choice(3, n, p=shares)
    texts = []
    for c in labels:
        words = rng.choice([f"mood{c}w{i}" for i in range(12)], 1)
        noise = rng.choice([f"mood{d}w{i}" for d in range(3) for i in range(12)], 2)
        common = rng.choice([f"word{i}" for i in range(40)], 4)
        texts.append(" ".join([company, f"{company}help", *words, *noise, *common]))
    return texts, MOODS[labels]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("companies")
    rng = np.random.default_rng(0)
    parts = {"train": 150, "heap": 400}
    for name, n in parts.items():
        columns = {"text": [], "mood": [], "company": []}
        for company, shares in zip(COMPANIES, SHARES, strict=True):
            texts, labels = posts(company, shares, n, rng)
            columns["text"] += texts
            columns["mood"] += labels.tolist()
            columns["company"] += [company] * n
        if name == "heap":  # and one that nobody has labelled
            texts, labels = posts("newcomer", [0.5, 0.2, 0.3], n, rng)
            columns["text"] += texts
            columns["mood"] += labels.tolist()
            columns["company"] += ["newcomer"] * n
        write(folder / f"{name}.csv", **columns)
    return folder


def test_groups_answer_by_their_own_rows_and_the_model(corpus):
    common = {"text": "text", "label": "mood", "method": "SLD"}
    model = fit(str(corpus / "train.csv"), by="company", **common)
    found = model.estimate(str(corpus / "heap.csv"), by="company", truth="mood")
    off = np.abs(found.interval.prevalence - found.truth)
    own = np.array([0.023, 0.023, 0.023])  # of 150 and 400 rows, on average
    assert off[:8].mean() < 1.5 * own.mean() + 0.01
    inside = (found.truth >= found.interval.low) & (found.truth <= found.interval.high)
    assert inside.mean() >= 0.85
    plain = fit(str(corpus / "train.csv"), **common)
    without = plain.estimate(str(corpus / "heap.csv"), by="company", truth="mood")
    assert np.abs(without.interval.prevalence - without.truth).mean() > 1.3 * off.mean()
    width = found.interval.high - found.interval.low
    assert width[8].mean() > 1.5 * width[:8].mean()  # the newcomer has no rows of its own


def test_groups_of_labelled_rows_that_fit_was_not_told_of_are_warned_about(corpus, tmp_path):
    run("fit", corpus / "train.csv", "--text", "text", "--label", "mood", "--method", "SLD",
        "-o", tmp_path / "m.hc")  # fmt: skip
    said = run("estimate", tmp_path / "m.hc", corpus / "heap.csv", "--by", "company")
    assert "Fit it by 'company'" in said
    run("fit", corpus / "train.csv", "--text", "text", "--label", "mood", "--method", "SLD",
        "--by", "company", "-o", tmp_path / "g.hc")  # fmt: skip
    assert "Fit it by" not in run(
        "estimate", tmp_path / "g.hc", corpus / "heap.csv", "--by", "company"
    )


def test_groups_tell_how_far_shares_move(monkeypatch):
    """A quantifier with a prior ends with what the labelled groups say, however fitted."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(8), 50)
    codes = np.concatenate([rng.choice(3, 50, p=shares) for shares in SHARES])
    scores = 0.5 * np.eye(3)[codes] + 0.5 * rng.dirichlet(np.ones(3), size=len(codes))
    before = BayesQuantifier().fit_scores(scores, codes)
    bags = Bags.from_groups(groups).with_truth(codes)
    wanted = BayesQuantifier().fit_scores(scores, codes).learn_shift(None, bags).prior_[1]
    assert np.ptp(before.prior_[1]) == 0  # any shift is as likely as none
    told = learn_shift(before, groups).prior_[1]
    assert told.tolist() == wanted.tolist()
    assert np.exp(told[-1]) < 0.05 < np.exp(told[:3]).sum()  # these shares lie far apart
    rows = {**{f"s{c}": scores[:, c] for c in range(3)}, "y": MOODS[codes]}
    learning = import_module("headcount.tables.learn")
    monkeypatch.setattr(learning, "measure_quality", lambda *_: None)  # it takes its time
    names, common = ["s0", "s1", "s2"], {"label": "y", "method": "BayesQuantifier"}
    model = fit(pa.table({**rows, "g": groups.astype(str)}), scores=names, by="g", **common)
    assert model.quantifier.prior_[1].tolist() == wanted.tolist()
    texts = [f"{MOODS[c]} {g}" for c, g in zip(codes, groups, strict=True)]
    labelled = Labelled(np.array(texts, dtype=object), MOODS[codes], groups.astype(str))
    classifier = make_pipeline(CountVectorizer(), LogisticRegression())
    even = fit_evenly(BayesQuantifier(), [classifier], labelled)
    assert even.prior_[1] == pytest.approx(wanted)


def test_rows_to_learn_from_have_even_groups():
    """A group's name tells nothing of the class where all groups have the same shares."""
    own = np.repeat([0, 1], 400)
    codes = np.concatenate([np.repeat([0, 1], [320, 80]), np.repeat([0, 1], [80, 320])])
    drawn = even_rows(np.arange(800), codes, own)
    shares = [codes[drawn][own[drawn] == g].mean() for g in (0, 1)]
    assert np.ptp(shares) < 0.1  # 0.6 as they came
    held_out = np.arange(0, 800, 5)
    rest = np.setdiff1d(np.arange(800), held_out)
    assert not np.isin(even_rows(rest, codes, own), held_out).any()


def test_new_groups_are_answered_by_what_the_words_say(corpus):
    model = fit(str(corpus / "train.csv"), text="text", label="mood", method="SLD", by="company")
    found = model.estimate(str(corpus / "heap.csv"), by="company", truth="mood")
    usual = np.array(list(model.training.shares.values()))
    new = model.training.groups.new
    told = new.middle + np.array([0.2, -0.1, -0.1])
    share, _ = new.answer(told[None], np.full((1, 3), 1e-3), np.array([1 / 400]))
    assert share[0, 0] > new.middle[0] + 0.06  # it is believed about groups that it has not seen
    answer, truth = found.interval.prevalence[8], found.truth[8]
    assert np.abs(answer - truth).mean() < np.abs(usual - truth).mean() + 0.05
    width = (found.interval.high - found.interval.low)[8]
    assert 0.1 < width.mean() < 0.27  # 0.30 where the few rows of tried groups were held against it
    wide = 100 * model.training.quality.by_group.width
    said = training_text(model.training)
    assert f"about {wide:.0f} points wide, or more: with labelled rows of more groups" in said
    assert wide <= 100 * width.mean() + 1


def test_pooling_weighs_by_variance():
    """Against the formula by hand: equal variances give the mean of both answers."""
    pooling = Pooling(np.array([0.5, 0.5]), 1.0, np.full((2, 2), 0.0025), 1000)
    nothing = np.zeros((1, 2))
    found = Interval(np.array(["a", "b"]), np.array([[0.5, 0.5]]), nothing, nothing, nothing, 0.95)
    flagged = np.array([False])
    own = np.array([[100, 0]])
    n = 100 + 4
    smooth = (100 + 4 * 0.5) / n
    of_own = smooth * (1 - smooth) / 100
    weight = 0.0025 / (0.0025 + of_own)
    mixed = pooling.pool(found, flagged, own, np.array([1000]), "population").prevalence[0]
    assert mixed[0] == pytest.approx(weight * 1.0 + (1 - weight) * 0.5)
    alone = pooling.pool(found, flagged, 0 * own, np.array([1000]), "bag")
    assert alone.prevalence[0].tolist() == [0.5, 0.5]
    assert alone.high[0, 0] == pytest.approx(0.5 + 1.96 * 0.05, abs=0.002)


def test_a_model_that_says_nothing_of_groups_is_not_believed():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([8, 4], 40)
    noise = rng.dirichlet([8, 4], 40)
    sizes, flagged = np.full(40, 200), np.zeros(40, dtype=bool)
    variance = np.full((40, 2), 1e-4)
    assert learn_pooling(noise, variance, truth, sizes, flagged).slope < 0.3
    right = learn_pooling(truth, variance, truth, sizes, flagged)
    assert right.slope == pytest.approx(1.0, abs=0.01)
    assert right.beyond.max() < 1e-4
    off = np.where(np.arange(40) % 2 == 0, 0.1, 0.0)[:, None] * [1, -1]
    apart = learn_pooling(truth + off, variance, truth, sizes, off[:, 0] != 0)
    assert apart.beyond[1].min() > 2 * apart.beyond[0].max()
