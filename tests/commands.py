"""Commands run in tests, and the files and rows that they are given."""

import csv
import json

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from headcount.cli.app import app
from headcount.exceptions import HeadcountError

GOOD = ["fine", "lovely", "great", "happy", "bright", "kind"]

BAD = ["awful", "broken", "poor", "sad", "slow", "rude"]

COMMON = ["the", "day", "shop", "thing", "again", "today"]


def run(*args, code=0):
    """Output of a command that ends as it should."""
    done = CliRunner().invoke(app, [str(a) for a in args], catch_exceptions=True)
    if code == 2:
        assert isinstance(done.exception, HeadcountError), (done.output, done.exception)
        setting = getattr(done.exception, "setting", None)  # as the command's main prints it
        return str(done.exception) + (f" (option --{setting})" if setting else "")
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


def write(path, **columns):
    """A CSV file of columns."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def table(folder, name, **columns):
    write(folder / name, **columns)
    return str(folder / name)


def heap_of(path, rows, header="review,date,shop,mood"):
    path.write_text(header + "\n" + "\n".join(rows) + "\n")
    return path


def shares(*args):
    """Rows of a printed estimate, as JSON."""
    return json.loads(run("estimate", *args, "--as", "json").split("\nnote")[0].split("\nwarn")[0])


def sentences(y, rng):
    """Short texts whose words lean to their class."""
    out = []
    for label in y:
        own, other = (GOOD, BAD) if label == "pos" else (BAD, GOOD)
        words = [*rng.choice(own, 2), *rng.choice(other, 1), *rng.choice(COMMON, 4)]
        out.append(" ".join(rng.permutation(words)))
    return np.array(out, dtype=object)


def fill_folder(path):
    """Labelled rows and unlabelled months whose share of pos falls from 80 % to 20 %."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(800) < 0.5, "pos", "neg")
    write(path / "train.csv", review=sentences(y, rng), mood=y)
    months, labels = [], []
    for m, share in enumerate([0.8, 0.6, 0.4, 0.2]):
        labels.append(np.where(rng.random(500) < share, "pos", "neg"))
        months += [f"2024-{m + 1:02d}-{d:02d}" for d in rng.integers(1, 29, 500)]
    labels = np.concatenate(labels)
    shop = rng.choice(["north", "south"], 2000)
    write(path / "heap.csv", review=sentences(labels, rng), date=months, shop=shop, mood=labels)
    p = np.where(labels == "pos", rng.beta(4, 2, 2000), rng.beta(2, 4, 2000))
    held = np.where(y == "pos", rng.beta(4, 2, 800), rng.beta(2, 4, 800))
    write(path / "scored.csv", p_pos=held, p_neg=1 - held, mood=y)
    write(path / "scores.csv", p_pos=p, p_neg=1 - p, date=months, mood=labels)
    run("fit", path / "train.csv", "--text", "review", "--label", "mood", "-o", path / "m.hc")
    run(
        "fit",
        path / "scored.csv",
        "--scores",
        "p_pos,p_neg",
        "--label",
        "mood",
        "-o",
        path / "s.hc",
    )
    return path


def moods(n, rng, clear=4.0):
    y = np.where(rng.random(n) < 0.4, "yes", "no")
    return y, 1 / (1 + np.exp(-clear * (np.where(y == "yes", 0.5, -0.5) + rng.normal(0, 0.4, n))))


def messages(n, share, rng, dates=("2024-01", "2024-02", "2024-03")):
    """Rows of two classes, with texts, a number and dates."""
    y = rng.random(n) < share
    texts = [
        f"{rng.choice(['bad', 'poor'] if c else ['good', 'fine'])} w{i % 50}"
        for i, c in enumerate(y)
    ]
    day = [f"{rng.choice(dates)}-{rng.integers(1, 29):02d}" for _ in range(n)]
    amount = rng.normal(size=n) + y
    return pd.DataFrame(
        {"text": texts, "amount": amount, "date": day, "kind": np.where(y, "b", "g")}
    )
