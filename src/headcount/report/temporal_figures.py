"""Figures of the temporal benchmark: classes over time, shift of the splits, ranks explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from headcount._core.types import Floats, Ints
from headcount.report.figures import COLOURS, new_figure, show_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TICKS = 14  # names on an axis of time
MAX_LEGEND_CHARACTERS = 30  # of a name


def label_strip(periods: list[str], roles: list[str], counts: Any, classes: list[str]) -> Figure:
    """Shares of the classes over time, stacked; a line where the test periods begin."""
    figure = new_figure(9, 2.6)
    axes = figure.add_subplot()
    shares = _shares(np.asarray(counts, dtype=float))
    x = np.arange(len(periods))
    axes.stackplot(x, 100 * shares, labels=_short(classes), colors=_colours(len(classes)), lw=0)
    if "test" in roles:
        axes.axvline(roles.index("test") - 0.5, color="black", lw=1.2, ls="--")
    axes.set_xlim(0, max(len(periods) - 1, 1))
    axes.set_ylim(0, 100)
    axes.set_ylabel("share, %")
    _time_axis(axes, periods)
    show_legend(axes)
    return figure


def composition(
    periods: list[str], roles: list[str], share: Floats, names: list[str], counts: Any
) -> Figure:
    """A class over time, and below it what the class is made of."""
    figure = new_figure(9, 4.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1, 1.2])
    x = np.arange(len(periods))
    above.plot(x, 100 * share, color="black", lw=1.6)
    above.set_ylabel("share of all, %")
    above.set_ylim(bottom=0)
    below.stackplot(
        x,
        100 * _shares(np.asarray(counts, float)),
        labels=_short(names),
        colors=_colours(len(names)),
        lw=0,
    )
    below.set_ylabel("of the class, %")
    below.set_ylim(0, 100)
    below.set_xlim(0, max(len(periods) - 1, 1))
    for axes in (above, below):
        if "test" in roles:
            axes.axvline(roles.index("test") - 0.5, color="black", lw=1.2, ls="--")
    _time_axis(below, periods)
    show_legend(below)
    return figure


def shift_boxes(values: dict[str, Floats], label: str) -> Figure:
    """Distribution of a measure of shift over the splits of each data set; a point a split."""
    figure = new_figure(7, 0.9 + 0.5 * len(values))
    axes = figure.add_subplot()
    names = list(values)
    for i, name in enumerate(names):
        found = values[name][np.isfinite(values[name])]
        if not len(found):
            continue
        axes.boxplot(
            found,
            positions=[i],
            widths=0.5,
            orientation="horizontal",
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": COLOURS[0], "alpha": 0.25},
            medianprops={"color": "black"},
        )
        axes.plot(found, np.full(len(found), i), "o", color=COLOURS[0], ms=3.5, alpha=0.7)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel(label)
    return figure


def rank_panels(truth: Floats, series: dict[str, tuple[Floats, float]]) -> Figure:
    """Rank of the estimate against the rank of the truth, a point a split, a panel a method."""
    figure = new_figure(3.4 * len(series) + 0.6, 3.5)
    n = len(truth)
    panels = figure.subplots(1, len(series), squeeze=False)[0]
    for axes, (name, (estimate, rho)) in zip(panels, series.items(), strict=True):
        axes.plot([0.5, n + 0.5], [0.5, n + 0.5], color="black", lw=1, ls=":")
        axes.plot(rankdata(truth), rankdata(estimate), "o", color=COLOURS[0], ms=4)
        axes.set_title(f"{name}: {rho:.3f}", fontsize=10)
        axes.set_xlabel("rank of the true share")
        axes.set_aspect("equal")
    panels[0].set_ylabel("rank of the estimate")
    return figure


def error_ends(errors: Floats, methods: list[str], least: Ints, most: Ints, what: str) -> Figure:
    """Errors of methods on the least and on the most shifted splits, side by side."""
    figure = new_figure(min(max(6.0, 0.95 * len(methods) + 2), 12), 4.0)
    left, right = figure.subplots(1, 2, sharey=True)
    ends = ((left, least, "least shifted"), (right, most, "most shifted"))
    for c, (axes, rows, title) in enumerate(ends):
        boxes = axes.boxplot(
            [100 * errors[rows, m] for m in range(len(methods))],
            positions=np.arange(len(methods)),
            widths=0.6,
            patch_artist=True,
            medianprops={"color": "black"},
            flierprops={"marker": ".", "ms": 3},
        )
        for box in boxes["boxes"]:
            box.set_facecolor(COLOURS[c])
            box.set_alpha(0.5)
        axes.set_title(f"{title}: {len(rows)} splits", fontsize=10)
        axes.set_xticks(range(len(methods)), methods, rotation=40, ha="right", fontsize=8)
    left.set_ylabel(f"{what}, %")
    left.set_ylim(bottom=0)
    return figure


def _short(names: list[str]) -> list[str]:
    """Names that leave room for the figure beside them."""
    return [
        name
        if len(name) <= MAX_LEGEND_CHARACTERS
        else f"{name[: MAX_LEGEND_CHARACTERS - 1].rstrip(', ')}…"
        for name in names
    ]


def _shares(counts: Floats) -> Floats:
    total = counts.sum(axis=0)
    return np.asarray(counts / np.where(total > 0, total, 1))


def _colours(n: int) -> list[Any]:
    """Colours that can be told apart, more of them where there are many classes."""
    if n <= len(COLOURS):
        return list(COLOURS[:n])
    import matplotlib as mpl

    several = mpl.colormaps["tab20"]
    return [several(i % 20) for i in range(n)]


def _time_axis(axes: Any, periods: list[str]) -> None:
    step = max(1, -(-len(periods) // TICKS))
    places = np.arange(len(periods))[::step]
    axes.set_xticks(places, periods[::step], rotation=30, ha="right", fontsize=8)
