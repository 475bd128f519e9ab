"""Methods that match a bag through mean distances or kernels to the classes: a quadratic in p."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.methods.matching import MatchingQuantifier, Parts
from headcount.methods.objectives import Discrepancy
from headcount.methods.representations import Distances, GaussianKernel, RankDistances


@dataclass(eq=False, repr=False, kw_only=True)
class EDy(MatchingQuantifier):
    """Match posteriors by the energy distance, all pairs: the system of UniOviedo on LeQua T1B.

    p minimises 2 b'p - p'Ap with A the mean distances among classes and b those to the bag.
    Kawakubo, du Plessis and Sugiyama (2016); Castaño et al. (2024). `Distances` with
    `Discrepancy`.

    Parameters
    ----------
    distance : {'manhattan', 'euclidean'}
        As in `Distances`.
    tau : float, default 0
        As in `Discrepancy`; it makes the method o-EDy.
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> edy = EDy().fit_scores([0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.4], [0, 0, 0, 0, 1, 1, 1, 1])
    >>> edy.predict_scores([0.1, 0.9, 0.8, 0.9]).round(2)
    array([0.08, 0.92])
    """

    distance: str = "manhattan"
    tau: float = 0.0

    def match_parts(self) -> Parts:
        """Distances and their discrepancy."""
        return Distances(self.distance), Discrepancy(self.tau)


class CvMy(MatchingQuantifier):
    """Match posteriors by a Cramér-von Mises distance: the energy distance between ranks.

    Each column of posteriors is replaced by its rank among the labelled items, so that only the
    order counts. Castaño et al. (2019) rank the labelled items and the bag together, which asks
    for new ranks for every bag; with the labelled items alone, one table serves all bags.
    `RankDistances` with `Discrepancy`.

    Parameters
    ----------
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> cvm = CvMy().fit_scores([0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.4], [0, 0, 0, 0, 1, 1, 1, 1])
    >>> cvm.predict_scores([0.1, 0.9, 0.8, 0.9]).round(2)
    array([0.09, 0.91])
    """

    def match_parts(self) -> Parts:
        """Distances between ranks and their discrepancy."""
        return RankDistances(), Discrepancy()


@dataclass(eq=False, repr=False, kw_only=True)
class MMD(MatchingQuantifier):
    """Match mean embeddings of posteriors in a kernel space, also known as KMM and DFM.

    p minimises the maximum mean discrepancy between the bag and the mixture of the classes.
    Iyer, Nath and Sarawagi (2014); with random Fourier features after Dussap et al. (2023).
    `GaussianKernel` with `Discrepancy`.

    Parameters
    ----------
    bandwidth, n_features
        As in `GaussianKernel`.
    classifier, calibrator, cv, refit, n_jobs, random_state
        As in `ScoreQuantifier`.

    Examples
    --------
    >>> mmd = MMD().fit_scores([0.1, 0.2, 0.3, 0.6, 0.9, 0.8, 0.7, 0.4], [0, 0, 0, 0, 1, 1, 1, 1])
    >>> mmd.predict_scores([0.1, 0.9, 0.8, 0.9]).round(2)
    array([0.07, 0.93])
    """

    bandwidth: float | str = "median"
    n_features: int | None = None

    def match_parts(self) -> Parts:
        """Kernels and their discrepancy."""
        kernel = GaussianKernel(self.bandwidth, self.n_features, self.random_state)
        return kernel, Discrepancy()
