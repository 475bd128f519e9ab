"""The contract of a quantifier."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _num_samples, check_is_fitted

from headcount._core import validation as check
from headcount._core.convergence import ConvergenceWarning
from headcount._core.types import Bools, Floats
from headcount.bags import Bags
from headcount.exceptions import InputError, choose
from headcount.inference.diagnosis import Diagnosis
from headcount.inference.draws import Draws
from headcount.inference.intervals import Interval
from headcount.inference.sampling import DrawSettings


@dataclass(frozen=True)
class Tags:
    """What a method is like; declared once, by `Quantifier.method_tags`.

    Attributes
    ----------
    scores : 'posteriors', 'any' or 'labels'
        What it needs of a classifier: posterior probabilities; any scores whose order counts,
        decision values among them; or the predicted labels.
    held_out : bool
        Whether it learns from held-out scores even without a calibrator.
    corrects : bool
        Whether it corrects for a change of class shares at all.
    remembers : bool
        Whether the items that it learnt from are easier for it than others.
    bends : bool
        Whether that is so where they are few and the classes several, because it bends a curve of
        each class to their scores.
    joins_folds : bool
        Whether it looks at a bag's scores by all folds together, not at one fold after the other.
    own_calibration : bool
        Whether it is given raw scores because it calibrates by itself.
    ignores_items : bool
        Whether only the labels count.
    """

    scores: Literal["posteriors", "any", "labels"] = "posteriors"
    held_out: bool = True
    corrects: bool = True
    remembers: bool = False
    bends: bool = False
    joins_folds: bool = False
    own_calibration: bool = False
    ignores_items: bool = False


class Quantifier(BaseEstimator, ABC):
    """Base of all quantifiers: learn from labelled items, then estimate class shares of sets.

    Estimates are aligned with ``classes_`` and always lie on the simplex.
    """

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from items `X` with labels `y`."""

    @abstractmethod
    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Estimate the prevalences of many bags of the pool `X`, a row a bag."""

    def method_tags(self) -> Tags:
        """What this method is like."""
        return Tags()

    def predict(self, X: Any) -> Floats:
        """Estimate the prevalence of each class among the items `X`, taken as one set."""
        check_is_fitted(self, "classes_")
        return np.asarray(self.predict_bags(X, Bags.single(count_items(X)))[0])

    def predict_interval(
        self,
        X: Any,
        bags: Bags | None = None,
        *,
        level: float = 0.95,
        simultaneous: bool = False,
        target: str = "bag",
        n_draws: int = 300,
        random_state: int = 0,
    ) -> Interval:
        """Estimate shares with bounds: of one set as vectors, of many bags with a row each.

        Parameters
        ----------
        X : items, or scores for a quantifier that was fitted on scores
        bags : Bags, optional
        level : float, default 0.95
        simultaneous : bool, default False
            True widens the intervals so that all classes of a bag are inside at once.
        target : {'bag', 'population'}
            Shares among the very items of the bag, or in the population it was drawn from.
        n_draws : int, default 300
            Simulated bags for every bag.
        random_state : int, default 0

        Notes
        -----
        The bounds hold as far as the shares of the classes are what has changed since the labels
        were made; `diagnose` tells where the scores say otherwise.
        """
        check.at_least("level", level, 0.5, 0.999)
        choose("target", target, ["bag", "population"])
        draws = self.predict_draws(X, bags, n_draws=n_draws, random_state=random_state)
        draws = draws.population() if target == "population" else draws
        interval = draws.interval(level, simultaneous=simultaneous)
        return interval.first() if bags is None else interval

    def predict_draws(
        self, X: Any, bags: Bags | None = None, *, n_draws: int = 300, random_state: int = 0
    ) -> Draws:
        """Joint draws of prevalences, from which intervals, unions and differences follow.

        Parameters are those of `predict_interval`. The draws of a bag depend on the seed, on the
        labelled items and on that bag alone.
        """
        check_is_fitted(self, "classes_")
        settings = DrawSettings(n_draws, random_state)
        return self.draws_of(X, Bags.single(count_items(X)) if bags is None else bags, settings)

    def diagnose(self, X: Any, bags: Bags | None = None) -> Diagnosis:
        """Tell whether estimates can be trusted: of one set, or of many bags.

        The main thing is a test of whether any change of class shares explains the scores.
        """
        check_is_fitted(self, "classes_")
        return self.diagnosis_of(X, Bags.single(count_items(X)) if bags is None else bags)

    def draws_of(self, X: Any, bags: Bags, settings: DrawSettings) -> Draws:  # noqa: ARG002
        """Joint draws of the prevalences of bags."""
        name = type(self).__name__
        raise InputError(f"{name} gives no intervals by itself: fit WithIntervals({name}(...)).")

    def diagnosis_of(self, X: Any, bags: Bags) -> Diagnosis:  # noqa: ARG002
        """What to know about the estimates of bags."""
        raise InputError(f"{type(self).__name__} has no scores that could be tested.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags


def check_quantifier_type(value: Any) -> None:
    """Refuse what is no quantifier, such as a bare classifier."""
    if not isinstance(value, Quantifier):
        raise InputError(
            f"a quantifier is expected, got {value!r}. Wrap a classifier in one, such as "
            "PACC(classifier)."
        )


def warn_unconverged(converged: Bools, what: str, hint: str = "") -> None:
    """Say for how many bags a solver stopped before it was done."""
    if not converged.all():
        warnings.warn(
            f"{what} of {int((~converged).sum())} of {len(converged)} bags did not reach its "
            f"optimum: treat their estimates with care. {hint}".rstrip(),
            ConvergenceWarning,
            stacklevel=5,
        )


def count_items(X: Any) -> int:
    """Number of items, at least one."""
    n = int(_num_samples(X))
    if n == 0:
        raise InputError("X is empty (0 sample(s)): a share of nothing is undefined.")
    return n


def check_pool(n_items: int, bags: Bags) -> None:
    """Refuse bags that refer to another pool."""
    if not isinstance(bags, Bags):
        raise InputError(f"bags must be Bags, got {type(bags).__name__}: see Bags.from_lists.")
    if n_items != bags.n_items:
        raise InputError(
            f"the pool has {n_items} items and the bags were drawn from one of {bags.n_items}. "
            "Pass the items that the bags refer to."
        )
