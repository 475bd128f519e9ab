"""Shares of groups with intervals, diagnoses and tests: the only module that calls `inference`.

Every function is a pure function of the model and of the accumulated scores of groups. All
uncertainty is that of joint draws (`headcount.inference.draws`): of large groups by simulation, of
small groups from the exact posterior of their items, and after shrinkage where the model knows
groups (`headcount.inference.random_effects`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from headcount._core.types import Bools, Floats, Ints
from headcount.inference.diagnosis import FIT_LEVEL, SMALL_BAG, Diagnosis
from headcount.inference.draws import Draws
from headcount.inference.goodness_of_fit import FitTest, diagnose_scores
from headcount.inference.intervals import Interval
from headcount.inference.random_effects import RandomEffects, fit_random_effects
from headcount.inference.sampling import DrawSettings
from headcount.inference.signal import has_signal
from headcount.inference.significance import holm
from headcount.inference.small_groups import SmallGroups
from headcount.scores.scorer import View, mix_views
from headcount.tables.accumulator import GroupScores, Part
from headcount.tables.model import FittedModel
from headcount.tables.result import Estimates, GroupRows, GroupShares
from headcount.tables.training import GroupInfo

__all__ = ["FIT_LEVEL", "SMALL_BAG", "Diagnosis", "Interval"]

INTERVAL_ARRAYS = ("prevalence", "low", "high", "variance")  # one row per group
DIAGNOSIS_ARRAYS = ("ids", "n", "fit", "strange", "drift", "off")  # one row per group
UNTESTED_FROM = 2000  # small groups; they are not tested then, since the test has no power for them


def estimate_groups(
    model: FittedModel, rows: GroupRows, level: float = 0.95, target: str = "bag"
) -> Estimates:
    """Shares of groups with intervals, shares by counting, and a diagnosis of each group."""
    assert rows.scores is not None
    info = model.groups_by(rows.by)
    parts, groups = [], []
    for part, sizes, drawn in draw_groups(model, rows.scores):
        names = [rows.names[g] for g in part.groups]
        counts = count_votes(part)
        diagnosis = _resized(info, _diagnose(model, part, sizes), names)
        for chosen, draws in _adjusted(info, drawn, diagnosis, names, target):
            # Values of small groups are needed for their intervals alone.
            interval, own = draws.interval(level), _taken(diagnosis, chosen)
            parts.append(Estimates(interval, counts[chosen], own, draws.smooth()))
            groups.append(part.groups[chosen])
    return join_estimates(parts, groups)


def draw_groups(model: FittedModel, scores: GroupScores) -> Iterator[tuple[Part, Ints, Draws]]:
    """Groups that are all small, or all large, with their effective sizes and draws."""
    quantifier, settings = model.quantifier, DrawSettings()
    exact, prior = _small_groups(model), None
    for part, sizes in _parts(scores):
        if exact is not None and _is_small(part, sizes):
            prior = prior or exact.learn_prior(
                p.mixed for p, n in _parts(scores) if _is_small(p, n)
            )
            yield part, sizes, exact.posterior(*part.mixed, prior)
            continue
        draws = quantifier.draw(part.folds, sizes, settings)
        if part.whole is not None:
            draws = draws.about(quantifier.estimate([part.whole]))
        yield part, sizes, draws


def join_estimates(parts: Sequence[Estimates], groups: Sequence[Ints]) -> Estimates:
    """Estimates of all groups in order, from parts with the numbers of their groups."""
    order = np.argsort(np.concatenate(groups))

    def joined(records: Sequence[Any], names: Sequence[str]) -> Any:
        arrays = {n: np.concatenate([getattr(r, n) for r in records])[order] for n in names}
        return replace(records[0], **arrays)

    diagnosis = joined([part.diagnosis for part in parts], DIAGNOSIS_ARRAYS)
    return Estimates(
        joined([part.interval for part in parts], INTERVAL_ARRAYS),
        np.concatenate([part.counted for part in parts])[order],
        replace(diagnosis, ids=np.arange(len(order))),
        Draws.concatenate([part.draws for part in parts]).take(order),
    )


def of_population(shares: GroupShares) -> GroupShares:
    """Shares in the populations that the rows of groups were drawn from."""
    if shares.target == "population":
        return shares
    info, known, rows = shares.model.groups_by(shares.by), shares.estimates, shares.rows
    if info is not None and rows.scores is not None:  # shrinkage depends on the target
        level = shares.interval.level
        estimates = estimate_groups(shares.model, rows, level, "population")
    else:
        draws = known.draws.population()
        estimates = replace(known, interval=draws.interval(shares.interval.level), draws=draws)
    return replace(shares, estimates=estimates, target="population")


def join_groups(shares: GroupShares, owner: Ints) -> Interval:
    """Shares of unions of groups, with intervals.

    `owner` is the number of the union that each group belongs to. The rows of a union are estimated
    together, as one group. Where groups are shrunken, draws of the groups are averaged.
    """
    return draw_unions(shares, owner).interval(shares.interval.level)


def draw_unions(shares: GroupShares, owner: Ints) -> Draws:
    """Draws of unions of groups."""
    scores, model = shares.rows.scores, shares.model
    if scores is None or model.groups_by(shares.by) is not None:
        return shares.estimates.draws.union(owner, shares.sizes.astype(float))
    union, sizes = scores.joined(owner)
    worth = np.round(sizes).astype(np.int64)
    draws: Draws = model.quantifier.draw(union.folds, worth, DrawSettings())
    if union.whole is not None:
        draws = draws.about(model.quantifier.estimate([union.whole]))
    part = shares.sizes / np.bincount(owner, shares.sizes)[owner]
    off = np.column_stack([np.bincount(owner, part * c) for c in shares.diagnosis.off.T])
    draws = draws.inflated(np.broadcast_to(off, draws.mean.shape))
    return draws.population() if shares.target == "population" else draws


def change_p_values(shares: GroupShares, weight: Floats) -> Floats:
    """P-values of each group's difference from a weighted mean of groups, after Holm's correction.

    Groups in the mean, whose `weight` is not 0, and groups of few rows have p-values of 1.
    """
    variance = shares.estimates.draws.changes(weight)[1]
    change = shares.interval.prevalence - weight @ shares.interval.prevalence
    return _corrected(change, variance, (weight == 0) & (shares.sizes >= SMALL_BAG))


def differ_from_first(shares: GroupShares, unions: Draws) -> Bools:
    """Which classes of unions of groups differ from the first union by more than chance."""
    first = np.eye(len(unions))[0]
    change, variance = unions.changes(first)
    p = _corrected(change, variance, np.arange(len(unions)) > 0)
    return np.asarray(p < 1 - shares.interval.level)


def try_groups(fitted: Any, views: Sequence[View]) -> Estimates:
    """Estimates of labelled groups by a quantifier that has not learnt from them."""
    bags = views[0][1]
    draws = fitted.draw(views, bags.sizes, DrawSettings(n_draws=120))
    mixed = mix_views([scores for scores, _ in views])
    diagnosis = diagnose_scores(fitted.scorer_, [(mixed, bags)])
    counted = bags.shares(mixed.argmax(axis=1), mixed.shape[1])
    return Estimates(draws.interval(), counted, diagnosis, draws)


def learn_group_errors(
    estimates: Estimates, truth: Floats, sizes: Ints
) -> tuple[RandomEffects, Floats]:
    """How groups vary and how far off a model is for them; estimates learnt from the others."""
    draws, poor_fit = estimates.draws, estimates.diagnosis.fit < FIT_LEVEL
    return fit_random_effects(draws.estimates, draws.variance, truth, sizes, poor_fit)


def count_votes(part: Part) -> Floats:
    """Shares by counting the best class of each row."""
    views = part.folds if part.whole is None else [part.whole]
    k = views[0][0].shape[1]
    return np.asarray(np.mean([b.shares(s.argmax(axis=1), k) for s, b in views], axis=0))


def _parts(scores: GroupScores) -> Iterator[tuple[Part, Ints]]:
    """Groups that are all small, or all large, with their effective numbers of rows."""
    sizes = np.maximum(1, np.round(scores.effective)).astype(np.int64)
    for part in scores.parts():
        small = sizes[part.groups] < SMALL_BAG
        for chosen in (np.flatnonzero(small), np.flatnonzero(~small)):
            if len(chosen):
                some = part if len(chosen) == len(small) else part.take(chosen)
                yield some, sizes[some.groups]


def _is_small(part: Part, sizes: Ints) -> bool:
    """Whether the exact posterior applies; weighted rows are repeated, and then it does not."""
    return bool(max(sizes.max(), part.mixed[1].sizes.max()) < SMALL_BAG)


def _small_groups(model: FittedModel) -> SmallGroups | None:
    """Posterior of small groups; None for methods that do not correct, and without signal."""
    quantifier, scorer = model.quantifier, model.scorer
    informative = quantifier.flat_ is None and has_signal(scorer.scores, scorer.codes)
    if not informative or not quantifier.method_tags().corrects:
        return None
    return SmallGroups(scorer, getattr(quantifier, "main_calibrator_", None))


def _diagnose(model: FittedModel, part: Part, sizes: Ints) -> Diagnosis:
    if sizes.max() < SMALL_BAG and len(sizes) > UNTESTED_FROM:
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


def _adjusted(
    info: GroupInfo | None, draws: Draws, diagnosis: Diagnosis, names: list[str], target: str
) -> Iterator[tuple[Ints, Draws]]:
    """Numbers of some groups, and draws that allow for misfits or for the model's errors."""
    if info is None:
        flagged = diagnosis.off.any(axis=1)
        for groups in filter(len, (np.flatnonzero(~flagged), np.flatnonzero(flagged))):
            some, off = draws.take(groups), diagnosis.off[groups]
            some = some.inflated(np.broadcast_to(off, some.mean.shape)) if off.any() else some
            yield groups, some.population() if target == "population" else some
        return
    poor_fit = np.asarray(diagnosis.fit < FIT_LEVEL)
    own = info.labelled_rows(names)
    has_rows = own.sum(axis=1) > 0
    for effects, chosen in ((info.known, has_rows), (info.new, ~has_rows)):
        groups = np.flatnonzero(chosen)
        if len(groups):
            some = draws.take(groups)
            yield groups, effects.shrink(some, poor_fit[groups], target, own[groups])


