"""Groups that differ from a reference by more than chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from headcount._core.frame import Frame
from headcount._core.types import Bools, Floats, Ints
from headcount.data.tables import as_names
from headcount.exceptions import InputError, choose
from headcount.inference.diagnostics import FEW
from headcount.inference.intervals import Interval
from headcount.inference.significance import holm
from headcount.tables.combine import add_up, average, parts_of, variance_of_change
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
    What the labelled rows leave open is the same for all groups and cancels where shares are the
    same; it counts as far as the shares differ. The luck of the rows counts as it would be if both
    had the same shares.
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
    shares = found.interval.prevalence
    weight = np.where(base, found.sizes, 0) / found.sizes[base].sum()
    middle = weight @ shares
    others = np.flatnonzero(~base)
    change = shares[others] - middle
    p = _p_values(change, _variance(found, weight)[others])
    p[~enough[others]] = 1.0  # not looked at
    full, k = _adjusted(p, enough[others]), shares.shape[1]
    return Frame(
        {
            "group": np.repeat(np.array(names, dtype=str)[others], k),
            "class": np.tile(as_names(found.interval.classes), len(others)),
            "share": shares[others].ravel(),
            "reference": np.tile(middle, len(others)),
            "change": change.ravel(),
            "p": full.ravel(),
            "changed": full.ravel() < 1 - found.interval.level,
            "flags": np.repeat(found.marks()[others], k),
        }
    )


def differ_from_first(found: Count, joined: Interval, owner: Ints) -> Bools:
    """Which classes of groups that were joined differ from the first of these."""
    model = found.model
    if model is None or not _shares_errors(found):
        return np.asarray((joined.low > joined.high[0]) | (joined.high < joined.low[0]))
    part = parts_of(found, owner)
    worth = 1 / np.bincount(owner, part**2 / found.worth)
    off = add_up(part[:, None] * found.diagnosis.off, owner)
    off = np.sqrt(off**2 + off[0] ** 2)
    variance = variance_of_change(model, joined, worth, joined.first(), float(worth[0]), off)
    p = _p_values(joined.prevalence - joined.prevalence[0], variance)
    looked = np.arange(len(p)) > 0
    return np.asarray(_adjusted(p, looked) < 1 - found.interval.level)


def _p_values(change: Floats, variance: Floats) -> Floats:
    return np.asarray(2 * ndtr(-np.abs(change) / np.sqrt(np.maximum(variance, 1e-12))))


def _shares_errors(found: Count) -> bool:
    """Whether groups have the labelled side's error in common, and that can be simulated."""
    model = found.model
    return model is not None and model.quantifier.flat_ is None and model.groups(found.by) is None


def _adjusted(p: Floats, looked: Bools) -> Floats:
    """P-values after Holm's correction; two classes are one look, small groups are none."""
    out = np.ones_like(p)
    looks = p[looked] if p.shape[1] > 2 else p[looked, 1:]
    out[looked] = holm(looks.ravel()).reshape(looks.shape)
    return out


def _variance(found: Count, weight: Floats) -> Floats:
    """Variance of each group's difference from a weighted mean of groups, by chance alone."""
    model = found.model
    if model is None or not _shares_errors(found):
        own = found.interval.variance  # of groups that err each in its own way
        return np.asarray(own + weight**2 @ own)
    base_worth = float(1 / (weight**2 @ (1 / found.worth)))
    off = np.sqrt(found.diagnosis.off**2 + weight**2 @ found.diagnosis.off**2)
    base = average(found, weight, np.zeros(len(weight), dtype=np.int64)).first()
    return variance_of_change(model, found.interval, found.worth, base, base_worth, off)
