"""Learning from labelled tables, and how good the result is."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline

from headcount.data.cells import names_of
from headcount.data.stream import Reading, Source, batches
from headcount.exceptions import InputError, choose
from headcount.inference.spread import Request
from headcount.methods.bayes import BayesQuantifier
from headcount.methods.likelihood import SLD
from headcount.methods.registry import score_methods
from headcount.methods.scored import ScoreQuantifier
from headcount.protocols import DirichletPrevalence, NaturalPrevalence, UniformPrevalence
from headcount.scores.columns import column_encoder, is_numeric
from headcount.selection.auto import AutoQuantifier
from headcount.selection.cases import FOLDS
from headcount.tables.channels import Channels
from headcount.tables.model import Inputs, Model
from headcount.tables.notes import Note, reading_notes
from headcount.text.names import make_vectorizer

Say = Callable[[Note], None]


def learn(
    found: Sequence[Source],
    inputs: Inputs,
    label: str,
    *,
    method: str = "auto",
    calibrator: str | None = None,
    measure: str = "ae",
    expect: str = "learn",
    budget: float = 120.0,
    vectorizer: str = "tfidf",
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
    method : name of a quantifier that works on scores
        'auto' lets bags of labelled rows decide.
    calibrator : optional
        By default 'bcts' for SLD and none for the others; 'none' for none.
    measure, expect, budget
        For 'auto', as in `AutoQuantifier`.
    vectorizer : how texts become vectors
    say : function that is told what was left out or decided
    verbose : whether to show progress of the choice
    """
    auto = AutoQuantifier(measure=measure, expect=expect, budget=budget, n_jobs=-1, verbose=verbose)
    auto.check_params()
    if method == "auto" and calibrator is not None:
        raise InputError("the calibrator is chosen with the method: name a method to set it.")
    if method not in ("auto", "BayesQuantifier") and (expect, measure) != ("learn", "ae"):
        raise InputError(
            f"{method} takes no account of what is expected or measured: leave expect and measure "
            "out, or use auto or BayesQuantifier."
        )
    items, labels = _labelled(found, inputs, label, encoding, say, progress)
    names, counts = np.unique(labels, return_counts=True)
    if method == "auto" and counts.min() < 2 * FOLDS:
        rare = str(names[counts.argmin()])
        say(Note("too few to compare", 2 * FOLDS, rare))
        method = "SLD"
    maker: Any = auto if method == "auto" else _made(method, calibrator, measure, expect)
    if inputs.kind == "scores":
        inputs, order = _aligned(inputs, names, say)
        maker.fit_scores(items[:, order], labels)
    else:
        front = (
            make_vectorizer(vectorizer)
            if inputs.kind == "text"
            else column_encoder([is_numeric(column) for column in items.T])
        )
        maker.set_params(classifier=make_pipeline(front, LogisticRegression(max_iter=1000)))
        maker.fit(items, labels)
    quantifier = maker.best_quantifier_ if method == "auto" else maker
    if inputs.kind != "scores":
        quantifier.channels_ = Channels(inputs.kind).fit(
            items, np.searchsorted(quantifier.classes_, labels)
        )
    summary = {
        "rows": len(labels),
        "method": maker.choice_.method if method == "auto" else method,
        "choice": asdict(maker.choice_) if method == "auto" else None,
        "shares": {str(c): round(n / len(labels), 6) for c, n in zip(names, counts, strict=True)},
    }
    model = Model(quantifier, inputs, label, summary)
    summary["quality"] = quality(quantifier)
    return model


