"""Build shared tasks from a corpus: filter, label, split, draw samples, write vectors and texts."""

from __future__ import annotations

import hashlib
import secrets
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.files import write_json
from headcount._core.frame import Frame
from headcount._core.types import Ints
from headcount.bags import Bags
from headcount.exceptions import HeadcountError, InputError
from headcount.lequa.draw import derive_seed, draw_samples, drop_unused
from headcount.lequa.duplicates import find_repeats
from headcount.lequa.publish import write_official, zip_task
from headcount.lequa.recipe import SENTIMENT, Recipe, filter_corpus, split_items
from headcount.lequa.reuse import Leak, Scored
from headcount.lequa.runs import write_run
from headcount.lequa.task import Task, write_bags, write_items, write_task
from headcount.text.names import make_vectorizer

__all__ = ["SENTIMENT", "Recipe", "build_lab"]
Say = Callable[[str], None]
GUESSED = 2**64  # secrets below it could be tried one after the other


def build_lab(
    corpus: Frame,
    folder: str | Path,
    recipe: Recipe,
    *,
    official: bool = False,
    zips: bool = False,
    tell: Say | None = None,
) -> list[Path]:
    """Build the tasks of a recipe; every byte repeats with its seed and secret.

    Parameters
    ----------
    corpus : Frame
        Texts, labels and, if the recipe asks for them, votes.
    folder : path
        Gets a folder for each task, and ``gold`` with what participants must not see: the truth
        about the test samples, the seeds they were drawn with, and how much an attack on the
        items they share reveals.
    recipe : Recipe
    official : bool, default False
        Write the official text layout instead of the compact form.
    zips : bool, default False
        Write the zip files of the lab too; needs the official layout.
    tell : callable, optional
        Gets a line for each thing that the organiser should know.

    Returns
    -------
    list of the tasks' folders

    Raises
    ------
    InputError
        If the test samples share so many items that the gold can be worked out from them; the
        message names the cures.
    """
    home, say = Path(folder), tell or (lambda _: None)
    draft = _Draft.of(corpus, recipe, say)
    letter = recipe.letter or ("A" if len(draft.classes) == 2 else "B")
    names = {form: f"{'T1' if form == 'vector' else 'T2'}{letter}" for form in recipe.forms}
    for name in names.values():
        if (home / name).exists() or (home / "gold" / name).exists():
            raise InputError(f"{str(home)!r} holds a task {name} already: give another folder.")
    forms = {form: _Form.of(draft, form) for form in recipe.forms}
    leak = _attacked(draft, forms[recipe.forms[0]])
    say(f"{leak}.")
    folders = []
    for form, name in names.items():
        target = home / name
        compact = home / f".{name}" if official else target
        forms[form].write(compact, name)
        gold = home / "gold" / name / "test_prevalences.txt"
        write_run(gold, np.asarray(draft.test.prevalence))
        if official:
            write_official(Task(compact), target)
            shutil.rmtree(compact)
            if zips:
                zip_task(target, name, gold)
        folders.append(target)
    reuse = leak if isinstance(leak, str) else asdict(leak)
    about = {"seed": draft.seed, "secret": draft.secret, "reuse": reuse}
    write_json(home / "gold" / f"drawn_{letter}.json", about)
    return folders


@dataclass(frozen=True, eq=False)
class _Draft:
    """A lab before it is written: texts, parts and samples, the same for vectors and texts."""

    recipe: Recipe
    texts: NDArray[Any]
    classes: list[str]
    codes: Ints
    parts: dict[str, Ints]  # rows of train, dev and test; those in no sample are left out
    dev: Bags
    test: Bags
    pool: Ints  # codes of all items that test samples could be drawn from
    seed: int
    secret: int

    @classmethod
    def of(cls, corpus: Frame, recipe: Recipe, say: Say) -> _Draft:
        texts, classes, codes = filter_corpus(corpus, recipe)
        repeats = find_repeats(texts, recipe.near)
        if repeats.equal or repeats.near:
            say(f"{repeats}.")
        texts, codes = texts[repeats.keep], codes[repeats.keep]
        if recipe.secret is not None and recipe.secret < GUESSED:
            say("the secret is a number that can be guessed: leave it out, or give a long one.")
        # Two seeds that know nothing of each other: dev data must not tell of the test samples.
        seed = secrets.randbits(128) if recipe.seed is None else recipe.seed
        secret = secrets.randbits(128) if recipe.secret is None else recipe.secret
        rng = np.random.default_rng(derive_seed(seed, "split"))
        train, dev, test = split_items(codes, classes, recipe, rng)
        sizes: dict[str, Any] = {"size": recipe.size}
        bags, used = {}, {}
        for split, rows in (("dev", dev), ("test", test)):
            n, reuse = (recipe.n_dev, None) if split == "dev" else (recipe.n_test, recipe.max_reuse)
            entropy = derive_seed(seed if split == "dev" else secret, split)
            drawn = draw_samples(
                codes[rows], classes, n_bags=n, entropy=entropy, max_reuse=reuse, **sizes
            )
            bags[split], kept = drop_unused(drawn)
            used[split] = rows[kept]
        parts = {"train": train, **used}
        return cls(
            *(recipe, texts, classes, codes, parts),
            *(bags["dev"], bags["test"], codes[test], seed, secret),
        )

    def cures(self, safe: float) -> str:
        """What an organiser can do, if an item may be drawn `safe` times."""
        recipe, k = self.recipe, len(self.classes)
        n_pool = len(self.pool)
        apart = int(np.bincount(self.pool, minlength=k).min() * k / recipe.size)
        found = [
            f"max_reuse=1 puts each item into one sample only, enough for about {apart:,} samples "
            "of this corpus"
        ]
        if safe > 0:
            fewer = int(safe * n_pool / recipe.size)
            needed = recipe.n_test * recipe.size / safe
            corpus = recipe.n_train + needed / (1 - recipe.dev_share)
            found += [
                f"draw at most {fewer:,} test samples of {recipe.size} (n_test), or smaller ones",
                f"for {recipe.n_test:,} samples of {recipe.size}, a corpus of about "
                f"{round(corpus, -2):,.0f} texts is needed after the filters; there are "
                f"{len(self.codes):,}",
            ]
        return "What helps: " + "; ".join(found) + "; leak_limit=1 builds the lab all the same."


