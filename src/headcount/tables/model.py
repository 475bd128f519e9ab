"""Fitted models: the quantifier, its columns, what was learnt in training, and the file."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headcount._core.codec import decode, encode
from headcount._core.types import Floats
from headcount.data.groups import Grouping
from headcount.data.tables import as_names
from headcount.exceptions import InputError
from headcount.methods.files import load_file, save
from headcount.methods.scored import ScoreQuantifier
from headcount.scores.scorer import Scorer
from headcount.tables.accumulator import ScoreLayout
from headcount.tables.covariate_bins import CovariateBins
from headcount.tables.inputs import Inputs
from headcount.tables.notes import Note
from headcount.tables.training import GroupInfo, Training, training_text

FILE_FORMAT = 2  # version of what a model file says of tables; 2: typed, with covariate bins
BINS = "covariate_bins"  # name of the bins in the file


@dataclass(frozen=True, eq=False)
class _Header:
    """What a model file says of tables."""

    tables: int  # version of the format
    inputs: Inputs
    label: str
    training: Training


@dataclass(frozen=True, eq=False, repr=False)
class FittedModel:
    """A fitted quantifier, and the columns that it was fitted to."""

    quantifier: Any  # works on scores
    inputs: Inputs
    label: str  # column of labels
    training: Training = field(default_factory=Training)
    bins: CovariateBins | None = None  # histogram of the labelled items; None for scores
    notes: tuple[Note, ...] = ()  # of the training; not in the file

    def __repr__(self) -> str:
        return "\n".join([training_text(self.training), *map(str, self.notes)])

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in repr(self).splitlines())

    @property
    def class_names(self) -> list[str]:
        """Names of the classes."""
        return [str(name) for name in as_names(self.quantifier.classes_).tolist()]

    @property
    def scorer(self) -> Scorer:
        """Scorer of items."""
        scorer: Scorer = self.quantifier.scorer_
        return scorer

    def groups_by(self, grouping: Grouping) -> GroupInfo | None:
        """Groups of the labelled rows, if rows are grouped in the same way."""
        if self.training.by is None:
            return None
        own = Grouping.parse(self.training.by)
        same = (own.column, own.period) == (grouping.column, grouping.period)
        return self.training.groups if same else None

    def known_labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Labels, with the classes that were joined for training under their common name."""
        rare = self.training.rare
        if rare is None or rare.joined is None:
            return labels
        return np.where(np.isin(labels, rare.classes), rare.joined, labels)

    @property
    def layout(self) -> ScoreLayout:
        """Shape of the scores of items."""
        scorer, by_items = self.scorer, self.inputs.kind != "scores"
        whole = self.quantifier.uses_whole() and scorer.whole is not None and scorer.folds
        n_folds = max(1, len(scorer.folds)) if by_items else 1
        widths = [] if self.bins is None else self.bins.widths
        return ScoreLayout(scorer.kind, scorer.scores, n_folds, bool(whole), widths)

    def score(self, items: Any) -> tuple[Floats, NDArray[Any]]:
        """Scores of items of shape (n, views, k), and their covariate bins."""
        if self.inputs.kind == "scores":
            views = [self.scorer.check(items)]
        else:
            views = self.scorer.views(items)
        if self.layout.has_whole:
            views = [*views, *self.scorer.views(items, whole=True)]
        bins = np.zeros((len(views[0]), 0)) if self.bins is None else self.bins.bins(items)
        return np.stack(views, axis=1), bins

    def save(self, path: Any) -> None:
        """Write a ``.hc`` file."""
        header = _Header(FILE_FORMAT, self.inputs, self.label, self.training)
        save(self.quantifier, path, encode(header), {} if self.bins is None else {BINS: self.bins})

    @classmethod
    def load(cls, path: Any) -> Self:
        """Read a ``.hc`` file that `save` wrote."""
        file = load_file(path)
        version = file.about.get("tables", 1) if isinstance(file.about, dict) else None
        if isinstance(version, int) and version != FILE_FORMAT:
            raise InputError(
                f"{path} was written by another version of headcount ({file.manifest['headcount']}"
                "): fit it again."
            )
        try:
            header = decode(_Header, file.about)
            model = cls(
                file.quantifier, header.inputs, header.label, header.training, file.parts.get(BINS)
            )
            model._check()
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise InputError(
                f"{path} was not made by `headcount fit`, or was changed since ({error}): fit it "
                "again."
            ) from None
        return model

    def _check(self) -> None:
        """Refuse parts that do not belong together."""
        kind = "scores" if self.bins is None else self.bins.kind
        if not isinstance(self.quantifier, ScoreQuantifier) or kind != self.inputs.kind:
            raise ValueError(f"{type(self.quantifier).__name__} of {self.inputs.kind}")
        if not len(self.scorer.scores) or not (kind == "scores" or self.scorer.takes_items):
            raise ValueError("no classifier, or no held-out scores")
