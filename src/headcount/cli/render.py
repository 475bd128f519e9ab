"""Frames of shares and changes as text, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from headcount._core.files import write_parquet, write_text
from headcount._core.frame import Frame
from headcount._core.texttable import text_table


def shares_text(frame: Frame, level: float) -> str:
    """Shares in percent, aligned; with true ones, how far off they are."""
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
    text = text_table(header, rows, left=(0, 1, len(header) - 1))
    if truth:
        known = frame["truth"] == frame["truth"]
        off = abs(frame["share"] - frame["truth"])[known].mean()
        plain = abs(frame["counted"] - frame["truth"])[known].mean()
        inside = frame["inside"][known].mean()
        text += (
            f"\n\nOff by {100 * off:.1f} points on average, plain counting by {100 * plain:.1f}; "
            f"{inside:.0%} of the true shares are inside their interval (* marks the others)."
        )
    return text


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


def as_csv(frame: Frame) -> str:
    """A frame as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(frame.columns)
    writer.writerows(zip(*(frame[name].tolist() for name in frame.columns), strict=True))
    return out.getvalue()


def as_json(frame: Frame) -> str:
    """A frame as a list of rows in JSON; what is undefined is null."""
    lists = {name: frame[name].tolist() for name in frame.columns}
    rows = [
        {name: None if values[i] != values[i] else values[i] for name, values in lists.items()}
        for i in range(frame.n_rows)
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def write_frame(frame: Frame, path: Path) -> None:
    """Write a frame as CSV, JSON or Parquet, as the name of the file says."""
    if path.suffix == ".parquet":
        write_parquet(path, frame)
    else:
        write_text(path, as_csv(frame) if path.suffix == ".csv" else as_json(frame))


def choice_text(choice: dict[str, Any]) -> str:
    """What `fit` chose, and what came next, in a sentence or two."""
    scale, unit = (100, " points") if choice["measure"] == "ae" else (1, f" by {choice['measure']}")
    text = (
        f"Chosen: {choice['method']}, off by {scale * choice['error']:.3g}{unit} on average on "
        f"{choice['n_bags']} bags of {choice['size']} held-out rows."
    )
    others = ", ".join(f"{name} {scale * error:.3g}" for name, error in choice["others"])
    return f"{text} Next best: {others}." if others else text
