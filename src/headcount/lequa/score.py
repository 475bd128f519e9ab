"""Score runs against the truth, rank and compare them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headcount._core.frame import Frame
from headcount._core.texttable import text_table
from headcount._core.types import Floats
from headcount.exceptions import InputError
from headcount.inference.significance import against_best, wilcoxon_holm
from headcount.lequa.runs import read_run
from headcount.lequa.tasks import is_baseline
from headcount.lequa.unpack import Source
from headcount.measures import measure
from headcount.report.page import frame_table

# What each year's official script prints, in its order.
OFFICIAL = {"rae": "MRAE", "ae": "MAE", "nmd": "MNMD", "macro-nmd": "macro-NMD"}
BOARD_NOTE = (
    "Mean and standard deviation over samples. Bold: the best; ‡ not significantly different from "
    "it (paired t-test, p ≥ 0.05), † 0.001 &lt; p &lt; 0.05. Baselines are in italics."
)


@dataclass(frozen=True, eq=False)
class Scores:
    """Errors of runs: a value a sample, for each measure; the first measure ranks.

    The values of macro-NMD are the means of its four bins.

    Attributes
    ----------
    errors : dict of measure to dict of run to array
    year : int
        Whose official script `official` speaks like.
    faults : dict of run to str
        Why a run could not be scored, or a method could not be run; such runs have no errors.
    truth, estimates
        What was compared, for figures.
    """

    errors: dict[str, dict[str, Floats]]  # measure -> run -> errors
    year: int = 2022
    faults: dict[str, str] = field(default_factory=dict)
    truth: Floats | None = None
    estimates: dict[str, Floats] = field(default_factory=dict)

    @property
    def runs(self) -> list[str]:
        """Names of the runs, best first."""
        first = next(iter(self.errors.values()))
        return sorted(first, key=lambda name: float(first[name].mean()))

    def table(self) -> Frame:
        """Rank, mean and deviation of every measure, and the mark of the paired t-test."""
        runs = self.runs
        columns: dict[str, Any] = {"rank": list(range(1, len(runs) + 1)), "run": list(runs)}
        for name, errors in self.errors.items():
            columns[name] = [float(errors[run].mean()) for run in runs]
            columns[f"sd({name})"] = [float(errors[run].std()) for run in runs]
            marks = self._marks(name)
            columns[f"mark({name})"] = [marks.get(run, "") for run in runs]
        return Frame(columns)

    def _marks(self, name: str) -> dict[str, str]:
        """Mark of each run by the paired t-test; for too few samples only the best is marked."""
        errors = self.errors[name]
        if len(errors) < 2:
            return {}
        if len(next(iter(errors.values()))) < 10:
            return {min(errors, key=lambda run: float(errors[run].mean())): "best"}
        names = list(errors)
        outcome = against_best(np.column_stack([errors[n] for n in names]), names)
        return dict(zip(outcome["method"].tolist(), outcome["mark"].tolist(), strict=True))

    def official(self, run: str) -> str:
        """What the official script of the year prints for a run."""
        means = {n: (e[run].mean(), e[run].std()) for n, e in self.errors.items()}
        order = [n for n in OFFICIAL if n in means]
        if self.year == 2022:
            return "\n".join(f"{OFFICIAL[n]}: {means[n][0]:.4f}" for n in order)
        lines = [f"{OFFICIAL[n]}: {means[n][0]:.5f} ~ {means[n][1]:.5f}" for n in order]
        return "\n".join([run, *lines, ""])

    def rows(self, bold: str = "{}") -> tuple[list[str], list[list[str]]]:
        """Header and cells of the table, the best of each measure set off."""
        table = self.table()
        header = ["rank", "run"]
        for name in self.errors:
            header += [name.upper(), "sd"]
        rows = []
        for i, run in enumerate(table["run"].tolist()):
            row = [str(table["rank"][i]), str(run)]
            for name in self.errors:
                mark = str(table[f"mark({name})"][i])
                text = f"{table[name][i]:.5f}"
                row.append(bold.format(text) if mark == "best" else text + mark)
                row.append(f"{table[f'sd({name})'][i]:.5f}")
            rows.append(row)
        return header, rows

    def __str__(self) -> str:
        header, rows = self.rows("{}*")
        return "\n".join([text_table(header, rows, left=(1,)), *self.fault_lines()])

    def fault_lines(self) -> list[str]:
        """A sentence for each run that is not in the table."""
        return [f"not scored: {name}: {why}" for name, why in self.faults.items()]

    def to_markdown(self) -> str:
        """Markdown table, the best in bold."""
        header, rows = self.rows("**{}**")
        lines = ["| " + " | ".join(header) + " |", "|---:|---|" + "---:|" * (len(header) - 2)]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
        return "\n".join([*lines, *[f"\n{line}" for line in self.fault_lines()]])

    def to_latex(self) -> str:
        """LaTeX tabular with booktabs rules, the best in bold, baselines in italics."""
        header, rows = self.rows(r"\textbf{{{}}}")
        marks = {"‡": r"$^{\ddagger}$", "†": r"$^{\dagger}$", "_": r"\_", "&": r"\&", "%": r"\%"}
        lines = []
        for number, row in enumerate([header, *rows]):
            cells = ["".join(marks.get(ch, ch) for ch in cell) for cell in row]
            if number and is_baseline(row[1]):
                cells[1] = rf"\textit{{{cells[1]}}}"
            lines.append(" & ".join(cells) + r" \\")
        body = "\n".join([lines[0], r"\midrule", *lines[1:]])
        layout = "rl" + "r" * (len(header) - 2)
        notes = "".join(f"% {line}\n" for line in " ".join(self.fault_lines()).splitlines())
        table = f"\\begin{{tabular}}{{{layout}}}\n\\toprule\n{body}\n\\bottomrule\n"
        return f"{notes}{table}\\end{{tabular}}"

    def pairwise(self, name: str | None = None) -> Frame:
        """Wilcoxon tests of all pairs of runs, corrected by Holm's rule."""
        errors = self.errors[name or next(iter(self.errors))]
        names = list(errors)
        return wilcoxon_holm(np.column_stack([errors[n] for n in names]), names)

    def board(self) -> str:
        """The table as HTML, as in the overview of the lab."""
        table = self.table()
        rows, bold = [], set()
        for i, run in enumerate(self.runs):
            row = [run, str(i + 1)]
            for m, name in enumerate(self.errors):
                mark = str(table[f"mark({name})"][i])
                if mark == "best":
                    bold.add((i, 2 + 2 * m))
                row.append(f"{table[name][i]:.5f}" + ("" if mark == "best" else mark))
                row.append(f"± {table[f'sd({name})'][i]:.5f}")
            rows.append(row)
        header = ["run", "rank"]
        for name in self.errors:
            header += [name.upper(), ""]
        slanted = {i for i, run in enumerate(self.runs) if is_baseline(run)}
        return f"<p class=note>{BOARD_NOTE}</p>" + frame_table(header, rows, bold, italic=slanted)

    def frame(self, classes: Sequence[str] | None = None) -> Frame:
        """Tidy table of truth, estimates and errors of every run on every sample, best first.

        Columns are named by `classes`, or by their codes.
        """
        if self.truth is None:
            raise InputError("these scores were made without the estimates they are about.")
        n, k = self.truth.shape
        runs = self.runs
        columns: dict[str, Any] = {
            "method": np.repeat(runs, n),
            "bag": np.tile(np.arange(n), len(runs)),
        }
        names = classes or [str(c) for c in range(k)]
        for c, name in enumerate(names):
            columns[f"true:{name}"] = np.tile(self.truth[:, c], len(runs))
        for c, name in enumerate(names):
            columns[f"estimate:{name}"] = np.concatenate([self.estimates[r][:, c] for r in runs])
        for name, errors in self.errors.items():
            if len(errors[runs[0]]) == n:
                columns[name] = np.concatenate([errors[r] for r in runs])
        return Frame(columns)

    def to_html(self, title: str, more: str = "", training: Floats | None = None) -> str:
        """A page with the table, tests and figures; `training` is the prevalence learnt from."""
        from headcount.lequa.page import task_page

        return task_page(self, title, more, training)


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
