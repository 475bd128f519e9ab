"""A classifier of BM25 term weights: what a search engine would say about classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.validation import check_is_fitted

from headcount._core import validation as check
from headcount._core.types import Floats
from headcount.text.documents import some


class BM25Classifier(ClassifierMixin, BaseEstimator):
    """Score each class by BM25, the Robertson and Spärck Jones weight of a term being its class's.

    The score of class c for document x is the sum over its terms t of

        tf (k1 + 1) / (tf + k1 (1 - b + b |x| / average)) * w(t, c),

        w(t, c) = log((r + .5) (N - n - R + r + .5) / ((n - r + .5) (R - r + .5)))

    where R of the N training documents are of class c, n have t, and r are both. Posteriors are
    the softmax of scores and log priors. It is the classifier of UniPadova's run at LeQua 2022.

    Parameters
    ----------
    k1 : float, default 1.2
    b : float, default 0.75
    min_df : int, default 1
        Training documents that a term must occur in.

    Examples
    --------
    >>> model = BM25Classifier().fit(["good day", "good film", "bad day"], ["+", "+", "-"])
    >>> model.predict(["a good one", "so bad"]).tolist()
    ['+', '-']
    """

    def __init__(self, *, k1: float = 1.2, b: float = 0.75, min_df: int = 1):
        self.k1 = k1
        self.b = b
        self.min_df = min_df

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the weight of every term for every class."""
        check.at_least("k1", self.k1, 0.0)
        check.at_least("b", self.b, 0.0, 1.0)
        texts = some(X)
        labels = check.labels(y)
        check.same_length(len(texts), labels)
        self.classes_, codes = check.encode(labels)
        check.two_or_more(self.classes_)
        self._counter = CountVectorizer(min_df=self.min_df, token_pattern=r"(?u)\b\w+\b")
        counts = self._counter.fit_transform(texts)
        k, n_docs = len(self.classes_), len(texts)
        self._average = float(counts.sum(axis=1).mean())
        present = (counts > 0).astype(np.float64)
        of_class = np.bincount(codes, minlength=k).astype(np.float64)[:, None]
        member = (codes == np.arange(k)[:, None]).astype(np.float64)
        both = np.asarray(present.T @ member.T).T
        having = both.sum(axis=0)
        self.weights_ = np.log(
            (both + 0.5)
            * (n_docs - having - of_class + both + 0.5)
            / ((having - both + 0.5) * (of_class - both + 0.5))
        )
        self.class_log_prior_ = np.log(of_class[:, 0] / n_docs)
        return self

    def decision_function(self, X: Any) -> Floats:
        """BM25 score of every class, without the prior; two classes give one column."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Floats:
        """Posteriors: softmax of scores and log priors."""
        return np.asarray(softmax(self._scores(X) + self.class_log_prior_, axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """Class with the largest posterior."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self, "weights_")
        counts = self._counter.transform(some(X)).astype(np.float64)
        length = np.asarray(counts.sum(axis=1)).ravel()
        saturation = self.k1 * (1 - self.b + self.b * length / max(self._average, 1e-12))
        per = np.repeat(saturation, np.diff(counts.indptr))
        counts.data = counts.data * (self.k1 + 1) / (counts.data + per)
        return np.asarray(counts @ self.weights_.T)
