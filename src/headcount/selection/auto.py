"""The quantifier for who does not want to choose: it tries the likely winners and keeps one."""

from __future__ import annotations

import time
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
from headcount.methods.blend import Blend
from headcount.methods.meta import DelegatingQuantifier
from headcount.methods.scored import ScoreQuantifier
from headcount.scores.scorer import Scorer
from headcount.scores.sources import Source, given_source, sources_for
from headcount.selection.choice import Choice, Tried
from headcount.selection.judging import CLOSE_DRAWN, Judged, Judging, choose_scores, scorer_of
from headcount.selection.likely import likely_methods
from headcount.selection.passes import Labelled, Pass, Say, as_many_as_fit, run_passes
from headcount.selection.trials import Trial, Trials, teach_shift

GAIN = 0.03  # by which a blend must be better than the best candidate to be worth it
CLOSE = 0.05  # by which the simpler method may be worse than the best on bags that are not drawn
CLOSE_GROUPS = 0.5  # the same of groups, of which a dozen can hardly tell methods apart
FOR_SCORES = 0.6  # share of the budget that goes to classifiers


@dataclass(eq=False, repr=False)
class AutoQuantifier(DelegatingQuantifier):
    """Chooses and joins classifiers, and chooses the method, by errors on bags of labelled items.

    Classifiers that suit the items are cross-fitted over the same folds, and joined by a model of
    their held-out scores. Bags with known shares are made of held-out items, and the scores and
    then the method with the least mean error are kept; the simpler, or the first, where it is not
    clearly worse. On given or natural bags a blend is taken where it is 3 % better than all.

    Parameters
    ----------
    classifier : scikit-learn classifier, or mapping of name to classifier, optional
        What is to give the scores, alone or joined. By default what suits the items is tried: for
        features logistic regression of several strengths, discriminant analysis, a kernel
        approximation, extra trees and gradient boosting; for texts (a column of strings) words and
        characters with logistic regression and naive Bayes, and word vectors where wordllama is
        installed. Tables may have categories and missing cells.
    measure : {'ae', 'rae', 'se', 'kld', 'nmd'}, default 'ae'
        What the answers will be judged by.
    expect : {'learn', 'any shift', 'mild shift', 'no shift'}, default 'learn'
        How far class shares may move, as in `BayesQuantifier`; the bags are made accordingly,
        and 'learn' makes a third of each kind.
    size : int, optional
        Size of the bags to expect; 250, or a fifth of the labelled items if that is less.
    budget : float, default 120
        Seconds within which the choice is made. A classifier that would take too long, as a part
        of the items tells, is not started; if even the simplest would for all items, some are
        taken, at least 2,000. What was tried, and so the choice, may differ between machines if
        time is short; `choice_` tells.
    periods : bool, default False
        Whether the groups that `fit` is given are periods of time, in the order of their names:
        each is then estimated by what is known before it.
    vectorizer : str or transformer, default 'tfidf'
        How texts become vectors, if not by words and characters, as `make_vectorizer` takes it.
    candidates : mapping of name to quantifier, optional
        Methods on scores to choose from, in order of preference; the likely winners by default.
    cv, n_jobs, random_state
        As in `ScoreQuantifier`.
    verbose : bool, default False
        Whether to say what is being tried.

    Attributes
    ----------
    best_quantifier_ : ScoreQuantifier
    results_ : Frame
        A row a candidate: what it is, its error on the bags, its standard error, the seconds that
        it took, and the reason if it failed.
    choice_ : Choice
        What was chosen and how it compares; ``summary_`` says it in words.

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
        """One of the quantifiers that may be chosen."""
        return [BayesQuantifier()]

    def fit(
        self, X: Any, y: Any, *, groups: Any = None, bags: Bags | None = None, pool: Any = None
    ) -> Self:
        """Choose, then learn from all of (X, y).

        Parameters
        ----------
        X : items
        y : labels
        groups : array, optional
            Of each item, such as its source, event or month. Whole groups are left out, and methods
            are judged by how they estimate groups that neither they nor their classifiers have
            seen. In the end all learn over folds of items; ``cv=GroupKFold()`` keeps groups
            together there too, as where their items are nearly copies.
        bags : Bags with known shares, optional
            Development samples of the items in `pool`, by which methods are judged instead.
        pool : items of these bags
        """
        began = time.monotonic()
        self.check_params()
        data = self._labelled(X, y, groups)
        if (bags is None) != (pool is None):
            raise InputError("give bags and the pool of their items, or neither.")
        if bags is not None and (not isinstance(bags, Bags) or bags.prevalence is None):
            raise InputError("bags must be Bags with known shares: see Bags.with_truth.")
        sources = self._sources(X, len(np.unique(data.y)))
        until = began + FOR_SCORES * self.budget
        n_labelled, data = len(data), as_many_as_fit(sources[0], data, until)
        judging = self._judging(data=data, bags=bags, pool=pool, periods=self.periods)
        with announce(self.verbose) as say:
            passes = run_passes(sources, data.over_items(), until, say)
            return self._settle(passes, judging, began, say, n_labelled)

    def fit_scores(self, scores: Any, y: Any, *, classes: Any = None) -> Self:
        """Choose the method for scores that come from elsewhere, as `ScoreQuantifier` does."""
        began = time.monotonic()
        self.check_params()
        scorer = Scorer.from_scores(scores, y, classes, decisions=True)
        with announce(self.verbose) as say:
            passes = [Pass("given scores", (), scorer)]
            return self._settle(passes, self._judging(), began, say, len(scorer.codes))

    @property
    def summary_(self) -> str:
        """What was chosen and how it compares, in words."""
        return str(self.choice_)

    def check_params(self) -> None:
        """Refuse impossible settings before any work."""
        choose("measure", measure(self.measure).name, MEASURES)
        choose("expect", self.expect, EXPECTATIONS)
        check.at_least("budget", self.budget, 0)
        if self.size is not None:
            check.whole("size", self.size)
        for name, q in (self.candidates or {}).items():
            if not isinstance(q, ScoreQuantifier):
                raise InputError(f"candidate {name!r} does not work on scores: {q!r}.")

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
        return Labelled(X, array, groups, self.cv, self.n_jobs, self.random_state)

    def _sources(self, X: Any, n_classes: int) -> list[Source]:
        """Classifiers to try, the simplest first."""
        if self.classifier is None:
            return sources_for(X, n_classes, vectorizer=self.vectorizer)
        several = self.classifier
        if not isinstance(several, Mapping):
            several = {"the classifier as given": several}
        for one in several.values():
            if isinstance(one, type) or not hasattr(one, "get_params"):
                raise InputError(
                    f"classifier must be a scikit-learn classifier, such as LogisticRegression(), "
                    f"got {one!r}."
                )
        return [given_source(one, str(name)) for name, one in several.items()]

    def _judging(self, **more: Any) -> Judging:
        seed = as_seed(self.random_state)
        return Judging(self.measure, self.expect, self.size, seed, self.n_jobs, **more)

    def _settle(
        self, passes: list[Pass], judging: Judging, began: float, say: Say, n_labelled: int
    ) -> Self:
        """Choose scores, then a method, and let it learn from all of them."""
        until = began + self.budget
        judged = choose_scores(passes, judging, until, say)
        between = time.monotonic()
        trials, scorer = judged[0].trials, scorer_of(judged[0].done)
        tried = self._try_methods(scorer, trials, judging.kind, until, say)
        chosen = self._chosen(trials, tried, judging.kind)
        say(f"{chosen.name} learns from all")
        final = self._final(chosen.quantifier).fit_scorer(scorer)
        self.members_ = [teach_shift(final, judging.past())]
        self.classes_: NDArray[Any] = scorer.classes
        self.results_ = _as_frame(tried, str(trials.measure))
        seconds = between - began, time.monotonic() - between
        left = tuple((p.name, p.reason) for p in passes if p.scorer is None)
        self.choice_ = Choice(
            chosen.name,
            chosen.error,
            str(trials.measure),
            len(trials.truth),
            int(np.median(trials.sizes)),
            self.expect,
            _next_best(chosen, tried),
            _scores_tried(judged),
            left,
            judging.kind,
            seconds,
            (len(scorer.codes), n_labelled),
        )
        return self

    def _try_methods(
        self, scorer: Scorer, trials: Trials, kind: str, until: float, say: Say
    ) -> list[Trial]:
        """Trials of the candidates, as many as there is time for, at least one that succeeds."""
        if self.candidates is not None:
            several = [(str(name), clone(q)) for name, q in self.candidates.items()]
        else:
            several = likely_methods(
                scorer, self.measure, self.expect, natural=kind != "drawn", n_jobs=self.n_jobs
            )
        tried: list[Trial] = []
        for name, q in several:
            known = [t for t in tried if t.answers is not None]
            if known and time.monotonic() > until:
                break
            leads = f" ({min(known, key=lambda t: t.error).name} leads)" if known else ""
            say(f"trying {name}{leads}")
            tried.append(trials.run(name, q, until if known else np.inf))
        if not any(t.answers is not None for t in tried):
            raise InputError(f"every candidate failed; the first: {tried[0].reason}")
        return tried

    def _chosen(self, trials: Trials, tried: list[Trial], kind: str) -> Trial:
        """The simplest of the best, or a blend if that is worth it; the blend joins the tried.

        Where no group could be left out, the bags cannot show what care is good for: the most
        careful of those that cost little on them is taken. Bags that are drawn from the same items
        share the luck of these: only what is clearly worse on them is passed over, and weights of a
        blend cannot be learnt from them.
        """
        if kind == "too few groups":
            tied = trials.within(tried, 1.0, CLOSE, either=True)
            return max(tied, key=lambda t: getattr(t.quantifier, "drift", 0.0))
        if kind == "drawn":
            return trials.within(tried, 2.0, CLOSE_DRAWN, either=True)[0]
        chosen = trials.within(tried, 1.0, CLOSE_GROUPS if kind == "groups" else CLOSE)[0]
        blend = trials.blended(tried)
        if blend is not None and blend.error < (1 - GAIN) * min(t.error for t in tried):
            tried.append(blend)
            return blend
        return chosen

    def _final(self, chosen: ScoreQuantifier) -> ScoreQuantifier:
        """Fresh clone with full settings."""
        fresh: ScoreQuantifier = clone(chosen)
        for q in (fresh.quantifiers or []) if isinstance(fresh, Blend) else [fresh]:
            if isinstance(q, BayesQuantifier):
                # Worlds are for intervals that come from the posterior; answers do without.
                q.set_params(n_worlds=10 if q.has_own_posterior else 0, n_draws=1000)
        fresh.set_params(n_jobs=self.n_jobs, random_state=self.random_state)
        return fresh


def _as_frame(tried: list[Trial], which: str) -> Frame:
    return Frame(
        {
            "method": [t.name for t in tried],
            which: [t.error for t in tried],
            "seconds": [t.seconds for t in tried],
            "failure": [t.reason for t in tried],
        }
    )


def _next_best(chosen: Trial, tried: list[Trial]) -> Tried:
    others = [t for t in tried if t is not chosen and t.answers is not None]
    return tuple((t.name, t.error) for t in sorted(others, key=lambda t: t.error)[:3])


def _scores_tried(judged: list[Judged]) -> Tried:
    if not judged[0].done.recipe:
        return ()
    return tuple((j.done.name, j.trial.error) for j in judged)
