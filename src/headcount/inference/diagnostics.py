"""What to know before an estimate is believed: does a change of shares explain the scores at all.

All methods here assume that only the shares of the classes have changed, and that the items of a
class look as they did when the labels were made. If so, the histogram of a bag's scores is a
mixture of the histograms of the classes. The test looks for the mixture that comes nearest, and
asks how often simulated bags of known shares, made of labelled items, are as far from theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headcount._core.frame import Frame
from headcount._core.types import Floats, Ints
from headcount.bags import Bags
from headcount.exceptions import InputError
from headcount.inference.simulation import Simulator
from headcount.kernels.simplex import least_squares, rest_columns
from headcount.scores.scorer import Scorer, View, mix_views

LEVEL = 0.04  # with it, alarms where nothing is wrong stay under 0.07 for scores of any kind
DRIFT_LEVEL = 0.01  # something drifts nearly always: less is said about it
DRAWS = 199
QUICK, SURE = 39, 0.2  # draws that come first for many bags, and p-values that end there
MANY = 200
BINS = {False: 12, True: 6}  # of a score, for two classes and for more
RIDGE = 1e-4
STRANGE = 0.05  # share of items unlike any class that is worth a word
FEW = 30  # items
ILL = 25.0  # condition number from which classes are hard to tell apart

MISFIT = (
    "the scores of this bag cannot be explained by a change of class shares alone; treat the "
    "estimate as unreliable"
)
OFF = "; it may be off by about {:.0f} points beyond what chance does"
DRIFT = (
    "the items themselves look different from the labelled ones, beyond what a change of class "
    "shares does; the scores may no longer mean the same, so label some of them to be sure"
)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """A small record for every bag.

    Attributes
    ----------
    n : items
    fit : p-value of "a change of class shares explains the scores"
    drift : p-value of the same for what the items look like, where that was kept; else NaN
    off : how far the share of each class may be off beyond its interval, where there is a misfit
    strange : share of items, at least, that no mixture of the known classes accounts for
    condition : condition number of the classes' mean scores, the same for all bags
    alike : classes that are hardest to tell apart
    """

    ids: NDArray[Any]
    n: Ints
    fit: Floats
    strange: Floats
    condition: float
    drift: Floats = field(default_factory=lambda: np.empty(0))
    off: Floats = field(default_factory=lambda: np.empty((0, 1)))
    alike: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.drift):
            object.__setattr__(self, "drift", np.full(len(self.n), np.nan))
        if not len(self.off):
            object.__setattr__(self, "off", np.zeros((len(self.n), 1)))

    def flags(self, s: int) -> list[str]:
        """Short names of what is wrong with bag number `s`."""
        return str(self.marks[s]).split()

    def messages(self, s: int) -> list[str]:
        """The same in sentences."""
        said = {
            "misfit": MISFIT,
            "drift": DRIFT,
            "strange": f"at least {self.strange[s]:.0%} of its items look like no known class",
            "few": f"only {self.n[s]} items: read the interval, not the share",
            "weak": self._weak(),
        }
        off = 100 * float(self.off[s].max())
        said["misfit"] += OFF.format(off) if off >= 0.5 else ""
        return [said[name] for name in self.flags(s)]

    def summaries(self) -> dict[str, tuple[str, Ints]]:
        """For each flag one sentence about all bags that have it, and the numbers of these."""
        found = {}
        for name, bags in self.flagged().items():
            if not len(bags):
                continue
            off = 100 * self.off[bags].max(axis=1)
            text = {
                "misfit": MISFIT + (_range(OFF, off) if off.max() >= 0.5 else ""),
                "drift": DRIFT,
                "strange": _range(
                    "at least {:.0f} % of the items look like no known class",
                    100 * self.strange[bags],
                ),
                "few": f"fewer than {FEW} items: read the interval, not the share",
                "weak": self._weak(),
            }[name]
            found[name] = (text, bags)
        return found

    def flagged(self) -> dict[str, Ints]:
        """Numbers of the bags that have each flag."""
        misfit = self.fit < LEVEL
        which = {
            "misfit": misfit,
            "drift": self.drift < DRIFT_LEVEL,
            "strange": misfit & (self.strange > STRANGE),
            "few": self.n < FEW,
            "weak": np.full(len(self.n), self.condition > ILL),
        }
        return {name: np.flatnonzero(is_so) for name, is_so in which.items()}

    @cached_property
    def marks(self) -> NDArray[Any]:
        """Flags of every bag as one text."""
        out = np.full(len(self.n), "", dtype=object)
        for name, bags in self.flagged().items():
            out[bags] += f" {name}"
        return np.array([text.strip() for text in out.tolist()], dtype=str)

    def _weak(self) -> str:
        named = " and ".join(self.alike) if self.alike else "the classes"
        return (
            f"the classifier hardly tells {named} apart; label more of their items, or better "
            "features are needed"
        )

    def to_frame(self) -> Frame:
        """One row a bag."""
        return Frame(
            {
                "bag": self.ids,
                "n": self.n,
                "fit": self.fit,
                "drift": self.drift,
                "strange": self.strange,
                "condition": np.full(len(self.n), self.condition),
                "flags": self.marks,
            }
        )


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
        self.design = np.vstack([(self.classes * self.scale).T, RIDGE * np.eye(k)])

    def shares(self, bags: Bags, cells: NDArray[Any] | None = None) -> Floats:
        """Share of each bag's items in each cell."""
        return bags.histograms(self.cells if cells is None else cells, sum(self.widths))

    def p_values(self, q: Floats, sizes: Ints) -> Floats:
        """How often bags that are mixtures are as far from one as these histograms are."""
        return self.run(q, sizes)[0]

    def run(self, q: Floats, sizes: Ints) -> tuple[Floats, Floats]:
        """P-values, and how much farther from a mixture histograms are than chance makes them."""
        fit, far, usual, _ = self.compare(q, sizes)
        return fit, np.maximum(far - usual, 0.0)

    def compare(self, q: Floats, sizes: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        """P-values, squared distances from a mixture; mean and deviation of those by chance."""
        far, shares = self._distance(q)
        simulator = Simulator(self._simulated, self.codes, len(self.classes))
        rng = np.random.default_rng(0)
        capped = np.minimum(sizes, simulator.max_size)
        fit, usual, spread = np.empty((3, len(q)))
        step = max(1, 2_000_000 // int(capped.max()))
        for start in range(0, len(q), step):
            part = slice(start, start + step)
            found = _exceeding(simulator, far[part], shares[part], capped[part], rng)
            fit[part], usual[part], spread[part] = found
        return fit, far, usual, spread

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
        return np.minimum(np.sqrt(excess[:, None] / free * np.diag(cover)), 0.5)

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
        targets = np.hstack([q * self.scale, np.full((len(q), k), RIDGE / k)])
        shares = least_squares(self.design, targets)
        off = (q - shares @ self.classes) * self.scale
        return (off**2).sum(axis=1), shares


def _range(text: str, values: Floats) -> str:
    """A sentence about the least and the largest of several values."""
    low, high = f"{values.min():.0f}", f"{values.max():.0f}"
    return text.replace("{:.0f}", low if low == high else f"{low} to {high}")


def _exceeding(
    simulator: Simulator, far: Floats, shares: Floats, sizes: Ints, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """P-values, and distances by simulation; most of many need few draws to be let go."""
    p, usual, spread = np.empty((3, len(far)))
    going = np.arange(len(far))
    for draws in (QUICK, DRAWS) if len(far) > MANY else (DRAWS,):
        proposals = np.repeat(shares[going, None, :], draws, axis=1)
        null = simulator.run(proposals, sizes[going], rng, "bag")[0][:, :, 0]
        p[going] = (1 + (null >= far[going, None]).sum(axis=1)) / (1 + draws)
        usual[going], spread[going] = null.mean(axis=1), null.std(axis=1)
        going = going[p[going] < SURE]
        if not len(going):
            break
    return p, usual, spread


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
        self.edges = [edges_between(scores[:, c], BINS[k > 2]) for c in self.columns]
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
        off = self.test.possible_error(np.where(fit < LEVEL, excess, 0.0))
        return Diagnosis(bags.ids, sizes, fit, self.test.strange(q), self.condition, off=off)

    def misfit(self, scores: Floats, bags: Bags) -> Floats:
        """Squared distance from a mixture beyond chance, by what chance makes it on average.

        Two standard deviations of chance are allowed for: bags that are mixtures have none.
        """
        q = self.test.shares(bags, self._cells(scores))
        _, far, usual, spread = self.test.compare(q, bags.sizes)
        return np.asarray(np.maximum(far - usual - 2 * spread, 0.0) / np.maximum(usual, 1e-12))

    def _cells(self, scores: Floats) -> Ints:
        found = [
            start + np.searchsorted(edges, scores[:, c].astype(np.float32))
            for start, edges, c in zip(self.starts, self.edges, self.columns, strict=True)
        ]
        return np.column_stack(found)


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
    found = test.run(mixed, views[0][1], sizes)
    return replace(found, alike=tuple(str(c) for c in scorer.classes[test.alike]))


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
