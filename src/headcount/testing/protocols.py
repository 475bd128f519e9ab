"""Checks that every protocol must pass."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np

from headcount.testing.quantifiers import global_state


def check_protocol(protocol: Any) -> None:
    """Run every check on a protocol that draws from labels and takes a `random_state`."""
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[rng.choice(3, 500, p=[0.6, 0.3, 0.1])]
    y.setflags(write=False)
    seeded = replace(protocol, random_state=7)
    bags = seeded.draw(y)
    assert len(bags) == protocol.count(3), "count tells another number of bags"
    assert (bags.sizes == protocol.size).all(), "a bag has another size"
    assert bags.classes is not None and bags.classes.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(bags.prevalence, bags.with_truth(y).prevalence)
    before = global_state()
    again = pickle.loads(pickle.dumps(seeded)).draw(y)
    assert global_state() == before, "the global generator was used"
    np.testing.assert_array_equal(bags.indices, again.indices)
    other = replace(protocol, random_state=8).draw(y)
    assert (other.indices != bags.indices).any(), "the seed changes nothing"
    assert repr(seeded) == repr(replace(seeded)) and "random_state=7" in repr(seeded)
    _check_prefix(seeded, y)
    _check_replacement(replace(seeded, size=20), y)
    _check_refusals(seeded)


def _check_prefix(protocol: Any, y: Any) -> None:
    """Bag i depends on (seed, i) alone: more bags do not change the first ones."""
    if not hasattr(protocol, "n_bags"):
        return
    few = replace(protocol, n_bags=5).draw(y)
    many = replace(protocol, n_bags=11).draw(y)
    np.testing.assert_array_equal(few.indices, many[:5].indices)


def _check_replacement(protocol: Any, y: Any) -> None:
    """No item comes twice in a bag while its class has enough."""
    for items in protocol.draw(y):
        assert len(set(items.tolist())) == len(items), "an item was drawn twice"


def _check_refusals(protocol: Any) -> None:
    for bad in (0, -1, 2.5):
        try:
            replace(protocol, size=bad)
        except ValueError as error:
            if "size" not in str(error):
                raise AssertionError(f"unclear message {error}") from error
        else:
            raise AssertionError(f"size={bad} was accepted")
