"""Classifier passes within a time: each candidate timed on a part of the items before it is run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from headcount._core.attempt import attempt
from headcount._core.types import Floats, Ints
from headcount.exceptions import InputError
from headcount.scores.crossfit import cross_fit, cross_fit_source
from headcount.scores.scorer import Scorer
from headcount.scores.sources import Source
from headcount.scores.stacking import held_out_losses, stack, stack_with_losses

Say = Callable[[str], None]

SAMPLE = 8  # a source is timed on this part of the items
AT_LEAST, AT_MOST = 200, 1500  # items that it is timed on
SLACK = 1.2  # by which a fit may take longer than the part of the items told
FOLDS = 5  # where a splitter or pairs of item numbers were given
ENOUGH = 2000  # items from which on some may be left out, if there is no time for all
RARE = 20  # of a class that are kept then
FEEBLE = 0.03  # weight below which a member of a stack is left out


@dataclass(frozen=True, eq=False)
class Pass:
    """A classifier, or several joined, and its scores of held-out items.

    Attributes
    ----------
    name : str
    recipe : sources with one classifier each, from which it can be made again
    scorer : what it left behind; None if it failed or was not run
    losses : negative log-likelihood of each held-out item
    seconds : that it took, with all that is joined in it
    reason : why there is no scorer
    """

    name: str
    recipe: tuple[Source, ...]
    scorer: Scorer | None = None
    losses: Floats | None = None
    seconds: float = 0.0
    reason: str = ""

    @property
    def loss(self) -> float:
        """Mean negative log-likelihood of held-out items."""
        return float("inf") if self.losses is None else float(self.losses.mean())


@dataclass(frozen=True, eq=False)
class Labelled:
    """Labelled items, and how passes over them are made."""

    X: Any
    y: NDArray[Any]
    groups: NDArray[Any] | None = None
    cv: Any = 5
    n_jobs: int | None = None
    random_state: Any = 0

    def __len__(self) -> int:
        return len(self.y)

    def part(self, rows: Ints, **changes: Any) -> Labelled:
        """Some of the items; splits that were given as item numbers become folds."""
        groups = None if self.groups is None else self.groups[rows]
        own: dict[str, Any] = {"X": _safe_indexing(self.X, rows), "y": self.y[rows]}
        own["cv"] = self.cv if isinstance(self.cv, (int, float)) or _splits(self.cv) else FOLDS
        return replace(self, **{**own, "groups": groups, **changes})

    def over_items(self) -> Labelled:
        """The same with folds of items, not of whole groups, unless splits were given.

        A classifier that has seen some items of every group scores those of others better, and
        whether the scores still fit is seen on groups that were left out, not on held-out items.
        """
        return replace(self, groups=None) if isinstance(self.cv, (int, float)) else self

    def options(self) -> dict[str, Any]:
        """Of `cross_fit`; there are no more folds than groups."""
        cv = self.cv
        if self.groups is not None and isinstance(cv, int) and not isinstance(cv, bool):
            cv = min(cv, len(np.unique(self.groups)))
        return {
            "cv": cv,
            "groups": self.groups,
            "n_jobs": self.n_jobs,
            "random_state": self.random_state,
        }


def run_passes(sources: Sequence[Source], data: Labelled, until: float, say: Say) -> list[Pass]:
    """Passes of all sources that can be had in time, of the first's together, and of all together.

    The first source is always run; with its first classifier alone if there is no time for more.
    """
    done: list[Pass] = []
    stacks: list[Pass] = []
    for number, source in enumerate(sources):
        leader = _leader(done)
        say(f"trying {source.name}" + (f" ({leader.name} leads)" if leader else ""))
        left = until - time.monotonic()
        if number and left <= 0:
            done += _left_out(source, "no time was left")
            continue
        source, expected = _in_time(source, data, left)
        if expected <= left:
            done += _run(source, data, say)
            if not number and len(sources) > 1:
                stacks = join_passes([p for p in done if p.scorer is not None])
        elif leader is None:
            done += _run(_first_alone(source), data, say)
        else:
            done += _left_out(source, f"it would have taken about {expected:.0f} s")
    if _leader(done) is None:
        _all_scorers(_first_alone(sources[0]), data)  # fails as it did, with its own words
        raise InputError(f"no classifier can be fitted; the first: {done[0].reason}")
    there = [p for p in done if p.scorer is not None]
    if time.monotonic() < until and len(there) > len(sources[0].families):
        stacks += join_passes(there)
    names = {p.name: p for p in stacks}  # what adds nothing is left out, so two may be the same
    return [*done, *names.values()]


def as_many_as_fit(source: Source, data: Labelled, until: float) -> Labelled:
    """The items, or some of them where the first classifier would take too long for all.

    Groups, and splits that were given, are about all items, so that these stay as they are.
    """
    whole = data.groups is not None or not isinstance(data.cv, (int, float))
    if whole or len(data) <= ENOUGH:
        return data
    left, expected = until - time.monotonic(), _expected_seconds(_first_alone(source), data)
    if expected <= left:
        return data
    size = max(ENOUGH, int(len(data) * left / expected))
    return data.part(_sample(data.y, size, RARE))


def join_passes(several: Sequence[Pass]) -> list[Pass]:
    """The passes stacked, without those that add nothing; none if there is nothing to join."""
    began = time.monotonic()
    members = list(several)
    found: tuple[Scorer, Floats] | None = None
    while len(members) > 1:
        found, reason = attempt(partial(stack_with_losses, [p.scorer for p in members if p.scorer]))
        if found is None:
            return [Pass("stacked", (), reason=reason)]
        weights = np.abs(found[0].folds[0].weights).max(axis=1)
        kept = [p for p, w in zip(members, weights, strict=True) if w >= FEEBLE]
        if len(kept) == len(members):
            break
        members, found = kept, None
    if found is None:
        return []
    name = " + ".join(p.name for p in members)
    recipe = tuple(source for p in members for source in p.recipe)
    seconds = time.monotonic() - began + sum(p.seconds for p in members)
    return [Pass(name, recipe, *found, seconds)]


def _splits(cv: Any) -> bool:
    """Whether `cv` is a splitter, which can split a part of the items too."""
    return hasattr(cv, "split") and not isinstance(cv, (str, bytes))


def remake(recipe: Sequence[Source], data: Labelled) -> Scorer:
    """The scorer of a pass, made of other items."""
    several = [scorer for source in recipe for scorer in _all_scorers(source, data).values()]
    return several[0] if len(several) == 1 else stack(several)


def _leader(done: Sequence[Pass]) -> Pass | None:
    return min((p for p in done if p.scorer is not None), key=lambda p: p.loss, default=None)


def _all_scorers(
    source: Source, data: Labelled, say: Say = lambda _: None
) -> dict[tuple[str, str], Scorer]:
    """Scorers of all classifiers of a source, by family and name."""
    options = data.options()
    if source.front is None and source.once is None and source.is_given:
        (family, some), *_ = source.families.items()
        (name, classifier), *_ = some.items()
        return {(family, name): cross_fit(classifier, data.X, data.y, **options)}
    found = cross_fit_source(source, data.X, data.y, **options, say=say)
    return {(f, name): scorer for f, some in found.items() for name, scorer in some.items()}


def _run(source: Source, data: Labelled, say: Say) -> Iterator[Pass]:
    """A pass for each family: that of its best classifier."""
    began = time.monotonic()
    scorers, reason = attempt(lambda: _all_scorers(source, data, say))
    if scorers is None:
        yield from _left_out(source, reason)
        return
    seconds = (time.monotonic() - began) / len(source.families)
    for family, classifiers in source.families.items():
        losses = {name: held_out_losses(scorers[family, name]) for name in classifiers}
        best = min(losses, key=lambda name: losses[name].mean())
        recipe = replace(source, families={family: {best: classifiers[best]}})
        yield Pass(best, (recipe,), scorers[family, best], losses[best], seconds)


def _left_out(source: Source, reason: str) -> Iterator[Pass]:
    for family in source.families:
        yield Pass(family, (), reason=reason)


def _first_alone(source: Source) -> Source:
    (family, classifiers), *_ = _first_settings(source).families.items()
    return replace(source, families={family: classifiers})


def _first_settings(source: Source) -> Source:
    """The first classifier of every family."""
    return replace(source, families={f: dict([*c.items()][:1]) for f, c in source.families.items()})


def _in_time(source: Source, data: Labelled, left: float) -> tuple[Source, float]:
    """All settings of a source, or the first ones where all would take too long; and how long."""
    if left <= 0:
        return source, float("inf")
    expected = _expected_seconds(source, data)
    several = any(len(classifiers) > 1 for classifiers in source.families.values())
    if expected <= left or not several:
        return source, expected
    firsts = _first_settings(source)
    return firsts, _expected_seconds(firsts, data)


def _expected_seconds(source: Source, data: Labelled) -> float:
    """How long a pass will take, as one fit on a part of the items tells; 0 for few items."""
    n = len(data)
    if n <= AT_LEAST:
        return 0.0
    rows = _sample(data.y, int(np.clip(n // SAMPLE, AT_LEAST, AT_MOST)))
    part = data.part(rows, groups=None, cv=0.25, n_jobs=None)
    began = time.monotonic()
    if source.once is not None:  # done once, not in every fold
        part, source = replace(part, X=source.once.transform(part.X)), replace(source, once=None)
    once = time.monotonic() - began
    _, reason = attempt(lambda: _all_scorers(source, part))
    if reason:  # it fails on so few; whether it does on all, the pass itself must tell
        return 0.0
    taken = time.monotonic() - began - once
    cv = data.options()["cv"]
    folds = int(cv) if isinstance(cv, int) else FOLDS
    each = taken * n * (1 - 1 / max(2, folds)) / (0.75 * len(rows))
    jobs = min(folds, effective_n_jobs(data.n_jobs))
    return float(SLACK * (once * n / len(rows) + each * folds / jobs))


def _sample(y: NDArray[Any], size: int, least: int = 4) -> Ints:
    """Some items, at least a few of every class."""
    rng = np.random.default_rng(0)
    _, codes = np.unique(y, return_inverse=True)
    order = rng.permutation(len(y))
    place = np.empty(len(y), dtype=np.int64)  # of an item within its class
    for c in range(codes.max() + 1):
        own = order[codes[order] == c]
        place[own] = np.arange(len(own))
    chosen = np.union1d(np.flatnonzero(place < least), order[:size])
    return np.asarray(chosen)
