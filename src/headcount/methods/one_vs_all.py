"""A quantifier and a classifier of its own for each class against the rest."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from joblib import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from headcount._core import validation as check
from headcount._core.types import Bools, Floats
from headcount.bags import Bags
from headcount.kernels.simplex import from_each_against_rest, rest_columns
from headcount.methods.base import (
    Quantifier,
    check_quantifier_type,
    count_items,
    without_calibration,
)
from headcount.methods.histograms import HDy
from headcount.methods.meta import MetaQuantifier


@dataclass(eq=False, repr=False)
class OneVsAll(MetaQuantifier):
    """A quantifier for each class against the rest, each with its own classifier; normalised.

    Parameters
    ----------
    quantifier : quantifier
        Cloned for every class and fitted on that class against all others.
    n_jobs : int, optional
        Classes handled at once.

    Examples
    --------
    >>> from headcount import HDy
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> OneVsAll(HDy()).fit(X, y).predict(X[:100]).round(1)
    array([0.7, 0.3, 0. ])
    """

    quantifier: Any = None
    _: KW_ONLY
    n_jobs: int | None = None

    def parts(self) -> list[Quantifier]:
        """The quantifier that is cloned for every class."""
        return [HDy() if self.quantifier is None else self.quantifier]

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a clone of the quantifier for every class."""
        array = check.labels(y)
        classes, codes = check.encode(array)
        check.two_or_more(classes)
        check.same_length(count_items(X), array)
        targets = rest_columns(len(classes))
        (base,) = self.parts()
        check_quantifier_type(base)
        self.members_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit)(without_calibration(base), X, codes == c) for c in targets
        )
        self.classes_ = classes
        return self

    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Estimate the prevalences of many bags of the pool `X`: one row per bag."""
        check_is_fitted(self, "classes_")
        shares = [q.predict_bags(X, bags)[:, 1] for q in self.members_]
        return from_each_against_rest(shares)


def _fit(quantifier: Quantifier, X: Any, y: Bools) -> Quantifier:
    return quantifier.fit(X, y)
