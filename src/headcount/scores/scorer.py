"""The one place that scores items: a classifier, its folds, the held-out scores, the calibrator.

New items are scored as the held-out ones were, by the classifiers of the folds, each of which
saw a part of the labelled items. A classifier that saw all of them gives scores of another
distribution than those that a method has learnt from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.scores.calibration import Calibrator, logits_of
from headcount.scores.calibrators import make_calibrator
from headcount.scores.together import score_by_all

EQUAL = 1e-12  # by which scores that are the same may differ
STEPS_PER_SCORE = 1 << 20  # of the number by which an item is assigned to a classifier
View = tuple[Floats, Bags]  # scores of a pool by one classifier, and the bags of that pool


@dataclass(frozen=True, eq=False)
class Held:
    """What a method learns from: scores of labelled items by classifiers that never saw them.

    Attributes
    ----------
    scores : array of shape (n, k)
        Calibrated, if there is a calibrator. Without rows where nothing was held out, which only
        methods that say so in their tags get to see.
    codes : array of shape (n,)
        Class numbers of these items.
    frequency : array of shape (k,)
        Share of each class among all labelled items.
    kind : 'posterior', 'decision' or 'label'
        What the scores are; calibrated ones are posteriors.
    calibrated : bool
    """

    scores: Floats
    codes: Ints
    frequency: Floats
    kind: str
    calibrated: bool = False

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.frequency)


@dataclass(frozen=True, eq=False)
class Scorer:
    """What a classifier pass leaves behind, and how new items are scored.

    Attributes
    ----------
    classes, frequency
        Classes in order, and the share of each among the labelled items.
    scores, codes
        Raw scores of held-out items, and the class numbers of these; no rows if none were held
        out.
    kind : 'posterior', 'decision' or 'label'
    folds : classifiers that scored the held-out items
    whole : classifier of all labelled items, if one was fitted
    predicts_best : False for a classifier whose prediction is not its best-scored class
    calibrator : fitted calibrator, or None
    names : columns of the scores that were learnt from, if these came with names
    fold : for each held-out item, the number of the classifier in `folds` that scored it
    """

    classes: NDArray[Any]
    frequency: Floats
    scores: Floats
    codes: Ints
    kind: str = "posterior"
    folds: tuple[Any, ...] = ()
    whole: Any = None
    predicts_best: bool = True
    calibrator: Any = None
    names: tuple[str, ...] | None = None
    fold: Ints | None = None

    @classmethod
    def from_scores(
        cls, scores: Any, y: Any, classes: ArrayLike | None = None, *, decisions: bool = False
    ) -> Scorer:
        """Wrap scores that came from elsewhere: a transformer, a judge, a log.

        Parameters
        ----------
        decisions : bool
            Whether numbers outside of [0, 1] are welcome.
        """
        array = check.labels(y)
        known, codes = check.encode(array, classes)
        check.two_or_more(known)
        names = check.score_names(scores)
        matrix = check.score_matrix(_in_order(scores, names, known), None)
        check.same_length(len(matrix), array, "scores")
        if matrix.shape[1] != len(known):
            raise InputError(
                f"scores have {matrix.shape[1]} columns and y holds {len(known)} classes "
                f"{known.tolist()[:10]}. Pass classes=[...] in the order of the columns if y "
                "lacks one."
            )
        counts = np.bincount(codes, minlength=len(known))
        if (counts == 0).any():
            raise InputError(
                f"class {known[counts == 0].tolist()[0]!r} has no labelled item: its scores cannot "
                "be learnt. Add labelled items of it, or drop its column."
            )
        kind = "posterior"
        if decisions and not (matrix.min() >= 0 and matrix.max() <= 1):
            kind = "decision"
        else:
            check.posteriors(matrix)
        own = None if names is None else tuple(names)
        return cls(known, counts / len(codes), matrix, codes, kind, names=own)

    @property
    def takes_items(self) -> bool:
        """Whether there is a classifier; otherwise scores take the place of items."""
        return bool(self.folds) or self.whole is not None

    @property
    def any_classifier(self) -> Any:
        """One of the classifiers, or None."""
        return self.whole if not self.folds else self.folds[0]

    def tells_nothing(self) -> bool:
        """Whether every classifier gave all items that it was asked about the same scores.

        Those of one fold may differ from those of another: that says nothing about the items.
        """
        fold = np.zeros(len(self.scores), dtype=np.int64) if self.fold is None else self.fold
        numbers = np.unique(fold)
        spread = [np.ptp(self.scores[fold == f], axis=0).max() for f in numbers]
        return bool(len(numbers)) and max(spread) <= EQUAL

    def held(self) -> Held:
        """Held-out scores, calibrated, as a method learns from them."""
        calibrated = self.calibrator is not None
        kind = "posterior" if calibrated else self.kind
        return Held(self.calibrate(self.scores), self.codes, self.frequency, kind, calibrated)

    def views(self, X: Any, *, whole: bool = False) -> list[Floats]:
        """Raw scores of items by each classifier of the folds, or by the one of all items.

        Where there is only one of the two, that one is used.
        """
        if not self.takes_items:
            return [self.check(X)]
        several = self.folds
        if self.whole is not None and (whole or not self.folds):
            several = (self.whole,)
        return score_by_all(several, X, self.classes, self.kind)

    def check(self, scores: Any) -> Floats:
        """Scores that a user gives as a matrix with a column a class, in order."""
        matrix = check.score_matrix(self._named(scores), len(self.classes), kind=self.kind)
        if self.kind == "posterior":
            check.posteriors(matrix)
        return matrix

    def calibrate(self, raw: Floats) -> Floats:
        """Posteriors by the calibrator; raw scores as they are where there is none."""
        if self.calibrator is None or not len(raw):
            return raw
        return np.asarray(self.calibrator.transform(logits_of(raw, self.kind)))

    def with_calibrator(self, spec: str | Calibrator | None) -> Scorer:
        """Same scorer with a calibrator fitted to its held-out scores."""
        fresh = make_calibrator(spec)
        if fresh is None:
            return replace(self, calibrator=None)
        fitted = fresh.fit(logits_of(self.scores, self.kind), self.codes)
        return replace(self, calibrator=fitted)

    def part(self, rows: Any) -> Scorer:
        """What some of the held-out items alone would have left; it scores no new items."""
        codes = self.codes[rows]
        frequency = np.bincount(codes, minlength=len(self.classes)) / len(codes)
        return Scorer(self.classes, frequency, self.scores[rows], codes, self.kind)

    def _named(self, scores: Any) -> Any:
        """Columns in the order of the classes, by the names that were there at fitting."""
        names, seen = check.score_names(scores), self.names
        if names is None or seen is None:
            return scores
        if set(names) != set(seen):
            raise InputError(
                f"the columns of scores are {names}, and those at fitting were {list(seen)}. "
                "Pass the same columns."
            )
        classes = [str(c) for c in self.classes.tolist()]
        order = classes if set(classes) == set(names) else list(seen)
        return check.score_matrix(scores, None)[:, [names.index(c) for c in order]]


def mix_views(views: Sequence[Floats]) -> Floats:
    """Each item's scores by one of the classifiers, as a held-out item has them.

    Which one is decided by the item's own scores, so that neither the order of the
    items nor what else there is makes a difference.
    """
    if len(views) == 1:
        return views[0]
    turn = np.floor(project_items(views) * STEPS_PER_SCORE).astype(np.int64) % len(views)
    return np.asarray(np.stack(views)[turn, np.arange(len(turn))])


def project_items(views: Sequence[Floats]) -> Floats:
    """A number for every item that depends on its scores alone, and hardly on their last digits."""
    weights = np.random.default_rng(0).uniform(0.5, 1.5, size=(len(views), views[0].shape[1]))
    return np.asarray(sum(v @ w for v, w in zip(views, weights, strict=True)))


def in_own_order(scores: Floats, bags: Bags) -> View:
    """Same items and bags, in an order that depends on the scores alone.

    A sampler that goes through the items of a bag then gives the same draws however the rows of
    the pool were ordered.
    """
    order = np.argsort(project_items([scores]), kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return scores[order], Bags(bags.indptr, place[bags.indices], bags.n_items)


def _in_order(scores: Any, names: list[str] | None, classes: NDArray[Any]) -> Any:
    """Columns in the order of the classes, if their names are the classes."""
    order = [str(c) for c in classes.tolist()]
    if names is None or names == order or set(names) != set(order):
        return scores
    return check.score_matrix(scores, None)[:, [names.index(c) for c in order]]
