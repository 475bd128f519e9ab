"""Learning from labelled tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from headcount._core.progress import announce
from headcount.data.groups import Grouping
from headcount.data.stream import Source, columns_of
from headcount.exceptions import InputError, choose
from headcount.methods.bayes import BayesQuantifier
from headcount.methods.likelihood import SLD
from headcount.methods.registry import score_methods
from headcount.methods.scored import ScoreQuantifier
from headcount.selection.auto import AutoQuantifier
from headcount.selection.validation_bags import MIN_PER_CLASS
from headcount.tables.channels import Channels
from headcount.tables.direction import aligned, turned
from headcount.tables.grouped import (
    FEWEST,
    classifiers_of,
    fit_evenly,
    learn_groups,
    split_by_group,
    tell_groups,
)
from headcount.tables.inputs import BOTH, Inputs
from headcount.tables.labelled import Labelled, Say, read_labelled, without_copies, without_rare
from headcount.tables.model import Model
from headcount.tables.notes import Note
from headcount.tables.quality import is_useless, quality

CHECK = 0.2  # share of the budget that goes to trying the intervals
CHOICE = 0.4  # share of the budget that a choice may take where groups are to be tried as well


def learn(
    found: Sequence[Source],
    inputs: Inputs,
    label: str,
    *,
    by: str | None = None,
    date_format: str | None = None,
    time_zone: str | None = None,
    method: str = "auto",
    calibrator: str | None = None,
    measure: str = "ae",
    expect: str = "learn",
    budget: float = 120.0,
    vectorizer: str = "tfidf",
    min_rows: int | None = None,
    rare: str = "join",
    force: bool = False,
    encoding: str = "utf8",
    say: Say = lambda _: None,
    progress: Callable[[int], None] | None = None,
    verbose: bool = False,
) -> Model:
    """Fit a model to labelled tables.

    Parameters
    ----------
    found : sources of labelled rows
    inputs : columns to look at
    label : column of labels
    by : str, optional
        Column, or period and column of dates, whose groups will be asked about: whole groups are
        left out when the model is tried, and the labelled rows of a group are used for it.
    date_format, time_zone : optional
        How to read the dates of `by`, as in `DateReader`.
    method : name of a quantifier that works on scores
        'auto' lets bags of labelled rows decide.
    calibrator : optional
        By default 'bcts' for SLD and none for the others; 'none' for none.
    measure, expect, budget
        For 'auto', as in `AutoQuantifier`.
    vectorizer : how texts become vectors
    min_rows : int, optional
        Classes with fewer labelled rows are joined into "other", or dropped.
    rare : {'join', 'drop'}
    force : bool
        Whether to give a model that the check shows to be useless.
    say : function that is told what was left out or decided
    verbose : whether to show what is being done, by candidate and fold
    """
    choose("rare", rare, ["join", "drop"])
    known: Any = {"measure": measure, "expect": expect, "budget": (1 - CHECK) * budget}
    auto = AutoQuantifier(**known, n_jobs=-1, verbose=verbose)
    grouping = Grouping.parse(by, date_format, time_zone)
    auto.periods = grouping.period is not None
    auto.check_params()
    if method == "auto" and calibrator is not None:
        raise InputError("the calibrator is chosen with the method: name a method to set it.")
    if method not in ("auto", "BayesQuantifier") and (expect, measure) != ("learn", "ae"):
        raise InputError(
            f"{method} takes no account of what is expected or measured: leave expect and measure "
            "out, or use auto or BayesQuantifier."
        )
    _check_groups(grouping, label, inputs)
    told: Any = {"encoding": encoding, "say": say, "progress": progress}
    rows = read_labelled(found, inputs, label, grouping, **told)
    rows, joined = without_rare(without_copies(rows, say), label, min_rows, rare, say)
    names, counts = np.unique(rows.labels, return_counts=True)
    maker: Any = auto if method == "auto" else _made(method, calibrator, measure, expect)
    with announce(verbose and method != "auto") as tell:
        tell(f"{method} learns from {len(rows.labels):,} rows")
        inputs, quantifier = _fit(maker, inputs, rows, vectorizer, say)
    choice = maker.choice_ if method == "auto" else None
    if choice is not None and choice.is_fallback:
        say(Note("too few to compare", MIN_PER_CLASS, str(names[counts.argmin()])))
        method, choice = "SLD", None
    if inputs.kind != "scores":
        codes = np.searchsorted(quantifier.classes_, rows.labels)
        quantifier.channels_ = Channels(inputs.kind).fit(rows.items, codes)
    summary: dict[str, Any] = {
        "rows": len(rows.labels),
        "method": method if choice is None else choice.method,
        "choice": None if choice is None else asdict(choice),
        "shares": {str(c): round(n / counts.sum(), 6) for c, n in zip(names, counts, strict=True)},
        "columns": columns_of(found[0], encoding),
        "by": by,
        "rare": joined,
    }
    with announce(verbose) as tell:
        tell("checking it on bags of rows that it had not seen")
        summary["quality"] = quality(quantifier, CHECK * budget if method == "auto" else np.inf)
        if rows.groups is not None:
            tell("trying it on groups that it had not seen")
            _add_groups(summary, quantifier, rows, by or "", say)
    if rows.groups is None and not force and is_useless(summary["quality"], expect):
        raise _useless(summary["quality"], inputs)
    return Model(quantifier, inputs, label, summary)


def _check_groups(grouping: Grouping, label: str, inputs: Inputs) -> None:
    if grouping.column is not None and grouping.column in (label, *inputs.texts):
        what = "the labels" if grouping.column == label else "the texts"
        raise InputError(f"{grouping.column!r} holds {what}, which are no groups.", setting="by")


def _fit(
    maker: Any, inputs: Inputs, rows: Labelled, vectorizer: str, say: Say
) -> tuple[Inputs, Any]:
    """Fit to scores, texts or features; with groups, these are left out whole for the choice."""
    names = np.unique(rows.labels)
    if inputs.kind == "scores":
        if len(inputs.columns) == 1 and len(names) == 2:
            inputs = turned(inputs, rows.items, rows.labels, names, say)
            items = inputs.pair(rows.items[:, 1])
        else:
            inputs, order = aligned(inputs, rows.items, rows.labels, names, say)
            items = rows.items[:, order]
        if getattr(maker, "calibrator", "") is None and (items.min() < 0 or items.max() > 1):
            maker.set_params(calibrator="platt")  # a judge's scale says nothing by itself
        maker.fit_scores(items, rows.labels)
        fitted = getattr(maker, "best_quantifier_", maker)
        return inputs, fitted if rows.groups is None else tell_groups(fitted, rows.groups)
    front = inputs.front(rows.items, vectorizer)
    classifier = make_pipeline(front, LogisticRegression(max_iter=1000))
    if not isinstance(maker, AutoQuantifier):
        if rows.groups is not None:
            return inputs, fit_evenly(maker, [classifier], rows)
        return inputs, maker.set_params(classifier=classifier).fit(rows.items, rows.labels)
    if inputs.kind == BOTH:
        maker.set_params(classifier=classifier)
    elif inputs.kind == "text":  # otherwise it looks at the items in several ways
        maker.set_params(vectorizer=vectorizer)
    if rows.groups is None:
        return inputs, maker.fit(rows.items, rows.labels).best_quantifier_
    split_by_group(rows.labels, rows.groups)  # says it if there are too few
    maker.set_params(budget=CHOICE * maker.budget)
    chosen = maker.fit(rows.items, rows.labels, groups=rows.groups).best_quantifier_
    return inputs, fit_evenly(chosen, classifiers_of(chosen), rows)


def _add_groups(
    summary: dict[str, Any], quantifier: Any, rows: Labelled, by: str, say: Say
) -> None:
    """What held-out groups tell goes into the summary."""
    n = len(np.unique(np.asarray(rows.groups)))
    if n < FEWEST:
        say(Note("few groups", n, by))
    checked = summary["quality"] or {}
    found, off = learn_groups(quantifier, rows, checked.get("factors", ()))
    summary["groups"] = found.to_dict()
    if checked:
        checked["by_group"] = off


def _useless(found: dict[str, Any], inputs: Inputs) -> InputError:
    what = "texts" if inputs.kind == "text" else inputs.kind
    return InputError(
        f"the {what} hardly tell the classes apart: on labelled rows that it had not seen the "
        f"model is off by {100 * found['error']:.1f} points, and always saying the labelled shares "
        f"by {100 * found['constant']:.1f}. Look at other columns, or label more rows; to have "
        "such a model all the same, ask for it.",
        setting="force",
    )


def _made(method: str, calibrator: str | None, measure: str, expect: str) -> ScoreQuantifier:
    """Quantifier by name, with a calibrator that suits it."""
    known = score_methods()
    kind: Any = known[choose("method", method, sorted(known))]
    decides = kind is BayesQuantifier
    if calibrator is None:
        own = "curves" if decides else "none"
        calibrator = "bcts" if issubclass(kind, SLD) else own
    chosen = None if calibrator == "none" else calibrator
    more: Any = {"measure": measure, "expect": expect} if decides else {}
    made: ScoreQuantifier = kind(calibrator=chosen, n_jobs=-1, **more)
    return made
