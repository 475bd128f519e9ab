"""Bags with known shares to judge methods on: drawn, natural groups, later periods, or given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.methods.base import check_pool, count_items
from headcount.protocols import DirichletPrevalence, NaturalPrevalence, UniformPrevalence
from headcount.scores.scorer import Scorer, View
from headcount.scores.sources import Source
from headcount.selection.passes import Labelled, remake

N_BAGS = 300  # for each time that the labelled items are parted
FOLDS = 5  # bags are made of one part of the labelled items, methods learn from the others
REPEATS = 2  # times that they are parted, if that is quickly done
QUICK = 50_000  # numbers of scores up to which it is
CUTS = 3  # dates at which the past is parted from what follows
EARLIEST = 0.4  # share of the items that lie before the first of them


@dataclass(frozen=True, eq=False)
class Case:
    """What a method learns from, the bags that it then estimates, and their true shares.

    Attributes
    ----------
    learn : scorer with the held-out scores to learn from
    views : scores of the bags' items by each classifier, with the bags
    truth, sizes : of the bags
    past : bags of the items that are learnt from, where these fall into groups
    known : numbers of the classes that the scorer knows, where it does not know all
    """

    learn: Scorer
    views: list[View]
    truth: Floats
    sizes: Ints
    past: Bags | None = None
    known: Ints | None = None

    def all_classes(self, answers: Floats) -> Floats:
        """Answers with a column for every class: nothing of those that are not known."""
        if self.known is None:
            return answers
        found = np.zeros_like(self.truth)
        found[:, self.known] = answers
        return found


def _case(
    learn: Scorer,
    views: list[View],
    bags: Bags,
    past: Bags | None = None,
    known: Ints | None = None,
) -> Case:
    return Case(learn, views, np.asarray(bags.prevalence), bags.sizes, past, known)


def drawn_cases(scorer: Scorer, expect: str, size: int, seed: int) -> list[Case]:
    """Bags of a fifth of the held-out items, in turn, as far from the labelled shares as told."""
    scores, codes = scorer.scores, scorer.codes
    found: list[Case] = []
    for repeat in range(REPEATS if scores.size <= QUICK else 1):
        splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=(seed + repeat) % 2**32)
        for learnt, other in splitter.split(scores, codes):
            bags = _drawn(scorer, codes[other], expect, size, seed + len(found))
            found.append(_case(scorer.part(learnt), [(scores[other], bags)], bags))
    return found


def _drawn(scorer: Scorer, codes: Ints, expect: str, size: int, seed: int) -> Bags:
    classes = np.arange(len(scorer.classes))
    wanted = [expect] if expect != "learn" else ["any shift", "mild shift", "no shift"]
    common: Any = {"n_bags": N_BAGS // FOLDS // len(wanted), "size": size, "random_state": seed}
    centre = tuple(scorer.frequency)
    protocols: dict[str, Any] = {
        "any shift": UniformPrevalence(**common),
        "mild shift": DirichletPrevalence(concentration=30.0, centre=centre, **common),
        "no shift": NaturalPrevalence(**common),
    }
    drawn = [protocols[name].draw(codes, classes=classes) for name in wanted]
    lists = [items for part in drawn for items in part]
    return Bags.from_lists(lists, len(codes)).with_truth(codes, classes=classes)


def group_cases(scorer: Scorer, groups: NDArray[Any]) -> list[Case]:
    """The groups of each fold, which its classifier did not see; methods learn from the others.

    Of a group that was not held out whole, because a class is in no other, only the items in the
    fold that has most of them are taken.
    """
    assert scorer.fold is not None
    _, number = np.unique(groups, return_inverse=True)
    counts = np.zeros((number.max() + 1, scorer.fold.max() + 1), dtype=np.int64)
    np.add.at(counts, (number, scorer.fold), 1)
    at_home = counts.argmax(axis=1)[number] == scorer.fold
    found = []
    for f in range(counts.shape[1]):
        own, others = at_home & (scorer.fold == f), scorer.fold != f
        bags, past = (_natural(groups[rows], scorer, rows) for rows in (own, others & at_home))
        learn = scorer.part(np.flatnonzero(others))
        if own.any() and (np.bincount(learn.codes, minlength=len(scorer.classes)) > 0).all():
            found.append(_case(learn, [(scorer.scores[own], bags)], bags, past))
    if not found:
        raise InputError(
            "each class must occur in groups of two folds, to compare methods on them."
        )
    return found


def _natural(groups: NDArray[Any], scorer: Scorer, rows: Any) -> Bags:
    codes = scorer.codes[rows]
    return Bags.from_groups(groups).with_truth(codes, classes=np.arange(len(scorer.classes)))


def period_cases(recipe: Sequence[Source], data: Labelled, least: int) -> list[Case]:
    """The periods after a date, by classifiers and methods that know only what came before it."""
    assert data.groups is not None
    classes, codes = np.unique(data.y, return_inverse=True)
    found = []
    for past, after in cut_dates(data.groups, codes, least):
        known = np.unique(codes[past])
        scorer = remake(recipe, data.part(past).for_periods())
        bags, before = (
            Bags.from_groups(data.groups[rows]).with_truth(codes[rows], classes=columns)
            for rows, columns in ((after, np.arange(len(classes))), (past, known))
        )
        views = [(scores, bags) for scores in scorer.views(_safe_indexing(data.X, after))]
        found.append(_case(scorer, views, bags, before, known))
    return found


def cut_dates(groups: NDArray[Any], codes: Ints, least: int) -> Iterator[tuple[Ints, Ints]]:
    """Items before a date and those from there to the next date, for a few dates.

    Only those of classes that have at least `least` items before the date.
    """
    names, order = np.unique(groups, return_inverse=True)
    share = np.cumsum(np.bincount(order)) / len(order)
    wanted = np.linspace(EARLIEST, 1, CUTS + 1)[:-1]
    ends = np.unique(np.minimum(np.searchsorted(share, wanted), len(names) - 2))
    for number, end in enumerate(ends):
        last = ends[number + 1] if number + 1 < len(ends) else len(names) - 1
        known = np.bincount(codes[order <= end], minlength=codes.max() + 1) >= least
        past = np.flatnonzero((order <= end) & known[codes])
        after = np.flatnonzero((order > end) & (order <= last) & known[codes])
        if end >= 1 and known.sum() > 1 and len(after):  # two periods, so that one can be left out
            yield past, after


def given_cases(scorer: Scorer, pool: Any, bags: Bags) -> list[Case]:
    """Bags whose true shares are known, as they are."""
    check_pool(count_items(pool), bags)
    views = [(scores, bags) for scores in scorer.views(pool)]
    return [_case(scorer, views, bags)]
