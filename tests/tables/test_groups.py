"""Groups that the rows reveal: fitted by group, each group's own labelled rows are used."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from headcount.bags import Bags
from headcount.inference.draws import Draws
from headcount.inference.random_effects import fit_random_effects
from headcount.methods.bayes import BayesQuantifier
from headcount.tables import fit
from headcount.tables.groups import even_rows, fit_evenly, learn_shift
from headcount.tables.labelled import Labelled
from headcount.tables.training import training_text
from tests.commands import run, write

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
    moved = (new.mean + np.array([0.2, -0.1, -0.1]))[None]
    draws = found.estimates.draws.take([8])
    clear = replace(draws, estimates=moved, mean=moved, variance=np.full((1, 3), 1e-3))
    shrunken = new.shrink(clear, np.array([False]))
    assert shrunken.estimates[0, 0] > new.mean[0] + 0.06  # the model is believed
    share, truth = found.interval.prevalence[8], found.truth[8]
    assert np.abs(share - truth).mean() < np.abs(usual - truth).mean() + 0.05
    width = (found.interval.high - found.interval.low)[8]
    assert 0.1 < width.mean() < 0.45
    wide = 100 * model.training.quality.by_group.width
    text = training_text(model.training)
    assert f"about {wide:.0f} points wide, or more: with labelled rows of more groups" in text
    assert wide <= 100 * width.mean() + 1


def random_effects(estimates, truth, flagged=None):
    """Random effects learnt from groups of 200 rows, whose draws have a variance of 0.0001."""
    n = len(truth)
    flagged = np.zeros(n, dtype=bool) if flagged is None else flagged
    return fit_random_effects(estimates, np.full_like(truth, 1e-4), truth, np.full(n, 200), flagged)


def draws_at(estimates, variance=1e-4, size=1000):
    """Draws with these estimates."""
    draws = Draws.uninformative(np.array(["a", "b"]), estimates, np.full(len(estimates), size))
    moments = {"mean": estimates, "variance": np.full_like(estimates, variance)}
    return replace(draws, **moments, known=np.ones(len(estimates), dtype=bool))


def test_many_labelled_rows_of_a_group_outweigh_a_poor_model():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([8, 8], 40)
    effects, _ = random_effects(rng.dirichlet([8, 8], 40), truth)
    draws, fits = draws_at(np.array([[0.5, 0.5]] * 3)), np.zeros(3, dtype=bool)
    own = np.array([[0, 0], [18, 2], [1800, 200]])
    shares = effects.shrink(draws, fits, "population", own).estimates[:, 0]
    assert shares[0] == pytest.approx(0.5, abs=0.05)
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] == pytest.approx(0.9, abs=0.01)


def test_a_model_that_tells_nothing_of_groups_is_not_believed():
    rng = np.random.default_rng(0)
    truth, noise = rng.dirichlet([8, 4], 40), rng.dirichlet([8, 4], 40)
    far, fits = draws_at(np.array([[0.9, 0.1]])), np.array([False])
    useless, left_out = random_effects(noise, truth)
    mean = truth.mean(axis=0)
    assert useless.shrink(far, fits).estimates[0, 0] < mean[0] + 0.35 * (0.9 - mean[0])
    assert np.abs(left_out - truth).mean() < np.abs(noise - truth).mean()
    right, left_out = random_effects(truth, truth)
    assert right.shrink(far, fits).estimates[0, 0] == pytest.approx(0.9, abs=0.02)
    assert np.abs(left_out - truth).mean() < 0.01
    assert right.excess_error.max() < 0.1 * useless.excess_error[0].min()
    off = np.where(np.arange(40) % 2 == 0, 0.1, 0.0)[:, None] * [1, -1]
    apart, _ = random_effects(truth + off, truth, off[:, 0] != 0)
    assert apart.excess_error[1].min() > 2 * apart.excess_error[0].max()
