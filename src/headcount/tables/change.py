"""Groups that differ from a reference by more than chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from headcount._core.frame import Frame
from headcount.data.tables import as_names
from headcount.exceptions import InputError, choose
from headcount.inference.diagnostics import FEW
from headcount.inference.significance import holm
from headcount.tables.result import Count


def first_group(found: Count) -> str:
    """First group that is large enough to compare others with."""
    for name, n in zip(found.groups, found.sizes, strict=True):
        if n >= FEW:
            return name
    raise InputError(f"no group has {FEW} rows: there is nothing to compare with.")


def reference_groups(text: str, groups: Sequence[str]) -> list[str]:
    """Names of groups from ``a,b`` or ``first..last``."""
    if ".." in text and text not in groups:
        first, last = (part.strip() for part in text.split("..", 1))
        for name in (first, last):
            choose("group", name, groups)
        a, b = groups.index(first), groups.index(last)
        return list(groups[min(a, b) : max(a, b) + 1])
    return [text] if text in groups else [part.strip() for part in text.split(",")]


def changes(found: Count, reference: Sequence[str] | None = None) -> Frame:
    """Groups whose shares differ from a reference by more than chance.

    Parameters
    ----------
    found : Count
    reference : names of groups, optional
        The first group of at least 30 rows by default. Several are averaged, weighing by rows.

    Returns
    -------
    Frame
        A row for every other group and class: share, reference share, change, p-value corrected
        for the number of looks (Holm), and whether it changed at the level of the intervals.
        Groups of fewer than 30 rows are never said to have changed.

    Notes
    -----
    Errors of the labelled side are shared by all groups and partly cancel in a difference; they
    are counted in full, so that the test is rather too careful.
    """
    found = found.of_population  # the question is whether the world has changed
    names = found.groups
    enough = found.sizes >= FEW
    chosen = [first_group(found)] if reference is None else list(reference)
    for name in chosen:
        choose("group", name, names)
    base = np.isin(names, chosen)
    if base.all():
        raise InputError("all groups are in the reference: there is nothing to compare with it.")
    shares, variance = found.interval.prevalence, found.interval.variance
    weight = found.sizes[base] / found.sizes[base].sum()
    middle = weight @ shares[base]
    spread = (weight @ np.sqrt(variance[base])) ** 2
    others = np.flatnonzero(~base)
    change = shares[others] - middle
    p = 2 * ndtr(-np.abs(change) / np.sqrt(variance[others] + spread))
    looks = p.ravel() if len(found.interval.classes) > 2 else p[:, 1]
    adjusted = holm(looks)
    full = adjusted.reshape(p.shape) if p.shape[1] > 2 else np.column_stack([adjusted, adjusted])
    k = shares.shape[1]
    return Frame(
        {
            "group": np.repeat(np.array(names, dtype=str)[others], k),
            "class": np.tile(as_names(found.interval.classes), len(others)),
            "share": shares[others].ravel(),
            "reference": np.tile(middle, len(others)),
            "change": change.ravel(),
            "p": full.ravel(),
            "changed": (full.ravel() < 1 - found.interval.level) & np.repeat(enough[others], k),
            "flags": np.repeat(found.marks()[others], k),
        }
    )
