"""Shares with bounds, and what to know about them, for the groups of a heap that was read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headcount._core.types import Floats, Ints
from headcount.inference.blind import tells_apart
from headcount.inference.diagnostics import FEW, Diagnosis, FitTest, diagnose_scores
from headcount.inference.intervals import Interval
from headcount.inference.small import SmallGroups
from headcount.inference.spread import Request
from headcount.tables.grouped import Groups
from headcount.tables.kept import Kept, Part
from headcount.tables.model import Model

MANY = 2000  # small groups that are not tested one by one: of few rows a test sees little


def adjust(
    interval: Interval,
    diagnosis: Diagnosis,
    groups: Groups | None,
    names: Sequence[str],
    sizes: Ints,
    target: str,
) -> Interval:
    """Intervals that allow for what the diagnosis found, or for how far off held-out groups were.

    With labelled groups, the labelled rows of a group and the model's answer are averaged.
    """
    if groups is None:
        return interval.loosened(diagnosis.off)
    return groups.pool(interval, diagnosis, list(names), sizes, target)


def bound_groups(kept: Kept, order: Sequence[int], request: Request) -> tuple[Interval, Floats]:
    """Estimates with bounds, and shares by plain counting, of groups in this order."""
    numbers, intervals, counted = [], [], []
    for part, sizes in _parts(kept):
        numbers.append(part.groups)
        intervals.append(bound_part(kept.model, part, sizes, request))
        counted.append(_counted(part))
    place = _places(numbers, order)
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(i, name) for i in intervals])[place]
        for name in ("prevalence", "low", "high", "variance")
    }
    return replace(intervals[0], **joined), np.concatenate(counted)[place]


def bound_together(kept: Kept, order: Sequence[int], owner: Ints, request: Request) -> Interval:
    """Estimates with bounds of groups that are joined; `owner` says into which, in this order."""
    place = np.empty(len(order), dtype=np.int64)
    place[np.asarray(order)] = owner
    part, sizes = kept.together(place)
    return bound_part(kept.model, part, np.round(sizes).astype(np.int64), request)


def diagnose_groups(kept: Kept, order: Sequence[int]) -> Diagnosis:
    """What to know about the estimates of groups in this order."""
    numbers, found = [], []
    for part, sizes in _parts(kept):
        numbers.append(part.groups)
        found.append(_diagnose(kept.model, part, sizes))
    place = _places(numbers, order)
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(d, name) for d in found])[place]
        for name in ("n", "fit", "strange", "drift", "off")
    }
    return replace(found[0], ids=np.arange(len(place)), **joined)


def _diagnose(model: Model, part: Part, sizes: Ints) -> Diagnosis:
    if sizes.max() < FEW and len(sizes) > MANY:
        model_only = diagnose_scores(model.scorer, [part.take(np.arange(1)).mixed], sizes[:1])
        unknown = np.full(len(sizes), np.nan)
        nothing = np.zeros((len(sizes), model_only.off.shape[1]))
        more: dict[str, Any] = {"ids": part.groups, "n": sizes, "fit": unknown, "drift": unknown}
        return replace(model_only, strange=np.zeros(len(sizes)), off=nothing, **more)
    seen = diagnose_scores(model.scorer, [part.mixed], sizes)
    return replace(seen, drift=_drift(model, part, sizes))


def _parts(kept: Kept) -> Iterator[tuple[Part, Ints]]:
    """Groups that are all small, or all not, with the number of rows that they are worth."""
    sizes = np.maximum(1, np.round(kept.effective())).astype(np.int64)
    for part in kept.parts():
        few = sizes[part.groups] < FEW
        for chosen in (np.flatnonzero(few), np.flatnonzero(~few)):
            if len(chosen):
                some = part if len(chosen) == len(few) else part.take(chosen)
                yield some, sizes[some.groups]


def _places(numbers: list[Ints], order: Sequence[int]) -> Ints:
    """Where the groups of an order are in what came part by part."""
    every = np.concatenate(numbers)
    place = np.empty(len(every), dtype=np.int64)
    place[every] = np.arange(len(every))
    return np.asarray(place[np.asarray(order)])


def bound_part(model: Model, part: Part, sizes: Ints, request: Request) -> Interval:
    """Estimates with bounds of groups that are all small, or all not."""
    quantifier = model.quantifier
    exact = sizes.max() < FEW and part.mixed[1].sizes.max() < FEW  # weighted rows stand for many
    tells = quantifier.flat_ is None and tells_apart(model.scorer.scores, model.scorer.codes)
    if exact and tells and quantifier.method_tags().corrects:
        return _small(model).bound(*part.mixed, request)
    of_rows = replace(request, target="bag", tried=not model.factors)
    found: Interval = quantifier.bound(part.folds, sizes, of_rows).widened(model.widening(sizes))
    if part.whole is not None:
        found = found.around(quantifier.estimate([part.whole]))
    if request.target == "bag" or quantifier.flat_ is not None:
        return found
    # The luck of which rows there are is known, and not widened.
    n = sizes[:, None]
    smooth = (n * found.prevalence + 0.5) / (n + 1)
    return found.loosened(np.sqrt(smooth * (1 - smooth) / n))


def _small(model: Model) -> SmallGroups:
    """Made once for a model."""
    found: SmallGroups | None = model.cache.get("small")
    if found is None:
        calibrator = getattr(model.quantifier, "main_calibrator_", None)
        found = model.cache["small"] = SmallGroups(model.scorer, calibrator)
    return found


def _counted(part: Part) -> Floats:
    views = part.folds if part.whole is None else [part.whole]
    k = views[0][0].shape[1]
    return np.asarray(np.mean([b.shares(s.argmax(axis=1), k) for s, b in views], axis=0))


def _drift(model: Model, part: Part, sizes: Ints) -> Floats:
    look = model.channels
    if look is None:
        return np.full(len(sizes), np.nan)
    return FitTest(look.cells_, look.widths, look.codes_).p_values(part.looks, sizes)
