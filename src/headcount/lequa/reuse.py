"""What samples that share items give away about their prevalences: the attack, run on a lab.

A sample full of positive items makes each of its items likely positive, and those items make the
other samples they are in look more positive. Iterated over all samples, this recovers the class of
every item, and with it the gold, if items are in many samples. The attack needs nothing but what
participants get: which samples share which items, and the scores of an honest classifier.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.lequa.draw import derive_seed, draw_samples, drop_unused
from headcount.methods import PACC, SLD

MIN_PROBABILITY = 1e-9  # keeps logarithms and odds finite
# Items drawn to learn the error of the attack without sharing: 800 samples of 250, whose mean error
# has a relative standard error of about 3 %.
UNSHARED_ITEMS = 200_000
TRIED = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03, 0.02)  # draws an item


@dataclass(frozen=True)
class Leak:
    """How much the attack reveals.

    Attributes
    ----------
    attack : float
        Mean absolute error of the attack on the test samples.
    honest : float
        Of the best honest baseline, named in `baseline`.
    reuse : float
        Mean number of samples that an item is in.
    scores : str
        Those that the attack did best with: of logistic regression, 'calibrated' or 'plain'.
    alone : float
        Of the attack if no two samples shared an item, which makes it the method SLD.
    """

    attack: float
    honest: float
    baseline: str
    reuse: float
    scores: str
    alone: float

    @property
    def share(self) -> float:
        """Share of its error that the attack takes off by looking at shared items; 0 if none.

        The attack is compared with itself, not with the best honest baseline: where that is
        another method, an attack that builds on it would gain too, before this one overtakes it.
        """
        return max(0.0, 1 - self.attack / self.alone) if self.alone > 0 else 0.0

    def __str__(self) -> str:
        return (
            f"sharing of items between test samples: an item is in {self.reuse:.2f} samples on "
            f"average; the attack on it has an AE of {self.attack:.4f}, the same without sharing "
            f"{self.alone:.4f}, the best honest baseline ({self.baseline}) {self.honest:.4f}: "
            f"{self.share:.0%} of the error is given away"
        )


def attack(
    bags: Bags, likelihood: Floats, *, max_iter: int = 100, tolerance: float = 1e-5
) -> Floats:
    """Estimate the prevalences of samples from the items they share.

    Parameters
    ----------
    bags : Bags
        The samples; their true prevalences are not looked at.
    likelihood : array of shape (items, classes)
        Of each item under each class, up to a factor: posteriors of a classifier divided by the
        prevalences it was trained on.

    Returns
    -------
    array of shape (samples, classes)

    Notes
    -----
    The items' posteriors and the samples' prevalences are iterated in turn. An item of class c is
    in sample s with probability a = m q[s, c] / (N w[c]), where m is the size of the sample, N that
    of the pool and w the share of the class in the pool; so membership of s multiplies the odds of
    c by a / (1 - a), and absence of all others by the product of 1 - a. If every item is in one
    sample alone, this is expectation maximisation within each sample, the method SLD.
    """
    sizes = bags.sizes.astype(float)
    n_items = len(likelihood)
    shape = (len(bags), n_items)
    inside = sparse.csr_matrix((np.ones(len(bags.indices)), bags.indices, bags.indptr), shape=shape)
    of_item = inside.T.tocsr()
    logs = np.log(np.maximum(likelihood, MIN_PROBABILITY))
    posterior = softmax(logs, axis=1)
    shares = (inside @ posterior) / sizes[:, None]
    for _ in range(max_iter):
        pool = np.maximum(posterior.mean(axis=0), MIN_PROBABILITY)
        chance = np.clip(sizes[:, None] * shares / (n_items * pool), MIN_PROBABILITY, 1 - 1e-6)
        absent = np.log1p(-chance)
        evidence = of_item @ (np.log(chance) - absent) + absent.sum(axis=0)
        posterior = softmax(logs + np.log(pool) + evidence, axis=1)
        updated = (inside @ posterior) / sizes[:, None]
        change = float(np.abs(updated - shares).max())
        shares = updated
        if change < tolerance:
            break
    return np.asarray(shares)


@dataclass(frozen=True, eq=False)
class Scored:
    """Test items as an honest participant sees them: the scores of a classifier, and baselines."""

    posteriors: dict[str, Floats]
    prior: Floats
    baselines: dict[str, Any]
    X: Any

    @classmethod
    def of(cls, X_train: Any, y: Ints, X: Any, n_classes: int) -> Scored:
        """Score the items of `X` by logistic regression, calibrated or not; fit the baselines."""
        counts = np.bincount(y, minlength=n_classes)
        folds = min(5, int(counts.min()))
        plain = LogisticRegression(C=0.1, max_iter=1000)
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")  # a poor classifier shows in its errors
            models = {
                "calibrated": CalibratedClassifierCV(plain, cv=folds).fit(X_train, y),
                "plain": clone(plain).fit(X_train, y),
            }
            posteriors = {n: np.asarray(m.predict_proba(X)) for n, m in models.items()}
            frozen = {name: FrozenEstimator(model) for name, model in models.items()}
            fitted = {
                "SLD": SLD(frozen["calibrated"], cv=None).fit(X_train, y),
                "SLD, not calibrated": SLD(frozen["plain"], cv=None).fit(X_train, y),
                "PACC": PACC(plain, cv=folds).fit(X_train, y),
            }
        return cls(posteriors, counts / len(y), fitted, X)

    def measure(self, bags: Bags) -> Leak:
        """Attack the samples and compare with the best honest baseline."""
        assert bags.prevalence is not None
        truth = bags.prevalence
        attacks = {
            name: float(np.abs(attack(bags, posterior / self.prior) - truth).mean())
            for name, posterior in self.posteriors.items()
        }
        honest = {
            name: float(np.abs(q.predict_bags(self.X, bags) - truth).mean())
            for name, q in self.baselines.items()
        }
        best, scores = min(honest, key=honest.__getitem__), min(attacks, key=attacks.__getitem__)
        reuse = len(bags.indices) / len(np.unique(bags.indices))
        alone = _unshared_error(bags, self._likelihood(scores))
        return Leak(attacks[scores], honest[best], best, reuse, scores, alone)

    def safe_reuse(
        self, codes: Ints, pool: Floats, size: int, limit: float, scores: str = "calibrated"
    ) -> float:
        """Draws for each item of the pool below which the attack reveals no more than `limit`.

        Found by simulation: pools with the class shares `pool` are made by repeating the scores
        of the items of each class (`codes`), with samples of the given size. 0 if even the least
        that is tried reveals more.
        """
        low, high = 0, len(TRIED)  # the first that passes lies between them
        while low < high:
            middle = (low + high) // 2
            seed = derive_seed(0, str(middle))
            share = _simulated(self._likelihood(scores), codes, pool, size, TRIED[middle], seed)
            if share <= limit:
                high = middle
            else:
                low = middle + 1
        return TRIED[low] if low < len(TRIED) else 0.0

    def _likelihood(self, scores: str) -> Floats:
        return np.asarray(self.posteriors[scores] / self.prior)


def _simulated(
    likelihood: Floats, codes: Ints, share: Floats, size: int, draws: float, entropy: int
) -> float:
    """Share of the error that the attack takes off in a simulated lab."""
    n_classes = likelihood.shape[1]
    n_bags = max(50, 30_000 // size)
    counts = np.maximum(np.round(share * n_bags * size / draws), size).astype(int)
    pool = np.repeat(np.arange(n_classes), counts)
    names = [str(c) for c in range(n_classes)]
    drawn = draw_samples(pool, names, n_bags=n_bags, size=size, entropy=entropy)
    bags, used = drop_unused(drawn)
    rng = np.random.default_rng(entropy)
    rows = np.empty(len(used), dtype=np.int64)
    for c in range(n_classes):
        mine = pool[used] == c
        rows[mine] = rng.choice(np.flatnonzero(codes == c), int(mine.sum()))
    shared = np.abs(attack(bags, likelihood[rows]) - np.asarray(bags.prevalence)).mean()
    alone = _unshared_error(bags, likelihood[rows])
    return float(1 - shared / alone) if alone > 0 else 0.0


def _unshared_error(bags: Bags, likelihood: Floats) -> float:
    """Error of the attack if every sample had items of its own; of the first samples, if many."""
    fits = int(np.searchsorted(bags.indptr, UNSHARED_ITEMS, side="right")) - 1
    n_bags = min(len(bags), max(fits, 50))
    indptr = bags.indptr[: n_bags + 1]
    n_drawn = int(indptr[-1])
    alone = Bags(indptr, np.arange(n_drawn), n_drawn)
    estimates = attack(alone, likelihood[bags.indices[:n_drawn]])
    return float(np.abs(estimates - np.asarray(bags.prevalence)[:n_bags]).mean())
