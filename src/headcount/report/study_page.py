"""The page of a study: data, tables, tests, figures, and how to run it again."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount._core.files import write_text
from headcount._core.frame import Frame
from headcount.inference.significance import error_table
from headcount.report.page import frame_table, page, published
from headcount.report.pieces import (
    MAX_CLASS_FIGURES,
    estimate_figures,
    pairs_details,
    rank_diagram,
    shift_figures,
    simplex_figure,
)
from headcount.report.tables import ResultTable, result_table
from headcount.report.temporal import is_temporal, temporal_body
from headcount.report.tweets import rank_table, shift_span, sign_table

if TYPE_CHECKING:
    from headcount.study.results import Results

TABLE_NOTE = (
    "Mean over bags; settings were selected by the same measure. Bold: the best. ‡: not "
    "significantly different from it (paired t-test, p ≥ 0.05); †: 0.001 &lt; p &lt; 0.05. The "
    "marks of the average are those of the same test over the data sets. Green is best, red worst."
)


def study_table(results: Results, measure: str) -> ResultTable:
    """Methods by data sets; `left_out` tells which methods are not in it."""
    part = results.by(measure)
    left = left_out(results, measure)
    return result_table(part.rows(~np.isin(part["method"], left)), measure)


def left_out(results: Results, measure: str) -> list[str]:
    """Methods that failed on some data set or seed, so that their means compare with no other."""
    wanted = [
        m["name"]
        for m in results.provenance["study"]["methods"]
        if not m["only"] or measure in m["only"]
    ]
    done = results.by(measure)
    counts = {name: int((done["method"] == name).sum()) for name in dict.fromkeys(wanted)}
    most = max([*counts.values(), 1])
    return [name for name, n in counts.items() if n < most]


def write_page(results: Results, path: str | Path) -> None:
    """Write the page of a study's results."""
    if is_temporal(results):
        body = temporal_body(results)
    else:
        body = [_head(results), _data(results)]
        body += [_measure(results, measure) for measure in results.measures]
        body.append(_published(results))
    body.append(_how(results))
    write_text(Path(path), page(str(results.provenance["study"]["name"]), "\n".join(body)))


def _head(results: Results) -> str:
    about = results.provenance
    bags = len(np.unique(results.frame["bag"]))
    lead = []
    for measure in results.measures:
        table = study_table(results, measure)
        best = int(np.argmin(table.ranks.mean(axis=1)))
        lead.append(f"{measure.upper()}: <b>{escape(table.methods[best])}</b>")
    failed = "".join(f"<p class=bad>Failed: {escape(f)}</p>" for f in results.failures())
    each = "the" if len(about["datasets"]) == 1 else "each"
    return (
        f"<h1>{escape(about['study']['name'])}</h1>"
        f"<p class=note>A study of quantifiers: estimates of class shares, compared on "
        f"{bags:,} bags of {each} data set.</p>"
        f"<p class=lead>Best by average rank — {'; '.join(lead)}.</p>{failed}"
    )


def _data(results: Results) -> str:
    """Data sets: sizes, shift between labelled and test items, prevalences of both."""
    about = results.provenance["datasets"]
    classes = {tuple(d["classes"]) for d in about.values()}
    apart = len(classes) == 1 and len(next(iter(classes))) <= MAX_CLASS_FIGURES
    names = list(next(iter(classes))) if apart else []
    header = ["data set", "train", "validation", "test", "total", "shift"]
    header += [f"{part}({c})" for part in ("L", "U") for c in names] or ["labelled prevalence"]
    numbers = np.array([_sizes_and_shift(d) for d in about.values()])
    shares = np.array([_both_shares(d) for d in about.values()]) if apart else None
    rows = []
    for i, (name, d) in enumerate(about.items()):
        cells = [*[f"{v:,.0f}" for v in numbers[i, :4]], _number(numbers[i, 4], 4)]
        if shares is not None:
            cells += [_number(v, 3) for v in shares[i]]
        else:
            pairs = zip(d["classes"], d["prevalence"], strict=True)
            cells.append(", ".join(f"{c} {p:.2f}" for c, p in pairs))
        rows.append([name, *cells])
    several = len(rows) > 1 and shares is not None
    if several and shares is not None:
        mean = numbers.mean(axis=0)
        last = [*[f"{v:,.0f}" for v in mean[:4]], _number(mean[4], 4)]
        rows.append(["average", *last, *[_number(v, 3) for v in shares.mean(axis=0)]])
    return (
        "<h2>Data</h2><p class=note>Shift: mean absolute difference between the prevalences of the "
        "labelled items (L) and of all test items (U).</p>"
        + frame_table(header, rows, average=several)
    )


def _sizes_and_shift(about: dict[str, Any]) -> list[float]:
    sizes = [about["train"], about["validation"], about["test"]]
    test = about.get("test_prevalence")
    shift = np.nan if test is None else np.abs(np.subtract(test, about["prevalence"])).mean()
    return [*sizes, sum(sizes), float(shift)]


def _both_shares(about: dict[str, Any]) -> list[float]:
    unknown = [np.nan] * len(about["classes"])
    return [*about["prevalence"], *about.get("test_prevalence", unknown)]


def _number(value: float, digits: int) -> str:
    return "—" if np.isnan(value) else f"{value:.{digits}f}"


def _measure(results: Results, measure: str) -> str:
    frame = results.by(measure)
    table = study_table(results, measure)
    frame = frame.rows(np.isin(frame["method"], table.methods))
    name = results.provenance.get("published")
    missing = left_out(results, measure)
    parts = [f"<h2>{escape(measure.upper())}</h2><p class=note>{TABLE_NOTE}</p>"]
    if missing:
        words = ", ".join(map(escape, missing))
        parts.append(f"<p class=bad>Left out, because they failed somewhere: {words}.</p>")
    parts.append(f"<div class=scroll>{table.to_html()}</div>")
    if len(table.methods) > 1:
        parts.append("<h3>Ranks</h3>" + rank_table(table, name))
    errors, names = error_table(frame, measure)
    if len(names) > 1 and len(errors) > 1:
        order = [table.methods[i] for i in np.argsort(table.ranks.mean(axis=1), kind="stable")]
        parts.append("<h3>Tests</h3>" + rank_diagram(errors, names, measure))
        parts.append(pairs_details(errors, names, order) + sign_table(measure, name, names))
    return "\n".join([*parts, "<h3>Figures</h3>", _figures(results, frame, measure, names)])


def _figures(results: Results, frame: Frame, measure: str, names: list[str]) -> str:
    training = {
        name: dict(zip(about["classes"], about["prevalence"], strict=True))
        for name, about in results.provenance["datasets"].items()
    }
    classes = {tuple(shares) for shares in training.values()}
    labels = list(next(iter(classes)))
    width = 0.05 if all(len(each) <= 3 for each in classes) else None
    parts = [
        shift_figures(
            frame,
            measure,
            training,
            width=width,
            span=shift_span(results),
            span_of="the experiments of Gao and Sebastiani (2016)",
        )
    ]
    if len(classes) > 1:
        parts.append(
            "<p class=note>The data sets have different classes: estimates against truth and bias "
            "are not drawn.</p>"
        )
        return "".join(parts)
    parts.append(estimate_figures(frame, labels))
    if len(labels) == 3:
        parts.append(simplex_figure(frame, measure, names, labels))
    return "".join(parts)


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
