"""The contract of a quantifier, and the base of those that work on a classifier's scores."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from headcount._core import validation as check
from headcount._core.types import Bools, Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import ConvergenceWarning, InputError, UnreliableWarning
from headcount.inference.intervals import Interval, Request, Spread, spread_of, stretch
from headcount.inference.simulation import Simulator
from headcount.scores.calibration import Calibrator, logits_of, make_calibrator
from headcount.scores.crossfit import ScorePass, cross_fit, score, score_pass

if TYPE_CHECKING:
    from headcount.inference.diagnostics import Diagnosis, ScoreTest

REFITTED = 1.05  # on standard errors: held-out items were scored by classifiers of fewer items
SPLITS = 6  # halvings of the labelled items that show how much a method remembers


class Quantifier(BaseEstimator, ABC):
    """Base of all quantifiers: learn from labelled items, then estimate class shares of sets.

    Estimates are aligned with ``classes_`` and always lie on the simplex.
    """

    classes_: NDArray[Any]
    _ignores_items = False  # whether only the labels count

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from items `X` with labels `y`."""

    @abstractmethod
    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Estimate the prevalences of many bags of the pool `X`, a row a bag."""

    def predict(self, X: Any) -> Floats:
        """Estimate the prevalence of each class among the items `X`, taken as one set."""
        check_is_fitted(self, "classes_")
        return np.asarray(self.predict_bags(X, Bags.single(_some(X)))[0])

    def predict_interval(self, X: Any, bags: Bags | None = None, **request: Any) -> Interval:
        """Estimate shares with bounds: of one set as vectors, of many bags with a row each.

        Parameters
        ----------
        X : items, or scores for a quantifier that was fitted on scores
        bags : Bags, optional
        level : float, default 0.95
        simultaneous : bool, default False
            True widens the intervals so that all classes of a bag are inside at once.
        target : {'bag', 'population'}
            Shares among the very items of the bag, or in the population it was drawn from.
        n_draws : int, default 300
            Simulated bags for every bag.
        random_state : int, default 0

        Notes
        -----
        The bounds hold as far as the shares of the classes are what has changed since the labels
        were made; `diagnose` tells where the scores say otherwise.
        """
        check_is_fitted(self, "classes_")
        wanted = Request(**request)
        found = self._bounded(X, Bags.single(_some(X)) if bags is None else bags, wanted)
        return found.first() if bags is None else found

    def diagnose(self, X: Any, bags: Bags | None = None) -> Diagnosis:
        """Tell whether estimates can be trusted: of one set, or of many bags.

        The main thing is a test of whether any change of class shares explains the scores.
        """
        check_is_fitted(self, "classes_")
        return self._diagnosed(X, Bags.single(_some(X)) if bags is None else bags)

    def _diagnosed(self, X: Any, bags: Bags) -> Diagnosis:  # noqa: ARG002
        raise InputError(f"{type(self).__name__} has no scores that could be tested.")

    def _bounded(self, X: Any, bags: Bags, request: Request) -> Interval:  # noqa: ARG002
        """Estimates of bags with bounds."""
        name = type(self).__name__
        raise InputError(f"{name} gives no intervals by itself: fit WithIntervals({name}(...)).")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags


class ScoreQuantifier(Quantifier):
    """Base of the quantifiers that aggregate a classifier's scores.

    Parameters
    ----------
    classifier : scikit-learn classifier, optional
        Logistic regression by default. It is cloned, never fitted in place; wrap a fitted model
        in `sklearn.frozen.FrozenEstimator` and pass validation data to `fit` to use it as it is.
    calibrator : str, calibrator or None
        'platt', 'isotonic', 'temperature', 'bcts', 'vs', 'nbvs', fitted on held-out scores.
    cv : int, float or None, default 5
        Stratified folds for held-out scores, or the share of items to hold out once. None, for
        the methods that do without such scores, fits faster and gives no intervals.
    n_jobs : int, optional
        Folds and bags handled at once.
    random_state : int, generator or None, default 0
        Decides the folds. Fixed by default, so that the same data give the same estimates.
    """

    _any_scores = False  # whether decision values do as well as posteriors
    _flat_to_prior = False  # whether scores that are all equal need special care
    _hard = False  # whether the predicted label is all that the method looks at
    _learns_from_scores = True  # whether it needs held-out scores even without a calibrator
    _remembers = False  # whether items that were learnt from are easier for it than others
    _holds_under_shift = True  # whether it corrects for a change of shares at all

    def __init__(
        self,
        classifier: Any = None,
        *,
        calibrator: str | Calibrator | None = None,
        cv: int | float | None = 5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ):
        self.classifier = classifier
        self.calibrator = calibrator
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    @abstractmethod
    def _learn(self, scores: Floats | None, codes: Ints | None, frequency: Floats) -> None:
        """Learn from held-out, calibrated scores and class numbers."""

    @abstractmethod
    def _aggregate(self, scores: Floats, bags: Bags) -> Floats:
        """Estimate every bag from calibrated scores of the pool."""

    def _check_params(self) -> None:
        """Refuse impossible settings before any work; subclasses add their own."""
        make_calibrator(self.calibrator)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the classifier, score held-out items and learn from them.

        Parameters
        ----------
        X : items
            Whatever the classifier takes: arrays, data frames, sparse matrices, texts.
        y : labels
            Of any type; ``classes_`` holds them sorted.
        """
        self._check_params()
        held_out = True if self._needs_held_out() else None  # None: for intervals, if possible
        done = self._run_pass(X, y, held_out)
        if not self._accepts(done):
            done = self._run_pass(X, y, held_out, labels_only=True)
        return self._fit_pass(done)

    def fit_scores(self, scores: Any, y: Any, *, classes: ArrayLike | None = None) -> Self:
        """Learn from scores of labelled items that come from elsewhere.

        Parameters
        ----------
        scores : array of shape (n, k), or (n,) for the second of two classes
            Posteriors of items that the model was not trained on; with a calibrator, decision
            values will do. Columns of a data frame that are named after the classes are put in
            their order.
        y : labels
        classes : optional
            The class of each column; by default the sorted labels.
        """
        self._check_params()
        decisions = self._any_scores or make_calibrator(self.calibrator) is not None
        self._fit_pass(score_pass(scores, y, classes, decisions=decisions))
        self.score_names_ = check.score_names(scores)
        return self

    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Estimate the prevalences of many bags of the pool `X`, a row a bag."""
        return self._estimate(self._pool_scores(X, bags), bags)

    def predict_scores(self, scores: Any, bags: Bags | None = None) -> Floats:
        """Estimate from scores: one set as a vector, or many bags with a row each."""
        matrix = self._score_matrix(scores)
        if bags is None:
            return np.asarray(self._estimate(matrix, Bags.single(len(matrix)))[0])
        _same_pool(len(matrix), bags)
        return self._estimate(matrix, bags)

    def _bounded(self, X: Any, bags: Bags, request: Request) -> Interval:
        self._check_intervals()
        return self._counted(self._raw(X, bags), bags, bags.sizes, request)

    def _counted(self, raw: Floats, bags: Bags, sizes: Ints, request: Request) -> Interval:
        """Estimates with bounds of bags that stand for sets of these sizes."""
        return self._intervals(self._estimate(raw, bags), sizes, request)

    def _diagnosed(self, X: Any, bags: Bags) -> Diagnosis:
        return self._fit_test().run(self._calibrated(self._raw(X, bags)), bags)

    def _fit_test(self) -> ScoreTest:
        from headcount.inference.diagnostics import ScoreTest

        self._check_held("the test is made from")
        assert self.held_scores_ is not None and self.held_codes_ is not None
        return ScoreTest(self._calibrated(self.held_scores_), self.held_codes_)

    def _raw(self, X: Any, bags: Bags) -> Floats:
        """Scores of the pool: of its items, or as they are for what was fitted on scores."""
        if self.classifier_ is not None:
            return self._pool_scores(X, bags)
        matrix = self._score_matrix(X)
        _same_pool(len(matrix), bags)
        return matrix

    def _score_matrix(self, scores: Any) -> Floats:
        check_is_fitted(self, "classes_")
        matrix = check.score_matrix(self._named(scores), len(self.classes_), kind=self.score_kind_)
        if self.score_kind_ == "posterior":
            check.posteriors(matrix)
        return matrix

    def _check_intervals(self) -> None:
        """Refuse what no interval can be given for, and say what an interval is not."""
        self._check_held("intervals are made from")
        if not self._holds_under_shift:
            warnings.warn(
                f"{type(self).__name__} counts, and is biased as soon as the class shares change: "
                "its intervals reach from the count to where a correction for that would be. "
                "Use PACC or SLD for an estimate that holds.",
                UnreliableWarning,
                stacklevel=4,
            )

    def _check_held(self, use: str) -> None:
        if self.held_scores_ is None:
            raise InputError(
                f"no held-out scores were kept, which {use}: fit with cv=5, or fewer folds where "
                "a class has fewer items than that."
            )

    def _intervals(self, estimates: Floats, sizes: Ints, request: Request) -> Interval:
        """Bounds of estimates that were made of bags of these sizes."""
        held, codes = self.held_scores_, self.held_codes_
        assert held is not None and codes is not None
        if self._flat is not None:
            return Interval.unknown(self.classes_, estimates, request.level)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # simulated bags have nothing to tell the user
            found = spread_of(self._simulator(held, codes), estimates, sizes, request)
            factor = 1.0
            if self._remembers:
                factor = stretch(self._halves(held, codes), int(np.median(sizes)), request)
            elif self._refitted():
                factor = REFITTED
            found = Spread(found.mean, found.variance * factor**2, found.levels)
        return Interval.around(self.classes_, estimates, found, request.level)

    def _refitted(self) -> bool:
        """Whether items are scored by another classifier than the held-out ones were."""
        own = self.classifier_ is None or isinstance(self.classifier_, FrozenEstimator)
        return not own and not self.fold_classifiers_

    def _simulator(self, held: Floats, codes: Ints) -> Simulator:
        return Simulator(lambda bags: self._estimate(held, bags), codes, len(self.classes_))

    def _halves(self, held: Floats, codes: Ints) -> Iterator[tuple[Simulator, Simulator]]:
        """Simulators of one half of the labelled items, which is learnt from, and of the other."""
        if np.bincount(codes).min() < 4:
            raise InputError(
                f"{type(self).__name__} needs at least 4 labelled items of every class for "
                "intervals: add some, or use SLD or PACC."
            )
        splitter = StratifiedShuffleSplit(SPLITS, test_size=0.5, random_state=0)
        for learnt, other in splitter.split(held, codes):
            half = self._learnt_from(held[learnt], codes[learnt])
            yield (
                half._simulator(held[learnt], codes[learnt]),
                half._simulator(held[other], codes[other]),
            )

    def _learnt_from(self, held: Floats, codes: Ints) -> Self:
        """The same quantifier, learnt from a part of the held-out scores."""
        frequency = np.bincount(codes, minlength=len(self.classes_)) / len(codes)
        done = ScorePass(self.classes_, frequency, None, held, codes, self.score_kind_)
        fresh: Self = clone(self)
        return fresh._fit_pass(done)

    def _named(self, scores: Any) -> Any:
        """Columns in the order of the classes, by the names that `fit_scores` has seen."""
        names, seen = check.score_names(scores), getattr(self, "score_names_", None)
        if names is None or seen is None:
            return scores
        if set(names) != set(seen):
            raise InputError(
                f"the columns of scores are {names}, and those at fitting were {seen}. "
                "Pass the same columns."
            )
        classes = [str(c) for c in self.classes_.tolist()]
        order = classes if set(classes) == set(names) else seen
        return check.score_matrix(scores, None)[:, [names.index(c) for c in order]]

    def _accepts(self, done: ScorePass) -> bool:
        """Whether the pass serves: methods that count predictions want the real ones."""
        return not self._hard or done.predicts_argmax

    def _estimate(self, raw: Floats, bags: Bags) -> Floats:
        if self._flat is not None:
            return np.tile(self._flat, (len(bags), 1))
        answers = [self._aggregate(self._calibrated(view), bags) for view in self._views(raw)]
        return np.asarray(np.mean(answers, axis=0)) if len(answers) > 1 else answers[0]

    def _pool_scores(self, X: Any, bags: Bags) -> Floats:
        check_is_fitted(self, "classes_")
        if self.classifier_ is None:
            raise InputError(
                "this quantifier was fitted on scores and has no classifier: "
                "use predict_scores, or fit it on items."
            )
        _same_pool(_some(X), bags)
        return self._scored(X)

    def _scored(self, X: Any) -> Floats:
        """Scores of items; if the folds' classifiers were kept, by each of them, side by side.

        Held-out items were scored by classifiers that saw less than all labelled items. The one
        that saw all of them scores otherwise, and what was learnt does not quite fit it.
        """
        several = self.fold_classifiers_ or [self.classifier_]
        return np.hstack([score(c, X, self.classes_, self.score_kind_) for c in several])

    def _views(self, raw: Floats) -> list[Floats]:
        """Scores by each of the classifiers that are side by side."""
        return np.split(raw, max(1, raw.shape[1] // len(self.classes_)), axis=1)

    def _run_pass(
        self,
        X: Any,
        y: Any,
        held_out: bool | None,
        *,
        labels_only: bool = False,
        keep_folds: bool = False,
    ) -> ScorePass:
        classifier = (
            LogisticRegression(max_iter=1000) if self.classifier is None else self.classifier
        )
        return cross_fit(
            classifier,
            X,
            y,
            cv=self.cv,
            held_out=held_out,
            labels_only=labels_only,
            keep_folds=keep_folds,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )

    def _pass_key(self) -> str | None:
        """Text equal for two quantifiers that can share a classifier pass; None for never."""
        classifier = self.classifier
        if isinstance(classifier, FrozenEstimator):
            return f"frozen {id(classifier.estimator)}"
        settings = None if classifier is None else (type(classifier), classifier.get_params())
        try:
            return str(joblib.hash((settings, self.cv, self.random_state)))
        except Exception:  # what cannot be pickled cannot be compared either: no sharing
            return None

    def _needs_held_out(self) -> bool:
        return self._learns_from_scores or make_calibrator(self.calibrator) is not None

    def _fit_pass(self, done: ScorePass) -> Self:
        """Learn from a classifier pass, this quantifier's own or a shared one."""
        self._check_params()
        calibrator = make_calibrator(self.calibrator)
        if (
            done.kind != "posterior"
            and not self._any_scores
            and (calibrator is None or done.kind == "label")
        ):
            raise InputError(
                f"{type(self).__name__} needs posterior probabilities, and the classifier "
                f"{done.classifier!r} has no predict_proba. "
                + ("Set calibrator='platt'." if done.kind == "decision" else "Use another one.")
            )
        self.calibrator_: Calibrator | None = None
        scores = done.scores
        if calibrator is not None:
            assert scores is not None and done.codes is not None
            self.calibrator_ = calibrator.fit(logits_of(scores, done.kind), done.codes)
        self.held_scores_, self.held_codes_ = scores, done.codes
        self.fold_classifiers_ = list(done.folds)
        self.score_kind_ = done.kind
        self.classifier_ = done.classifier
        self.classes_ = done.classes
        self._flat: Floats | None = None
        if self._flat_to_prior and scores is not None and np.ptp(scores, axis=0).max() <= 1e-12:
            self._flat = done.frequency
            warnings.warn(
                "the classifier separates nothing here: all held-out scores are equal, and the "
                "training prevalence is all that can be answered. Use a better classifier.",
                UnreliableWarning,
                stacklevel=3,
            )
            return self
        self._learn(
            None if scores is None else self._calibrated(scores), done.codes, done.frequency
        )
        return self

    def _calibrated(self, raw: Floats) -> Floats:
        views = self._views(raw)
        if len(views) > 1:  # each item by one of the classifiers, as held-out items were
            rows = np.arange(len(raw))
            raw = np.stack(views)[rows % len(views), rows]
        if self.calibrator_ is None:
            return raw
        return np.asarray(self.calibrator_.transform(logits_of(raw, self.score_kind_)))

    @property
    def n_features_in_(self) -> int:
        """Number of features seen by the classifier."""
        return int(self._of_classifier("n_features_in_"))

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features seen by the classifier."""
        return np.asarray(self._of_classifier("feature_names_in_"))

    def _of_classifier(self, name: str) -> Any:
        classifier = self.__dict__.get("classifier_")
        if classifier is None or not hasattr(classifier, name):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(classifier, name)


class MetaQuantifier(Quantifier):
    """Base of the quantifiers that are made of others, which `fit` keeps in ``members_``."""

    members_: list[Any]

    @abstractmethod
    def _parts(self) -> list[Quantifier]:
        """Unfitted quantifiers that this one is made of."""

    @property
    def n_features_in_(self) -> int:
        """Number of features seen by the first member."""
        if "members_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute 'n_features_in_'")
        return int(self.members_[0].n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = all(get_tags(q).input_tags.sparse for q in self._parts())
        return tags


def check_quantifier_type(value: Any) -> None:
    """Refuse what is no quantifier, such as a bare classifier."""
    if not isinstance(value, Quantifier):
        raise InputError(
            f"a quantifier is expected, got {value!r}. Wrap a classifier in one, such as "
            "PACC(classifier)."
        )


def warn_unconverged(converged: Bools, what: str, hint: str = "") -> None:
    """Say for how many bags a solver stopped before it was done."""
    if not converged.all():
        warnings.warn(
            f"{what} of {int((~converged).sum())} of {len(converged)} bags did not reach its "
            f"optimum: treat their estimates with care. {hint}".rstrip(),
            ConvergenceWarning,
            stacklevel=5,
        )


def _some(X: Any) -> int:
    """Number of items, at least one."""
    n = int(_num_samples(X))
    if n == 0:
        raise InputError("X is empty (0 sample(s)): a share of nothing is undefined.")
    return n


def _same_pool(n: int, bags: Bags) -> None:
    if not isinstance(bags, Bags):
        raise InputError(f"bags must be Bags, got {type(bags).__name__}: see Bags.from_lists.")
    if n != bags.n_items:
        raise InputError(
            f"the pool has {n} items and the bags were drawn from one of {bags.n_items}. "
            "Pass the items that the bags refer to."
        )
