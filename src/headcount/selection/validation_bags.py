"""Bags to compare candidates on: drawn by expected prevalence, left-out groups, or given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from headcount.selection.budget import Budget, Size, trial_cost
from headcount.selection.candidates import Trial, try_candidate
from headcount.selection.classifiers import ClassifierPass, Labelled
from headcount.selection.rule import one_standard_error_rule

Split = tuple[Ints, Ints]  # items to learn from, items of the bags

# Splits of the labelled items or groups: bags hold a fifth, the rest is learned from, as usual in
# cross-validation (Kohavi 1995).
N_VALIDATION_SPLITS = 5
# Labelled items per class that comparing candidates takes: two in every fifth.
MIN_PER_CLASS = 2 * N_VALIDATION_SPLITS


@dataclass(frozen=True, eq=False)
class ValidationSplit:
    """Scores to learn from, and bags of other items to estimate."""

    train: Scorer  # held-out scores to learn from
    views: list[View]  # scores of the bags' items by each classifier, with the bags
    bags: Bags  # with their prevalence
    past: Bags | None = None  # of the items that are learned from, if these fall into groups
    known: Ints | None = None  # indices of the classes that the scorer knows, if not all

    def estimate(self, quantifier: ScoreQuantifier) -> Floats:
        """Fit a clone and estimate the bags; classes that it does not know get no share."""
        fitted = teach_shift(clone(quantifier).fit_scorer(self.train), self.past)
        estimates = np.zeros_like(np.asarray(self.bags.prevalence))
        estimates[:, slice(None) if self.known is None else self.known] = fitted.estimate(
            self.views
        )
        return estimates

    def cost(self, quantifier: ScoreQuantifier) -> float:
        """Units of work to estimate the bags."""
        size = Size(len(self.train.codes), 0, len(self.train.classes))
        return trial_cost(quantifier, size, int(self.bags.sizes.sum()) * len(self.views))


def try_on(splits: Sequence[ValidationSplit], quantifier: ScoreQuantifier, which: Measure) -> Trial:
    """Errors of a quantifier on the bags of all splits."""

    def estimate() -> tuple[Floats, Floats]:
        truth = np.vstack([np.asarray(split.bags.prevalence) for split in splits])
        return truth, np.vstack([split.estimate(quantifier) for split in splits])

    return try_candidate(estimate, np.concatenate([split.bags.sizes for split in splits]), which)


@dataclass(frozen=True, eq=False)
class ValidationPlan:
    """Which bags represent the future: of a `kind` as in `Choice.bags`.

    Classifiers are fitted again for each of the `cuts` into left-out groups or periods.
    """

    data: Labelled
    kind: str = "drawn"
    cuts: Sequence[Split] = ()
    bags: Bags | None = None
    pool: Any = None

    @classmethod
    def of(cls, data: Labelled, periods: bool, bags: Bags | None, pool: Any) -> ValidationPlan:
        """Plan for labelled items, whose groups may be periods, or for given bags of a pool."""
        if bags is not None:
            return cls(data, "given", bags=bags, pool=pool)
        if data.groups is None:
            return cls(data)
        ways = {"periods": cut_periods} if periods else {}
        for kind, cut in {**ways, "groups": leave_out_groups}.items():
            if cuts := list(cut(data.groups, data.codes, MIN_PER_CLASS)):
                return cls(data, kind, cuts)
        return cls(data, "too few groups")

    def can_compare(self, scorer: Scorer) -> bool:
        """Whether there are enough held-out items of every class to compare methods on."""
        counts = np.bincount(scorer.codes, minlength=len(scorer.classes))
        return bool(self.cuts) or self.bags is not None or int(counts.min()) >= MIN_PER_CLASS

    def past(self) -> Bags | None:
        """Bags of the labelled groups that a prior of the prevalence shift is learned from, if any.

        One group says nothing about others.
        """
        if self.data.groups is None or self.kind == "too few groups":
            return None
        return Bags.from_groups(self.data.groups).with_truth(self.data.y)

    def affordable(self, passes: list[ClassifierPass], budget: Budget) -> list[ClassifierPass]:
        """Classifiers that can be refitted with half of the work that is left; the cheapest can."""
        costs = [self.refit_cost(p) for p in passes]
        limit = max(min(costs), budget.left / 2)
        return [p for p, cost in zip(passes, costs, strict=True) if cost <= limit]

    def refit_cost(self, chosen: ClassifierPass) -> float:
        """Units of work to fit a classifier again for the bags."""
        return N_VALIDATION_SPLITS * self.data.cost(*chosen.recipe) if self.cuts else 0.0

    def splits(
        self, chosen: ClassifierPass, expect: str, size: int | None, seed: int
    ) -> list[ValidationSplit]:
        """Bags scored by a classifier, which is fitted again for groups that are left out."""
        if self.cuts:
            return [_leave_out(self.data, chosen, *cut) for cut in self.cuts]
        scorer = chosen.scorer
        assert scorer is not None
        if self.bags is None:
            size = size or int(np.clip(len(scorer.codes) // 5, 20, 250))
            return draw_bags(scorer, expect, size, seed)
        check_pool(count_items(self.pool), self.bags)
        views = [(scores, self.bags) for scores in scorer.views(self.pool)]
        return [ValidationSplit(scorer, views, self.bags)]

    def select(self, trials: Sequence[Trial], splits: Sequence[ValidationSplit]) -> int:
        """Index of the candidate to take, by the one-standard-error rule.

        Bags of different items are independent. Drawn bags of a split are one unit, and splits
        overlap as those of cross-validation do.
        """
        errors = np.array([trial.errors for trial in trials])
        lengths = [len(split.bags) for split in splits]
        if self.cuts or self.bags is not None:
            return one_standard_error_rule(errors, np.arange(sum(lengths)))
        units = np.repeat(np.arange(len(lengths)), lengths)
        return one_standard_error_rule(errors, units, overlap=1 / (N_VALIDATION_SPLITS - 1))


def _leave_out(data: Labelled, chosen: ClassifierPass, train: Ints, test: Ints) -> ValidationSplit:
    """Bags are groups; classifiers and methods learn from the items of other groups."""
    codes, groups = data.codes, np.asarray(data.groups)
    scorer = chosen.refit(data.part(train).over_items())
    known, every = np.unique(codes[train]), np.arange(codes.max() + 1)
    bags = Bags.from_groups(groups[test]).with_truth(codes[test], classes=every)
    past = Bags.from_groups(groups[train]).with_truth(codes[train], classes=known)
    views = [(scores, bags) for scores in scorer.views(_safe_indexing(data.X, test))]
    return ValidationSplit(scorer, views, bags, past, known)


def draw_bags(scorer: Scorer, expect: str, size: int, seed: int) -> list[ValidationSplit]:
    """Draw bags from a fifth of the held-out scores at a time, with the expected prevalence."""
    codes = scorer.codes
    # Two repeats halve the variance between splits; more splits share ever more items.
    splitter = RepeatedStratifiedKFold(
        n_splits=N_VALIDATION_SPLITS, n_repeats=2, random_state=seed % 2**32
    )
    splits = []
    for number, (train, test) in enumerate(splitter.split(scorer.scores, codes)):
        bags = _draw(scorer, codes[test], expect, size, seed + number)
        splits.append(ValidationSplit(scorer.part(train), [(scorer.scores[test], bags)], bags))
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
    """Splits that leave each group out once, without classes that are rare among the others."""
    names, number = np.unique(groups, return_inverse=True)
    n_splits = min(N_VALIDATION_SPLITS, len(names))
    part = np.random.default_rng(0).permutation(len(names)) % n_splits
    for p in range(n_splits if n_splits > 1 else 0):
        own = part[number] == p
        yield from _known_classes(~own, own, codes, min_per_class)


def cut_periods(groups: NDArray[Any], codes: Ints, min_per_class: int) -> Iterator[Split]:
    """Splits into the items before a date, and those from there to the next date.

    The first of at most three dates comes after 40 % of the items, enough to learn from.
    """
    names, order = np.unique(groups, return_inverse=True)
    share = np.cumsum(np.bincount(order)) / len(order)
    ends = np.unique(np.minimum(np.searchsorted(share, (0.4, 0.6, 0.8)), len(names) - 2))
    for end, last in zip(ends, [*ends[1:], len(names) - 1], strict=True):
        if end >= 1:  # two periods, so that one of them can be left out
            later = (order > end) & (order <= last)
            yield from _known_classes(order <= end, later, codes, min_per_class)


def _known_classes(train: Bools, test: Bools, codes: Ints, min_per_class: int) -> list[Split]:
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
