import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from headcount import (
    ACC,
    PACC,
    SLD,
    SMM,
    Bags,
    Blend,
    Ensemble,
    InputError,
    MedianOf,
    OneVsAll,
    UniformPrevalence,
    WithIntervals,
)
from headcount.kernels.simplex import clip_and_normalise
from headcount.methods import scored
from headcount.systems import lequa2022
from headcount.testing.quantifiers import make_items


@pytest.fixture(scope="module", params=[2, 3])
def problem(request):
    X, y = make_items(request.param, n=600)
    pool, truth = make_items(request.param, n=1500, seed=2)
    return X, y, pool, UniformPrevalence(n_bags=15, size=100, random_state=0).draw(truth)


def test_members_are_trained_at_spread_prevalences_with_every_class(problem):
    X, y, pool, bags = problem
    e = Ensemble(size=12, sample_size=200, min_per_class=7).fit(X, y)
    assert (e.samples_.sizes <= 200).all() and np.median(e.samples_.sizes) > 100
    assert all(len(set(items.tolist())) == len(items) for items in e.samples_), "an item twice"
    assert (e.samples_.prevalence * e.samples_.sizes[:, None] >= 7 - 1e-9).all()
    assert e.samples_.prevalence[:, 0].std() > 0.15
    for j in (0, 5):
        items = e.samples_.items(j)
        alone = PACC().fit(X[items], y[items])
        np.testing.assert_allclose(
            e.members_[j].predict_bags(pool, bags), alone.predict_bags(pool, bags)
        )


def test_policies_average_the_members_they_should(problem):
    X, y, pool, bags = problem
    settings = {"size": 10, "keep": 4, "sample_size": 200}
    e = Ensemble(**settings).fit(X, y)
    answers = np.stack([m.predict_bags(pool, bags) for m in e.members_])
    np.testing.assert_allclose(e.predict_bags(pool, bags), answers.mean(axis=0))

    nearest = Ensemble(policy="ptr", **settings).fit(X, y).predict_bags(pool, bags)
    for s in range(len(bags)):
        far = ((e.samples_.prevalence - answers[:, s].mean(axis=0)) ** 2).sum(axis=1)
        np.testing.assert_allclose(
            nearest[s], answers[np.argsort(far, kind="stable")[:4], s].mean(axis=0)
        )

    static = Ensemble(policy="ae", **settings).fit(X, y)
    errors = []
    for j, member in enumerate(e.members_):
        others = [i for i in range(10) if i != j]
        gap = np.abs(member.predict_bags(X, e.samples_[others]) - e.samples_.prevalence[others])
        errors.append(gap.mean())
    assert set(static.kept_) == set(np.argsort(errors)[:4])
    np.testing.assert_allclose(
        static.predict_bags(pool, bags), answers[np.argsort(errors)[:4]].mean(axis=0)
    )


def test_distribution_similarity_takes_the_most_alike_histograms():
    X, y = make_items(2, n=600)
    pool, truth = make_items(2, n=900, seed=2)
    bags = Bags.from_lists(
        [np.flatnonzero(truth == 0)[:80], np.flatnonzero(truth == 1)[:80]], len(pool)
    )
    e = Ensemble(policy="ds", size=8, keep=3, sample_size=150).fit(X, y)
    p = e.predict_bags(pool, bags)

    def histogram(v):
        return np.histogram(v, bins=8, range=(0, 1))[0] / len(v)

    for s in range(2):
        overlap = [
            np.sqrt(
                np.mean(
                    [
                        histogram(c.predict_proba(pool[bags.items(s)])[:, 1])
                        for c in m.scorer_.folds
                    ],
                    axis=0,
                )
                * histogram(m.scorer_.scores[:, 1])
            ).sum()
            for m in e.members_
        ]
        best = np.argsort(-np.array(overlap))[:3]
        answers = np.stack([m.predict_bags(pool, bags)[s] for m in e.members_])
        np.testing.assert_allclose(p[s], answers[best].mean(axis=0))
    with pytest.raises(InputError, match="two classes"):
        Ensemble(policy="ds").fit(*make_items(3))


