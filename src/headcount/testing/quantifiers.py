"""Checks that every quantifier must pass, whatever its labels, containers and settings."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import HeadcountWarning
from headcount.methods.base import Quantifier
from headcount.methods.scored import ScoreQuantifier


def check_quantifier(quantifier: Quantifier, *, n_classes: int = 2) -> None:
    """Run every check on clones of `quantifier`; the first failure raises AssertionError.

    Parameters
    ----------
    quantifier : unfitted quantifier
    n_classes : int
        Number of classes of the made-up data.
    """
    for check in QUANTIFIER_CHECKS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HeadcountWarning)
            check(clone(quantifier), n_classes)


def make_items(n_classes: int, n: int = 240, seed: int = 0) -> tuple[Floats, Ints]:
    """Overlapping Gaussian classes with unequal shares; every class is present."""
    rng = np.random.default_rng(seed)
    share = np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum()
    y = np.concatenate([np.repeat(np.arange(n_classes), 8), rng.choice(n_classes, n, p=share)])
    centres = 2.0 * np.eye(n_classes, max(4, n_classes))
    return centres[y] + rng.normal(size=(len(y), centres.shape[1])), y


def _bags(y: NDArray[Any]) -> Bags:
    rng = np.random.default_rng(1)
    sizes = [1, 2, 7, 30, 65, 130]
    return Bags.from_lists([rng.integers(0, len(y), size) for size in sizes], len(y))


def _simplex(p: Any, shape: tuple[int, ...]) -> None:
    p = np.asarray(p)
    assert p.shape == shape, f"estimates have shape {p.shape}, expected {shape}"
    assert np.isfinite(p).all(), "estimates hold NaN or infinity"
    assert p.min() >= 0, "an estimate is negative"
    np.testing.assert_allclose(p.sum(axis=-1), 1, atol=1e-9, err_msg="off the simplex")


def global_state() -> bytes:
    """State of numpy's global generator, which nobody may touch."""
    return pickle.dumps(np.random.get_state())  # noqa: NPY002


@contextmanager
def _refuses(what: str, *patterns: str) -> Iterator[None]:
    """The block must raise a ValueError whose message matches one of the patterns."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        if patterns and not any(re.search(p, text, re.IGNORECASE) for p in patterns):
            raise AssertionError(f"{what}: unclear message {text!r}") from error
    else:
        raise AssertionError(f"{what} was accepted")


def _check_estimates(q: Quantifier, k: int) -> None:
    """A set gives a point of the simplex; bags give the same, a row each."""
    X, y = make_items(k)
    bags = _bags(y)
    q.fit(X, y)
    _simplex(q.predict(X), (k,))
    table = q.predict_bags(X, bags)
    _simplex(table, (len(bags), k))
    for s in (1, 4):
        np.testing.assert_allclose(table[s], q.predict(X[bags.items(s)]), atol=1e-6)


def _check_any_labels(q: Quantifier, k: int) -> None:
    """Strings, negative, gapped and boolean labels give the estimates of 0..k-1."""
    X, y = make_items(k)
    reference = clone(q).fit(X, y).predict(X)
    namings: list[NDArray[Any]] = [
        np.array([f"class {chr(97 + c)}" for c in range(k)]),
        np.arange(k) - k // 2,
        np.arange(k) * 10 + 1,
        np.arange(k, dtype=float),
        np.array([f"class {chr(97 + c)}" for c in range(k)], dtype=object),
    ]
    if k == 2:
        namings += [np.array([-1, 1]), np.array([1, 2]), np.array([False, True])]
    for names in namings:
        fitted = clone(q).fit(X, names[y])
        assert fitted.classes_.tolist() == names.tolist(), f"classes_ are {fitted.classes_}"
        np.testing.assert_allclose(fitted.predict(X), reference, atol=1e-9)


def _check_containers(q: Quantifier, k: int) -> None:
    """Data frames, sparse matrices, lists and read-only arrays give the same estimates."""
    X, y = make_items(k)
    reference = clone(q).fit(X, y).predict(X)
    frozen = X.copy()
    frozen.setflags(write=False)
    labels = y.copy()
    labels.setflags(write=False)
    inputs: list[tuple[Any, Any]] = [(frozen, labels), (X.tolist(), y.tolist())]
    if get_tags(q).input_tags.sparse:
        inputs.append((sparse.csr_array(X), y))
    names = [f"f{j}" for j in range(X.shape[1])]
    for library in ("pandas", "polars"):
        try:
            module = __import__(library)
        except ImportError:
            continue
        frame = module.DataFrame(dict(zip(names, X.T, strict=True)))
        inputs.append((frame, module.Series(y)))
    for items, labels_ in inputs:
        estimate = clone(q).fit(items, labels_).predict(items)
        np.testing.assert_allclose(estimate, reference, atol=1e-5)


def _check_repeatable(q: Quantifier, k: int) -> None:
    """Two fits agree to the byte, for any n_jobs, and leave numpy's global generator alone."""
    X, y = make_items(k)
    bags = _bags(y)
    before = global_state()
    first = clone(q).fit(X, y).predict_bags(X, bags)
    assert global_state() == before, "the global generator was used"
    np.testing.assert_array_equal(clone(q).fit(X, y).predict_bags(X, bags), first)
    if "n_jobs" in q.get_params():
        parallel = clone(q).set_params(n_jobs=2).fit(X, y).predict_bags(X, bags)
        np.testing.assert_array_equal(parallel, first)


