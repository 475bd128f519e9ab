"""A weighted mean of quantifiers that share one classifier's scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.inference.intervals import Interval, Request
from headcount.methods.base import ScoreQuantifier
from headcount.methods.bayes import BayesQuantifier
from headcount.methods.likelihood import SLD
from headcount.scores.crossfit import ScorePass


class Blend(ScoreQuantifier):
    """The weighted mean of several quantifiers' estimates, from the same scores.

    Parameters
    ----------
    classifier : scikit-learn classifier, optional
        Scores for all of them.
    quantifiers : list of quantifiers that work on scores
        By default `BayesQuantifier` and `SLD`, both calibrated. Their own classifiers are not
        used.
    weights : list of float, optional
        Equal by default.
    cv, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> from headcount import PACC, SLD
    >>> scores, y = [0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.4], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> both = Blend(quantifiers=[SLD(), PACC()], weights=[3, 1]).fit_scores(scores, y)
    >>> both.predict_scores([0.1, 0.9, 0.8, 0.9]).round(2)
    array([0.17, 0.83])
    """

    _any_scores = True  # members say what they need

    def __init__(
        self,
        classifier: Any = None,
        *,
        quantifiers: list[Any] | None = None,
        weights: list[float] | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        super().__init__(classifier, cv=cv, n_jobs=n_jobs, random_state=random_state)
        self.quantifiers = quantifiers
        self.weights = weights

    def _members(self) -> tuple[list[ScoreQuantifier], Floats]:
        several = self.quantifiers
        if several is None:
            several = [BayesQuantifier(), SLD(calibrator="bcts")]
        listed = isinstance(several, (list, tuple)) and len(several) > 0
        if not listed or not all(isinstance(q, ScoreQuantifier) for q in several):
            raise InputError("quantifiers must be a list of quantifiers that work on scores.")
        try:
            weights = np.asarray(
                [1.0] * len(several) if self.weights is None else self.weights, float
            )
            sound = weights.shape == (len(several),) and (weights >= 0).all()
            sound = sound and 0 < weights.sum() < np.inf
        except (TypeError, ValueError):
            sound = False
        if not sound:
            raise InputError(
                f"weights must be {len(several)} numbers of at least 0, got {self.weights!r}."
            )
        return several, weights / weights.sum()

    def _check_params(self) -> None:
        super()._check_params()
        for q in self._members()[0]:
            q._check_params()

    def _fit_pass(self, done: ScorePass) -> Self:
        several, self.weights_ = self._members()
        self.members_ = [clone(q)._fit_pass(replace(done, folds=())) for q in several]
        return super()._fit_pass(done)

    def _learn(self, scores: Floats | None, codes: Ints | None, frequency: Floats) -> None:
        """Members have learnt already."""

    def _aggregate(self, scores: Floats, bags: Bags) -> Floats:
        answers = [q._estimate(scores, bags) for q in self.members_]
        return np.asarray(np.tensordot(self.weights_, answers, axes=1))

    def _counted(self, raw: Floats, bags: Bags, sizes: Ints, request: Request) -> Interval:
        """A member that has a posterior gives the interval; else it is simulated."""
        own = [q for q in self.members_ if isinstance(q, BayesQuantifier)]
        if not own:
            return super()._counted(raw, bags, sizes, request)
        found = own[0]._counted(raw, bags, sizes, request)
        estimates = self._estimate(raw, bags)
        low, high = np.minimum(found.low, estimates), np.maximum(found.high, estimates)
        return replace(found, prevalence=estimates, low=low, high=high)
