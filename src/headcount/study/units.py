"""Units of work: each is a pure function of plain inputs, small enough to lose, and has an id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from headcount import __version__
from headcount._core.attempt import attempt
from headcount._core.frame import Frame
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.evaluation import aligned_truth, score_estimates
from headcount.measures import measure
from headcount.methods.base import Quantifier, without_calibration
from headcount.methods.sharing import SharedPasses, pass_groups
from headcount.selection.search import configured, setting_text
from headcount.study.study import Study, digest, plain

COLUMNS = ["dataset", "seed", "number", "method", "setting", "measure", "error", "failure"]


@dataclass(frozen=True, eq=False)
class Trial:
    """One setting of a method; `labels` are the measures it stands for (see `Study.labels`)."""

    method: int
    setting: int
    name: str
    quantifier: Quantifier
    labels: tuple[str, ...]
    intervals: bool = False
    groups: bool = False


@dataclass(frozen=True, eq=False)
class Unit:
    """Trials of one data set and seed that share a classifier pass."""

    stage: str  # select or test
    dataset: Any
    seed: int
    protocol: Any
    measures: tuple[str, ...]
    trials: tuple[Trial, ...]

    def id(self, fingerprint: str) -> str:
        """Name of the unit's file: a hash of all that decides its outcome."""
        return digest(
            {
                "version": __version__,
                "stage": self.stage,
                "dataset": self.dataset.name,
                "data": fingerprint,
                "seed": self.seed,
                "protocol": plain(self.protocol),
                "measures": list(self.measures),
                "trials": [
                    [t.method, t.setting, t.name, plain(t.quantifier), list(t.labels)]
                    + [name for name in ("intervals", "groups") if getattr(t, name)]
                    for t in self.trials
                ],
            }
        )[:32]


def select_units(study: Study) -> list[Unit]:
    """Units that score all settings of the methods with a grid on validation bags."""
    trials = [
        trial
        for m, method in enumerate(study.methods)
        if method.grid
        for trial in _trials(study, m)
    ]
    return _units(study, "select", dict.fromkeys(_places(study), trials))


def final_units(study: Study, scores: Frame | None) -> tuple[list[Unit], Frame | None]:
    """Units that estimate the test bags with every winner; and the table of the search."""
    fixed = [m for m, method in enumerate(study.methods) if not method.grid]
    chosen = {place: [t for m in fixed for t in _trials(study, m)] for place in _places(study)}
    if scores is None:
        return _units(study, "test", chosen), None
    ranks = np.zeros(scores.n_rows, dtype=np.int64)
    for m, method in enumerate(study.methods):
        if not method.grid:
            continue
        trials = _trials(study, m)
        for place in chosen:
            best: dict[int, list[str]] = {}
            for label in study.labels(method):
                rows = _rows(scores, place, m, label)
                errors = np.abs(scores["error"][rows])
                order = np.where(np.isfinite(errors), errors, np.inf)
                ranks[rows] = np.argsort(np.argsort(order, kind="stable"), kind="stable") + 1
                if np.isfinite(order).any():
                    winner = int(scores["setting"][rows[int(np.argmin(order))]])
                    best.setdefault(winner, []).append(label)
            chosen[place] += [replace(trials[i], labels=tuple(v)) for i, v in sorted(best.items())]
    for found in chosen.values():
        found.sort(key=lambda t: (t.method, t.setting))
    texts = [[setting_text(s) for s in method.settings()] for method in study.methods]
    words = [texts[m][s] for m, s in zip(scores["number"], scores["setting"], strict=True)]
    table = Frame({**scores.to_dict(), "parameters": words, "rank": ranks})
    return _units(study, "test", chosen), table


def _places(study: Study) -> list[tuple[str, int]]:
    """Every data set with every seed."""
    return [(data.name, seed) for data in study.datasets for seed in study.seeds]


def _rows(scores: Frame, place: tuple[str, int], m: int, label: str) -> Ints:
    """Rows of one method's settings on one data set and seed, by one measure."""
    mine = (scores["dataset"] == place[0]) & (scores["seed"] == place[1])
    return np.flatnonzero(mine & (scores["number"] == m) & (scores["measure"] == label))


def select_settings(unit: Unit) -> Frame:
    """Errors of the unit's settings on validation bags."""
    train, pool, bags = unit.dataset.selection_data(unit.protocol, unit.seed)
    shared = SharedPasses([t.quantifier for t in unit.trials], *train)
    rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for trial in unit.trials:
        found, failure = attempt(partial(_mean_errors, trial, shared, pool, bags), (Exception,))
        errors = found or dict.fromkeys(trial.labels, np.nan)
        for label, value in errors.items():
            row = [unit.dataset.name, unit.seed, trial.method, trial.name, trial.setting, label]
            for name, cell in zip(rows, [*row, value, failure], strict=True):
                rows[name].append(cell)
    return Frame(rows)


def _mean_errors(trial: Trial, shared: SharedPasses, pool: Any, bags: Bags) -> dict[str, float]:
    """Mean errors of one setting, by each of the measures it stands for."""
    fitted = shared.fit(trial.quantifier)
    estimates = shared.predict_bags(fitted, pool, bags)
    truth, _ = aligned_truth(bags, fitted.classes_)
    return {
        label: float(measure(label)(truth, estimates, sizes=bags.sizes).mean())
        for label in trial.labels
    }


