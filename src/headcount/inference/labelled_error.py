"""The part of an estimate's error that comes from the finite labelled sample.

All bags are estimated with what the same labelled items taught. That error is one function of the
prevalences, the same for every bag: it does not average out over thousands of bags, and it cancels
in the difference of two bags with equal prevalences. It is taken as linear in the prevalences,
which is exact for methods that solve a linear system, and estimated for each bootstrap replicate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headcount._core.types import Floats
from headcount.inference.simulation import Simulator

# Bootstrap replicates behind a variance: a relative standard error of 0.14.
N_LABELLED_REPLICATES = 100
MIN_SIZE, MAX_SIZE = 1000, 4000  # items of the bags that measure the error (convention)


@dataclass(frozen=True, eq=False)
class LabelledError:
    """Errors of bootstrap replicates of the labelled items, as functions of the prevalences.

    Attributes
    ----------
    effects : array of shape (replicates, classes, classes)
        `effects[r] @ p` is the error at prevalences p in replicate r, less the mean over all.
    """

    effects: Floats

    def scaled(self, factor: float) -> LabelledError:
        """Errors multiplied by a factor."""
        return LabelledError(self.effects * factor)

    @cached_property
    def moments(self) -> Floats:
        """Mean products of effects, of shape (classes, classes, classes)."""
        products = np.einsum("rci,rcj->cij", self.effects, self.effects, optimize=True)
        return np.asarray(products / len(self.effects))

    def variance(self, prevalences: Floats) -> Floats:
        """Variance of the error of each class, at prevalences of shape (bags, classes)."""
        out = np.einsum("si,cij,sj->sc", prevalences, self.moments, prevalences, optimize=True)
        return np.asarray(np.maximum(out, 0.0))

    def at(self, prevalences: Floats) -> Floats:
        """Errors of shape (bags, replicates, classes)."""
        return np.asarray(np.einsum("rci,si->src", self.effects, prevalences, optimize=True))


def labelled_error(
    simulator: Simulator, n_replicates: int = N_LABELLED_REPLICATES
) -> LabelledError:
    """Measure the error of every replicate at as many prevalences as there are classes.

    The items of these bags are spread evenly over the resampled ones, not drawn from them, so that
    hardly any sampling variance of the bags themselves is left.
    """
    k = simulator.n_classes
    places = 0.5 * np.eye(k) + 0.5 / k
    shares = np.repeat(places[:, None, :], n_replicates, axis=1)
    size = int(np.clip(2 * len(simulator.codes), MIN_SIZE, MAX_SIZE))
    replicates = simulator.replicates(n_replicates, "labelled")
    simulated, truths = simulator.run(shares, np.full(k, size), replicates, evenly=True)
    errors = (simulated - truths).reshape(k, -1)
    effects = np.linalg.solve(places, errors).reshape(simulated.shape)  # class, replicate, class
    effects = effects.transpose(1, 2, 0)
    return LabelledError(effects - effects.mean(axis=0))
