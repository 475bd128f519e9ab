"""Score runs against the truth, rank and compare them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headcount._core.types import Floats
from headcount.exceptions import InputError
from headcount.lequa.board import Scores
from headcount.lequa.runs import read_run
from headcount.lequa.unpack import Source
from headcount.measures import measure


def score_runs(
    truth: Source | Floats,
    runs: Mapping[str, Source | Floats],
    *,
    size: int,
    ordinal: bool = False,
    year: int = 2022,
) -> Scores:
    """Score runs against true prevalences; a run with faults is listed, and the rest scored.

    Parameters
    ----------
    truth : file, bytes or array
    runs : mapping of name to file, bytes or array
    size : int
        Items a sample, which decides the smoothing of RAE.
    ordinal : bool, default False
        Score by NMD and macro-NMD instead of RAE and AE.
    year : int
        Whose official script `Scores.official` speaks like.

    Raises
    ------
    InputError
        If the truth is not valid, or no run is; otherwise `Scores.faults` tells which are not.

    Examples
    --------
    >>> truth = np.array([[0.2, 0.8], [0.5, 0.5]])
    >>> scores = score_runs(truth, {"mine": truth, "other": truth[::-1]}, size=250)
    >>> scores.runs
    ['mine', 'other']
    >>> print(scores.official("other"))
    MRAE: 0.7636
    MAE: 0.3000
    """
    true = truth if isinstance(truth, np.ndarray) else read_run(truth)
    if not runs:
        raise InputError("no runs to score.")
    estimates: dict[str, Floats] = {}
    faults: dict[str, str] = {}
    for name, run in runs.items():
        try:
            estimates[name] = _estimates(name, run, true)
        except InputError as error:
            faults[name] = str(error)
    if not estimates:
        raise InputError("\n".join(faults.values()))
    wanted = ("nmd", "macro-nmd") if ordinal else ("rae", "ae")
    errors = {
        each: {name: _errors(each, true, run, size) for name, run in estimates.items()}
        for each in wanted
    }
    return Scores(errors, year, faults, true, estimates)


def _estimates(name: str, run: Source | Floats, true: Floats) -> Floats:
    """Estimates of a run, with a row for each row of the truth."""
    if not isinstance(run, np.ndarray):
        return read_run(run, true.shape[1], len(true))
    if run.shape != true.shape:
        raise InputError(
            f"{name}: {run.shape[0]} samples of {run.shape[1]} classes, and the truth has "
            f"{true.shape[0]} of {true.shape[1]}."
        )
    return run


def _errors(name: str, true: Floats, run: Floats, size: int) -> Floats:
    if name == "macro-nmd":
        return _by_stars(true, run)
    return np.asarray(measure(name)(true, run, sizes=np.full(len(true), size)))


def _by_stars(true: Floats, estimates: Floats) -> Floats:
    """Mean NMD of the samples in each bin of the true mean star; an empty bin counts as zero.

    The last bin is closed, as the lab defines it; its script leaves out samples of five stars only.
    """
    stars = np.arange(1, true.shape[1] + 1)
    mean = (stars * true).sum(axis=1)  # summed as the official script does: bins have sharp edges
    cell = np.clip(np.digitize(mean, stars), 1, len(stars) - 1)
    nmd = np.abs(np.cumsum(true - estimates, axis=1))[:, :-1].sum(axis=1) / (len(stars) - 1)
    return np.array([nmd[cell == s].mean() if (cell == s).any() else 0.0 for s in stars[:-1]])
