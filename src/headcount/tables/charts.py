"""Series of shares and their charts as plain HTML and SVG: a band over time, bars of groups.

The picture stretches with the page while dots and letters keep their size: lines do not scale with
the picture, dots are lines without length, and all text is HTML.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from headcount._core.types import Bools, Floats, Ints

WIDE, HIGH = 1000, 200  # of the picture, in its own units (layout)
# Shares at the top of an axis (layout).
TOPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
CHART_POINTS = 120  # points of a chart, beyond which groups are averaged (layout)


def percent(share: float) -> str:
    """A share in percent, with one decimal below ten."""
    if np.isnan(share):
        return "?"
    if share == 0:
        return "0 %"
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"


def between(low: float, high: float, word: str = "to") -> str:
    """An interval in words."""
    if np.isnan(low) or np.isnan(high):
        return "how sure is not known"
    return f"{percent(low).removesuffix(' %')} {word} {percent(high)}"


@dataclass(frozen=True, eq=False)
class Series:
    """Shares of one class in groups, in the order to show.

    Attributes
    ----------
    at : place of each group in time, in whole periods
    step : groups that a point represents
    """

    names: list[str]
    at: Ints
    sizes: Ints
    share: Floats
    low: Floats
    high: Floats
    counted: Floats
    flagged: Bools
    changed: Bools
    truth: Floats | None = None
    step: int = 1

    def top(self) -> float:
        """Highest value that is drawn."""
        values = [self.high, self.share, self.counted]
        values += [] if self.truth is None else [self.truth]
        return float(np.nanmax(np.concatenate(values)))

    def thinned(self, share: Floats, low: Floats, high: Floats, changed: Bools) -> Series:
        """Neighbours together, with these shares, flagged where most of them are."""
        n = len(self.names)
        starts = run_starts(n)
        last = np.append(starts[1:], n) - 1
        weight = np.add.reduceat(self.sizes, starts)

        def mean(values: Floats | Bools) -> Floats:
            total = np.add.reduceat(values.astype(float) * self.sizes, starts)
            return np.asarray(total / weight)

        return Series(
            [self.names[a] for a in starts],
            (self.at[starts] + self.at[last]) // 2,
            weight,
            share,
            low,
            high,
            counted=mean(self.counted),
            flagged=mean(self.flagged) > 0.5,
            changed=changed,
            truth=None if self.truth is None else mean(self.truth),
            step=-(-n // CHART_POINTS),
        )

    def ordered(self) -> Series:
        """The same with the highest share first."""
        order = np.argsort(-self.share, kind="stable")
        arrays: dict[str, Any] = {
            f.name: getattr(self, f.name)[order]
            for f in fields(self)
            if isinstance(getattr(self, f.name), np.ndarray)
        }
        return replace(self, names=[self.names[i] for i in order], **arrays)

    def tip(self, i: int) -> str:
        """The numbers of one group."""
        many = f"{self.step} from " if self.step > 1 else ""
        text = (
            f"{many}{self.names[i]}: {percent(self.share[i])} "
            f"({between(self.low[i], self.high[i])}), {self.sizes[i]:,} rows; counting would say "
            f"{percent(self.counted[i])}"
        )
        if self.truth is not None and not np.isnan(self.truth[i]):
            text += f"; the truth is {percent(self.truth[i])}"
        text += "; differs from the beginning beyond chance" * bool(self.changed[i])
        return text + "; with a warning" * bool(self.flagged[i])


def runs_of(marks: Bools) -> list[tuple[int, int]]:
    """First and last places of runs of marks; a single unmarked place does not interrupt."""
    runs: list[tuple[int, int]] = []
    for i in np.flatnonzero(marks).tolist():
        if runs and i - runs[-1][1] <= 2:
            runs[-1] = (runs[-1][0], i)
        else:
            runs.append((i, i))
    return runs


def run_starts(n: int) -> Ints:
    """Starts of the runs of neighbours that are averaged."""
    return np.arange(CHART_POINTS) * n // CHART_POINTS


def asset(name: str) -> str:
    """Text of a style sheet or script of the page."""
    return (resources.files("headcount.tables") / "assets" / name).read_text("utf8")


def scale_top(highest: float) -> float:
    """Upper end of a scale that begins at zero."""
    return next((top for top in TOPS if highest <= top * 1.001), 1.0)


def time_chart(thin: Series, top: float) -> str:
    """Shares over time on a scale from zero to `top`; where periods are missing there is a gap."""
    first, span = int(thin.at[0]), max(1, int(thin.at[-1] - thin.at[0]))
    x = WIDE * (thin.at - first) / span if len(thin.names) > 1 else np.array([WIDE / 2])
    gap = 1 if thin.step == 1 else 2 * thin.step
    runs = np.split(np.arange(len(x)), np.flatnonzero(np.diff(thin.at) > gap) + 1)
    body = [_grid(top)]
    body += [_band(x[run], thin.low[run], thin.high[run], top) for run in runs]
    body += [_line(x[run], thin.counted[run], top, "count") for run in runs]
    body += [_line(x[run], thin.share[run], top, "est") for run in runs]
    begins = [x[first] for first, _ in runs_of(thin.changed)]
    body += [f"<line class=since x1={a:.1f} x2={a:.1f} y1=0 y2={HIGH} />" for a in begins]
    body += [_dot(x[i], thin, i, top) for i in range(len(x))]
    body += _hits(x, thin)
    picture = f'<svg viewBox="0 0 {WIDE} {HIGH}" preserveAspectRatio="none">{"".join(body)}</svg>'
    return f"<div class=chart>{_y_labels(top)}{picture}{_x_labels(thin, x)}</div>"


def bar_chart(series: Series, top: float) -> str:
    """A rail for every group: the interval, the share, and what counting would say."""
    rows = []
    for i, name in enumerate(series.names):
        low, high = np.nan_to_num(series.low[i], nan=0.0), np.nan_to_num(series.high[i], nan=1.0)
        left, right = 100 * low / top, 100 * min(high, top) / top
        mark = " ○" * bool(series.flagged[i])
        rows.append(
            f"<span class=name>{escape(name)}{mark}</span>"
            f'<span class="rail hit{" changed" * bool(series.changed[i])}" '
            f'title="{escape(series.tip(i), quote=True)}">'
            f"<b style='left:{left:.1f}%;width:{right - left:.1f}%'></b>"
            f"<u style='left:{100 * series.counted[i] / top:.1f}%'></u>"
            f"<i style='left:{100 * series.share[i] / top:.1f}%'></i>{_true_mark(series, i, top)}"
            "</span>"
            f"<span>{percent(series.share[i])} ({between(series.low[i], series.high[i])})</span>"
        )
    return f"<div class=bars>{''.join(rows)}</div>"


def _true_mark(series: Series, i: int, top: float) -> str:
    if series.truth is None or np.isnan(series.truth[i]):
        return ""
    return f"<s style='left:{100 * min(series.truth[i], top) / top:.1f}%'></s>"


def histogram(series: Series, top: float) -> str:
    """How many groups have which share, where they are too many to name."""
    n_bins = 20
    counts, _ = np.histogram(np.clip(series.share, 0, top), bins=n_bins, range=(0, top))
    step = WIDE / n_bins
    tallest = max(1, counts.max())
    bars = "".join(
        f"<rect class=pillar x={b * step + 2:.0f} width={step - 4:.0f} "
        f"y={HIGH * (1 - n / tallest):.1f} height={HIGH * n / tallest:.1f}><title>{n:,} groups "
        f"with {percent(top * b / n_bins)} to {percent(top * (b + 1) / n_bins)}</title></rect>"
        for b, n in enumerate(counts.tolist())
    )
    marks = "".join(
        f"<span style='left:{100 * part}%'{' class=end' if part == 1 else ''}>{percent(top * part)}"
        "</span>"
        for part in (0, 0.5, 1)
    )
    return (
        f"<div class=chart><div class=ys><span style='bottom:100%'>{tallest:,}</span></div>"
        f'<svg viewBox="0 0 {WIDE} {HIGH}" preserveAspectRatio="none">{bars}</svg>'
        f"<div class=xs>{marks}</div></div>"
    )


def chart_key(series: Series, reference: str | None) -> str:
    """What the lines mean."""
    keys = [
        "<i style='background:var(--est)'></i>estimated, with its interval",
        "<i style='background:var(--count)'></i>what counting would say",
    ]
    if series.truth is not None:
        keys.append("<i style='background:currentColor;width:.5rem'></i>true share")
    if series.changed.any() and reference:
        text = f"differs from {escape(reference)} beyond chance"
        keys.append(f"<i style='background:var(--changed)'></i>{text}")
    if series.flagged.any():
        keys.append("○ with a warning")
    return f"<div class=key>{''.join(f'<span>{key}</span>' for key in keys)}</div>"


def _y(values: Floats, top: float) -> Floats:
    return np.asarray(HIGH * (1 - np.clip(values, 0, top) / top))


def _grid(top: float) -> str:
    return "".join(
        f"<line class=grid x1=0 x2={WIDE} y1={y:.1f} y2={y:.1f} />"
        for y in _y(np.array([0, top / 2, top]), top)
    )


def _band(x: Floats, low: Floats, high: Floats, top: float) -> str:
    known = ~(np.isnan(low) | np.isnan(high))
    x, low, high = x[known], _y(low[known], top), _y(high[known], top)
    if not len(x):
        return ""
    if len(x) == 1:  # a period on its own has a bar
        x, low, high = np.array([x[0] - 3, x[0] + 3]), np.repeat(low, 2), np.repeat(high, 2)
    outline = zip(np.append(x, x[::-1]), np.append(high, low[::-1]), strict=True)
    return f'<path class=band d="M{"L".join(f"{a:.1f} {b:.1f}" for a, b in outline)}Z" />'


def _line(x: Floats, values: Floats, top: float, kind: str) -> str:
    points = [f"{a:.1f} {b:.1f}" for a, b in zip(x, _y(values, top), strict=True)]
    return f'<path class={kind} d="M{"L".join(points)}" />' if len(points) > 1 else ""


def _dot(x: float, series: Series, i: int, top: float) -> str:
    def mark(kind: str, share: Floats) -> str:
        y = float(_y(share[i : i + 1], top)[0])
        return f'<path class="{kind}{fine}" d="M{x:.1f} {y:.1f}h0" />'

    many = len(series.names) > 80  # dots are then small, and most are left out
    fine = " fine" * many
    marks = ""
    if not many or series.flagged[i] or series.changed[i]:
        marks = mark("dot" + " changed" * bool(series.changed[i]), series.share)
    if series.flagged[i]:
        marks += mark("hole", series.share)
    if series.truth is not None and not np.isnan(series.truth[i]):
        fine = ""
        marks += mark("true", series.truth).replace('"true"', "true")
    return marks


def _hits(x: Floats, series: Series) -> list[str]:
    edges = np.concatenate([[0.0], (x[1:] + x[:-1]) / 2, [WIDE]])
    return [
        f"<rect class=hit x={edges[i]:.1f} width={edges[i + 1] - edges[i]:.1f} y=0 height={HIGH}>"
        f"<title>{escape(series.tip(i))}</title></rect>"
        for i in range(len(x))
    ]


def _y_labels(top: float) -> str:
    marks = ((0, "0"), (50, _tick(top / 2)), (100, _tick(top)))
    spans = "".join(f"<span style='bottom:{at}%'>{text}</span>" for at, text in marks)
    return f"<div class=ys>{spans}</div>"


def _tick(share: float) -> str:
    return percent(share).replace(".0 %", " %")


def _labelled_points(x: Floats) -> list[int]:
    """Points that are named below a chart: the ends, and some between with enough room."""
    room = WIDE / 10
    chosen = [0]
    for target in np.linspace(x[0], x[-1], 7)[1:-1]:
        i = int(np.abs(x - target).argmin())
        if x[i] - x[chosen[-1]] >= room and x[-1] - x[i] >= room:
            chosen.append(i)
    return chosen if len(x) == 1 else [*chosen, len(x) - 1]


def _x_labels(series: Series, x: Floats) -> str:
    """Names of some periods: fewer on a narrow screen, the first and the last in a small chart."""
    spans = ""
    for place, i in enumerate(_labelled_points(x)):
        kind = "minor" if place % 2 else "mid"
        kind = "end" if i == len(x) - 1 > 0 else ("" if i == 0 else kind)
        text = escape(series.names[i])
        attribute = f" class={kind}" if kind else ""
        spans += f"<span{attribute} style='left:{x[i] / WIDE:.1%}'>{text}</span>"
    is_long = max(map(len, series.names)) > 8  # letters: four names fit on a narrow screen
    kind = '"xs long"' if is_long else "xs"
    return f"<div class={kind}>{spans}</div>"
