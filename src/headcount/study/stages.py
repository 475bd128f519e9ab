"""What is done in each stage of a study: settings selected, bags estimated, shift measured."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from headcount._core.frame import Frame
from headcount.data.temporal import TemporalDataset
from headcount.kernels.shift import discrepancy, label_shift, mean_kernel, median_distance
from headcount.study.study import Study
from headcount.study.units import Unit, estimate_bags, join_columns, select_settings


@dataclass(frozen=True, eq=False)
class Samples:
    """Vectors of some training items, and of some items of a split."""

    name: str
    train: Any
    split: Any = None


@dataclass(frozen=True)
class Step:
    """Which split, and the width of the kernel; before the splits, the training items alone."""

    split: int = -1
    sigma: float = 0.0


def work(unit: Unit) -> Frame:
    """Do a unit; one thread, so that the same bytes come out however many units run at once."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what fails is reported; what is unsure shows in errors
        return STAGES[unit.stage](unit)


def shift_table(study: Study, outcomes: Callable[[list[Unit]], list[Frame]]) -> Frame | None:
    """MMD and KLD of every period of the data sets that are cut by time; None without any.

    Parameters
    ----------
    outcomes : function that does units, or reads what they left
    """
    found = [data for data in study.datasets if isinstance(data, TemporalDataset)]
    if not found:
        return None
    samples = {data.name: data.shift_samples() for data in found}
    first = outcomes([_unit(Samples(n, train), Step()) for n, (train, _) in samples.items()])
    alone = dict(zip(samples, first, strict=True))
    units = [
        _unit(Samples(name, train, split), Step(s, float(alone[name]["sigma"][0])))
        for name, (train, splits) in samples.items()
        for s, split in enumerate(splits)
    ]
    moved = iter(outcomes(units))
    parts = [_rows(d, alone[d.name], [next(moved) for _ in samples[d.name][1]]) for d in found]
    return join_columns(parts)


def _rows(data: TemporalDataset, alone: Frame, splits: list[Frame]) -> dict[str, Any]:
    """Rows of the table for one data set."""
    _, _, bags = data.test_data(None, 0)
    assert bags.prevalence is not None
    own = float(alone["within"][0])
    moved = [discrepancy(own, float(s["within"][0]), float(s["between"][0])) for s in splits]
    return {
        "dataset": np.full(len(bags), data.name),
        "bag": bags.ids,
        "size": bags.sizes,
        "mmd": np.array(moved),
        "kld": label_shift(bags.prevalence, data.prevalence),
        "sigma": np.full(len(bags), float(alone["sigma"][0])),
    }


def _unit(samples: Samples, step: Step) -> Unit:
    return Unit("shift", samples, 0, step, (), ())


def measure_shift(unit: Unit) -> Frame:
    """Mean kernels of a split, or of the training items with the width that these give."""
    samples, step = unit.dataset, unit.protocol
    if step.split < 0:
        sigma = median_distance(samples.train)
        within, between = mean_kernel(samples.train, None, sigma), np.nan
    else:
        sigma = step.sigma
        within = mean_kernel(samples.split, None, sigma)
        between = mean_kernel(samples.train, samples.split, sigma)
    return Frame({"sigma": [sigma], "within": [within], "between": [between]})


STAGES: dict[str, Callable[[Unit], Frame]] = {
    "select": select_settings,
    "test": estimate_bags,
    "shift": measure_shift,
}
