"""Cross-fitted classifiers and their stacks, as many as the budget affords."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
        return replace(
            self,
            X=_safe_indexing(self.X, rows),
            y=self.y[rows],
            groups=None if self.groups is None else self.groups[rows],
            cv=self.cv if splittable else 5,
        )

    def over_items(self) -> Labelled:
        """The same with folds of items, not of whole groups, unless a splitter is given.

        A classifier that has seen items of every group scores other groups better. Whether the
        scores hold there is checked on groups that were left out, not on held-out items.
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

    @property
    def n_folds(self) -> int:
        """Number of folds that costs are computed for."""
        cv = self.options()["cv"]
        return cv if isinstance(cv, int) else 5

    @property
    def problem(self) -> Size:
        """Size of the classification problem."""
        return Size.of(self.X, len(np.unique(self.y)))


@dataclass(frozen=True, eq=False)
class ClassifierPass:
    """A classifier, or a stack of several, and its scores of held-out items.

    Attributes
    ----------
    name : str
    recipe : sources of one classifier each, from which it can be fitted again
    scorer : cross-fitted scores; None if it failed or was not tried
    losses : negative log-likelihood of each held-out item
    reason : why there is no scorer
    """

    name: str
    recipe: tuple[Source, ...]
    scorer: Scorer | None = None
    losses: Floats | None = None
    reason: str = ""

    @property
    def loss(self) -> float:
        """Mean negative log-likelihood of held-out items."""
        return float("inf") if self.losses is None else float(self.losses.mean())

    def cost(self, data: Labelled) -> float:
        """Units of work to cross-fit it to labelled items."""
        return sum(cross_fit_cost(source, data.problem, data.n_folds) for source in self.recipe)

    def refit(self, data: Labelled) -> Scorer:
        """Cross-fit it to other items."""
        scorers = [s for source in self.recipe for s in _cross_fit_all(source, data).values()]
        return scorers[0] if len(scorers) == 1 else stack(scorers)


def fit_classifiers(
    sources: Sequence[Source], data: Labelled, budget: Budget, say: Say
) -> list[ClassifierPass]:
    """Cross-fit the classifiers that the budget affords, and a stack of them.

    The first classifier is always fitted. A source is fitted with all of its settings, or with the
    first setting of each family, or not at all.
    """
    size = data.problem
    passes: list[ClassifierPass] = []
    for number, source in enumerate(sources):
        say(f"trying {source.name}")
        options = [source, _first_settings(source)]
        options += [] if number else [_first_alone(source)]
        costs = [cross_fit_cost(option, size, data.n_folds) for option in options]
        fits = [i for i, cost in enumerate(costs) if budget.affords(cost)]
        if not fits and number:
            reason = f"it would take {min(costs):.2g} units of work"
            passes += [ClassifierPass(family, (), reason=reason) for family in source.families]
            continue
        chosen = fits[0] if fits else -1
        budget.spend(costs[chosen])
        passes += _fit_source(options[chosen], data, say)
    fitted = [p for p in passes if p.scorer is not None]
    if not fitted:
        _cross_fit_all(_first_alone(sources[0]), data)  # raises its own error
        raise InputError(f"no classifier can be fitted; the first: {passes[0].reason}")
    cost = stack_cost(len(fitted), size)
    if len(fitted) > 1 and budget.affords(cost):
        budget.spend(cost)
        passes += stack_passes(fitted)
    return passes


def select_classifier(passes: Sequence[ClassifierPass]) -> ClassifierPass:
    """Take the simplest classifier within one standard error of the best log loss.

    Held-out items are the independent units. The log loss tells good posteriors from slightly
    better ones where the errors of a method on a few hundred items cannot.
    """
    losses = [p.losses for p in passes if p.losses is not None]
    if len(losses) < len(passes):  # scores that are given have none
        return passes[0]
    table = np.array(losses)
    return passes[one_standard_error_rule(table, np.arange(table.shape[1]))]


