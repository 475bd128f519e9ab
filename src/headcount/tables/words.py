"""Shares, changes and what was learnt, in words and tables for screens and notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

from headcount._core.frame import Frame
from headcount._core.texttable import text_table
from headcount.report.page import frame_table

MOST_ROWS = 200  # of a table in a notebook


def shares_text(frame: Frame, level: float) -> str:
    """Shares in percent, aligned; with true ones, how far off they are."""
    header, rows = _share_cells(frame, level)
    text = text_table(header, rows, left=(0, 1, len(header) - 1))
    said = _comparison(frame)
    return f"{text}\n\n{said}" if said else text


def shares_html(frame: Frame, level: float) -> str:
    """The same as a table of a notebook; of very many rows the first and the last."""
    header, rows = _share_cells(frame, level)
    shown = rows if len(rows) <= MOST_ROWS else [*rows[: MOST_ROWS // 2], *rows[-MOST_ROWS // 2 :]]
    left = f"<p>{len(rows) - len(shown):,} rows in the middle are not shown.</p>"
    return (
        frame_table(header, shown)
        + (left if len(shown) < len(rows) else "")
        + f"<p>{escape(_comparison(frame))}</p>"
    )


def _share_cells(frame: Frame, level: float) -> tuple[list[str], list[list[str]]]:
    header = ["group", "class", "share", f"{100 * level:g}% interval", "n", "counted", "flags"]
    truth = "truth" in frame
    if truth:
        header.insert(4, "truth")
    rows = []
    for i in range(frame.n_rows):
        bounds = f"{frame['low'][i]:6.1%} -{frame['high'][i]:6.1%}"
        row = [str(frame["group"][i]), str(frame["class"][i]), f"{frame['share'][i]:.1%}", bounds]
        if truth:
            value = frame["truth"][i]
            mark = "" if frame["inside"][i] == 1 else " *"
            row.append("" if value != value else f"{value:.1%}{mark}")
        row += [f"{frame['n'][i]:,}", f"{frame['counted'][i]:.1%}", str(frame["flags"][i])]
        rows.append(row)
    return header, rows


def _comparison(frame: Frame) -> str:
    """How far estimates are from true shares, where these are known."""
    if "truth" not in frame:
        return ""
    known = frame["truth"] == frame["truth"]
    off = abs(frame["share"] - frame["truth"])[known].mean()
    plain = abs(frame["counted"] - frame["truth"])[known].mean()
    inside = frame["inside"][known].mean()
    return (
        f"Off by {100 * off:.1f} points on average, plain counting by {100 * plain:.1f}; "
        f"{inside:.0%} of the true shares are inside their interval (* marks the others)."
    )


def changes_text(frame: Frame) -> str:
    """Changes of shares, aligned."""
    header = ["group", "class", "share", "reference", "change", "p", "flags"]
    rows = [
        [
            str(frame["group"][i]),
            str(frame["class"][i]),
            f"{frame['share'][i]:.1%}",
            f"{frame['reference'][i]:.1%}",
            f"{100 * frame['change'][i]:+.1f}",
            f"{frame['p'][i]:.3g}",
            str(frame["flags"][i]),
        ]
        for i in range(frame.n_rows)
    ]
    return text_table(header, rows, left=(0, 1, len(header) - 1))


def learnt_text(summary: dict[str, Any]) -> str:
    """What was learnt, how good it is on bags that it had not seen, and by which method."""
    shares = ", ".join(f"{c} {p:.1%}" for c, p in summary["shares"].items())
    lines = [f"Learnt from {summary['rows']:,} labelled rows: {shares}."]
    q = summary["quality"]
    if q is None:
        lines.append("Too few labelled rows to check it: 10 of every class are needed.")
    else:
        lines.append(
            f"Checked on {q['bags']} bags of {q['size']} rows that it had not seen, with shares "
            f"{q['shares']}: off by {100 * q['error']:.1f} points on average, plain counting by "
            f"{100 * q['counting']:.1f}; {_held(q)}"
        )
        lines += [_by_group(q["by_group"])] if "by_group" in q else []
    method = summary.get("method")
    choice = summary.get("choice")
    lines += [choice_text(choice)] if choice else ([f"Method: {method}."] if method else [])
    return "\n".join(lines)


def _held(q: dict[str, Any]) -> str:
    """How often the intervals held, and what was done about it."""
    if max(q.get("factors") or [1.0]) < 1.05:
        return f"the 95 % intervals held {q['coverage']:.0%} of the shares."
    return (
        f"the 95 % intervals held {q['plain']:.0%} of the shares, so this model's are up to "
        f"{max(q['factors']):.2g} times as wide, and those held {q['coverage']:.0%}."
    )


def _by_group(q: dict[str, Any]) -> str:
    """How far off it is on groups that it had not seen, and how sure of others."""
    more = ": with labelled rows of more groups they would be narrower" if q["groups"] < 10 else ""
    width = 100 * q.get("width", 1.0)
    return (
        f"On {q['groups']} groups that it had not seen: off by {100 * q['error']:.1f} points "
        f"(plain counting by {100 * q['counting']:.1f}, the usual shares by "
        f"{100 * q['constant']:.1f}); groups with labelled rows of their own are answered by "
        f"these, too, and the intervals of groups without any are about {width:.0f} points wide, "
        f"or more{more}."
    )


def choice_text(choice: dict[str, Any]) -> str:
    """Which method was chosen, and what came next, in a sentence."""
    scale, unit = (100, " points") if choice["measure"] == "ae" else (1, f" by {choice['measure']}")
    others = [f"{_named(name)} ({scale * error:.2f})" for name, error in choice["others"]]
    text = (
        f"Method: {_named(choice['method'])}, {scale * choice['error']:.2f}{unit} off on average "
        f"when methods were compared on {choice['n_bags']:,} {_compared_on(choice)}"
    )
    return f"{text}; next came {'; '.join(others)}." if others else f"{text}."


def _compared_on(choice: dict[str, Any]) -> str:
    """What methods were compared on."""
    size = choice["size"]
    return {
        "groups": f"groups of about {size} rows that they had not seen",
        "periods": f"periods of about {size} rows that came after what they had seen",
        "too few groups": f"bags of {size} held-out rows, since no group can be left out",
    }.get(choice.get("bags", "drawn"), f"bags of {size} held-out rows")


def _named(candidate: str) -> str:
    """A candidate such as ``SLD, bcts`` in words."""
    method, comma, rest = candidate.partition(", ")
    return f"{method} with {rest}" if comma else method
