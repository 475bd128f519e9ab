"""One self-contained HTML page of a study: tables, tests, figures, and how to run it again."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from functools import partial
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount._core.files import write_text
from headcount._core.frame import Frame
from headcount.data.tables import read_table
from headcount.exceptions import HeadcountError
from headcount.inference.significance import error_table, nemenyi, wilcoxon_holm
from headcount.report import figures
from headcount.report.tables import ResultTable, result_table

if TYPE_CHECKING:
    from headcount.study.results import Results

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --accent: #0a6; }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 70rem; padding: 1rem;
  background: light-dark(#fff, #16181c); color: light-dark(#1b1d21, #e6e6e6); }
h1 { margin-bottom: .2rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
h3 { margin-top: 1.8rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th[scope=row], thead th:first-child { text-align: left; position: sticky; left: 0;
  background: light-dark(#fff, #16181c); }
figure { margin: 1.2rem 0; overflow-x: auto; } figcaption { font-size: .9rem; opacity: .8; }
figure svg { max-width: max(100%, 34rem); height: auto; } figure svg text { fill: currentColor; }
pre { background: var(--soft); padding: .8rem; overflow-x: auto; font-size: .85rem; }
.note { opacity: .8; font-size: .9rem; } .bad { color: light-dark(#b00020, #ff8a80); }
.lead { font-size: 1.1rem; }
"""


def study_table(results: Results, measure: str) -> ResultTable:
    """Methods by data sets; a method that failed on some data set or seed is left out."""
    part = results.by(measure)
    names, codes = np.unique(part["method"], return_inverse=True)
    rows = np.bincount(codes)
    complete = names[rows == rows.max()] if len(rows) else names
    whole = [name for name in dict.fromkeys(part["method"].tolist()) if name in complete]
    return result_table(part.rows(np.isin(part["method"], whole)), measure)


def write_page(results: Results, path: str | Path) -> None:
    """Write the page of a study's results."""
    body = [_head(results)]
    for measure in results.measures:
        body.append(_measure(results, measure))
    body.append(_published(results))
    body.append(_how(results))
    write_text(Path(path), page(str(results.provenance["study"]["name"]), "\n".join(body)))


def page(title: str, body: str) -> str:
    """A whole HTML document that needs nothing from elsewhere."""
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>{body}</body></html>\n"
    )


