"""The temporal sets at hand: health news by month, tweets by year, and a control with label shift.

    python benchmarks/temporal.py ../shared/data out/

writes the control and the study's file into the folder; run it by `headcount study run`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

STUDY = """\
extends = "temporal"
name = "temporal sets at hand"

[[datasets]]
name = "health_news"
path = "{data}/health_news.parquet"
text = "text"
label = "outlet"
[datasets.temporal]
date = "time"
train = ["2013-10", "2014-09"]
test = ["2014-10", "2015-04"]

[[datasets]]
name = "semeval"
path = "{data}/semeval.parquet"
text = "text"
label = "label"
where = {{ subtask = "A" }}
[datasets.temporal]
date = "year"
every = "year"
train = [2013, 2013]
test = [2014, 2016]

[[datasets]]
name = "control"
path = "control.parquet"
text = "text"
label = "sentiment"
[datasets.temporal]
date = "date"
part = "domain"
train = ["2020-01", "2020-12"]
test = ["2021-01", "2022-12"]
"""


def write_control(data: Path, path: Path, size: int = 750) -> None:
    """Reviews in 36 months whose share of positive ones drifts and jumps; nothing else changes."""
    reviews = pd.read_parquet(data / "reviews.parquet").dropna(subset="sentiment")
    rng = np.random.default_rng(0)
    t = np.arange(36)
    share = np.where(t < 12, 0.85 - 0.01 * t, 0.70 - 0.03 * (t - 12))
    share[20:24] += 0.30  # a jump for four months
    share[30:] += 0.25  # and one that stays
    pools = {c: rng.permutation(np.flatnonzero(reviews["sentiment"] == c)) for c in (0, 1)}
    taken = {0: 0, 1: 0}
    rows, months = [], []
    for month, p in zip(t, share, strict=True):
        positive = round(size * p)
        for c, n in ((1, positive), (0, size - positive)):
            part = pools[c][taken[c] : taken[c] + n]
            assert len(part) == n, "not enough reviews"
            taken[c] += n
            rows += part.tolist()
            months += [month] * n
    found = reviews.iloc[rows][["text", "domain"]].copy()
    found["sentiment"] = np.where(reviews["sentiment"].iloc[rows] == 1, "positive", "negative")
    found["date"] = (np.datetime64("2020-01") + np.array(months)).astype(str)
    found.to_parquet(path, index=False)


def main() -> None:
    data, out = (Path(p).resolve() for p in sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    write_control(data, out / "control.parquet")
    (out / "hand.toml").write_text(STUDY.format(data=data))


if __name__ == "__main__":
    main()
