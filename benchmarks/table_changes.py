"""False alarms and power of `monitor`: groups against a reference, all by the same labelled rows.

python benchmarks/table_changes.py [trials] [cells]
python benchmarks/table_changes.py [trials] whole

In each trial labelled rows and groups are made anew, and the groups are estimated as `headcount
estimate` does. "One of 1" compares one group with another, "any of 11" eleven groups with the
first, with Holm's correction at 5 %: an alarm of groups with the same shares is a false one. With
"others move", the shares of all classes but the first two are mixed anew in every group, and only
alarms about the first class count. Power is how often a group is found whose first share is higher
by three standard deviations of what counting true labels in both groups would show.

"whole" is about the interval of all rows together: how often it holds their true shares, how wide
it is, and how wide those of the groups are.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace

import numpy as np

import harness  # noqa: F401  first: it sets one thread for everybody
from headcount import PACC, SLD
from headcount.tables import Count, changes
from headcount.tables.estimation import DIAGNOSIS_ARRAYS, INTERVAL_ARRAYS, join_groups
from headcount.tables.result import Estimates, GroupRows
from table_alarms import estimated, scores_of


def counted(method, k: int, labelled: int, shares: np.ndarray, size: int, rng) -> tuple:
    """A count of groups with these shares by a model of other rows, and true labels."""
    y = np.concatenate([np.arange(k).repeat(10), rng.integers(k, size=labelled)])
    q = method().fit_scores(scores_of("continuous", y, k, rng), y)
    labels = [rng.choice(k, size, p=share) for share in shares]
    groups = [scores_of("continuous", own, k, rng) for own in labels]
    return estimated(q, groups), np.concatenate(labels)


def shares_of(k: int, first: float, groups: int, rng, *, move: bool) -> np.ndarray:
    """Shares of groups: the first class has the same in all, of the others maybe not."""
    rest = np.full((groups, k - 1), 1 / (k - 1))
    if move:
        rest = rng.dirichlet(np.ones(k - 1), size=groups)
    return np.column_stack([np.full(groups, first), rest * (1 - first)])


def trial(cell: tuple, seed: int) -> tuple[bool, bool, bool]:
    """Whether one group, any of eleven, and one that really differs raise an alarm."""
    method, k, labelled, size, first, move = cell
    method = METHODS[method]
    rng = np.random.default_rng([seed, k, labelled, size, int(100 * first), move])
    shares = shares_of(k, first, 13, rng, move=move)
    step = 3 * np.sqrt(2 * first * (1 - first) / size)
    shares[-1, 1:] *= (1 - first - step) / (1 - first)
    shares[-1, 0] += step
    found, _ = counted(method, k, labelled, shares, size, rng)
    found = found.of_population
    alarms = []
    for groups in (range(2), range(12), (0, 12)):
        some = _take(found, list(groups))
        changed = changes(some)["changed"].reshape(-1, k)
        alarms.append(bool(changed[:, 0].any() if move else changed.any()))
    return tuple(alarms)


def _take(found: Count, groups: list[int]) -> Count:
    """Some of the groups, without another estimate."""

    def some(record, names: tuple[str, ...]):
        return replace(record, **{name: getattr(record, name)[groups] for name in names})

    interval, diagnosis = (
        some(found.interval, INTERVAL_ARRAYS),
        some(found.diagnosis, DIAGNOSIS_ARRAYS),
    )
    draws, counting = found.estimates.draws.take(groups), found.counted[groups]
    sizes, worth = found.sizes[groups], found.rows.worth[groups]
    rows = GroupRows([found.groups[g] for g in groups], found.by, sizes, worth)
    return replace(found, rows=rows, estimates=Estimates(interval, counting, diagnosis, draws))


METHODS = {
    "PACC": PACC,
    "SLD": lambda: SLD(calibrator="bcts"),
    "SLD, not calibrated": SLD,
}
WHOLES = [(2, 10_000, 10), (2, 200, 300), (5, 10_000, 10), (5, 100, 300)]
CELLS = [
    ("PACC", 2, 600, 300, 0.3, False),
    ("PACC", 2, 600, 5000, 0.3, False),
    ("PACC", 2, 600, 300, 0.05, False),
    ("SLD", 2, 600, 300, 0.3, False),
    ("SLD", 2, 600, 5000, 0.3, False),
    ("SLD, not calibrated", 2, 600, 300, 0.03, False),
    ("SLD, not calibrated", 2, 600, 5000, 0.03, False),
    ("SLD, not calibrated", 5, 600, 500, 0.2, False),
    ("SLD", 2, 600, 300, 0.03, False),
    ("SLD", 2, 600, 5000, 0.03, False),
    ("SLD", 5, 600, 500, 0.2, False),
    ("SLD", 5, 600, 5000, 0.2, False),
    ("SLD", 5, 600, 500, 0.2, True),
    ("SLD", 5, 600, 5000, 0.2, True),
]


def whole(k: int, groups: int, size: int, seed: int) -> tuple[float, float, float]:
    """Whether the interval of all rows holds, its width, and in the first trials the groups'."""
    rng = np.random.default_rng([seed, k, groups, size])
    shares = rng.dirichlet(20 * rng.dirichlet(np.ones(k)) + 0.1, size=groups)
    found, labels = counted(METHODS["SLD"], k, 600, shares, size, rng)
    all_rows, single = join_groups(found, np.zeros(groups, dtype=np.int64)), np.nan
    if seed < 3:
        single = float((found.interval.high - found.interval.low).mean())
    truth = np.bincount(labels, minlength=k) / len(labels)
    inside = (truth >= all_rows.low[0]) & (truth <= all_rows.high[0])
    return float(inside.mean()), float((all_rows.high - all_rows.low).mean()), single


def main_whole(trials: int) -> None:
    print("| classes | groups | rows of each | held | width of all rows | width of a group |")
    print("|---|---|---|---|---|---|")
    for k, groups, size in WHOLES:
        found = np.array([whole(k, groups, size, seed) for seed in range(trials)])
        held = f"{found[:, 0].mean():.3f} ± {found[:, 0].std(ddof=1) / np.sqrt(trials):.3f}"
        widths = f"{100 * found[:, 1].mean():.1f} | {100 * np.nanmean(found[:, 2]):.1f}"
        print(f"| {k} | {groups:,} | {size} | {held} | {widths} |", flush=True)


def main() -> None:
    warnings.simplefilter("ignore")
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    if sys.argv[2:] == ["whole"]:
        main_whole(trials)
        return
    cells = CELLS if len(sys.argv) < 3 else [CELLS[int(i)] for i in sys.argv[2].split(",")]
    print("| method, classes, rows of a group, share | one of 1 | any of 11 | power |")
    print("|---|---|---|---|")
    for cell in cells:
        method, k, _, size, first, move = cell
        found = np.mean([trial(cell, seed) for seed in range(trials)], axis=0)
        name = f"{method}, {k}, {size:,}, {first:.0%}" + ", others move" * move
        print(f"| {name} | " + " | ".join(f"{v:.3f}" for v in found) + " |", flush=True)


if __name__ == "__main__":
    main()
