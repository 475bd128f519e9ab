"""Tables of the temporal benchmark: the data, errors with rank correlations, balanced training."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from headcount._core.frame import Frame
from headcount._core.types import Floats
from headcount.data.published import PUBLISHED_SETS
from headcount.measures import rank_correlations
from headcount.report.page import frame_table, published

if TYPE_CHECKING:
    from headcount.study.results import Results

SAME = 0.02  # share by which the counts of a published data set may differ from the paper's


@dataclass(frozen=True)
class Carc:
    """Class-averaged rank correlation, and how many series it is not defined for.

    Attributes
    ----------
    value : mean over the classes whose true share changes; NaN if any of their estimates never does
    undefined : number of these
    rest : mean over the others
    still : classes whose true share never changes, which nobody can rank
    """

    value: float
    undefined: int
    rest: float
    still: int

    @classmethod
    def of(cls, truth: Floats, estimates: Floats) -> Carc:
        """CARC of estimates with a row a period."""
        moves = np.ptp(truth, axis=0) > 1e-12
        found = rank_correlations(truth, estimates)[moves]
        undefined = int(np.isnan(found).sum())
        known = found[~np.isnan(found)]
        rest = float(known.mean()) if len(known) else np.nan
        value = np.nan if undefined or not len(found) else rest
        return cls(value, undefined, rest, int((~moves).sum()))

    def __str__(self) -> str:
        if not np.isnan(self.value):
            return f"{self.value:.3f}"
        others = "" if np.isnan(self.rest) else f"; rest {self.rest:.3f}"
        return f"undefined ({self.undefined}{others})"


def main_methods(results: Results) -> list[str]:
    """Methods with standard training that were run on every data set, in the order of the study."""
    named = [m["name"] for m in results.provenance["study"]["methods"] if not m.get("balances")]
    return [name for name in dict.fromkeys(named) if name not in _failed(results)]


def _failed(results: Results) -> set[str]:
    """Methods that failed on some data set or seed, so that their means compare with no other."""
    frame = results.frame
    return set(frame["method"][frame["failure"] != ""].tolist())


def series_of(results: Results, dataset: str, method: str) -> Frame:
    """Rows of a method on a data set, with the first seed, in order of time."""
    frame = results.frame
    seed = results.provenance["study"]["seeds"][0]
    mine = (frame["dataset"] == dataset) & (frame["method"] == method) & (frame["seed"] == seed)
    label = frame["selected_by"][mine]
    rows = np.flatnonzero(mine)[label == label[0]] if len(label) else np.flatnonzero(mine)
    return frame.rows(rows[np.argsort(frame["bag"][rows], kind="stable")])


def shares_of(rows: Frame, classes: list[str], what: str = "estimate") -> Floats:
    """Matrix of true or estimated shares, a row a period."""
    return np.column_stack([rows[f"{what}:{c}"] for c in classes])


def mean_errors(results: Results, measure: str, methods: list[str]) -> Floats:
    """Mean error of methods (rows) on data sets (columns)."""
    part = results.by(measure)
    found = [
        [
            part[measure][(part["method"] == m) & (part["dataset"] == d)].mean()
            for d in results.datasets
        ]
        for m in methods
    ]
    return np.array(found)


def carc_table(results: Results, methods: list[str]) -> list[list[Carc]]:
    """CARC of methods (rows) on data sets (columns)."""
    table = []
    for method in methods:
        row = []
        for name, about in results.provenance["datasets"].items():
            rows = series_of(results, name, method)
            truth = shares_of(rows, about["classes"], "true")
            row.append(Carc.of(truth, shares_of(rows, about["classes"])))
        table.append(row)
    return table


def average_ranks(values: Floats) -> Floats:
    """Mean rank of methods (rows) over data sets; less is better, ties share, undefined is last.

    Examples
    --------
    >>> average_ranks(np.array([[1.0, 3.0], [2.0, 3.0], [np.nan, 1.0]])).tolist()
    [1.75, 2.25, 2.0]
    """
    order = np.where(np.isnan(values), np.inf, values)
    return np.asarray(rankdata(order, axis=0).mean(axis=1))


def data_table(results: Results) -> str:
    """Table 1: windows, classes and sizes, with the published counts where the data are those."""
    header = ["data set", "training", "test", "every", "classes", "# training", "# test"]
    header += ["splits", "smallest", "largest"]
    rows = []
    for name, about in results.provenance["datasets"].items():
        story = about["temporal"]
        theirs = PUBLISHED_SETS.get(story.get("published") or "")
        train, test = _counts(story)
        windows = [_window(story, "train"), _window(story, "test")]
        sizes = [
            _beside(train, None if theirs is None else theirs.train),
            _beside(int(test.sum()), None if theirs is None else theirs.test),
        ]
        about_splits = [str(len(test)), f"{test.min():,}", f"{test.max():,}"]
        every, classes = story["windows"]["every"], str(len(about["classes"]))
        rows.append([name, *windows, every, classes, *sizes, *about_splits])
    beside = any("(" in size for row in rows for size in row[5:7])
    note = "<p class=note>In brackets: the paper's counts.</p>" if beside else ""
    return note + frame_table(header, rows)


def _window(story: dict[str, Any], role: str) -> str:
    """First and last moment of a window; the first and last period where an end is open."""
    mine = [p for p, r in zip(story["periods"], story["roles"], strict=True) if r == role]
    first, last = story["windows"][role]
    return f"{first or mine[0]} to {last or mine[-1]}"


def _counts(story: dict[str, Any]) -> tuple[int, Any]:
    """Number of training items, and of the items of each test split."""
    counts, roles = np.sum(story["counts"], axis=0), np.array(story["roles"])
    return int(counts[roles == "train"].sum()), counts[roles == "test"]


def other_counts(results: Results) -> dict[str, str]:
    """Published data sets whose counts are not the paper's, with what they are."""
    found = {}
    for name, about in results.provenance["datasets"].items():
        theirs = PUBLISHED_SETS.get(about["temporal"].get("published") or "")
        train, test = _counts(about["temporal"])
        if theirs is None:
            continue
        pairs = ((train, theirs.train), (int(test.sum()), theirs.test))
        if any(abs(ours - their) > SAME * their for ours, their in pairs):
            found[name] = f"{train:,} and {test.sum():,}, not {theirs.train:,} and {theirs.test:,}"
    return found


