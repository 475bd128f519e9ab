"""Charts of shares as plain HTML and SVG: a band over time, bars of groups; readable on a phone.

The picture stretches with the page while dots and letters keep their size: lines do not scale with
the picture, dots are lines without length, and all text is HTML.
"""

from __future__ import annotations

from html import escape

import numpy as np

from headcount._core.types import Floats
from headcount.tables.series import Series, between, percent, runs_of

WIDE, HIGH = 1000, 200  # of the picture, in its own units
FINE = 80  # points from which on dots are small, and most are left out
ROOM = WIDE / 10  # for the name of a period
SHORT = 8  # letters of a period's name that a narrow screen has room for four times
TOPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)

CHART_STYLE = """
:root { --est: light-dark(#0b62a4, #6db7f2); --count: light-dark(#b35900, #f0a04b);
  --changed: light-dark(#c2185b, #ff7aa8); }
.chart { display: grid; grid-template-columns: 2.8rem 1fr; margin: .4rem 0 1.2rem; }
.chart .ys, .chart .xs { position: relative; font-size: .75rem; opacity: .85; }
.chart .ys span { position: absolute; right: .4rem; transform: translateY(50%);
  white-space: nowrap; }
.chart .xs { grid-column: 2; height: 1.3rem; }
.chart .xs span { position: absolute; transform: translateX(-50%); white-space: nowrap; }
.chart .xs span:first-child { transform: none; }
.chart .xs span.end { transform: translateX(-100%); }
.chart svg { width: 100%; height: 15rem; display: block; overflow: visible; }
.small .chart svg { height: 7rem; } .small .mid, .small .minor { display: none; }
.chart path, .chart line { vector-effect: non-scaling-stroke; fill: none; stroke-linecap: round; }
.chart .grid { stroke: var(--line); stroke-width: 1; }
.chart .band { fill: var(--est); opacity: .22; stroke: none; }
.chart .est { stroke: var(--est); stroke-width: 2; }
.chart .dot { stroke: var(--est); stroke-width: 7; } .chart .dot.changed { stroke: var(--changed); }
.chart .dot.fine { stroke-width: 3.5; } .chart .pillar { fill: var(--est); opacity: .6; }
.chart .hole { stroke: light-dark(#fff, #16181c); stroke-width: 3.5; }
.chart .hole.fine { stroke-width: 1.5; }
.chart .count { stroke: var(--count); stroke-width: 1.6; stroke-dasharray: 2 5; }
.chart .true { stroke: currentColor; stroke-width: 4; }
.chart .since { stroke: var(--changed); stroke-width: 1.2; stroke-dasharray: 5 4; }
.chart .hit { fill: transparent; } .chart .hit:hover { fill: var(--soft); }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; font-size: .85rem; opacity: .9; }
.key i { display: inline-block; width: 1.1rem; height: .55rem; margin-right: .35rem;
  border-radius: 3px; }
.small { display: grid; gap: 0 1.5rem;
  grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); }
.small h3 { margin: .6rem 0 .2rem; font-size: 1rem; }
.bargrid { display: grid; gap: 0 2rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); }
.bars { display: grid; grid-template-columns: minmax(3rem, max-content) minmax(5rem, 1fr) auto;
  gap: .15rem .7rem; max-width: 56rem;
  align-items: center; font-size: .9rem; font-variant-numeric: tabular-nums; }
.bars .name { overflow-wrap: anywhere; } .bars .rail { position: relative; height: 1rem;
  background: var(--soft); border-radius: 3px; }
.bars .rail b, .bars .rail i, .bars .rail u { position: absolute; top: .15rem; height: .7rem; }
.bars .rail b { background: var(--est); opacity: .35; border-radius: 3px; }
.bars .rail i { width: 3px; background: var(--est); margin-left: -1px; }
.bars .rail u { width: 2px; background: var(--count); top: 0; height: 1rem; }
.bars .rail s { position: absolute; width: 4px; height: 4px; margin-left: -2px; top: .35rem;
  border-radius: 50%; background: currentColor; }
.bars .changed i { background: var(--changed); } .bars .changed b { background: var(--changed); }
#tip { position: fixed; z-index: 9; pointer-events: none; padding: .35rem .6rem; font-size: .85rem;
  border-radius: 5px; background: light-dark(#1b1d21, #e6e6e6); color: light-dark(#fff, #16181c);
  max-width: 18rem; }
@media (max-width: 600px) { .bars { font-size: .8rem; gap: .15rem .4rem; }
  .xs .minor, .long .mid { display: none; } .chart svg { height: 11rem; } }
"""

