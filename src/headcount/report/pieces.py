"""Pieces that the pages of studies and of labs share: pairwise tests, figures of errors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Any

import numpy as np

from headcount._core.frame import Frame
from headcount._core.types import Floats
from headcount.inference.significance import nemenyi, wilcoxon_holm
from headcount.report import figures
from headcount.report.page import drawn, frame_table

MAX_CLASS_FIGURES = 5  # with more classes there is one figure for all
LEVELS = (0.01, 0.001)  # of the tweet paper's Tables 6 and 7
PAIRS_NOTE = (
    "> the method in the row is better than the one in the column (Wilcoxon signed-rank test, "
    "two-sided, p < 0.01); ≫ p < 0.001; < and ≪ it is worse; ≈ no significant difference. The "
    "direction is that of the signed ranks; * marks pairs whose mean errors say the opposite."
)


def rank_diagram(errors: Floats, names: list[str], measure: str) -> str:
    """Critical-difference diagram of the average ranks."""
    ranks = nemenyi(errors, names)
    return drawn(
        lambda: figures.critical_difference(ranks),
        f"Average rank over the {len(errors):,} bags by {measure.upper()}; bars join methods that "
        "Nemenyi's test cannot tell apart at 5 %.",
    )


def sign(p: float, better: bool, *, conflict: bool = False) -> str:
    """Sign of one test from the row's side, as in the tweet paper."""
    if p >= LEVELS[0]:
        return "≈"
    strong = p < LEVELS[1]
    symbol = ("≫" if strong else ">") if better else ("≪" if strong else "<")
    return symbol + ("*" if conflict else "")


def pair_signs(errors: Floats, names: list[str], column: str) -> dict[tuple[str, str], str]:
    """Sign of every ordered pair, by the p-values in `column` (p or p_holm)."""
    tests = wilcoxon_holm(errors, names)
    found: dict[tuple[str, str], str] = {}
    for i in range(tests.n_rows):
        a, b, p = str(tests["method"][i]), str(tests["other"][i]), float(tests[column][i])
        conflict = bool(tests["conflict"][i])
        found[a, b] = sign(p, tests["better"][i] == a, conflict=conflict)
        found[b, a] = sign(p, tests["better"][i] == b, conflict=conflict)
    return found


def pairs(errors: Floats, names: list[str], order: Sequence[str]) -> str:
    """Matrices of pairwise tests: uncorrected, and corrected by Holm's rule beside them."""
    parts = [f"<p class=note>{escape(PAIRS_NOTE)}</p><div class=beside>"]
    for column, title in (("p", "Uncorrected"), ("p_holm", "Holm's correction")):
        signs = pair_signs(errors, names, column)
        rows = [[a, *["-" if a == b else signs[a, b] for b in order]] for a in order]
        parts.append(f"<div><h4>{title}</h4>{frame_table(['', *order], rows)}</div>")
    return "".join([*parts, "</div>"])


def pairs_details(errors: Floats, names: list[str], order: Sequence[str]) -> str:
    """The matrices and every difference with its p-values, folded away."""
    tests = wilcoxon_holm(errors, names)
    cells = [
        [
            f"{tests['method'][i]} - {tests['other'][i]}",
            f"{tests['difference'][i]:+.5f}",
            f"{tests['effect'][i]:+.3f}",
            f"{tests['p'][i]:.2g}",
            f"{tests['p_holm'][i]:.2g}",
            "means and ranks differ" if tests["conflict"][i] else "",
        ]
        for i in range(tests.n_rows)
    ]
    header = ["pair", "difference of means", "rank correlation", "p", "p, Holm", ""]
    return (
        "<details open><summary>Pairwise Wilcoxon signed-rank tests</summary>"
        + pairs(errors, names, order)
        + "</details><details><summary>Differences and p-values</summary>"
        "<p class=note>Row minus column; the rank correlation is negative where the first has the "
        "smaller errors.</p>" + frame_table(header, cells) + "</details>"
    )


def shift_figures(
    frame: Frame,
    measure: str,
    training: Any,
    *,
    width: float | None = None,
    span: tuple[float, float] | None = None,
    span_of: str = "",
) -> str:
    """Error by the shift of a bag, and on the least and most shifted bags."""
    name = measure.upper()
    lines = f" The dotted lines enclose the shifts of {span_of}." if span else ""
    return drawn(
        lambda: figures.error_by_shift(
            frame, measure, training, width=width, log=measure != "ae", span=span
        ),
        f"{name} by the shift between a bag and the training prevalence; behind it, how many "
        f"bags.{lines}",
    ) + drawn(
        lambda: figures.shift_ends(frame, measure, training),
        f"{name} on the least and the most shifted fifth of the bags.",
    )


def estimate_figures(frame: Frame, labels: Sequence[str]) -> str:
    """Diagonals and boxes of the bias: for each class if they are few, else pooled."""
    if len(labels) > MAX_CLASS_FIGURES:
        return drawn(
            lambda: figures.diagonal(frame),
            f"Estimated against true share, the {len(labels)} classes pooled.",
        ) + drawn(
            lambda: figures.bias_boxes(frame, pooled=True),
            f"Signed error by method, the {len(labels)} classes pooled; points are outliers.",
        )
    shown = labels[1:] if len(labels) == 2 else labels  # of two classes one mirrors the other
    found = [
        drawn(partial(figures.diagonal, frame, c), f"Estimated against true share of {c}.")
        for c in shown
    ]
    boxes = drawn(
        lambda: figures.bias_boxes(frame),
        "Signed error (estimate minus truth) of each class, by method; points are outliers.",
    )
    return "".join([*found, boxes])


def simplex_figure(frame: Frame, measure: str, names: Sequence[str], labels: list[str]) -> str:
    """Where on the simplex of three classes the best method errs."""
    means = [frame[measure][frame["method"] == name].mean() for name in names]
    best = names[int(np.argmin(means))]
    part = frame.rows(frame["method"] == best)
    truth = np.column_stack([part[f"true:{label}"] for label in labels])
    points, where = np.unique(truth.round(6), axis=0, return_inverse=True)
    values = np.bincount(where.ravel(), part[measure]) / np.bincount(where.ravel())
    step = len(points) // 3000 + 1  # a page should stay light
    shown = "" if step == 1 else f" Every {step}th of {len(points):,} points is drawn."
    return drawn(
        lambda: figures.ternary(points[::step], labels, values[::step]),
        f"{measure.upper()} of {best} by the true prevalence of the bag.{shown}",
    )
