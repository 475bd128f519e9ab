"""Labelled rows that belong to groups: how the model does on groups that it had not seen."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.inference.diagnostics import LEVEL, Diagnosis, diagnose_scores
from headcount.inference.pooling import Pooling, learn_pooling
from headcount.inference.spread import Request
from headcount.scores.splits import Split, make_splits

FOLDS = 5
FEWEST = 5  # groups that something can be learnt from
ROWS = 10  # of a group that the model is tried on


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of the labelled rows.

    Attributes
    ----------
    names : of the groups
    counts : labelled rows of each, by class
    fold : the classifier that had not seen the group
    """

    names: list[str]
    counts: Ints
    fold: Ints
    pooling: Pooling

    def known(self, names: list[str]) -> tuple[Ints, Ints]:
        """Folds and own rows of groups by name: -1 and none for those without labelled rows."""
        place = {name: i for i, name in enumerate(self.names)}
        where = np.array([place.get(name, -1) for name in names], dtype=np.int64)
        own = np.where((where >= 0)[:, None], self.counts[where], 0)
        return np.where(where >= 0, self.fold[where], -1), own

    def sized(self, diagnosis: Diagnosis) -> Diagnosis:
        """Flags with the size that they had on held-out groups."""
        off = np.sqrt(self.pooling.beyond[1]) * (diagnosis.fit < LEVEL)[:, None]
        return replace(diagnosis, off=off)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return {
            "names": self.names,
            "counts": self.counts.tolist(),
            "fold": self.fold.tolist(),
            "pooling": self.pooling.to_dict(),
        }

    @classmethod
    def from_dict(cls, about: dict[str, Any]) -> Groups:
        """The same from a file."""
        return cls(
            [str(name) for name in about["names"]],
            np.array(about["counts"], dtype=np.int64),
            np.array(about["fold"], dtype=np.int64),
            Pooling.from_dict(about["pooling"]),
        )


def split_by_group(labels: NDArray[Any], groups: NDArray[Any]) -> list[Split]:
    """Folds that leave out whole groups."""
    classes, codes = np.unique(labels, return_inverse=True)
    folds = min(FOLDS, len(np.unique(groups)))
    if folds < 2:
        raise InputError(f"all labelled rows are of the group {groups[0]!r}: leave the groups out.")
    return make_splits(None, codes, classes, folds, groups=groups, random_state=0)


def learn_groups(
    quantifier: Any, groups: NDArray[Any], splits: list[Split] | None
) -> tuple[Groups, dict[str, Any]]:
    """What held-out groups tell, and how far off the model is on them.

    Parameters
    ----------
    quantifier : fitted to the rows with these splits; of scores from elsewhere there are none
    groups : of each labelled row
    """
    scorer = quantifier.scorer_
    names, own = np.unique(groups, return_inverse=True)
    k = len(scorer.classes)
    counts = np.zeros((len(names), k), dtype=np.int64)
    np.add.at(counts, (own, scorer.codes), 1)
    fold = np.full(len(names), -1)
    for f, (_, test) in enumerate(splits or []):
        fold[own[test]] = f
    sizes = counts.sum(axis=1)
    large = np.flatnonzero(sizes >= min(ROWS, np.sort(sizes)[-min(FEWEST, len(sizes))]))
    parts = np.arange(len(names)) % FOLDS if splits is None else fold
    found, variance, flagged = _held_out(quantifier, own, large, parts)
    truth = counts[large] / sizes[large][:, None]
    pooling = learn_pooling(found, variance, truth, sizes[large], flagged)
    answer = pooling.middle + pooling.slope * (found - pooling.middle)
    bags = Bags.from_lists([np.flatnonzero(own == g) for g in large], n_items=len(own))
    counted = bags.shares(scorer.scores.argmax(axis=1), k)
    off = {
        "groups": len(large),
        "error": float(np.abs(answer - truth).mean()),
        "counting": float(np.abs(counted - truth).mean()),
        "constant": float(np.abs(pooling.middle - truth).mean()),
    }
    return Groups([str(n) for n in names], counts, fold, pooling), off


def _held_out(
    quantifier: Any, own: Ints, large: Ints, parts: Ints
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Estimates of groups by what was learnt from the groups of other parts alone."""
    scorer = quantifier.scorer_
    k = len(scorer.classes)
    found, variance = np.zeros((len(large), k)), np.zeros((len(large), k))
    flagged = np.zeros(len(large), dtype=bool)
    for part in np.unique(parts[large]):
        rest = np.flatnonzero(parts[own] != part)
        here = np.flatnonzero(parts[large] == part)
        some = scorer.part(rest) if len(np.unique(scorer.codes[rest])) == k else scorer
        fresh = clone(quantifier)
        if hasattr(fresh, "n_worlds"):
            fresh.set_params(n_worlds=2)
        bags = Bags.from_lists([np.flatnonzero(own == g) for g in large[here]], n_items=len(own))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            half = fresh.fit_scorer(some)
            view = [(scorer.scores, bags)]
            bound = half.bound(view, bags.sizes, Request(n_draws=120))
        found[here], variance[here] = bound.prevalence, bound.variance
        flagged[here] = diagnose_scores(half.scorer_, view).fit < LEVEL
    return found, variance, flagged