def drawn(make: Callable[[], Any], caption: str) -> str:
    """A figure with a caption, in the colours of the page; a sentence where it cannot be drawn."""
    try:
        svg = figures.to_svg(make()).replace("#000000", "currentColor")
    except HeadcountError as error:
        return f"<p class=note>{escape(caption)}: {escape(str(error))}</p>"
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def frame_table(
    header: list[str], rows: list[list[str]], bold: Collection[tuple[int, int]] = ()
) -> str:
    """A plain HTML table; the first cell of a row is its head; cells may be set in bold."""

    def cell(i: int, j: int, text: str) -> str:
        inside = escape(text)
        return f"<td>{f'<b>{inside}</b>' if (i, j) in bold else inside}</td>"

    head = "".join(f"<th scope=col>{escape(h)}</th>" for h in header)
    body = "".join(
        f"<tr><th scope=row>{escape(row[0])}</th>"
        + "".join(cell(i, j, c) for j, c in enumerate(row[1:], 1))
        + "</tr>"
        for i, row in enumerate(rows)
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class=scroll>{table}</div>"


def _head(results: Results) -> str:
    about = results.provenance
    bags = len(np.unique(results.frame["bag"]))
    lead = []
    for measure in results.measures:
        table = study_table(results, measure)
        best = int(np.argmin(table.ranks.mean(axis=1)))
        lead.append(f"{measure.upper()}: <b>{escape(table.methods[best])}</b>")
    rows = [
        [
            name,
            f"{d['train']:,} + {d['validation']:,}" if d["validation"] else f"{d['train']:,}",
            f"{d['test']:,}",
            ", ".join(f"{c} {p:.2f}" for c, p in zip(d["classes"], d["prevalence"], strict=True)),
        ]
        for name, d in about["datasets"].items()
    ]
    failed = "".join(f"<p class=bad>Failed: {escape(f)}</p>" for f in results.failures())
    return (
        f"<h1>{escape(about['study']['name'])}</h1>"
        f"<p class=note>A study of quantifiers: estimates of class shares, compared on "
        f"{bags:,} bags of {'the' if len(rows) == 1 else 'each'} data set.</p>"
        f"<p class=lead>Best by average rank — {'; '.join(lead)}.</p>{failed}"
        + frame_table(["data set", "labelled", "test pool", "training prevalence"], rows)
    )


def _measure(results: Results, measure: str) -> str:
    frame = results.by(measure)
    table = study_table(results, measure)
    frame = frame.rows(np.isin(frame["method"], table.methods))
    errors, names = error_table(frame, measure)
    training = {
        name: dict(zip(about["classes"], about["prevalence"], strict=True))
        for name, about in results.provenance["datasets"].items()
    }
    name = measure.upper()
    parts = [
        f"<h2>{escape(name)}</h2>",
        "<p class=note>Mean over bags; settings were selected by the same measure. Bold: the best. "
        "‡: not significantly different from it (paired t-test, p ≥ 0.05); †: 0.001 &lt; p &lt; "
        "0.05. Greener is better.</p>",
        f"<div class=scroll>{table.to_html()}</div>",
        _tests(errors, names, table) if len(names) > 1 and len(errors) > 1 else "",
        drawn(
            lambda: figures.error_by_shift(frame, measure, training, log=measure != "ae"),
            f"{name} by the shift between a bag and the training prevalence; behind it, how many "
            "bags.",
        ),
        drawn(
            lambda: figures.shift_ends(frame, measure, training),
            f"{name} on the least and the most shifted fifth of the bags.",
        ),
    ]
    classes = {tuple(shares) for shares in training.values()}
    if len(classes) == 1 and len(next(iter(classes))) <= 5:
        labels = next(iter(classes))
        parts += [
            drawn(
                partial(figures.diagonal, frame, label),
                f"Estimated against true share of {label}.",
            )
            for label in labels
        ]
        parts.append(
            drawn(lambda: figures.bias_boxes(frame), "Signed error of each class, by method.")
        )
        if len(labels) == 3:
            parts.append(_triangle(frame, measure, names, list(labels)))
    return "\n".join(parts)


def _tests(errors: Any, names: list[str], table: ResultTable) -> str:
    """Diagram of ranks, and the tests of every pair."""
    ranks = nemenyi(errors, names)
    diagram = drawn(
        lambda: figures.critical_difference(ranks),
        f"Average rank over the {len(errors):,} bags by {table.measure.upper()}; bars join methods "
        "that Nemenyi's test cannot tell apart at 5 %.",
    )
    return diagram + _pairs(errors, names, table)


def _pairs(errors: Any, names: list[str], table: ResultTable) -> str:
    """Matrix of Wilcoxon tests: which of two methods is better, and how surely."""
    tests = wilcoxon_holm(errors, names)
    sign: dict[tuple[str, str], str] = {}
    for i in range(tests.n_rows):
        a, b, p = tests["method"][i], tests["other"][i], tests["p_holm"][i]
        mark = "≈" if p >= 0.05 else ("<" if tests["better"][i] == a else ">")
        mark += "" if p >= 0.05 or p <= 0.001 else "†"
        sign[a, b] = mark
        sign[b, a] = mark.translate(str.maketrans("<>", "><"))
    order = [table.methods[i] for i in np.argsort(table.ranks.mean(axis=1), kind="stable")]
    rows = [[a, *[sign.get((a, b), "") for b in order]] for a in order]
    return (
        "<details><summary>Pairwise Wilcoxon signed-rank tests, Holm's correction</summary>"
        "<p class=note>&lt;: the row has the smaller error, p ≤ 0.001 († p &lt; 0.05); ≈: no "
        "significant difference.</p>" + frame_table(["", *order], rows) + "</details>"
    )


def _triangle(frame: Frame, measure: str, names: list[str], labels: list[str]) -> str:
    """Where on the simplex the best method errs."""
    means = [frame[measure][frame["method"] == name].mean() for name in names]
    best = names[int(np.argmin(means))]
    part = frame.rows(frame["method"] == best)
    truth = np.column_stack([part[f"true:{label}"] for label in labels])
    points, where = np.unique(truth.round(6), axis=0, return_inverse=True)
    values = np.bincount(where.ravel(), part[measure]) / np.bincount(where.ravel())
    if len(points) > 3000:  # a page should stay light
        points, values = points[:: len(points) // 3000 + 1], values[:: len(values) // 3000 + 1]
    return drawn(
        lambda: figures.ternary(points, labels, values),
        f"{measure.upper()} of {best} by the true prevalence of the bag.",
    )


def published(name: str) -> Frame | None:
    """Published results that come with the package, by name; None where there are none."""
    file = resources.files("headcount.report") / "published" / f"{name}.csv"
    if not file.is_file():
        return None
    with resources.as_file(file) as path:
        return read_table(path)


def _published(results: Results) -> str:
    """Ours beside what was published, where data sets and methods have the same names."""
    name = results.provenance.get("published")
    if not name:
        return ""
    parts = [
        "<h2>Beside the published results</h2>"
        "<p class=note>Ours / published. Where the data or the features are not the paper's own, "
        "only the order of methods compares.</p>"
    ]
    for measure in results.measures:
        theirs = published(f"{name}_{measure}")
        if theirs is None:
            continue
        table = study_table(results, measure)
        upper = measure.upper()
        columns = {
            m: next((c for c in theirs if c.replace("AE/RAE", upper) == m), None)
            for m in table.methods
        }
        shared = [d for d in table.datasets if d in theirs["dataset"].tolist()]
        rows = []
        for i, method in enumerate(table.methods):
            column = columns[method]
            cells = []
            for d in shared:
                row = theirs["dataset"].tolist().index(d)
                value = "—" if column is None else f"{theirs[column][row]:.3f}"
                cells.append(f"{table.means[i, table.datasets.index(d)]:.3f} / {value}")
            rows.append([method, *cells])
        if shared:
            parts.append(f"<h3>{upper}</h3>" + frame_table(["method", *shared], rows))
    return "\n".join(parts) if len(parts) > 1 else ""


def _how(results: Results) -> str:
    about = results.provenance
    versions = ", ".join(f"{k} {v}" for k, v in about["versions"].items())
    described = json.dumps(about["study"], indent=1, ensure_ascii=False)
    chosen = ""
    if results.selection is not None:
        s = results.selection
        shown = ("dataset", "seed", "method", "measure", "parameters")
        rows = [
            [str(s[c][i]) for c in shown] + [f"{s['error'][i]:.4f}"]
            for i in np.flatnonzero(s["rank"] == 1)
        ]
        header = ["data set", "seed", "method", "by", "setting", "error on validation"]
        chosen = (
            "<details><summary>Selected settings</summary>"
            + frame_table(header, rows)
            + "</details>"
        )
    return (
        f"<h2>How it was run</h2>{chosen}<p>Versions: {escape(versions)}. Seeds: "
        f"{escape(str(about['study']['seeds']))}. Hash of everything that decides the results: "
        f"<code>{about['hash'][:16]}</code>.</p><p>Run it again: <code>headcount study run "
        "study.toml -o results/</code>; the same study gives the same table, byte for byte, "
        "however it is stopped, resumed or spread over cores and machines.</p>"
        f"<details><summary>The whole study</summary><pre>{escape(described)}</pre></details>"
    )
