"""Which column of scores belongs to which class, by the names of the columns and by the labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from headcount._core.types import Bools, Floats, Ints
from headcount.exceptions import InputError
from headcount.tables.inputs import Inputs
from headcount.tables.notes import Note, Notify


def orient(
    inputs: Inputs, scores: Floats, labels: NDArray[Any], notify: Notify
) -> tuple[Inputs, Floats]:
    """Columns of scores in the order of the classes, and the scores in that order."""
    classes, codes = np.unique(labels, return_inverse=True)
    names = [str(c) for c in classes]
    if len(inputs.columns) == 1 and len(names) == 2:
        inputs = _orient_single(inputs, scores[:, 1], codes == 1, names, notify)
        return inputs, inputs.pair(scores[:, 1])
    order = _order_of_columns(list(inputs.columns), scores, codes, names, notify)
    return Inputs("scores", tuple(inputs.columns[j] for j in order)), scores[:, order]


def _orient_single(
    inputs: Inputs, scores: Floats, is_second: Bools, names: list[str], notify: Notify
) -> Inputs:
    """One column of scores for two classes: it is of the class whose rows score higher."""
    column = inputs.columns[0]
    n, m = int(is_second.sum()), int((~is_second).sum())
    ranks = rankdata(scores)[is_second].sum()
    auc = (ranks - n * (n + 1) / 2) / (n * m)
    standard_error = np.sqrt((n + m + 1) / (12 * n * m))  # without a difference (Mann-Whitney)
    named = class_in_name(column, names)
    if abs(auc - 0.5) < 3 * standard_error:
        notify(Note("score of neither", subject=column))
        own = 1 if named < 0 else named
    else:
        own = int(auc > 0.5)
    if named >= 0 and named != own:
        notify(Note("score against name", subject=column, names=(names[own],)))
    notify(Note("score of", subject=column, names=(names[own],)))
    middle = _threshold(scores, is_second if own else ~is_second)
    return replace(inputs, flipped=own == 0, middle=middle)


def _threshold(scores: Floats, is_of: Bools) -> float:
    """Score from which a row counts as of the class: a half, or the best one on another scale."""
    if scores.min() >= 0 and scores.max() <= 1:
        return 0.5
    values, place = np.unique(scores, return_inverse=True)
    yes = np.bincount(place, is_of)
    no = np.bincount(place, ~is_of)
    # Wrong rows if the threshold lies below each value, or above the last.
    wrong = np.cumsum([0, *yes]) + no.sum() - np.cumsum([0, *no])
    edges = [values[0] - 1, *(values[1:] + values[:-1]) / 2, values[-1] + 1]
    return float(edges[int(np.argmin(wrong))])


def _order_of_columns(
    columns: list[str], scores: Floats, codes: Ints, names: list[str], notify: Notify
) -> list[int]:
    """Column of each class by its name, or else by the labels."""
    if len(columns) != len(names):
        raise InputError(
            f"{len(columns)} column{'s' * (len(columns) > 1)} of scores for the {len(names)} "
            f"classes {names[:10]}: one for each is needed."
        )
    by_labels = _order_by_labels(scores, codes)
    named = [class_in_name(column, names) for column in columns]
    if sorted(named) == list(range(len(columns))):
        order = [named.index(c) for c in range(len(columns))]
        if order != by_labels:
            odd = [names[c] for c in range(len(names)) if order[c] != by_labels[c]]
            notify(Note("scores against names", names=tuple(odd)))
        return order
    if max(named) >= 0:
        raise InputError(
            f"the columns {columns} tell some of the classes {names[:10]} but not all: name each "
            "after its class, such as p_yes."
        )
    pairs = tuple(f"'{columns[j]}' = {n}" for j, n in zip(by_labels, names, strict=True))
    notify(Note("scores by labels", names=pairs))
    return by_labels


def _order_by_labels(scores: Floats, codes: Ints) -> list[int]:
    """Column of each class such that rows score as high as possible in that of their class."""
    spread = scores.std(axis=0)
    standard = (scores - scores.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    means = np.array([standard[codes == c].mean(axis=0) for c in range(int(codes.max()) + 1)])
    order: list[int] = linear_sum_assignment(-np.nan_to_num(means))[1].tolist()
    return order


def class_in_name(column: str, names: list[str]) -> int:
    """Number of the class that the name of a column ends with; -1 if none."""
    lower = column.lower()
    fits = [
        (len(name), c)
        for c, name in enumerate(names)
        if lower == name.lower()
        or (lower.endswith(name.lower()) and not lower[: -len(name)][-1:].isalnum())
    ]
    return max(fits)[1] if fits else -1
