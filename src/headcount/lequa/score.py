"""Score runs against the truth, rank and compare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headcount._core.frame import Frame
from headcount._core.types import Floats
from headcount.exceptions import InputError
from headcount.inference.significance import against_best, nemenyi, wilcoxon_holm
from headcount.lequa.runs import read_run
from headcount.measures import measure
from headcount.report import figures
from headcount.report.page import drawn, frame_table, page


@dataclass(frozen=True, eq=False)
class Scores:
    """Errors of runs: a value a sample, for each measure; the first measure ranks.

    The values of macro-NMD are the means of its four bins.
    """

    errors: dict[str, dict[str, Floats]]  # measure -> run -> errors
    year: int = 2022

    @property
    def runs(self) -> list[str]:
        """Names of the runs, best first."""
        first = next(iter(self.errors.values()))
        return sorted(first, key=lambda name: float(first[name].mean()))

    def table(self) -> Frame:
        """Rank, mean and deviation of every measure, and the mark of the paired t-test."""
        columns: dict[str, Any] = {"rank": [], "run": []}
        runs = self.runs
        columns["rank"] = list(range(1, len(runs) + 1))
        columns["run"] = list(runs)
        for name, errors in self.errors.items():
            columns[name] = [float(errors[run].mean()) for run in runs]
            columns[f"sd({name})"] = [float(errors[run].std()) for run in runs]
            marks = self._marks(name)
            columns[f"mark({name})"] = [marks.get(run, "") for run in runs]
        return Frame(columns)

    def _marks(self, name: str) -> dict[str, str]:
        """Mark of each run by the paired t-test; none for too few runs or samples."""
        errors = self.errors[name]
        if len(errors) < 2 or len(next(iter(errors.values()))) < 10:
            return {}
        names = list(errors)
        outcome = against_best(np.column_stack([errors[n] for n in names]), names)
        return dict(zip(outcome["method"].tolist(), outcome["mark"].tolist(), strict=True))

    def official(self, run: str) -> str:
        """What the official script of the year prints for a run."""
        names = {"rae": "MRAE", "ae": "MAE", "nmd": "MNMD", "macro-nmd": "macro-NMD"}
        means = {n: (e[run].mean(), e[run].std()) for n, e in self.errors.items()}
        if self.year == 2022:
            return "\n".join(f"{names[n]}: {means[n][0]:.4f}" for n in ("ae", "rae"))
        order = [n for n in ("macro-nmd", "nmd", "rae", "ae") if n in means]
        lines = [f"{names[n]}: {means[n][0]:.5f} ~ {means[n][1]:.5f}" for n in order]
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
        widths = [max(len(r[c]) for r in [header, *rows]) for c in range(len(header))]
        return "\n".join(
            "  ".join(
                cell.ljust(w) if c == 1 else cell.rjust(w)
                for c, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in [header, *rows]
        )

    def to_markdown(self) -> str:
        """Markdown table, the best in bold."""
        header, rows = self.rows("**{}**")
        lines = ["| " + " | ".join(header) + " |", "|---:|---|" + "---:|" * (len(header) - 2)]
        return "\n".join([*lines, *["| " + " | ".join(row) + " |" for row in rows]])

    def to_latex(self) -> str:
        """LaTeX tabular with booktabs rules, the best in bold."""
        header, rows = self.rows(r"\textbf{{{}}}")
        marks = {"‡": r"$^{\ddagger}$", "†": r"$^{\dagger}$", "_": r"\_", "&": r"\&", "%": r"\%"}
        lines = []
        for row in [header, *rows]:
            text = " & ".join("".join(marks.get(ch, ch) for ch in cell) for cell in row)
            lines.append(text + r" \\")
        body = "\n".join([lines[0], r"\midrule", *lines[1:]])
        layout = "rl" + "r" * (len(header) - 2)
        return f"\\begin{{tabular}}{{{layout}}}\n\\toprule\n{body}\n\\bottomrule\n\\end{{tabular}}"

    def pairwise(self, name: str | None = None) -> Frame:
        """Wilcoxon tests of all pairs of runs, corrected by Holm's rule."""
        errors = self.errors[name or next(iter(self.errors))]
        names = list(errors)
        return wilcoxon_holm(np.column_stack([errors[n] for n in names]), names)

    def board(self) -> str:
        """The table as HTML."""
        header, rows = self.rows()
        table = self.table()
        bold = {
            (i, 2 + 2 * m)
            for m, name in enumerate(self.errors)
            for i in range(len(rows))
            if table[f"mark({name})"][i] == "best"
        }
        note = (
            "<p class=note>Mean and standard deviation over samples. Bold: the best; ‡ not "
            "significantly different from it (paired t-test, p ≥ 0.05), † 0.001 &lt; p &lt; 0.05."
            "</p>"
        )
        swapped = [[row[1], row[0], *row[2:]] for row in rows]
        return note + frame_table(["run", "rank", *header[2:]], swapped, bold)

    def to_html(self, title: str, more: str = "") -> str:
        """A page with the table, the critical-difference diagram and the pairwise tests."""
        parts = [f"<h1>{title}</h1>", self.board(), more]
        first = next(iter(self.errors))
        values = self.errors[first]
        if len(values) > 1 and len(next(iter(values.values()))) >= 10:
            names = list(values)
            ranks = nemenyi(np.column_stack([values[n] for n in names]), names)
            parts.append(
                drawn(
                    lambda: figures.critical_difference(ranks),
                    f"Average rank over samples by {first.upper()}; bars join runs that Nemenyi's "
                    "test cannot tell apart.",
                )
            )
            tests = self.pairwise()
            cells = [
                [
                    str(tests["method"][i]),
                    str(tests["other"][i]),
                    f"{tests['difference'][i]:+.5f}",
                    f"{tests['p_holm'][i]:.2g}",
                ]
                for i in range(tests.n_rows)
            ]
            parts.append(
                "<details><summary>Pairwise Wilcoxon tests, Holm's correction</summary>"
                + frame_table(["run", "against", "difference", "p"], cells)
                + "</details>"
            )
        return page(title, "\n".join(parts))


