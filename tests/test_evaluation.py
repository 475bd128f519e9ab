import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from headcount import (
    ACC,
    CC,
    MLPE,
    PACC,
    PCC,
    SLD,
    Bags,
    Frame,
    InputError,
    UniformPrevalence,
    evaluate,
    evaluate_many,
    leaderboard,
    measure,
)
from headcount.testing.quantifiers import make_items


class Counting(LogisticRegression):
    """A classifier that counts how often it is fitted and applied, by anyone."""

    fits = applied = 0

    def fit(self, X, y):
        Counting.fits += 1
        return super().fit(X, y)

    def predict_proba(self, X):
        Counting.applied += len(X)
        return super().predict_proba(X)


@pytest.fixture(scope="module")
def problem():
    X, y = make_items(3, n=400)
    pool, y_pool = make_items(3, n=2000, seed=4)
    bags = UniformPrevalence(n_bags=40, size=100, random_state=0).draw(y_pool)
    return X, y, pool, bags


def test_evaluate_gives_truth_estimates_and_errors(problem):
    X, y, pool, bags = problem
    q = SLD().fit(X, y)
    frame = evaluate(q, pool, bags, ["ae", "rae", "carc"])
    estimates = np.column_stack([frame[f"estimate:{c}"] for c in range(3)])
    np.testing.assert_allclose(estimates, q.predict_bags(pool, bags))
    np.testing.assert_allclose(frame["ae"], measure("ae")(bags.prevalence, estimates))
    assert np.ptp(frame["carc"]) == 0
    assert frame.n_rows == 40


def test_evaluate_many_fits_and_applies_each_distinct_classifier_once(problem):
    X, y, pool, bags = problem
    Counting.fits = Counting.applied = 0
    methods = {
        "MLPE": MLPE(),
        "CC": CC(Counting()),
        "PCC": PCC(Counting()),
        "ACC": ACC(Counting()),
        "PACC": PACC(Counting()),
        "SLD": SLD(Counting()),
        "SLD-BCTS": SLD(Counting(), calibrator="bcts"),
    }
    frame = evaluate_many(methods, X, y, pool, bags)
    assert Counting.fits == 1 + 5  # everything, and five folds
    # Held-out folds, the pool by each classifier, and a look whether predictions are the
    # best-scored classes.
    assert Counting.applied == len(X) + 6 * len(pool) + min(500, len(X))
    assert not hasattr(methods["SLD"], "classes_"), "the user's quantifier was fitted"
    for name, q in methods.items():
        alone = evaluate(q.fit(X, y), pool, bags)["rae"]
        np.testing.assert_allclose(frame["rae"][frame["method"] == name], alone)


def test_evaluate_many_keeps_different_classifiers_apart(problem):
    X, y, pool, bags = problem
    Counting.fits = 0
    evaluate_many({"a": PCC(Counting()), "b": PCC(Counting(C=1e-4))}, X, y, pool, bags)
    assert Counting.fits == 2


def test_classes_are_aligned_by_name():
    X, y = make_items(2)
    names = np.array(["a", "b"])[y]
    q = PCC().fit(X, names)
    turned = Bags.from_groups(y).with_truth(names, classes=["b", "a"])
    frame = evaluate(q, X, turned, "ae")
    np.testing.assert_allclose(frame["true:a"], [1, 0])


def test_a_class_that_training_lacks_is_an_error():
    X, y = make_items(3)
    seen = y < 2
    q = PCC().fit(X[seen], y[seen])
    with pytest.raises(InputError, match="unseen class: the bags hold items of class 2"):
        evaluate(q, X, UniformPrevalence(n_bags=3).draw(y))
    only_seen = Bags.from_lists([np.flatnonzero(seen)], len(y)).with_truth(y)
    assert evaluate(q, X, only_seen, "ae")["ae"][0] < 0.1


def test_bags_without_truth_are_refused():
    X, y = make_items(2)
    with pytest.raises(InputError, match="no true prevalences"):
        evaluate(PCC().fit(X, y), X, Bags.from_groups(y))
    with pytest.raises(InputError, match="no quantifiers"):
        evaluate_many({}, X, y, X, Bags.from_groups(y))


def test_leaderboard_ranks():
    frame = Frame(
        {"method": ["a", "b", "a", "b"], "ae": [1.0, 2, 3, 1], "carc": [0.1, 0.9, 0.1, 0.9]}
    )
    board = leaderboard(frame)
    assert board["method"].tolist() == ["b", "a"]
    assert board["ae"].tolist() == [1.5, 2.0]
    assert board["rank(carc)"].tolist() == [1, 2]


def test_frames_convert_without_loss():
    frame = Frame({"method": ["a", "b"], "n": [1, 2], "ae": [0.5, 0.25]})
    for table in (frame.to_pandas(), frame.to_polars(), frame.to_arrow().to_pandas()):
        assert list(table.columns) == ["method", "n", "ae"]
        assert table["ae"].to_list() == [0.5, 0.25]
        assert table["method"].to_list() == ["a", "b"]
    import pyarrow as pa

    assert pa.table(frame).column_names == frame.columns
    with pytest.raises(InputError, match="Did you mean 'ae'"):
        frame["aee"]
    with pytest.raises(InputError, match="equally long"):
        Frame({"a": [1], "b": [1, 2]})
    assert "2 more rows" in repr(Frame({"x": np.arange(22)}))