@dataclass(frozen=True, eq=False)
class _Form:
    """Vectors or texts of a draft, in an order that depends on nothing but the texts."""

    draft: _Draft
    kind: str
    labels: dict[str, Ints]  # of the items; participants get those of train
    items: dict[str, Any]
    bags: dict[str, Bags]

    @classmethod
    def of(cls, draft: _Draft, kind: str) -> _Form:
        order = {
            part: rows[_hash_order(draft.texts[rows], kind)] for part, rows in draft.parts.items()
        }
        bags = {
            split: _follow(bags, draft.parts[split], order[split])
            for split, bags in (("dev", draft.dev), ("test", draft.test))
        }
        texts = {part: draft.texts[rows] for part, rows in order.items()}
        items = texts if kind == "text" else _vectors(texts, draft.recipe, draft.seed)
        labels = {part: draft.codes[rows] for part, rows in order.items()}
        return cls(draft, kind, labels, items, bags)

    def write(self, folder: Path, name: str) -> None:
        """Write the compact form."""
        draft = self.draft
        k = len(draft.classes)
        write_items(folder, "train", self.items["train"], self.labels["train"])
        for split, bags in self.bags.items():
            write_items(folder, split, self.items[split])
            write_bags(folder, split, bags)
            write_run(folder / f"dummy_{split}_predictions.txt", np.full((len(bags), k), 1 / k))
        write_run(folder / "dev_prevalences.txt", np.asarray(draft.dev.prevalence))
        write_task(
            folder,
            name=name,
            form=self.kind,
            size=draft.recipe.size,
            classes=draft.classes,
            columns=0 if self.kind == "text" else int(self.items["train"].shape[1]),
            built=True,
        )


def _attacked(draft: _Draft, form: _Form) -> Leak | str:
    """Attack the test samples; refuse them, with the cures, if they give away too much.

    Where all is allowed, a reason why the attack cannot be run is given back instead.
    """
    limit = draft.recipe.leak_limit
    try:
        scored = _scored(draft, form)
    except (HeadcountError, ValueError) as error:
        words = f"what the test samples give away cannot be measured: {error}"
        if limit >= 1:
            return words
        raise InputError(f"{words} leak_limit=1 builds the lab all the same.") from None
    leak = scored.measure(form.bags["test"])
    drawn = form.bags["test"].indices
    shared = len(np.unique(drawn)) < len(drawn)
    # Where no item is shared, the attack is one more honest method, however well it does.
    if leak.share <= limit or not shared:
        return leak
    shares = np.bincount(draft.pool, minlength=len(draft.classes)) / len(draft.pool)
    safe = scored.safe_reuse(form.labels["test"], shares, draft.recipe.size, limit, leak.scores)
    raise InputError(f"{leak}, more than {limit:.0%}. {draft.cures(safe)}")


def _scored(draft: _Draft, form: _Form) -> Scored:
    """The test items as an honest participant would score them."""
    train, test = form.items["train"], form.items["test"]
    if form.kind == "text":
        vectorizer = make_vectorizer("tfidf")
        train, test = vectorizer.fit_transform(train), vectorizer.transform(test)
    return Scored.of(train, form.labels["train"], test, len(draft.classes))


def _hash_order(texts: NDArray[Any], kind: str) -> Ints:
    """Order by a hash of the text and the form, so that position tells neither class nor twin."""
    keys = [hashlib.blake2b(f"{kind}/{t}".encode(), digest_size=16).digest() for t in texts]
    return np.argsort(np.array(keys, dtype="S16"), kind="stable")


def _follow(bags: Bags, rows: Ints, order: Ints) -> Bags:
    """Samples over items that have been put into another order."""
    place = np.empty(rows.max() + 1, dtype=bags.indices.dtype)
    place[order] = np.arange(len(order))
    moved = place[rows[bags.indices]].reshape(len(bags), -1)
    return Bags(
        bags.indptr,
        np.sort(moved, axis=1).ravel(),
        len(order),
        prevalence=bags.prevalence,
        classes=bags.classes,
    )


def _vectors(texts: dict[str, NDArray[Any]], recipe: Recipe, seed: int) -> dict[str, Any]:
    vectorizer = make_vectorizer(recipe.vectors)
    if recipe.vectors == "learnt":
        learnt = derive_seed(seed, "vectors") % 2**31
        vectorizer.set_params(dimensions=recipe.dimensions, random_state=learnt)
    vectorizer.fit(texts["train"])
    made = {part: np.asarray(vectorizer.transform(each)) for part, each in texts.items()}
    if not all(np.isfinite(v).all() for v in made.values()) or not np.ptp(made["train"], 0).any():
        raise InputError(
            f"the vectors {recipe.vectors!r} tell no document from another: they know none of its "
            "words, or hold numbers that are not finite."
        )
    return made
