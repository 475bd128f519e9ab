"""A fitted quantifier with the columns it looks at, and its file."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from headcount._core.frame import Frame
from headcount._core.types import Floats, Ints
from headcount.data.groups import Grouping
from headcount.data.stream import sources_of
from headcount.data.tables import as_names
from headcount.exceptions import InputError
from headcount.inference.check import widen_by
from headcount.methods.files import load_with_manifest, save
from headcount.methods.scored import ScoreQuantifier
from headcount.scores.scorer import Scorer
from headcount.tables.channels import Channels
from headcount.tables.grouped import Groups
from headcount.tables.inputs import Inputs
from headcount.tables.notes import Note
from headcount.tables.words import learnt_text

if TYPE_CHECKING:
    from headcount.tables.page import Page
    from headcount.tables.result import Count


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A fitted quantifier, and the columns it was fitted to."""

    quantifier: Any
    inputs: Inputs
    label: str
    summary: dict[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()  # what was noticed while it was fitted; not kept in the file
    cache: dict[str, Any] = field(default_factory=dict, repr=False)  # of what is made when needed

    def estimate(self, data: Any, by: str | None = None, **settings: Any) -> Count:
        """Shares of every class in every group of rows; more settings are those of `count`.

        Parameters
        ----------
        data : data frame (pandas, polars, Arrow, DuckDB), name of a file or pattern, or several
        by : str, optional
            A column, or a period and a column of dates, such as ``month:date``.
        """
        from headcount.tables.count import count

        with threadpool_limits(1, user_api="blas"):  # as in `fit`
            return count(self, sources_of(data, settings.pop("kind", None)), by=by, **settings)

    def report(
        self,
        data: Any,
        by: str | None = None,
        *,
        title: str = "How many",
        only: str | None = None,
        **settings: Any,
    ) -> Page:
        """Page about the rows of `data`, as `Count.report` makes it."""
        return self.estimate(data, by, **settings).report(title, only)

    def monitor(self, data: Any, by: str, reference: Any = None, **settings: Any) -> Frame:
        """Groups that changed since a reference, as `Count.monitor` tells them."""
        return self.estimate(data, by, **settings).monitor(reference)

    def __repr__(self) -> str:
        return "\n".join([learnt_text(self.summary), *map(str, self.notes)])

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in repr(self).splitlines())

    @property
    def channels(self) -> Channels | None:
        """How items are looked at apart from their scores; None for scores alone."""
        return getattr(self.quantifier, "channels_", None)

    @property
    def class_names(self) -> list[str]:
        """Names of the classes."""
        return [str(name) for name in as_names(self.quantifier.classes_).tolist()]

    @property
    def scorer(self) -> Scorer:
        """What scores the items."""
        found: Scorer = self.quantifier.scorer_
        return found

    def groups(self, grouping: Grouping) -> Groups | None:
        """What is known of the groups of the labelled rows, if these are asked about."""
        about = self.summary.get("groups")
        if about is None or self.summary.get("by") is None:
            return None
        own = Grouping.parse(self.summary["by"])
        same = (own.column, own.period) == (grouping.column, grouping.period)
        return Groups.from_dict(about) if same else None

    def known_labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Labels with the classes that were joined at fitting under their common name."""
        rare = self.summary.get("rare")
        if not rare or not rare["as"]:
            return labels
        return np.where(np.isin(labels, rare["classes"]), rare["as"], labels)

    def widening(self, sizes: Ints | Floats) -> Floats:
        """By how much intervals are widened, as the check at fitting asked for."""
        return widen_by(self.factors or (1.0, 1.0), sizes)

    @property
    def factors(self) -> tuple[float, ...]:
        """What the check at fitting asked for; empty where there was none."""
        return tuple((self.summary.get("quality") or {}).get("factors") or ())

    def views(self, items: Any, *, whole: bool = False) -> list[Floats]:
        """Scores of items, by each classifier that scores new items."""
        if self.inputs.kind == "scores":
            return [self.scorer.check(items)]
        return self.scorer.views(items, whole=whole)

    def save(self, path: Any) -> None:
        """Write a ``.hc`` file."""
        about = {
            "kind": self.inputs.kind,
            "columns": list(self.inputs.columns),
            "turned": self.inputs.turned,
            "middle": self.inputs.middle,
            "label": self.label,
            "training": self.summary,
        }
        save(self.quantifier, path, about)

    @classmethod
    def load(cls, path: Any) -> Model:
        """Read a ``.hc`` file that `save` wrote."""
        quantifier, manifest = load_with_manifest(path)
        about: Any = manifest.get("about")
        try:
            columns = tuple(map(str, about["columns"]))
            middle = float(about.get("middle", 0.5))
            inputs = Inputs(about["kind"], columns, bool(about.get("turned", False)), middle)
            summary = dict(about["training"])
            kind = getattr(getattr(quantifier, "channels_", None), "kind", "scores")
            sound = isinstance(quantifier, ScoreQuantifier) and kind == inputs.kind
            sound = sound and (kind == "scores" or quantifier.scorer_.takes_items)
            sound = sound and len(quantifier.scorer_.scores) > 0
            label = str(about["label"])
        except (TypeError, KeyError, AttributeError, ValueError):
            sound = False
        if not sound:
            raise InputError(f"{path} was not made by `headcount fit`, or was changed since.")
        return cls(quantifier, inputs, label, summary)
