"""The systems of LeQua 2022, as far as their descriptions go; each function gives a quantifier.

Hyper-parameters that the participants tuned on the development samples are arguments here, with
defaults in the middle of the ranges they searched; a grid search over them is the rest of the
system. UniOviedo (Team1) needs torch (the extra of that name), UniPadova raw text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from headcount.methods import CC, SLD, ContinuousSweep, EDy, HDy, Quantifier
from headcount.methods.solvers import SmoothedEM

__all__ = [
    "dortmund_ai",
    "ku_leuven",
    "uni_leiden",
    "uni_oviedo1",
    "uni_oviedo2_binary",
    "uni_oviedo2_multiclass",
    "uni_padova",
]


def ku_leuven(C: float = 1.0, gamma: float | str = "scale", **options: Any) -> Quantifier:
    """KULeuven, first in T1A: SLD on a support vector machine with Platt scaling.

    Examples
    --------
    >>> ku_leuven().calibrator
    'platt'
    """
    svm = make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma))
    return SLD(svm, calibrator="platt", **options)


def dortmund_ai(
    C: float = 0.1,
    class_weight: str | None = None,
    smoothing: float = 1e-3,
    smoothing_order: int = 0,
    **options: Any,
) -> Quantifier:
    """DortmundAI, first in T1B: SLD with a smoothed prior on a finely tuned logistic regression.

    Their search drove `smoothing` to nearly nothing; C on a fine logarithmic grid and
    `class_weight` were what mattered.

    Examples
    --------
    >>> dortmund_ai().solver.strength
    0.001
    """
    classifier = LogisticRegression(C=C, class_weight=class_weight, max_iter=1000)
    return SLD(classifier, solver=SmoothedEM(strength=smoothing, order=smoothing_order), **options)


def uni_leiden(C: float = 1.0, **options: Any) -> Quantifier:
    """UniLeiden, T1A: the simplified continuous sweep on a logistic regression.

    Examples
    --------
    >>> uni_leiden().least_gap
    0.25
    """
    return ContinuousSweep(LogisticRegression(C=C, max_iter=1000), **options)


def uni_oviedo1(
    n_bins: int = 32,
    head: Sequence[int] = (1024, 512),
    real_share: float = 0.1,
    **options: Any,
) -> Quantifier:
    """UniOviedo (Team1), all four tasks: a network on histograms of the input features.

    Histograms of the vectors as they are, dense layers, and the relative absolute error as the
    loss. It learns from the development bags and mixtures of two of them, by
    ``fit_bags(pool, bags)``; the team used the labelled items only to make more bags where it saw
    over-fitting, which is ``fit(X, y, bags=bags, pool=pool)``. The overview does not give the
    widths and the number of bins.

    Examples
    --------
    >>> uni_oviedo1().histogram  # doctest: +SKIP
    'count'
    """
    from headcount.neural import HistNetQ, Sampling, Training

    settings: dict[str, Any] = {
        "sampling": Sampling(real_share=real_share, bags_per_epoch=1000),
        "training": Training(learning_rate=1e-4, patience=20),
        **options,
    }
    return HistNetQ(features=(), histogram="count", n_bins=n_bins, head=head, **settings)


def uni_oviedo2_binary(
    C: float = 1.0,
    n_bins: int = 8,
    divergence: str = "hd",
    binning: str = "equal_count",
    **options: Any,
) -> Quantifier:
    """UniOviedo (Team2), T1A: HDy with tuned measure, number of bins and rule of binning.

    Examples
    --------
    >>> uni_oviedo2_binary().binning
    'equal_count'
    """
    classifier = LogisticRegression(C=C, max_iter=1000)
    return HDy(
        classifier, n_bins=n_bins, divergence=divergence, binning=binning, search="exact", **options
    )


def uni_oviedo2_multiclass(
    C: float = 1.0, distance: str = "manhattan", **options: Any
) -> Quantifier:
    """UniOviedo (Team2), T1B: the energy distance between posteriors, all pairs.

    Examples
    --------
    >>> uni_oviedo2_multiclass().distance
    'manhattan'
    """
    return EDy(LogisticRegression(C=C, max_iter=1000), distance=distance, **options)


def uni_padova(k1: float = 1.2, b: float = 0.75, **options: Any) -> Quantifier:
    """UniPadova, T2A: count the predictions of a BM25 classifier; takes texts.

    Examples
    --------
    >>> uni_padova().classifier
    BM25Classifier()
    """
    from headcount.text.bm25 import BM25Classifier

    return CC(BM25Classifier(k1=k1, b=b), **options)
