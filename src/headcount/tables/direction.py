"""Which column of scores is of which class, by the names of the columns and by the labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from headcount._core.types import Bools, Floats
from headcount.exceptions import InputError
from headcount.tables.inputs import Inputs
from headcount.tables.labelled import Say
from headcount.tables.notes import Note

UNSURE = 3.0  # standard errors within which a score might be of either class


def turned(
    inputs: Inputs, scores: Floats, labels: NDArray[Any], classes: NDArray[Any], say: Say
) -> Inputs:
    """One column of scores for two classes: of the class whose rows score higher, which is said."""
    names = [str(c) for c in classes]
    column = inputs.columns[0]
    higher = labels == classes[1]
    n, m = int(higher.sum()), int((~higher).sum())
    ranks = rankdata(scores[:, 1])[higher].sum()
    area = (ranks - n * (n + 1) / 2) / (
        n * m
    )  # chance that a row of the second class scores higher
    unsure = UNSURE * np.sqrt((n + m + 1) / (12 * n * m))
    told = told_class(column, names)
    if abs(area - 0.5) < unsure:
        say(Note("score of neither", subject=column))
        of = 1 if told < 0 else told
    else:
        of = int(area > 0.5)
    if told >= 0 and told != of:
        say(Note("score against name", subject=column, names=(names[of],)))
    say(Note("score of", subject=column, names=(names[of],)))
    return replace(inputs, turned=of == 0, middle=_middle(scores[:, 1], labels == classes[of]))


def _middle(scores: Floats, is_of: Bools) -> float:
    """From which score on a row counts as of the class: a half, or where labels say of a scale."""
    if scores.min() >= 0 and scores.max() <= 1:
        return 0.5
    values, place = np.unique(scores, return_inverse=True)
    yes = np.bincount(place, is_of)
    no = np.bincount(place, ~is_of)
    # Wrong rows if the border lies below each value, or above the last.
    wrong = np.cumsum([0, *yes]) + no.sum() - np.cumsum([0, *no])
    at = int(np.argmin(wrong))
    edges = [values[0] - 1, *(values[1:] + values[:-1]) / 2, values[-1] + 1]
    return float(edges[at])


def aligned(
    inputs: Inputs, scores: Floats, labels: NDArray[Any], classes: NDArray[Any], say: Say
) -> tuple[Inputs, list[int]]:
    """Columns of scores in the order of the classes, told by their names, or else by the labels."""
    columns = list(inputs.columns)
    names = [str(c) for c in classes]
    told = [told_class(column, names) for column in columns]
    if len(columns) != len(classes):
        raise InputError(
            f"{len(columns)} column{'s' * (len(columns) > 1)} of scores for the {len(classes)} "
            f"classes {classes.tolist()[:10]}: one for each is needed."
        )
    by_labels = _order_by_labels(scores, labels, classes)
    if sorted(told) == list(range(len(columns))):
        order = [told.index(c) for c in range(len(columns))]
        if order != by_labels:
            odd = [names[c] for c in range(len(names)) if order[c] != by_labels[c]]
            say(Note("scores against names", names=tuple(odd)))
    elif max(told) >= 0:
        raise InputError(
            f"the columns {columns} tell some of the classes {names[:10]} but not all: name each "
            "after its class, such as p_yes."
        )
    else:
        order = by_labels
        pairs = tuple(f"'{columns[j]}' = {n}" for j, n in zip(order, names, strict=True))
        say(Note("scores by labels", names=pairs))
    return Inputs("scores", tuple(columns[j] for j in order)), order


def _order_by_labels(scores: Floats, labels: NDArray[Any], classes: NDArray[Any]) -> list[int]:
    """Column of each class such that rows of a class score as high as may be in their own."""
    spread = scores.std(axis=0)
    even = (scores - scores.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    means = np.array([even[labels == c].mean(axis=0) for c in classes])
    own: list[int] = linear_sum_assignment(-np.nan_to_num(means))[1].tolist()
    return own


def told_class(column: str, names: list[str]) -> int:
    """Number of the class that the name of a column of scores ends with; -1 if none."""
    lower = column.lower()
    fits = [
        (len(name), c)
        for c, name in enumerate(names)
        if lower == name.lower()
        or (lower.endswith(name.lower()) and not lower[: -len(name)][-1:].isalnum())
    ]
    return max(fits)[1] if fits else -1
