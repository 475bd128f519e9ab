"""Tables of the tweet study beside those of Gao and Sebastiani (2016), as its paper prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from headcount._core.frame import Frame
from headcount.report.page import frame_table, published
from headcount.report.tables import ResultTable

if TYPE_CHECKING:
    from headcount.study.results import Results

GS2016 = ("CC", "ACC", "PCC", "PACC", "SLD", "SVM(Q)", "SVM(KLD)", "SVM(NKLD)")


def shift_span(results: Results) -> tuple[float, float] | None:
    """Least and largest shift between training and test set, if the data are the paper's own.

    They are if every data set has a published name and its published sizes; those shifts are the
    ones that the experiments of 2016 met.
    """
    table = published("tweets_datasets")
    if results.provenance.get("published") != "tweets" or table is None:
        return None
    names = [str(name).replace("SemEval20", "SemEval") for name in table["dataset"].tolist()]
    known = {name: i for i, name in enumerate(names)}
    shifts = []
    for name, about in results.provenance["datasets"].items():
        if name not in known:
            return None
        shifts.append(float(table["shift"][known[name]]))
        sizes = [int(table[part][known[name]]) for part in ("train", "validation", "test")]
        if sizes != [about["train"], about["validation"], about["test"]]:
            return None
    return min(shifts), max(shifts)


def rank_table(table: ResultTable, name: str | None) -> str:
    """Ranks per data set; for the tweet study those of 2016 stand beside them in brackets.

    As in the paper, ranks are then among the methods that both studies have.
    """
    theirs = _gs2016_ranks(table) if name == "tweets" else {}
    shared = [m for m in table.methods if m in GS2016]
    kept = shared if theirs and len(shared) > 1 else table.methods
    rows_of = [table.methods.index(m) for m in kept]
    ranks = np.asarray(rankdata(table.means[rows_of], axis=0))
    rows = []
    for d, dataset in enumerate(table.datasets):
        old = [theirs.get((dataset, m)) for m in kept]
        cells = [
            f"{ranks[i, d]:g}" + (f" ({o})" if o is not None else "") for i, o in enumerate(old)
        ]
        rows.append([dataset, *cells])
    averages = ranks.mean(axis=1)
    bold = set()
    if len(table.datasets) > 1:
        met = [[theirs[d, m] for d in table.datasets if (d, m) in theirs] for m in kept]
        more = [f" ({np.mean(v):.1f})" if v else "" for v in met]
        last = ["average", *[f"{a:.1f}{b}" for a, b in zip(averages, more, strict=True)]]
        bold = {
            (len(rows), 1 + int(i))
            for i in np.flatnonzero(averages.round(1) == averages.min().round(1))
        }
        rows.append(last)
    note = "Rank of each method on each data set."
    if theirs:
        note += " In brackets: the rank in the evaluation of Gao and Sebastiani (2016)."
    return f"<p class=note>{note}</p>" + frame_table(
        ["data set", *kept], rows, bold, average=len(table.datasets) > 1
    )


def sign_table(measure: str, name: str | None, methods: list[str]) -> str:
    """Signs of the pairwise tests of 2016, to stand beside ours; '' for other studies."""
    table = published("gs2016_wilcoxon") if name == "tweets" else None
    order = [m for m in GS2016 if m in methods]
    if table is None or measure not in table["measure"].tolist() or len(order) < 2:
        return ""
    signs = {
        (str(table["method"][i]), str(table["other"][i])): str(table["sign"][i])
        for i in np.flatnonzero(table["measure"] == measure)
    }
    rows = [[a, *["-" if a == b else signs[a, b] for b in order]] for a in order]
    return (
        "<h4>Published: the experiments of Gao and Sebastiani (2016), 11 samples</h4>"
        + frame_table(["", *order], rows)
    )


def _gs2016_ranks(table: ResultTable) -> dict[tuple[str, str], int]:
    """Published ranks of 2016 by data set and method."""
    ranks = published("tweets_ranks")
    assert ranks is not None  # it comes with the package
    mine: Frame = ranks.rows(ranks["measure"] == table.measure)
    found = zip(
        *(mine["dataset"].tolist(), mine["method"].tolist(), mine["gs2016_rank"].tolist()),
        strict=True,
    )
    return {(str(d), str(m)): int(r) for d, m, r in found if d in table.datasets}