def _beside(ours: int, theirs: int | None) -> str:
    return f"{ours:,}" + ("" if theirs is None else f" ({theirs:,})")


def left_out_list(results: Results) -> str:
    """What was read and what fell outside, for each data set."""
    parts = []
    for name, about in results.provenance["datasets"].items():
        story = about["temporal"]
        said = [f"{n:,} {why}" for why, n in story["read"]]
        said += [f"{n:,} {why}" for why, n in story["outside"]]
        said += [
            f"{n:,} of the class {c!r}, which is too rare in training, dropped"
            for c, n in story["rare"]
        ]
        said += [
            f"{taken:,} of {there:,} {part} items drawn"
            for part, (taken, there) in story["drawn"].items()
            if taken < there
        ]
        said += story["notes"]
        parts.append(f"<li><b>{escape(name)}</b>: {escape('; '.join(said))}.</li>")
    return f"<h3>What was read, and what was left out</h3><ul>{''.join(parts)}</ul>"


def errors_table(results: Results, methods: list[str]) -> str:
    """Table 2: errors in percent and CARC, with average ranks and the published numbers."""
    theirs = _published_values()
    parts = []
    for measure in results.measures:
        means = mean_errors(results, measure, methods)
        cells = [[f"{100 * v:.2f}" for v in row] for row in means]
        kind = "rae_percent" if measure == "rae" else measure
        parts.append(f"<h4>{escape(measure.upper())}, %</h4>")
        parts.append(_ranked(results, methods, cells, means, theirs.get(kind, {}), 2))
    carc = carc_table(results, methods)
    values = np.array([[c.value for c in row] for row in carc])
    cells = [[str(c) for c in row] for row in carc]
    parts.append("<h4>CARC</h4>")
    parts.append(_ranked(results, methods, cells, -values, theirs.get("carc", {}), 3))
    still = {n: c.still for n, c in zip(results.datasets, carc[0], strict=True) if c.still}
    if still:
        words = ", ".join(f"{n} of {escape(name)}" for name, n in still.items())
        parts.append(
            f"<p class=note>Classes whose true share never changes, and that no rank correlation "
            f"is defined for: {words}. CARC is the mean over the others.</p>"
        )
    return "".join(parts)


