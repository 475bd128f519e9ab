"""Bags to compare candidates on: drawn by expected prevalence, left-out groups, or given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.utils import _safe_indexing

from headcount._core.types import Bools, Floats, Ints
from headcount.bags import Bags
from headcount.measures import Measure
from headcount.methods.base import check_pool, count_items
from headcount.methods.bayes import BayesQuantifier
from headcount.methods.blend import Blend
from headcount.methods.scored import ScoreQuantifier
from headcount.protocols import DirichletPrevalence, NaturalPrevalence, UniformPrevalence
from headcount.scores.scorer import Scorer, View
from headcount.selection.budget import Size, trial_cost
from headcount.selection.candidates import Candidate, Trial, try_candidate, without_calibration
from headcount.selection.classifiers import ClassifierPass, Labelled
from headcount.selection.rule import one_standard_error_rule

Split = tuple[Ints, Ints]  # items to learn from, items of the bags

# Splits of the labelled items or groups: bags hold a fifth, the rest is learned from, as usual in
# cross-validation (Kohavi 1995).
N_SPLITS = 5
# Labelled items per class that comparing candidates takes: two in every fifth.
MIN_PER_CLASS = 2 * N_SPLITS


@dataclass(frozen=True, eq=False)
class ValidationSplit:
    """Scores to learn from, and bags of other items to estimate.

    Attributes
    ----------
    train : scorer with the held-out scores to learn from
    views : scores of the bags' items by each classifier, with the bags
    bags : bags with their prevalence
    past : bags of the items that are learned from, if these fall into groups
    known : indices of the classes that the scorer knows; None if it knows all
    """

    train: Scorer
    views: list[View]
    bags: Bags
    past: Bags | None = None
    known: Ints | None = None

    @property
    def truth(self) -> Floats:
        """True prevalence, one row per bag."""
        return np.asarray(self.bags.prevalence)

    def estimate(self, quantifier: ScoreQuantifier) -> Floats:
        """Fit a clone and estimate the bags; classes that it does not know get no share."""
        fitted = teach_shift(clone(quantifier).fit_scorer(self.train), self.past)
        known = slice(None) if self.known is None else self.known
        estimates = np.zeros_like(self.truth)
        estimates[:, known] = fitted.estimate(self.views)
        return estimates


@dataclass(frozen=True, eq=False)
class ValidationBags:
    """Bags of all splits.

    Attributes
    ----------
    splits : sequence of ValidationSplit
    independent : whether bags hold different items, so that each is an independent unit; otherwise
        the bags of a split are one unit, and splits overlap as those of cross-validation do
    """

    splits: Sequence[ValidationSplit]
    independent: bool
    sizes: Ints = field(init=False)

    def __post_init__(self) -> None:
        sizes = np.concatenate([split.bags.sizes for split in self.splits])
        object.__setattr__(self, "sizes", sizes)

    def try_out(self, candidate: Candidate, which: Measure) -> Trial:
        """Errors of a candidate on all bags."""
        quantifier = without_calibration(candidate.trial)

        def estimate() -> tuple[Floats, Floats]:
            truth = np.vstack([split.truth for split in self.splits])
            return truth, np.vstack([split.estimate(quantifier) for split in self.splits])

        return try_candidate(estimate, self.sizes, which)

    def cost(self, candidate: Candidate) -> float:
        """Units of work to try a candidate."""
        return sum(
            trial_cost(
                candidate.quantifier,
                Size(len(split.train.codes), 0, len(split.train.classes)),
                int(split.bags.sizes.sum()) * len(split.views),
            )
            for split in self.splits
        )

    def select(self, trials: Sequence[Trial]) -> int:
        """Index of the candidate to take, by the one-standard-error rule."""
        errors = np.array([trial.errors for trial in trials])
        if self.independent:
            return one_standard_error_rule(errors, np.arange(len(self.sizes)))
        lengths = [len(split.bags) for split in self.splits]
        units = np.repeat(np.arange(len(lengths)), lengths)
        return one_standard_error_rule(errors, units, overlap=1 / (N_SPLITS - 1))


@dataclass(frozen=True, eq=False)
class ValidationPlan:
    """Which bags represent the future, given what is known of it.

    Attributes
    ----------
    data : labelled items
    expect, size, periods : as in `AutoQuantifier`
    seed : int
    bags, pool : given bags with known prevalence, and their items
    """

    data: Labelled
    expect: str
    size: int | None
    periods: bool
    seed: int
    bags: Bags | None = None
    pool: Any = None

    @cached_property
    def codes(self) -> Ints:
        """Class of each labelled item, as a number."""
        return np.unique(self.data.y, return_inverse=True)[1]

    @cached_property
    def kind(self) -> str:
        """What the bags are: 'given', 'drawn', 'groups' or 'periods'.

        'too few groups' are drawn bags in place of groups, none of which can be left out.
        """
        if self.bags is not None:
            return "given"
        if self.data.groups is None:
            return "drawn"
        for kind in ("periods", "groups") if self.periods else ("groups",):
            if any(self._left_out(kind)):
                return kind
        return "too few groups"

    @property
    def refits(self) -> bool:
        """Whether classifiers are fitted again for the bags, without the items of these."""
        return self.kind in ("groups", "periods")

    def can_compare(self, scorer: Scorer) -> bool:
        """Whether there are enough held-out items of every class to compare methods on."""
        if self.refits or self.bags is not None:
            return True
        counts = np.bincount(scorer.codes, minlength=len(scorer.classes))
        return int(counts.min()) >= MIN_PER_CLASS

    def past(self) -> Bags | None:
        """Bags of the labelled groups, from which a prior of the prevalence shift is learned.

        None where there are too few groups: one group says nothing about others.
        """
        groups = self.data.groups
        if groups is None or self.kind == "too few groups":
            return None
        return Bags.from_groups(groups).with_truth(self.data.y)

    def bags_for(self, chosen: ClassifierPass) -> ValidationBags:
        """Bags scored by a classifier, which is fitted again for groups that are left out."""
        scorer = chosen.scorer
        assert scorer is not None
        if self.bags is not None:
            check_pool(count_items(self.pool), self.bags)
            views = [(scores, self.bags) for scores in scorer.views(self.pool)]
            return ValidationBags([ValidationSplit(scorer, views, self.bags)], independent=True)
        if self.refits:
            splits = [self._leave_out(chosen, split) for split in self._left_out(self.kind)]
            return ValidationBags(splits, independent=True)
        size = self.size or int(np.clip(len(scorer.codes) // 5, 20, 250))
        return ValidationBags(draw_bags(scorer, self.expect, size, self.seed), independent=False)

    def _left_out(self, kind: str) -> Iterator[Split]:
        assert self.data.groups is not None
        cut = cut_periods if kind == "periods" else leave_out_groups
        return cut(self.data.groups, self.codes, MIN_PER_CLASS)

    def _leave_out(self, chosen: ClassifierPass, split: Split) -> ValidationSplit:
        """Bags are groups; classifiers and methods learn from the items of other groups."""
        (train, test), groups = split, self.data.groups
        assert groups is not None
        scorer = chosen.refit(self.data.part(train).over_items())
        known, every = np.unique(self.codes[train]), np.arange(self.codes.max() + 1)
        bags = Bags.from_groups(groups[test]).with_truth(self.codes[test], classes=every)
        past = Bags.from_groups(groups[train]).with_truth(self.codes[train], classes=known)
        views = [(scores, bags) for scores in scorer.views(_safe_indexing(self.data.X, test))]
        return ValidationSplit(scorer, views, bags, past, known)


def draw_bags(scorer: Scorer, expect: str, size: int, seed: int) -> list[ValidationSplit]:
    """Draw bags from a fifth of the held-out scores at a time, with the expected prevalence."""
    codes = scorer.codes
    # Two repeats halve the variance between splits; more splits share ever more items.
    splitter = RepeatedStratifiedKFold(n_splits=N_SPLITS, n_repeats=2, random_state=seed % 2**32)
    splits = []
    for number, (train, test) in enumerate(splitter.split(scorer.scores, codes)):
        bags = _draw(scorer, codes[test], expect, size, seed + number)
        views = [(scorer.scores[test], bags)]
        splits.append(ValidationSplit(scorer.part(train), views, bags))
    return splits


def _draw(scorer: Scorer, codes: Ints, expect: str, size: int, seed: int) -> Bags:
    """Draw 60 bags of some items; the error of their mean is far below that of the items."""
    classes = np.arange(len(scorer.classes))
    expected = [expect] if expect != "learn" else ["any shift", "mild shift", "no shift"]
    common: Any = {"n_bags": 60 // len(expected), "size": size, "random_state": seed}
    mild = DirichletPrevalence(concentration=30.0, centre=tuple(scorer.frequency), **common)
    protocols: dict[str, Any] = {
        "any shift": UniformPrevalence(**common),
        "mild shift": mild,  # the concentration that BayesQuantifier has for a mild shift
        "no shift": NaturalPrevalence(**common),
    }
    drawn = [protocols[name].draw(codes, classes=classes) for name in expected]
    lists = [items for bags in drawn for items in bags]
    return Bags.from_lists(lists, len(codes)).with_truth(codes, classes=classes)


def leave_out_groups(groups: NDArray[Any], codes: Ints, min_per_class: int) -> Iterator[Split]:
    """Split into the items of some groups and those of all others; each group is left out once.

    Classes with fewer than `min_per_class` items to learn from are left out of a split.
    """
    names, number = np.unique(groups, return_inverse=True)
    n_splits = min(N_SPLITS, len(names))
    part = np.random.default_rng(0).permutation(len(names)) % n_splits
    for p in range(n_splits if n_splits > 1 else 0):
        own = part[number] == p
        yield from _known_classes(~own, own, codes, min_per_class)


def cut_periods(groups: NDArray[Any], codes: Ints, min_per_class: int) -> Iterator[Split]:
    """Split into the items before a date, and those from there to the next date.

    There are at most three dates, the first after 40 % of the items, so that the earliest split
    has enough to learn from. Classes with fewer than `min_per_class` items to learn from are left
    out of a split.
    """
    names, order = np.unique(groups, return_inverse=True)
    share = np.cumsum(np.bincount(order)) / len(order)
    starts = (0.4, 0.6, 0.8)
    ends = np.unique(np.minimum(np.searchsorted(share, starts), len(names) - 2))
    for end, last in zip(ends, [*ends[1:], len(names) - 1], strict=True):
        if end >= 1:  # two periods, so that one of them can be left out
            yield from _known_classes(
                order <= end, (order > end) & (order <= last), codes, min_per_class
            )


def _known_classes(train: Bools, test: Bools, codes: Ints, min_per_class: int) -> Iterable[Split]:
    """Indices of both kinds of items, without those of classes that are rare among the first."""
    known = np.bincount(codes[train], minlength=codes.max() + 1) >= min_per_class
    rows = np.flatnonzero(train & known[codes]), np.flatnonzero(test & known[codes])
    return [rows] if known.sum() > 1 and len(rows[1]) else []


def teach_shift(fitted: ScoreQuantifier, past: Bags | None) -> ScoreQuantifier:
    """Let a fitted quantifier that has a prior learn from past groups how far shares move."""
    if past is not None:
        for q in fitted.members_ if isinstance(fitted, Blend) else [fitted]:
            if isinstance(q, BayesQuantifier) and q.expect == "learn":
                q.learn_shift(None, past)
    return fitted
