"""What a study's file may say: one typed model for each of its tables."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from headcount.data.windows import Windows
from headcount.exceptions import InputError

Moment = str | int | date  # TOML has dates of its own


class Spec(BaseModel):
    """Base of everything that is read from a study's file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TemporalSpec(Spec):
    """How a table is cut by time; `headcount.data.windows.Windows` says what the windows mean."""

    date: str | None = None
    date_format: str | None = None
    part: str | None = None  # column of sub-categories, to show what a class is made of
    scores: dict[str, str] | None = None  # class -> column, where items are posteriors
    test_where: dict[str, Any] = Field(default_factory=dict)
    train: list[Moment] | None = None
    test: list[Moment] | None = None
    development: list[Moment] | None = None
    every: str | None = None
    gap: int | None = None
    minimum: int | None = None
    duplicates: str = "keep"
    encoder: str | None = None
    min_class: int = Field(default=20, ge=1)
    most_train: int | None = Field(default=None, ge=1)
    most_test: int | None = Field(default=None, ge=1)

    def windows(self, base: Windows | None, name: str) -> Windows:
        """Windows of time: those of the published data set, with what is given here instead."""
        names = ("train", "test", "development", "every", "gap", "minimum")
        given = {n: getattr(self, n) for n in names if getattr(self, n) is not None}
        own = {} if base is None else {n: getattr(base, n) for n in names}
        found = {**own, **given}
        missing = [n for n in ("train", "test") if n not in found]
        if missing:
            raise InputError(
                f"{name}: {missing[0]} is missing in temporal: a first and a last moment such as "
                "['2008-08', '2015-07']."
            )
        return Windows(**found)


class DatasetSpec(Spec):
    """Where the labelled items are: a table, a published set in its own form, or scikit-learn's."""

    name: str
    path: str | None = None  # a table: CSV, TSV, Parquet or JSON lines
    label: str | None = None
    text: str | None = None
    features: list[str] | None = None
    where: dict[str, Any] = Field(default_factory=dict)
    split: str | None = None
    parts: dict[Literal["train", "validation", "test"], Any] = Field(default_factory=dict)
    tweets: str | None = None  # folder of the unpacked archive of Gao and Sebastiani
    sparse: dict[Literal["train", "validation", "test"], str] | None = None
    sklearn: str | None = None  # breast_cancer, digits, iris, wine
    amazon: str | None = None  # file of reviews, 5-core, JSON lines, gzip
    complaints: str | None = None  # CSV file of the Consumer Complaint Database
    toxicity: str | None = None  # folder of Wikipedia Talk labels: toxicity
    version: str | None = None  # of a published set: its column in the published tables
    products: str | None = None  # a table of one's own in place of the map of complaint products
    keep: str | None = None  # folder for the compact form of a published set
    test: float = Field(default=0.5, gt=0, lt=1)
    validation: float = Field(default=0.2, gt=0, lt=1)
    min_df: int = Field(default=5, ge=1)
    vectorizer: str = "tfidf"
    temporal: TemporalSpec | None = None


class ClassifierSpec(Spec):
    """A classifier by name or import path, its settings, and what to search."""

    kind: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    grid: dict[str, list[Any]] = Field(default_factory=dict)


class MethodSpec(Spec):
    """A quantifier by name, on one of the classifiers."""

    quantifier: str
    name: str | None = None
    classifier: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    grid: dict[str, list[Any]] = Field(default_factory=dict)
    only: list[str] = Field(default_factory=list)
    by_measure: bool = False  # once for each measure, which it is told as its parameter `measure`
    balanced: bool = False  # beside it, the same on a classifier that is trained on equal shares
    intervals: bool = False
    groups: bool = False  # fit(X, y, groups=...) with the periods of a temporal data set
    needs: str | None = None  # a package: where it is not installed, the method is left out


class StudySpec(Spec):
    """A whole study."""

    name: str
    measures: list[str] = Field(default_factory=lambda: ["ae", "rae"], min_length=1)
    seeds: list[StrictInt] = Field(default_factory=lambda: [0], min_length=1)
    published: str | None = None
    protocol: dict[str, Any]
    selection: dict[str, Any] | None = None
    classifiers: dict[str, ClassifierSpec] = Field(default_factory=dict)
    methods: list[MethodSpec] = Field(min_length=1)
    datasets: list[DatasetSpec] = Field(min_length=1)
