"""Matching methods: a representation and an objective, on scores or on features."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.methods.base import Tags
from headcount.methods.objectives import ClassVectors, LeastSquares, Objective
from headcount.methods.representations import ItemRepresentation, Posteriors, Representation
from headcount.methods.scored import ScoreQuantifier
from headcount.scores.scorer import Held

NUMBERS_AT_ONCE = 1 << 25  # of bags' vectors that are held in memory
Parts = tuple[Representation, Objective]


class Matcher:
    """A fitted pair of representation and objective; matching methods have one.

    Parameters
    ----------
    parts : representation and objective, unfitted
    rows, codes : scores or features of labelled items, and their class numbers
    frequency : share of each class among all labelled items
    """

    def __init__(self, parts: Parts, rows: Floats, codes: Ints, frequency: Floats):
        representation, objective = parts
        self.representation = clone(representation).fit(rows, codes, frequency)
        items = None
        if isinstance(representation, ItemRepresentation):
            items = self.representation.of_items(rows), codes
        means = self.representation.of_classes(rows, codes)
        counts = np.bincount(codes, minlength=len(frequency))
        self.objective = clone(objective).fit(ClassVectors(means, frequency, counts, items))
        # Vectors of items serve only to learn.
        self.objective.classes_ = ClassVectors(means, frequency, counts)

    def match(self, rows: Floats, bags: Bags, n_jobs: int | None) -> Floats:
        """Shares of every bag, some bags at a time."""
        width = self.objective.classes_.means.shape[1]
        step = max(512, NUMBERS_AT_ONCE // width)
        if len(bags) <= step:
            return self._match(rows, bags, n_jobs)
        starts = range(0, len(bags), step)
        return np.vstack([self._match(rows, bags[s : s + step], n_jobs) for s in starts])

    def _match(self, rows: Floats, bags: Bags, n_jobs: int | None) -> Floats:
        vectors = self.representation.of_bags(rows, bags, n_jobs)
        shares: Floats = self.objective.solve(vectors, bags.sizes, n_jobs)
        return shares


class MatchingQuantifier(ScoreQuantifier):
    """Base of the methods on scores that are a representation and an objective."""

    @abstractmethod
    def match_parts(self) -> Parts:
        """The representation and the objective that this method is made of, unfitted."""

    def method_tags(self) -> Tags:
        """As the representation says."""
        representation, _ = self.match_parts()
        return Tags(
            scores=representation.needs,
            remembers=representation.remembers,
            joins_folds=representation.remembers,
        )

    def check_params(self) -> None:
        """Refuse impossible settings of either part."""
        super().check_params()
        for part in self.match_parts():
            part.check_params()

    def learn(self, held: Held) -> None:
        """Learn the classes' vectors."""
        self.matcher_ = Matcher(self.match_parts(), held.scores, held.codes, held.frequency)

    def aggregate(self, scores: Floats, bags: Bags) -> Floats:
        """Shares whose mixture is nearest to each bag's vector."""
        return self.matcher_.match(scores, bags, self.n_jobs)


@dataclass(eq=False, repr=False, kw_only=True)
class Match(MatchingQuantifier):
    """A method of your own: any representation with any objective.

    Parameters
    ----------
    representation : representation, default `Posteriors`
        What is looked at: `Posteriors`, `Labels`, `AboveFrequency`, `Histogram`, `Distances`,
        `RankDistances`, `GaussianKernel` of `headcount.methods.representations`, or your own.
    objective : objective, default `LeastSquares`
        What is minimised: `LeastSquares`, `Inverse`, `PulledWeights`, `Divergence`,
        `Discrepancy`, `CauchySchwarz` of `headcount.methods.objectives`, or your own.
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> from headcount.methods.objectives import LeastSquares
    >>> from headcount.methods.representations import Histogram
    >>> method = Match(representation=Histogram(n_bins=4), objective=LeastSquares())
    >>> scores, y = [0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.4], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> method.fit_scores(scores, y).predict_scores([0.1, 0.9, 0.8, 0.9]).round(2)
    array([0., 1.])
    """

    representation: Any = None
    objective: Any = None

    def match_parts(self) -> Parts:
        """What was given."""
        chosen = self.representation or Posteriors()
        objective = self.objective or LeastSquares()
        if not isinstance(chosen, Representation) or not isinstance(objective, Objective):
            raise InputError(
                f"a representation and an objective are expected, got {chosen!r} and {objective!r}."
            )
        return chosen, objective
