"""Tables of methods by data sets, best in bold, marks and ranks; as text, Markdown, LaTeX, HTML."""

from __future__ import annotations

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

    @property
    def average_marks(self) -> list[str]:
        """Marks of the averages, by paired t-tests over the data sets; needs three of them."""
        marks = [""] * len(self.methods)
        if len(self.methods) < 2 or len(self.datasets) < 3:
            marks[int(np.argmin(self.average))] = "best"
            return marks
        outcome = against_best(self.means.T, self.methods)
        for name, mark in zip(outcome["method"].tolist(), outcome["mark"].tolist(), strict=True):
            marks[self.methods.index(name)] = mark
        return marks

    def __str__(self) -> str:
        return text_table(self._header(), self._rows("{}*"))

    def to_markdown(self) -> str:
        """Markdown table with the best of each column in bold."""
        lines = ["| " + " | ".join(self._header()) + " |"]
        lines.append("|---|" + "---:|" * (len(self._header()) - 1))
        lines += ["| " + " | ".join(row) + " |" for row in self._rows("**{}**")]
        return "\n".join(lines)

    def to_latex(self) -> str:
        """LaTeX tabular with booktabs rules, the best in bold, cells coloured from best to worst.

        Needs the packages booktabs and xcolor (option table).
        """
        rows = []
        for i, row in zip(self._order(), self._rows(r"\textbf{{{}}}"), strict=True):
            cells = [_latex(row[0])]
            for j, text in enumerate(row[1:]):
                for symbol, command in (("†", r"$^{\dagger}$"), ("‡", r"$^{\ddagger}$")):
                    text = text.replace(symbol, command)
                shade = round(100 * self._shade(i, j)) // 2 if j < self._shaded() else 0
                cells.append(rf"\cellcolor{{green!{shade}}}{text}" if j < self._shaded() else text)
            rows.append(cells)
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
        for i, row in zip(self._order(), self._rows("<b>{}</b>"), strict=True):
            cells = [f"<th scope=row>{escape(self.methods[i])}</th>"]
            for j, text in enumerate(row[1:]):
                if j >= self._shaded():
                    cells.append(f"<td>{text}</td>")
                    continue
                colour = f"background:{_tone(self._shade(i, j))}"
                hint = self._hint(i, j)
                cells.append(f"<td style='{colour}' title='{hint}'>{text}</td>")
            body.append("<tr>" + "".join(cells) + "</tr>")
        rows = "".join(body)
        return f"<table class=results><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _order(self) -> list[int]:
        return [int(i) for i in np.argsort(self.ranks.mean(axis=1), kind="stable")]

    def _several(self) -> bool:
        return len(self.datasets) > 1

    def _shaded(self) -> int:
        """Number of columns that hold errors: the data sets and, if several, their mean."""
        return len(self.datasets) + self._several()

    def _header(self) -> list[str]:
        more = ["average", "average rank"] if self._several() else ["rank"]
        return [f"method ({self.measure})", *self.datasets, *more]

    def _rows(self, bold: str) -> list[list[str]]:
        """Name, errors with marks, and ranks of every method, best first."""
        averages, ranks = self.average_marks, self.ranks.mean(axis=1)
        found = []
        for i in self._order():
            row = [self.methods[i]]
            row += [
                self._cell(self.means[i, j], self.marks[i][j], bold)
                for j in range(len(self.datasets))
            ]
            if self._several():
                row.append(self._cell(self.average[i], averages[i], bold))
                best = "best" if ranks[i] == ranks.min() and len(self.methods) > 1 else ""
                row.append(bold.format(f"{ranks[i]:.2f}") if best else f"{ranks[i]:.2f}")
            else:
                row.append(f"{ranks[i]:g}")
            found.append(row)
        return found

    def _cell(self, value: float, mark: str, bold: str) -> str:
        text = f"{value:.{self.digits}f}"
        return bold.format(text) if mark == "best" else text + mark

    def _hint(self, i: int, j: int) -> str:
        if j == len(self.datasets):
            return "mean over the data sets"
        return f"rank {self.ranks[i, j]:g}, sd {self.deviations[i, j]:.{self.digits}f}"

    def _shade(self, i: int, j: int) -> float:
        """1 for the best of the column, 0 for the worst, on the scale of ranks."""
        k = len(self.methods)
        ranks = rankdata(self.average) if j == len(self.datasets) else self.ranks[:, j]
        return float((k - ranks[i]) / max(k - 1, 1))


def _tone(shade: float) -> str:
    """Colour of a cell: green for the best, red for the worst, clear in the middle."""
    if shade >= 0.5:
        return f"rgb(40 160 90 / {round(70 * (shade - 0.5))}%)"
    return f"rgb(200 60 50 / {round(50 * (0.5 - shade))}%)"


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
