"""Other libraries' methods as functions from bags to estimates, on scores that are at hand.

Each is called by its fastest public route: posteriors in, no classifier in the way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headcount import Bags

Estimator = Callable[[Bags], np.ndarray]


def loop(aggregate: Callable[[np.ndarray], np.ndarray], pool: np.ndarray) -> Estimator:
    """One call a bag, which is all that the peers offer."""
    return lambda bags: np.array([aggregate(pool[items]) for items in bags])


def quapy(name: str, train: np.ndarray, y: np.ndarray, pool: np.ndarray, **options) -> Estimator:
    """A QuaPy aggregative method, fitted on held-out scores."""
    from quapy.method import aggregative
    from sklearn.linear_model import LogisticRegression

    k = train.shape[1]
    if name == "EMQ" and not options:
        prior = np.bincount(y, minlength=k) / len(y)
        return loop(lambda p: aggregative.EMQ.EM(prior, p)[0], pool)
    # QuaPy wants a fitted classifier even where only scores are aggregated.
    dummy = LogisticRegression().fit(np.repeat(np.eye(k), 3, axis=0), np.repeat(np.arange(k), 3))
    if name == "EMQ":
        options["val_split"] = 5  # it wants one, though scores are given
    elif name not in ("CC", "PCC"):
        options["val_split"] = None
    method = getattr(aggregative, name)(dummy, fit_classifier=False, **options)
    hard = name in ("CC", "ACC")
    if name in ("X", "MAX", "T50", "MS", "MS2"):  # these want one score an item
        train, pool = train[:, 1], pool[:, 1]
    method._check_init_parameters()
    method.aggregation_fit(train.argmax(axis=1) if hard else train, y)
    if hard:
        labels = pool.argmax(axis=1)
        return lambda bags: np.array([method.aggregate(labels[items]) for items in bags])
    return loop(method.aggregate, pool)


def quantificationlib(name: str, train: np.ndarray, y: np.ndarray, pool: np.ndarray) -> Estimator:
    """AC or PAC of quantificationlib, least squares by quadprog."""
    setattr(np, "float", float)  # noqa: B010 - the library was written for numpy below 1.24
    from quantificationlib.baselines import ac

    method = getattr(ac, name)(distance="L2")
    hard = name == "AC"
    method.fit(None, y, predictions_train=train.argmax(axis=1) if hard else train)
    scores = pool.argmax(axis=1) if hard else pool
    return lambda bags: np.array(
        [method.predict(None, predictions_test=scores[items]) for items in bags]
    )


def mlquantify(
    name: str, train: np.ndarray, y: np.ndarray, pool: np.ndarray, **options
) -> Estimator:
    """A method of mlquantify, called with training scores each time, as it wants."""
    import importlib

    homes = ("matching", "counting", "likelihood")
    modules = [importlib.import_module(f"mlquantify.{home}") for home in homes]
    cls = next(getattr(m, name) for m in modules if hasattr(m, name))
    method = cls(**options)
    k = train.shape[1]
    method.classes_ = np.arange(k)

    def aggregate(scores: np.ndarray) -> np.ndarray:
        answer = method.aggregate(scores, train, y)
        return np.array([answer[c] for c in range(k)]) if isinstance(answer, dict) else answer

    return loop(aggregate, pool)


def quantificationlib_matching(
    name: str, train: np.ndarray, y: np.ndarray, pool: np.ndarray, **options
) -> Estimator:
    """A distribution-matching method of quantificationlib."""
    setattr(np, "float", float)  # noqa: B010 - the library was written for numpy below 1.24
    from quantificationlib.multiclass import df, energy, friedman

    cls = next(getattr(m, name) for m in (energy, df, friedman) if hasattr(m, name))
    method = cls(**options)
    method.fit(None, y, predictions_train=train)
    return loop(lambda p: method.predict(None, predictions_test=p), pool)
