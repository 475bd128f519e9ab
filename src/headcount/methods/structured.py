"""Explicit loss minimisation: count the predictions of a classifier trained for a loss."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.kernels.simplex import from_each_against_rest
from headcount.methods.features import FeatureQuantifier
from headcount.scores.structured import StructuredSVM


@dataclass(eq=False, repr=False)
class LossSVM(FeatureQuantifier):
    """Classify and count with a support vector machine that is trained for a loss of the counts.

    SVM(KLD): Esuli and Sebastiani (2015). SVM(NKLD): Esuli and Sebastiani (2014). SVM(Q):
    Barranquero et al. (2015). SVM(AE) and SVM(RAE): Moreo and Sebastiani (2022). More than two
    classes are taken one against the rest.

    Parameters
    ----------
    loss : {'kld', 'nkld', 'q', 'ae', 'rae'}
    C : float, default 1
        The tweet study searches 1e-4 to 1e5.
    tol, max_iter
        As in `StructuredSVM`.
    n_jobs : int, optional

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> LossSVM("q").fit(X[:100], y[:100]).predict(X[:75]).round(2)
    array([0.67, 0.33])
    """

    loss: str = "kld"
    _: KW_ONLY
    C: float = 1.0
    tol: float = 0.1
    max_iter: int = 500
    n_jobs: int | None = None
    takes_sparse: ClassVar[bool] = True

    def learn_features(self, X: Any, codes: Ints) -> None:
        """Train the machine."""
        svm = StructuredSVM(self.loss, C=self.C, tol=self.tol, max_iter=self.max_iter)
        self.classifier_ = svm.fit(X, codes)

    def aggregate_features(self, X: Any, bags: Bags) -> Floats:
        """Count its predictions."""
        values = self.classifier_.decision_function(X)
        called = (values.reshape(len(values), -1) > 0).astype("int8")
        shares = [bags.shares(column, 2, self.n_jobs)[:, 1] for column in called.T]
        return from_each_against_rest(shares)


def SVMKLD(**settings: Any) -> LossSVM:
    """SVM(KLD): `LossSVM` with the loss 'kld'.

    Examples
    --------
    >>> SVMKLD(C=100).loss
    'kld'
    """
    return LossSVM("kld", **settings)


def SVMNKLD(**settings: Any) -> LossSVM:
    """SVM(NKLD): `LossSVM` with the loss 'nkld'."""
    return LossSVM("nkld", **settings)


def SVMQ(**settings: Any) -> LossSVM:
    """SVM(Q): `LossSVM` with the loss 'q'."""
    return LossSVM("q", **settings)


def SVMAE(**settings: Any) -> LossSVM:
    """SVM(AE): `LossSVM` with the loss 'ae'."""
    return LossSVM("ae", **settings)


def SVMRAE(**settings: Any) -> LossSVM:
    """SVM(RAE): `LossSVM` with the loss 'rae'."""
    return LossSVM("rae", **settings)
