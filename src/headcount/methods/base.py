"""The contract of a quantifier."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone
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
    """Properties of a method, declared by `Quantifier.method_tags`.

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
        Whether it memorises the items that it learnt from, so that its errors on them are too
        small; the width of its intervals is then always calibrated.
    joins_folds : bool
        Whether it uses the scores of all folds together, not one fold at a time.
    own_calibration : bool
        Whether it is given raw scores because it calibrates by itself.
    ignores_items : bool
        Whether only the labels count.
    """

    scores: Literal["posteriors", "any", "labels"] = "posteriors"
    held_out: bool = True
    corrects: bool = True
    remembers: bool = False
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
        """Estimate the prevalences of many bags of the pool `X`: one row per bag."""

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
        """Estimate prevalences with interval bounds.

        Parameters
        ----------
        X : items, or scores for a quantifier that was fitted on scores
        bags : Bags, optional
            By default all items are one set.
        level : float, default 0.95
            Nominal coverage, between 0.5 and 0.999.
        simultaneous : bool, default False
            Whether all classes of a bag are to be inside at once; this widens the intervals.
        target : {'bag', 'population'}, default 'bag'
            Shares among the items of the bag, or in the population that they are a random sample
            of.
        n_draws, random_state : int
            As in `predict_draws`.

        Returns
        -------
        Interval
            With vectors for one set, and with one row per bag for bags.

        Notes
        -----
        Intervals assume that only class prevalence has changed since the items were labelled;
        `diagnose` tests this. The quantifier is not modified.
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

        Parameters
        ----------
        X : items, or scores for a quantifier that was fitted on scores
        bags : Bags, optional
            By default all items are one set, which is one bag of the draws.
        n_draws : int, default 300
            Bags to simulate around each bag.
        random_state : int, default 0
            Seed of the simulation.

        Returns
        -------
        Draws
            The draws of a bag depend on the seed, the labelled items and that bag alone, not on the
            other bags or their order.
        """
        check_is_fitted(self, "classes_")
        settings = DrawSettings(n_draws, random_state)
        return self.draws_of(X, Bags.single(count_items(X)) if bags is None else bags, settings)

    def diagnose(self, X: Any, bags: Bags | None = None) -> Diagnosis:
        """Test the assumption behind estimates: that only class prevalence has changed.

        Parameters
        ----------
        X : items, or scores for a quantifier that was fitted on scores
        bags : Bags, optional
            By default all items are one set.

        Returns
        -------
        Diagnosis
            For each bag, the p-value of a goodness-of-fit test, and flags.
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


AnyQuantifier = TypeVar("AnyQuantifier", bound=Quantifier)


def without_calibration(quantifier: AnyQuantifier) -> AnyQuantifier:
    """Clone of a quantifier whose intervals are not calibrated, nor those of its members.

    For quantifiers whose estimates alone are used: candidates of searches, members of ensembles.
    """
    names = quantifier.get_params(deep=True)
    off = {name: False for name in names if name.split("__")[-1] == "calibrate_width"}
    fresh: AnyQuantifier = clone(quantifier).set_params(**off)
    return fresh


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
