"""Groups that differ from a reference by more than chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headcount._core.frame import Frame
from headcount.data.tables import as_names
from headcount.exceptions import InputError, choose
from headcount.tables.estimation import SMALL_BAG, change_p_values, of_population
from headcount.tables.result import GroupShares


def first_group(shares: GroupShares) -> str:
    """First group that is large enough to compare others with."""
    for name, n in zip(shares.groups, shares.sizes, strict=True):
        if n >= SMALL_BAG:
            return name
    raise InputError(f"no group has {SMALL_BAG} rows: there is nothing to compare with.")


def reference_groups(text: str, groups: Sequence[str]) -> list[str]:
    """Names of groups from ``a,b`` or ``first..last``."""
    if ".." in text and text not in groups:
        first, last = (part.strip() for part in text.split("..", 1))
        for name in (first, last):
            choose("group", name, groups)
        a, b = groups.index(first), groups.index(last)
        return list(groups[min(a, b) : max(a, b) + 1])
    return [text] if text in groups else [part.strip() for part in text.split(",")]


def changes(shares: GroupShares, reference: str | Sequence[str] | None = None) -> Frame:
    """Groups whose shares differ from a reference by more than chance.

    Parameters
    ----------
    shares : of groups
    reference : names of groups, or one text such as ``a,b`` or ``first..last``, optional
        The first group of at least 30 rows by default. Several are averaged, weighted by rows.

    Returns
    -------
    Frame
        One row per other group and class: share, reference share, change, p-value corrected for
        multiple testing (Holm), and whether it changed at the level of the intervals. Groups of
        fewer than 30 rows are not tested.

    Notes
    -----
    The error due to the labelled sample is the same for all groups: it cancels where shares are
    equal, and counts as far as they differ.
    """
    shares, names = of_population(shares), shares.groups  # rows stand for their time or place
    if reference is None:
        reference = [first_group(shares)]
    chosen = reference_groups(reference, names) if isinstance(reference, str) else list(reference)
    for name in chosen:
        choose("group", name, names)
    base = np.isin(names, chosen)
    if base.all():
        raise InputError("all groups are in the reference: there is nothing to compare with it.")
    weight = np.where(base, shares.sizes, 0) / shares.sizes[base].sum()
    share, others = shares.interval.prevalence, np.flatnonzero(~base)
    middle = weight @ share
    p = change_p_values(shares, weight)[others]
    k = share.shape[1]
    return Frame(
        {
            "group": np.repeat(np.array(names, dtype=str)[others], k),
            "class": np.tile(as_names(shares.interval.classes), len(others)),
            "share": share[others].ravel(),
            "reference": np.tile(middle, len(others)),
            "change": (share[others] - middle).ravel(),
            "p": p.ravel(),
            "changed": p.ravel() < 1 - shares.interval.level,
            "flags": np.repeat(shares.marks()[others], k),
        }
    )
