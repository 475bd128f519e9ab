"""Shares, changes and training reports as text and tables for screens and notebooks."""

from __future__ import annotations

from html import escape

from headcount._core.frame import Frame
from headcount._core.texttable import text_table
from headcount.report.page import frame_table
from headcount.selection.choice import Choice
from headcount.tables.training import GroupQuality, QualityReport, Training


def shares_text(frame: Frame, level: float) -> str:
    """Shares in percent, aligned; with true shares, how far off they are."""
    header, rows = _share_cells(frame, level)
    text = text_table(header, rows, left=(0, 1, len(header) - 1))
    return "\n\n".join(filter(None, [text, _comparison(frame)]))


def shares_html(frame: Frame, level: float, max_rows: int = 200) -> str:
    """The same as a table of a notebook; of many rows the first and the last."""
    header, rows = _share_cells(frame, level)
    shown = rows if len(rows) <= max_rows else [*rows[: max_rows // 2], *rows[-max_rows // 2 :]]
    hidden = f"<p>{len(rows) - len(shown):,} rows in the middle are not shown.</p>"
    comparison = f"<p>{escape(_comparison(frame))}</p>"
    return frame_table(header, shown) + hidden * (len(shown) < len(rows)) + comparison


def changes_text(frame: Frame) -> str:
    """Changes of shares, aligned."""
    columns = {
        "group": frame["group"],
        "class": frame["class"],
        "share": [f"{v:.1%}" for v in frame["share"]],
        "reference": [f"{v:.1%}" for v in frame["reference"]],
        "change": [f"{100 * v:+.1f}" for v in frame["change"]],
        "p": [f"{v:.3g}" for v in frame["p"]],
        "flags": frame["flags"],
    }
    rows = [list(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return text_table(list(columns), rows, left=(0, 1, len(columns) - 1))


def _share_cells(frame: Frame, level: float) -> tuple[list[str], list[list[str]]]:
    bounds = zip(frame["low"], frame["high"], strict=True)
    columns = {
        "group": frame["group"],
        "class": frame["class"],
        "share": [f"{v:.1%}" for v in frame["share"]],
        f"{100 * level:g}% interval": [f"{low:6.1%} -{high:6.1%}" for low, high in bounds],
    }
    if "truth" in frame:
        pairs = zip(frame["truth"], frame["inside"], strict=True)
        columns["truth"] = ["" if v != v else f"{v:.1%}" + " *" * bool(i != 1) for v, i in pairs]
    columns["n"] = [f"{v:,}" for v in frame["n"]]
    columns["counted"] = [f"{v:.1%}" for v in frame["counted"]]
    columns["flags"] = frame["flags"]
    return list(columns), [list(map(str, row)) for row in zip(*columns.values(), strict=True)]


def _comparison(frame: Frame) -> str:
    """How far estimates are from true shares, where these are known."""
    if "truth" not in frame:
        return ""
    known = frame["truth"] == frame["truth"]
    error = abs(frame["share"] - frame["truth"])[known].mean()
    counting = abs(frame["counted"] - frame["truth"])[known].mean()
    inside = frame["inside"][known].mean()
    return (
        f"Off by {100 * error:.1f} points on average, plain counting by {100 * counting:.1f}; "
        f"{inside:.0%} of the true shares are inside their interval (* marks the others)."
    )


def training_text(training: Training) -> str:
    """What was learnt, how good it is on held-out bags, and by which method."""
    shares = ", ".join(f"{c} {p:.1%}" for c, p in training.shares.items())
    lines = [f"Learnt from {training.rows:,} labelled rows: {shares}."]
    quality = training.quality
    if quality is None:
        lines.append("Too few labelled rows to check it: 10 of every class are needed.")
    else:
        lines.append(
            f"Checked on {quality.bags} bags of {quality.size} rows that it had not seen, with "
            f"shares {quality.shares}: off by {100 * quality.error:.1f} points on average, plain "
            f"counting by {100 * quality.counting:.1f}; {_coverage(quality)}"
        )
        lines += [_group_quality(quality.by_group)] if quality.by_group else []
    if training.choice is not None:
        lines.append(choice_text(training.choice))
    elif training.method:
        lines.append(f"Method: {training.method}.")
    return "\n".join(lines)


def _coverage(quality: QualityReport) -> str:
    """Coverage of the intervals, and whether they were widened."""
    if quality.scale < 1.05:
        return f"the 95 % intervals held {quality.coverage:.0%} of the shares."
    return (
        f"the 95 % intervals held {quality.plain:.0%} of the shares, so this model's are "
        f"{quality.scale:.2g} times as wide, and those held {quality.coverage:.0%}."
    )


def _group_quality(quality: GroupQuality) -> str:
    """Errors on held-out groups, and the width of the intervals of others."""
    few = quality.groups < 10
    more = ": with labelled rows of more groups they would be narrower" if few else ""
    return (
        f"On {quality.groups} groups that it had not seen: off by {100 * quality.error:.1f} points "
        f"(plain counting by {100 * quality.counting:.1f}, the usual shares by "
        f"{100 * quality.constant:.1f}); groups with labelled rows of their own are answered by "
        "these, too, and the intervals of groups without any are about "
        f"{100 * quality.width:.0f} points wide, or more{more}."
    )


def choice_text(choice: Choice) -> str:
    """Which method was chosen, and the next best ones."""
    scale, unit = (100, " points") if choice.measure == "ae" else (1, f" by {choice.measure}")
    others = [f"{_candidate(name)} ({scale * error:.2f})" for name, error in choice.others]
    bags = {
        "groups": f"groups of about {choice.size} rows that they had not seen",
        "periods": f"periods of about {choice.size} rows that came after what they had seen",
        "too few groups": (f"bags of {choice.size} held-out rows, since no group can be left out"),
    }.get(choice.bags, f"bags of {choice.size} held-out rows")
    text = (
        f"Method: {_candidate(choice.method)}, {scale * choice.error:.2f}{unit} off on average "
        f"when methods were compared on {choice.n_bags:,} {bags}"
    )
    return f"{text}; next came {'; '.join(others)}." if others else f"{text}."


def _candidate(name: str) -> str:
    """A candidate such as ``SLD, bcts`` in words."""
    method, comma, calibrator = name.partition(", ")
    return f"{method} with {calibrator}" if comma else method
