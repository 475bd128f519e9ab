"""Intervals: against an exact posterior, by their coverage, and at the borders."""

import warnings

import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.linear_model import LogisticRegression

import headcount
from headcount import (
    CC,
    MLPE,
    PACC,
    SLD,
    Bags,
    GridSearch,
    HDx,
    HDy,
    InputError,
    KDEyML,
    MedianOf,
    UniformPrevalence,
    WithIntervals,
)
from headcount.inference.intervals import bounds
from headcount.inference.local_regression import posterior_moments
from headcount.inference.simulation import Simulator
from headcount.methods.registry import named_methods
from headcount.methods.scored import ScoreQuantifier
from headcount.testing.quantifiers import make_items

SCORED = sorted(
    {
        value
        for value in named_methods().values()
        if isinstance(value, type) and issubclass(value, ScoreQuantifier)
    },
    key=lambda c: c.__name__,
)


def exact_posterior(size: int, seen: int, wrong: float) -> np.ndarray:
    """Posterior of the number of positives when each is misread with a known probability."""
    positives = np.arange(size + 1)
    likelihood = np.zeros(size + 1)
    for n in positives:
        hits = binom.pmf(np.arange(n + 1), n, 1 - wrong)
        false = binom.pmf(seen - np.arange(n + 1), size - n, wrong)
        likelihood[n] = (hits * false).sum()
    return likelihood / likelihood.sum()


