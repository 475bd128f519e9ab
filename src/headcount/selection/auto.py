"""Automatic selection of classifiers and quantification method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from headcount._core import validation as check
from headcount._core.frame import Frame
from headcount._core.progress import announce
from headcount.bags import Bags
from headcount.exceptions import InputError, choose
from headcount.inference.posteriors import EXPECTATIONS, MEASURES
from headcount.kernels.random import as_seed
from headcount.measures import Measure, measure
from headcount.methods.base import Quantifier
from headcount.methods.bayes import BayesQuantifier
from headcount.methods.likelihood import SLD
from headcount.methods.meta import DelegatingQuantifier
from headcount.methods.scored import ScoreQuantifier
from headcount.scores.scorer import Scorer
from headcount.scores.sources import Source, given_source, sources_for
from headcount.selection.budget import Budget
from headcount.selection.candidates import (
    Candidate,
    Trial,
    default_candidates,
)
from headcount.selection.choice import Choice
from headcount.selection.classifiers import (
    ClassifierPass,
    Labelled,
    Say,
    first_classifier,
    fit_classifiers,
    select_classifier,
    subsample,
)
from headcount.selection.validation_bags import (
    N_SPLITS,
    ValidationBags,
    ValidationPlan,
    teach_shift,
)


@dataclass(eq=False, repr=False)
class AutoQuantifier(DelegatingQuantifier):
    """Selects classifiers by log loss, and the method by its error on validation bags.

    Classifiers that suit the items are cross-fitted over the same folds, and stacked. Bags with
    known prevalence are made of held-out items. Both steps follow the one-standard-error rule:
    the simplest candidate that is not distinguishable from the best is selected.

    Parameters
    ----------
    classifier : scikit-learn classifier, or mapping of name to classifier, optional
        Classifiers to try instead of the default ones. The default depends on the items. Features:
        logistic regression of several strengths, discriminant analysis, a kernel approximation,
        extra trees and gradient boosting. Texts (a column of strings): words and characters with
        logistic regression and naive Bayes, and word vectors if wordllama is installed. Tables
        may have categories and missing cells.
    measure : {'ae', 'rae', 'se', 'kld', 'nmd'}, default 'ae'
        Error measure to optimise.
    expect : {'learn', 'any shift', 'mild shift', 'no shift'}, default 'learn'
        How far class prevalence may change, as in `BayesQuantifier`. Bags are drawn accordingly;
        'learn' draws a third of each of the other three.
    size : int, optional
        Size of drawn bags; by default 250, or a fifth of the labelled items if that is less.
    budget : float, default 120
        Units of work for the selection. A unit is about one second of one core, but it is computed
        from the numbers of items, features, classes, folds and bags, and never measured: the same
        data gives the same model on any machine. A classifier or method that exceeds the budget
        is not tried; if even the first classifier does, it learns from a random part of the items,
        at least 2,000.
    periods : bool, default False
        Whether the groups that `fit` is given are periods of time, sorted by name. Each is then
        estimated from what is known before it.
    vectorizer : str or transformer, default 'tfidf'
        How texts become vectors, as in `TextQuantifier`; the default tries several ways.
    candidates : mapping of name to quantifier, optional
        Methods on scores to select from, in order of preference.
    cv, n_jobs, random_state
        As in `ScoreQuantifier`. There are no more folds than labelled items of a class.
    verbose : bool, default False
        Whether to show progress.

    Attributes
    ----------
    best_quantifier_ : ScoreQuantifier
        Selected method, fitted to all items.
    results_ : Frame
        One row per candidate: its error on the bags, and the reason if it failed.
    choice_ : Choice
        What was selected and how it compares; ``summary_`` has it in words.

    Notes
    -----
    Comparing methods on drawn bags takes ten labelled items of every class. With fewer, SLD with
    bias-corrected temperature scaling is fitted without comparison; with a single item of a class,
    plain SLD. ``choice_.bags`` is then 'none'.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> auto = AutoQuantifier(measure="rae", budget=0).fit(X, y)
    >>> auto.predict(X).round(1)
    array([0.4, 0.6])
    >>> " was chosen: mean rae " in auto.summary_
    True
    """

    classifier: Any = None
    _: KW_ONLY
    measure: str | Measure = "ae"
    expect: str = "learn"
    size: int | None = None
    budget: float = 120.0
    periods: bool = False
    vectorizer: Any = "tfidf"
    candidates: Mapping[str, Any] | None = None
    cv: Any = 5
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: bool = False

    def parts(self) -> list[Quantifier]:
        """One of the quantifiers that may be selected."""
        return [BayesQuantifier()]

    def fit(
        self, X: Any, y: Any, *, groups: Any = None, bags: Bags | None = None, pool: Any = None
    ) -> Self:
        """Select classifiers and a method, and fit them to all of (X, y).

        Parameters
        ----------
        X : items
        y : labels
        groups : array, optional
            Group of each item, such as its source, event or month. Whole groups are left out, and
            methods are compared on groups that neither they nor their classifiers have seen. The
            final fit uses folds of items; ``cv=GroupKFold()`` keeps groups together there too,
            for groups whose items are near copies of each other.
        bags : Bags with known prevalence, optional
            Development samples of the items in `pool`, to compare methods on.
        pool : items of these bags
        """
        self.check_params()
        data = self._labelled(X, y, groups)
        if (bags is None) != (pool is None):
            raise InputError("give bags and the pool of their items, or neither.")
        if bags is not None and (not isinstance(bags, Bags) or bags.prevalence is None):
            raise InputError("bags must be Bags with known prevalence: see Bags.with_truth.")
        classes, counts = np.unique(data.y, return_counts=True)
        check.two_or_more(classes)
        sources = self._sources(X, len(classes))
        if counts.min() < 2:
            return self._fit_whole(first_classifier(sources[0]), data)
        first = Budget(0.6 * self.budget)  # most of the work, since trials of methods are cheap
        data = subsample(sources[0], data, first)
        with announce(self.verbose) as say:
            passes = fit_classifiers(sources, data.over_items(), first, say)
            plan = self._plan(data, bags, pool)
            return self._select(passes, plan, Budget(self.budget, first.spent), say)

    def fit_scores(self, scores: Any, y: Any, *, classes: Any = None) -> Self:
        """Select the method for scores that come from elsewhere, as in `ScoreQuantifier`."""
        self.check_params()
        scorer = Scorer.from_scores(scores, y, classes, decisions=True)
        given = ClassifierPass("given scores", (), scorer)
        plan = self._plan(Labelled(scorer.scores, scorer.codes, n_all=len(scorer.codes)))
        with announce(self.verbose) as say:
            return self._select([given], plan, Budget(self.budget), say)

    @property
    def summary_(self) -> str:
        """What was selected and how it compares, in words."""
        return str(self.choice_)

    def check_params(self) -> None:
        """Validate parameters."""
        choose("measure", measure(self.measure).name, MEASURES)
        choose("expect", self.expect, EXPECTATIONS)
        check.at_least("budget", self.budget, 0)
        if self.size is not None:
            check.whole("size", self.size)
        for name, q in (self.candidates or {}).items():
            if not isinstance(q, ScoreQuantifier):
                raise InputError(f"candidate {name!r} does not work on scores: {q!r}.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.classifier is None:  # tables may have categories and missing cells, or be texts
            tags.input_tags.string = True
            tags.input_tags.categorical = True
            tags.input_tags.allow_nan = True
        return tags

    def _labelled(self, X: Any, y: Any, groups: Any) -> Labelled:
        array = check.labels(y)
        check.same_length(_num_samples(X), array)
        if groups is not None:
            groups = check.present(check.column(groups, "groups"), "the group")
            check.same_length(len(groups), array, "groups")
        elif self.periods:
            raise InputError("periods=True is about groups: pass groups= to fit.")
        if isinstance(X, list):
            X = np.asarray(X, dtype=object if X and isinstance(X[0], str) else None)
        return Labelled(X, array, groups, self.cv, self.n_jobs, self.random_state, len(array))

    def _sources(self, X: Any, n_classes: int) -> list[Source]:
        """Classifiers to try, the simplest first."""
        if self.classifier is None:
            return sources_for(X, n_classes, vectorizer=self.vectorizer)
        given = self.classifier
        if not isinstance(given, Mapping):
            given = {"the classifier as given": given}
        for classifier in given.values():
            if isinstance(classifier, type) or not hasattr(classifier, "get_params"):
                raise InputError(
                    f"classifier must be a scikit-learn classifier, such as LogisticRegression(), "
                    f"got {classifier!r}."
                )
        return [given_source(classifier, str(name)) for name, classifier in given.items()]

    def _plan(self, data: Labelled, bags: Bags | None = None, pool: Any = None) -> ValidationPlan:
        seed = as_seed(self.random_state)
        return ValidationPlan(data, self.expect, self.size, self.periods, seed, bags, pool)

    def _select(
        self, passes: list[ClassifierPass], plan: ValidationPlan, budget: Budget, say: Say
    ) -> Self:
        """Select a classifier, then a method, and fit the method to all held-out scores."""
        fitted = _affordable([p for p in passes if p.scorer is not None], plan, budget)
        best = select_classifier(fitted)
        assert best.scorer is not None
        others = sorted((p for p in fitted if p is not best), key=lambda p: p.loss)
        about: dict[str, Any] = {
            "measure": str(measure(self.measure)),
            "expect": self.expect,
            "classifiers": tuple((p.name, p.loss) for p in [best, *others] if p.recipe),
            "left_out": tuple((p.name, p.reason) for p in passes if p.scorer is None),
            "items": (len(best.scorer.codes), plan.data.n_all),
        }
        if not plan.can_compare(best.scorer):
            return self._fall_back(SLD(calibrator="bcts").fit_scorer(best.scorer), **about)
        before = budget.spent
        say(f"making bags with {best.name}")
        budget.spend(N_SPLITS * best.cost(plan.data) if plan.refits else 0.0)
        bags = plan.bags_for(best)
        candidates = self._candidates(plan, len(best.scorer.classes))
        trials = _try_all(candidates, bags, measure(self.measure), budget, say)
        chosen = bags.select(trials)
        say(f"{candidates[chosen].name} learns from all items")
        fitted_method = clone(candidates[chosen].quantifier).fit_scorer(best.scorer)
        self._keep(teach_shift(fitted_method, plan.past()))
        names = [candidate.name for candidate in candidates[: len(trials)]]
        errors = [trial.error for trial in trials]
        failures = [trial.failure for trial in trials]
        self.results_ = Frame({"method": names, about["measure"]: errors, "failure": failures})
        next_best = [i for i in np.argsort(errors) if i != chosen and not failures[i]]
        self.choice_ = Choice(
            method=names[chosen],
            error=errors[chosen],
            n_bags=len(bags.sizes),
            size=int(np.median(bags.sizes)),
            others=tuple((names[i], errors[i]) for i in next_best[:3]),
            bags=plan.kind,
            work=(before, budget.spent - before),
            **about,
        )
        return self

    def _candidates(self, plan: ValidationPlan, n_classes: int) -> list[Candidate]:
        if self.candidates is not None:
            return [Candidate(str(name), q, q) for name, q in self.candidates.items()]
        candidates = default_candidates(
            self.measure,
            self.expect,
            n_classes,
            natural=plan.kind != "drawn",
            representative=plan.kind != "too few groups",
        )
        settings = {"n_jobs": self.n_jobs, "random_state": self.random_state}
        for candidate in candidates:
            candidate.quantifier.set_params(**settings)
            candidate.trial.set_params(**settings)
        return candidates

    def _fit_whole(self, classifier: Any, data: Labelled) -> Self:
        """Fit SLD without held-out scores, where a class has a single item."""
        settings: dict[str, Any] = {"n_jobs": self.n_jobs, "random_state": self.random_state}
        fitted = SLD(classifier, **settings).fit(data.X, data.y)
        items = (len(data), data.n_all)
        return self._fall_back(
            fitted, measure=str(measure(self.measure)), expect=self.expect, items=items
        )

    def _fall_back(self, fitted: ScoreQuantifier, **about: Any) -> Self:
        """Take SLD without comparison."""
        self._keep(fitted)
        name = "SLD, bcts" if fitted.calibrator else "SLD"
        self.results_ = Frame({"method": [name], about["measure"]: [np.nan], "failure": [""]})
        self.choice_ = Choice(name, float("nan"), n_bags=0, size=0, bags="none", **about)
        return self

    def _keep(self, fitted: ScoreQuantifier) -> None:
        self.members_ = [fitted]
        self.classes_: NDArray[Any] = fitted.classes_


def _affordable(
    fitted: list[ClassifierPass], plan: ValidationPlan, budget: Budget
) -> list[ClassifierPass]:
    """Classifiers that can be fitted again for the bags with half of the work that is left.

    The cheapest is always one of them.
    """
    if not plan.refits:
        return fitted
    costs = [N_SPLITS * p.cost(plan.data) for p in fitted]
    limit = max(min(costs), budget.left / 2)
    return [p for p, cost in zip(fitted, costs, strict=True) if cost <= limit]


def _try_all(
    candidates: list[Candidate], bags: ValidationBags, which: Measure, budget: Budget, say: Say
) -> list[Trial]:
    """Try the candidates in order while the budget lasts, until one at least succeeds."""
    trials: list[Trial] = []
    for candidate in candidates:
        cost = bags.cost(candidate)
        if any(not t.failure for t in trials) and not budget.affords(cost):
            break
        budget.spend(cost)
        say(f"trying {candidate.name}")
        trials.append(bags.try_out(candidate, which))
    if all(trial.failure for trial in trials):
        raise InputError(f"every candidate failed; the first: {trials[0].failure}")
    return trials
