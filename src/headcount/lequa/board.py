"""The board of a task: its table as text, Markdown, LaTeX and HTML, and the page around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from headcount._core.frame import Frame
from headcount._core.texttable import text_table
from headcount._core.types import Floats
from headcount.exceptions import InputError
from headcount.inference.significance import against_best, wilcoxon_holm
from headcount.lequa.tasks import is_baseline
from headcount.report.page import frame_table, page
from headcount.report.pieces import estimate_figures, pairs_details, rank_diagram, shift_figures

# Samples: rank tests are approximate below about ten (Demšar, 2006, JMLR 7, section 3.2.2).
MIN_SAMPLES_FOR_TESTS = 10
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
        if len(next(iter(errors.values()))) < MIN_SAMPLES_FOR_TESTS:
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
        return task_page(self, title, more, training)


def task_page(
    scores: Scores,
    title: str,
    more: str = "",
    training: Floats | None = None,
    classes: Sequence[str] | None = None,
) -> str:
    """Page of one task: board, tests and figures; `more` stands below the board."""
    body = f"<h1>{escape(title)}</h1>{section(scores, more, training, classes)}"
    return page(title, body)


def section(
    scores: Scores,
    more: str,
    training: Floats | None,
    classes: Sequence[str] | None,
    level: int = 2,
) -> str:
    """Board, faults, tests and figures of one task."""
    parts = [*[f"<p class=bad>{_lines(line)}</p>" for line in scores.fault_lines()]]
    parts += [scores.board(), more]
    first = next(iter(scores.errors))
    values = scores.errors[first]
    n_samples = len(next(iter(values.values())))
    if len(values) > 1 and n_samples >= MIN_SAMPLES_FOR_TESTS:
        names = list(values)
        parts.append(f"<h{level}>Tests</h{level}>")
        errors = np.column_stack([values[n] for n in names])
        parts.append(rank_diagram(errors, names, first))
        parts.append(pairs_details(errors, names, scores.runs))
    else:
        parts.append(
            f"<p class=note>{len(values)} run(s) on {n_samples} samples: too few for tests.</p>"
        )
    if scores.truth is not None:
        parts.append(
            f"<h{level}>Where the errors lie</h{level}>" + _figures(scores, training, classes)
        )
    return "\n".join(parts)


def _figures(scores: Scores, training: Floats | None, classes: Sequence[str] | None) -> str:
    frame = scores.frame(classes)
    labels = [c.removeprefix("true:") for c in frame if c.startswith("true:")]
    parts = []
    if training is not None:
        parts = [shift_figures(frame, m, training) for m in scores.errors if m in frame]
    return "".join([*parts, estimate_figures(frame, labels)])


def _lines(text: str) -> str:
    return escape(text).replace("\n", "<br>")
