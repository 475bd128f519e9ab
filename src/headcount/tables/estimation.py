"""Shares of groups with intervals, diagnoses and tests: the only module that calls `inference`.

Every function is a pure function of the model and of the accumulated scores of groups.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from scipy.special import ndtr

from headcount._core.types import Bools, Floats, Ints
from headcount.inference.blind import tells_apart
from headcount.inference.bounds import bounds
from headcount.inference.check import SECONDS, Check, widen_by
from headcount.inference.check import check_intervals as check_coverage
from headcount.inference.diagnostics import FEW as SMALL_GROUP
from headcount.inference.diagnostics import LEVEL as MISFIT_LEVEL
from headcount.inference.diagnostics import Diagnosis, FitTest, diagnose_scores
from headcount.inference.intervals import Interval
from headcount.inference.pooling import Pooling, learn_pooling
from headcount.inference.shared import SharedError, learn_shared, luck_of
from headcount.inference.significance import holm
from headcount.inference.simulation import make_simulator
from headcount.inference.small import SmallGroups
from headcount.inference.spread import Request
from headcount.inference.unseen import Unseen, halfway, learn_unseen
from headcount.scores.scorer import View, mix_views
from headcount.tables.accumulator import GroupScores, Part
from headcount.tables.model import FittedModel
from headcount.tables.result import Estimates, GroupRows, GroupShares
from headcount.tables.training import GroupInfo

__all__ = ["MISFIT_LEVEL", "SMALL_GROUP", "Diagnosis", "Interval"]

Record = TypeVar("Record", Interval, Diagnosis)
GROUP_ARRAYS = {  # arrays with a row for each group
    Interval: ("prevalence", "low", "high", "variance"),
    Diagnosis: ("ids", "n", "fit", "strange", "drift", "off"),
}


def estimate_groups(
    model: FittedModel,
    rows: GroupRows,
    level: float = 0.95,
    target: str = "bag",
    known: Estimates | None = None,
) -> Estimates:
    """Shares of groups with intervals, shares by counting, and a diagnosis of each group.

    Parameters
    ----------
    target : {'bag', 'population'}
        Shares among these very rows, or in the population that they were drawn from.
    known : estimates of the same groups with another target, whose diagnosis is used
    """
    assert rows.scores is not None
    request, info = Request(level=level, target=target), model.groups_by(rows.by)
    parts, groups = [], []
    for part, sizes in _parts(rows.scores):
        chosen = _taken([known.diagnosis], part.groups) if known else None
        diagnosis = chosen or _diagnose(model, part, sizes)
        interval = bound_part(model, part, sizes, request)
        parts.append(Estimates(interval, _count_votes(part), diagnosis))
        groups.append(part.groups)
    estimates = concatenate(parts, groups)
    diagnosis = known.diagnosis if known else _resized(info, estimates.diagnosis, rows.names)
    interval = _adjust(info, estimates.interval, diagnosis, rows, target)
    return replace(estimates, interval=interval, diagnosis=diagnosis)


def concatenate(parts: Sequence[Estimates], groups: Sequence[Ints]) -> Estimates:
    """Estimates of all groups in order, from parts with the numbers of their groups."""
    order = np.argsort(np.concatenate(groups))
    interval = _taken([part.interval for part in parts], order)
    diagnosis = _taken([part.diagnosis for part in parts], order)
    counted = np.concatenate([part.counted for part in parts])[order]
    return Estimates(interval, counted, replace(diagnosis, ids=np.arange(len(order))))


def of_population(shares: GroupShares) -> GroupShares:
    """Shares in the populations that the rows of groups were drawn from."""
    if shares.target == "population" or shares.rows.scores is None:
        return shares
    level, known = shares.interval.level, shares.estimates
    estimates = estimate_groups(shares.model, shares.rows, level, "population", known)
    return replace(shares, estimates=estimates, target="population")


def join_groups(shares: GroupShares, owner: Ints) -> Interval:
    """Shares of unions of groups, with intervals.

    The rows of a union are estimated together, as one group: an average of estimates of small
    groups, which are shrunken, would be shrunken as much.

    Parameters
    ----------
    owner : for each group, the number of the union that it belongs to
    """
    part, scores = _part_of_union(shares, owner), shares.rows.scores
    if scores is None or shares.model.groups_by(shares.by) is not None:
        return average_groups(shares, part, owner)
    union, sizes = scores.joined(owner)
    request = Request(level=shares.interval.level, target=shares.target)
    interval = bound_part(shares.model, union, np.round(sizes).astype(np.int64), request)
    return interval.loosened(_sums(part[:, None] * shares.diagnosis.off, owner))


def average_groups(shares: GroupShares, weight: Floats, owner: Ints) -> Interval:
    """Weighted averages of the shares of groups, with intervals.

    The sampling variance of groups averages out; the error due to the labelled sample does not,
    and neither does a misfit, which groups may share.

    Parameters
    ----------
    weight : of each group in its average
    owner : for each group, the number of the average that it belongs to
    """
    model, interval, column = shares.model, shares.interval, weight[:, None]
    mean = _sums(column * interval.prevalence, owner)
    if model.quantifier.flat_ is not None:  # all of the error may be shared
        variance = _sums(column * np.sqrt(interval.variance), owner) ** 2
    else:
        wider = _widening(model, shares.rows.worth)[:, None] ** 2
        shared, own = _shared_error(model.quantifier), interval.variance
        if model.groups_by(shares.by) is None:
            own = np.maximum(own - shared.variance(interval.prevalence) * wider, 0.0)
        variance = _sums(column**2 * own, owner)
        variance += shared.variance(mean) * _sums(column * wider, owner)
    variance = variance + _sums(column * shares.diagnosis.off, owner) ** 2
    low, high = bounds(mean, variance, interval.level)
    low, high = np.minimum(low, mean), np.maximum(high, mean)
    return Interval(interval.classes, mean, low, high, variance, interval.level)


def change_p_values(shares: GroupShares, weight: Floats) -> Floats:
    """P-values of each group's difference from a weighted mean of groups, after Holm's correction.

    Groups in the mean and groups of few rows are not tested: their p-values are 1.

    Parameters
    ----------
    weight : of each group in the mean, 0 for the others
    """
    interval, off, worth = shares.interval, shares.diagnosis.off, shares.rows.worth
    if _has_shared_error(shares):
        base_worth = float(1 / (weight**2 @ (1 / worth)))
        base = average_groups(shares, weight, np.zeros(len(weight), dtype=np.int64)).first()
        off = np.sqrt(off**2 + weight**2 @ off**2)
        variance = _variance_of_change(shares.model, interval, worth, base, base_worth, off)
    else:  # groups whose errors are independent
        variance = interval.variance + weight**2 @ interval.variance
    change = interval.prevalence - weight @ interval.prevalence
    return _corrected(change, variance, (weight == 0) & (shares.sizes >= SMALL_GROUP))


def differ_from_first(shares: GroupShares, union: Interval, owner: Ints) -> Bools:
    """Which classes of unions of groups differ from the first union by more than chance."""
    if not _has_shared_error(shares):
        return np.asarray((union.low > union.high[0]) | (union.high < union.low[0]))
    part = _part_of_union(shares, owner)
    worth = 1 / np.bincount(owner, part**2 / shares.rows.worth)
    off = _sums(part[:, None] * shares.diagnosis.off, owner)
    off = np.sqrt(off**2 + off[0] ** 2)
    base_worth = float(worth[0])
    variance = _variance_of_change(shares.model, union, worth, union.first(), base_worth, off)
    change = union.prevalence - union.prevalence[0]
    p = _corrected(change, variance, np.arange(len(worth)) > 0)
    return np.asarray(p < 1 - union.level)


def check_intervals(quantifier: Any, draw_shares: Any, seconds: float = np.inf) -> Check:
    """Empirical coverage of the intervals on held-out rows, and by how much they are widened.

    Parameters
    ----------
    draw_shares : function of a number of bags and a generator that returns their shares
    seconds : of processor time, at most
    """
    return check_coverage(quantifier, draw_shares, seconds=min(seconds, SECONDS))


def try_groups(fitted: Any, views: Sequence[View]) -> Estimates:
    """Estimates of labelled groups by a quantifier that has not learnt from them."""
    bags = views[0][1]
    request = Request(n_draws=120, doubt=False, tried=False)
    interval = fitted.bound(views, bags.sizes, request)
    mixed = mix_views([scores for scores, _ in views])
    diagnosis = diagnose_scores(fitted.scorer_, [(mixed, bags)])
    counted = bags.shares(mixed.argmax(axis=1), mixed.shape[1])
    return Estimates(interval, counted, diagnosis)


def learn_group_errors(
    known: Estimates, new: Estimates, truth: Floats, sizes: Ints, factors: Sequence[float]
) -> tuple[Pooling, Unseen, Floats]:
    """How far off a model is for groups with labelled rows, and for groups that it has not seen.

    Parameters
    ----------
    known, new : estimates with and without other rows of the same groups in training
    truth, sizes : true shares and labelled rows of the groups
    factors : by how much the intervals of the model are widened

    Returns
    -------
    Pooling, Unseen
    array
        Estimate of each group that is learnt from the others.
    """
    flagged = [estimates.diagnosis.fit < MISFIT_LEVEL for estimates in (known, new)]
    seen, wide = known.interval, new.interval
    pooling = learn_pooling(seen.prevalence, seen.variance, truth, sizes, flagged[0])
    if factors:
        wide = wide.widened(widen_by(tuple(factors), sizes))
    return pooling, *learn_unseen(halfway(wide), wide.variance, truth, sizes, flagged[1])


def _parts(scores: GroupScores) -> Iterator[tuple[Part, Ints]]:
    """Groups that are all small, or all large, with their effective numbers of rows."""
    sizes = np.maximum(1, np.round(scores.effective)).astype(np.int64)
    for part in scores.parts():
        small = sizes[part.groups] < SMALL_GROUP
        for chosen in (np.flatnonzero(small), np.flatnonzero(~small)):
            if len(chosen):
                some = part if len(chosen) == len(small) else part.take(chosen)
                yield some, sizes[some.groups]


def _taken(records: Sequence[Record], chosen: Ints) -> Record:
    """One record of several, with some of the groups."""
    arrays: Any = {
        name: np.concatenate([getattr(record, name) for record in records])[chosen]
        for name in GROUP_ARRAYS[type(records[0])]
    }
    return replace(records[0], **arrays)


def bound_part(model: FittedModel, part: Part, sizes: Ints, request: Request) -> Interval:
    """Shares with intervals of groups that are all small, or all large."""
    quantifier = model.quantifier
    exact = max(sizes.max(), part.mixed[1].sizes.max()) < SMALL_GROUP  # weighted rows are repeated
    informative = quantifier.flat_ is None and tells_apart(model.scorer.scores, model.scorer.codes)
    if exact and informative and quantifier.method_tags().corrects:
        return _small_groups(quantifier).bound(*part.mixed, request)
    factors = None if model.training.quality is None else model.training.quality.factors
    of_rows = replace(request, target="bag", tried=not factors)
    interval: Interval = quantifier.bound(part.folds, sizes, of_rows)
    interval = interval.widened(_widening(model, sizes))
    if part.whole is not None:
        interval = interval.around(quantifier.estimate([part.whole]))
    if request.target == "bag" or quantifier.flat_ is not None:
        return interval
    # The sampling variance of the rows is known, and not widened.
    n = sizes[:, None]
    smooth = (n * interval.prevalence + 0.5) / (n + 1)
    return interval.loosened(np.sqrt(smooth * (1 - smooth) / n))


def _count_votes(part: Part) -> Floats:
    """Shares by counting the best class of each row."""
    views = part.folds if part.whole is None else [part.whole]
    k = views[0][0].shape[1]
    return np.asarray(np.mean([b.shares(s.argmax(axis=1), k) for s, b in views], axis=0))


def _diagnose(model: FittedModel, part: Part, sizes: Ints) -> Diagnosis:
    many = 2000  # small groups are not tested one by one: the test has no power for few rows
    if sizes.max() < SMALL_GROUP and len(sizes) > many:
        first = diagnose_scores(model.scorer, [part.take(np.arange(1)).mixed], sizes[:1])
        unknown = np.full(len(sizes), np.nan)
        none = np.zeros((len(sizes), first.off.shape[1]))
        tests: dict[str, Any] = {"ids": part.groups, "n": sizes, "fit": unknown, "drift": unknown}
        return replace(first, strange=np.zeros(len(sizes)), off=none, **tests)
    diagnosis = diagnose_scores(model.scorer, [part.mixed], sizes)
    if model.bins is None:
        return replace(diagnosis, drift=np.full(len(sizes), np.nan))
    test = FitTest(model.bins.bins_, model.bins.widths, model.bins.codes_)
    return replace(diagnosis, drift=test.p_values(part.bins, sizes))


def _adjust(
    info: GroupInfo | None, interval: Interval, diagnosis: Diagnosis, rows: GroupRows, target: str
) -> Interval:
    """Intervals that allow for misfits, or for the errors of the model for groups."""
    if info is None:
        return interval.loosened(diagnosis.off)
    flagged = np.asarray(diagnosis.fit < MISFIT_LEVEL)
    own = info.labelled_rows(rows.names)
    known = info.known.pool(interval, flagged, own, rows.sizes, target)
    new = info.new.bound(interval, flagged, rows.sizes, target)
    has_rows = own.sum(axis=1, keepdims=True) > 0
    arrays: Any = {
        name: np.where(has_rows, getattr(known, name), getattr(new, name))
        for name in GROUP_ARRAYS[Interval]
    }
    return replace(interval, **arrays)


def _resized(info: GroupInfo | None, diagnosis: Diagnosis, names: list[str]) -> Diagnosis:
    """Flags with the size that they had on held-out groups."""
    if info is None:
        return diagnosis
    has_rows = info.labelled_rows(names).sum(axis=1, keepdims=True) > 0
    beyond = np.where(has_rows, info.known.beyond[1], info.new.beyond[1])
    flagged = (diagnosis.fit < MISFIT_LEVEL)[:, None]
    return replace(diagnosis, off=np.sqrt(beyond) * flagged)


def _part_of_union(shares: GroupShares, owner: Ints) -> Floats:
    """Part of the rows of a union that each group has."""
    return np.asarray(shares.sizes / np.bincount(owner, shares.sizes)[owner])


def _sums(values: Floats, owner: Ints) -> Floats:
    """Sums of rows of values for each owner."""
    return np.column_stack([np.bincount(owner, column) for column in values.T])


def _has_shared_error(shares: GroupShares) -> bool:
    """Whether groups share the error due to the labelled sample, and it can be simulated."""
    model = shares.model
    return model.quantifier.flat_ is None and model.groups_by(shares.by) is None


def _variance_of_change(
    model: FittedModel, interval: Interval, worth: Floats, base: Interval, base_worth: float,
    off: Floats,
) -> Floats:  # fmt: skip
    """Variance of the difference of groups from a base, under the hypothesis of equal shares.

    The error due to the labelled sample cancels for equal shares and counts as far as they differ.
    Shares are the midpoints of intervals: an estimate of 0 would seem to have no variance.
    """
    n, wider = worth[:, None], _widening(model, worth)[:, None] ** 2
    base_wider = _widening(model, np.array([base_worth])) ** 2
    total = n + base_worth
    both = (n * interval.middle + base_worth * base.middle) / total
    smooth = (total * both + 0.5) / (total + 1)
    multinomial = smooth * (1 - smooth)  # of true labels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about simulated bags
        simulated = luck_of(make_simulator(model.quantifier), both, int(np.median(worth)))
    # Estimates that hardly vary are not more certain than a fifth of the true labels' variance.
    sampling = np.maximum(simulated, 0.2 * multinomial)
    # Widening concerns the estimates, not the sampling of rows.
    more = np.maximum(sampling - multinomial, 0.0) * (
        (wider - 1) / n + (base_wider - 1) / base_worth
    )
    difference = interval.prevalence - base.prevalence
    shared = _shared_error(model.quantifier).variance(difference) * wider
    return np.asarray(sampling * (1 / n + 1 / base_worth) + more + shared + off**2)


def _corrected(change: Floats, variance: Floats, tested: Bools) -> Floats:
    """P-values after Holm's correction; of two classes one is tested."""
    p = np.asarray(2 * ndtr(-np.abs(change) / np.sqrt(np.maximum(variance, 1e-12))))
    corrected = np.ones_like(p)
    tests = p[tested] if p.shape[1] > 2 else p[tested, 1:]
    corrected[tested] = holm(tests.ravel()).reshape(tests.shape)
    return corrected


def _widening(model: FittedModel, sizes: Ints | Floats) -> Floats:
    """By how much the intervals of groups of these sizes are widened."""
    quality = model.training.quality
    return widen_by((quality.factors if quality else ()) or (1.0, 1.0), sizes)


@lru_cache(maxsize=2)
def _small_groups(quantifier: Any) -> SmallGroups:
    return SmallGroups(quantifier.scorer_, getattr(quantifier, "main_calibrator_", None))


@lru_cache(maxsize=2)
def _shared_error(quantifier: Any) -> SharedError:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about simulated bags
        return learn_shared(make_simulator(quantifier))
