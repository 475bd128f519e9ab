"""The practitioner's page: the answer in words first, then charts, warnings, table, and how."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from headcount._core.files import write_text
from headcount.exceptions import InputError
from headcount.inference.diagnostics import LEVEL
from headcount.report.page import frame_table, page
from headcount.tables.charts import (
    CHART_STYLE,
    SCRIPT,
    bar_chart,
    chart_key,
    histogram,
    scale_top,
    time_chart,
)
from headcount.tables.facts import (
    CARDS,
    OTHERS,
    Facts,
    change_sentence,
    gather_facts,
    most_different,
    spoken,
)
from headcount.tables.result import Count
from headcount.tables.series import Series, between, percent
from headcount.tables.trust import judge_trust, list_warnings
from headcount.tables.words import learnt_text

MULTIPLES = 11  # classes with a small chart of their own
COMPARABLE = 0.25  # of the largest share: classes above it have one scale
LONG = 12  # groups from which on bars of many classes are folded away
BARS = 60  # groups that can be named one by one
CELLS = 2000  # of the table
ENDS = 30  # groups of a shortened table

PAGE_STYLE = """
.cards { display: grid; gap: .8rem; margin: 1rem 0;
  grid-template-columns: repeat(auto-fit, minmax(12.5rem, 1fr)); }