@pytest.mark.parametrize("seen", [20, 60, 13, 9, 92])
def test_bounds_equal_those_of_the_exact_posterior(seen):
    """One classifier that is wrong in a tenth of the cases, known from very many labelled items."""
    n, size = 40_000, 100
    y = np.repeat([0, 1], n // 2)
    said = np.where(np.arange(n) % 10 == 0, 1 - y, y)
    q = PACC().fit_scores(np.eye(2)[said], y)
    bag = np.eye(2)[np.r_[np.ones(seen, dtype=int), np.zeros(size - seen, dtype=int)]]
    found = q.predict_interval(bag, n_draws=2000)
    posterior = exact_posterior(size, seen, 0.1)
    shares = np.arange(size + 1) / size
    likeliest = np.argsort(-posterior)
    kept = np.sort(likeliest[: np.searchsorted(np.cumsum(posterior[likeliest]), 0.95) + 1])
    assert found.low[1] == pytest.approx(shares[kept[0]], abs=0.015)
    assert found.high[1] == pytest.approx(shares[kept[-1]], abs=0.015)
    inside = (shares >= found.low[1]) & (shares <= found.high[1])
    assert 0.92 < posterior[inside].sum() < 0.992


@pytest.mark.parametrize("middle", [-0.05, 0.0, 0.02, 0.05, 0.5, 0.93, 1.02])
def test_bounds_of_cut_normals(middle):
    """Against the likeliest 95 % of very many points of a fine grid."""
    grid = np.linspace(0, 1, 20001)
    weight = norm.pdf(grid, middle, 0.04)
    weight /= weight.sum()
    mean = weight @ grid
    low, high = bounds(np.array([[mean]]), np.array([[weight @ (grid - mean) ** 2]]), 0.95)
    order = np.argsort(-weight)
    kept = grid[order[: np.searchsorted(np.cumsum(weight[order]), 0.95) + 1]]
    assert low[0, 0] == pytest.approx(kept.min(), abs=0.002)
    assert high[0, 0] == pytest.approx(kept.max(), abs=0.002)


@pytest.mark.parametrize(
    ("make", "k"),
    [(PACC, 2), (SLD, 2), (lambda: SLD(calibrator="bcts"), 3), (PACC, 4), (HDy, 2), (KDEyML, 3)],
)
def test_intervals_cover(make, k):
    """600 bags of 30 labelled samples: a standard error of about one point."""
    inside, widths = [], []
    for seed in range(30):
        X, y = make_items(k, n=300, seed=seed)
        pool, y_pool = make_items(k, n=2000, seed=1000 + seed)
        bags = UniformPrevalence(n_bags=20, size=150, random_state=seed).draw(y_pool)
        q = make().set_params(classifier=LogisticRegression()).fit(X, y)
        interval = q.predict_interval(pool, bags, n_draws=150)
        inside.append((bags.prevalence >= interval.low) & (bags.prevalence <= interval.high))
        widths.append(interval.high - interval.low)
    assert 0.92 < np.mean(inside) < 0.99
    assert 0.01 < np.mean(widths) < 0.4


def test_one_noisy_side_alone_gives_narrower_intervals():
    """Both the labelled items and the bag's size count."""
    X, y = make_items(2, n=4000, seed=0)
    pool, _ = make_items(2, n=5000, seed=1)
    widths = {}
    for n in (200, 4000):
        q = PACC(LogisticRegression()).fit(X[:n], y[:n])
        for size in (100, 5000):
            found = q.predict_interval(pool[:size])
            widths[n, size] = found.high[1] - found.low[1]
    assert widths[4000, 5000] < widths[200, 5000] < widths[200, 100]
    assert widths[4000, 5000] < widths[4000, 100] < widths[200, 100]


@pytest.mark.parametrize("cls", SCORED, ids=lambda c: c.__name__)
@pytest.mark.parametrize("k", [2, 3])
def test_every_method_on_scores_has_intervals(cls, k):
    X, y = make_items(k, n=240, seed=0)
    pool, y_pool = make_items(k, n=400, seed=1)
    bags = UniformPrevalence(n_bags=3, size=60, random_state=0).draw(y_pool)
    q = cls(LogisticRegression()).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", headcount.HeadcountWarning)
        found = q.predict_interval(pool, bags, n_draws=50)
        estimates = q.predict_bags(pool, bags)
    assert np.allclose(found.prevalence, estimates)
    assert (found.low >= 0).all() and (found.high <= 1).all()
    assert (found.low <= estimates).all() and (estimates <= found.high).all()
    assert (found.high - found.low > 1e-4).all()


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_never_of_no_width_even_for_perfect_classes(share):
    scores = np.repeat([[1.0, 0.0], [0.0, 1.0]], 50, axis=0)
    q = PACC().fit_scores(scores, np.repeat([0, 1], 50))
    bag = np.tile([1 - share, share], (200, 1))
    found = q.predict_interval(bag)
    assert found.prevalence[1] == pytest.approx(share, abs=1e-6)
    assert 0.002 < found.high[1] - found.low[1] < 0.2
    assert (found.low[1] == 0) if share == 0 else (found.high[1] == 1)


def test_level_target_and_simultaneous():
    X, y = make_items(4, n=400, seed=0)
    pool, _ = make_items(4, n=300, seed=1)
    q = PACC(LogisticRegression()).fit(X, y)
    usual = q.predict_interval(pool)
    width = usual.high - usual.low

    def wider(**request):
        found = q.predict_interval(pool, **request)
        return (found.high - found.low).sum() / width.sum()

    assert wider(level=0.8) < 0.85
    assert wider(simultaneous=True) > 1.1
    assert wider(target="population") > 1.02
    assert q.predict_interval(pool).low.tolist() == usual.low.tolist()  # the same seed
    assert 10 < usual.worth < 400


def test_all_classes_are_inside_at_once():
    together = []
    for seed in range(30):
        X, y = make_items(4, n=400, seed=seed)
        pool, y_pool = make_items(4, n=1000, seed=500 + seed)
        bags = UniformPrevalence(n_bags=8, size=150, random_state=seed).draw(y_pool)
        q = PACC(LogisticRegression()).fit(X, y)
        found = q.predict_interval(pool, bags, simultaneous=True, n_draws=150)
        inside = (bags.prevalence >= found.low) & (bags.prevalence <= found.high)
        together.append(inside.all(axis=1))
    assert np.mean(together) > 0.88  # 240 bags of 30 labelled samples: two errors below 0.93


def test_thousands_of_bags_get_what_each_would_get_alone():
    X, y = make_items(2, n=500, seed=0)
    pool, y_pool = make_items(2, n=3000, seed=1)
    bags = UniformPrevalence(n_bags=400, size=100, random_state=0).draw(y_pool)
    q = PACC(LogisticRegression()).fit(X, y)
    many, few = q.predict_interval(pool, bags), q.predict_interval(pool, bags[:20], n_draws=1500)
    off = np.abs(many.low[:20] - few.low), np.abs(many.high[:20] - few.high)
    assert np.mean(off) < 0.012  # of five times as many draws
    inside = (bags.prevalence >= many.low) & (bags.prevalence <= many.high)
    assert 0.9 < inside.mean() < 0.99


def test_cost_does_not_grow_with_the_bag():
    sizes = []

    def estimate(bags: Bags):
        sizes.append(bags.sizes.max())
        return np.full((len(bags), 2), 0.5)

    simulator = Simulator(estimate, np.repeat([0, 1], 100), 2)
    posterior_moments(simulator, np.array([[0.5, 0.5]]), np.array([10**9]), 50)
    assert max(sizes) <= simulator.max_size == 1000


def test_any_quantifier_can_be_given_intervals():
    X, y = make_items(3, n=400, seed=0)
    pool, y_pool = make_items(3, n=1000, seed=1)
    bags = UniformPrevalence(n_bags=60, size=150, random_state=0).draw(y_pool)
    several = MedianOf([PACC(), HDx(n_bins=8)])
    with pytest.raises(InputError, match=r"WithIntervals\(MedianOf"):
        several.fit(X, y).predict_interval(pool)
    q = WithIntervals(several, n_bags=500).fit(X, y)
    found = q.predict_interval(pool, bags)
    inside = (bags.prevalence >= found.low) & (bags.prevalence <= found.high)
    assert inside.mean() > 0.9
    assert (found.high - found.low).mean() < 0.6
    assert np.allclose(found.prevalence, several.fit(X, y).predict_bags(pool, bags))


def test_a_search_and_texts_pass_the_question_on():
    X, y = make_items(2, n=300, seed=0)
    search = GridSearch(PACC(LogisticRegression()), {"classifier__C": [0.1, 1.0]}).fit(X, y)
    assert search.predict_interval(X[:50]).low.shape == (2,)
    assert search.diagnose(X[:50]).n.tolist() == [50]


def test_what_has_no_interval_says_so():
    X, y = make_items(2, n=200, seed=0)
    assert MLPE().fit(X, y).predict_interval(X).high.tolist() == [1, 1]
    with pytest.raises(InputError, match="no held-out scores were kept"):
        SLD(LogisticRegression(), cv=None).fit(X, y).predict_interval(X)
    with pytest.raises(InputError, match="cv=None leaves no held-out scores"):
        PACC(LogisticRegression(), cv=None).fit(X, y)
    few = np.r_[np.flatnonzero(y == 0)[:50], np.flatnonzero(y == 1)[:3]]
    with pytest.raises(InputError, match="fewer folds where a class has fewer"):
        SLD(LogisticRegression()).fit(X[few], y[few]).predict_interval(X)
    with pytest.warns(headcount.HeadcountWarning, match="biased as soon as the class shares"):
        CC(LogisticRegression()).fit(X, y).predict_interval(X)
    q = PACC(LogisticRegression()).fit(X, y)
    with pytest.raises(InputError, match="level must be between"):
        q.predict_interval(X, level=95)
    with pytest.raises(InputError, match="unknown target"):
        q.predict_interval(X, target="sample")
    with pytest.raises(InputError, match="4 labelled items of every class"):
        HDy(LogisticRegression(), cv=2).fit(X[few], y[few]).predict_interval(X)


def test_scores_alone_will_do():
    X, y = make_items(2, n=300, seed=0)
    scores = LogisticRegression().fit(X, y).predict_proba(X)
    found = SLD().fit_scores(scores, y).predict_interval(scores[:100])
    assert found.to_frame()["low"].shape == (2,)
    assert found.to_frame(["may"])["bag"].tolist() == ["may", "may"]