def _check_lifecycle(q: Quantifier, k: int) -> None:
    """`fit` returns self and keeps the settings; clone, repr and pickle work; refitting too."""
    X, y = make_items(k)
    settings = repr(q)
    assert type(q).__name__ in settings
    try:
        q.predict(X)
    except NotFittedError:
        pass
    else:
        raise AssertionError("an unfitted quantifier predicts")
    assert q.fit(X, y) is q, "fit does not return self"
    assert repr(clone(q)) == settings, "fit changed a setting"
    estimate = q.predict(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(q)).predict(X), estimate)
    assert not hasattr(clone(q), "classes_"), "a clone is fitted"
    X2, y2 = make_items(k + 1, seed=3)
    _simplex(q.fit(X2, y2).predict(X2), (k + 1,))


def _check_user_classifier(q: Quantifier, k: int) -> None:
    """The user's classifier is never fitted in place; a frozen one is used as it is."""
    if "classifier" not in q.get_params():
        return
    X, y = make_items(k)
    mine = LogisticRegression()
    q.set_params(classifier=mine).fit(X, y)
    assert not hasattr(mine, "coef_"), "the user's classifier was fitted in place"
    fitted = LogisticRegression().fit(X[::2], y[::2])
    before = fitted.coef_.copy()
    frozen = clone(q).set_params(classifier=FrozenEstimator(fitted)).fit(X[1::2], y[1::2])
    _simplex(frozen.predict(X), (k,))
    np.testing.assert_array_equal(fitted.coef_, before)


def _check_hard_posteriors(q: Quantifier, k: int) -> None:
    """Posteriors of exactly 0 and 1, as a forest gives, lead to no NaN."""
    X, y = make_items(k)
    if "classifier" in q.get_params():
        q.set_params(classifier=RandomForestClassifier(3, random_state=0))
    q.fit(X, y)
    _simplex(q.predict_bags(X, _bags(y)), (6, k))
    _simplex(q.predict(X[y == 0]), (k,))


def _check_scores(q: Quantifier, k: int) -> None:
    """Score-first twins: the same contract on posteriors that come from elsewhere."""
    if not isinstance(q, ScoreQuantifier):
        return
    X, y = make_items(k)
    posterior = LogisticRegression().fit(X, y).predict_proba(X)
    bags = _bags(y)
    q.fit_scores(posterior, y)
    _simplex(q.predict_scores(posterior), (k,))
    _simplex(q.predict_scores(posterior, bags), (len(bags), k))
    _simplex(q.predict_scores(np.eye(k)[y], bags), (len(bags), k))
    with _refuses("NaN in scores", "NaN"):
        q.predict_scores(np.where(y[:, None] == 0, np.nan, posterior))
    with _refuses("a missing column", "columns"):
        q.predict_scores(np.column_stack([posterior, posterior]))
    with _refuses("bags of another pool", "pool"):
        q.predict_scores(posterior[:-1], bags)
    with _refuses("rows and labels that differ", "inconsistent"):
        q.fit_scores(posterior, y[:-1])
    if q.method_tags().scores == "posteriors" and q.calibrator is None:
        with _refuses("posteriors that do not sum to one", "sum"):
            q.fit_scores(posterior * 2, y)
        with _refuses("posteriors that do not sum to one", "sum"):
            q.fit_scores(posterior, y).predict_scores(posterior * 2)


def _check_bad_input(q: Quantifier, k: int) -> None:
    """Each of the usual mistakes meets an error that names it."""
    X, y = make_items(k)
    with _refuses("one class only", "one class"):
        clone(q).fit(X, np.zeros(len(y)))
    with _refuses("missing labels", "missing|NaN"):
        clone(q).fit(X, np.where(y == 0, np.nan, y))
    if not q.method_tags().ignores_items:
        broken = X.copy()
        broken[3, 0] = np.nan
        with _refuses("NaN in an item", "NaN"):
            clone(q).fit(broken, y)
        with _refuses("NaN in an item to estimate", "NaN"):
            clone(q).fit(X, y).predict(broken)
    with _refuses("no labels", "None"):
        clone(q).fit(X, None)
    with _refuses("rows and labels that differ", "inconsistent"):
        clone(q).fit(X, y[:-1])
    q.fit(X, y)
    with _refuses("an empty set", "empty|0 sample"):
        q.predict(X[:0])
    with _refuses("bags of another pool", "pool"):
        q.predict_bags(X[:-1], _bags(y))
    with _refuses("a feature too few", "features"):
        q.predict(X[:, :-1])
    with _refuses("a misspelt parameter", "Invalid parameter 'clasifier'"):
        q.set_params(clasifier=None)


QUANTIFIER_CHECKS: list[Callable[[Quantifier, int], None]] = [
    _check_estimates,
    _check_any_labels,
    _check_containers,
    _check_repeatable,
    _check_lifecycle,
    _check_user_classifier,
    _check_hard_posteriors,
    _check_scores,
    _check_bad_input,
]
