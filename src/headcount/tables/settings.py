"""Settings of reading, fitting and estimating, and how keywords are collected into them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from headcount._core import validation as check
from headcount.exceptions import InputError, choose


@dataclass(frozen=True)
class ReadSettings:
    """How tables are read.

    Parameters
    ----------
    encoding : str
        Of text files.
    date_format, time_zone : str, optional
        How to read dates, as in `DateReader`.
    progress : function of the number of bytes read, optional
    """

    encoding: str = "utf8"
    date_format: str | None = None
    time_zone: str | None = None
    progress: Callable[[int], None] | None = None


@dataclass(frozen=True)
class FitSettings:
    """How a model learns from labelled rows.

    Parameters
    ----------
    method : str
        Name of a quantifier that works on scores; 'auto' compares methods on labelled rows.
    calibrator : str, optional
        By default 'bcts' for SLD and none for the others; 'none' for none.
    measure, expect, budget
        For 'auto', as in `AutoQuantifier`.
    vectorizer : str
        How texts become vectors.
    min_rows : int, optional
        Classes with fewer labelled rows are joined into "other", or dropped.
    rare : {'join', 'drop'}
    force : bool
        Whether to return a model that the quality check shows to be useless.
    verbose : bool
        Whether to show progress by candidate and fold.
    """

    method: str = "auto"
    calibrator: str | None = None
    measure: str = "ae"
    expect: str = "learn"
    budget: float = 120.0
    vectorizer: str = "tfidf"
    min_rows: int | None = None
    rare: str = "join"
    force: bool = False
    verbose: bool = False

    def __post_init__(self) -> None:
        choose("rare", self.rare, ["join", "drop"])
        if self.method == "auto" and self.calibrator is not None:
            raise InputError("the calibrator is chosen with the method: name a method to set it.")
        tuned = (self.expect, self.measure) != ("learn", "ae")
        if self.method not in ("auto", "BayesQuantifier") and tuned:
            raise InputError(
                f"{self.method} takes no account of what is expected or measured: leave expect and "
                "measure out, or use auto or BayesQuantifier."
            )


@dataclass(frozen=True)
class EstimateSettings:
    """What is estimated.

    Parameters
    ----------
    by : str, optional
        A column, or a period and a column of dates, such as ``month:date``.
    truth : str, optional
        Column of true labels, to compare the estimates with.
    weight : str, optional
        Column of row weights: shares are then shares of weight, and intervals are those of an
        equally informative number of unweighted rows. Rows without a weight are left out.
    level : float
        Of the intervals.
    target : {'bag', 'population'}
        Shares among these very rows, or in the population that they were drawn from.
    """

    by: str | None = None
    truth: str | None = None
    weight: str | None = None
    level: float = 0.95
    target: str = "bag"

    def __post_init__(self) -> None:
        check.at_least("level", self.level, 0.5, 0.999)
        choose("target", self.target, ["bag", "population"])


def collect(keywords: Mapping[str, Any], *kinds: type[Any]) -> list[Any]:
    """Settings objects made of keywords, each of which belongs to one of them.

    Examples
    --------
    >>> collect({"level": 0.9, "encoding": "latin-1"}, EstimateSettings, ReadSettings)[1].encoding
    'latin-1'
    """
    names = {kind: [f.name for f in fields(kind)] for kind in kinds}
    for keyword in keywords:
        choose("setting", keyword, [name for own in names.values() for name in own])
    return [kind(**{k: v for k, v in keywords.items() if k in names[kind]}) for kind in kinds]
