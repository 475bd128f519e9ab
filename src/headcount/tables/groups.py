"""Training on labelled rows that belong to groups, and its validation on held-out groups.

A classifier that sees which groups have many items of a class takes what reveals the group (a name,
a place) for a sign of the class. So its rows are resampled to the same shares of classes in every
group. How far off estimates of groups are is learnt twice: for groups with labelled rows, and, by
leaving out whole groups, for groups that were not seen.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.scores.crossfit import cross_fit
from headcount.scores.joined import StackedClassifier
from headcount.scores.splits import Split, make_splits
from headcount.scores.stacking import stack
from headcount.selection.validation_bags import teach_shift
from headcount.tables.estimation import join_estimates, learn_group_errors, try_groups
from headcount.tables.labelled import Labelled
from headcount.tables.result import Estimates
from headcount.tables.training import GroupInfo, GroupQuality

N_FOLDS = 5  # as everywhere in the package
MANY_ROWS = 5000  # labelled rows: four fifths of them are about as good as all (convention)
MIN_GROUPS = 5  # groups that errors are learnt from, at least (convention)


def split_by_group(labels: NDArray[Any], groups: NDArray[Any], folds: int = N_FOLDS) -> list[Split]:
    """Folds of whole groups."""
    classes, codes = np.unique(labels, return_inverse=True)
    folds = min(folds, len(np.unique(groups)))
    if folds < 2:
        raise InputError(f"all labelled rows are of the group {groups[0]!r}: leave the groups out.")
    return make_splits(None, codes, classes, folds, groups=groups, random_state=0)


def classifiers_of(fitted: Any) -> list[Any]:
    """Classifiers of a fitted quantifier, to be fitted again."""
    first = fitted.scorer_.any_classifier
    return list(first.members) if isinstance(first, StackedClassifier) else [first]


def fit_evenly(like: Any, classifiers: list[Any], rows: Labelled, folds: int = N_FOLDS) -> Any:
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
    return learn_shift(fitted, own)


def learn_shift(fitted: Any, groups: NDArray[Any]) -> Any:
    """Let a quantifier with a prior of how far shares move learn it from the labelled groups."""
    codes, classes = fitted.scorer_.codes, np.arange(len(fitted.classes_))
    return teach_shift(fitted, Bags.from_groups(groups).with_truth(codes, classes=classes))


def even_rows(train: Ints, codes: Ints, own: Ints) -> Ints:
    """Rows for training, some repeated or left out, so that groups have the same shares.

    Shares of a group are smoothed by ten rows of the overall shares, and a row is repeated at most
    four times; both are conventions, and `benchmarks/table_groups.py` measures the outcome.
    """
    prior_rows, max_repeats = 10.0, 4.0
    overall = np.bincount(codes) / len(codes)
    counts = np.zeros((own.max() + 1, len(overall)))
    np.add.at(counts, (own[train], codes[train]), 1)
    shares = counts + prior_rows * overall
    shares /= counts.sum(axis=1, keepdims=True) + prior_rows
    wanted = np.minimum((overall / shares)[own[train], codes[train]], max_repeats)
    extra = np.random.default_rng(0).random(len(train)) < wanted % 1
    rows = np.repeat(train, wanted.astype(np.int64) + extra)
    # Every class must keep a row.
    lost = np.setdiff1d(codes[train], codes[rows])
    return np.concatenate([rows, train[np.isin(codes[train], lost)]])


def validate_groups(quantifier: Any, rows: Labelled) -> tuple[GroupInfo, GroupQuality]:
    """Errors of a model for labelled groups, and for groups that were left out of training."""
    scorer = quantifier.scorer_
    names, own = np.unique(np.asarray(rows.groups), return_inverse=True)
    counts = np.zeros((len(names), len(scorer.classes)), dtype=np.int64)
    np.add.at(counts, (own, scorer.codes), 1)
    sizes = counts.sum(axis=1)
    # Groups of at least ten rows, or the largest ones.
    large = np.flatnonzero(sizes >= min(10, np.sort(sizes)[-min(MIN_GROUPS, len(sizes))]))
    sizes, truth = sizes[large], counts[large] / sizes[large, None]
    validation = _Validation(quantifier, rows, own, large, _folds_of_groups(rows))
    known = new = validation.run(by_items=False)
    if scorer.folds:
        new = validation.run(by_items=True)
    of_known, _ = learn_group_errors(known, truth, sizes)
    of_new, estimates = learn_group_errors(new, truth, sizes)
    quality = GroupQuality(
        len(large),
        float(np.abs(estimates - truth).mean()),
        float(np.abs(new.counted - truth).mean()),
        float(np.abs(of_new.mean - truth).mean()),
        of_new.width,
    )
    return GroupInfo([str(name) for name in names], counts, of_known, of_new), quality


def _folds_of_groups(rows: Labelled) -> Ints:
    """Fold of each group: the fewer rows there are, the fewer groups are left out at once."""
    groups = np.asarray(rows.groups)
    _, own = np.unique(groups, return_inverse=True)
    fold = np.zeros(own.max() + 1, dtype=np.int64)
    n_folds = N_FOLDS if len(groups) > MANY_ROWS else 2 * N_FOLDS
    for f, (_, test) in enumerate(split_by_group(rows.labels, groups, n_folds)):
        fold[own[test]] = f
    return fold


@dataclass(frozen=True, eq=False)
class _Validation:
    """Validation of a model on labelled groups."""

    quantifier: Any
    rows: Labelled
    own: Ints  # group of each row
    large: Ints  # groups to estimate
    fold: Ints  # of each group, which is estimated by what is learnt from the other folds

    def run(self, *, by_items: bool) -> Estimates:
        """Estimates of groups by held-out scores, or by classifiers that saw none of their rows."""
        fit = self._by_items if by_items else self._by_scores
        parts, places = [], []
        for fold in np.unique(self.fold[self.large]):
            here = np.flatnonzero(self.fold[self.large] == fold)
            each = [np.flatnonzero(self.own == g) for g in self.large[here]]
            ends = np.cumsum([0, *map(len, each)])
            bags = Bags.unchecked(ends, np.arange(ends[-1]), int(ends[-1]))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted, scores = fit(self._rest(fold), np.concatenate(each))
                parts.append(try_groups(fitted, [(view, bags) for view in scores]))
            places.append(here)
        return join_estimates(parts, places)

    def _rest(self, fold: int) -> Ints:
        """Rows of the other folds; all rows where a class would be lost."""
        codes = self.quantifier.scorer_.codes
        rest = np.flatnonzero(self.fold[self.own] != fold)
        if np.bincount(codes[rest], minlength=int(codes.max()) + 1).min() < 2:
            return np.arange(len(codes))
        return rest

    def _by_scores(self, rest: Ints, items: Ints) -> tuple[Any, list[Floats]]:
        scorer = self.quantifier.scorer_
        fitted = _quick(self.quantifier).fit_scorer(scorer.part(rest))
        return learn_shift(fitted, self.own[rest]), [scorer.scores[items]]

    def _by_items(self, rest: Ints, items: Ints) -> tuple[Any, list[Floats]]:
        folds = 3 if len(self.own) > MANY_ROWS else N_FOLDS  # fewer are enough for many rows
        classifiers = classifiers_of(self.quantifier)
        fitted = fit_evenly(_quick(self.quantifier), classifiers, self.rows.take(rest), folds)
        return fitted, fitted.scorer_.views(self.rows.items[items])


def _quick(quantifier: Any) -> Any:
    """Unfitted copy with fewer bootstrap replicates, whose intervals are not calibrated."""
    fresh = clone(quantifier).set_params(calibrate_width=False)
    if hasattr(fresh, "n_worlds"):
        fresh.set_params(n_worlds=2)
    return fresh
