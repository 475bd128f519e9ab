"""Labelled rows that belong to groups: what a model may be told of them, and how it does.

A classifier that sees which groups have many of a class takes what reveals the group (a name, a
place) for a sign of the class. So its rows are drawn such that every group has about the same
shares of classes. How far off the model's answers for groups are is learnt twice: for groups with
labelled rows, and, by leaving whole groups out, for groups that it has never seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from headcount._core.types import Bools, Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.inference.check import widen_by
from headcount.inference.diagnostics import LEVEL, Diagnosis, diagnose_scores
from headcount.inference.intervals import Interval
from headcount.inference.pooling import Pooling, learn_pooling
from headcount.inference.spread import Request
from headcount.inference.unseen import Unseen, halfway, learn_unseen
from headcount.scores.crossfit import cross_fit
from headcount.scores.joined import StackedClassifier
from headcount.scores.scorer import View, mix_views
from headcount.scores.splits import Split, make_splits
from headcount.scores.stacking import stack
from headcount.selection.validation_bags import teach_shift
from headcount.tables.labelled import Labelled

FOLDS = 5
INNER = 3  # folds of a model that is only there to be tried on other groups, of many rows
MANY = 5000  # labelled rows, from which on a model of four fifths of them is like one of all
FEWEST = 5  # groups that something can be learnt from
ROWS = 10  # of a group that the model is tried on
SMOOTH = 10.0  # rows' worth of belief that a group has the usual shares
MOST = 4.0  # times that a row may be repeated


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of the labelled rows.

    Attributes
    ----------
    names : of the groups
    counts : labelled rows of each, by class
    known : what such groups tell about the model's answers for them
    new : what groups tell that were left out when the model was fitted, about others
    """

    names: list[str]
    counts: Ints
    known: Pooling
    new: Unseen

    def rows_of(self, names: list[str]) -> Ints:
        """Labelled rows of groups by class; none where a group has none."""
        place = {name: i for i, name in enumerate(self.names)}
        where = np.array([place.get(name, -1) for name in names], dtype=np.int64)
        return np.where((where >= 0)[:, None], self.counts[where], 0)

    def pool(
        self, found: Interval, diagnosis: Diagnosis, names: list[str], sizes: Ints, target: str
    ) -> Interval:
        """Answers for groups, with their labelled rows where they have some."""
        flagged = np.asarray(diagnosis.fit < LEVEL)
        own = self.rows_of(names)
        known = self.known.pool(found, flagged, own, sizes, target)
        new = self.new.bound(found, flagged, sizes, target)
        has_rows = own.sum(axis=1, keepdims=True) > 0
        joined: Any = {
            name: np.where(has_rows, getattr(known, name), getattr(new, name))
            for name in ("prevalence", "low", "high", "variance")
        }
        return replace(found, **joined)

    def sized(self, diagnosis: Diagnosis, names: list[str]) -> Diagnosis:
        """Flags with the size that they had on held-out groups."""
        has_rows = self.rows_of(names).sum(axis=1, keepdims=True) > 0
        beyond = np.where(has_rows, self.known.beyond[1], self.new.beyond[1])
        return replace(diagnosis, off=np.sqrt(beyond) * (diagnosis.fit < LEVEL)[:, None])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return {
            "names": self.names,
            "counts": self.counts.tolist(),
            "known": self.known.to_dict(),
            "new": self.new.to_dict(),
        }

    @classmethod
    def from_dict(cls, about: dict[str, Any]) -> Groups:
        """The same from a file."""
        try:
            known, new = Pooling.from_dict(about["known"]), Unseen.from_dict(about["new"])
            counts = np.array(about["counts"], dtype=np.int64)
        except (KeyError, TypeError, ValueError):
            raise InputError(
                "what the model knows of groups is damaged, or of another version of headcount: "
                "fit it again."
            ) from None
        return cls([str(name) for name in about["names"]], counts, known, new)


