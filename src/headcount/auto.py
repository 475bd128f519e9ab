"""The quantifier for who does not want to choose: it tries the likely winners and keeps one."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import _num_samples, check_is_fitted

from headcount import _validation as check
from headcount.bags import Bags
from headcount.classify.crossfit import ScorePass, cross_fit, score_pass
from headcount.diagnostics import Diagnosis
from headcount.exceptions import InputError, choose
from headcount.frame import Frame
from headcount.intervals import Interval, Request
from headcount.kernels.random import as_seed
from headcount.kernels.simplex import project
from headcount.measures import Measure, measure
from headcount.methods import ELSA, PACC, PCC, SLD, BayesQuantifier, Blend, DMy, DyS, KDEyML
from headcount.methods.base import Quantifier, ScoreQuantifier
from headcount.posteriors import EXPECTATIONS, MEASURES
from headcount.progress import track
from headcount.protocols import DirichletPrevalence, NaturalPrevalence, UniformPrevalence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FACTORS = (0.1, 10.0, 0.01)  # by which the classifier's C is changed, in this order
BAGS = 300  # to choose by, for each time that the labelled items are parted
REPEATS = 4  # times that they are, if that is quickly done
QUICK = 50_000  # numbers of scores up to which it is
FOLDS = 5  # bags are made of one part of the labelled items, methods learn from the others
TIE = 0.02  # candidates within this of the best count as equal, and the first of them is taken
GAIN = 0.03  # by which a blend must be better than the best candidate to be worth it
LEFT = 0.5  # share of the budget after which no more classifiers are tried


class AutoQuantifier(Quantifier):
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
    cv, n_jobs, random_state
        As in `ScoreQuantifier`.
    verbose : bool, default False
        Whether to show progress.

    Attributes
    ----------
    best_quantifier_ : ScoreQuantifier
    results_ : Frame
        A row a candidate: what it is, its error on the bags, and the reason if it failed.
    summary_ : str
        What was chosen and how it compares, in words.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> auto = AutoQuantifier(measure="rae").fit(X, y)
    >>> auto.predict(X).round(1)
    array([0.4, 0.6])
    >>> print(auto.summary_.split(" ")[0])
    BayesQuantifier
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        measure: str | Measure = "ae",
        expect: str = "learn",
        size: int | None = None,
        budget: float = 120.0,
        cv: int | float = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: bool = False,
    ):
        self.classifier = classifier
        self.measure = measure
        self.expect = expect
        self.size = size
        self.budget = budget
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Choose, then learn from all of (X, y)."""
        began = time.monotonic()
        self._check_params()
        done, words = self._best_pass(X, y, began)
        return self._settle(done, words, began)

    def fit_scores(self, scores: Any, y: Any, *, classes: Any = None) -> Self:
        """Choose the method for scores that come from elsewhere, as `ScoreQuantifier` does."""
        began = time.monotonic()
        self._check_params()
        return self._settle(score_pass(scores, y, classes, decisions=False), "", began)

    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Estimate the prevalences of many bags of the pool `X`, a row a bag."""
        check_is_fitted(self, "classes_")
        return self.best_quantifier_.predict_bags(X, bags)

    def predict_scores(self, scores: Any, bags: Bags | None = None) -> Floats:
        """Estimate from scores: one set as a vector, or many bags with a row each."""
        check_is_fitted(self, "classes_")
        return self.best_quantifier_.predict_scores(scores, bags)

    def _bounded(self, X: Any, bags: Bags, request: Request) -> Interval:
        return self.best_quantifier_._bounded(X, bags, request)

    def _diagnosed(self, X: Any, bags: Bags) -> Diagnosis:
        return self.best_quantifier_._diagnosed(X, bags)

    @property
    def n_features_in_(self) -> int:
        """Number of features seen by the classifier."""
        if "best_quantifier_" not in self.__dict__:
            raise AttributeError("AutoQuantifier has no attribute 'n_features_in_'")
        return self.best_quantifier_.n_features_in_

    def _check_params(self) -> None:
        choose("measure", measure(self.measure).name, MEASURES)
        choose("expect", self.expect, EXPECTATIONS)
        check.at_least("budget", self.budget, 0)
        if self.size is not None:
            check.whole("size", self.size)

    def _best_pass(self, X: Any, y: Any, began: float) -> tuple[ScorePass, str]:
        """Held-out scores by the strength of the classifier that serves a simple method best."""
        array = check.labels(y)
        check.same_length(_num_samples(X), array)
        settings = list(self._settings(X))
        errors: list[float] = []
        passes: list[ScorePass] = []
        words: list[str] = []
        for name, classifier in track(settings, "classifiers", len(settings), self.verbose):
            taken = time.monotonic() - began
            if passes and taken * (1 + 1 / len(passes)) > LEFT * self.budget:
                break
            passes.append(self._run_pass(classifier, X, array))
            words.append(name)
            if len(settings) > 1:
                trial = _Trials(passes[-1], self)
                errors.append(trial.error(SLD(calibrator="bcts")))
        if len(passes) == 1:
            return passes[0], words[0]
        best = int(np.argmin(errors))
        others = ", ".join(
            f"{w} {e:.4g}" for i, (w, e) in enumerate(zip(words, errors, strict=True)) if i != best
        )
        told = f"{words[best]} (SLD's error {errors[best]:.4g}; {others})"
        return passes[best], told

    def _run_pass(self, classifier: Any, X: Any, y: NDArray[Any]) -> ScorePass:
        return cross_fit(
            classifier,
            X,
            y,
            cv=self.cv,
            keep_folds=True,
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
        strengths = [name for name in base.get_params() if name.split("__")[-1] == "C"]
        if len(strengths) != 1:
            yield "the classifier as given", base
            return
        name = strengths[0]
        value = base.get_params()[name]
        yield f"C = {value:g}", base
        for factor in FACTORS:
            yield f"C = {value * factor:g}", clone(base).set_params(**{name: value * factor})

    def _settle(self, done: ScorePass, words: str, began: float) -> Self:
        """Try the candidates on held-out scores, and let the best learn from all of them."""
        trials = _Trials(done, self)
        names: list[str] = []
        candidates: list[ScoreQuantifier] = []
        errors: list[float] = []
        answers: list[Floats | None] = []
        reasons: list[str] = []
        several = self._candidates(done)
        for name, q in track(several, "methods", len(several), self.verbose):
            if errors and time.monotonic() - began > self.budget:
                break
            value, found, reason = trials.tried(q)
            names.append(name)
            candidates.append(q)
            errors.append(value)
            answers.append(found)
            reasons.append(reason)
        usable = np.where(np.isfinite(errors), errors, np.inf)
        if not np.isfinite(usable).any():
            raise InputError(f"every candidate failed; the first: {reasons[0]}")
        best = int(np.flatnonzero(usable <= usable.min() * (1 + TIE))[0])
        chosen, error, name = candidates[best], usable[best], names[best]
        blend = trials.blended(usable, answers)
        if blend is not None and blend[1] < (1 - GAIN) * usable.min():
            parts, error = blend
            chosen = Blend([candidates[i] for i in parts], list(parts.values()))
            name = " + ".join(f"{w:.2f} {names[i]}" for i, w in parts.items())
            names.append(name)
            errors.append(error)
            reasons.append("")
        self.results_ = Frame({"method": names, str(trials.measure): errors, "failure": reasons})
        self.best_quantifier_ = self._final(chosen)._fit_pass(done)
        self.classes_ = self.best_quantifier_.classes_
        self.summary_ = _in_words(name, error, names, errors, trials, words, self.expect)
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

    def _candidates(self, done: ScorePass) -> list[tuple[str, ScoreQuantifier]]:
        """What is tried, the likeliest winners first."""
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
            ("PCC, curves", PCC(calibrator="curves", n_jobs=self.n_jobs)),
            ("DyS", DyS(n_jobs=self.n_jobs)) if two else ("DMy", DMy(n_jobs=self.n_jobs)),
        ]
        if two:
            found.append(("ELSA", ELSA(n_jobs=self.n_jobs)))
        if len(done.codes if done.codes is not None else []) <= 20_000:
            found.append(("KDEyML", KDEyML(n_jobs=self.n_jobs)))
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class _Trials:
    """Bags of held-out items, and methods that learn from the others."""

    def __init__(self, done: ScorePass, auto: AutoQuantifier):
        assert done.scores is not None and done.codes is not None
        self.done, self.scores, self.codes = done, done.scores, done.codes
        self.measure = measure(auto.measure)
        k = len(done.classes)
        if np.bincount(self.codes, minlength=k).min() < 2 * FOLDS:
            raise InputError(
                f"AutoQuantifier needs at least {2 * FOLDS} labelled items of every class to "
                "compare methods on; use BayesQuantifier or SLD."
            )
        self.size = auto.size or int(np.clip(len(self.codes) // 5, 20, 250))
        seed = as_seed(auto.random_state) % 2**32
        self.folds: list[tuple[Ints, Ints, Bags]] = []
        for repeat in range(REPEATS if self.scores.size <= QUICK else 1):
            splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=seed + repeat)
            for learnt, other in splitter.split(self.scores, self.codes):
                drawn = self._bags(self.codes[other], auto.expect, seed + len(self.folds))
                self.folds.append((learnt, other, drawn))

    def _bags(self, codes: Ints, expect: str, seed: int) -> Bags:
        k = len(self.done.classes)
        wanted = [expect] if expect != "learn" else ["any shift", "mild shift", "no shift"]
        n = BAGS // FOLDS // len(wanted)
        common: Any = {"n_bags": n, "size": self.size, "random_state": seed}
        centre = tuple(self.done.frequency)
        protocols: dict[str, Any] = {
            "any shift": UniformPrevalence(**common),
            "mild shift": DirichletPrevalence(concentration=30.0, centre=centre, **common),
            "no shift": NaturalPrevalence(**common),
        }
        drawn = [protocols[name].draw(codes, classes=np.arange(k)) for name in wanted]
        lists = [items for part in drawn for items in part]
        return Bags.from_lists(lists, len(codes)).with_truth(codes, classes=np.arange(k))

    @property
    def n_bags(self) -> int:
        """Number of bags in all."""
        return sum(len(bags) for _, _, bags in self.folds)

    def tried(self, q: ScoreQuantifier) -> tuple[float, Floats | None, str]:
        """Mean error of a method, its answers, and why there are none."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answers = np.vstack([self._answers(q, *fold) for fold in self.folds])
            return float(self.errors(answers).mean()), answers, ""
        except Exception as error:  # one bad candidate must not end the search
            return float("nan"), None, f"{type(error).__name__}: {error}"

    def error(self, q: ScoreQuantifier) -> float:
        """Mean error of a method; infinite if it fails."""
        value = self.tried(q)[0]
        return value if np.isfinite(value) else float("inf")

    def _answers(self, q: ScoreQuantifier, learnt: Ints, other: Ints, bags: Bags) -> Floats:
        codes = self.codes[learnt]
        frequency = np.bincount(codes, minlength=len(self.done.classes)) / len(codes)
        part = ScorePass(
            self.done.classes, frequency, None, self.scores[learnt], codes, self.done.kind
        )
        fitted: ScoreQuantifier = clone(q)._fit_pass(part)
        return fitted._estimate(self.scores[other], bags)

    def errors(self, answers: Floats) -> Floats:
        """Error on every bag."""
        truth = np.vstack([np.asarray(bags.prevalence) for _, _, bags in self.folds])
        sizes = np.full(len(truth), self.size)
        return np.asarray(self.measure(truth, answers, sizes=sizes))

    def blended(
        self, errors: Floats, answers: list[Floats | None]
    ) -> tuple[dict[int, float], float] | None:
        """Weights of the best candidates whose mean errs least, and its error.

        The weights for the bags of a fold come from the others, so that the error of the blend can
        be compared with that of a single candidate.
        """
        order = [int(i) for i in np.argsort(errors)[:4] if np.isfinite(errors[i])]
        stack = np.array([a for i in order if (a := answers[i]) is not None])
        if len(stack) < 2:
            return None
        truth = np.vstack([np.asarray(bags.prevalence) for _, _, bags in self.folds])
        n_folds = len(self.folds)
        fold = np.repeat(np.arange(n_folds), [len(bags) for _, _, bags in self.folds]) % FOLDS
        found, crossed = [], np.empty_like(truth)
        for f in range(FOLDS):
            found.append(self._weights(stack[:, fold != f], truth[fold != f]))
            crossed[fold == f] = np.tensordot(found[-1], stack[:, fold == f], axes=1)
        weights = np.mean(found, axis=0)
        weights[weights < 0.05] = 0.0
        weights /= weights.sum()
        parts = {i: float(w) for i, w in zip(order, weights, strict=True) if w > 0}
        return (parts, float(self.errors(crossed).mean())) if len(parts) > 1 else None

    def _weights(self, stack: Floats, truth: Floats) -> Floats:
        """Weights by projected subgradient descent on the mean error, from equal ones."""
        weights = np.full(len(stack), 1 / len(stack))
        best, least = weights, np.inf
        sizes = np.full(len(truth), self.size)

        def error(weights: Floats) -> float:
            return float(np.mean(self.measure(truth, np.tensordot(weights, stack, 1), sizes=sizes)))

        for step in range(1, 61):
            value = error(weights)
            if value < least:
                best, least = weights, value
            slope = np.array([error(0.99 * weights + 0.01 * way) for way in np.eye(len(stack))])
            slope -= slope.mean()
            length = np.linalg.norm(slope)
            if length < 1e-12:
                break
            weights = project((weights - 0.2 / np.sqrt(step) * slope / length)[None])[0]
        return best


def _in_words(
    name: str,
    error: float,
    names: list[str],
    errors: list[float],
    trials: _Trials,
    words: str,
    expect: str,
) -> str:
    """What was chosen, and how it compares."""
    others = sorted((e, n) for n, e in zip(names, errors, strict=True) if n != name and e == e)
    beaten = ", ".join(f"{n} {e:.4g} ({e / max(error, 1e-12) - 1:+.0%})" for e, n in others[:3])
    text = (
        f"{name} was chosen: mean {trials.measure} {error:.4g} on {trials.n_bags} bags of "
        f"{trials.size} held-out items ({expect})."
    )
    if beaten:
        text += f" Next: {beaten}."
    if words:
        text += f" Classifier: {words}."
    return text
