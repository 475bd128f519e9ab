"""A corpus made by rule: product reviews with stars, categories, helpful votes and drifting dates.

The texts are strings of words from the lists below, not sentences; classes differ in how often
words occur, as in real reviews, so that classifiers are decent and never perfect.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core import validation as check
from headcount._core.frame import Frame
from headcount._core.types import Ints
from headcount.kernels.random import as_seed

PRAISE = (
    "excellent sturdy lovely perfect reliable comfortable quick pleasant bright solid smooth "
    "handy quiet elegant generous durable delightful superb crisp fair accurate tidy gentle "
    "impressive worthwhile thoughtful flawless charming dependable fresh"
)
BLAME = (
    "broken flimsy ugly useless unreliable painful slow noisy dim cracked rough clumsy faulty "
    "cheap stale late overpriced defective disappointing leaking torn rusty wobbly blurry sticky "
    "dull wrong misleading fragile awful"
)
FILLER = (
    "the it and was for with this that my have one after before when use used bought came box "
    "week month day price size colour still again first second also very quite some more less "
    "house friend gift order delivery shop light heavy small large new old time part piece made "
    "think found keep put take back hand family morning evening needed wanted tried said looks "
    "feels works seems though because since while every many few other same each both"
)
THINGS = {
    "books": "novel chapter author plot pages cover story ending hero paperback",
    "kitchen": "pan kettle knife oven recipe lid handle stove bowl spoon",
    "garden": "hose shovel seeds soil lawn pot hedge roses rake fence",
    "music": "album guitar song drums melody strings concert tuning vinyl chorus",
    "toys": "puzzle doll blocks game dice pieces figures train kite cards",
    "shoes": "sole laces heel boots leather sneakers toe insole sandal strap",
    "phones": "screen battery charger signal ringtone camera touch app case cable",
    "tools": "drill hammer screws wrench saw nails level clamp bolt bench",
    "pets": "dog cat leash litter collar treats fur cage aquarium kibble",
    "sports": "ball racket jersey goal helmet bike gym weights track whistle",
    "beauty": "cream lipstick skin shampoo scent brush mirror lotion nails towel",
    "grocery": "coffee tea sauce flour snack pasta spice jam biscuit honey",
    "office": "paper stapler printer desk pens folder ink chair lamp notebook",
    "baby": "bottle diaper crib stroller blanket pacifier bib nursery cradle rattle",
    "cars": "tyre engine brake seat wiper fuel mirror trunk filter horn",
    "films": "scene actor director sequel soundtrack plot subtitles camera villain credits",
}
CATEGORIES = list(THINGS)


def make_corpus(n: int = 20_000, *, n_categories: int = 16, random_state: object = 0) -> Frame:
    """Make a corpus: text, stars (1 to 5), category, helpful votes, date.

    Over the two years that the dates span, bad reviews become more frequent and the popularity of
    categories shifts; the words of each class stay the same.

    Parameters
    ----------
    n : int
        Number of reviews, at least 1.
    n_categories : int, default 16
        2 to 16.
    random_state : int, generator or None, default 0

    Examples
    --------
    >>> corpus = make_corpus(3, random_state=1)
    >>> corpus.columns
    ['text', 'stars', 'category', 'helpful', 'date']
    """
    check.whole("n", n)
    check.whole("n_categories", n_categories, 2)
    n_categories = min(n_categories, len(CATEGORIES))
    rng = np.random.default_rng(as_seed(random_state))
    when = np.sort(rng.random(n))
    popular = np.arange(1, n_categories + 1) ** -0.8
    category = _drawn(rng, popular * np.exp(0.8 * when[:, None] * rng.normal(size=n_categories)))
    good = rng.random(n) > 0.12 + 0.2 * when
    extreme = rng.random(n) < 0.6
    stars = np.where(good, np.where(extreme, 5, 4), np.where(extreme, 1, 2))
    stars = np.where(rng.random(n) < 0.08, 3, stars)
    days = np.datetime64("2023-01-01") + (when * 730).astype(int)
    return Frame(
        {
            "text": _texts(rng, stars, category),
            "stars": stars,
            "category": np.array(CATEGORIES)[category],
            "helpful": rng.poisson(1.6, n),
            "date": days.astype("datetime64[D]").astype(str),
        }
    )


def _drawn(rng: np.random.Generator, weights: NDArray[Any]) -> Ints:
    ladder = np.cumsum(weights, axis=1)
    ladder /= ladder[:, -1:]
    return np.asarray((rng.random((len(weights), 1)) > ladder).sum(axis=1))


def _texts(rng: np.random.Generator, stars: Ints, category: Ints) -> NDArray[np.object_]:
    """Words by chance: filler, words of the category (now and then of another), of the mood."""
    filler, praise, blame = FILLER.split(), PRAISE.split(), BLAME.split()
    things = [THINGS[c].split() for c in CATEGORIES]
    words = np.array([*filler, *praise, *blame, *[w for own in things for w in own]])
    common = np.arange(1, len(filler) + 1) ** -0.7
    common /= common.sum()
    per = np.array([len(own) for own in things])
    begins = len(filler) + len(praise) + len(blame) + np.concatenate([[0], np.cumsum(per)])
    lengths = np.clip(rng.lognormal(3.9, 0.35, len(stars)).astype(int), 12, 250)
    mood = np.array([0.0, 0.22, 0.32, 0.5, 0.68, 0.78])[stars]  # chance that a mood word is praise
    texts = np.empty(len(stars), dtype=object)
    for i, size in enumerate(lengths.tolist()):
        kind = rng.random(size)
        chosen = rng.choice(len(filler), size, p=common)
        about = kind < 0.10
        topic = np.where(rng.random(size) < 0.7, category[i], rng.integers(len(per), size=size))
        inside = (rng.random(size) * per[topic]).astype(int)
        chosen = np.where(about, begins[topic] + inside, chosen)
        felt = (kind >= 0.10) & (kind < 0.18)
        good = len(filler) + rng.integers(len(praise), size=size)
        bad = len(filler) + len(praise) + rng.integers(len(blame), size=size)
        chosen = np.where(felt, np.where(rng.random(size) < mood[i], good, bad), chosen)
        texts[i] = " ".join(words[chosen])
    return texts