def _taken(diagnosis: Diagnosis, groups: Ints) -> Diagnosis:
    arrays: dict[str, Any] = {name: getattr(diagnosis, name)[groups] for name in DIAGNOSIS_ARRAYS}
    return replace(diagnosis, **arrays)


def _resized(info: GroupInfo | None, diagnosis: Diagnosis, names: list[str]) -> Diagnosis:
    """Flags with the size that they had on held-out groups."""
    if info is None:
        return diagnosis
    has_rows = info.labelled_rows(names).sum(axis=1, keepdims=True) > 0
    beyond = np.where(has_rows, info.known.excess_error[1], info.new.excess_error[1])
    flagged = (diagnosis.fit < FIT_LEVEL)[:, None]
    return replace(diagnosis, off=np.sqrt(beyond) * flagged)


def _corrected(change: Floats, variance: Floats, tested: Bools) -> Floats:
    """P-values after Holm's correction; of two classes one is tested."""
    p = np.asarray(2 * ndtr(-np.abs(change) / np.sqrt(np.maximum(variance, 1e-12))))
    corrected = np.ones_like(p)
    tests = p[tested] if p.shape[1] > 2 else p[tested, 1:]
    corrected[tested] = holm(tests.ravel()).reshape(tests.shape)
    return corrected