def score_runs(
    truth: str | Path | Floats,
    runs: Mapping[str, str | Path | Floats],
    *,
    size: int,
    ordinal: bool = False,
    year: int = 2022,
) -> Scores:
    """Score runs against true prevalences.

    Parameters
    ----------
    truth : file or array
    runs : mapping of name to file or array
    size : int
        Items a sample, which decides the smoothing of RAE.
    ordinal : bool, default False
        Score by NMD and macro-NMD instead of RAE and AE.
    year : int
        Whose official script `Scores.official` speaks like.

    Examples
    --------
    >>> truth = np.array([[0.2, 0.8], [0.5, 0.5]])
    >>> scores = score_runs(truth, {"mine": truth, "other": truth[::-1]}, size=250)
    >>> scores.runs
    ['mine', 'other']
    >>> print(scores.official("other"))
    MAE: 0.3000
    MRAE: 0.7636
    """
    true = truth if isinstance(truth, np.ndarray) else read_run(truth)
    if not runs:
        raise InputError("no runs to score.")
    errors: dict[str, dict[str, Floats]] = {}
    wanted = ("nmd", "macro-nmd") if ordinal else ("rae", "ae")
    for name, run in runs.items():
        estimates = run if isinstance(run, np.ndarray) else read_run(run, true.shape[1])
        if estimates.shape != true.shape:
            raise InputError(
                f"{name}: {estimates.shape[0]} samples of {estimates.shape[1]} classes, and the "
                f"truth has {true.shape[0]} of {true.shape[1]}."
            )
        for each in wanted:
            values = (
                _by_stars(true, estimates)
                if each == "macro-nmd"
                else measure(each)(true, estimates, sizes=np.full(len(true), size))
            )
            errors.setdefault(each, {})[name] = np.asarray(values)
    return Scores(errors, year)


def _by_stars(true: Floats, estimates: Floats) -> Floats:
    """Mean NMD of the samples in each bin of the true mean star; an empty bin counts as zero."""
    stars = np.arange(1, true.shape[1] + 1)
    cell = np.clip(np.digitize(true @ stars, stars), 1, len(stars) - 1)
    nmd = np.abs(np.cumsum(true - estimates, axis=1))[:, :-1].sum(axis=1) / (len(stars) - 1)
    return np.array([nmd[cell == s].mean() if (cell == s).any() else 0.0 for s in stars[:-1]])
