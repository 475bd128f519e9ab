"""Base of the methods for two classes; with more, each class is taken against the rest."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from headcount._core.types import Bools, Floats
from headcount.bags import Bags
from headcount.kernels.simplex import from_each_against_rest, rest_columns
from headcount.methods.scored import ScoreQuantifier
from headcount.scores.scorer import Held


class BinaryQuantifier(ScoreQuantifier):
    """Base of the methods that know two classes only.

    With more than two classes they are applied one-vs-all, to each class's column of the same
    scores, and the shares are normalised; `repr` then says so. `OneVsAll` trains a classifier of
    its own for every class instead.
    """

    @abstractmethod
    def learn_two(self, scores: Floats, positive: Bools, held: Held) -> Any:
        """What is to be kept of the held-out scores of one class against the rest."""

    @abstractmethod
    def aggregate_two(self, learnt: Any, scores: Floats, bags: Bags) -> Floats:
        """Share of the positive class in every bag."""

    def learn(self, held: Held) -> None:
        """Learn from every class against the rest."""
        self.learnt_ = [
            self.learn_two(np.ascontiguousarray(held.scores[:, c]), held.codes == c, held)
            for c in rest_columns(held.n_classes)
        ]

    def aggregate(self, scores: Floats, bags: Bags) -> Floats:
        """Shares of every class against the rest, normalised."""
        shares = [
            self.aggregate_two(learnt, np.ascontiguousarray(scores[:, c]), bags)
            for c, learnt in zip(rest_columns(scores.shape[1]), self.learnt_, strict=True)
        ]
        return from_each_against_rest(shares)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = str(super().__repr__(N_CHAR_MAX))
        many = len(getattr(self, "learnt_", [])) > 1
        return f"{text} one-vs-all over {len(self.learnt_)} classes" if many else text
