"""The quantifier for who does not want to choose: it tries the likely winners and keeps one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import _num_samples

from headcount._core import validation as check
from headcount._core.frame import Frame
from headcount._core.progress import track
from headcount.exceptions import InputError, choose
from headcount.inference.posteriors import EXPECTATIONS, MEASURES
from headcount.kernels.random import as_seed
from headcount.measures import Measure, measure
from headcount.methods.adjusting import PACC
from headcount.methods.base import Quantifier
from headcount.methods.bayes import BayesQuantifier
from headcount.methods.blend import Blend
from headcount.methods.density import KDEyML
from headcount.methods.efficient import ELSA
from headcount.methods.histograms import DMy, DyS
from headcount.methods.likelihood import SLD
from headcount.methods.meta import DelegatingQuantifier
from headcount.methods.scored import ScoreQuantifier
from headcount.scores.crossfit import cross_fit
from headcount.scores.scorer import Scorer
from headcount.selection.trials import Trial, Trials

Tried = tuple[tuple[str, float], ...]  # what was tried, and its error

FACTORS = (0.1, 10.0, 0.01)  # by which the classifier's C is changed, in this order
TIE = 0.02  # candidates within this of the best count as equal, and the first of them is taken
GAIN = 0.03  # by which a blend must be better than the best candidate to be worth it
LEFT = 0.5  # share of the budget after which no more classifiers are tried


@dataclass(frozen=True)
class Choice:
    """What was chosen, and how it compares.

    Attributes
    ----------
    method : name of the chosen candidate
    error : its mean error, by `measure`, on bags of held-out items
    measure, n_bags, size, expect : of these bags
    others : the next best candidates with their errors
    classifiers : what was tried as classifier, the one that was taken first, with SLD's errors
    """

    method: str
    error: float
    measure: str
    n_bags: int
    size: int
    expect: str
    others: tuple[tuple[str, float], ...] = ()
    classifiers: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        text = (
            f"{self.method} was chosen: mean {self.measure} {self.error:.4g} on {self.n_bags} bags "
            f"of {self.size} held-out items ({self.expect})."
        )
        if self.others:
            text += " Next: " + ", ".join(f"{name} {e:.4g}" for name, e in self.others) + "."
        if len(self.classifiers) == 1:
            text += f" Classifier: {self.classifiers[0][0]}."
        elif self.classifiers:
            (first, error), *rest = self.classifiers
            also = ", ".join(f"{name} {e:.4g}" for name, e in rest)
            text += f" Classifier: {first} (SLD's error {error:.4g}; {also})."
        return text


@dataclass(eq=False, repr=False)
class AutoQuantifier(DelegatingQuantifier):
    """Chooses the classifier's strength, the calibrator and the method on bags of labelled items.

    Items are scored by classifiers that had not seen them. Bags with known shares are made of a
    fifth of them, methods learn from the rest, in turn, and the method with the least mean error
    is kept and learns from all. Within 2 % of the best, the first in the list is taken. A
    blend is taken where it is 3 % better than all.

    Parameters
    ----------
    classifier : scikit-learn classifier, optional
        Logistic regression by default, on standardised features if they are dense. If it has a
        parameter `C`, ten times more and less are tried as well.
    measure : {'ae', 'rae', 'se', 'kld', 'nmd'}, default 'ae'
        What the answers will be judged by.
    expect : {'learn', 'any shift', 'mild shift', 'no shift'}, default 'learn'
        How far class shares may move, as in `BayesQuantifier`; the bags are made accordingly,
        and 'learn' makes a third of each kind.
    size : int, optional
        Size of the bags to expect; 250, or a fifth of the labelled items if that is less.
    budget : float, default 120
        Seconds after which nothing more is tried. What was tried, and so the choice, may differ
        between machines if it is reached; `results_` tells.
    candidates : mapping of name to quantifier, optional
        Methods on scores to choose from, in order of preference; the likely winners by default.
    cv, n_jobs, random_state
        As in `ScoreQuantifier`.
    verbose : bool, default False
        Whether to show progress.

    Attributes
    ----------
    best_quantifier_ : ScoreQuantifier
    results_ : Frame
        A row a candidate: what it is, its error on the bags, and the reason if it failed.
    choice_ : Choice
        What was chosen and how it compares; ``summary_`` says it in words.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> auto = AutoQuantifier(measure="rae").fit(X, y)
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
    candidates: Mapping[str, Any] | None = None
    cv: Any = 5
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: bool = False

    def parts(self) -> list[Quantifier]:
        """One of the quantifiers that may be chosen."""
        return [BayesQuantifier()]

    def fit(self, X: Any, y: Any) -> Self:
        """Choose, then learn from all of (X, y)."""
        began = time.monotonic()
        self.check_params()
        done, classifiers = self._best_pass(X, y, began)
        return self._settle(done, classifiers, began)

    def fit_scores(self, scores: Any, y: Any, *, classes: Any = None) -> Self:
        """Choose the method for scores that come from elsewhere, as `ScoreQuantifier` does."""
        began = time.monotonic()
        self.check_params()
        scorer = Scorer.from_scores(scores, y, classes, decisions=True)
        return self._settle(scorer, (), began)

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

    def _best_pass(self, X: Any, y: Any, began: float) -> tuple[Scorer, Tried]:
        """Held-out scores by the strength of the classifier that serves a simple method best."""
        array = check.labels(y)
        check.same_length(_num_samples(X), array)
        settings = list(self._settings(X))
        passes: list[tuple[str, float, Scorer]] = []
        for name, classifier in track(settings, "classifiers", len(settings), self.verbose):
            taken = time.monotonic() - began
            if passes and taken * (1 + 1 / len(passes)) > LEFT * self.budget:
                break
            done = self._run_pass(classifier, X, array)
            error = 0.0
            if len(settings) > 1:
                error = self._trials(done).run("SLD", SLD(calibrator="bcts")).error
            passes.append((name, error, done))
        best = min(passes, key=lambda p: p[1])
        ordered = [best, *[p for p in passes if p is not best]]
        return best[2], tuple((name, float(error)) for name, error, _ in ordered)

    def _trials(self, done: Scorer) -> Trials:
        seed = as_seed(self.random_state)
        return Trials(done, self.measure, self.expect, self.size, seed)

    def _run_pass(self, classifier: Any, X: Any, y: NDArray[Any]) -> Scorer:
        return cross_fit(
            classifier,
            X,
            y,
            cv=self.cv,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )

    def _settings(self, X: Any) -> Iterator[tuple[str, Any]]:
        """Classifiers to try, the plain one first, each with a name."""
        base = self.classifier
        if base is None:
            base = LogisticRegression(max_iter=1000)
            if not sparse.issparse(X):
                base = make_pipeline(StandardScaler(), base)
        if isinstance(base, type) or not hasattr(base, "get_params"):
            raise InputError(
                f"classifier must be a scikit-learn classifier, such as LogisticRegression(), got "
                f"{base!r}."
            )
        strengths = [name for name in base.get_params() if name.split("__")[-1] == "C"]
        if len(strengths) != 1:
            yield "the classifier as given", base
            return
        name = strengths[0]
        value = base.get_params()[name]
        yield f"C = {value:g}", base
        for factor in FACTORS:
            yield f"C = {value * factor:g}", clone(base).set_params(**{name: value * factor})

    def _settle(self, done: Scorer, classifiers: Tried, began: float) -> Self:
        """Try the candidates on held-out scores, and let the best learn from all of them."""
        trials = self._trials(done)
        tried: list[Trial] = []
        candidates = self._candidates(done)
        for name, q in track(candidates, "methods", len(candidates), self.verbose):
            if tried and time.monotonic() - began > self.budget:
                break
            known = any(t.answers is not None for t in tried)
            tried.append(trials.run(name, q, began + self.budget if known else np.inf))
        least = min(t.error for t in tried) + 1e-9  # rounding decides nothing
        if not np.isfinite(least):
            raise InputError(f"every candidate failed; the first: {tried[0].reason}")
        chosen = next(t for t in tried if t.error <= least * (1 + TIE))
        blend = trials.blended(tried)
        if blend is not None and blend[1] < (1 - GAIN) * least:
            chosen = _as_blend(*blend)
            tried.append(chosen)
        columns: dict[str, Any] = {
            "method": [t.name for t in tried],
            str(trials.measure): [t.error for t in tried],
        }
        self.results_ = Frame({**columns, "failure": [t.reason for t in tried]})
        self.members_ = [self._final(chosen.quantifier).fit_scorer(done)]
        self.classes_: NDArray[Any] = done.classes
        found = _choice(chosen, tried, trials, self.expect)
        self.choice_ = replace(found, classifiers=classifiers)
        return self

    def _final(self, chosen: ScoreQuantifier) -> ScoreQuantifier:
        """Fresh clone with full settings."""
        fresh: ScoreQuantifier = clone(chosen)
        thorough = {"n_worlds": 10, "n_draws": 300}
        if isinstance(fresh, BayesQuantifier):
            fresh.set_params(**thorough)
        for q in (fresh.quantifiers or []) if isinstance(fresh, Blend) else []:
            if isinstance(q, BayesQuantifier):
                q.set_params(**thorough)
        fresh.set_params(n_jobs=self.n_jobs, random_state=self.random_state)
        return fresh

    def _candidates(self, done: Scorer) -> list[tuple[str, ScoreQuantifier]]:
        """What is tried, the likeliest winners first."""
        if self.candidates is not None:
            return [(str(name), clone(q)) for name, q in self.candidates.items()]
        two = len(done.classes) == 2
        common: Any = {"measure": self.measure, "expect": self.expect, "n_worlds": 4}
        common |= {"n_draws": 120, "n_jobs": self.n_jobs}
        found: list[tuple[str, ScoreQuantifier]] = [
            ("BayesQuantifier, curves", BayesQuantifier(**common)),
        ]
        if two:
            plain = BayesQuantifier(calibrator=None, likelihood="histograms", **common)
            found.append(("BayesQuantifier, histograms", plain))
        found += [
            ("SLD, bcts", SLD(calibrator="bcts", n_jobs=self.n_jobs)),
            ("PACC", PACC(n_jobs=self.n_jobs)),
            ("DyS", DyS(n_jobs=self.n_jobs)) if two else ("DMy", DMy(n_jobs=self.n_jobs)),
        ]
        if two:
            found.append(("ELSA", ELSA(n_jobs=self.n_jobs)))
        if len(done.codes) <= 20_000:
            found.append(("KDEyML", KDEyML(n_jobs=self.n_jobs)))
        return found


def _as_blend(parts: list[tuple[Trial, float]], error: float) -> Trial:
    members = [t.quantifier for t, _ in parts]
    blend = Blend(quantifiers=members, weights=[w for _, w in parts])
    return Trial(" + ".join(f"{w:.2f} {t.name}" for t, w in parts), blend, error)


def _choice(chosen: Trial, tried: list[Trial], trials: Trials, expect: str) -> Choice:
    others = [t for t in tried if t is not chosen and t.answers is not None]
    ranked = sorted(others, key=lambda t: t.error)[:3]
    return Choice(
        chosen.name,
        float(chosen.error),
        str(trials.measure),
        len(trials.truth),
        trials.size,
        expect,
        tuple((t.name, float(t.error)) for t in ranked),
    )