def stack_passes(passes: Sequence[ClassifierPass]) -> list[ClassifierPass]:
    """Stack of the passes, without members of hardly any weight; none if one is left."""
    members = list(passes)
    while len(members) > 1:
        scorers = [p.scorer for p in members if p.scorer is not None]
        stacked, reason = attempt(partial(stack_with_losses, scorers))
        if stacked is None:
            return [ClassifierPass("stacked", (), reason=reason)]
        weights = np.abs(stacked[0].folds[0].weights).max(axis=1)
        # A weight below .03 changes a logit of 3 by less than .1, which no error shows.
        kept = [p for p, weight in zip(members, weights, strict=True) if weight >= 0.03]
        if len(kept) == len(members):
            name = " + ".join(p.name for p in members)
            recipe = tuple(source for p in members for source in p.recipe)
            return [ClassifierPass(name, recipe, *stacked)]
        members = kept
    return []


def subsample(source: Source, data: Labelled, budget: Budget) -> Labelled:
    """All items, or as many as the first classifier can be fitted to within the budget.

    At least 2,000 are kept, and at least 20 of every class: with fewer, sampling noise of the
    labelled items dominates the error. Items in groups, or with given splits, are all kept.
    """
    whole = data.groups is not None or not isinstance(data.cv, (int, float))
    classes, codes = np.unique(data.y, return_inverse=True)
    cost = cross_fit_cost(_first_alone(source), data.problem, data.n_folds)
    if whole or len(data) <= 2000 or budget.affords(cost):
        return data
    order = np.random.default_rng(0).permutation(len(data))
    rank = np.empty(len(data), dtype=np.int64)  # of an item within its class
    for c in range(len(classes)):
        own = order[codes[order] == c]
        rank[own] = np.arange(len(own))
    affordable = max(2000, int(len(data) * budget.left / cost))
    return data.part(np.union1d(np.flatnonzero(rank < 20), order[:affordable]))


def first_classifier(source: Source) -> Any:
    """The unfitted first classifier of a source, with its transformers."""
    (head,) = next(iter(_first_alone(source).families.values())).values()
    return source.joined(source.front, head)


def _first_settings(source: Source) -> Source:
    """The first classifier of every family."""
    families = {name: dict([*family.items()][:1]) for name, family in source.families.items()}
    return replace(source, families=families)


def _first_alone(source: Source) -> Source:
    """The first classifier of the first family."""
    families = _first_settings(source).families
    return replace(source, families=dict([*families.items()][:1]))


def _cross_fit_all(
    source: Source, data: Labelled, say: Say = lambda _: None
) -> dict[tuple[str, str], Scorer]:
    """Scorers of all classifiers of a source, by family and name."""
    options = data.options()
    if source.is_given:  # it may be fitted already, or predict other classes than it scores best
        ((family, ((name, classifier),)),) = [(f, c.items()) for f, c in source.families.items()]
        return {(family, name): cross_fit(classifier, data.X, data.y, **options)}
    scorers = cross_fit_source(source, data.X, data.y, **options, say=say)
    return {(f, name): scorer for f, some in scorers.items() for name, scorer in some.items()}


def _fit_source(source: Source, data: Labelled, say: Say) -> list[ClassifierPass]:
    """The best classifier of each family, by the likelihood of held-out items."""
    scorers, reason = attempt(lambda: _cross_fit_all(source, data, say))
    if scorers is None:
        return [ClassifierPass(family, (), reason=reason) for family in source.families]
    passes = []
    for family, classifiers in source.families.items():
        losses = {name: held_out_losses(scorers[family, name]) for name in classifiers}
        best = min(losses, key=lambda name: losses[name].mean())
        recipe = replace(source, families={family: {best: classifiers[best]}})
        passes.append(ClassifierPass(best, (recipe,), scorers[family, best], losses[best]))
    return passes
