"""Fitted classifiers whose logits are added up with weights: a classifier again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from headcount._core.types import Floats
from headcount.scores.calibration import centred, logits_of
from headcount.scores.kinds import score_items


class StackedClassifier(ClassifierMixin, BaseEstimator):
    """Fitted classifiers and the weights that join their logits; `stack` makes them.

    Parameters
    ----------
    members : list of fitted classifiers
    kinds : list of str
        What scores each of them gives.
    blurs : list of float
        How much of each member's posteriors is spread over all classes, because a forest's
        zeros are no certainty.
    weights : array of shape (m, k)
        Of each member's logits, for every class.
    bias : array of shape (k,)
    classes : array of shape (k,)
    """

    def __init__(
        self,
        members: list[Any],
        kinds: list[str],
        blurs: list[float],
        weights: Floats,
        bias: Floats,
        classes: NDArray[Any],
    ):
        self.members = members
        self.kinds = kinds
        self.blurs = blurs
        self.weights = weights
        self.bias = bias
        self.classes = classes

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes, in the order of the scores."""
        return self.classes

    @property
    def n_features_in_(self) -> int:
        """Number of features seen by the first member."""
        return int(self.members[0].n_features_in_)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> Floats:
        """Posteriors of items."""
        several = [
            score_items(member, X, self.classes, kind)
            for member, kind in zip(self.members, self.kinds, strict=True)
        ]
        return self.join(several)

    def predict(self, X: Any) -> NDArray[Any]:
        """Likeliest class of every item."""
        return np.asarray(self.classes[self.predict_proba(X).argmax(axis=1)])

    def join(self, scores: Sequence[Floats]) -> Floats:
        """Posteriors from the scores that the members gave."""
        logits = [
            blurred_logits(raw, kind, blur)
            for raw, kind, blur in zip(scores, self.kinds, self.blurs, strict=True)
        ]
        return np.asarray(softmax(add_logits(logits, self.weights, self.bias), axis=1))


def blurred_logits(raw: Floats, kind: str, blur: float) -> Floats:
    """Logits with a mean of 0 over the classes, of posteriors of which `blur` is spread evenly."""
    if kind == "decision":
        return centred(raw)
    return centred(logits_of((1 - blur) * raw + blur / raw.shape[1], "posterior"))


def add_logits(logits: Sequence[Floats], weights: Floats, bias: Floats) -> Floats:
    """Sum of the members' logits, each with its weight for every class, and the bias."""
    return np.asarray(sum(z * w for z, w in zip(logits, weights, strict=True)) + bias)
