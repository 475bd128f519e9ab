"""The page of a study over time: the tables and figures of the temporal benchmark, and series."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount._core.types import Floats
from headcount.data.temporal import LEAST_GROUPS
from headcount.inference.significance import error_table
from headcount.measures import rank_correlations
from headcount.report import figures
from headcount.report.page import drawn, frame_table
from headcount.report.pieces import pairs_details, rank_diagram
from headcount.report.temporal_figures import (
    composition,
    error_ends,
    label_strip,
    rank_panels,
    shift_boxes,
)
from headcount.report.temporal_tables import (
    average_ranks,
    balanced_table,
    data_table,
    errors_table,
    left_out_list,
    main_methods,
    mean_errors,
    other_counts,
    series_of,
    shares_of,
)

if TYPE_CHECKING:
    from headcount.study.results import Results

FIFTH = 0.2
OPEN = 6  # classes whose series are not folded away
RANKS_NOTE = (
    "Mean over the test splits. In brackets: the published number, where the data are the paper's; "
    "its base predictor is a fine-tuned BERT. Bold: the best. RAE is smoothed by one half of an "
    "item, which the paper's is not, so that classes that a split lacks have one too. CARC: "
    "Spearman's correlation between the true and the estimated shares of a class across the "
    "splits, averaged over classes; undefined where an estimate never changes, with the number of "
    "such classes."
)


def is_temporal(results: Results) -> bool:
    """Whether all data sets of the study are cut by time."""
    return all("temporal" in about for about in results.provenance["datasets"].values())


def temporal_body(results: Results) -> list[str]:
    """Sections of the page, up to how it was run."""
    methods = main_methods(results)
    if not methods:
        return [_head(results, methods), "<p>No method could be run on every data set.</p>"]
    parts = [
        _head(results, methods),
        "<h2>Data</h2><h3>Table 1: data sets</h3>" + data_table(results),
        _strips(results),
        left_out_list(results),
        "<h2>Table 2: errors and rank correlations</h2>"
        f"<p class=note>{escape(RANKS_NOTE)}</p>" + errors_table(results, methods),
        _tests(results, methods),
        _balanced(results),
        "<h2>Shift</h2>" + _shift(results),
        _ranks(results, methods),
        _ends(results, methods),
        "<h2>Every class over time</h2>" + _series(results),
    ]
    return [part for part in parts if part]


def _head(results: Results, methods: list[str]) -> str:
    """Title, the best methods, and what a reader should know first."""
    about = results.provenance
    lead = []
    for measure in results.measures if methods else []:
        ranks = average_ranks(mean_errors(results, measure, methods))
        best = [escape(methods[i]) for i in np.flatnonzero(ranks == ranks.min())]
        lead.append(f"{measure.upper()}: <b>{', '.join(best)}</b> ({ranks.min():.2f})")
    bad = "".join(f"<p class=bad>Failed: {escape(f)}</p>" for f in results.failures())
    notes = "".join(f"<li>{escape(n)}</li>" for n in _notes(results))
    return (
        f"<h1>{escape(about['study']['name'])}</h1>"
        "<p class=note>Labelled items up to a date, then every later period as it came: how well "
        "quantifiers estimate the shares of its classes.</p>"
        + (
            f"<p class=lead>Best average rank over the data sets — {'; '.join(lead)}.</p>"
            if lead
            else ""
        )
        + bad
        + (f"<ul>{notes}</ul>" if notes else "")
    )


def _notes(results: Results) -> list[str]:
    """What a reader should know before the tables."""
    others = [
        f"{name} has other numbers of items than the paper's ({counts}): its published results "
        "stand beside ours, and are of other data."
        for name, counts in other_counts(results).items()
    ]
    return [*results.provenance.get("notes", []), *_few(results), *others]


def _few(results: Results) -> list[str]:
    """Data sets that methods could not be fitted to with groups."""
    methods = results.provenance["study"]["methods"]
    grouped = list(dict.fromkeys(m["name"] for m in methods if m.get("groups")))
    found = []
    for name, about in results.provenance["datasets"].items():
        labelled = np.array(about["temporal"]["roles"]) != "test"
        if grouped and labelled.sum() < LEAST_GROUPS:
            found.append(
                f"{', '.join(grouped)} was fitted to {name} without groups: that needs "
                f"{LEAST_GROUPS} periods of labelled items."
            )
    return found


def _strips(results: Results) -> str:
    """Classes of every data set over time, and what a class is made of where that is known."""
    parts = []
    for name, about in results.provenance["datasets"].items():
        story, classes = about["temporal"], about["classes"]
        parts.append(
            drawn(
                partial(label_strip, story["periods"], story["roles"], story["counts"], classes),
                f"{name}: classes over time; the test splits begin at the dashed line.",
            )
        )
        if story["parts"]:
            parts.append(_made_of(name, story, classes))
    return "<h3>Classes over time</h3>" + "".join(parts)


def _made_of(name: str, story: dict[str, Any], classes: list[str]) -> str:
    """Figure 2, for the class whose make-up has changed most between training and test."""
    counts, test = np.array(story["counts"], dtype=float), np.array(story["roles"]) == "test"
    moved = []
    for label in classes:
        table = np.array(story["parts"][label]["counts"], dtype=float)
        then, now = (table[:, which].sum(axis=1) for which in (~test, test))
        both = then.sum() > 0 and now.sum() > 0
        moved.append(np.abs(then / then.sum() - now / now.sum()).sum() / 2 if both else 0.0)
    c = int(np.argmax(moved))
    shares = counts / counts.sum(axis=0)
    inside = story["parts"][classes[c]]
    return drawn(
        partial(
            composition,
            story["periods"],
            story["roles"],
            shares[c],
            inside["names"],
            inside["counts"],
        ),
        f"Figure 2. {name}: the share of {classes[c]!r}, and what it is made of. Its make-up has "
        f"changed most between training and test, by {moved[c]:.0%}.",
    )


def _tests(results: Results, methods: list[str]) -> str:
    """Whether the ranks of the methods differ over all splits of all data sets."""
    parts = []
    for measure in results.measures if len(methods) > 1 else []:
        frame = results.by(measure)
        errors, names = error_table(frame.rows(np.isin(frame["method"], methods)), measure)
        parts.append(rank_diagram(errors, names, measure) + pairs_details(errors, names, names))
    inside = "".join(parts)
    return f"<details><summary>Tests over all splits</summary>{inside}</details>" if parts else ""


def _balanced(results: Results) -> str:
    table = balanced_table(results)
    if not table:
        return ""
    measure = results.measures[0].upper()
    return (
        "<h2>Table 3: balanced training</h2><p class=note>"
        f"{measure} in percent with the classifier trained on the labelled items as they are, and "
        "as if all classes were equally frequent.</p>" + table
    )


def _shift(results: Results) -> str:
    """Figures 3 and 4: how far the splits are from the training data."""
    shift = results.shift
    if shift is None:
        return ""
    by = {
        what: {d: shift[what][shift["dataset"] == d] for d in results.datasets}
        for what in ("mmd", "kld")
    }
    return drawn(
        lambda: shift_boxes(by["mmd"], "MMD"),
        "Figure 3. Covariate shift of each test split: maximum mean discrepancy from the training "
        "items (Gaussian kernel as wide as their median distance, vectors of the study's encoder, "
        "at most 10,000 items, unbiased).",
    ) + drawn(
        lambda: shift_boxes(by["kld"], "KLD"),
        "Figure 4. Label shift of each test split: Kullback-Leibler divergence of its shares from "
        "those of the labelled items.",
    )


def _ends(results: Results, methods: list[str]) -> str:
    """Figure 6: errors on the least and on the most shifted fifth of the splits."""
    shift, measure = results.shift, results.measures[0]
    if shift is None:
        return ""
    parts = []
    for name in results.datasets:
        moved = shift["kld"][shift["dataset"] == name]
        few = max(2, round(FIFTH * len(moved)))
        order = np.argsort(moved, kind="stable")
        if len(moved) < 3 * few:
            parts.append(f"<p class=note>{escape(name)}: too few splits to compare fifths.</p>")
            continue
        rows = [series_of(results, name, m) for m in methods]
        errors = np.column_stack([r[measure] for r in rows])
        ends = np.sort(order[:few]), np.sort(order[-few:])
        parts.append(
            drawn(
                partial(error_ends, errors, methods, *ends, measure.upper()),
                f"Figure 6. {name}: {measure.upper()} on the fifth of the splits with the least "
                "and with the most label shift.",
            )
        )
    return "".join(parts)


def _ranks(results: Results, methods: list[str]) -> str:
    """Figure 5: what a rank correlation is, on a class of the study's own."""
    best: tuple[float, str, str] | None = None
    for name, about in results.provenance["datasets"].items():
        rows = series_of(results, name, methods[0])
        truth = shares_of(rows, about["classes"], "true")
        if len(truth) < 4:
            continue
        c = int(np.argmax(np.ptp(truth, axis=0)))
        if best is None or len(truth) > best[0]:
            best = len(truth), name, about["classes"][c]
    if best is None:
        return ""
    _, name, label = best
    found: dict[str, tuple[Floats, float]] = {}
    for method in methods:
        rows = series_of(results, name, method)
        truth, estimate = rows[f"true:{label}"], rows[f"estimate:{label}"]
        rho = float(rank_correlations(truth[:, None], estimate[:, None])[0])
        if not np.isnan(rho):
            found[method] = estimate, rho
    if not found:
        return ""
    order = sorted(found, key=lambda m: -found[m][1])
    shown = {m: found[m] for m in dict.fromkeys([order[0], order[len(order) // 2], order[-1]])}
    return drawn(
        lambda: rank_panels(truth, shown),
        f"Figure 5. CARC explained on {label!r} of {name}: the splits in the order of the true "
        "share and in that of the estimate. The number is the rank correlation, 1 where the "
        "estimate tells of any two splits which has more. CARC is its mean over the classes.",
    )


def _series(results: Results) -> str:
    """True and estimated shares of every class over time, with intervals and flags."""
    told = [m["name"] for m in results.provenance["study"]["methods"] if m.get("intervals")]
    known = [m for m in told if m in main_methods(results)]
    if not known:
        return "<p class=note>No method was asked for intervals (intervals = true).</p>"
    method = known[0]
    parts = []
    for name, about in results.provenance["datasets"].items():
        rows = series_of(results, name, method)
        story, classes = about["temporal"], about["classes"]
        periods = [p for p, r in zip(story["periods"], story["roles"], strict=True) if r == "test"]
        counted = series_of(results, name, "CC") if "CC" in main_methods(results) else None
        flagged = rows["flags"] != ""
        parts.append(f"<h3>{escape(name)}</h3>{_coverage(rows, classes, flagged, method)}")
        parts.append(_flag_list(periods, rows["flags"].tolist()))
        pictures = [
            drawn(
                partial(
                    figures.trend,
                    periods,
                    rows[f"estimate:{c}"],
                    rows[f"low:{c}"],
                    rows[f"high:{c}"],
                    flagged=flagged,
                    counted=rows[f"estimate:{c}"] if counted is None else counted[f"estimate:{c}"],
                    truth=rows[f"true:{c}"],
                ),
                f"{name}, {c}: {method} with 95 % intervals; crosses are the truth, hollow marks "
                "splits with a flag, dots what counting the classifier's answers says.",
            )
            for c in (classes[1:] if len(classes) == 2 else classes)
        ]
        parts += pictures[:OPEN]
        if len(pictures) > OPEN:
            more = "".join(pictures[OPEN:])
            parts.append(f"<details><summary>{len(pictures) - OPEN} more</summary>{more}</details>")
    return "".join(parts)


def _coverage(rows: Any, classes: list[str], flagged: Any, method: str) -> str:
    truth, low, high = (shares_of(rows, classes, w) for w in ("true", "low", "high"))
    inside = (truth >= low - 1e-9) & (truth <= high + 1e-9)
    said = f"{inside.mean():.0%} of the true shares lie inside the 95 % intervals of {method}"
    if flagged.any():
        said += f"; {int(flagged.sum())} of {len(flagged)} splits are flagged"
        if not flagged.all():
            said += f", and on the others it is {inside[~flagged].mean():.0%}"
    return f"<p>{escape(said)}.</p>"


def _flag_list(periods: list[str], flags: list[str]) -> str:
    rows = [[p, f] for p, f in zip(periods, flags, strict=True) if f]
    if not rows:
        return ""
    table = frame_table(["split", "flags"], rows)
    return f"<details><summary>Flags</summary>{table}</details>"