def estimate_bags(unit: Unit) -> Frame:
    """Truth, estimates and errors of the unit's methods on test bags."""
    data = unit.dataset
    labelled, pool, bags = data.test_data(unit.protocol, unit.seed)
    shared = SharedPasses([t.quantifier for t in unit.trials], *labelled)
    parts = []
    for trial in unit.trials:
        found, failure = attempt(partial(_estimated, trial, shared, unit, pool, bags), (Exception,))
        nothing = np.full((len(bags), len(data.classes)), np.nan)
        scored = found or _scored(nothing, bags, unit)
        for label in trial.labels:
            about = {
                "dataset": data.name,
                "seed": unit.seed,
                "number": trial.method,
                "method": trial.name,
                "setting": trial.setting,
                "selected_by": label,
                "failure": failure,
            }
            parts.append({**{k: np.full(len(bags), v) for k, v in about.items()}, **scored})
    return join_columns(parts)


def _estimated(
    trial: Trial, shared: SharedPasses, unit: Unit, pool: Any, bags: Bags
) -> dict[str, Any]:
    """Columns of truth, estimates and errors of one method, and of its bounds if it has them."""
    fitted = _fit(trial, shared, unit.dataset)
    columns = _scored(shared.predict_bags(fitted, pool, bags), bags, unit)
    return columns | _bounds(shared, fitted, pool, bags) if trial.intervals else columns


def _fit(trial: Trial, shared: SharedPasses, data: Any) -> Quantifier:
    """Fit a trial, on a pass that it shares or with the periods of the labelled items."""
    if not trial.groups:
        return shared.fit(trial.quantifier)
    # What knows of periods knows what to do with few of them.
    knows = "periods" in trial.quantifier.get_params(deep=False)
    groups = data.labelled_periods if knows else data.groups
    if groups is None:
        return shared.fit(trial.quantifier)
    fit: Any = trial.quantifier.fit
    fitted: Quantifier = fit(shared.X, shared.y, groups=groups)
    return fitted


def _bounds(shared: SharedPasses, fitted: Quantifier, pool: Any, bags: Bags) -> dict[str, Any]:
    """Columns of the bounds of every class, and what to know about the estimates of a bag."""
    interval, diagnosis = shared.interval_bags(fitted, pool, bags)
    names = [str(c) for c in interval.classes.tolist()]
    columns: dict[str, Any] = {f"low:{c}": interval.low[:, j] for j, c in enumerate(names)}
    columns |= {f"high:{c}": interval.high[:, j] for j, c in enumerate(names)}
    flags = [" ".join(diagnosis.flags(s)) for s in range(len(bags))]
    return columns | {"flags": np.array(flags, dtype=str)}


def join_columns(parts: Sequence[Mapping[str, Any]]) -> Frame:
    """One frame of all columns; what a part lacks is NaN, or an empty text."""
    names = dict.fromkeys(name for part in parts for name in part)
    sizes = [len(next(iter(part.values()))) for part in parts]
    columns = {}
    for name in names:
        known = next(part[name] for part in parts if name in part)
        empty: Any = "" if np.asarray(known).dtype.kind in "OUS" else np.nan
        columns[name] = np.concatenate(
            [
                part[name] if name in part else np.full(n, empty)
                for part, n in zip(parts, sizes, strict=True)
            ]
        )
    return Frame(columns)


def _scored(estimates: Floats, bags: Bags, unit: Unit) -> dict[str, Any]:
    """Columns of truth, estimates and errors; NaN for what failed, or has no known truth."""
    classes = unit.dataset.classes
    if bags.prevalence is not None and np.isfinite(estimates).all():
        return score_estimates(estimates, bags, unit.measures, classes).to_dict()
    unknown = np.full(len(bags), np.nan)
    truth = np.full(estimates.shape, np.nan)
    if bags.prevalence is not None:
        truth, _ = aligned_truth(bags, classes)
    columns: dict[str, Any] = {"bag": bags.ids, "size": bags.sizes}
    columns |= {f"true:{c}": truth[:, j] for j, c in enumerate(classes.tolist())}
    columns |= {f"estimate:{c}": estimates[:, j] for j, c in enumerate(classes.tolist())}
    return columns | dict.fromkeys(unit.measures, unknown)


def _trials(study: Study, m: int) -> list[Trial]:
    method = study.methods[m]
    labels = tuple(study.labels(method))
    return [
        Trial(
            m,
            s,
            method.name,
            configured(method.quantifier, setting),
            labels,
            method.intervals,
            method.groups,
        )
        for s, setting in enumerate(method.settings())
    ]


def _units(study: Study, stage: str, trials: Mapping[tuple[str, int], list[Trial]]) -> list[Unit]:
    protocol = study.selection if stage == "select" else study.protocol
    sources = {data.name: data for data in study.datasets}
    units = []
    for (name, seed), found in trials.items():
        seeded = [
            replace(t, quantifier=_seeded(t.quantifier, seed, t.intervals and stage == "test"))
            for t in found
        ]
        for group in pass_groups([t.quantifier for t in seeded]):
            mine = tuple(seeded[i] for i in group)
            units.append(Unit(stage, sources[name], seed, protocol, tuple(study.measures), mine))
    return units


def _seeded(quantifier: Quantifier, seed: int, intervals: bool) -> Quantifier:
    """Clone with the seed of a unit, which calibrates intervals only if these are asked for."""
    fresh = clone(quantifier) if intervals else without_calibration(quantifier)
    if "random_state" in fresh.get_params(deep=False):
        fresh.set_params(random_state=seed)
    return fresh
