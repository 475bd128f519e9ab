"""Build shared tasks from a corpus: filter, label, split, draw samples, write vectors and texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core import validation as check
from headcount._core.frame import Frame
from headcount._core.types import Ints
from headcount.bags import Bags
from headcount.data.tables import as_names
from headcount.exceptions import InputError, choose
from headcount.lequa.publish import write_official, zip_task
from headcount.lequa.runs import write_run
from headcount.lequa.task import Task, write_bags, write_items, write_task
from headcount.protocols import UniformPrevalence
from headcount.protocols.artificial import round_counts
from headcount.text.names import make_vectorizer

SENTIMENT = {"1": "negative", "2": "negative", "4": "positive", "5": "positive"}


@dataclass(frozen=True)
class Recipe:
    """How a lab is made from a corpus; the defaults are those of LeQua's binary tasks.

    Parameters
    ----------
    text, label : str
        Columns of the corpus.
    labels : mapping of label to class, optional
        Labels that are not in it are dropped; ``SENTIMENT`` turns stars into two classes.
    helpful : str, optional
        Column of votes; reviews without one are dropped.
    min_length : int, default 200
        Characters of the shortest text that is kept.
    n_train, n_dev, n_test, size : int
        Labelled items, samples of either kind, items a sample.
    prevalence : mapping of class to share, optional
        Of the training set; the natural one by default.
    letter : str, optional
        Tasks are named T1 (vectors) and T2 (texts) and this: 'A' for two classes, else 'B'.
    forms : tuple of str
        'vector', 'text' or both, of the same items.
    vectors : str, default 'learnt'
        Word vectors whose mean a document gets: 'learnt' (from the training texts themselves),
        'words', 'glove', a file of word vectors; or a sentence encoder ('minilm', a folder).
    dimensions : int, default 300
        Of learnt vectors.
    dev_share : float, default 0.4
        Of the items that are not in the training set, the share that dev samples are drawn from;
        test samples are drawn from the rest.
    seed : int, default 0
    """

    text: str = "text"
    label: str = "label"
    labels: Mapping[str, str] | None = None
    helpful: str | None = None
    min_length: int = 200
    n_train: int = 5000
    n_dev: int = 1000
    n_test: int = 5000
    size: int = 250
    prevalence: Mapping[str, float] | None = None
    letter: str | None = None
    forms: tuple[str, ...] = ("vector", "text")
    vectors: str = "learnt"
    dimensions: int = 300
    dev_share: float = 0.4
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n_train", "n_dev", "n_test", "size", "dimensions"):
            check.whole(name, getattr(self, name))
        check.whole("min_length", self.min_length, 0)
        check.whole("seed", self.seed, 0)
        if self.seed >= 2**31:
            raise InputError(f"seed must be below 2**31, got {self.seed}.")
        check.at_least("dev_share", self.dev_share, 0.01, 0.99)
        for form in self.forms:
            choose("form", form, ["vector", "text"])


def build_lab(
    corpus: Frame, folder: str | Path, recipe: Recipe, *, official: bool = False, zips: bool = False
) -> list[Path]:
    """Build the tasks of a recipe; every byte repeats with the seed.

    Parameters
    ----------
    corpus : Frame
        Texts, labels and, if the recipe asks for them, votes.
    folder : path
        Gets a folder for each task, and ``gold`` with the truth about the test samples.
    recipe : Recipe
    official : bool, default False
        Write the official text layout instead of the compact form.
    zips : bool, default False
        Write the zip files of the lab too; needs the official layout.

    Returns
    -------
    list of the tasks' folders
    """
    home = Path(folder)
    texts, classes, codes = _kept(corpus, recipe)
    letter = recipe.letter or ("A" if len(classes) == 2 else "B")
    names = {form: f"{'T1' if form == 'vector' else 'T2'}{letter}" for form in recipe.forms}
    for name in names.values():
        if (home / name).exists() or (home / "gold" / name).exists():
            raise InputError(f"{str(home)!r} holds a task {name} already: give another folder.")
    rng = np.random.default_rng(recipe.seed)
    train, dev, test = _split(codes, classes, recipe, rng)
    drawn = {}
    for split, rows, n in (("dev", dev, recipe.n_dev), ("test", test, recipe.n_test)):
        protocol = UniformPrevalence(
            n_bags=n, size=recipe.size, random_state=recipe.seed * 2 + (split == "test")
        )
        drawn[split] = protocol.draw(codes[rows], classes=np.arange(len(classes)))
    folders = []
    for form, name in names.items():
        target = home / name
        compact = home / f".{name}" if official else target
        items = _items(form, texts, (train, dev, test), recipe)
        _write(compact, name, form, items, codes[train], drawn, classes, recipe, rng)
        gold = home / "gold" / name / "test_prevalences.txt"
        write_run(gold, np.asarray(drawn["test"].prevalence))
        if official:
            write_official(Task(compact), target)
            _remove(compact)
            if zips:
                zip_task(target, name, gold)
        folders.append(target)
    return folders


def _kept(corpus: Frame, recipe: Recipe) -> tuple[NDArray[Any], list[str], Ints]:
    """Texts, names of the classes and codes, after the filters."""
    texts = corpus[recipe.text]
    labels = as_names(corpus[recipe.label])
    keep = np.array([isinstance(t, str) and len(t) >= recipe.min_length for t in texts.tolist()])
    if not keep.any():
        raise InputError(
            f"no text has {recipe.min_length} characters: lower min_length, or check that "
            f"{recipe.text!r} is the column of texts."
        )
    if recipe.helpful is not None:
        try:
            keep &= corpus[recipe.helpful].astype(float) > 0
        except (TypeError, ValueError):
            raise InputError(f"the votes in {recipe.helpful!r} must be numbers.") from None
    if recipe.labels is not None:
        keep &= np.isin(labels, list(recipe.labels))
        mapped = np.array([recipe.labels.get(v, "") for v in labels.tolist()])
    else:
        keep &= labels != ""
        mapped = labels
    classes = sorted(set(mapped[keep].tolist()))
    if len(classes) < 2:
        raise InputError(f"after the filters there are not two classes left, only {classes}.")
    bad = [c for c in classes if not c.strip() or any(ord(ch) < 32 for ch in c)]
    if bad:
        raise InputError(f"a class cannot be called {bad[0]!r}: give it a name by a map of labels.")
    codes = np.searchsorted(classes, mapped[keep])
    return texts[keep], classes, np.asarray(codes, dtype=np.int64)


def _split(
    codes: Ints, classes: list[str], recipe: Recipe, rng: np.random.Generator
) -> tuple[Ints, Ints, Ints]:
    """Training, dev and test items, disjoint, each stratified."""
    k = len(classes)
    have = np.bincount(codes, minlength=k)
    share = have / len(codes)
    if recipe.prevalence is not None:
        unknown = sorted(set(recipe.prevalence) - set(classes))
        share = np.array([float(recipe.prevalence.get(c, 0.0)) for c in classes])
        if unknown or not (share > 0).all() or not abs(share.sum() - 1) <= 1e-6:
            raise InputError(
                f"prevalence must give each of {classes} a positive share, and they must sum to 1."
            )
    if recipe.n_train < 2 * k:
        raise InputError(f"{recipe.n_train} training items are too few for {k} classes.")
    counts = round_counts(share[None], recipe.n_train, np.array([0.5]))[0]
    counts = np.maximum(counts, 2)
    counts[np.argmax(counts)] += recipe.n_train - counts.sum()
    short = [
        f"{c} ({h} of more than {w})"
        for c, h, w in zip(classes, have, counts, strict=True)
        if h < w + 2
    ]
    if short:
        raise InputError(
            f"too few items for {recipe.n_train} training items and some to draw samples from: "
            f"{', '.join(short)}. Lower n_train, or loosen the filters."
        )
    parts: list[list[Ints]] = [[], [], []]
    for c in range(k):
        rows = rng.permutation(np.flatnonzero(codes == c))
        rest = rows[counts[c] :]
        cut = min(max(1, round(len(rest) * recipe.dev_share)), len(rest) - 1)
        for part, chosen in zip(parts, (rows[: counts[c]], rest[:cut], rest[cut:]), strict=True):
            part.append(chosen)
    train, dev, test = (rng.permutation(np.concatenate(part)) for part in parts)
    return train, dev, test


def _items(form: str, texts: NDArray[Any], rows: tuple[Any, ...], recipe: Recipe) -> list[Any]:
    if form == "text":
        return [texts[part] for part in rows]
    vectorizer = make_vectorizer(recipe.vectors)
    if recipe.vectors == "learnt":
        vectorizer.set_params(dimensions=recipe.dimensions, random_state=recipe.seed)
    vectorizer.fit(texts[rows[0]])
    made = [np.asarray(vectorizer.transform(texts[part])) for part in rows]
    if not all(np.isfinite(part).all() for part in made) or not np.ptp(made[0], axis=0).any():
        raise InputError(
            f"the vectors {recipe.vectors!r} tell no document from another: they know none of its "
            "words, or hold numbers that are not finite."
        )
    return made


def _write(
    folder: Path,
    name: str,
    form: str,
    items: list[Any],
    y: Ints,
    drawn: Mapping[str, Bags],
    classes: list[str],
    recipe: Recipe,
    rng: np.random.Generator,
) -> None:
    train, dev, test = items
    order = rng.permutation(len(y)) if form == "vector" else np.arange(len(y))
    write_items(folder, "train", train[order], y[order])
    for split, pool in (("dev", dev), ("test", test)):
        write_items(folder, split, pool)
        write_bags(folder, split, drawn[split])
        flat = np.full((len(drawn[split]), len(classes)), 1 / len(classes))
        write_run(folder / f"dummy_{split}_predictions.txt", flat)
    write_run(folder / "dev_prevalences.txt", np.asarray(drawn["dev"].prevalence))
    columns = 0 if form == "text" else int(train.shape[1])
    write_task(
        folder,
        name=name,
        form=form,
        size=recipe.size,
        classes=classes,
        columns=columns,
        seed=recipe.seed,
    )


def _remove(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
