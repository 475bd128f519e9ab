"""Explicit loss minimisation: count the predictions of a classifier trained for a loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.kernels.simplex import from_each_against_rest
from headcount.methods.features import FeatureQuantifier
from headcount.scores.structured import StructuredSVM


class _StructuredCount(FeatureQuantifier):
    """Classify and count with a `StructuredSVM`; one class against the rest beyond two."""

    _sparse = True
    _loss = "kld"

    def __init__(
        self,
        *,
        C: float = 1.0,
        tol: float = 0.1,
        max_iter: int = 500,
        n_jobs: int | None = None,
    ):
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _learn_features(self, X: Any, codes: Ints) -> None:
        svm = StructuredSVM(self._loss, C=self.C, tol=self.tol, max_iter=self.max_iter)
        self.classifier_ = svm.fit(X, codes)

    def _estimate_features(self, X: Any, bags: Bags) -> Floats:
        values = self.classifier_.decision_function(X)
        called = (values.reshape(len(values), -1) > 0).astype(np.int8)
        shares = [bags.shares(column, 2, self.n_jobs)[:, 1] for column in called.T]
        return from_each_against_rest(shares)


class SVMKLD(_StructuredCount):
    """SVM(KLD): count predictions of a machine trained for KLD. Esuli and Sebastiani (2015).

    Parameters
    ----------
    C : float, default 1
        The tweet study searches 1e-4 to 1e5.
    tol, max_iter
        As in `StructuredSVM`.
    n_jobs : int, optional

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> SVMKLD(C=100).fit(X[:100], y[:100]).predict(X[:75]).round(2)
    array([0.67, 0.33])
    """


class SVMNKLD(_StructuredCount):
    """SVM(NKLD): count predictions of a machine trained for NKLD. Esuli and Sebastiani (2014).

    Parameters
    ----------
    C, tol, max_iter, n_jobs
        As in `SVMKLD`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> SVMNKLD().fit(X[:100], y[:100]).predict(X[:75]).round(2)
    array([0.67, 0.33])
    """

    _loss = "nkld"


class SVMQ(_StructuredCount):
    """SVM(Q): count predictions of a machine trained for Q. Barranquero et al. (2015).

    Parameters
    ----------
    C, tol, max_iter, n_jobs
        As in `SVMKLD`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> SVMQ().fit(X[:100], y[:100]).predict(X[:75]).round(2)
    array([0.67, 0.33])
    """

    _loss = "q"


class SVMAE(_StructuredCount):
    """SVM(AE): count predictions of a machine trained for AE. Moreo and Sebastiani (2022).

    Parameters
    ----------
    C, tol, max_iter, n_jobs
        As in `SVMKLD`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> SVMAE().fit(X[:100], y[:100]).predict(X[:75]).round(2)
    array([0.67, 0.33])
    """

    _loss = "ae"


class SVMRAE(_StructuredCount):
    """SVM(RAE): count predictions of a machine trained for RAE. Moreo and Sebastiani (2022).

    Parameters
    ----------
    C, tol, max_iter, n_jobs
        As in `SVMKLD`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> SVMRAE().fit(X[:100], y[:100]).predict(X[:75]).round(2)
    array([0.67, 0.33])
    """

    _loss = "rae"