def split_by_group(labels: NDArray[Any], groups: NDArray[Any], folds: int = FOLDS) -> list[Split]:
    """Folds that leave out whole groups."""
    classes, codes = np.unique(labels, return_inverse=True)
    folds = min(folds, len(np.unique(groups)))
    if folds < 2:
        raise InputError(f"all labelled rows are of the group {groups[0]!r}: leave the groups out.")
    return make_splits(None, codes, classes, folds, groups=groups, random_state=0)


def classifiers_of(fitted: Any) -> list[Any]:
    """What gave a fitted quantifier its scores, to be fitted anew."""
    first = fitted.scorer_.any_classifier
    return list(first.members) if isinstance(first, StackedClassifier) else [first]


def fit_evenly(like: Any, classifiers: list[Any], rows: Labelled, folds: int = FOLDS) -> Any:
    """A quantifier whose classifiers learn from rows with about the same shares in all groups."""
    classes, codes = np.unique(rows.labels, return_inverse=True)
    _, own = np.unique(np.asarray(rows.groups), return_inverse=True)
    folds = int(min(folds, np.bincount(codes).min()))
    splits = [
        (even_rows(train, codes, own), test)
        for train, test in make_splits(None, codes, classes, folds, random_state=0)
    ]
    scorers = [
        cross_fit(clone(c), rows.items, rows.labels, cv=splits, n_jobs=like.n_jobs)
        for c in classifiers
    ]
    fitted = clone(like).fit_scorer(scorers[0] if len(scorers) == 1 else stack(scorers))
    return tell_groups(fitted, own)


def tell_groups(fitted: Any, groups: NDArray[Any]) -> Any:
    """Let a quantifier with a prior of how far shares move learn it from the labelled groups."""
    codes, classes = fitted.scorer_.codes, np.arange(len(fitted.classes_))
    return teach_shift(fitted, Bags.from_groups(groups).with_truth(codes, classes=classes))


def even_rows(train: Ints, codes: Ints, own: Ints) -> Ints:
    """Rows to learn from, some repeated or left out, so that groups have the same shares."""
    usual = np.bincount(codes) / len(codes)
    counts = np.zeros((own.max() + 1, len(usual)))
    np.add.at(counts, (own[train], codes[train]), 1)
    shares = (counts + SMOOTH * usual) / (counts.sum(axis=1, keepdims=True) + SMOOTH)
    wanted = np.minimum((usual / shares)[own[train], codes[train]], MOST)
    spare = np.random.default_rng(0).random(len(train)) < wanted % 1
    found = np.repeat(train, wanted.astype(np.int64) + spare)
    # Every class must be left with a row.
    lost = np.setdiff1d(codes[train], codes[found])
    return np.concatenate([found, train[np.isin(codes[train], lost)]])


def learn_groups(
    quantifier: Any, rows: Labelled, factors: Sequence[float] = ()
) -> tuple[Groups, dict[str, Any]]:
    """What labelled groups tell, and how far off the model is on groups that it had not seen.

    Parameters
    ----------
    quantifier : fitted to the rows
    rows : labelled, with groups
    factors : by how much the model's intervals are widened, as in `check_intervals`
    """
    scorer, groups = quantifier.scorer_, np.asarray(rows.groups)
    names, own = np.unique(groups, return_inverse=True)
    counts = np.zeros((len(names), len(scorer.classes)), dtype=np.int64)
    np.add.at(counts, (own, scorer.codes), 1)
    sizes = counts.sum(axis=1)
    large = np.flatnonzero(sizes >= min(ROWS, np.sort(sizes)[-min(FEWEST, len(sizes))]))
    sizes = sizes[large]
    truth = counts[large] / sizes[:, None]
    tried = _Tried(quantifier, rows, own, large, _parts(rows))
    known = new = tried.by_scores()
    if scorer.folds:
        new = tried.by_items()
    seen = known.interval
    pooling = learn_pooling(seen.prevalence, seen.variance, truth, sizes, known.flagged)
    wide = new.interval.widened(widen_by(tuple(factors), sizes)) if factors else new.interval
    unseen, answer = learn_unseen(halfway(wide), wide.variance, truth, sizes, new.flagged)
    off = {
        "groups": len(large),
        "error": float(np.abs(answer - truth).mean()),
        "counting": float(np.abs(new.counted - truth).mean()),
        "constant": float(np.abs(unseen.middle - truth).mean()),
        "width": unseen.width,
    }
    return Groups([str(n) for n in names], counts, pooling, unseen), off


