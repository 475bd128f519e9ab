"""How a lab is made from a corpus: which texts are kept, and which part each of them joins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core import validation as check
from headcount._core.frame import Frame
from headcount._core.types import Ints
from headcount.data.tables import as_names
from headcount.exceptions import InputError, choose
from headcount.protocols.artificial import round_counts

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
    max_reuse : int, optional
        No item is in more test samples than this; any number by default.
    leak_limit : float, default 0.1
        The lab is refused if an attack on the items that test samples share takes off more than
        this share of the error of the best honest baseline; 1 builds it all the same.
    near : float or None, default 0.8
        Texts whose runs of three words overlap by this Jaccard index count as nearly equal, and
        all but the first are left out; None leaves out only equal ones.
    seed : int, optional
        Decides which items are labelled, the dev samples and learnt vectors; fresh by default.
    secret : int, optional
        Entropy of the test samples; fresh by default. Who knows it knows the gold, so that it is
        kept with the gold alone. Give it only to build the same test samples again.
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
    max_reuse: int | None = None
    leak_limit: float = 0.1
    near: float | None = 0.8
    seed: int | None = None
    secret: int | None = None

    def __post_init__(self) -> None:
        for name in ("n_train", "n_dev", "n_test", "size", "dimensions"):
            check.whole(name, getattr(self, name))
        check.whole("min_length", self.min_length, 0)
        for name in ("seed", "secret"):
            if getattr(self, name) is not None:
                check.whole(name, getattr(self, name), 0)
        if self.max_reuse is not None:
            check.whole("max_reuse", self.max_reuse)
        check.at_least("leak_limit", self.leak_limit, 0.0, 1.0)
        if self.near is not None:
            check.at_least("near", self.near, 0.1, 1.0)
        check.at_least("dev_share", self.dev_share, 0.01, 0.99)
        for form in self.forms:
            choose("form", form, ["vector", "text"])


def filter_corpus(corpus: Frame, recipe: Recipe) -> tuple[NDArray[Any], list[str], Ints]:
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


def split_items(
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