def test_median_of_methods(problem):
    X, y, pool, bags = problem
    several = [ACC(), PACC(), SLD()]
    p = MedianOf(several).fit(X, y).predict_bags(pool, bags)
    alone = np.stack([q.fit(X, y).predict_bags(pool, bags) for q in several])
    np.testing.assert_allclose(p, clip_and_normalise(np.median(alone, axis=0)))


class Counting(LogisticRegression):
    """Counts how often it is fitted."""

    fits = 0

    def fit(self, X, y):
        Counting.fits += 1
        return super().fit(X, y)


def test_median_of_shares_a_classifier_pass_and_nests_parameters():
    X, y = make_items(2)
    several = MedianOf([ACC(Counting()), PACC(Counting())])
    several.fit(X, y)
    assert Counting.fits == 5
    several.set_params(acc__classifier__C=0.01)
    assert several.get_params()["acc__classifier__C"] == 0.01


def test_one_vs_all_trains_a_classifier_for_every_class():
    X, y = make_items(3)
    p = OneVsAll(SMM()).fit(X, np.array(["a", "b", "c"])[y])
    shares = [SMM().fit(X, y == c).predict(X)[1] for c in range(3)]
    np.testing.assert_allclose(p.predict(X), np.array(shares) / np.sum(shares))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Ensemble(sample_size=4).fit(*make_items(3)), "sample_size 4 is too small for 3"),
        (lambda: Ensemble(policy="best").fit(*make_items(2)), "unknown policy"),
        (lambda: Ensemble(size=0).fit(*make_items(2)), "size must be a whole number"),
        (lambda: MedianOf([]).fit(*make_items(2)), "list of quantifiers, at least one"),
        (lambda: MedianOf([("a", PACC())]).fit(*make_items(2)), "a quantifier is expected"),
        (lambda: Ensemble(LogisticRegression()).fit(*make_items(2)), "a quantifier is expected"),
        (lambda: OneVsAll(LogisticRegression()).fit(*make_items(2)), "a quantifier is expected"),
        (lambda: Ensemble(policy="bias").fit(*make_items(2)), "unknown policy 'bias'"),
        (lambda: Ensemble(min_per_class=99).fit(*make_items(2)), "fewer than min_per_class=99"),
        (lambda: OneVsAll(SMM()).fit(np.arange(11.0)[:, None], ["a"] * 5 + ["b"] * 5 + ["c"]),
         "has 1 labelled items, fewer than the 5 folds"),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("name", lequa2022.__all__)
def test_named_systems_are_ready_to_fit(name):
    if name == "uni_oviedo1":
        pytest.importorskip("torch", reason="the network needs torch: make test-heavy tries it")
    k = 3 if name in ("dortmund_ai", "uni_oviedo2_multiclass") else 2
    X, y = make_items(k, n=500)
    pool, truth = make_items(k, n=1500, seed=8)
    if name == "uni_padova":  # takes texts
        X, pool = ([f"word{c} of{c} class{c}" for c in labels] for labels in (y, truth))
    bags = UniformPrevalence(n_bags=10, size=150, random_state=0).draw(truth)
    p = getattr(lequa2022, name)().fit(X, y).predict_bags(pool, bags)
    assert np.abs(p - bags.prevalence).mean() < 0.12


@pytest.mark.parametrize(
    "made",
    [
        lambda q: MedianOf([q, q]),
        lambda q: OneVsAll(q),
        lambda q: Ensemble(q, size=2),
        lambda q: WithIntervals(q, n_bags=100),
        lambda q: Blend(quantifiers=[q], calibrate_width=False),
    ],
)
def test_members_do_not_calibrate_intervals(made, monkeypatch):
    def refuse(_):
        raise AssertionError

    monkeypatch.setattr(scored, "calibrate_width", refuse)
    X, y = make_items(2, n=200)
    fitted = made(PACC()).fit(X, y)
    assert not any(member.calibrate_width for member in fitted.members_)
