"""By which bags scores and methods are judged, and the choice of the scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.measures import Measure
from headcount.scores.scorer import Scorer
from headcount.selection.cases import (
    FOLDS,
    Case,
    cut_dates,
    drawn_cases,
    given_cases,
    group_cases,
    period_cases,
)
from headcount.selection.likely import quick_methods
from headcount.selection.passes import Labelled, Pass
from headcount.selection.trials import Trial, Trials

CLOSE_DRAWN = 0.1  # by which likelier scores may at least be worse on drawn bags of the same items
CLOSE_NATURAL = 0.05  # and at most on others
LEAST = 2 * FOLDS  # labelled items of every class, to compare methods on


@dataclass(frozen=True, eq=False)
class Judging:
    """What the answers will be judged by, and the bags to judge them on.

    Attributes
    ----------
    measure, expect, size, seed, n_jobs
        As in `AutoQuantifier`.
    data : labelled items; None where only scores are known
    bags, pool : given bags with known shares, and their items
    periods : whether the groups of the labelled items are periods of time
    """

    measure: str | Measure
    expect: str
    size: int | None
    seed: int
    n_jobs: int | None = None
    data: Labelled | None = None
    bags: Bags | None = None
    pool: Any = None
    periods: bool = False

    @property
    def kind(self) -> str:
        """What the bags are: 'given', 'drawn', 'groups' or 'periods'."""
        if self.bags is not None:
            return "given"
        if self.data is None or self.data.groups is None:
            return "drawn"
        codes = np.unique(self.data.y, return_inverse=True)[1]
        rolls = self.periods and any(True for _ in cut_dates(self.data.groups, codes, LEAST))
        return "periods" if rolls else "groups"

    def past(self) -> Bags | None:
        """Groups of all labelled items, with their shares."""
        if self.data is None or self.data.groups is None:
            return None
        return Bags.from_groups(self.data.groups).with_truth(self.data.y)

    def trials(self, done: Pass) -> Trials:
        """Bags scored by a pass, to try methods on."""
        return Trials(self._cases(done), self.measure, independent=self.kind != "drawn")

    def _cases(self, done: Pass) -> list[Case]:
        scorer, kind = scorer_of(done), self.kind
        if kind == "given":
            assert self.bags is not None
            return given_cases(scorer, self.pool, self.bags)
        if kind == "drawn":
            return self._drawn(scorer)
        assert self.data is not None and self.data.groups is not None
        if kind == "periods":
            return period_cases(done.recipe, self.data, LEAST)
        return group_cases(scorer, self.data.groups)

    def _drawn(self, scorer: Scorer) -> list[Case]:
        if np.bincount(scorer.codes, minlength=len(scorer.classes)).min() < LEAST:
            raise InputError(
                f"at least {LEAST} labelled items of every class are needed to compare methods "
                "on: use BayesQuantifier or SLD."
            )
        size = self.size or int(np.clip(len(scorer.codes) // 5, 20, 250))
        return drawn_cases(scorer, self.expect, size, self.seed)


@dataclass(frozen=True, eq=False)
class Judged:
    """A pass, the trial of the quick method that suits it best, and the bags of that."""

    done: Pass
    trial: Trial
    trials: Trials


def scorer_of(done: Pass) -> Scorer:
    """Scorer of a pass that was run."""
    assert done.scorer is not None
    return done.scorer


def choose_scores(
    passes: Sequence[Pass], judging: Judging, until: float, say: Callable[[str], None]
) -> list[Judged]:
    """Passes with their errors on bags, the one to take first.

    Errors on bags of few held-out items cannot tell good scores from slightly better ones, and
    under a change of shares alone the likelihood can: those that are clearly worse on bags are
    left out, the likeliest of the others is taken, and the simplest within one standard error of
    that; passes come simplest first. Where a pass has to be made anew for the bags, the two
    likeliest are judged alone.
    """
    there = [p for p in passes if p.scorer is not None]
    if judging.kind == "periods":
        best = sorted(there, key=lambda p: p.loss)[:2]
        there = [p for p in there if p in best]
    judged: list[Judged] = []
    for number, done in enumerate(there):
        if number and time.monotonic() > until:
            break
        say(f"judging scores by {done.name}")
        trials = judging.trials(done)
        if len(there) == 1:
            return [Judged(done, Trial(done.name, quick_methods()[0][1], np.zeros(1)), trials)]
        several = [trials.run(name, q) for name, q in quick_methods(judging.kind != "drawn")]
        judged.append(Judged(done, min(several, key=lambda t: t.error), trials))
    chosen = _take(judged, judging.kind == "drawn")
    return [chosen, *sorted((j for j in judged if j is not chosen), key=lambda j: j.trial.error)]


def _take(judged: Sequence[Judged], is_drawn: bool) -> Judged:
    trials, several = judged[0].trials, [j.trial for j in judged]
    close = CLOSE_DRAWN if is_drawn else CLOSE_NATURAL
    tied = trials.within(several, 2.0, close, either=is_drawn)
    likely = [j for j in judged if j.trial in tied]
    best = min(likely, key=lambda j: j.done.loss)
    for one in likely:
        if one.done.losses is None or best.done.losses is None:
            return one
        gaps = one.done.losses - best.done.losses
        if gaps.mean() <= gaps.std() / np.sqrt(len(gaps)):
            return one
    return best
