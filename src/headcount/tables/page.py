"""The report page: the answer in words first, then charts, warnings, the table, and methods."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

import numpy as np

from headcount._core.files import write_text
from headcount.report.page import frame_table, page
from headcount.tables.charts import (
    Series,
    asset,
    bar_chart,
    between,
    chart_key,
    histogram,
    percent,
    scale_top,
    time_chart,
)
from headcount.tables.estimation import FIT_LEVEL
from headcount.tables.report_data import (
    ReportData,
    change_sentence,
    gather_report,
    most_different,
    spoken,
)
from headcount.tables.result import GroupShares, listed
from headcount.tables.training import training_text
from headcount.tables.trust import judge_trust, list_warnings

FIRST_CLASSES = 4  # cards that fit on the first screen (layout)
MAX_BARS = 60  # groups that have a bar of their own (layout)


@dataclass(frozen=True)
class Page:
    """A self-contained HTML page; a notebook shows it in a frame."""

    html: str

    def save(self, path: str | Path) -> None:
        """Write it to a file, whole or not at all."""
        write_text(Path(path), self.html)

    def _repr_html_(self) -> str:
        inside = escape(self.html, quote=True)
        return f'<iframe srcdoc="{inside}" width="100%" height="900" style="border:0"></iframe>'


def make_page(shares: GroupShares, title: str, only: str | None = None) -> Page:
    """The page about shares of groups; `only` names the class that it is about."""
    data = gather_report(shares, only)
    level, text = judge_trust(data, shares.model.training.quality)
    body = [
        f"<h1>{escape(title)}</h1>",
        _about(data),
        _cards(data),
        f'<div class="trust {level}"><b>Can it be trusted?</b> {escape(text)}</div>',
        _charts(data),
        _warnings(data),
        _table(data),
        _methods(data),
        f"<script>{asset('tips.js')}</script>",
    ]
    style = asset("charts.css") + asset("page.css")
    return Page(page(title, "\n".join(part for part in body if part), style))


def _about(data: ReportData) -> str:
    """How many rows, and of which time."""
    shares, groups = data.shares, data.groups
    n = int(shares.sizes[data.keep].sum())
    loose = int(shares.sizes.sum()) - n
    text = f"{n:,} rows"
    if len(groups) > 1:
        text += f" in {data.count_groups(len(groups))}"
    if data.over_time:
        ends = [escape(spoken(groups[i], data.noun)) for i in (0, -1)]
        text += f", {ends[0]} to {ends[1]}"
    if loose:
        missing = "date" if data.over_time else str(shares.by.column)
        text += f"; {loose:,} rows more have no {escape(missing)}"
    if shares.rows.left_out:
        text += f"; {shares.rows.left_out:,} had nothing to look at"
    return f"<p class=note>{text}.</p>"


def _cards(data: ReportData) -> str:
    classes = data.shown[:FIRST_CLASSES]
    last = data.series(classes[0])
    when = spoken(last.names[-1], data.noun) if data.over_time else ""
    if last.step > 1:
        when = f"the last {last.step} {data.noun}s"
    cards = [
        _card(data.now([c]), data.names[c], when, change_sentence(data, data.series(c)))
        for c in classes
    ]
    others = data.others(classes)
    if len(others) > 1 or (len(others) == 1 and len(data.names) > 2):
        cards.append(_card(data.now(others), f"all others ({len(others)})", when))
    return f"<div class=cards>{''.join(cards)}</div>"


def _card(now: tuple[float, float, float], name: str, when: str, change: str = "") -> str:
    share, low, high = now
    where = f" in {_unbroken(when)}" if when else ""
    interval = between(low, high)
    if not np.isnan(low + high):
        interval = f"between {between(low, high, 'and')}".replace(" %", "&nbsp;%")
    below = f"<p>{_unbroken(change).replace(' %', '&nbsp;%')}</p>" if change else ""
    return (
        f"<div class=card><div class=what>{escape(name)}{where}</div>"
        f"<div class=big>{percent(share)}</div><div>{interval}</div>{below}</div>"
    )


def _unbroken(text: str) -> str:
    """A text whose dates are not broken at the end of a line."""
    return re.sub(r"\d{4}-[\dQ-]+", r"<span class=whole>\g<0></span>", escape(text))


def _charts(data: ReportData) -> str:
    if len(data.groups) < 2:
        return ""
    label = escape(data.shares.model.label)
    if len(data.shown) > 1:
        return f"<h2>{label}</h2>{_charts_of_classes(data)}"
    series = data.series(data.shown[0])
    if not data.over_time:
        series = series.ordered()
    head = f"<h2>{label}: {escape(data.names[data.shown[0]])}</h2>"
    return head + _key(data, series) + _chart(data, series, scale_top(series.top()))


def _charts_of_classes(data: ReportData) -> str:
    """Small charts: frequent classes on one scale, rare ones on another, and the rest together."""
    classes = data.shown[:11]
    named = [(data.names[c], data.series(c)) for c in classes]
    tops = [series.top() for _, series in named]
    frequent = [n for n, top in zip(named, tops, strict=True) if top >= max(tops) / 4]
    rare = [n for n, top in zip(named, tops, strict=True) if top < max(tops) / 4]
    changed = np.any([series.changed for _, series in named], axis=0)
    parts = [_key(data, replace(named[0][1], changed=changed))]
    folds = not data.over_time and 12 < len(data.groups) <= MAX_BARS  # bars take much room
    parts.append(_multiples(data, frequent[: FIRST_CLASSES if folds else None]))
    if folds and frequent[FIRST_CLASSES:]:
        more = _multiples(data, frequent[FIRST_CLASSES:])
        parts.append(f"<details><summary>More classes</summary>{more}</details>")
    parts.append(_multiples(data, rare, "Rarer classes, enlarged"))
    left = len(data.names) - len(classes)
    if left:
        parts.append(
            _multiples(
                data, [(f"all others ({left})", data.series(data.others(classes)))], "Together"
            )
        )
    return "".join(parts)


def _multiples(data: ReportData, named: list[tuple[str, Series]], note: str = "") -> str:
    """Small charts of one scale."""
    if not named:
        return ""
    top = scale_top(max(series.top() for _, series in named))
    head = f"<p class=note>{note}: the scale ends at {percent(top)}.</p>" if note else ""
    charts = "".join(
        f"<div><h3>{escape(name)}</h3>{_chart(data, series, top)}</div>" for name, series in named
    )
    kind = "small" if data.over_time or len(data.groups) > MAX_BARS else "bargrid"
    return f"{head}<div class={kind}>{charts}</div>"


def _chart(data: ReportData, series: Series, top: float) -> str:
    if data.over_time:
        return time_chart(series, top)
    if len(series.names) <= MAX_BARS:
        return bar_chart(series, top)
    return histogram(series, scale_top(float(series.share.max())))


def _key(data: ReportData, series: Series) -> str:
    if not data.over_time and len(data.groups) > MAX_BARS:
        return "<p class=note>How many groups have which share.</p>"
    reference = data.reference if series.step == 1 else series.names[0]
    note = f"<p class=note>Each point is the average of {series.step} {data.noun}s.</p>"
    return chart_key(series, reference) + note * (series.step > 1)


def _warnings(data: ReportData) -> str:
    """One short list, the worst first, with counts."""
    total = len(data.groups)
    items = []
    for flag, text, groups in list_warnings(data):
        where = f"{len(groups):,} of {data.count_groups(total)}" if total > 1 else "These rows"
        if flag == "misfit" and total >= 20:
            text += f" (about {FIT_LEVEL * total:,.0f} would carry this by chance)"
        names = f" <span class=note>({escape(listed(groups))})</span>" if total > 1 else ""
        items.append(f"<li><b>{where}</b>: {escape(text)} [{escape(flag)}]{names}</li>")
    # That a column could be compared is for whoever types the command.
    notes = [note for note in data.shares.notes if note.kind != "truth is there"]
    items += [f"<li>{escape(str(note))}</li>" for note in notes]
    return f"<h2>Before you rely on it</h2><ul>{''.join(items)}</ul>" if items else ""


def _table(data: ReportData, max_rows: int = 2000, max_groups: int = 30) -> str:
    """All numbers; of very many groups those that differ most and the last ones."""
    shares = data.shares
    classes = data.shown if len(data.shown) == 1 else list(range(len(data.names)))
    groups = list(range(len(shares.groups)))
    title, note = "The numbers", ""
    if len(groups) * len(classes) > max_rows:
        places, differ = most_different(data, data.whole_series(data.shown[0]), max_groups)
        recent = groups[-max_groups:] if data.over_time else []
        chosen = list(dict.fromkeys([*data.keep[places].tolist(), *recent]))
        classes = data.shown[: max(1, max_rows // max(1, len(chosen)))]
        title = f"The {data.noun}s that differ most" if differ else f"The largest {data.noun}s"
        title += ", and the last" * bool(recent)
        if len(chosen) < len(groups):
            note = "<p class=note>All numbers: headcount estimate with -o shares.csv.</p>"
        groups = chosen
    columns = _columns(data, groups, classes)
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    is_open = " open" if len(rows) <= 40 else ""
    table = frame_table(list(columns), rows)
    return f"<details{is_open}><summary>{title}</summary>{note}{table}</details>"


def _columns(data: ReportData, groups: list[int], classes: list[int]) -> dict[str, list[str]]:
    """Cells of the table by the names of its columns."""
    shares, interval, marks = data.shares, data.shares.interval, data.shares.marks()
    cells = [(g, c) for g in groups for c in classes]
    columns = {data.noun: [shares.groups[g] for g, _ in cells]}
    if len(classes) > 1:  # the heading names a single class
        columns["class"] = [data.names[c] for _, c in cells]
    columns["share"] = [percent(interval.prevalence[cell]) for cell in cells]
    columns["interval"] = [between(interval.low[cell], interval.high[cell]) for cell in cells]
    columns["rows"] = [f"{shares.sizes[g]:,}" for g, _ in cells]
    columns["counted"] = [percent(shares.counted[cell]) for cell in cells]
    truth = shares.truth
    if truth is not None:
        columns["truth"] = ["" if np.isnan(truth[c]) else percent(truth[c]) for c in cells]
    columns["warnings"] = [str(marks[g]) for g, _ in cells]
    if not any(columns["warnings"]):
        del columns["warnings"]
    return columns


def _methods(data: ReportData) -> str:
    """How the shares were estimated."""
    shares, training = data.shares, data.shares.model.training
    corrected = (
        "The shares on this page are corrected for that."
        if shares.model.quantifier.method_tags().corrects
        else "The shares on this page are such counts: use another method to have them corrected."
    )
    odds = round(1 / (1 - shares.interval.level))
    quality = training.quality
    checked = ""
    if quality:
        checked = (
            f" Checked on labelled rows, with shares {escape(quality.shares)}, the 95 % intervals "
            f"held {quality.coverage:.0%}."
        )
    lines = "".join(f"<p>{escape(line)}</p>" for line in training_text(training).splitlines())
    warnings = "".join(
        f"<li>{escape(', '.join(groups[:6]))}{' ...' * (len(groups) > 6)}: {escape(text)}.</li>"
        for text, groups in list(shares.messages().items())[:20]
    )
    return (
        "<details><summary>What this means, and how it was made</summary>"
        "<p>A classifier makes mistakes, and when the mix of classes changes, its mistakes no "
        "longer cancel: counting its answers then gives a share that is wrong in a predictable "
        f"direction. {corrected} They say how many, not which: no single row is decided.</p>"
        "<p>The interval is made to hold the true share of these rows, except once in about "
        f"{odds} times, as long as rows of a class look as they did when they were labelled."
        f"{checked} It is wide where there are few rows, few labels, or classes that are hard to "
        f"tell apart. Changes are those that <i>headcount monitor</i> finds.</p>{lines}"
        + (f"<ul>{warnings}</ul>" if warnings else "")
        + "</details>"
    )
