"""Diagnostics: few alarms where only shares change, many where more does."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from headcount import PACC, SLD, Bags, InputError, UniformPrevalence
from headcount.inference.diagnosis import FIT_LEVEL, Diagnosis
from headcount.inference.goodness_of_fit import FitTest
from headcount.tables.covariate_bins import CovariateBins
from headcount.testing.quantifiers import make_items


@pytest.mark.parametrize("k", [2, 4])
def test_alarms_where_nothing_but_shares_changes(k):
    alarms = []
    for seed in range(20):
        X, y = make_items(k, n=500, seed=seed)
        pool, y_pool = make_items(k, n=3000, seed=100 + seed)
        bags = UniformPrevalence(n_bags=15, size=200, random_state=seed).draw(y_pool)
        alarms.append(SLD(LogisticRegression()).fit(X, y).diagnose(pool, bags).fit < FIT_LEVEL)
    assert 0.01 < np.mean(alarms) < 0.12


def test_alarms_where_the_items_change():
    X, y = make_items(3, n=600, seed=0)
    pool, y_pool = make_items(3, n=2000, seed=1)
    bags = UniformPrevalence(n_bags=30, size=300, random_state=0).draw(y_pool)
    q = PACC(LogisticRegression()).fit(X, y)
    assert (q.diagnose(2.5 * pool, bags).fit < FIT_LEVEL).mean() > 0.8
    assert (q.diagnose(0.1 * pool, bags).fit < FIT_LEVEL).mean() > 0.8


def test_p_values_are_even_under_the_null():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 1000)
    cells = np.column_stack([rng.binomial(3, 0.3 + 0.4 * codes), 4 + rng.integers(3, size=2000)])
    test = FitTest(cells, [4, 3], codes)
    sizes, q = np.full(300, 200), []
    for share in rng.random(300):
        new = (rng.random(200) < share).astype(int)
        drawn = np.column_stack([rng.binomial(3, 0.3 + 0.4 * new), 4 + rng.integers(3, size=200)])
        q.append(np.bincount(drawn.ravel(), minlength=7) / 200)
    p = test.p_values(np.array(q), sizes)
    assert 0.35 < np.median(p) < 0.65
    assert 0.01 < (p < 0.05).mean() < 0.1


def test_items_like_no_class_are_counted_at_least():
    """70 of 250 items lie where 2 % of either class do."""
    y = np.repeat([0, 1], 500)
    scores = np.where(np.arange(1000) % 50 == 0, 0.5, np.where(y == 1, 0.9, 0.1))
    q = PACC().fit_scores(np.column_stack([1 - scores, scores]), y)
    strange = np.r_[scores[::5], np.full(50, 0.5)]
    found = q.diagnose(np.column_stack([1 - strange, strange]))
    assert found.strange[0] == pytest.approx(70 / 250 - 0.02)
    assert found.flags(0) == ["misfit", "strange"]
    assert "look like no known class" in " ".join(found.messages(0))
    assert "cannot be explained by a change of class shares alone" in found.messages(0)[0]


def test_few_items_and_weak_classifiers_are_flagged():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    scores = np.clip(0.5 + 0.003 * y + 0.01 * rng.normal(size=600), 0, 1)
    found = PACC().fit_scores(np.column_stack([1 - scores, scores]), y)
    diagnosis = found.diagnose(np.column_stack([1 - scores, scores])[:3])
    assert {"few", "weak"} <= set(diagnosis.flags(0))
    assert "only 3 items" in " ".join(diagnosis.messages(0))
    frame = diagnosis.to_frame()
    assert frame["n"].tolist() == [3] and frame["condition"][0] > 25


def test_drift_of_the_items_themselves():
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(200)])

    def texts(n, k, low):
        return np.array([" ".join(rng.choice(words[low + 40 * c :][:60], 12)) for c in k(n)])

    codes = rng.integers(2, size=600)
    look = CovariateBins("text").fit(texts(600, lambda _: codes, 0), codes)
    test = FitTest(look.bins_, look.widths, look.codes_)
    bags = Bags.single(300)

    def p(low):
        cells = look.bins(texts(300, lambda n: rng.integers(2, size=n), low))
        return test.p_values(test.shares(bags, cells), bags.sizes)[0]

    assert p(0) > 0.01
    assert p(90) < 0.01
    shown = Diagnosis(np.array([0]), np.array([300]), np.ones(1), np.zeros(1), 1.0, np.zeros(1))
    assert shown.flags(0) == ["drift"]


def test_quantifiers_without_scores_say_so():
    from headcount import HDx

    X, y = make_items(2, n=100, seed=0)
    with pytest.raises(InputError, match="HDx has no scores"):
        HDx().fit(X, y).diagnose(X)
