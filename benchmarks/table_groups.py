"""Groups that the rows reveal: `fit --by` against simpler answers, on real corpora.

python benchmarks/table_groups.py [method] [splits, or first-last] [design ...]

Some rows of every known group are labelled, all others are the heap; a quarter of the groups has
no labelled row at all. Errors in points of: the mean of a group's own labelled rows, the overall
shares of the labelled rows, the best of four methods that were not told of groups (chosen with
hindsight, for each design), and the model of `tables.fit(by=...)`, with the coverage of its 95 %
intervals and their mean width. In the designs with companies, shops, towns and domains, groups have
shares of their own and name themselves in every text (domains only where it says so).
The corpora are looked for in HEADCOUNT_SHARED_DATA.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import harness  # noqa: F401  first: it sets one thread for everybody
from headcount import CC, PACC, PCC, SLD, Bags, tables
from headcount.text import TfIdf

FOLDER = Path(os.environ.get("HEADCOUNT_SHARED_DATA", "../shared/data"))
HEAP = 1500  # rows of a group at most
OTHERS = ("CC", "PCC", "PACC", "SLD")
COMPANIES = ("Acme", "Borealis", "Cirrus", "Dynamo", "Everest", "Fjord", "Gallant", "Helios")


def read(name: str) -> pd.DataFrame:
    return pd.read_parquet(FOLDER / f"{name}.parquet")


def crises(label: str) -> pd.DataFrame:
    return read("crises").rename(columns={"event": "group", label: "y"})


def topics(task: str, least: int) -> pd.DataFrame:
    table = read("semeval")
    table = table[(table["subtask"] == task) & (table["label"] != "off topic")]
    table = table.rename(columns={"topic": "group", "label": "y"})
    return table[table.groupby("group")["y"].transform("size") >= least]


def quarters() -> pd.DataFrame:
    table = read("health_news")
    often = table["outlet"].value_counts().index[:8]
    table = table[table["outlet"].isin(often) & (table["time"] >= "2012-06-01")]
    group = table["time"].dt.to_period("Q").astype(str)
    return table.assign(group=group).rename(columns={"outlet": "y"})


def given_shares(table: pd.DataFrame, rng: np.random.Generator, strength: float) -> pd.DataFrame:
    """Rows of each group thinned, so that its shares are some that were drawn."""
    classes = np.unique(table["y"])
    parts = []
    for _, rows in table.groupby("group"):
        shares = rng.dirichlet(strength * np.ones(len(classes)))
        counts = rows["y"].value_counts().reindex(classes).to_numpy()
        wanted = np.floor(shares * (counts / np.maximum(shares, 1e-9)).min()).astype(int)
        parts += [
            rows[rows["y"] == c].sample(n, random_state=int(rng.integers(1 << 30)))
            for c, n in zip(classes, wanted, strict=True)
        ]
    return pd.concat(parts)


def companies(rng: np.random.Generator, n: int) -> pd.DataFrame:
    table = read("semeval")
    table = table[table["subtask"] == "A"].sample(frac=1, random_state=int(rng.integers(1 << 30)))
    group = np.array(COMPANIES)[np.arange(len(table)) % n]
    table = table.assign(group=group, y=table["label"])
    table["text"] = "@" + table["group"] + " " + table["text"]
    return given_shares(table, rng, 1.5)


def made_groups(table: pd.DataFrame, rng: np.random.Generator, name: str, n: int) -> pd.DataFrame:
    """Groups that differ in nothing but their shares, and name themselves at the end of texts."""
    table = table.sample(frac=1, random_state=int(rng.integers(1 << 30)))
    table = table.assign(group=[f"{name}{i % n}" for i in range(len(table))])
    table["text"] = table["text"] + " " + table["group"]
    return given_shares(table, rng, 1.5)


def shops(rng: np.random.Generator, n: int) -> pd.DataFrame:
    table = read("reviews")
    table = table[table["sentiment"].notna()]
    return made_groups(table.assign(y=table["sentiment"].astype(int).astype(str)), rng, "shop", n)


def towns(rng: np.random.Generator, n: int) -> pd.DataFrame:
    table = read("health_news")
    often = table["outlet"].value_counts().index[:5]
    return made_groups(table[table["outlet"].isin(often)].assign(y=table["outlet"]), rng, "town", n)


def clubs(rng: np.random.Generator, n: int) -> pd.DataFrame:
    table = read("emotions")
    often = table["label"].value_counts().index[:4]
    return made_groups(table[table["label"].isin(often)].assign(y=table["label"]), rng, "club", n)


def domains(rng: np.random.Generator, *, named: bool) -> pd.DataFrame:
    table = read("reviews")
    table = table[table["sentiment"].notna()]
    table = table.assign(group=table["domain"], y=table["sentiment"].astype(int).astype(str))
    if named:
        table["text"] = table["group"] + " " + table["text"]
    return given_shares(table, rng, 1.5)


# Rows of a design and labelled rows of each known group.
DESIGNS: dict[str, tuple[Callable[[np.random.Generator], pd.DataFrame], int]] = {
    "6 companies, 3 moods": (lambda rng: companies(rng, 6), 150),
    "8 companies, 3 moods": (lambda rng: companies(rng, 8), 40),
    "16 domains, 2 moods": (lambda rng: domains(rng, named=False), 60),
    "16 named domains, 2 moods": (lambda rng: domains(rng, named=True), 30),
    "7 shops, 2 moods": (lambda rng: shops(rng, 7), 50),
    "20 shops, 2 moods": (lambda rng: shops(rng, 20), 40),
    "9 clubs, 4 feelings": (lambda rng: clubs(rng, 9), 60),
    "10 towns, 5 outlets": (lambda rng: towns(rng, 10), 60),
    "26 events, 8 types": (lambda _: crises("type"), 60),
    "26 events, 4 of informativeness": (lambda _: crises("informativeness"), 20),
    "topics, 3 moods": (lambda _: topics("BD", 80), 30),
    "200 topics, 5 moods": (lambda _: topics("CE", 70), 25),
    "12 quarters, 8 outlets": (lambda _: quarters(), 150),
}


def split(
    table: pd.DataFrame, labelled: int, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame, set[str]]:
    """Labelled rows, the heap, and the groups without labelled rows."""
    table = table[["text", "y", "group"]].sample(frac=1, random_state=int(rng.integers(1 << 30)))
    names = rng.permutation(np.unique(table["group"]))
    new = set(names[: len(names) // 4].tolist())
    place = table.groupby("group").cumcount()
    known = ~table["group"].isin(new)
    few = table["y"][known & (place < labelled)].value_counts()
    table = table[table["y"].isin(few.index[few >= 10])]
    place, known = place[table.index], known[table.index]
    return (
        table[known & (place < labelled)],
        table[(~known | (place >= labelled)) & (place < labelled + HEAP)],
        new,
    )


def shares_by_group(rows: pd.DataFrame, classes: list[str]) -> pd.DataFrame:
    return pd.crosstab(rows["group"], rows["y"], normalize="index").reindex(
        columns=classes, fill_value=0.0
    )


def estimates(found: tables.Count, what: str) -> pd.DataFrame:
    frame = found.to_frame().to_pandas()
    return frame.pivot(index="group", columns="class", values=what)


def without_groups(
    labelled: pd.DataFrame, heap: pd.DataFrame, like: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """Answers of methods that know nothing of groups, all by the same scores."""
    texts, labels = labelled["text"].to_numpy(object), labelled["y"].to_numpy(str)
    first = SLD(make_pipeline(TfIdf(), LogisticRegression(max_iter=1000)), calibrator="bcts")
    scorer = first.fit(texts, labels).scorer_
    views = scorer.views(heap["text"].to_numpy(object))
    rows = [np.flatnonzero(heap["group"] == g) for g in like.index]
    bags = Bags.from_lists(rows, n_items=len(heap))
    methods = {"CC": CC(), "PCC": PCC(), "PACC": PACC(), "SLD": SLD(calibrator="bcts")}
    return {
        name: pd.DataFrame(
            method.fit_scorer(scorer).estimate([(v, bags) for v in views]),
            index=like.index,
            columns=like.columns,
        )
        for name, method in methods.items()
    }


def one(name: str, method: str, seed: int) -> dict[str, float]:
    """Errors in points and coverage, of known and of new groups, in one split."""
    rng = np.random.default_rng([seed, len(name)])
    make, n = DESIGNS[name]
    labelled, heap, new = split(make(rng), n, rng)
    classes = sorted(labelled["y"].unique())
    truth = shares_by_group(heap, classes)
    overall = labelled["y"].value_counts(normalize=True).reindex(classes)
    inputs = {"text": "text", "label": "y", "force": True}
    began = time.process_time()
    model = tables.fit(labelled, **inputs, by="group", method=method, budget=60)
    found = model.estimate(heap, by="group")
    seconds = time.process_time() - began
    share, low, high = (estimates(found, c).loc[truth.index] for c in ("share", "low", "high"))
    inside = (truth >= low - 1e-9) & (truth <= high + 1e-9)
    out = {"seconds": seconds, "groups": len(truth), "classes": len(classes)}
    is_new = truth.index.isin(list(new))
    own = shares_by_group(labelled, classes).reindex(truth.index)
    answers = {"own": own, "overall": truth * 0 + overall, "pooled": share}
    answers |= without_groups(labelled, heap, truth)
    for kind, chosen in (("known", ~is_new), ("new", is_new)):
        for answer, values in answers.items():
            out[f"{kind} {answer}"] = 100 * float((values - truth).abs()[chosen].to_numpy().mean())
        out[f"{kind} inside"] = float(inside[chosen].to_numpy().mean())
        out[f"{kind} width"] = 100 * float((high - low)[chosen].to_numpy().mean())
    return out


def said(found: pd.DataFrame, what: str, digits: int = 1) -> str:
    values = found[what]
    return f"{values.mean():.{digits}f} ± {values.sem():.{digits}f}"


def row(name: str, found: pd.DataFrame) -> list[str]:
    """A line of the table; the ratio is to the best of all simpler answers."""
    cells = [name]
    for kind in ("known", "new"):
        plain = min(OTHERS, key=lambda m: found[f"{kind} {m}"].mean())
        simple = [f"{kind} overall", f"{kind} {plain}"] + (["known own"] if kind == "known" else [])
        best = min(found[c].mean() for c in simple)
        cells += [said(found, "known own")] if kind == "known" else []
        cells += [said(found, f"{kind} overall"), f"{said(found, f'{kind} {plain}')} ({plain})"]
        cells += [said(found, f"{kind} pooled"), f"{found[f'{kind} pooled'].mean() / best:.2f}"]
        cells += [said(found, f"{kind} inside", 3), f"{found[f'{kind} width'].mean():.0f}"]
    return cells


def main() -> None:
    warnings.simplefilter("ignore")
    method = sys.argv[1] if len(sys.argv) > 1 else "SLD"
    first, _, last = (sys.argv[2] if len(sys.argv) > 2 else "5").partition("-")
    seeds = range(int(first), int(last) + 1) if last else range(int(first))
    several = ["overall share", "best of four", "`fit --by`", "ratio", "coverage", "width"]
    header = ["design", *(f"known: {c}" for c in ["own rows", *several])]
    header += [f"new: {c}" for c in several]
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header), flush=True)
    for name in sys.argv[3:] or DESIGNS:
        found = pd.DataFrame([one(name, method, seed) for seed in seeds])
        print("| " + " | ".join(row(name, found)) + " |", flush=True)
        print(found.round(2).to_string(), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
