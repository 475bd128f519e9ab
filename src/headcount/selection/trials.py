"""Methods tried on bags with known shares that they did not learn from."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from headcount._core.attempt import attempt
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.kernels.simplex import project
from headcount.measures import Measure, measure
from headcount.methods.bayes import BayesQuantifier
from headcount.methods.blend import Blend
from headcount.methods.scored import ScoreQuantifier
from headcount.selection.cases import Case

MEMBERS = 4  # best candidates that a blend may be made of
LEAST = 0.05  # weight below which a member is left out
PARTS = 5  # of the bags: the weights of a blend for one come from the others
ENOUGH = 100  # natural bags, from which on they can tell weights


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate, its errors and answers for all bags, and why there are none."""

    name: str
    quantifier: ScoreQuantifier
    errors: Floats
    answers: Floats | None = None
    reason: str = ""
    seconds: float = 0.0

    @property
    def error(self) -> float:
        """Mean error; infinite if it failed."""
        return float(self.errors.mean()) if self.answers is not None else float("inf")


class Trials:
    """Bags with known shares, on which candidates are compared.

    Parameters
    ----------
    cases : what is learnt from, and the bags
    which : measure
    independent : whether the bags are of different items, so that each counts for itself; else
        the bags of a case are one observation
    """

    def __init__(self, cases: Sequence[Case], which: str | Measure, *, independent: bool):
        self.cases, self.measure = cases, measure(which)
        self.truth = np.vstack([case.truth for case in cases])
        self.sizes = np.concatenate([case.sizes for case in cases])
        owner = np.repeat(np.arange(len(cases)), [len(case.truth) for case in cases])
        self.unit: Ints = np.arange(len(owner)) if independent else owner
        self.fewest = ENOUGH if independent else PARTS

    def run(self, name: str, q: ScoreQuantifier, until: float = np.inf) -> Trial:
        """Errors of a method; it is given up when the clock is past `until`."""
        began = time.monotonic()
        answers, reason = attempt(lambda: self._all_answers(q, until))
        taken = time.monotonic() - began
        if answers is None:
            why = reason or "given up: out of time"
            return Trial(name, q, np.full(len(self.truth), np.inf), None, why, taken)
        return Trial(name, q, self._errors(answers, slice(None)), answers, "", taken)

    def _all_answers(self, q: ScoreQuantifier, until: float) -> Floats | None:
        """Answers for the bags of all cases; None if time runs out."""
        parts = []
        for case in self.cases:
            if time.monotonic() > until:
                return None
            fitted = teach_shift(clone(q).fit_scorer(case.learn), case.past)
            parts.append(case.all_classes(fitted.estimate(case.views)))
        return np.vstack(parts)

    def _errors(self, answers: Floats, rows: Any) -> Floats:
        return np.asarray(self.measure(self.truth[rows], answers, sizes=self.sizes[rows]))

    def within(
        self, several: Sequence[Trial], n_errors: float, close: float, *, either: bool = False
    ) -> list[Trial]:
        """Candidates that cannot be told from the best, in order.

        They are no more than some standard errors worse, of the difference over the same bags, and
        no more than a share `close` of the best's error, because few bags make large standard
        errors; or one of the two.
        """
        best = min(several, key=lambda t: t.error)
        found = []
        for trial in (t for t in several if t.answers is not None):
            gap, se = self._gap(trial, best)
            limits = n_errors * se, close * best.error
            if gap <= (max if either else min)(limits) + 1e-9:  # rounding decides nothing
                found.append(trial)
        return found

    def _gap(self, one: Trial, best: Trial) -> tuple[float, float]:
        """Mean difference of the errors, and its standard error."""
        difference = one.errors - best.errors
        counts = np.bincount(self.unit)
        means = np.bincount(self.unit, difference) / counts
        if len(means) < 2:
            return float(difference.mean()), 0.0
        return float(difference.mean()), float(means.std(ddof=1) / np.sqrt(len(means)))

    def blended(self, several: Sequence[Trial]) -> Trial | None:
        """The best candidates with the weights whose mean errs least; None if that is one alone.

        The weights for a part of the bags come from the others, so that the error of the blend can
        be compared with that of a single candidate. A few natural bags cannot tell weights.
        """
        best = sorted((t for t in several if t.answers is not None), key=lambda t: t.error)
        best = best[:MEMBERS]
        if len(best) < 2 or len(np.unique(self.unit)) < self.fewest:
            return None
        stack = np.array([t.answers for t in best])
        part = self.unit % PARTS
        found, crossed = [], np.empty_like(self.truth)
        for f in range(PARTS):
            rows = np.flatnonzero(part != f)
            found.append(self._weights(stack[:, rows], rows))
            crossed[part == f] = np.tensordot(found[-1], stack[:, part == f], axes=1)
        weights = np.mean(found, axis=0)
        weights[weights < LEAST] = 0.0
        weights /= weights.sum()
        pairs = [(t, float(w)) for t, w in zip(best, weights, strict=True) if w > 0]
        if len(pairs) < 2:
            return None
        blend = Blend(quantifiers=[t.quantifier for t, _ in pairs], weights=[w for _, w in pairs])
        name = " + ".join(f"{w:.2f} {t.name}" for t, w in pairs)
        return Trial(name, blend, self._errors(crossed, slice(None)), crossed)

    def _weights(self, stack: Floats, rows: Ints) -> Floats:
        """Weights by projected subgradient descent on the mean error, from equal ones."""

        def error(weights: Floats) -> float:
            return float(self._errors(np.tensordot(weights, stack, axes=1), rows).mean())

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


def teach_shift(fitted: ScoreQuantifier, past: Bags | None) -> ScoreQuantifier:
    """Let a fitted quantifier that has a prior learn from past groups how far shares move."""
    if past is not None:
        for q in fitted.members_ if isinstance(fitted, Blend) else [fitted]:
            if isinstance(q, BayesQuantifier) and q.expect == "learn":
                q.learn_shift(None, past)
    return fitted
