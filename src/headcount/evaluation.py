"""Score quantifiers on bags with known prevalences; one classifier pass serves many methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from headcount._core.frame import Frame
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.measures import Measure, measure
from headcount.measures import measures as parse_measures
from headcount.methods.base import Quantifier, without_calibration
from headcount.methods.sharing import SharedPasses

Specs = str | Measure | Iterable[str | Measure]


def evaluate(quantifier: Quantifier, X: Any, bags: Bags, measures: Specs = ("ae", "rae")) -> Frame:
    """Estimate every bag with a fitted quantifier and compare with the truth.

    Parameters
    ----------
    quantifier : fitted quantifier
    X : items
        The pool that the bags refer to.
    bags : Bags
        With true prevalences.
    measures : str, Measure or several
        Such as ``["ae", "rae"]``.

    Returns
    -------
    Frame
        A row a bag: its id and size, ``true:c`` and ``estimate:c`` for each class, the errors. A
        measure over all bags, such as carc, stands in every row.

    Examples
    --------
    >>> from headcount import SLD, UniformPrevalence
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> from sklearn.naive_bayes import GaussianNB
    >>> sld = SLD(GaussianNB(), calibrator="bcts", random_state=0).fit(X[::2], y[::2])
    >>> bags = UniformPrevalence(n_bags=100, size=50, random_state=0).draw(y[1::2])
    >>> result = evaluate(sld, X[1::2], bags, measures=["ae", "rae"])
    >>> result.columns
    ['bag', 'size', 'true:0', 'true:1', 'estimate:0', 'estimate:1', 'ae', 'rae']
    >>> bool(result["ae"].mean() < 0.05)
    True
    """
    return score_estimates(quantifier.predict_bags(X, bags), bags, measures, quantifier.classes_)


def evaluate_many(
    quantifiers: Mapping[str, Quantifier],
    X: Any,
    y: Any,
    pool: Any,
    bags: Bags,
    measures: Specs = ("ae", "rae"),
    *,
    progress: Callable[[str], None] | None = None,
) -> Frame:
    """Fit several quantifiers on (X, y) and evaluate each on the bags of `pool`.

    Quantifiers with the same classifier settings, folds and seed share one classifier pass: it
    is fitted, cross-fitted and applied to the pool once. Those given are cloned, not fitted; the
    clones do not calibrate the width of intervals.

    Parameters
    ----------
    quantifiers : mapping of name to quantifier
    X, y : labelled items
    pool : items that the bags refer to
    bags : Bags with true prevalences
    measures : str, Measure or several
    progress : callable, optional
        Called with the name of each quantifier when it is done.

    Returns
    -------
    Frame
        As `evaluate`, with a column ``method`` in front.
    """
    if not quantifiers:
        raise InputError("no quantifiers to evaluate.")
    wanted = parse_measures(measures)
    clones = {name: without_calibration(q) for name, q in quantifiers.items()}
    shared = SharedPasses(list(clones.values()), X, y)
    parts = []
    for name, q in clones.items():
        estimates = shared.predict_bags(shared.fit(q), pool, bags)
        part = score_estimates(estimates, bags, wanted, q.classes_)
        parts.append({"method": np.full(len(bags), name), **part.to_dict()})
        if progress is not None:
            progress(name)
    joined = {c: np.concatenate([part[c] for part in parts]) for c in parts[0]}
    return Frame(joined)


def score_estimates(
    estimates: Floats, bags: Bags, specs: Specs, classes: NDArray[Any] | None = None
) -> Frame:
    """Tidy frame of truth, estimates and errors for estimates that are at hand."""
    truth, names = aligned_truth(bags, classes)
    columns: dict[str, NDArray[Any]] = {"bag": bags.ids, "size": bags.sizes}
    columns |= {f"true:{c}": truth[:, j] for j, c in enumerate(names)}
    columns |= {f"estimate:{c}": estimates[:, j] for j, c in enumerate(names)}
    for each in parse_measures(specs):
        value = each(truth, estimates, sizes=bags.sizes)
        columns[str(each)] = np.full(len(bags), value) if each.over_bags else value
    return Frame(columns)


def aligned_truth(bags: Bags, classes: NDArray[Any] | None) -> tuple[Floats, list[Any]]:
    """Give the true prevalences with a column for each of the quantifier's classes, in order."""
    if bags.prevalence is None:
        raise InputError(
            "the bags have no true prevalences to compare with: draw them with a protocol, or "
            "add them by bags.with_truth(y)."
        )
    if classes is None:
        known = np.arange(bags.prevalence.shape[1]) if bags.classes is None else bags.classes
        return bags.prevalence, known.tolist()
    order = classes.tolist()
    if bags.classes is None:
        if len(order) != bags.prevalence.shape[1]:
            raise InputError(
                f"the bags have prevalences of {bags.prevalence.shape[1]} classes and the "
                f"quantifier knows {len(order)}."
            )
        return bags.prevalence, order
    truth = np.zeros((len(bags), len(order)))
    for j, name in enumerate(bags.classes.tolist()):
        if name in order:
            truth[:, order.index(name)] = bags.prevalence[:, j]
        elif bags.prevalence[:, j].any():
            raise InputError(
                f"unseen class: the bags hold items of class {name!r}, and the quantifier was "
                f"trained on {order}. Train with items of it, or leave them out of the bags."
            )
    return truth, order


def leaderboard(frame: Frame, by: str = "method") -> Frame:
    """Mean of every measure for each method, with its rank; sorted by the last measure.

    Examples
    --------
    >>> leaderboard(Frame({"method": ["CC", "CC", "SLD"], "ae": [0.3, 0.1, 0.05]}))
    method     ae  rank(ae)
    SLD     0.050         1
    CC      0.200         2
    """
    known = {by, "bag", "size", "dataset"}
    names = [c for c in frame if c not in known and not c.startswith(("true:", "estimate:"))]
    if not names:
        raise InputError(f"the frame has no measures to rank by, only {frame.columns}.")
    means = frame.mean_by(by, names)
    columns: dict[str, NDArray[Any]] = {by: means[by]}
    for name in names:
        columns[name] = means[name]
        columns[f"rank({name})"] = _ranks(name, means[name])
    return Frame(columns).rows(np.argsort(columns[f"rank({names[-1]})"], kind="stable"))


def _ranks(name: str, means: Floats) -> Ints:
    """Rank 1 is best; undefined is last."""
    return np.asarray(rankdata(measure(name).badness(means), method="min"), dtype=np.int64)