def _ranked(
    results: Results,
    methods: list[str],
    cells: list[list[str]],
    order: Floats,
    theirs: dict[tuple[str, str], float],
    digits: int,
) -> str:
    """Methods by data sets with average ranks; the best of each column is bold."""
    abouts = results.provenance["datasets"].values()
    columns = [str(about["temporal"].get("published")) for about in abouts]
    ranks = average_ranks(order)
    least = np.where(np.isnan(order), np.inf, order).min(axis=0)
    bold = {(int(i), int(d) + 1) for i, d in zip(*np.nonzero(order == least), strict=True)}
    bold |= {(int(i), len(columns) + 1) for i in np.flatnonzero(ranks == ranks.min())}
    rows = []
    for i, method in enumerate(methods):
        beside = [theirs.get((method, column)) for column in columns]
        told = [
            cell + ("" if value is None else f" ({_number(value, digits)})")
            for cell, value in zip(cells[i], beside, strict=True)
        ]
        rows.append([method, *told, f"{ranks[i]:.2f}"])
    last = "average rank" if len(columns) > 1 else "rank"
    return frame_table(["method", *results.datasets, last], rows, bold)


def _number(value: float, digits: int) -> str:
    return "undefined" if np.isnan(value) else f"{value:.{digits}f}"


def _published_values() -> dict[str, dict[tuple[str, str], float]]:
    """Published numbers by measure, then by method and data set."""
    table = published("temporal")
    assert table is not None  # it comes with the package
    found: dict[str, dict[tuple[str, str], float]] = {}
    for i in range(table.n_rows):
        mine = found.setdefault(str(table["measure"][i]), {})
        for column in table.columns[2:-1]:
            mine[str(table["method"][i]), column] = float(table[column][i])
    return found


def balanced_table(results: Results) -> str:
    """Table 3: standard and balanced training of the same methods; '' where there is no twin."""
    twins = {
        m["balances"]: m["name"]
        for m in results.provenance["study"]["methods"]
        if m.get("balances") and not {m["name"], m["balances"]} & _failed(results)
    }
    measure = results.measures[0]
    if not twins:
        return ""
    standard = mean_errors(results, measure, list(twins))
    balanced = mean_errors(results, measure, list(twins.values()))
    theirs = _published_balanced()
    header = [
        "method",
        "standard",
        "balanced",
        "change",
        "published: standard",
        "balanced",
        "change",
    ]
    parts = []
    for d, (name, about) in enumerate(results.provenance["datasets"].items()):
        rows = []
        for i, method in enumerate(twins):
            row = [method, *_change(100 * standard[i, d], 100 * balanced[i, d])]
            known = theirs.get((str(about["temporal"].get("published")), method))
            rows.append(row + (_change(*known) if known else []))
        width = max(len(row) for row in rows)
        whole = [row + [""] * (width - len(row)) for row in rows]
        parts.append(f"<h4>{escape(name)}</h4>" + frame_table(header[:width], whole))
    return "".join(parts)


def _change(standard: float, balanced: float) -> list[str]:
    share = f"{balanced / standard - 1:+.1%}" if standard > 0 else "—"
    return [f"{standard:.2f}", f"{balanced:.2f}", share]


def _published_balanced() -> dict[tuple[str, str], tuple[float, float]]:
    table: Any = published("temporal_balanced")
    columns = ("dataset", "method", "rae_standard", "rae_balanced")
    rows = zip(*(table[c].tolist() for c in columns), strict=True)
    return {(str(d), str(m)): (float(a), float(b)) for d, m, a, b in rows}
