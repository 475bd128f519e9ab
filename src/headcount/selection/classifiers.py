"""Cross-fitted classifiers and their stacks, as many as the budget affords."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from headcount._core.attempt import attempt
from headcount._core.types import Floats, Ints
from headcount.exceptions import InputError
from headcount.scores.crossfit import cross_fit, cross_fit_source
from headcount.scores.scorer import Scorer
from headcount.scores.sources import Source
from headcount.scores.stacking import held_out_losses, stack, stack_with_losses
from headcount.selection.budget import Budget, Size, cross_fit_cost, stack_cost
from headcount.selection.rule import one_standard_error_rule

Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Labelled items, and how classifiers are cross-fitted to them."""

    X: Any
    y: NDArray[Any]
    groups: NDArray[Any] | None = None
    cv: Any = 5
    n_jobs: int | None = None
    random_state: Any = 0
    n_all: int = 0  # labelled items before subsampling

    def __len__(self) -> int:
        return len(self.y)

    def part(self, rows: Ints) -> Labelled:
        """Some of the items; splits that were given as item numbers become five folds."""
        splittable = isinstance(self.cv, (int, float)) or hasattr(self.cv, "split")
        groups = None if self.groups is None else self.groups[rows]
        cv = self.cv if splittable else 5
        return replace(self, X=_safe_indexing(self.X, rows), y=self.y[rows], groups=groups, cv=cv)

    def over_items(self) -> Labelled:
        """The same with folds of items, not of whole groups, unless a splitter is given.

        A classifier that has seen items of every group scores other groups better.
        """
        return replace(self, groups=None) if isinstance(self.cv, (int, float)) else self

    def options(self) -> dict[str, Any]:
        """Options of `cross_fit`, with no more folds than groups, or than items of a class."""
        cv, groups = self.cv, self.groups
        if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
            smallest = int(np.unique(self.y, return_counts=True)[1].min())
            n_groups = len(self.y) if groups is None else len(np.unique(groups))
            cv = min(int(cv), max(2, smallest), n_groups) if cv >= 2 else cv
        jobs, state = self.n_jobs, self.random_state
        return {"cv": cv, "groups": groups, "n_jobs": jobs, "random_state": state}

    @cached_property
    def codes(self) -> Ints:
        """Class of each item, as a number."""
        return np.unique(self.y, return_inverse=True)[1]

    @cached_property
    def problem(self) -> Size:
        """Size of the classification problem."""
        return Size.of(self.X, len(np.unique(self.y)))

    def cost(self, *sources: Source) -> float:
        """Units of work to cross-fit all classifiers of these sources."""
        cv = self.options()["cv"]
        n_folds = cv if isinstance(cv, int) else 5
        return sum(cross_fit_cost(source, self.problem, n_folds) for source in sources)


@dataclass(frozen=True, eq=False)
class ClassifierPass:
    """A classifier, or a stack of several, and its cross-fitted scores, or why there are none."""

    name: str
    recipe: tuple[Source, ...]  # of one classifier each, from which it can be fitted again
    scorer: Scorer | None = None
    losses: Floats | None = None  # negative log-likelihood of each held-out item
    reason: str = ""

    @property
    def loss(self) -> float:
        """Mean negative log-likelihood of held-out items."""
        return float("inf") if self.losses is None else float(self.losses.mean())

    def refit(self, data: Labelled) -> Scorer:
        """Cross-fit it to other items."""
        fitted = [_cross_fit_all(source, data) for source in self.recipe]
        scorers = [s for families in fitted for some in families.values() for s in some.values()]
        return scorers[0] if len(scorers) == 1 else stack(scorers)


def fit_classifiers(
    sources: Sequence[Source], data: Labelled, budget: Budget, say: Say
) -> list[ClassifierPass]:
    """Cross-fit the classifiers that the budget affords, the first always, and a stack of them.

    A source is fitted with all of its settings, or with the first of each family, or not at all.
    """
    passes: list[ClassifierPass] = []
    for source in sources:
        say(f"trying {source.name}")
        options = [source, _first(source)] + [_first(source, 1)] * (source is sources[0])
        costs = [data.cost(option) for option in options]
        chosen = next((i for i, cost in enumerate(costs) if budget.affords(cost)), -1)
        if chosen < 0 and source is not sources[0]:
            passes += _failed(source, f"it would take {min(costs):.2g} units of work")
        else:
            budget.spent += costs[chosen]
            passes += _fit_source(options[chosen], data, say)
    fitted = [p for p in passes if p.scorer is not None]
    if not fitted:
        _cross_fit_all(_first(sources[0], 1), data)  # raises its own error
        raise InputError(f"no classifier can be fitted; the first: {passes[0].reason}")
    cost = stack_cost(len(fitted), data.problem)
    if len(fitted) > 1 and budget.affords(cost):
        budget.spent += cost
        passes += _stacked(fitted)
    return passes


