"""One classifier pass for all quantifiers that can share it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headcount._core.types import Floats
from headcount.bags import Bags
from headcount.methods.base import Quantifier, ScoreQuantifier
from headcount.scores.crossfit import ScorePass


def pass_groups(quantifiers: Sequence[Quantifier]) -> list[list[int]]:
    """Numbers of the quantifiers that share a classifier pass, in order of first appearance."""
    groups: dict[Any, list[int]] = {}
    for i, q in enumerate(quantifiers):
        key = q._pass_key() if isinstance(q, ScoreQuantifier) else None
        groups.setdefault(i if key is None else key, []).append(i)
    return list(groups.values())


class SharedPasses:
    """Fits quantifiers on one data set; the same classifier settings share one classifier pass.

    Parameters
    ----------
    quantifiers : list of quantifiers
        All that will be fitted, so that a pass leaves the held-out scores that any of them needs.
    X, y : labelled items
    """

    def __init__(self, quantifiers: Sequence[Quantifier], X: Any, y: Any):
        self.X, self.y = X, y
        scored = [q for q in quantifiers if isinstance(q, ScoreQuantifier)]
        self._held_out = {q._pass_key() for q in scored if q._needs_held_out()}
        self._passes: dict[str, ScorePass] = {}
        self._scores: dict[tuple[int, str], Floats] = {}

    def fit(self, q: Quantifier) -> Quantifier:
        """Fit one of the quantifiers, on a pass that is there or a new one."""
        key = q._pass_key() if isinstance(q, ScoreQuantifier) else None
        if key is None or not isinstance(q, ScoreQuantifier):
            return q.fit(self.X, self.y)
        if key not in self._passes:
            q._check_params()
            self._passes[key] = q._run_pass(self.X, self.y, key in self._held_out)
        done = self._passes[key]
        return q._fit_pass(done) if q._accepts(done) else q.fit(self.X, self.y)

    def predict_bags(self, q: Quantifier, pool: Any, bags: Bags) -> Floats:
        """Estimate with a fitted one; a shared classifier scores the pool once."""
        if not isinstance(q, ScoreQuantifier):
            return q.predict_bags(pool, bags)
        key = id(q.classifier_), q.score_kind_
        if key not in self._scores:
            self._scores[key] = q._pool_scores(pool, bags)
        return q._estimate(self._scores[key], bags)
