"""What the estimates of several bags have in common: the error of the labelled side.

All bags are estimated by what the same labelled items taught. That error is the same function of
the shares for every bag: it cancels in the difference of two bags with the same shares, and it
does not average out over thousands of bags. The rest, the luck of each bag's own items, does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headcount._core.types import Floats, Ints
from headcount.inference.simulation import Simulator

WORLDS = 100  # simulated sets of labelled items
DRAWS = 60, 300  # pairs of bags that tell how much luck there is, at least and at most
BAGS = 6000  # of these, about
ITEMS = 2000  # of a bag at most: it is scaled from there
PLACES = 60  # shares at which luck is simulated; others take that of the nearest


@dataclass(frozen=True, eq=False)
class SharedError:
    """The labelled side's error, which is taken as linear in the shares.

    Attributes
    ----------
    moments : array of shape (k, k, k)
        For each class, mean products of what the classes' shares add to its error: its bias and
        what it varies.
    """

    moments: Floats

    def variance(self, shares: Floats) -> Floats:
        """Mean square of the error of each class, at shares or for differences of shares."""
        found = np.einsum("...i,cij,...j->...c", shares, self.moments, shares)
        return np.asarray(np.maximum(found, 0.0))


def learn_shared(simulator: Simulator, random_state: int = 0) -> SharedError:
    """Learn the labelled side's error from bags in resampled worlds.

    Every world has bags at as many shares as there are classes. What such bags vary in a world
    that is not resampled is the luck of their items, and is taken off.
    """
    k = simulator.n_classes
    places = 0.5 * np.eye(k) + 0.5 / k
    proposals = np.repeat(places[:, None, :], WORLDS, axis=1)
    sizes = np.full(k, int(np.clip(len(simulator.codes), 1000, 2 * ITEMS)))
    parts = []
    for world in (simulator, replace(simulator, resample=False)):
        rng = np.random.default_rng(random_state)
        found, truths = world.run(proposals, sizes, rng, "bag")
        effects = np.linalg.solve(places, (found - truths).reshape(k, -1)).reshape(found.shape)
        if not world.resample:
            effects -= effects.mean(axis=1, keepdims=True)
        parts.append(np.einsum("itc,jtc->cij", effects, effects) / WORLDS)
    values, vectors = np.linalg.eigh(parts[0] - parts[1])
    positive = np.maximum(values, 0.0)
    return SharedError(np.einsum("cia,ca,cja->cij", vectors, positive, vectors))


def luck_of(simulator: Simulator, shares: Floats, size: int, random_state: int = 0) -> Floats:
    """Variance that drawing its items gives a bag's estimate, times their number, at some shares.

    Parameters
    ----------
    size : int
        Items of the bags that it is wanted for, about.
    """
    rng = np.random.default_rng(random_state)
    places, nearest = _places(shares, rng)
    size = int(np.clip(size, 50, ITEMS))
    draws = int(np.clip(BAGS // len(places), *DRAWS))
    # Two bags of the same shares in each world: their difference is luck, the rest they share.
    proposals = np.repeat(np.concatenate([places, places])[:, None, :], draws, axis=1)
    found, _ = simulator.run(proposals, np.full(len(proposals), size), rng, "population")
    first, second = np.split(found, 2)
    return np.asarray(size * ((first - second) ** 2).mean(axis=1)[nearest] / 2)


def _places(shares: Floats, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Some of the shares, and which of them is nearest to each."""
    if len(shares) <= PLACES:
        return shares, np.arange(len(shares))
    places = shares[rng.choice(len(shares), PLACES, replace=False)]
    away = ((shares[:, None, :] - places) ** 2).sum(axis=2)
    return places, away.argmin(axis=1)
