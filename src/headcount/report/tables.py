"""Tables of methods by data sets, best in bold, marks and ranks; as text, Markdown, LaTeX, HTML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import numpy as np
from scipy.stats import rankdata

from headcount._core.frame import Frame
from headcount._core.texttable import text_table
from headcount._core.types import Floats
from headcount.exceptions import InputError
from headcount.inference.significance import against_best, error_table


@dataclass(frozen=True, eq=False)
class ResultTable:
    """Mean errors of methods (rows) on data sets (columns), with marks and average ranks.

    Make one with `result_table`; `str()` gives plain text.
    """

    measure: str
    methods: list[str]
    datasets: list[str]
    means: Floats
    deviations: Floats
    marks: list[list[str]]
    digits: int = 3

    @property
    def ranks(self) -> Floats:
        """Rank of each method on each data set; 1 is best."""
        return np.asarray(rankdata(self.means, axis=0))

    @property
    def average(self) -> Floats:
        """Mean error of each method over the data sets."""
        return np.asarray(self.means.mean(axis=1))

    def __str__(self) -> str:
        rows = [[self._plain(i, j) for j in range(len(self.datasets))] for i in self._order()]
        return text_table(self._header(), self._rows(rows))

    def to_markdown(self) -> str:
        """Markdown table with the best of each column in bold."""
        rows = self._rows(
            [[self._marked(i, j, "**{}**") for j in self._columns()] for i in self._order()]
        )
        lines = ["| " + " | ".join(self._header()) + " |"]
        lines.append("|---|" + "---:|" * (len(self._header()) - 1))
        lines += ["| " + " | ".join(row) + " |" for row in rows]
        return "\n".join(lines)

    def to_latex(self) -> str:
        """LaTeX tabular with booktabs rules, the best in bold, cells coloured from best to worst.

        Needs the packages booktabs and xcolor (option table).
        """
        cells = []
        for i in self._order():
            row = []
            for j in self._columns():
                text = self._marked(i, j, r"\textbf{{{}}}")
                for symbol, command in (("†", r"$^{\dagger}$"), ("‡", r"$^{\ddagger}$")):
                    text = text.replace(symbol, command)
                share = round(100 * self._shade(i, j))
                row.append(rf"\cellcolor{{green!{share // 2}}}{text}")
            cells.append(row)
        rows = self._rows(cells, escape_with=_latex)
        head = " & ".join(_latex(h) for h in self._header()) + r" \\"
        body = "\n".join(" & ".join(row) + r" \\" for row in rows)
        layout = "l" + "r" * (len(self._header()) - 1)
        return (
            f"\\begin{{tabular}}{{{layout}}}\n\\toprule\n{head}\n\\midrule\n{body}\n"
            "\\bottomrule\n\\end{tabular}"
        )

    def to_html(self) -> str:
        """HTML table; cells are coloured from best to worst and readable in light and dark."""
        head = "".join(f"<th scope=col>{escape(h)}</th>" for h in self._header())
        body = []
        for i in self._order():
            cells = [f"<th scope=row>{escape(self.methods[i])}</th>"]
            for j in self._columns():
                shade = round(35 * self._shade(i, j))
                text = self._marked(i, j, "<b>{}</b>")
                hint = f"rank {self.ranks[i, j]:g}, sd {self.deviations[i, j]:.{self.digits}f}"
                colour = f"background:rgb(40 160 90 / {shade}%)"
                cells.append(f"<td style='{colour}' title='{hint}'>{text}</td>")
            cells += [f"<td>{v}</td>" for v in self._tail(i)]
            body.append("<tr>" + "".join(cells) + "</tr>")
        rows = "".join(body)
        return f"<table class=results><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _columns(self) -> range:
        return range(len(self.datasets))

    def _order(self) -> list[int]:
        return [int(i) for i in np.argsort(self.ranks.mean(axis=1), kind="stable")]

    def _header(self) -> list[str]:
        more = ["average", "average rank"] if len(self.datasets) > 1 else ["rank"]
        return [f"method ({self.measure})", *self.datasets, *more]

    def _tail(self, i: int) -> list[str]:
        if len(self.datasets) > 1:
            return [f"{self.average[i]:.{self.digits}f}", f"{self.ranks[i].mean():.2f}"]
        return [f"{self.ranks[i, 0]:g}"]

    def _rows(
        self, cells: list[list[str]], escape_with: Callable[[str], str] = str
    ) -> list[list[str]]:
        return [
            [escape_with(self.methods[i]), *row, *self._tail(i)]
            for i, row in zip(self._order(), cells, strict=True)
        ]

    def _plain(self, i: int, j: int) -> str:
        mark = self.marks[i][j]
        return f"{self.means[i, j]:.{self.digits}f}{'*' if mark == 'best' else mark}"

    def _marked(self, i: int, j: int, bold: str) -> str:
        text = f"{self.means[i, j]:.{self.digits}f}"
        mark = self.marks[i][j]
        return bold.format(text) if mark == "best" else text + mark

    def _shade(self, i: int, j: int) -> float:
        """1 for the best of the column, 0 for the worst, on the scale of ranks."""
        k = len(self.methods)
        return float((k - self.ranks[i, j]) / max(k - 1, 1))


def result_table(frame: Frame, measure: str, *, digits: int = 3) -> ResultTable:
    """Table of a measure from a tidy results frame with columns method, bag and perhaps dataset.

    The marks are those of `against_best`, within each data set.

    Examples
    --------
    >>> frame = Frame({"method": ["CC", "CC", "SLD", "SLD"], "bag": [0, 1, 0, 1],
    ...                "ae": [0.30, 0.36, 0.10, 0.15]})
    >>> print(result_table(frame, "ae"))
    method (ae)     all  rank
    SLD          0.125*     1
    CC           0.330†     2
    """
    methods = list(dict.fromkeys(frame["method"].tolist()))
    datasets = list(dict.fromkeys(frame["dataset"].tolist())) if "dataset" in frame else ["all"]
    if not methods:
        raise InputError("there are no results to put into a table.")
    means = np.empty((len(methods), len(datasets)))
    deviations = np.empty_like(means)
    marks: list[list[str]] = [[""] * len(datasets) for _ in methods]
    for j, dataset in enumerate(datasets):
        part = frame.rows(frame["dataset"] == dataset) if "dataset" in frame else frame
        errors, names = error_table(part, measure)
        if len(methods) == 1:
            means[0, j], deviations[0, j] = errors.mean(), errors.std()
            continue
        if set(names) != set(methods):
            missing = sorted(set(methods) - set(names))
            raise InputError(f"methods {missing} have no results on data set {dataset!r}.")
        outcome = against_best(errors, names)
        for name, mean, sd, mark in zip(
            outcome["method"], outcome["mean"], outcome["sd"], outcome["mark"], strict=True
        ):
            i = methods.index(str(name))
            means[i, j], deviations[i, j], marks[i][j] = mean, sd, str(mark)
    return ResultTable(measure, methods, datasets, means, deviations, marks, digits)


def _latex(text: str) -> str:
    for symbol in "\\&%$#_{}":
        text = text.replace(symbol, f"\\{symbol}")
    return text
