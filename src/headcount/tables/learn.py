"""Training of models on labelled tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from headcount._core.progress import announce
from headcount.data.groups import Grouping
from headcount.data.stream import Source
from headcount.exceptions import InputError, choose
from headcount.methods.bayes import BayesQuantifier
from headcount.methods.likelihood import SLD
from headcount.methods.registry import score_methods
from headcount.methods.scored import ScoreQuantifier
from headcount.selection.auto import AutoQuantifier
from headcount.selection.validation_bags import MIN_PER_CLASS
from headcount.tables.covariate_bins import CovariateBins
from headcount.tables.groups import (
    MIN_GROUPS,
    classifiers_of,
    fit_evenly,
    learn_shift,
    split_by_group,
    validate_groups,
)
from headcount.tables.inputs import BOTH, Inputs, orient
from headcount.tables.labelled import Labelled, read_labelled, without_copies, without_rare
from headcount.tables.model import FittedModel
from headcount.tables.notes import Note, Notify
from headcount.tables.quality import measure_quality
from headcount.tables.reading import TableScan
from headcount.tables.settings import FitSettings, ReadSettings
from headcount.tables.training import GroupInfo, QualityReport, Training


def learn(
    sources: Sequence[Source],
    inputs: Inputs,
    label: str,
    *,
    by: str | None,
    settings: FitSettings,
    reading: ReadSettings,
    notify: Notify,
) -> FittedModel:
    """Fit a model to labelled tables; parameters are those of `headcount.tables.fit`."""
    grouping = Grouping.parse(by, reading.date_format, reading.time_zone)
    auto = _auto(settings, periods=grouping.period is not None)
    _check_columns(grouping, label, inputs)
    scan = TableScan(sources, {**inputs.wanted, label: "name"}, grouping, reading)
    rows = without_copies(read_labelled(scan, inputs, label, notify), notify)
    rows, rare = without_rare(rows, label, settings.min_rows, settings.rare, notify)
    method: Any = auto if settings.method == "auto" else _named_method(settings)
    with announce(settings.verbose and settings.method != "auto") as show:
        show(f"{settings.method} learns from {len(rows.labels):,} rows")
        inputs, quantifier = _fit(method, inputs, rows, settings.vectorizer, notify)
    names, counts = np.unique(rows.labels, return_counts=True)
    choice = method.choice_ if settings.method == "auto" else None
    if choice is not None and choice.is_fallback:
        notify(Note("too few to compare", MIN_PER_CLASS, str(names[counts.argmin()])))
        settings, choice = replace(settings, method="SLD"), None
    bins = None
    if inputs.kind != "scores":
        codes = np.searchsorted(quantifier.classes_, rows.labels)
        bins = CovariateBins(inputs.kind).fit(rows.items, codes)
    quality, groups = _validate(quantifier, rows, settings, by, notify)
    if rows.groups is None and not settings.force:
        _check_useful(quality, settings.expect, inputs)
    training = Training(
        rows=len(rows.labels),
        method=settings.method if choice is None else choice.method,
        shares=dict(zip(map(str, names), (counts / counts.sum()).round(6).tolist(), strict=True)),
        columns=scan.header,
        by=by,
        choice=choice,
        rare=rare,
        quality=quality,
        groups=groups,
    )
    return FittedModel(quantifier, inputs, label, training, bins)


def _auto(settings: FitSettings, *, periods: bool) -> AutoQuantifier:
    known: Any = {"measure": settings.measure, "expect": settings.expect}
    auto = AutoQuantifier(**known, budget=settings.budget, n_jobs=-1, verbose=settings.verbose)
    auto.periods = periods
    auto.check_params()
    return auto


def _check_columns(grouping: Grouping, label: str, inputs: Inputs) -> None:
    if grouping.column is not None and grouping.column in (label, *inputs.texts):
        what = "the labels" if grouping.column == label else "the texts"
        raise InputError(f"{grouping.column!r} holds {what}, which are no groups.", setting="by")
    if label in inputs.columns:
        raise InputError(f"{label!r} is both the label and something to look at.")


def _named_method(settings: FitSettings) -> ScoreQuantifier:
    """Quantifier by name, with a calibrator that suits it."""
    known = score_methods()
    kind: Any = known[choose("method", settings.method, sorted(known))]
    is_bayes = kind is BayesQuantifier
    default = "bcts" if issubclass(kind, SLD) else "curves" if is_bayes else "none"
    calibrator = settings.calibrator or default
    more: Any = {"measure": settings.measure, "expect": settings.expect} if is_bayes else {}
    spec = None if calibrator == "none" else calibrator
    quantifier: ScoreQuantifier = kind(calibrator=spec, n_jobs=-1, **more)
    return quantifier


def _fit(
    method: Any, inputs: Inputs, rows: Labelled, vectorizer: str, notify: Notify
) -> tuple[Inputs, Any]:
    """Fit to scores, texts or features; groups are left out whole when methods are compared."""
    if inputs.kind == "scores":
        inputs, scores = orient(inputs, rows.items, rows.labels, notify)
        if getattr(method, "calibrator", "") is None and (scores.min() < 0 or scores.max() > 1):
            method.set_params(calibrator="platt")  # raw judge scales need calibration
        method.fit_scores(scores, rows.labels)
        fitted = getattr(method, "best_quantifier_", method)
        return inputs, fitted if rows.groups is None else learn_shift(fitted, rows.groups)
    classifier = make_pipeline(
        inputs.front(rows.items, vectorizer), LogisticRegression(max_iter=1000)
    )
    if not isinstance(method, AutoQuantifier):
        if rows.groups is not None:
            return inputs, fit_evenly(method, [classifier], rows)
        return inputs, method.set_params(classifier=classifier).fit(rows.items, rows.labels)
    if inputs.kind == BOTH:
        method.set_params(classifier=classifier)
    elif inputs.kind == "text":  # otherwise several classifiers are compared
        method.set_params(vectorizer=vectorizer)
    if rows.groups is None:
        return inputs, method.fit(rows.items, rows.labels).best_quantifier_
    split_by_group(rows.labels, rows.groups)  # rejects too few groups
    method.set_params(budget=0.4 * method.budget)  # the rest is for `validate_groups`
    chosen = method.fit(rows.items, rows.labels, groups=rows.groups).best_quantifier_
    return inputs, fit_evenly(chosen, classifiers_of(chosen), rows)


def _validate(
    quantifier: Any, rows: Labelled, settings: FitSettings, by: str | None, notify: Notify
) -> tuple[QualityReport | None, GroupInfo | None]:
    """Quality on held-out rows and, where rows have groups, on held-out groups."""
    with announce(settings.verbose) as show:
        show("checking it on bags of rows that it had not seen")
        quality = measure_quality(quantifier)
        if rows.groups is None:
            return quality, None
        show("trying it on groups that it had not seen")
        n_groups = len(np.unique(rows.groups))
        if n_groups < MIN_GROUPS:
            notify(Note("few groups", n_groups, by or ""))
        groups, by_group = validate_groups(quantifier, rows)
        return quality and replace(quality, by_group=by_group), groups


def _check_useful(quality: QualityReport | None, expect: str, inputs: Inputs) -> None:
    if quality is None or expect == "no shift" or not quality.is_useless:
        return
    what = "texts" if inputs.kind == "text" else inputs.kind
    raise InputError(
        f"the {what} hardly tell the classes apart: on labelled rows that it had not seen the "
        f"model is off by {100 * quality.error:.1f} points, and always saying the labelled shares "
        f"by {100 * quality.constant:.1f}. Look at other columns, or label more rows; to have "
        "such a model all the same, ask for it.",
        setting="force",
    )
