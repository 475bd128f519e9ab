"""The look of all pages, and their simplest parts: one self-contained HTML document."""

from __future__ import annotations

from collections.abc import Callable, Collection
from html import escape
from importlib import resources
from typing import Any

from headcount._core.frame import Frame
from headcount.data.tables import read_table
from headcount.exceptions import HeadcountError
from headcount.report import figures

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --accent: #0a6; }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 70rem; padding: 1rem;
  background: light-dark(#fff, #16181c); color: light-dark(#1b1d21, #e6e6e6); }
h1 { margin-bottom: .2rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
h3 { margin-top: 1.8rem; }
.scroll { overflow-x: auto; margin: .6rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th[scope=row] { font-weight: normal; }
th[scope=row], thead th:first-child { text-align: left; position: sticky; left: 0;
  background: light-dark(#fff, #16181c); }
figure { margin: 1.2rem 0; overflow-x: auto; } figcaption { font-size: .9rem; opacity: .8; }
figure svg { max-width: max(100%, 34rem); height: auto; } figure svg text { fill: currentColor; }
pre { background: var(--soft); padding: .8rem; overflow-x: auto; font-size: .85rem; }
.note { opacity: .8; font-size: .9rem; } .bad { color: light-dark(#b00020, #ff8a80); }
.lead { font-size: 1.1rem; } .beside { display: flex; flex-wrap: wrap; gap: 0 2.5rem; }
.beside > div { max-width: 100%; } h4 { margin: .8rem 0 .3rem; }
tr.average th, tr.average td { border-top: 2px solid var(--line); }
nav a { margin-right: 1rem; }
"""


def page(title: str, body: str, style: str = "") -> str:
    """A whole HTML document that needs nothing from elsewhere; `style` is added to the common."""
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head>\n<body>{body}</body></html>\n"
    )


def drawn(make: Callable[[], Any], caption: str) -> str:
    """A figure with a caption, in the colours of the page; a sentence where it cannot be drawn."""
    try:
        svg = figures.to_svg(make()).replace("#000000", "currentColor")
    except HeadcountError as error:
        return f"<p class=note>{escape(caption)}: {escape(str(error))}</p>"
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def frame_table(
    header: list[str],
    rows: list[list[str]],
    bold: Collection[tuple[int, int]] = (),
    *,
    italic: Collection[int] = (),
    average: bool = False,
) -> str:
    """A plain HTML table; the first cell of a row is its head; cells may be set in bold.

    The heads of the rows in `italic` are slanted; `average` sets off the last row.
    """

    def cell(i: int, j: int, text: str) -> str:
        inside = escape(text)
        return f"<td>{f'<b>{inside}</b>' if (i, j) in bold else inside}</td>"

    def row_head(i: int, text: str) -> str:
        inside = escape(text)
        return f"<th scope=row>{f'<i>{inside}</i>' if i in italic else inside}</th>"

    head = "".join(f"<th scope=col>{escape(h)}</th>" for h in header)
    body = "".join(
        ("<tr class=average>" if average and i == len(rows) - 1 else "<tr>")
        + row_head(i, row[0])
        + "".join(cell(i, j, c) for j, c in enumerate(row[1:], 1))
        + "</tr>"
        for i, row in enumerate(rows)
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class=scroll>{table}</div>"


def published(name: str) -> Frame | None:
    """Published results that come with the package, by name; None where there are none."""
    file = resources.files("headcount.report") / "published" / f"{name}.csv"
    if not file.is_file():
        return None
    with resources.as_file(file) as path:
        return read_table(path)
