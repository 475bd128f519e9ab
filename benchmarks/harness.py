"""Run contestants one by one in a child process: CPU time, peak memory and errors.

Everything is single-threaded and measured in one run on one machine, so that ratios mean
something. A contestant that would take longer than its allowance is timed on a part of the bags
and extrapolated, and the table says so.
"""

# ruff: noqa: E402 - the number of threads must be set before numpy is loaded

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import multiprocessing
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from headcount import Bags, measure

ALLOWANCE = 60.0  # seconds of CPU that one contestant may take
Estimator = Callable[[Bags], np.ndarray]


@dataclass(frozen=True)
class Result:
    """What was measured of one contestant."""

    method: str
    library: str
    seconds: float
    memory: float  # MB above what the process held before
    ae: np.ndarray  # of each bag that was run
    rae: np.ndarray
    n_bags: int


def run(method: str, library: str, make: Callable[[], Estimator], bags: Bags) -> Result:
    """Measure `make()(bags)`; making is not timed, and the first bags warm everything up."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    # A cost that does not grow with the bags would be extrapolated wrongly: ours run in full.
    allowance = float("inf") if library in ("Headcount", "") else ALLOWANCE
    child = context.Process(target=_child, args=(there, make, bags, allowance))
    child.start()
    answer = here.recv()
    child.join()
    if isinstance(answer, str):
        raise RuntimeError(f"{library} {method}: {answer}")
    return Result(method, library, *answer, len(bags))


def _child(pipe, make: Callable[[], Estimator], bags: Bags, allowance: float) -> None:
    try:
        warnings.simplefilter("ignore")
        estimate = make()
        few = bags[:3]
        estimate(few)
        began = time.process_time()
        estimate(few)
        pace = (time.process_time() - began) / len(few)
        n = len(bags) if pace * len(bags) < allowance else max(3, int(15.0 / pace))
        part = bags[:n]
        _reset_peak()
        before = _memory("VmRSS")
        began = time.process_time()
        p = estimate(part)
        seconds = time.process_time() - began
        if seconds < 2:  # short runs are repeated and the best one counts, for every contestant
            for _ in range(4):
                began = time.process_time()
                estimate(part)
                seconds = min(seconds, time.process_time() - began)
        ae = measure("ae")(part.prevalence, p)
        rae = measure("rae")(part.prevalence, p, sizes=part.sizes)
        pipe.send((seconds * len(bags) / n, _memory("VmHWM") - before, ae, rae))
    except Exception as error:  # the parent reports it
        pipe.send(f"{type(error).__name__}: {error}")


def _reset_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _memory(field: str) -> float:
    with open("/proc/self/status") as file:
        line = next(row for row in file if row.startswith(field))
    return int(line.split()[1]) / 1024


def table(results: list[Result], title: str) -> str:
    """Markdown table; each method's rows follow each other, ours first.

    The percentage behind an error is how far it lies above ours on the same bags.
    """
    lines = [
        f"### {title}",
        "",
        "| method | library | CPU s | times slower | peak MB | AE | RAE |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    ours: dict[str, Result] = {}
    for r in results:
        if r.library == "Headcount":
            ours[r.method] = r
        mine = ours[r.method]
        ratio = f"{r.seconds / mine.seconds:.4g}" if r is not mine else ""
        mark = f" ({len(r.ae)} bags, extrapolated)" if len(r.ae) < r.n_bags else ""
        errors = [_error(r.ae, mine.ae, 5), _error(r.rae, mine.rae, 4)]
        lines.append(
            f"| {r.method} | {r.library} | {r.seconds:.4g}{mark} | {ratio} | {r.memory:.0f} | "
            f"{' | '.join(errors)} |"
        )
    return "\n".join(lines) + "\n"


def _error(theirs: np.ndarray, ours: np.ndarray, digits: int) -> str:
    above = theirs.mean() / ours[: len(theirs)].mean() - 1
    text = f"{theirs.mean():.{digits}f}"
    return text if theirs is ours else f"{text} ({100 * above:+.1f} %)"


def machine(*libraries: str) -> str:
    """One line about what ran."""
    names = ", ".join(f"{name} {version(name)}" for name in ("headcount", "numpy", *libraries))
    return f"Python {platform.python_version()}, {names}; one thread, CPU time."
