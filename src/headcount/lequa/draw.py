"""Draw the samples of a lab, from seeds that tell nothing about each other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from headcount._core.types import Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.protocols import UniformPrevalence
from headcount.protocols.artificial import round_counts


def derive_seed(entropy: int, name: str) -> int:
    """A seed for one purpose; neither the entropy nor the other seeds can be told from it."""
    digest = hashlib.blake2b(f"{entropy}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def draw_counts(n_bags: int, size: int, n_classes: int, entropy: int) -> Ints:
    """How many items of each class every sample gets: uniform on the simplex, rounded."""
    protocol = UniformPrevalence(n_bags=n_bags, size=size)
    flat = np.full(n_classes, 1 / n_classes)
    target = protocol.prevalences(n_classes, derive_seed(entropy, "prevalences"), flat)
    rng = np.random.default_rng(derive_seed(entropy, "rounding"))
    return round_counts(target, size, rng.random(n_bags))


def draw_samples(
    codes: Ints,
    names: Sequence[str],
    *,
    n_bags: int,
    size: int,
    entropy: int,
    max_reuse: int | None = None,
) -> Bags:
    """Samples over a pool with class `codes`; no item is twice in a sample.

    With `max_reuse` no item is in more than so many samples: the items of a class are dealt like
    that many shuffled decks of cards. Inside a sample, items stand in the order of the pool.
    """
    counts = draw_counts(n_bags, size, len(names), entropy)
    have = np.bincount(codes, minlength=len(names))
    _refuse_small_classes(counts, have, names, max_reuse)
    rng = np.random.default_rng(derive_seed(entropy, "items"))
    chosen: list[list[Ints]] = [[] for _ in range(n_bags)]
    for c in range(len(names)):
        pool = np.flatnonzero(codes == c)
        if max_reuse is None:
            dealt = [_choose(rng, pool, n) for n in counts[:, c].tolist()]
        else:
            dealt = _deal(rng, pool, counts[:, c], max_reuse)
        for bag, items in zip(chosen, dealt, strict=True):
            bag.append(items)
    indices = np.concatenate([np.sort(np.concatenate(bag)) for bag in chosen])
    indptr = np.arange(n_bags + 1, dtype=np.int64) * size
    kind = np.int32 if len(codes) < 2**31 else np.int64
    return Bags(
        indptr,
        indices.astype(kind),
        len(codes),
        prevalence=counts / float(size),
        classes=np.arange(len(names)),
    )


def drop_unused(bags: Bags) -> tuple[Bags, Ints]:
    """The same samples over the items that occur in them, and which items those are."""
    used, codes = np.unique(bags.indices, return_inverse=True)
    small = Bags(
        bags.indptr,
        codes.reshape(-1).astype(bags.indices.dtype),
        len(used),
        prevalence=bags.prevalence,
        classes=bags.classes,
    )
    return small, used.astype(np.int64)


def needed_items(counts: Ints, max_reuse: int | None) -> Ints:
    """Items of each class that the samples call for, if each may be in `max_reuse` of them."""
    most = counts.max(axis=0)
    if max_reuse is None:
        return np.asarray(most)
    return np.asarray(np.maximum(most, -(-counts.sum(axis=0) // max_reuse)))


def _choose(rng: np.random.Generator, pool: Ints, n: int) -> Ints:
    return pool[rng.choice(len(pool), n, replace=False, shuffle=False)]


def _deal(rng: np.random.Generator, pool: Ints, counts: Ints, decks: int) -> list[Ints]:
    """Deal `counts` items from so many shuffled decks, never one item twice in a hand."""
    stack = [rng.permutation(pool) for _ in range(decks)]
    left = stack.pop(0)
    hands = []
    for n in counts.tolist():
        hand = left[:n]
        left = left[n:]
        while len(hand) < n:
            fresh = stack.pop(0)
            known = np.isin(fresh, hand)
            fresh = np.concatenate([fresh[~known], fresh[known]])  # what is in the hand comes last
            more = n - len(hand)
            hand, left = np.concatenate([hand, fresh[:more]]), fresh[more:]
        hands.append(hand)
    return hands


def _refuse_small_classes(
    counts: Ints, have: Ints, names: Sequence[str], max_reuse: int | None
) -> None:
    need = needed_items(counts, max_reuse)
    short = [
        f"{name} ({h:,} items, {w:,} needed)"
        for name, h, w in zip(names, have.tolist(), need.tolist(), strict=True)
        if h < w
    ]
    if short:
        rule = "" if max_reuse is None else f", each item in at most {max_reuse} of them"
        raise InputError(
            f"too few items to draw {len(counts):,} samples of {int(counts[0].sum())} without "
            f"repeating an item inside a sample{rule}: {', '.join(short)}. Draw fewer or smaller "
            "samples, or use a larger corpus."
        )
