"""Figures of the papers, as matplotlib `Figure` objects; nothing global is touched.

Needs the extra ``headcount[plot]``. Save one by ``figure.savefig("x.svg")``; `to_svg` gives text.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount._core.frame import Frame
from headcount._core.types import Bools, Floats
from headcount.exceptions import HeadcountError, InputError
from headcount.inference.significance import Nemenyi

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Training = Floats | Mapping[str, Mapping[str, float]]  # for several data sets: shares by name
# Okabe and Ito's colours, which people with colour blindness can tell apart.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555", "#B8A800"]


def critical_difference(result: Nemenyi) -> Figure:
    """Critical-difference diagram: average ranks, bars join methods that do not differ."""
    k = len(result.names)
    order = np.argsort(result.ranks, kind="stable")
    half = -(-k // 2)
    groups = result.groups()
    top = 1.2 + 0.22 * len(groups)
    beside = 0.6 + 0.075 * max(len(name) for name in result.names)  # inches for a name
    figure = new_figure(4 + 2 * beside, 0.8 + 0.28 * half + 0.16 * len(groups))
    figure.set_layout_engine("none")
    axes = figure.add_axes((0.02, 0.02, 0.96, 0.96))
    axes.set_axis_off()
    unit = (k + 0.2) / 4  # ranks an inch
    axes.set_xlim(0.4 - beside * unit, k + 0.6 + beside * unit)
    axes.set_ylim(-top - 0.6 * half, 1.9)
    axes.plot([1, k], [0, 0], color="black", lw=1)
    for rank in range(1, k + 1):
        axes.plot([rank, rank], [0, 0.2], color="black", lw=1)
        axes.text(rank, 0.3, str(rank), ha="center", va="bottom", fontsize=9)
    width = result.critical_distance
    axes.plot([1, 1 + width], [1.35, 1.35], color="black", lw=2)
    axes.text(1 + width / 2, 1.45, f"CD = {width:.2f}", ha="center", va="bottom", fontsize=9)
    for place, j in enumerate(order):
        left = place < half
        row = place if left else k - 1 - place
        y = -top - 0.6 * row
        rank, edge = result.ranks[j], 0.4 if left else k + 0.6
        axes.plot([rank, rank, edge], [0, y, y], color="black", lw=0.8)
        label = f"{result.names[j]}  {rank:.2f}" if left else f"{rank:.2f}  {result.names[j]}"
        side = "right" if left else "left"
        gap = 0.05 * unit if left else -0.05 * unit
        axes.text(edge - gap, y, label, ha=side, va="center", fontsize=9)
    ordered = np.sort(result.ranks)
    for level, (i, j) in enumerate(groups):
        y = -0.35 - 0.22 * level
        axes.plot([ordered[i] - 0.05, ordered[j] + 0.05], [y, y], color=COLOURS[1], lw=3)
    return figure


def error_by_shift(
    frame: Frame,
    measure: str,
    training: Training,
    *,
    n_bins: int = 20,
    width: float | None = None,
    log: bool = False,
    span: tuple[float, float] | None = None,
) -> Figure:
    """Mean error against the shift of a bag from the training prevalence, and how many bags.

    The shift is the mean absolute difference of the bag's true prevalences from `training`. Bins
    have the given `width`, or there are `n_bins` of them. `span` is marked by two dotted lines.
    An error of zero stays visible on a logarithmic axis, below the smallest other one.
    """
    methods, shift = _methods(frame), _shift(frame, training)
    edges = _shift_edges(float(shift.max()), n_bins, width)
    n_bins = len(edges) - 1
    figure = new_figure(7, 4.2)
    axes = figure.add_subplot()
    behind = axes.twinx()
    first = frame["method"] == methods[0]
    behind.hist(shift[first], bins=edges.tolist(), color="#2e9e5b", alpha=0.25)
    behind.set_ylabel("bags")
    axes.set_zorder(behind.get_zorder() + 1)
    axes.patch.set_visible(False)
    cell = np.clip(np.digitize(shift, edges) - 1, 0, n_bins - 1)
    drawn = []
    for c, name in enumerate(methods):
        mine = frame["method"] == name
        counts = np.bincount(cell[mine], minlength=n_bins)
        totals = np.bincount(cell[mine], frame[measure][mine], n_bins)
        middle = (edges[:-1] + edges[1:]) / 2
        seen = counts > 0
        means = totals[seen] / counts[seen]
        axes.plot(middle[seen], means, label=name, **_line(c))
        drawn.append(means)
    if log:
        _log_axis(axes, np.concatenate(drawn))
    for end in span or ():
        axes.axvline(end, color="black", lw=1, ls=":")
    axes.set_xlabel("shift from the training prevalence (AE)")
    axes.set_ylabel(measure.upper())
    show_legend(axes, 1.2)
    return figure


def _shift_edges(most: float, n_bins: int, width: float | None) -> Floats:
    if width is None:
        return np.linspace(0, most * (1 + 1e-9) + 1e-12, n_bins + 1)
    n_bins = max(1, int(np.ceil(most / width - 1e-9)))
    return np.linspace(0, n_bins * width, n_bins + 1)


def _log_axis(axes: Any, values: Floats) -> None:
    """Logarithmic scale; where there are zeros, a short linear piece at the bottom holds them."""
    positive = values[values > 0]
    if len(positive) == len(values):
        axes.set_yscale("log")
    elif len(positive):
        axes.set_yscale("symlog", linthresh=float(positive.min()), linscale=0.3)
        axes.set_ylim(bottom=-0.05 * float(positive.min()))


def diagonal(frame: Frame, label: str | None = None, *, n_bins: int = 20) -> Figure:
    """Mean estimated against true prevalence of one class, with one deviation either way.

    Without a label, all classes are pooled.
    """
    methods = _methods(frame)
    labels = _labels(frame) if label is None else [label]
    true = np.concatenate([frame[f"true:{c}"] for c in labels])
    estimate = np.concatenate([frame[f"estimate:{c}"] for c in labels])
    owner = np.tile(frame["method"], len(labels))
    cell = np.clip((true * n_bins).astype(int), 0, n_bins - 1)
    figure = new_figure(5.5, 5.2)
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color="black", lw=1, ls=":")
    for c, name in enumerate(methods):
        mine = owner == name
        counts = np.bincount(cell[mine], minlength=n_bins)
        seen = counts > 0
        at, mean, square = (
            np.bincount(cell[mine], v[mine], n_bins)[seen] / counts[seen]
            for v in (true, estimate, estimate**2)
        )
        spread = np.sqrt(np.maximum(square - mean**2, 0))
        axes.plot(at, mean, label=name, **_line(c))
        if len(methods) <= 6:  # more bands hide each other
            axes.fill_between(at, mean - spread, mean + spread, color=COLOURS[c % 8], alpha=0.12)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.set_xlabel(f"true prevalence{'' if label is None else f' of {label}'}")
    axes.set_ylabel("estimated prevalence")
    show_legend(axes)
    return figure


def bias_boxes(frame: Frame, *, pooled: bool = False) -> Figure:
    """Box plots of the signed error (estimate minus truth), a panel a class, a box a method.

    Boxes hold the middle half, whiskers reach to the last value within 1.5 times its width, and
    what lies beyond is drawn as points. `pooled` puts all classes into one panel.
    """
    methods, labels = _methods(frame), _labels(frame)
    panels: list[list[str]] = [labels] if pooled else [[label] for label in labels]
    wide = min(max(5.0, 0.5 * len(methods) + 2), 12)
    figure = new_figure(wide, 1.2 + 2.1 * len(panels))
    for n, (axes, classes) in enumerate(
        zip(figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0], panels, strict=True)
    ):
        error = np.concatenate([frame[f"estimate:{c}"] - frame[f"true:{c}"] for c in classes])
        owner = np.tile(frame["method"], len(classes))
        boxes = axes.boxplot(
            [error[owner == m] for m in methods],
            positions=np.arange(len(methods)),
            widths=0.6,
            patch_artist=True,
            medianprops={"color": "black"},
            flierprops={"marker": ".", "ms": 2, "mec": "#777777", "rasterized": True},
        )
        for c, box in enumerate(boxes["boxes"]):
            box.set_facecolor(COLOURS[c % 8])
        axes.axhline(0, color="black", lw=1, ls=":")
        axes.set_ylabel("estimate - truth")
        if not pooled:
            axes.set_title(str(labels[n]), fontsize=9, loc="left")
    axes.set_xticks(range(len(methods)), methods, rotation=30, ha="right")
    return figure


def shift_ends(frame: Frame, measure: str, training: Training, *, share: float = 0.2) -> Figure:
    """Mean error on the least and on the most shifted bags, side by side."""
    methods, shift = _methods(frame), _shift(frame, training)
    low, high = np.quantile(shift, [share, 1 - share])
    figure = new_figure(min(max(5.0, 0.6 * len(methods) + 2), 11), 4.0)
    axes = figure.add_subplot()
    ends = {f"least shifted {share:.0%}": shift <= low, f"most shifted {share:.0%}": shift >= high}
    for c, (name, part) in enumerate(ends.items()):
        heights = [frame[measure][part & (frame["method"] == m)].mean() for m in methods]
        axes.bar(
            np.arange(len(methods)) + 0.4 * c - 0.2, heights, 0.38, label=name, color=COLOURS[c]
        )
    axes.set_xticks(range(len(methods)), methods, rotation=30, ha="right")
    axes.set_ylabel(measure.upper())
    show_legend(axes)
    return figure


def ternary(points: Floats, labels: list[str], values: Floats | None = None) -> Figure:
    """Points of the simplex of three classes in a triangle, coloured by `values` if given."""
    points = np.asarray(points, dtype=float)
    if points.ndim != 2 or points.shape[1] != 3 or len(labels) != 3:
        raise InputError(f"a ternary plot needs three classes, got shape {points.shape}.")
    corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
    flat = points @ corners
    figure = new_figure(5.5, 4.8)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.plot(*corners[[0, 1, 2, 0]].T, color="black", lw=1)
    for step in np.arange(0.2, 1, 0.2):
        for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            ends = [
                (1 - step) * corners[a] + step * corners[b],
                (1 - step) * corners[a] + step * corners[c],
            ]
            axes.plot(*np.array(ends).T, color="#bbbbbb", lw=0.5)
    colour: Any = COLOURS[0] if values is None else values
    dots = axes.scatter(flat[:, 0], flat[:, 1], c=colour, s=12, zorder=3)
    if values is not None:
        figure.colorbar(dots, ax=axes, shrink=0.7)
    for corner, label, side in zip(corners, labels, ("top", "top", "bottom"), strict=True):
        axes.text(corner[0], corner[1], label, ha="center", va=side)
    return figure


def trend(
    groups: list[str],
    share: Floats,
    low: Floats,
    high: Floats,
    *,
    flagged: Bools,
    counted: Floats,
    truth: Floats | None = None,
    joined: bool = True,
) -> Figure:
    """Shares of one class in groups, with bounds; a band if the groups follow each other in time.

    Groups that are flagged have hollow marks. `counted` is drawn dotted, `truth` as crosses.
    """
    figure = new_figure(9, 3.4 if joined else 3.8)
    axes = figure.add_subplot()
    x = np.arange(len(groups))
    blue, other = COLOURS[0], COLOURS[1]
    band = joined and len(groups) > 1
    if band:
        axes.fill_between(x, 100 * low, 100 * high, color=blue, alpha=0.2, lw=0)
        axes.plot(x, 100 * share, color=blue, lw=1.5)
        axes.plot(x, 100 * counted, color=other, lw=1.2, ls=":", label="counted")
    else:
        axes.vlines(x, 100 * low, 100 * high, color=blue, lw=3, alpha=0.4)
        axes.plot(x, 100 * counted, color=other, ls="", marker="_", ms=9, label="counted")
    axes.plot(x[~flagged], 100 * share[~flagged], "o", color=blue, ms=4, label="estimated")
    if flagged.any():
        axes.plot(
            x[flagged],
            100 * share[flagged],
            "o",
            mfc="none",
            mec=blue,
            ms=5,
            label="flagged",
        )
    if truth is not None:
        axes.plot(x, 100 * truth, "x", color="black", ms=5, label="true")
    step = max(1, -(-len(groups) // (14 if joined else 30)))
    axes.set_xticks(x[::step], groups[::step], rotation=30 if band else 60, ha="right", fontsize=8)
    axes.set_ylabel("share, %")
    drawn = np.concatenate([low, high, counted, [] if truth is None else truth])
    top, bottom = float(np.nanmax(drawn)), float(np.nanmin(drawn))
    room = max(0.05 * (top - bottom), 0.005)
    axes.set_ylim(100 * max(0.0, bottom - room), 100 * min(1.0, top + room))
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=8, frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(0, 1.0))
    return figure


def to_svg(figure: Figure) -> str:
    """Text of an SVG image, to be put into a page as it is; the same for the same figure."""
    import matplotlib as mpl

    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "headcount", "svg.fonttype": "none"}):
        figure.savefig(
            out, format="svg", dpi=150, metadata={"Date": None, "Creator": None}, transparent=True
        )
    text = out.getvalue()
    return text[text.index("<svg") :]


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise HeadcountError("figures need matplotlib: pip install 'headcount[plot]'.") from None
    return Figure(figsize=(width, height), layout="constrained")


def _methods(frame: Frame) -> list[str]:
    return list(dict.fromkeys(frame["method"].tolist()))


def _labels(frame: Frame) -> list[str]:
    return [c.removeprefix("true:") for c in frame if c.startswith("true:")]


def _shift(frame: Frame, training: Training) -> Floats:
    names = _labels(frame)
    truth = np.column_stack([frame[f"true:{name}"] for name in names])
    if not isinstance(training, Mapping):
        reference = np.asarray(training, dtype=float)
        if reference.shape != truth.shape[1:]:
            raise InputError(f"training has {reference.size} shares for {truth.shape[1]} classes.")
        return np.asarray(np.abs(truth - reference).mean(axis=1))
    shift = np.empty(len(truth))
    for dataset, shares in training.items():
        mine = frame["dataset"] == dataset
        columns = [names.index(name) for name in shares]
        shift[mine] = np.abs(truth[np.ix_(mine, columns)] - list(shares.values())).mean(axis=1)
    return shift


def _line(c: int) -> dict[str, Any]:
    """Colour and dash of the c-th line: eight colours, then the same with other dashes."""
    return {"color": COLOURS[c % 8], "ls": ["-", "--", "-.", ":"][(c // 8) % 4], "lw": 1.6}


def show_legend(axes: Any, at: float = 1.0) -> None:
    """A legend beside the axes."""
    axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(at, 1))
