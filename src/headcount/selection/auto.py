"""Automatic selection of classifiers and quantification method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
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
from headcount.methods.base import Quantifier, without_calibration
from headcount.methods.bayes import BayesQuantifier
from headcount.methods.likelihood import SLD
from headcount.methods.meta import DelegatingQuantifier
from headcount.methods.scored import ScoreQuantifier
from headcount.scores.scorer import Scorer
from headcount.scores.sources import Source, given_source, sources_for
from headcount.selection.budget import Budget
from headcount.selection.candidates import FOR_TRIALS, Candidates, Trial, default_candidates
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
from headcount.selection.validation_bags import ValidationPlan, ValidationSplit, teach_shift, try_on


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
    calibrate_width, cv, n_jobs, random_state
        As in `ScoreQuantifier`; only the selected method is calibrated. There are no more folds
        than labelled items of a class.
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
    calibrate_width: bool = True
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
            plain = SLD(first_classifier(sources[0]), n_jobs=self.n_jobs)
            plain = self._final(plain.set_params(random_state=self.random_state))
            choice = self._choice(items=(len(data), data.n_all))
            return self._fall_back(plain.fit(data.X, data.y), choice)
        first = Budget(0.6 * self.budget)  # most of the work, since trials of methods are cheap
        data = subsample(sources[0], data, first)
        with announce(self.verbose) as say:
            passes = fit_classifiers(sources, data.over_items(), first, say)
            plan = ValidationPlan.of(data, self.periods, bags, pool)
            return self._select(passes, plan, Budget(self.budget, first.spent), say)

    def fit_scores(self, scores: Any, y: Any, *, classes: Any = None) -> Self:
        """Select the method for scores that come from elsewhere, as in `ScoreQuantifier`."""
        self.check_params()
        scorer = Scorer.from_scores(scores, y, classes, decisions=True)
        plan = ValidationPlan(Labelled(scorer.scores, scorer.codes, n_all=len(scorer.codes)))
        with announce(self.verbose) as say:
            passes = [ClassifierPass("given scores", (), scorer)]
            return self._select(passes, plan, Budget(self.budget), say)

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
        one = {"the classifier as given": self.classifier}
        given = self.classifier if isinstance(self.classifier, Mapping) else one
        for classifier in given.values():
            if isinstance(classifier, type) or not hasattr(classifier, "get_params"):
                raise InputError(
                    f"classifier must be a scikit-learn classifier, such as LogisticRegression(), "
                    f"got {classifier!r}."
                )
        return [given_source(classifier, str(name)) for name, classifier in given.items()]

    def _choice(self, **about: Any) -> Choice:
        return Choice(measure=str(measure(self.measure)), expect=self.expect, **about)

    def _select(
        self, passes: list[ClassifierPass], plan: ValidationPlan, budget: Budget, say: Say
    ) -> Self:
        """Select a classifier, then a method if there are enough items to compare them."""
        fitted = plan.affordable([p for p in passes if p.scorer is not None], budget)
        best = select_classifier(fitted)
        scorer = best.scorer
        assert scorer is not None
        others = sorted((p for p in fitted if p is not best), key=lambda p: p.loss)
        choice = self._choice(
            classifiers=tuple((p.name, p.loss) for p in [best, *others] if p.recipe),
            left_out=tuple((p.name, p.reason) for p in passes if p.scorer is None),
            items=(len(scorer.codes), plan.data.n_all),
        )
        if plan.can_compare(scorer):
            return self._select_method(best, scorer, plan, choice, budget, say)
        return self._fall_back(self._final(SLD(calibrator="bcts")).fit_scorer(scorer), choice)

    def _select_method(
        self,
        best: ClassifierPass,
        scorer: Scorer,
        plan: ValidationPlan,
        choice: Choice,
        budget: Budget,
        say: Say,
    ) -> Self:
        """Select a method, and fit it to all held-out scores."""
        before = budget.spent
        say(f"making bags with {best.name}")
        budget.spent += plan.refit_cost(best)
        splits = plan.splits(best, self.expect, self.size, as_seed(self.random_state))
        candidates = self._candidates(plan, len(scorer.classes))
        trials = self._try_all(candidates, splits, budget, say)
        name = [*trials][plan.select([*trials.values()], splits)]
        say(f"{name} learns from all items")
        final = self._final(candidates[name]).fit_scorer(scorer)
        sizes = np.concatenate([split.bags.sizes for split in splits])
        errors = {n: t.error for n, t in trials.items() if n != name and not t.failure}
        choice = replace(
            choice,
            method=name,
            error=trials[name].error,
            n_bags=len(sizes),
            size=int(np.median(sizes)),
            others=tuple(sorted(errors.items(), key=lambda item: item[1])[:3]),
            bags=plan.kind,
            work=(before, budget.spent - before),
        )
        return self._keep(teach_shift(final, plan.past()), choice, trials)

    def _candidates(self, plan: ValidationPlan, n_classes: int) -> Candidates:
        if self.candidates is not None:
            return {str(name): q for name, q in self.candidates.items()}
        natural, few = plan.kind != "drawn", plan.kind == "too few groups"
        candidates = default_candidates(
            self.measure, self.expect, n_classes, natural=natural, representative=not few
        )
        for q in candidates.values():
            q.set_params(n_jobs=self.n_jobs, random_state=self.random_state)
        return candidates

    def _try_all(
        self, candidates: Candidates, splits: list[ValidationSplit], budget: Budget, say: Say
    ) -> dict[str, Trial]:
        """Try the candidates in order while the budget lasts, until one at least succeeds."""
        trials: dict[str, Trial] = {}
        for name, quantifier in candidates.items():
            cost = sum(split.cost(quantifier) for split in splits)
            if any(not t.failure for t in trials.values()) and not budget.affords(cost):
                break
            budget.spent += cost
            say(f"trying {name}")
            cheap = without_calibration(quantifier)
            if self.candidates is None and isinstance(cheap, BayesQuantifier):
                cheap.set_params(**FOR_TRIALS)
            trials[name] = try_on(splits, cheap, measure(self.measure))
        if all(trial.failure for trial in trials.values()):
            failure = next(iter(trials.values())).failure
            raise InputError(f"every candidate failed; the first: {failure}")
        return trials

    def _final(self, quantifier: ScoreQuantifier) -> ScoreQuantifier:
        """Clone that learns from all items."""
        return clone(quantifier) if self.calibrate_width else without_calibration(quantifier)

    def _fall_back(self, fitted: ScoreQuantifier, choice: Choice) -> Self:
        choice = replace(choice, method="SLD, bcts" if fitted.calibrator else "SLD")
        return self._keep(fitted, choice, {choice.method: Trial(np.array([np.nan]))})

    def _keep(self, fitted: ScoreQuantifier, choice: Choice, trials: Mapping[str, Trial]) -> Self:
        self.members_ = [fitted]
        self.classes_: NDArray[Any] = fitted.classes_
        self.choice_ = choice
        errors = [trial.error for trial in trials.values()]
        failures = [trial.failure for trial in trials.values()]
        self.results_ = Frame({"method": [*trials], choice.measure: errors, "failure": failures})
        return self
