"""Bags with known shares to judge methods on: drawn, natural groups, later periods, or given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from headcount._core.types import Bools, Floats, Ints
from headcount.bags import Bags
from headcount.methods.base import check_pool, count_items
from headcount.protocols import DirichletPrevalence, NaturalPrevalence, UniformPrevalence
from headcount.scores.scorer import Scorer, View
from headcount.scores.sources import Source
from headcount.selection.passes import Labelled, remake

N_BAGS = 300  # for each time that the labelled items are parted
FOLDS = 5  # bags are made of one part of the labelled items or groups, the others are learnt from
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


def natural_cases(
    recipe: Sequence[Source], data: Labelled, parts: Iterable[tuple[Ints, Ints]]
) -> list[Case]:
    """Groups that were left out, by classifiers and methods that know only the items to learn from.

    Both learn from these as they will from all items in the end.
    """
    assert data.groups is not None
    classes, codes = np.unique(data.y, return_inverse=True)
    found = []
    for learnt, other in parts:
        known = np.unique(codes[learnt])
        scorer = remake(recipe, data.part(learnt).over_items())
        bags, past = (
            Bags.from_groups(data.groups[rows]).with_truth(codes[rows], classes=columns)
            for rows, columns in ((other, np.arange(len(classes))), (learnt, known))
        )
        views = [(scores, bags) for scores in scorer.views(_safe_indexing(data.X, other))]
        found.append(_case(scorer, views, bags, past, known))
    return found


def leave_out_groups(
    groups: NDArray[Any], codes: Ints, least: int, n_parts: int = FOLDS
) -> Iterator[tuple[Ints, Ints]]:
    """Items of the other groups, and those of the groups that are left out, each group once.

    Only those of classes that have at least `least` items in the others.
    """
    names, number = np.unique(groups, return_inverse=True)
    n_parts = min(n_parts, len(names))
    part = np.random.default_rng(0).permutation(len(names)) % n_parts
    for p in range(n_parts if n_parts > 1 else 0):
        own = part[number] == p
        yield from _of_known_classes(~own, own, codes, least)


def cut_dates(
    groups: NDArray[Any], codes: Ints, least: int, n_cuts: int = CUTS
) -> Iterator[tuple[Ints, Ints]]:
    """Items before a date and those from there to the next date, for a few dates.

    Only those of classes that have at least `least` items before the date.
    """
    names, order = np.unique(groups, return_inverse=True)
    share = np.cumsum(np.bincount(order)) / len(order)
    wanted = np.linspace(EARLIEST, 1, n_cuts + 1)[:-1]
    ends = np.unique(np.minimum(np.searchsorted(share, wanted), len(names) - 2))
    for number, end in enumerate(ends):
        last = ends[number + 1] if number + 1 < len(ends) else len(names) - 1
        if end >= 1:  # two periods, so that one can be left out
            after = (order > end) & (order <= last)
            yield from _of_known_classes(order <= end, after, codes, least)


def _of_known_classes(
    learnt: Bools, other: Bools, codes: Ints, least: int
) -> Iterator[tuple[Ints, Ints]]:
    """Numbers of both kinds of items without those of classes with few to learn from."""
    known = np.bincount(codes[learnt], minlength=codes.max() + 1) >= least
    rows = np.flatnonzero(learnt & known[codes]), np.flatnonzero(other & known[codes])
    if known.sum() > 1 and len(rows[1]):
        yield rows


def given_cases(scorer: Scorer, pool: Any, bags: Bags) -> list[Case]:
    """Bags whose true shares are known, as they are."""
    check_pool(count_items(pool), bags)
    views = [(scores, bags) for scores in scorer.views(pool)]
    return [_case(scorer, views, bags)]