def quality(fitted: ScoreQuantifier, n_bags: int = 200) -> dict[str, Any] | None:
    """How far estimates are off on bags of labelled rows that they were not learnt from.

    Half of the held-out scores are learnt from anew, and bags with shares drawn at random are
    made of the other half. None where there are too few rows for that.
    """
    scorer = fitted.scorer_
    held, codes = scorer.scores, scorer.codes
    if not len(codes) or np.bincount(codes).min() < 10:
        return None
    size = int(np.clip(len(codes) // 4, 50, 500))
    ours, counting, inside = [], [], []
    drawing = _expected(fitted, n_bags // 2, size)
    halving = StratifiedShuffleSplit(2, test_size=0.5, random_state=0)
    for learnt, other in halving.split(held, codes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            half = clone(fitted).fit_scorer(scorer.part(learnt))
            drawn = drawing.draw(codes[other])
            truth = drawn.prevalence
            assert truth is not None
            found = half.bound([(held[other], drawn)], drawn.sizes, Request())
        counted = drawn.shares(held[other].argmax(axis=1), len(fitted.classes_))
        ours.append(np.abs(found.prevalence - truth).mean())
        counting.append(np.abs(counted - truth).mean())
        inside.append(((truth >= found.low) & (truth <= found.high)).mean())
    return {
        "bags": n_bags,
        "size": size,
        "shares": {"no shift": "as labelled", "mild shift": "near the labelled ones"}.get(
            getattr(fitted, "expect", ""), "drawn at random"
        ),
        "error": float(np.mean(ours)),
        "counting": float(np.mean(counting)),
        "coverage": float(np.mean(inside)),
    }


def _expected(fitted: ScoreQuantifier, n_bags: int, size: int) -> Any:
    """Bags as the quantifier was told to expect them; of any shares, if it was not."""
    common: Any = {"n_bags": n_bags, "size": size, "random_state": 0}
    expect = getattr(fitted, "expect", "any shift")
    if expect == "no shift":
        return NaturalPrevalence(**common)
    if expect == "mild shift":
        return DirichletPrevalence(**common)
    return UniformPrevalence(**common)


def _labelled(
    found: Sequence[Source],
    inputs: Inputs,
    label: str,
    encoding: str,
    say: Say,
    progress: Callable[[int], None] | None,
) -> tuple[Any, NDArray[Any]]:
    """Items and labels of tables; rows without an item or a label are left out, and said."""
    wanted = dict(inputs.wanted)
    if label in wanted:
        raise InputError(f"{label!r} is both the label and something to look at.")
    parts, labels, empty, unlabelled = [], [], 0, 0
    reading = Reading()
    told: Any = {"encoding": encoding, "progress": progress, "reading": reading}
    for _, batch in batches(found, {**wanted, label: "name"}, **told):
        items, there = inputs.of(batch)
        cells = label_names(batch.column(label))[there]
        empty += int((~there).sum())
        full = cells != ""
        unlabelled += int((~full).sum())
        parts.append(items[full])
        labels.append(cells[full])
    for note in reading_notes(reading):
        say(note)
    if empty:
        say(Note("no item", empty, inputs.kind))
    if unlabelled:
        say(Note("no label", unlabelled))
    if not labels or not sum(map(len, labels)):
        raise InputError("there are no labelled rows to learn from.")
    together = np.concatenate(labels)
    classes, counts = np.unique(together, return_counts=True)
    if len(classes) < 2:
        raise InputError(f"all labels are {str(classes[0])!r}: at least two classes are needed.")
    if len(classes) > 200:
        raise InputError(
            f"{label!r} has {len(classes)} different values: is it the column of labels?"
        )
    few = classes[counts < 5]
    if len(few):
        raise InputError(
            f"class {str(few[0])!r} of {label!r} has {counts[counts < 5][0]} labelled rows, and at "
            "least 5 are needed to know how it is scored (10 times as many to be of use): label "
            "more, join it with another class, or leave its rows out."
        )
    return np.concatenate(parts), together


def label_names(column: Any) -> NDArray[Any]:
    """Labels as texts without blanks around them; missing ones are empty."""
    values = names_of(column).to_pylist()
    return np.array(["" if v is None else v.strip() for v in values], dtype=str)


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


def _aligned(inputs: Inputs, classes: NDArray[Any], say: Say) -> tuple[Inputs, list[int]]:
    """Columns of scores in the order of the classes, told by their names where they tell."""
    columns = list(inputs.columns)
    names = [str(c) for c in classes]
    told = [_told(column, names) for column in columns]
    if len(columns) == 1 and len(classes) == 2:
        if told[0] == 0:
            raise InputError(
                f"{columns[0]!r} looks like the score of {names[0]!r}, and a single column must be "
                f"that of {names[1]!r}: give both columns, or turn it round (1 - p)."
            )
        say(Note("score of", subject=columns[0], names=(names[1],)))
        return inputs, [0, 1]
    if len(columns) != len(classes):
        raise InputError(
            f"{len(columns)} columns of scores for the {len(classes)} classes "
            f"{classes.tolist()[:10]}: one for each is needed."
        )
    if sorted(told) == list(range(len(columns))):
        order = [told.index(c) for c in range(len(columns))]
    elif max(told) >= 0:
        raise InputError(
            f"the columns {columns} tell some of the classes {names[:10]} but not all: name each "
            "after its class, such as p_yes."
        )
    else:
        order = list(range(len(columns)))
        pairs = tuple(f"{c} = {n}" for c, n in zip(columns, names, strict=True))
        say(Note("scores in order", names=pairs))
    return Inputs("scores", tuple(columns[j] for j in order)), order


def _told(column: str, names: list[str]) -> int:
    """Number of the class that the name of a column of scores ends with; -1 if none."""
    lower = column.lower()
    fits = [
        (len(name), c)
        for c, name in enumerate(names)
        if lower == name.lower()
        or (lower.endswith(name.lower()) and not lower[: -len(name)][-1:].isalnum())
    ]
    return max(fits)[1] if fits else -1
