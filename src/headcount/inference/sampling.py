"""Joint draws for a quantifier that works on scores."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.inference.draws import Draws
from headcount.inference.labelled_error import labelled_error
from headcount.inference.local_regression import posterior_moments
from headcount.inference.signal import has_signal
from headcount.inference.simulation import make_simulator
from headcount.kernels.random import content_keys
from headcount.scores.scorer import Scorer, View


@dataclass(frozen=True)
class DrawSettings:
    """How prevalences are drawn.

    Parameters
    ----------
    n_draws : int, default 300
        Bags to simulate around each bag.
    random_state : int, default 0
    """

    n_draws: int = 300
    random_state: int = 0

    def __post_init__(self) -> None:
        check.whole("n_draws", self.n_draws, 50)
        check.whole("random_state", self.random_state, 0)


class Scored(Protocol):
    """A fitted quantifier that works on scores, as far as draws are concerned."""

    scorer_: Scorer
    flat_: Floats | None
    width_scale_: float

    def estimate(self, views: Sequence[View]) -> Floats:
        """Estimates of bags from raw scores."""

    def simulation_twin(self) -> Any:
        """The estimator whose errors are simulated: itself, or a faster one of the same kind."""


def draw_prevalences(
    quantifier: Scored, views: Sequence[View], sizes: Ints, settings: DrawSettings
) -> Draws:
    """Joint draws of the prevalences of bags, from raw scores by each classifier.

    Parameters
    ----------
    quantifier : fitted quantifier that works on scores
    views : raw scores of the pool by each classifier, each with its bags
    sizes : number of items that each bag represents

    Notes
    -----
    The posterior variance at the size that was simulated is multiplied by the squared calibration
    factor. The part that is not due to the labelled items is sampling variance, and inversely
    proportional to the size of a bag beyond that.
    """
    estimates, scorer = quantifier.estimate(views), quantifier.scorer_
    if quantifier.flat_ is not None or not has_signal(scorer.scores, scorer.codes):
        return Draws.uninformative(scorer.classes, estimates, sizes)
    twin, scale = quantifier.simulation_twin(), quantifier.width_scale_
    centres = estimates if twin is quantifier else twin.estimate(views)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # simulated bags have nothing to tell the user
        simulator = make_simulator(quantifier, settings.random_state)
        mean, variance = posterior_moments(simulator, centres, sizes, settings.n_draws)
        labelled = labelled_error(simulator).scaled(scale)
    variance = variance * scale**2
    share = np.clip(labelled.variance(mean) / np.maximum(variance, 1e-18), 0.0, 1.0)
    from_labels = variance * share
    larger = np.minimum(simulator.max_size / sizes, 1.0)[:, None]
    total = from_labels + variance * (1 - share) * larger
    return Draws(
        scorer.classes,
        estimates,
        mean,
        total,
        np.asarray(sizes, dtype=float),
        from_labels / np.maximum(total, 1e-300),
        keys_of(views),
        np.ones(len(estimates), dtype=bool),
        labelled,
        n_replicates=len(labelled.effects),
        seed=settings.random_state,
    )


def keys_of(views: Sequence[View]) -> NDArray[np.uint64]:
    """Hash of each bag's scores by the first classifier."""
    scores, bags = views[0]
    return content_keys(scores, bags.indptr, bags.indices)
