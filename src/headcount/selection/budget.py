"""The budget of automatic selection, in units of work that are computed and never measured.

One unit is about one second of one core of a 2024 server. Costs follow from the numbers of items,
features, classes, folds and bags alone: the same data gives the same model on any machine. The
rates were measured by ``python benchmarks/selection_cost.py``, to a factor of about two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.naive_bayes import ComplementNB
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples

from headcount.methods.density import KDEyML
from headcount.scores.sources import Source, is_text
from headcount.text.tfidf import TfIdf
from headcount.text.words import MeanVectors


@dataclass
class Budget:
    """Units of work that may be done, and that have been done; these may be more."""

    total: float
    spent: float = 0.0

    @property
    def left(self) -> float:
        """Units of work that may still be done."""
        return self.total - self.spent

    def affords(self, cost: float) -> bool:
        """Whether work of this cost still fits."""
        return cost <= self.left


@dataclass(frozen=True)
class Size:
    """Numbers of items and classes, and numbers per item: of non-zeros, or of characters."""

    items: int
    width: float
    classes: int

    @classmethod
    def of(cls, X: Any, n_classes: int) -> Size:
        """Size of the problem of telling classes apart by `X`."""
        n = _num_samples(X)
        if sparse.issparse(X):
            return cls(n, X.nnz / max(n, 1), n_classes)
        if is_text(X):
            return cls(n, sum(len(str(text)) for text in X) / n, n_classes)
        shape = np.shape(X)
        return cls(n, shape[1] if len(shape) > 1 else 1, n_classes)


def cross_fit_cost(source: Source, size: Size, n_folds: int) -> float:
    """Units of work to cross-fit all classifiers of a source."""
    once, width = _prepare([source.once], size.width)
    front, width = _prepare([source.front], width)
    heads = [head for family in source.families.values() for head in family.values()]
    learned_from = size.items * (1 - 1 / n_folds)
    fits = sum(_fit_cost(head, learned_from, width, size.classes) for head in heads)
    return once * size.items + n_folds * (front * size.items + fits)


def stack_cost(n_members: int, size: Size) -> float:
    """Units of work to join the scores of several classifiers."""
    return 3e-5 * n_members * size.items * size.classes


def trial_cost(quantifier: Any, size: Size, n_bag_items: int) -> float:
    """Units of work to fit a method to held-out scores and to estimate bags.

    The rates are those of `BayesQuantifier`, the most expensive method, except that kernel density
    estimates grow with the square of the number of items.
    """
    kernels = 2e-10 * size.items**2 if isinstance(quantifier, KDEyML) else 0.0
    return size.classes * (5e-6 * size.items + 1e-6 * n_bag_items) + kernels


def _prepare(steps: list[Any], width: float) -> tuple[float, float]:
    """Units of work per item that transformers take, and the width that they leave."""
    cost = 0.0
    for step in steps:
        if isinstance(step, TfIdf):  # words and pairs of words
            cost, width = cost + 5e-7 * width, 0.15 * width
        elif isinstance(step, HashingVectorizer):  # pieces of two to four characters
            cost, width = cost + 6e-7 * width, 1.5 * width
        elif isinstance(step, MeanVectors):
            cost, width = cost + 2e-6 * width, 256.0
        elif isinstance(step, Nystroem):
            cost, width = cost + 5e-10 * step.n_components * width, step.n_components
        elif type(step).__name__ == "SentenceEncoder":
            cost, width = cost + 3e-4 * width, 384.0
        elif step is not None:
            cost += 2e-8 * width
    return cost, width


def _fit_cost(classifier: Any, n_items: float, width: float, n_classes: int) -> float:
    """Units of work to fit a classifier, by default a linear model, and to judge its scores."""
    if isinstance(classifier, Pipeline):
        steps = [step for _, step in classifier.steps]
        prepared, width = _prepare(steps[:-1], width)
        return prepared * n_items + _fit_cost(steps[-1], n_items, width, n_classes)
    models = 1 if n_classes == 2 else n_classes
    fit = 1e-7 * n_items * width * models
    if isinstance(classifier, LinearDiscriminantAnalysis):
        fit = 4e-8 * n_items * width
    elif isinstance(classifier, ComplementNB):
        fit = 2e-8 * n_items * width
    elif isinstance(classifier, (ExtraTreesClassifier, RandomForestClassifier)):
        fit = 1.2e-7 * classifier.n_estimators * n_items * width**0.5
    elif isinstance(classifier, HistGradientBoostingClassifier):
        histograms = 5e-7 * width * (classifier.max_leaf_nodes or 31)
        fit = classifier.max_iter * models * (3e-4 + histograms + 3e-9 * n_items * width)
    return float(fit + 1e-6 * n_items * n_classes)
