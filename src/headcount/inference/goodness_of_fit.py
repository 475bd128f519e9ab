"""Goodness of fit of a mixture of the classes to the scores of a bag.

Under label shift the histogram of a bag's scores is a mixture of the histograms of the classes. The
test looks for the nearest mixture by weighted least squares and compares the distance with those of
simulated bags of that mixture, whose items come from bootstrap replicates of the labelled ones (a
parametric bootstrap of the null hypothesis). Every bag is tested alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.inference.diagnosis import FIT_LEVEL, Diagnosis
from headcount.inference.simulation import ITEMS_PER_BATCH, Simulator
from headcount.kernels.simplex import least_squares, rest_columns
from headcount.scores.scorer import Scorer, View, mix_views

# Sequential Monte Carlo test: most bags need few draws to be accepted (Besag and Clifford 1991).
# The smallest p-values that so many draws can give are 1 / 40 and 1 / 200.
FIRST_DRAWS, ALL_DRAWS = 39, 199
ACCEPTED_FROM = 0.2  # p-value after the first draws at which a bag is accepted (convention)
N_BINS = {False: 12, True: 6}  # of a score, for two classes and for more (convention)
CLASS_RIDGE = 1e-4  # weight: negligible unless histograms of classes agree (numerical)
MAX_POSSIBLE_ERROR = 0.5  # share: half of what is possible


class FitTest:
    """The test, learnt from the cells of labelled items in histograms.

    Parameters
    ----------
    cells : array of shape (n, channels)
        Cell of each item in each channel, numbered through.
    widths : number of cells of each channel
    codes : class numbers
    """

    def __init__(self, cells: NDArray[Any], widths: Sequence[int], codes: Ints):
        k = int(codes.max()) + 1
        self.cells, self.widths, self.codes = cells, list(widths), codes
        each = [np.flatnonzero(codes == c) for c in range(k)]
        indptr = np.concatenate([[0], np.cumsum([len(rows) for rows in each])])
        self.classes = self.shares(Bags(indptr, np.concatenate(each), len(cells)))
        # Equal weight for equally many items; a ridge keeps classes apart that look the same.
        self.scale = 1.0 / np.sqrt(self.classes.mean(axis=0) + 0.5 / len(cells))
        self.design = np.vstack([(self.classes * self.scale).T, CLASS_RIDGE * np.eye(k)])

    def shares(self, bags: Bags, cells: NDArray[Any] | None = None) -> Floats:
        """Share of each bag's items in each cell."""
        return bags.histograms(self.cells if cells is None else cells, sum(self.widths))

    def p_values(self, q: Floats, sizes: Ints) -> Floats:
        """How often bags that are mixtures are as far from one as these histograms are."""
        return self.run(q, sizes)[0]

    def run(self, q: Floats, sizes: Ints) -> tuple[Floats, Floats]:
        """P-values, and how much farther from a mixture histograms are than chance makes them."""
        fit, distance, expected, _ = self.compare(q, sizes)
        return fit, np.maximum(distance - expected, 0.0)

    def compare(self, q: Floats, sizes: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        """P-values, squared distances, and the mean and deviation of these under the null."""
        distance, shares = self._distance(q)
        simulator = Simulator(self._simulated, self.codes, len(self.classes))
        capped = np.minimum(sizes, simulator.max_size)
        fit, expected, deviation = np.empty((3, len(q)))
        pending = np.arange(len(q))
        for step, n_draws in (("first draws", FIRST_DRAWS), ("all draws", ALL_DRAWS)):
            replicates = simulator.replicates(n_draws, step)
            batch = max(1, ITEMS_PER_BATCH // int(capped.max()))
            for start in range(0, len(pending), batch):
                bags = pending[start : start + batch]
                proposals = np.repeat(shares[bags, None, :], n_draws, axis=1)
                null = simulator.run(proposals, capped[bags], replicates)[0][:, :, 0]
                exceeding = (null >= distance[bags, None]).sum(axis=1)
                fit[bags] = (1 + exceeding) / (1 + n_draws)
                expected[bags], deviation[bags] = null.mean(axis=1), null.std(axis=1)
            pending = pending[fit[pending] < ACCEPTED_FROM]
        return fit, distance, expected, deviation

    def possible_error(self, excess: Floats) -> Floats:
        """How far off shares may be if items changed as much along the classes as across them.

        What no mixture explains is seen; the part of a change that looks like a change of shares
        is not. A change in no particular direction has as much of it in each direction.
        """
        k = len(self.classes)
        tangent = np.linalg.svd(np.ones((1, k)))[2][1:]  # directions in which shares can move
        moves = tangent @ (self.classes * self.scale)
        free = max(sum(self.widths) - len(self.widths) - (k - 1), 1)
        cover = tangent.T @ np.linalg.pinv(moves @ moves.T, rcond=1e-6) @ tangent
        return np.minimum(np.sqrt(excess[:, None] / free * np.diag(cover)), MAX_POSSIBLE_ERROR)

    def strange(self, q: Floats) -> Floats:
        """Share of items above what the likeliest class of each cell could bring, at least."""
        beyond = np.maximum(q - self.classes.max(axis=0), 0.0)
        parts = np.split(beyond, np.cumsum(self.widths)[:-1], axis=1)
        return np.asarray(np.max([part.sum(axis=1) for part in parts], axis=0))

    def _simulated(self, bags: Bags) -> Floats:
        return self._distance(self.shares(bags))[0][:, None]

    def _distance(self, q: Floats) -> tuple[Floats, Floats]:
        """Squared distance to the nearest mixture, and its shares."""
        k = len(self.classes)
        targets = np.hstack([q * self.scale, np.full((len(q), k), CLASS_RIDGE / k)])
        shares = least_squares(self.design, targets)
        off = (q - shares @ self.classes) * self.scale
        return (off**2).sum(axis=1), shares


class ScoreTest:
    """The test on a classifier's scores.

    Parameters
    ----------
    scores : array of shape (n, k)
        Of labelled items that the classifier had not seen.
    codes : their class numbers
    """

    def __init__(self, scores: Floats, codes: Ints):
        k = scores.shape[1]
        self.columns = rest_columns(k)
        self.edges = [edges_between(scores[:, c], N_BINS[k > 2]) for c in self.columns]
        widths = [len(edges) + 1 for edges in self.edges]
        self.starts = np.cumsum([0, *widths[:-1]])
        self.test = FitTest(self._cells(scores), widths, codes)
        means = np.stack([scores[codes == c].mean(axis=0) for c in range(k)])
        self.condition = float(min(np.linalg.cond(means), 1e12))
        # The mixture of classes that changes the mean scores least: those with a large part in it.
        least = np.abs(np.linalg.svd(means.T)[2][-1])
        self.alike = np.flatnonzero(least >= 0.5 * least.max())

    def run(self, scores: Floats, bags: Bags, sizes: Ints | None = None) -> Diagnosis:
        """Test every bag of scores; `sizes` says how many items a bag stands for, if others."""
        sizes = bags.sizes if sizes is None else sizes
        q = self.test.shares(bags, self._cells(scores))
        fit, excess = self.test.run(q, sizes)
        off = self.test.possible_error(np.where(fit < FIT_LEVEL, excess, 0.0))
        return Diagnosis(bags.ids, sizes, fit, self.test.strange(q), self.condition, off=off)

    def misfit(self, scores: Floats, bags: Bags) -> Floats:
        """Squared distance from a mixture beyond chance, by what chance makes it on average.

        Two standard deviations of chance are allowed for: bags that are mixtures have none.
        """
        q = self.test.shares(bags, self._cells(scores))
        _, distance, expected, deviation = self.test.compare(q, bags.sizes)
        excess = np.maximum(distance - expected - 2 * deviation, 0.0)
        return np.asarray(excess / np.maximum(expected, 1e-12))

    def _cells(self, scores: Floats) -> Ints:
        cells = [
            start + np.searchsorted(edges, scores[:, c].astype(np.float32))
            for start, edges, c in zip(self.starts, self.edges, self.columns, strict=True)
        ]
        return np.column_stack(cells)


def edges_between(values: Floats, n_cells: int) -> NDArray[np.float32]:
    """Edges of cells that hold about equally many values, halfway between neighbouring values.

    A value that fills a cell alone (a judge's 4 of 5, a rounded posterior) gets one of its own.
    An edge that lay on such a value would leave it to the last digit on which side it falls.
    """
    distinct, counts = np.unique(values.astype(np.float32), return_counts=True)
    wanted = len(values) / n_cells
    cell = np.floor((np.cumsum(counts) - counts) / wanted)
    alone = counts >= wanted
    new = (np.diff(cell) > 0) | alone[1:] | alone[:-1]
    between = distinct[:-1] / 2 + distinct[1:] / 2
    return np.asarray(between[new], dtype=np.float32)


def diagnose_scores(scorer: Scorer, views: Sequence[View], sizes: Ints | None = None) -> Diagnosis:
    """Test every bag, from raw scores of its pool by each classifier."""
    scorer, test, mixed = _test_of(scorer, views)
    diagnosis = test.run(mixed, views[0][1], sizes)
    return replace(diagnosis, alike=tuple(str(c) for c in scorer.classes[test.alike]))


def misfit_of(scorer: Scorer, views: Sequence[View]) -> Floats:
    """How much farther every bag is from a mixture of the classes than chance makes it."""
    _, test, mixed = _test_of(scorer, views)
    return test.misfit(mixed, views[0][1])


def _test_of(scorer: Scorer, views: Sequence[View]) -> tuple[Scorer, ScoreTest, Floats]:
    """The scorer, its test, and calibrated scores of the pool.

    Each item counts by one of the classifiers, as a held-out item does; by which of them depends
    on the item alone.
    """
    if not len(scorer.scores):
        raise InputError(
            "no held-out scores were kept, which the test is made from: fit with cv=5, or fewer "
            "folds where a class has fewer items than that."
        )
    if scorer.kind == "decision" and scorer.calibrator is None:
        scorer = scorer.with_calibrator("platt")  # values of any size, and any sum, compare then
    test = ScoreTest(scorer.calibrate(scorer.scores), scorer.codes)
    return scorer, test, scorer.calibrate(mix_views([scores for scores, _ in views]))
