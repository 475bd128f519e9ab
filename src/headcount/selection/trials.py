"""Methods tried on bags of labelled items that they did not learn from."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from headcount._core.attempt import attempt
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.kernels.simplex import project
from headcount.measures import Measure, measure
from headcount.methods.scored import ScoreQuantifier
from headcount.protocols import DirichletPrevalence, NaturalPrevalence, UniformPrevalence
from headcount.scores.scorer import Scorer

N_BAGS = 300  # for each time that the labelled items are parted
FOLDS = 5  # bags are made of one part of the labelled items, methods learn from the others
REPEATS = 4  # times that they are parted, if that is quickly done
QUICK = 50_000  # numbers of scores up to which it is
MEMBERS = 4  # best candidates that a blend may be made of
LEAST = 0.05  # weight below which a member is left out


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate, its mean error, its answers for all bags, and why there are none."""

    name: str
    quantifier: ScoreQuantifier
    error: float
    answers: Floats | None = None
    reason: str = ""


class Trials:
    """Bags with known shares of held-out items, one fold after the other.

    Parameters
    ----------
    scorer : classifier pass with held-out scores
    which : measure
    expect : how far the shares of the bags move
    size : items of a bag; 250 by default, or a fifth of the labelled ones if that is less
    seed : int
    """

    def __init__(
        self, scorer: Scorer, which: str | Measure, expect: str, size: int | None, seed: int
    ):
        self.scorer, self.scores, self.codes = scorer, scorer.scores, scorer.codes
        self.measure = measure(which)
        if np.bincount(self.codes, minlength=len(scorer.classes)).min() < 2 * FOLDS:
            raise InputError(
                f"at least {2 * FOLDS} labelled items of every class are needed to compare methods "
                "on: use BayesQuantifier or SLD."
            )
        self.size = size or int(np.clip(len(self.codes) // 5, 20, 250))
        self.folds: list[tuple[Ints, Ints, Bags]] = []
        for repeat in range(REPEATS if self.scores.size <= QUICK else 1):
            splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=(seed + repeat) % 2**32)
            for learnt, other in splitter.split(self.scores, self.codes):
                drawn = self._bags(self.codes[other], expect, seed + len(self.folds))
                self.folds.append((learnt, other, drawn))
        self.truth = np.vstack([np.asarray(bags.prevalence) for _, _, bags in self.folds])

    def _bags(self, codes: Ints, expect: str, seed: int) -> Bags:
        classes = np.arange(len(self.scorer.classes))
        wanted = [expect] if expect != "learn" else ["any shift", "mild shift", "no shift"]
        common: Any = {"n_bags": N_BAGS // FOLDS // len(wanted), "size": self.size}
        common |= {"random_state": seed}
        centre = tuple(self.scorer.frequency)
        protocols: dict[str, Any] = {
            "any shift": UniformPrevalence(**common),
            "mild shift": DirichletPrevalence(concentration=30.0, centre=centre, **common),
            "no shift": NaturalPrevalence(**common),
        }
        drawn = [protocols[name].draw(codes, classes=classes) for name in wanted]
        lists = [items for part in drawn for items in part]
        return Bags.from_lists(lists, len(codes)).with_truth(codes, classes=classes)

    def run(self, name: str, q: ScoreQuantifier, until: float = np.inf) -> Trial:
        """Mean error of a method that learns from the items a bag was not made of.

        It is given up when the clock is past `until`.
        """
        answers, reason = attempt(lambda: self._all_answers(q, until))
        if answers is None:
            return Trial(name, q, float("inf"), reason=reason or "given up: out of time")
        return Trial(name, q, self._error(answers, self.truth), answers)

    def _all_answers(self, q: ScoreQuantifier, until: float) -> Floats | None:
        """Answers for the bags of all folds; None if time runs out."""
        parts = []
        for fold in self.folds:
            if time.monotonic() > until:
                return None
            parts.append(self._answers(q, *fold))
        return np.vstack(parts)

    def _answers(self, q: ScoreQuantifier, learnt: Ints, other: Ints, bags: Bags) -> Floats:
        fitted: ScoreQuantifier = clone(q).fit_scorer(self.scorer.part(learnt))
        return fitted.estimate([(self.scores[other], bags)])

    def _error(self, answers: Floats, truth: Floats) -> float:
        sizes = np.full(len(truth), self.size)
        return float(np.mean(self.measure(truth, answers, sizes=sizes)))

    def blended(self, several: list[Trial]) -> tuple[list[tuple[Trial, float]], float] | None:
        """The best candidates with the weights whose mean errs least, and its error.

        The weights for the bags of a fold come from the others, so that the error of the blend can
        be compared with that of a single candidate.
        """
        best = sorted((t for t in several if t.answers is not None), key=lambda t: t.error)
        best = best[:MEMBERS]
        if len(best) < 2:
            return None
        stack = np.array([t.answers for t in best])
        lengths = [len(bags) for _, _, bags in self.folds]
        fold = np.repeat(np.arange(len(self.folds)), lengths) % FOLDS
        found, crossed = [], np.empty_like(self.truth)
        for f in range(FOLDS):
            found.append(self._weights(stack[:, fold != f], self.truth[fold != f]))
            crossed[fold == f] = np.tensordot(found[-1], stack[:, fold == f], axes=1)
        weights = np.mean(found, axis=0)
        weights[weights < LEAST] = 0.0
        weights /= weights.sum()
        parts = [(t, float(w)) for t, w in zip(best, weights, strict=True) if w > 0]
        return (parts, self._error(crossed, self.truth)) if len(parts) > 1 else None

    def _weights(self, stack: Floats, truth: Floats) -> Floats:
        """Weights by projected subgradient descent on the mean error, from equal ones."""

        def error(weights: Floats) -> float:
            return self._error(np.tensordot(weights, stack, axes=1), truth)

        weights = np.full(len(stack), 1 / len(stack))
        best, least = weights, np.inf
        for step in range(1, 61):
            value = error(weights)
            if value < least:
                best, least = weights, value
            slope = np.array([error(0.99 * weights + 0.01 * way) for way in np.eye(len(stack))])
            slope -= slope.mean()
            length = np.linalg.norm(slope)
            if length < 1e-12:
                break
            weights = project((weights - 0.2 / np.sqrt(step) * slope / length)[None])[0]
        return best
