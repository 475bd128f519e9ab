"""Structured output learning: linear classifiers trained for a quantification loss.

One-slack cutting planes (Joachims, Finley and Yu, 2009) with exact separation oracles, on dense
or sparse input, with no external binary.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from headcount._core import validation as check
from headcount._core.convergence import ConvergenceWarning
from headcount._core.types import Bools, Floats
from headcount.exceptions import choose
from headcount.kernels.simplex import quadratic, rest_columns

LOSSES = ["kld", "nkld", "q", "ae", "rae"]


class StructuredSVM(ClassifierMixin, BaseEstimator):
    """Linear support vector machine for a loss of the whole training set.

    Minimises |w|^2 / 2 + C xi such that no other labelling of the training set is preferred by
    more than its loss, in percent points, allows. Joachims (2005); for quantification losses
    Esuli and Sebastiani (2015), Barranquero, Diez and del Coz (2015), Moreo and Sebastiani (2022).

    Parameters
    ----------
    loss : {'kld', 'nkld', 'q', 'ae', 'rae'}
    C : float, default 1
        KLD is not in percent, as is customary, and wants a C some hundred times larger.
    beta : float, default 1
        Weight of recall in the loss 'q'.
    tol : float, default 0.1
        How far, in percent points, the last plane may be violated.
    max_iter : int, default 500

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> StructuredSVM("ae").fit(X, y).predict(X).mean().round(2), y.mean().round(2)
    (np.float64(0.63), np.float64(0.63))
    """

    def __init__(
        self,
        loss: str = "kld",
        *,
        C: float = 1.0,
        beta: float = 1.0,
        tol: float = 0.1,
        max_iter: int = 500,
    ):
        self.loss = loss
        self.C = C
        self.beta = beta
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the weights; with more than two classes, one against the rest for each."""
        choose("loss", self.loss, LOSSES)
        check.at_least("C", self.C, 1e-12)
        check.at_least("beta", self.beta, 1e-6)
        check.at_least("tol", self.tol, 0)
        check.whole("max_iter", self.max_iter)
        array = check.labels(y)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        check.same_length(X.shape[0], array)
        self.classes_, codes = check.encode(array)
        check.two_or_more(self.classes_)
        targets = rest_columns(len(self.classes_))
        self.coef_ = np.vstack([self._fit_one(_with_constant(X), codes == c) for c in targets])
        return self

    def decision_function(self, X: Any) -> Floats:
        """Distance from the plane: one column for two classes, else one a class."""
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        values = np.asarray(_with_constant(X) @ self.coef_.T)
        return values[:, 0] if len(self.coef_) == 1 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted class of each item."""
        values = self.decision_function(X)
        codes = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def _fit_one(self, X: Any, positive: Bools) -> Floats:
        n = len(positive)
        signs = np.where(positive, 1.0, -1.0)
        w = np.zeros(X.shape[1])
        planes, losses = [np.zeros_like(w)], [0.0]  # no labelling at all: the slack's own plane
        for _ in range(self.max_iter):
            other, loss = separate(np.asarray(X @ w).ravel(), positive, self.loss, self.beta)
            plane = np.asarray((signs - np.where(other, 1.0, -1.0)) @ X).ravel() * (50 / n)
            slack = max(d - g @ w for d, g in zip(losses, planes, strict=True))
            if loss - plane @ w <= slack + self.tol:
                return w
            planes.append(plane)
            losses.append(loss)
            table = np.array(planes)
            gram = table @ table.T
            scale = np.trace(gram) / len(gram)
            gram += scale + 1e-10 * scale * np.eye(len(gram))  # constant on the simplex
            share = quadratic(gram, np.array(losses)[None] / self.C + scale)[0]
            w = self.C * (share @ table)
        warnings.warn(
            f"StructuredSVM({self.loss!r}, C={self.C:g}) was stopped after max_iter="
            f"{self.max_iter} planes. Raise it or tol, or lower C.",
            ConvergenceWarning,
            stacklevel=3,
        )
        return w

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def separate(scores: Floats, positive: Bools, loss: str, beta: float = 1.0) -> tuple[Bools, float]:
    """Labelling that maximises its loss plus its score, and that loss.

    Losses of the counts alone depend on how many items are called positive, and for each number
    the best ones are the top scores: one sort. Q depends on true and false positives, both taken
    from the top of their class: all pairs, without storing them.
    """
    n, n_pos = len(positive), int(positive.sum())
    n_neg = n - n_pos
    if loss == "q":
        from headcount.kernels.compiled.oracle import best_pair

        pos, neg = np.flatnonzero(positive), np.flatnonzero(~positive)
        pos, neg = pos[np.argsort(-scores[pos])], neg[np.argsort(-scores[neg])]
        a, b = best_pair(_gains(scores[pos], n), _gains(scores[neg], n), beta)
        called = np.zeros(n, dtype=bool)
        called[pos[:a]] = called[neg[:b]] = True
        return called, q_loss(a, b, n_pos, n_neg, beta)
    order = np.argsort(-scores, kind="stable")
    losses = count_losses(np.arange(n + 1), n_pos, n_neg, loss)
    best = int(np.argmax(losses + _gains(scores[order], n)))
    called = np.zeros(n, dtype=bool)
    called[order[:best]] = True
    return called, float(losses[best])


def count_losses(called: NDArray[Any], n_pos: int, n_neg: int, loss: str) -> Floats:
    """Loss of calling so many items positive when n_pos are; in percent, but for KLD."""
    n = n_pos + n_neg
    off = np.abs(called - n_pos)
    if loss == "ae":
        return np.asarray(100 * off / n)
    if loss == "rae":
        return np.asarray(50 * (off / (n_pos + 0.5) + off / (n_neg + 0.5)))
    p, q = (n_pos + 0.5) / (n + 1), (called + 0.5) / (n + 1)
    kld = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    return np.asarray(kld if loss == "kld" else 100 - 200 / (1 + np.exp(kld)))


def q_loss(a: int, b: int, n_pos: int, n_neg: int, beta: float) -> float:
    """One minus Q, in percent, for a true and b false positives."""
    recall = a / n_pos
    agreement = 1 - abs(n_pos - a - b) / max(n_pos, n_neg)
    below = beta**2 * recall + agreement
    return 100 * (1 - ((1 + beta**2) * agreement * recall / below if below > 0 else 0.0))


def _gains(ordered: Floats, n: int) -> Floats:
    """Score of calling the first j items positive and the rest negative, for every j."""
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    return np.asarray((50 / n) * (2 * sums - sums[-1]))


def _with_constant(X: Any) -> Any:
    ones = np.ones((X.shape[0], 1))
    return sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])