def select_classifier(passes: Sequence[ClassifierPass]) -> ClassifierPass:
    """Take the simplest classifier within one standard error of the best log loss.

    The log loss tells good posteriors from slightly better ones where the errors of a method on a
    few hundred items cannot. Scores that are given have none.
    """
    losses = np.array([p.losses for p in passes if p.losses is not None])
    return passes[one_standard_error_rule(losses, np.arange(losses.shape[1])) if losses.size else 0]


def subsample(source: Source, data: Labelled, budget: Budget) -> Labelled:
    """As many items as the first classifier can be fitted to within the budget.

    At least 2,000 are kept, and 20 of every class: with fewer, sampling noise of the labelled items
    dominates the error. Items in groups, or with given splits, are all kept.
    """
    whole = data.groups is not None or not isinstance(data.cv, (int, float))
    cost = data.cost(_first(source, 1))
    if whole or len(data) <= 2000 or budget.affords(cost):
        return data
    order = np.random.default_rng(0).permutation(len(data))
    shuffled = data.y[order]
    few = [order[shuffled == label][:20] for label in np.unique(data.y)]
    affordable = max(2000, int(len(data) * budget.left / cost))
    return data.part(np.unique(np.concatenate([*few, order[:affordable]])))


def first_classifier(source: Source) -> Any:
    """The unfitted first classifier of a source, with its transformers."""
    (family,) = _first(source, 1).families.values()
    return source.joined(source.front, next(iter(family.values())))


def _first(source: Source, n_families: int | None = None) -> Source:
    """The first classifier of the first families, by default of all."""
    families = [(f, dict([*some.items()][:1])) for f, some in source.families.items()]
    return replace(source, families=dict(families[:n_families]))


def _cross_fit_all(
    source: Source, data: Labelled, say: Say = lambda _: None
) -> Mapping[str, Mapping[str, Scorer]]:
    """Scorers of all classifiers of a source, by family and name."""
    X, y, options = data.X, data.y, data.options()
    if not source.is_given:
        return cross_fit_source(source, X, y, **options, say=say)
    # It may be fitted already, or predict other classes than it scores best.
    return {
        family: {name: cross_fit(classifier, X, y, **options) for name, classifier in some.items()}
        for family, some in source.families.items()
    }


def _fit_source(source: Source, data: Labelled, say: Say) -> list[ClassifierPass]:
    """The best classifier of each family, by the likelihood of held-out items."""
    passes: list[ClassifierPass] = []
    scorers, reason = attempt(partial(_cross_fit_all, source, data, say))
    if scorers is None:
        return _failed(source, reason)
    for family, classifiers in source.families.items():
        losses = {name: held_out_losses(scorers[family][name]) for name in classifiers}
        best = min(losses, key=lambda name: losses[name].mean())
        recipe = replace(source, families={family: {best: classifiers[best]}})
        passes.append(ClassifierPass(best, (recipe,), scorers[family][best], losses[best]))
    return passes


def _failed(source: Source, reason: str) -> list[ClassifierPass]:
    return [ClassifierPass(family, (), reason=reason) for family in source.families]


def _stacked(members: list[ClassifierPass]) -> list[ClassifierPass]:
    """Stack of the passes, without members of hardly any weight; none if one is left."""
    while len(members) > 1:
        scorers = [p.scorer for p in members if p.scorer is not None]
        stacked, reason = attempt(partial(stack_with_losses, scorers))
        if stacked is None:
            return [ClassifierPass("stacked", (), reason=reason)]
        weights = np.abs(stacked[0].folds[0].weights).max(axis=1)
        # A weight below .03 changes a logit of 3 by less than .1, which no error shows.
        kept = [p for p, weight in zip(members, weights, strict=True) if weight >= 0.03]
        if len(kept) == len(members):
            recipe = tuple(source for p in members for source in p.recipe)
            return [ClassifierPass(" + ".join(p.name for p in members), recipe, *stacked)]
        members = kept
    return []
