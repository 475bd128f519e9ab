"""The temporal sets at hand: health news by month, tweets by year, and a control with label shift.

``python benchmarks/temporal.py ../shared/data out/`` writes three studies and their controls into
the folder, to be run by ``headcount study run``: `hand.toml`, every method on three sets;
`balanced.toml`, standard against balanced training on five windows of the news and five controls;
and `ranks.toml`, every method on the windows of the news, the tweets and a control.
``python benchmarks/temporal.py out/bal`` prints means and standard errors of the second.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

NEWS = """
[[datasets]]
name = "{name}"
path = "{data}/health_news.parquet"
text = "text"
label = "outlet"
[datasets.temporal]
date = "time"
train = ["{train}", "{end}"]
test = ["", "{last}"]
"""
TWEETS = """
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
"""
CONTROL = """
[[datasets]]
name = "control{seed}"
path = "control{seed}.parquet"
text = "text"
label = "sentiment"
[datasets.temporal]
date = "date"
part = "domain"
train = ["2020-01", "2020-12"]
test = ["2021-01", "2022-12"]
"""
METHODS = ["BBSE", "MLLS", "MLLS-BCTS", "BayesQuantifier"]


def write_control(data: Path, path: Path, seed: int, size: int = 750) -> None:
    """Reviews in 36 months whose share of positive ones drifts and jumps; nothing else changes."""
    reviews = pd.read_parquet(data / "reviews.parquet").dropna(subset="sentiment")
    rng = np.random.default_rng(seed)
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


def write_studies(data: Path, out: Path) -> None:
    """All studies, with the controls that they read."""
    from headcount.study import example

    out.mkdir(parents=True, exist_ok=True)
    for seed in range(5):
        write_control(data, out / f"control{seed}.parquet", seed)
    news = NEWS.format(
        data=data, name="health_news", train="2013-10", end="2014-09", last="2015-04"
    )
    head = 'extends = "temporal"\nname = "{}"\n'
    three = news + TWEETS.format(data=data) + CONTROL.format(seed=0)
    (out / "hand.toml").write_text(head.format("temporal sets at hand") + three)
    text = head.format("balanced training")
    for name in METHODS:
        calibrated = ', calibrator = "bcts"' * (name == "MLLS-BCTS")
        told = ', measure = "rae"' * (name == "BayesQuantifier")
        text += f'[[methods]]\nname = "{name}"\nquantifier = "{name.removesuffix("-BCTS")}"\n'
        text += (
            f'classifier = "base"\nbalanced = true\nparameters = {{ cv = 5{calibrated}{told} }}\n'
        )
    sets = ""
    for end in ("2013-09", "2013-12", "2014-03", "2014-06", "2014-09"):
        month = np.datetime64(end)
        name, first, last = f"news {end}", month - 11, month + 6
        sets += NEWS.format(data=data, name=name, train=first, end=end, last=last)
    controls = "".join(CONTROL.format(seed=seed) for seed in range(5))
    (out / "balanced.toml").write_text(text + sets + controls)
    # The methods of the ready-made study, without their twins and intervals.
    methods = example("temporal").split("[[methods]]", 1)[1].split("[[datasets]]")[0]
    for key in ("balanced", "intervals"):
        methods = methods.replace(f"{key} = true\n", "")
    sets += TWEETS.format(data=data) + CONTROL.format(seed=0)
    ranked = f"{head.format('ranks over time')}[[methods]]{methods}{sets}"
    (out / "ranks.toml").write_text(ranked)


def summarise(folder: Path) -> None:
    """Mean error and standard error over windows and controls, standard and balanced."""
    from headcount.study import Results

    results = Results.read(folder)
    part = results.by("rae").to_pandas()
    means = part.groupby(["dataset", "method"])["rae"].mean().unstack() * 100
    for family in ("news", "control"):
        mine = means[means.index.str.startswith(family)]
        for name in METHODS:
            a, b = mine[name], mine[f"{name}, balanced"]
            change = 100 * (b.mean() / a.mean() - 1)
            error = [x.std(ddof=1) / np.sqrt(len(x)) for x in (a, b, b - a)]
            print(
                f"{family} {name}: {a.mean():.2f} ± {error[0]:.2f}, {b.mean():.2f} ± {error[1]:.2f}"
                f", {change:+.1f} % (difference {(b - a).mean():+.2f} ± {error[2]:.2f})"
            )


if __name__ == "__main__":
    if len(sys.argv) == 2:
        summarise(Path(sys.argv[1]))
    else:
        write_studies(*(Path(p).resolve() for p in sys.argv[1:3]))