.whole { white-space: nowrap; }
.card { border: 1px solid var(--line); border-radius: 8px; padding: .7rem 1rem; }
.card .big { font-size: 2.1rem; line-height: 1.2; font-weight: 650; }
.card p { margin: .3rem 0 0; } .card .what { opacity: .85; }
.trust { border-left: 5px solid; padding: .3rem .9rem; margin: 1rem 0; }
.trust.good { border-color: #2e9e5b; } .trust.care { border-color: #d99100; }
.trust.bad { border-color: #d0342c; }
@media (max-width: 600px) { th, td { padding: .2rem .3rem; font-size: .8rem; } }
"""


@dataclass(frozen=True)
class Page:
    """A whole HTML page that needs nothing from elsewhere; a notebook shows it in a frame."""

    html: str

    def save(self, path: str | Path) -> None:
        """Write it to a file, whole or not at all."""
        write_text(Path(path), self.html)

    def _repr_html_(self) -> str:
        inside = escape(self.html, quote=True)
        return f'<iframe srcdoc="{inside}" width="100%" height="900" style="border:0"></iframe>'


def make_page(found: Count, title: str, only: str | None = None) -> Page:
    """The page about a count; `only` names the class that it is about."""
    if found.model is None:
        raise InputError("the page needs the model that counted: use Model.estimate.")
    facts = gather_facts(found, only)
    summary = found.model.summary
    body = [
        f"<h1>{escape(title)}</h1>",
        _about(facts),
        _cards(facts),
        _trust(facts, summary.get("quality")),
        _charts(facts),
        _warnings(facts),
        _table(facts),
        _how(facts, summary),
        f"<script>{SCRIPT}</script>",
    ]
    style = CHART_STYLE + PAGE_STYLE
    return Page(page(title, "\n".join(part for part in body if part), style))


def _about(facts: Facts) -> str:
    """How many rows, and of which time."""
    found = facts.found
    groups = facts.groups
    ends = [escape(spoken(groups[i], facts.noun)) for i in (0, -1)]
    span = f", {ends[0]} to {ends[1]}" if facts.over_time else ""
    loose = int(found.sizes.sum() - found.sizes[facts.keep].sum())
    what = "date" if facts.over_time else found.by.column
    span += f"; {loose:,} rows more have no {escape(str(what))}" if loose else ""
    many = f" in {facts.count_groups(len(groups))}" if len(groups) > 1 else ""
    left = f"; {found.left_out:,} had nothing to look at" if found.left_out else ""
    return f"<p class=note>{int(found.sizes[facts.keep].sum()):,} rows{many}{span}{left}.</p>"


def _cards(facts: Facts) -> str:
    classes = facts.shown[:CARDS]
    last = facts.series(classes[0])
    when = spoken(last.names[-1], facts.noun) if facts.over_time else ""
    if last.step > 1:
        when = f"the last {last.step} {facts.noun}s"
    cards = [
        _card(facts.now([c]), facts.names[c], when, change_sentence(facts, facts.series(c)))
        for c in classes
    ]
    left = len(facts.names) - len(classes)
    if left > 1 or (left == 1 and len(facts.names) > 2):
        others = [c for c in range(len(facts.names)) if c not in classes]
        cards.append(_card(facts.now(others), f"{OTHERS} ({left})", when))
    return f"<div class=cards>{''.join(cards)}</div>"


def _card(now: tuple[float, float, float], name: str, when: str, told: str = "") -> str:
    share, low, high = now
    where = f" in {_unbroken(when)}" if when else ""
    return (
        f"<div class=card><div class=what>{escape(name)}{where}</div>"
        f"<div class=big>{percent(share)}</div><div>{_sure(low, high)}</div>"
        + (f"<p>{_unbroken(told).replace(' %', '&nbsp;%')}</p>" if told else "")
        + "</div>"
    )


def _unbroken(text: str) -> str:
    """A text whose dates are not torn apart at the end of a line."""
    return re.sub(r"\d{4}-[\dQ-]+", r"<span class=whole>\g<0></span>", escape(text))


def _sure(low: float, high: float) -> str:
    if np.isnan(low + high):
        return between(low, high)
    return f"between {between(low, high, 'and')}".replace(" %", "&nbsp;%")


def _trust(facts: Facts, quality: dict[str, Any] | None) -> str:
    level, said = judge_trust(facts, quality)
    return f'<div class="trust {level}"><b>Can it be trusted?</b> {escape(said)}</div>'


def _charts(facts: Facts) -> str:
    if len(facts.groups) < 2:
        return ""
    label = facts.found.model.label if facts.found.model else ""
    if len(facts.shown) == 1:
        c = facts.shown[0]
        series = facts.series(c)
        head = f"<h2>{escape(label)}: {escape(facts.names[c])}</h2>"
        if not facts.over_time:
            series = series.ordered()
        return head + _key(facts, series) + _chart(facts, series, scale_top(series.top()))
    classes = facts.shown[:MULTIPLES]
    named = [(facts.names[c], facts.series(c)) for c in classes]
    tops = [series.top() for _, series in named]
    large = [top >= COMPARABLE * max(tops) for top in tops]
    changed = np.any([series.changed for _, series in named], axis=0)
    parts = [f"<h2>{escape(label)}</h2>", _key(facts, replace(named[0][1], changed=changed))]
    frequent = [n for n, big in zip(named, large, strict=True) if big]
    long = not facts.over_time and LONG < len(facts.groups) <= BARS  # bars take much room
    parts.append(_multiples(facts, frequent[: CARDS if long else None]))
    if long and frequent[CARDS:]:
        more = _multiples(facts, frequent[CARDS:])
        parts.append(f"<details><summary>More classes</summary>{more}</details>")
    rare = [n for n, big in zip(named, large, strict=True) if not big]
    parts.append(_multiples(facts, rare, "Rarer classes, enlarged"))
    left = len(facts.names) - len(classes)
    if left:
        parts.append(_multiples(facts, [(f"{OTHERS} ({left})", facts.rest(classes))], "Together"))
    return "".join(parts)


def _multiples(facts: Facts, named: list[tuple[str, Series]], note: str = "") -> str:
    """Small charts of one scale."""
    if not named:
        return ""
    top = scale_top(max(series.top() for _, series in named))
    head = f"<p class=note>{note}: the scale ends at {percent(top)}.</p>" if note else ""
    charts = "".join(
        f"<div><h3>{escape(name)}</h3>{_chart(facts, series, top)}</div>" for name, series in named
    )
    kind = "small" if facts.over_time or len(facts.groups) > BARS else "bargrid"
    return f"{head}<div class={kind}>{charts}</div>"


def _chart(facts: Facts, series: Series, top: float) -> str:
    if facts.over_time:
        return time_chart(series, top)
    if len(series.names) <= BARS:
        return bar_chart(series, top)
    return histogram(series, scale_top(float(series.share.max())))


def _key(facts: Facts, series: Series) -> str:
    if not facts.over_time and len(facts.groups) > BARS:
        return "<p class=note>How many groups have which share.</p>"
    reference = facts.reference if series.step == 1 else series.names[0]
    note = f"<p class=note>Each point is the average of {series.step} {facts.noun}s.</p>"
    key = chart_key(series, reference)
    return key + note * (series.step > 1)


def _warnings(facts: Facts) -> str:
    """One short list, the worst first, with counts."""
    total = len(facts.groups)
    items = []
    for flag, text, groups in list_warnings(facts):
        some = ", ".join(groups[:6]) + (f" and {len(groups) - 6:,} more" if len(groups) > 6 else "")
        where = f"{len(groups):,} of {facts.count_groups(total)}" if total > 1 else "These rows"
        if flag == "misfit" and total >= 20:
            text += f" (about {LEVEL * total:,.0f} would carry this by chance)"
        names = f" <span class=note>({escape(some)})</span>" if total > 1 else ""
        items.append(f"<li><b>{where}</b>: {escape(text)} [{escape(flag)}]{names}</li>")
    # What could be compared is for whoever types the command.
    notes = [note for note in facts.found.notes if note.kind != "truth is there"]
    items += [f"<li>{escape(str(note))}</li>" for note in notes]
    return f"<h2>Before you rely on it</h2><ul>{''.join(items)}</ul>" if items else ""


def _table(facts: Facts) -> str:
    """All numbers; of very many groups those that differ most and the last ones."""
    found = facts.found
    classes = facts.shown if len(facts.shown) == 1 else list(range(len(facts.names)))
    groups = list(range(len(found.groups)))
    title = "The numbers"
    if len(groups) * len(classes) > CELLS:
        places, sure = most_different(facts, facts.whole_series(facts.shown[0]), ENDS)
        different = facts.keep[places].tolist()
        recent = groups[-ENDS:] if facts.over_time else []
        groups = list(dict.fromkeys([*different, *recent]))
        classes = facts.shown[: max(1, CELLS // max(1, len(groups)))]
        title = f"The {facts.noun}s that differ most" if sure else f"The largest {facts.noun}s"
        title += ", and the last" * bool(recent)
    rows = [_row(facts, g, c) for g in groups for c in classes]
    header = [facts.noun, "class", "share", "interval", "rows", "counted"]
    if len(classes) == 1:  # which the heading names
        header.remove("class")
        rows = [[row[0], *row[2:]] for row in rows]
    header += ["truth"] * (found.truth is not None) + ["warnings"]
    if not any(row[-1] for row in rows):
        header.pop()
        rows = [row[:-1] for row in rows]
    whole = len(groups) == len(found.groups)
    note = "" if whole else "<p class=note>All numbers: headcount estimate with -o shares.csv.</p>"
    is_open = " open" if len(rows) <= 40 else ""
    return (
        f"<details{is_open}><summary>{title}</summary>{note}{frame_table(header, rows)}</details>"
    )


def _row(facts: Facts, g: int, c: int) -> list[str]:
    found = facts.found
    interval = found.interval
    row = [found.groups[g], facts.names[c], percent(interval.prevalence[g, c])]
    row.append(between(interval.low[g, c], interval.high[g, c]))
    row += [f"{found.sizes[g]:,}", percent(found.counted[g, c])]
    if found.truth is not None:
        row.append("" if np.isnan(found.truth[g, c]) else percent(found.truth[g, c]))
    return [*row, " ".join(found.flags(g))]


def _how(facts: Facts, summary: dict[str, Any]) -> str:
    """For whoever wants to know how it was made."""
    found = facts.found
    model = found.model
    corrected = (
        "The shares on this page are corrected for that."
        if model is not None and model.quantifier.method_tags().corrects
        else "The shares on this page are such counts: use another method to have them corrected."
    )
    odds = round(1 / (1 - found.interval.level))
    held = summary.get("quality")
    checked = (
        f" Checked on labelled rows, with shares {escape(held['shares'])}, the 95 % intervals held "
        f"{held['coverage']:.0%}."
        if held
        else ""
    )
    lines = "".join(f"<p>{escape(line)}</p>" for line in learnt_text(summary).splitlines())
    said = "".join(
        f"<li>{escape(', '.join(groups[:6]))}{' ...' * (len(groups) > 6)}: {escape(text)}.</li>"
        for text, groups in list(found.messages().items())[:20]
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
        + (f"<ul>{said}</ul>" if said else "")
        + "</details>"
    )