# Shows the numbers under a finger or a pointer; without it the browser's own tips do.
SCRIPT = """
(() => {
  const tip = document.createElement('div'); tip.id = 'tip'; tip.hidden = true;
  document.body.append(tip);
  const show = e => {
    const hit = e.target.closest && e.target.closest('.hit');
    if (!hit) { tip.hidden = true; return; }
    const title = hit.querySelector('title');
    if (title) { hit.dataset.tip = title.textContent; title.remove(); }
    if (hit.hasAttribute('title')) {
      hit.dataset.tip = hit.getAttribute('title'); hit.removeAttribute('title');
    }
    tip.textContent = hit.dataset.tip; tip.hidden = false;
    const x = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 6);
    tip.style.left = Math.max(6, x) + 'px'; tip.style.top = (e.clientY + 16) + 'px';
  };
  document.addEventListener('pointermove', show); document.addEventListener('pointerdown', show);
})();
"""


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
    found = ["<span><i style='background:var(--est)'></i>estimated, with its interval</span>"]
    found.append("<span><i style='background:var(--count)'></i>what counting would say</span>")
    if series.truth is not None:
        found.append("<span><i style='background:currentColor;width:.5rem'></i>true share</span>")
    if series.changed.any() and reference:
        text = f"differs from {escape(reference)} beyond chance"
        found.append(f"<span><i style='background:var(--changed)'></i>{text}</span>")
    if series.flagged.any():
        found.append("<span>○ with a warning</span>")
    return f"<div class=key>{''.join(found)}</div>"


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
    there = [f"{a:.1f} {b:.1f}" for a, b in zip(x, high, strict=True)]
    back = [f"{a:.1f} {b:.1f}" for a, b in zip(x[::-1], low[::-1], strict=True)]
    return f'<path class=band d="M{"L".join([*there, *back])}Z" />'


def _line(x: Floats, values: Floats, top: float, kind: str) -> str:
    points = [f"{a:.1f} {b:.1f}" for a, b in zip(x, _y(values, top), strict=True)]
    return f'<path class={kind} d="M{"L".join(points)}" />' if len(points) > 1 else ""


def _dot(x: float, series: Series, i: int, top: float) -> str:
    y = float(_y(series.share[i : i + 1], top)[0])
    found = ""
    many = len(series.names) > FINE
    if not many or series.flagged[i] or series.changed[i]:
        kind = "dot" + " changed" * bool(series.changed[i]) + " fine" * many
        found = f'<path class="{kind}" d="M{x:.1f} {y:.1f}h0" />'
    if series.flagged[i]:
        found += f'<path class="hole{" fine" * many}" d="M{x:.1f} {y:.1f}h0" />'
    if series.truth is not None and not np.isnan(series.truth[i]):
        at = float(_y(series.truth[i : i + 1], top)[0])
        found += f'<path class=true d="M{x:.1f} {at:.1f}h0" />'
    return found


def _hits(x: Floats, series: Series) -> list[str]:
    edges = np.concatenate([[0.0], (x[1:] + x[:-1]) / 2, [WIDE]])
    return [
        f"<rect class=hit x={edges[i]:.1f} width={edges[i + 1] - edges[i]:.1f} y=0 height={HIGH}>"
        f"<title>{escape(series.tip(i))}</title></rect>"
        for i in range(len(x))
    ]


def _y_labels(top: float) -> str:
    marks = ((0, "0"), (50, _mark(top / 2)), (100, _mark(top)))
    return (
        "<div class=ys>"
        + "".join(f"<span style='bottom:{at}%'>{text}</span>" for at, text in marks)
        + "</div>"
    )


def _mark(share: float) -> str:
    return percent(share).replace(".0 %", " %")


def _named_places(x: Floats) -> list[int]:
    """Points that are named below a chart: the ends, and some between that have room."""
    found = [0]
    for target in np.linspace(x[0], x[-1], 7)[1:-1]:
        i = int(np.abs(x - target).argmin())
        if x[i] - x[found[-1]] >= ROOM and x[-1] - x[i] >= ROOM:
            found.append(i)
    return found if len(x) == 1 else [*found, len(x) - 1]


def _x_labels(series: Series, x: Floats) -> str:
    """Names of some periods: fewer on a narrow screen, the first and the last in a small chart."""
    n = len(x)
    chosen = _named_places(x)
    found = []
    for place, i in enumerate(chosen):
        kind = "minor" if place % 2 else "mid"
        kind = "end" if i == n - 1 > 0 else ("" if i == 0 else kind)
        text = escape(series.names[i])
        found.append(
            f"<span{f' class={kind}' * bool(kind)} style='left:{x[i] / WIDE:.1%}'>{text}</span>"
        )
    kind = "xs" if max(map(len, series.names)) <= SHORT else '"xs long"'
    return f"<div class={kind}>{''.join(found)}</div>"
