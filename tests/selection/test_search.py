import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from headcount import (
    PACC,
    SLD,
    GridSearch,
    HeadcountWarning,
    InputError,
    MedianOf,
    NaturalPrevalence,
    RandomSearch,
    UniformPrevalence,
    measure,
)
from headcount.testing.quantifiers import make_items


class Counting(LogisticRegression):
    """Counts how often it is fitted; refuses a C above 50."""

    fits = 0

    def fit(self, X, y):
        Counting.fits += 1
        if self.C > 50:
            raise ValueError("C is too large")
        return super().fit(X, y)


@pytest.fixture(scope="module")
def data():
    X, y = make_items(3, n=400)
    pool, truth = make_items(3, n=900, seed=1)
    bags = UniformPrevalence(n_bags=60, size=80, random_state=0).draw(truth)
    return X, y, pool, bags


GRID = {"classifier__C": [1e-4, 1.0], "calibrator": [None, "bcts"], "alpha": [1.0, 2.0]}


def test_each_classifier_setting_is_fitted_once_for_all_settings_of_the_method(data):
    X, y, pool, bags = data
    Counting.fits = 0
    search = GridSearch(SLD(Counting()), GRID, measure="rae", refit=False)
    search.fit(X, y, pool=pool, bags=bags)
    assert Counting.fits == 2 * 6  # everything and five folds, for each C
    assert search.results_.n_rows == 8


def test_errors_are_those_of_fitting_each_setting_by_hand(data):
    X, y, pool, bags = data
    search = GridSearch(SLD(LogisticRegression()), GRID, measure="rae").fit(
        X, y, pool=pool, bags=bags
    )
    table = search.results_
    for i in (0, 3, 7):
        calibrator = None if table["calibrator"][i] == "None" else table["calibrator"][i]
        q = SLD(
            LogisticRegression(C=table["classifier__C"][i]),
            calibrator=calibrator,
            alpha=table["alpha"][i],
        )
        p = q.fit(X, y).predict_bags(pool, bags)
        expected = measure("rae")(bags.prevalence, p, sizes=bags.sizes).mean()
        assert table["rae"][i] == pytest.approx(expected)
    assert search.best_score_ == table["rae"].min()
    assert table["rank"][int(np.argmin(table["rae"]))] == 1
    best = clone(SLD(LogisticRegression())).set_params(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.predict_bags(pool, bags), best.predict_bags(pool, bags))


@pytest.mark.parametrize("validation", [0.4, 3])
def test_bags_are_drawn_from_items_that_were_held_out(data, validation):
    X, y, *_ = data
    protocol = NaturalPrevalence(n_bags=30, size=40, random_state=0)
    search = GridSearch(
        PACC(LogisticRegression()), {"classifier__C": [1e-5, 1.0]}, protocol=protocol,
        validation=validation,
    ).fit(X, y)  # fmt: skip
    assert search.best_params_ == {"classifier__C": 1.0}
    assert search.members_[0].n_features_in_ == X.shape[1]


def test_any_number_of_workers_gives_the_same_table(data):
    X, y, *_ = data
    tables = [
        GridSearch(SLD(LogisticRegression()), GRID, validation=2, n_jobs=n).fit(X, y).results_
        for n in (1, 2)
    ]
    for name in tables[0]:
        np.testing.assert_array_equal(tables[0][name], tables[1][name])


def test_failed_settings_are_reported_and_never_win(data):
    X, y, *_ = data
    search = GridSearch(PACC(Counting()), {"classifier__C": [100.0, 1.0]})
    with pytest.warns(HeadcountWarning, match="1 of 2 settings failed"):
        search.fit(X, y)
    assert search.best_params_ == {"classifier__C": 1.0}
    assert "C is too large" in search.results_["failure"][0]
    assert np.isnan(search.results_["ae"][0]) and search.results_["rank"][0] == 2
    with pytest.raises(InputError, match="every setting failed; the first: ValueError"):
        GridSearch(PACC(Counting()), {"classifier__C": [100.0]}).fit(X, y)


def test_a_bug_is_raised(data):
    class Broken(LogisticRegression):
        """Has a bug."""

        def fit(self, X, y):
            return super().fit(X, y).no_such_attribute

    X, y, *_ = data
    for n_jobs in (1, 2):
        with pytest.raises(AttributeError, match="no_such_attribute"):
            GridSearch(PACC(Broken()), {"calibrator": [None]}, n_jobs=n_jobs).fit(X, y)


def test_random_search_tries_what_its_seed_says(data):
    X, y, *_ = data
    make = {"classifier__C": loguniform(1e-4, 1e2), "calibrator": ["bcts", None]}
    runs = [RandomSearch(SLD(LogisticRegression()), make, n_iter=5).fit(X, y) for _ in range(2)]
    assert runs[0].results_.n_rows == 5
    assert runs[0].best_params_ == runs[1].best_params_


def test_searches_clone_nest_and_search_over_methods(data):
    X, y, pool, bags = data
    inner = GridSearch(PACC(LogisticRegression()), {"classifier__C": [0.1, 1.0]})
    outer = GridSearch(
        inner, {"quantifier": [PACC(LogisticRegression()), SLD(LogisticRegression())]}
    )
    fitted = clone(outer).fit(X, y)
    assert fitted.results_.n_rows == 2
    assert fitted.predict_bags(pool, bags).shape == (60, 3)
    nested = MedianOf([inner, SLD()]).fit(X, y)
    assert nested.predict(X).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: GridSearch().fit(*d[:2]), "quantifier is missing"),
        (lambda d: GridSearch(PACC(), {"clasifier": [1]}).fit(*d[:2]), "Invalid parameter"),
        (lambda d: GridSearch(PACC(), {"cv": 5}).fit(*d[:2]), "grid cannot be read"),
        (lambda d: GridSearch(PACC(), measure="q").fit(*d[:2]), "cannot be selected on"),
        (lambda d: GridSearch(PACC(), measure="rea").fit(*d[:2]), "unknown measure"),
        (lambda d: GridSearch(PACC(), validation=1).fit(*d[:2]), "validation must be"),
        (lambda d: GridSearch(PACC()).fit(*d[:2], bags=d[3]), "both pool and bags"),
        (lambda d: RandomSearch(PACC(), n_iter=0).fit(*d[:2]), "n_iter must be"),
    ],
)
def test_refusals(call, message, data):
    with pytest.raises(InputError, match=message):
        call(data)
