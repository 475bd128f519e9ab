"""A weighted mean of quantifiers that share one classifier's scores."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from headcount._core.types import Floats
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.inference.draws import Draws
from headcount.inference.sampling import DrawSettings
from headcount.methods.base import Tags, without_calibration
from headcount.methods.bayes import BayesQuantifier
from headcount.methods.likelihood import SLD
from headcount.methods.meta import ListsQuantifiers
from headcount.methods.scored import ScoreQuantifier
from headcount.scores.scorer import Held, Scorer, View


@dataclass(eq=False, repr=False, kw_only=True)
class Blend(ListsQuantifiers, ScoreQuantifier):
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
    cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> from headcount import PACC, SLD
    >>> scores, y = [0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.4], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> both = Blend(quantifiers=[SLD(), PACC()], weights=[3, 1]).fit_scores(scores, y)
    >>> both.predict_scores([0.1, 0.9, 0.8, 0.9]).round(2)
    array([0.17, 0.83])
    """

    quantifiers: list[Any] | None = None
    weights: list[float] | None = None

    def method_tags(self) -> Tags:
        """Members calibrate, and say what they need."""
        return Tags(scores="any", own_calibration=True)

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

    def check_params(self) -> None:
        """Refuse impossible settings, those of the members among them."""
        super().check_params()
        for q in self._members()[0]:
            q.check_params()

    def fit_scorer(self, scorer: Scorer) -> Self:
        """Let every member learn from the same classifier pass."""
        several, self.weights_ = self._members()
        self.members_ = [without_calibration(q).fit_scorer(scorer) for q in several]
        return super().fit_scorer(scorer)

    def learn(self, held: Held) -> None:
        """Members have learnt already."""

    def aggregate(self, scores: Floats, bags: Bags) -> Floats:
        """Weighted mean of the members' estimates."""
        return self.estimate([(scores, bags)])

    def estimate(self, views: Sequence[View]) -> Floats:
        """Weighted mean of the members' estimates."""
        answers = [q.estimate(views) for q in self.members_]
        return np.asarray(np.tensordot(self.weights_, answers, axes=1))

    def draw(self, views: Sequence[View], sizes: Any, settings: DrawSettings) -> Draws:
        """Draws of a member with a posterior of its own; otherwise simulated."""
        for member in self.members_:
            if isinstance(member, BayesQuantifier) and member.has_own_posterior:
                return member.draw(views, sizes, settings).about(self.estimate(views))
        return super().draw(views, sizes, settings)

    def simulation_twin(self) -> Self:
        """A blend of the members' twins."""
        twin = copy(self)
        twin.members_ = [q.simulation_twin() for q in self.members_]
        return twin
