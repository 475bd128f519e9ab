"""The base of the methods that work on a classifier's scores."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from headcount._core.types import Floats
from headcount.bags import Bags
from headcount.exceptions import InputError, UnreliableWarning
from headcount.inference.calibration import MIN_CLASS_SIZE, calibrate_width
from headcount.inference.diagnosis import Diagnosis
from headcount.inference.draws import Draws
from headcount.inference.goodness_of_fit import diagnose_scores
from headcount.inference.sampling import DrawSettings, draw_prevalences
from headcount.methods.base import Quantifier, check_pool, count_items
from headcount.scores.calibration import Calibrator
from headcount.scores.calibrators import make_calibrator
from headcount.scores.crossfit import cross_fit
from headcount.scores.scorer import Held, Scorer, View


@dataclass(eq=False, repr=False)
class ScoreQuantifier(Quantifier):
    """Base of the quantifiers that aggregate a classifier's scores.

    A subclass defines `learn` (from held-out scores), `aggregate` (from scores of a pool to
    estimates of bags) and, if the defaults do not fit, `method_tags`. Its settings are the fields
    of a dataclass.

    Parameters
    ----------
    classifier : scikit-learn classifier, optional
        Logistic regression by default. It is cloned, never fitted in place; wrap a fitted model
        in `sklearn.frozen.FrozenEstimator` and pass validation data to `fit` to use it as it is.
    calibrator : str, calibrator or None
        'platt', 'isotonic', 'temperature', 'bcts', 'vs', 'nbvs', 'curves', fitted on held-out
        scores.
    cv : int, float, splitter, iterable or None, default 5
        Stratified folds for held-out scores, the share of items to hold out once, or what
        scikit-learn takes. None, for the methods that do without such scores, fits one
        classifier and gives no intervals.
    refit : bool, default False
        New items are scored by the classifiers of the folds, as the held-out items were, and the
        estimates are averaged. True scores them by one classifier of all labelled items: a fifth
        of the cost and of the model file, but its scores differ in distribution from the held-out
        ones, which can double the error and reduce the coverage of intervals.
    calibrate_width : bool, default True
        Whether `fit` calibrates the width of intervals on held-out halves of the labelled items
        (`headcount.inference.calibration`). It takes up to a few seconds, and changes nothing but
        intervals.
    n_jobs : int, optional
        Folds and bags handled at once.
    random_state : int, generator or None, default 0
        Decides the folds. Fixed by default, so that the same data give the same estimates.

    Attributes
    ----------
    classes_ : array of shape (classes,)
        Sorted labels; the order of estimates.
    scorer_ : Scorer
        The classifiers, with the held-out scores and class numbers of the labelled items.
    width_scale_ : float
        Factor on the standard deviations of intervals; 1 if nothing was calibrated.
    width_coverage_ : pair of floats
        Coverage of 95 % intervals on held-out items, without the factor and with it; NaN if nothing
        was calibrated.

    Notes
    -----
    A method that learns nothing from held-out scores (CC and PCC, and SLD without a calibrator)
    has nothing that could fail to fit, and is given the scores of a classifier of all items;
    the folds then serve its intervals and its diagnosis.
    """

    classifier: Any = None
    _: KW_ONLY
    calibrator: str | Calibrator | None = None
    cv: Any = 5
    refit: bool = False
    calibrate_width: bool = True
    n_jobs: int | None = None
    random_state: Any = 0

    @abstractmethod
    def learn(self, held: Held) -> None:
        """Learn from held-out scores; what is learnt is kept in attributes that end in ``_``."""

    @abstractmethod
    def aggregate(self, scores: Floats, bags: Bags) -> Floats:
        """Estimate every bag from the scores of a pool, all bags at once."""

    def check_params(self) -> None:
        """Validate parameters; methods add their own checks."""
        make_calibrator(self.calibrator)

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        """Fit the classifier, score held-out items and learn from them.

        Parameters
        ----------
        X : items
            Whatever the classifier takes: arrays, data frames, sparse matrices, texts.
        y : labels
            Of any type; ``classes_`` holds them sorted.
        groups : array, optional
            Of each item, such as its source or month: whole groups are held out.
        """
        self.check_params()
        held_out = True if self.needs_held_out() else None  # None: for intervals, if possible
        options: dict[str, Any] = {"groups": groups, "held_out": held_out}
        scorer = self.make_scorer(X, y, whole=self.uses_whole(), **options)
        if not self.accepts(scorer):
            whole = self.uses_whole()
            scorer = self.make_scorer(X, y, whole=whole, labels_only=True, **options)
        return self.fit_scorer(scorer)

    def fit_scores(self, scores: Any, y: Any, *, classes: ArrayLike | None = None) -> Self:
        """Learn from scores of labelled items that come from elsewhere.

        Scores then take the place of items in every other call too.

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
        self.check_params()
        any_scores = self.method_tags().scores != "posteriors"
        decisions = any_scores or make_calibrator(self.calibrator) is not None
        return self.fit_scorer(Scorer.from_scores(scores, y, classes, decisions=decisions))

    def fit_scorer(self, scorer: Scorer) -> Self:
        """Learn from a classifier pass, this quantifier's own or a shared one."""
        self.check_params()
        tags = self.method_tags()
        self._check_kind(scorer)
        spec = None if tags.own_calibration else self.calibrator
        self.scorer_ = scorer.with_calibrator(spec)
        self.classes_: NDArray[Any] = scorer.classes
        held = self.scorer_.held()
        self.flat_: Floats | None = None
        self.width_scale_ = 1.0
        self.width_coverage_ = (float("nan"), float("nan"))
        if tags.corrects and scorer.tells_nothing():
            self.flat_ = scorer.frequency
            warnings.warn(
                "the classifier separates nothing here: all held-out scores are equal, and the "
                "training prevalence is all that can be answered. Use a better classifier.",
                UnreliableWarning,
                stacklevel=3,
            )
            return self
        self.learn(held)
        if self.calibrate_width and len(held.scores):
            self.width_scale_, before, after = calibrate_width(self)
            self.width_coverage_ = before, after
        return self

    def fit_copy(self, scorer: Scorer) -> Self:
        """A copy that learns from another classifier pass, without calibrating its width."""
        fresh: Self = clone(self).set_params(calibrate_width=False)
        return fresh.fit_scorer(scorer)

    def predict_bags(self, X: Any, bags: Bags) -> Floats:
        """Estimate the prevalences of many bags of the pool `X`: one row per bag."""
        return self.estimate(self.views(X, bags, whole=self.uses_whole()))

    def predict_scores(self, scores: Any, bags: Bags | None = None) -> Floats:
        """Estimate from scores: one set as a vector, or many bags with a row each."""
        check_is_fitted(self, "classes_")
        matrix = self.scorer_.check(scores)
        if bags is None:
            return np.asarray(self.estimate([(matrix, Bags.single(len(matrix)))])[0])
        check_pool(len(matrix), bags)
        return self.estimate([(matrix, bags)])

    def estimate(self, views: Sequence[View]) -> Floats:
        """Estimate bags from raw scores by each of the classifiers; the answers are averaged."""
        if self.flat_ is not None:
            return np.tile(self.flat_, (len(views[0][1]), 1))
        if len(views) > 1 and self.method_tags().joins_folds:
            joined = Bags.side_by_side([bags for _, bags in views])
            views = [(np.vstack([scores for scores, _ in views]), joined)]
        answers = [self.aggregate(self.scorer_.calibrate(raw), bags) for raw, bags in views]
        return np.asarray(np.mean(answers, axis=0)) if len(answers) > 1 else answers[0]

    def views(self, X: Any, bags: Bags, *, whole: bool = False) -> list[View]:
        """Raw scores of the pool by each classifier that scores new items, with the bags."""
        check_is_fitted(self, "classes_")
        check_pool(count_items(X), bags)
        return [(scores, bags) for scores in self.scorer_.views(X, whole=whole)]

    def draws_of(self, X: Any, bags: Bags, settings: DrawSettings) -> Draws:
        """Joint draws from the scores of the folds, whichever classifier makes the estimate."""
        self.check_intervals()
        draws = self.draw(self.views(X, bags), bags.sizes, settings)
        if self.uses_whole() and self.scorer_.whole is not None and self.scorer_.folds:
            draws = draws.about(self.predict_bags(X, bags))
        return draws

    def draw(self, views: Sequence[View], sizes: Any, settings: DrawSettings) -> Draws:
        """Joint draws of bags that represent sets of these sizes, from raw scores."""
        return draw_prevalences(self, views, sizes, settings)

    def diagnosis_of(self, X: Any, bags: Bags) -> Diagnosis:
        """Test whether a change of class shares explains the scores of bags."""
        return diagnose_scores(self.scorer_, self.views(X, bags))

    def simulation_twin(self) -> Any:
        """The estimator whose errors are simulated: itself, or a faster one of the same kind."""
        return self

    def check_intervals(self) -> None:
        """Raise an error where no interval can be computed, and warn where coverage is in doubt."""
        name = type(self).__name__
        if not len(self.scorer_.scores):
            raise InputError(
                "no held-out scores were kept, which intervals and tests are made from: fit with "
                "cv=5, or fewer folds where a class has fewer items than that."
            )
        tags = self.method_tags()
        if tags.remembers and np.bincount(self.scorer_.codes).min() < MIN_CLASS_SIZE:
            raise InputError(
                f"{name} needs at least {MIN_CLASS_SIZE} labelled items of every class for "
                "intervals: add some, or use SLD or PACC."
            )
        if not tags.corrects:
            warnings.warn(
                f"{name} counts, and is biased as soon as the class shares change: its intervals "
                "reach from the count to where a correction for that would be. Use PACC or SLD "
                "for a corrected estimate.",
                UnreliableWarning,
                stacklevel=5,
            )
        elif self.scorer_.takes_items and not self.scorer_.folds:
            warnings.warn(
                f"{name} was fitted with refit=True: its intervals are made of scores by other "
                "classifiers than the one that scores new items, and may cover far less than "
                "their level. Fit it with refit=False for valid intervals.",
                UnreliableWarning,
                stacklevel=5,
            )

    def needs_held_out(self) -> bool:
        """Whether anything is learnt from held-out scores."""
        return self.method_tags().held_out or make_calibrator(self.calibrator) is not None

    def uses_whole(self) -> bool:
        """Whether new items are scored by a classifier of all labelled items."""
        return bool(self.refit) or not self.needs_held_out()

    def accepts(self, scorer: Scorer) -> bool:
        """Whether the pass serves: methods that count predictions want the real ones."""
        return self.method_tags().scores != "labels" or scorer.predicts_best

    def make_scorer(self, X: Any, y: Any, **options: Any) -> Scorer:
        """Run a classifier pass with this quantifier's settings; options as in `cross_fit`."""
        classifier = self.classifier
        if classifier is None:
            classifier = LogisticRegression(max_iter=1000)
        scorer = cross_fit(
            classifier,
            X,
            y,
            cv=self.cv,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            **options,
        )
        one = self.refit and scorer.whole is not None
        return replace(scorer, folds=()) if one else scorer

    def scorer_key(self) -> str | None:
        """Text equal for two quantifiers that can share a classifier pass; None for never."""
        classifier = self.classifier
        if isinstance(classifier, FrozenEstimator):
            return f"frozen {id(classifier.estimator)}"
        settings = None if classifier is None else (type(classifier), classifier.get_params())
        try:
            return str(joblib.hash((settings, self.cv, self.refit, self.random_state)))
        except Exception:  # what cannot be pickled cannot be compared either: no sharing
            return None

    def _check_kind(self, scorer: Scorer) -> None:
        """Refuse scores of a kind that the method cannot work on."""
        if scorer.kind == "posterior" or self.method_tags().scores != "posteriors":
            return
        if make_calibrator(self.calibrator) is None or scorer.kind == "label":
            raise InputError(
                f"{type(self).__name__} needs posterior probabilities, and the classifier "
                f"{scorer.any_classifier!r} has no predict_proba. "
                + ("Set calibrator='platt'." if scorer.kind == "decision" else "Use another one.")
            )

    @property
    def n_features_in_(self) -> int:
        """Number of features seen by the classifier."""
        return int(self._of_classifier("n_features_in_"))

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features seen by the classifier."""
        return np.asarray(self._of_classifier("feature_names_in_"))

    def _of_classifier(self, name: str) -> Any:
        scorer = self.__dict__.get("scorer_")
        if scorer is None or not hasattr(scorer.any_classifier, name):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(scorer.any_classifier, name)
