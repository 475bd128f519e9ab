"""One classifier pass for all quantifiers that can share it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headcount._core.types import Floats
from headcount.bags import Bags
from headcount.inference.diagnosis import Diagnosis
from headcount.inference.goodness_of_fit import diagnose_scores
from headcount.inference.intervals import Interval
from headcount.inference.sampling import DrawSettings
from headcount.methods.base import Quantifier, check_pool, count_items
from headcount.methods.scored import ScoreQuantifier
from headcount.scores.scorer import Scorer, View


def pass_groups(quantifiers: Sequence[Quantifier]) -> list[list[int]]:
    """Numbers of the quantifiers that share a classifier pass, in order of first appearance."""
    groups: dict[Any, list[int]] = {}
    for i, q in enumerate(quantifiers):
        key = q.scorer_key() if isinstance(q, ScoreQuantifier) else None
        groups.setdefault(i if key is None else key, []).append(i)
    return list(groups.values())


class SharedPasses:
    """Fits quantifiers on one data set; the same classifier settings share one classifier pass.

    Parameters
    ----------
    quantifiers : list of quantifiers
        All that will be fitted, so that a pass leaves the held-out scores, and the classifiers,
        that any of them needs.
    X, y : labelled items
    """

    def __init__(self, quantifiers: Sequence[Quantifier], X: Any, y: Any):
        self.X, self.y = X, y
        scored = [q for q in quantifiers if isinstance(q, ScoreQuantifier)]
        self._held_out = {q.scorer_key() for q in scored if q.needs_held_out()}
        self._whole = {q.scorer_key() for q in scored if q.uses_whole()}
        self._passes: dict[str, Scorer] = {}
        self._views: dict[tuple[int, bool], list[Floats]] = {}

    def fit(self, q: Quantifier) -> Quantifier:
        """Fit one of the quantifiers, on a pass that is there or a new one."""
        key = q.scorer_key() if isinstance(q, ScoreQuantifier) else None
        if key is None or not isinstance(q, ScoreQuantifier):
            return q.fit(self.X, self.y)
        if key not in self._passes:
            q.check_params()
            held_out, whole = key in self._held_out, key in self._whole
            self._passes[key] = q.make_scorer(self.X, self.y, held_out=held_out, whole=whole)
        scorer = self._passes[key]
        return q.fit_scorer(scorer) if q.accepts(scorer) else q.fit(self.X, self.y)

    def predict_bags(self, q: Quantifier, pool: Any, bags: Bags) -> Floats:
        """Estimate with a fitted one; a shared classifier scores the pool once."""
        if not isinstance(q, ScoreQuantifier):
            return q.predict_bags(pool, bags)
        return q.estimate(self._seen(q, pool, bags, whole=q.uses_whole()))

    def interval_bags(self, q: Quantifier, pool: Any, bags: Bags) -> tuple[Interval, Diagnosis]:
        """Intervals and diagnoses of a fitted one; a shared classifier scores the pool once."""
        if not isinstance(q, ScoreQuantifier):
            return q.predict_interval(pool, bags), q.diagnose(pool, bags)
        q.check_intervals()
        views = self._seen(q, pool, bags, whole=False)
        draws = q.draw(views, bags.sizes, DrawSettings())
        if q.uses_whole():
            draws = draws.about(self.predict_bags(q, pool, bags))
        return draws.interval(), diagnose_scores(q.scorer_, views)

    def _seen(self, q: ScoreQuantifier, pool: Any, bags: Bags, *, whole: bool) -> list[View]:
        """Raw scores of the pool by each classifier, with the bags."""
        check_pool(count_items(pool), bags)
        scorer = q.scorer_
        key = id(scorer.whole if whole and scorer.whole is not None else scorer.folds), whole
        if key not in self._views:
            self._views[key] = scorer.views(pool, whole=whole)
        return [(scores, bags) for scores in self._views[key]]
