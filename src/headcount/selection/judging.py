"""By which bags scores and methods are judged, and the choice of the scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from headcount._core.types import Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.measures import Measure
from headcount.scores.scorer import Scorer
from headcount.selection.cases import (
    CUTS,
    FOLDS,
    Case,
    cut_dates,
    drawn_cases,
    given_cases,
    leave_out_groups,
    natural_cases,
)
from headcount.selection.likely import quick_methods
from headcount.selection.passes import Labelled, Pass
from headcount.selection.trials import Trial, Trials

CLOSE_DRAWN = 0.1  # by which the preferred may at least be worse on drawn bags of the same items
CLOSE_NATURAL = 0.05  # and at most on others
LEAST = 2 * FOLDS  # labelled items of every class, to compare methods on
FEWEST = 2  # times that a pass is at least made anew, each time without some groups
FOR_GROUPS = 0.5  # share of the time left that may go to that


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

    @cached_property
    def kind(self) -> str:
        """What the bags are: 'given', 'drawn', 'groups' or 'periods'.

        'too few groups' are bags that are drawn although groups will be asked about, because none
        of the labelled ones can be left out.
        """
        if self.bags is not None:
            return "given"
        if self.data is None or self.data.groups is None:
            return "drawn"
        for kind in ("periods", "groups") if self.periods else ("groups",):
            if any(True for _ in self._left_out(kind, FOLDS)):
                return kind
        return "too few groups"

    @property
    def is_drawn(self) -> bool:
        """Whether bags are drawn from the held-out items, so that these alone have changed."""
        return self.kind in ("drawn", "too few groups")

    @property
    def remakes(self) -> bool:
        """Whether scores have to be made anew for the bags."""
        return self.kind in ("groups", "periods")

    def past(self) -> Bags | None:
        """Groups of all labelled items, with their shares; one tells nothing about others."""
        if self.data is None or self.data.groups is None or self.kind == "too few groups":
            return None
        return Bags.from_groups(self.data.groups).with_truth(self.data.y)

    def trials(self, done: Pass, times: int = FOLDS) -> Trials:
        """Bags scored by a pass, to try methods on; it is made anew at most so many times."""
        return Trials(self._cases(done, times), self.measure, independent=not self.is_drawn)

    def _cases(self, done: Pass, times: int) -> list[Case]:
        if self.bags is not None:
            return given_cases(scorer_of(done), self.pool, self.bags)
        if not self.remakes:
            return self._drawn(scorer_of(done))
        assert self.data is not None
        parts = [*self._left_out(self.kind, times)] or self._left_out(self.kind, FOLDS)
        return natural_cases(done.recipe, self.data, parts)

    def _left_out(self, kind: str, times: int) -> Iterator[tuple[Ints, Ints]]:
        """Items to learn from and those of groups that are left out, at most so many times."""
        assert self.data is not None and self.data.groups is not None
        codes = np.unique(self.data.y, return_inverse=True)[1]
        if kind == "periods":
            return cut_dates(self.data.groups, codes, LEAST, min(CUTS, times))
        return leave_out_groups(self.data.groups, codes, LEAST, times)

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
    likeliest that there is time for are judged alone.
    """
    there = [p for p in passes if p.scorer is not None]
    times = FOLDS
    if judging.remakes:
        there, times = _affordable(there, FOR_GROUPS * (until - time.monotonic()))
    judged: list[Judged] = []
    for number, done in enumerate(there):
        if number and time.monotonic() > until:
            break
        say(f"judging scores by {done.name}")
        trials = judging.trials(done, times)
        if len(there) == 1:
            return [Judged(done, Trial(done.name, quick_methods()[0][1], np.zeros(1)), trials)]
        several = [trials.run(name, q) for name, q in quick_methods(not judging.is_drawn)]
        judged.append(Judged(done, min(several, key=lambda t: t.error), trials))
    chosen = _take(judged, judging.is_drawn)
    return [chosen, *sorted((j for j in judged if j is not chosen), key=lambda j: j.trial.error)]


def _affordable(there: Sequence[Pass], seconds: float) -> tuple[list[Pass], int]:
    """The two likeliest passes that can be made anew in time, and how often they can.

    The quickest pass is always made anew a few times.
    """
    best: list[Pass] = []
    for done in sorted(there, key=lambda p: p.loss):
        if len(best) < 2 and FEWEST * sum(p.seconds for p in [*best, done]) <= seconds:
            best.append(done)
    best = best or [min(there, key=lambda p: p.seconds)]
    times = seconds / max(sum(p.seconds for p in best), 1e-9)
    return [p for p in there if p in best], int(np.clip(times, FEWEST, FOLDS))


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
