"""The practitioner's page: shares over time as bands, the table, warnings, and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount._core.files import write_text
from headcount.data.groups import MISSING, UNREADABLE
from headcount.data.tables import as_names
from headcount.exceptions import InputError, choose
from headcount.report import figures
from headcount.report.page import drawn, frame_table, page

if TYPE_CHECKING:
    from headcount.tables import Count, Model

SHOWN = 8  # classes that get a figure


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
    names = as_names(found.interval.classes).tolist()
    if only is not None:
        choose("class", only, names)
    return Page(trend_page(found, found.model, title, only))


def trend_page(found: Count, model: Model, title: str, only: str | None = None) -> str:
    """A whole HTML page about the shares of classes in groups of rows."""
    names = as_names(found.interval.classes).tolist()
    body = [f"<h1>{escape(title)}</h1>", _lead(found, model, names), _warnings(found)]
    body.append("<h2>Shares</h2>")
    means = found.sizes @ found.interval.prevalence / found.sizes.sum()
    order = np.argsort(-means, kind="stable")
    chosen = order[:1] if len(names) == 2 else order[:SHOWN]
    if len(names) == 2:  # one class tells the other; the rarer one is the one asked about
        chosen = order[1:]
    if only is not None:
        chosen = np.array([names.index(only)])
    for c in chosen:
        body.append(_figure(found, int(c), names[c], model.label))
    if len(names) > SHOWN:
        body.append(f"<p class=note>The {SHOWN} most frequent classes; all are in the table.</p>")
    body += [_table(found, names), _meaning(found, model)]
    return page(title, "\n".join(part for part in body if part))


def _lead(found: Count, model: Model, names: list[str]) -> str:
    total = int(found.sizes.sum())
    groups = len(found.groups)
    means = found.sizes @ found.interval.prevalence / total
    shares = ", ".join(
        f"<b>{escape(names[c])}</b> {means[c]:.1%}" for c in np.argsort(-means, kind="stable")[:6]
    )
    span = f" in {groups} groups, from {escape(found.groups[0])} to {escape(found.groups[-1])}"
    where = span if groups > 1 else ""
    out = f" {found.left_out:,} rows had nothing to look at and were left out." * (
        found.left_out > 0
    )
    return (
        f"<p class=lead>Of {total:,} rows{where}: {shares}.</p>"
        f"<p class=note>Estimated from {model.summary.get('rows', 0):,} labelled rows with "
        f"{escape(str(model.summary.get('method', '')))}; nobody read these rows one by one.{out}"
        "</p>"
    )


def _warnings(found: Count) -> str:
    items = [
        f"<li class=bad><b>{escape(', '.join(groups[:12]))}"
        f"{f' and {len(groups) - 12} more' if len(groups) > 12 else ''}</b>: {escape(text)}.</li>"
        for text, groups in found.messages().items()
    ]
    # What could be compared is for whoever types the command.
    notes = [note for note in found.notes if note.kind != "truth is there"]
    items += [f"<li>{escape(str(note))}</li>" for note in notes]
    return f"<h2>Before you rely on it</h2><ul>{''.join(items)}</ul>" if items else ""


def _figure(found: Count, c: int, name: str, label: str) -> str:
    keep = [i for i, g in enumerate(found.groups) if g not in (MISSING, UNREADABLE)]
    flagged = np.array([bool(found.flags(i)) for i in keep])
    interval = found.interval
    truth = None if found.truth is None else found.truth[keep, c]
    level = f"{interval.level:.0%}"
    extra = " Crosses: the true shares." if truth is not None else ""
    over_time = found.by.period is not None
    band, line = ("band", "Dotted") if over_time else ("bar", "Dash")
    marks = " Hollow: groups with a warning." if flagged.any() else ""

    def make() -> Any:
        return figures.trend(
            [found.groups[i] for i in keep],
            interval.prevalence[keep, c],
            interval.low[keep, c],
            interval.high[keep, c],
            flagged=flagged,
            counted=found.counted[keep, c],
            truth=truth,
            joined=over_time,
        )

    return f"<h3>{escape(label)}: {escape(name)}</h3>" + drawn(
        make,
        f"Share of {name}; the {band} is where it lies with {level} confidence. {line}: what "
        f"counting the classifier's answers would have said.{marks}{extra}",
    )


def _table(found: Count, names: list[str]) -> str:
    rows = []
    for i, group in enumerate(found.groups):
        for c, name in enumerate(names):
            interval = found.interval
            row = [
                group,
                name,
                f"{interval.prevalence[i, c]:.1%}",
                f"{interval.low[i, c]:.1%} to {interval.high[i, c]:.1%}",
                f"{found.sizes[i]:,}",
                f"{found.counted[i, c]:.1%}",
            ]
            if found.truth is not None:
                value = found.truth[i, c]
                row.append("" if np.isnan(value) else f"{value:.1%}")
            rows.append([*row, " ".join(found.flags(i))])
    header = ["group", "class", "share", f"{found.interval.level:.0%} interval", "rows", "counted"]
    header += ["truth"] * (found.truth is not None) + ["flags"]
    return "<details open><summary>The table</summary>" + frame_table(header, rows) + "</details>"


def _meaning(found: Count, model: Model) -> str:
    quality = model.summary.get("quality")
    checked = ""
    if quality:
        checked = (
            f"<p>How good is it? On {quality['bags']} bags of labelled rows that it had not seen, "
            f"with shares {quality['shares']}, it was off by {100 * quality['error']:.1f} points "
            f"on average, and counting by {100 * quality['counting']:.1f}; "
            f"{quality['coverage']:.0%} of the true shares were inside their intervals.</p>"
        )
    odds = round(1 / (1 - found.interval.level))
    corrected = (
        "The shares on this page are corrected for that."
        if model.quantifier.method_tags().corrects
        else "The shares on this page are such counts: use another method to have them corrected."
    )
    return (
        "<h2>What this means</h2>"
        f"<p>A classifier makes mistakes, and when the mix of classes changes, its mistakes no "
        "longer cancel: counting its answers then gives a share that is wrong in a predictable "
        f"direction. {corrected} They say how many, not which: "
        "no single row is decided.</p>"
        f"<p>The interval holds the true share of these rows, except once in about {odds} times, "
        "as long as rows of a class look as they did when they were labelled. It is wide where "
        "there are few rows, few labels, or classes that are hard to tell apart.</p>"
        "<p><b>misfit</b>: the scores of the group are not a mixture of what the classes looked "
        "like; something besides the shares has changed, and the interval does not cover that. "
        "Label some rows of such a group and fit again. <b>drift</b>: the rows themselves look "
        "different, though their scores may not. <b>strange</b>: a part of the rows looks "
        "like no known class. <b>few</b>: under 30 rows. <b>weak</b>: the classes can hardly be "
        "told apart. <b>nodate</b>: rows whose date could not be read.</p>" + checked
    )
