"""Intervals for quantifiers of any make, from bags of rows that they had not seen."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from headcount._core import validation as check
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.inference.draws import Draws
from headcount.inference.local_regression import regress
from headcount.inference.sampling import DrawSettings
from headcount.inference.simulation import Simulator
from headcount.kernels.random import content_keys
from headcount.methods.adjusting import PACC
from headcount.methods.base import Quantifier, check_quantifier_type, without_calibration
from headcount.methods.meta import DelegatingQuantifier
from headcount.scores.splits import make_splits

NEAR_SHARE = 0.1  # share of the simulated bags with a positive weight


@dataclass(eq=False, repr=False)
class WithIntervals(DelegatingQuantifier):
    """Give intervals to any quantifier, such as an ensemble or one that uses features.

    The quantifier is fitted to all labelled items, and once for every fold to the others. Bags of
    known shares are drawn from each fold, and the errors of their estimates give the draws. Folds
    are smaller than the whole sample, so these intervals tend to be conservative. Quantifiers on a
    classifier's scores have narrower ones of their own.

    Parameters
    ----------
    quantifier : quantifier, default PACC
    cv : int, default 5
        Folds.
    n_bags : int, default 1000
        Bags of known shares, for each of a few sizes.
    random_state : int, generator or None, default 0

    Examples
    --------
    >>> from headcount import HDx
    >>> X = np.repeat([[0.1, 0.4], [0.2, 0.3], [0.8, 0.6], [0.9, 0.1]], 20, axis=0)
    >>> y = np.repeat(["no", "no", "yes", "yes"], 20)
    >>> found = WithIntervals(HDx()).fit(X, y).predict_interval(X[::2])
    >>> bool((found.low <= 0.5).all() and (found.high >= 0.5).all())
    True
    """

    quantifier: Any = None
    _: KW_ONLY
    cv: int = 5
    n_bags: int = 1000
    random_state: Any = 0

    def parts(self) -> list[Quantifier]:
        """The quantifier that gets intervals."""
        return [PACC() if self.quantifier is None else self.quantifier]

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from items `X` with labels `y`."""
        (base,) = self.parts()
        check_quantifier_type(base)
        check.whole("n_bags", self.n_bags, 100)
        array = check.labels(y)
        inner = without_calibration(base).fit(X, y)
        self.members_ = [inner]
        self.classes_ = inner.classes_
        _, codes = check.encode(array, self.classes_)
        largest = 4 * len(codes)
        self.sizes_ = np.array([s for s in (25, 100, 400, 1600, 6400) if s < largest] + [largest])
        splits = make_splits(X, codes, self.classes_, self.cv, random_state=self.random_state)
        rng = np.random.default_rng(self.random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # bags that were made up have nothing to tell
            parts = [self._pairs(X, array, codes, *split, rng) for split in splits]
        self.simulated_ = np.concatenate([simulated for simulated, _ in parts], axis=1)
        self.truths_ = np.concatenate([truths for _, truths in parts], axis=1)
        return self

    def _pairs(
        self,
        X: Any,
        y: NDArray[Any],
        codes: Ints,
        train: Ints,
        test: Ints,
        rng: np.random.Generator,
    ) -> tuple[Floats, Floats]:
        """Estimates and truths of bags made of one fold, of shape (sizes, bags, classes)."""
        fitted = without_calibration(self.parts()[0]).fit(_safe_indexing(X, train), y[train])
        pool = _safe_indexing(X, test)
        k = len(self.classes_)
        seed = int(rng.integers(2**63))
        simulator = Simulator(lambda bags: fitted.predict_bags(pool, bags), codes[test], k, seed)
        each = -(-self.n_bags // int(self.cv))
        shares = rng.dirichlet(np.ones(k), size=(len(self.sizes_), each))
        return simulator.run(shares, self.sizes_, simulator.replicates(each, "draws"))

    def draws_of(self, X: Any, bags: Bags, settings: DrawSettings) -> Draws:
        """Draws with the errors that bags of the folds have shown, independent between bags."""
        estimates = self.predict_bags(X, bags)
        near = np.maximum(np.searchsorted(self.sizes_, bags.sizes, side="right") - 1, 0)
        simulated, truths = self.simulated_[near], self.truths_[near]
        mean, variance = regress(simulated, truths, estimates, NEAR_SHARE)
        n = len(bags)
        return Draws(
            self.classes_,
            estimates,
            mean,
            variance,
            bags.sizes.astype(float),
            np.zeros_like(mean),
            content_keys(estimates, np.arange(n + 1), np.arange(n)),
            np.ones(n, dtype=bool),
            n_replicates=settings.n_draws,
            seed=settings.random_state,
        )