def _parts(rows: Labelled) -> Ints:
    """Part of each group: the fewer there are, the fewer are left out at once."""
    groups = np.asarray(rows.groups)
    _, own = np.unique(groups, return_inverse=True)
    part = np.zeros(own.max() + 1, dtype=np.int64)
    folds = FOLDS if len(groups) > MANY else 2 * FOLDS
    for f, (_, test) in enumerate(split_by_group(rows.labels, groups, folds)):
        part[own[test]] = f
    return part


@dataclass(frozen=True, eq=False)
class _Trial:
    """Answers for groups, whether each is flagged, and plain counts."""

    interval: Interval
    flagged: Bools
    counted: Floats


@dataclass(frozen=True, eq=False)
class _Tried:
    """A model that is tried on labelled groups."""

    quantifier: Any
    rows: Labelled
    own: Ints  # group of each row
    large: Ints  # groups to try
    part: Ints  # of each group; it is tried by what is learnt from the other parts

    def by_scores(self) -> _Trial:
        """By held-out scores, of classifiers that have seen other rows of the group."""
        scorer = self.quantifier.scorer_

        def answer(rest: Ints, items: Ints, bags: Bags) -> tuple[Any, list[View]]:
            fresh = _quick(self.quantifier).fit_scorer(scorer.part(rest))
            return tell_groups(fresh, self.own[rest]), [(scorer.scores[items], bags)]

        return self._run(answer)

    def by_items(self) -> _Trial:
        """By classifiers that have seen no row of the group."""
        several = classifiers_of(self.quantifier)
        folds = INNER if len(self.own) > MANY else FOLDS

        def answer(rest: Ints, items: Ints, bags: Bags) -> tuple[Any, list[View]]:
            fresh = fit_evenly(_quick(self.quantifier), several, self.rows.take(rest), folds)
            return fresh, [(view, bags) for view in fresh.scorer_.views(self.rows.items[items])]

        return self._run(answer)

    def _run(self, answer: Any) -> _Trial:
        codes = self.quantifier.scorer_.codes
        k = int(codes.max()) + 1
        shares, low, high, variance, counted = np.zeros((5, len(self.large), k))
        flagged = np.zeros(len(self.large), dtype=bool)
        quick = Request(n_draws=120, doubt=False, tried=False)
        for part in np.unique(self.part[self.large]):
            rest = np.flatnonzero(self.part[self.own] != part)
            if np.bincount(codes[rest], minlength=k).min() < 2:  # a class of these groups alone
                rest = np.arange(len(codes))
            here = np.flatnonzero(self.part[self.large] == part)
            each = [np.flatnonzero(self.own == g) for g in self.large[here]]
            ends = np.cumsum([0, *map(len, each)])
            bags = Bags.unchecked(ends, np.arange(ends[-1]), int(ends[-1]))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fresh, views = answer(rest, np.concatenate(each), bags)
                bound = fresh.bound(views, bags.sizes, quick)
                mixed = mix_views([scores for scores, _ in views]), bags
                flagged[here] = diagnose_scores(fresh.scorer_, [mixed]).fit < LEVEL
            shares[here], variance[here] = bound.prevalence, bound.variance
            low[here], high[here] = bound.low, bound.high
            counted[here] = bags.shares(mixed[0].argmax(axis=1), k)
        found = replace(bound, prevalence=shares, low=low, high=high, variance=variance)
        return _Trial(found, flagged, counted)


def _quick(quantifier: Any) -> Any:
    """Unfitted copy that is not too thorough."""
    fresh = clone(quantifier)
    if hasattr(fresh, "n_worlds"):
        fresh.set_params(n_worlds=2)
    return fresh
