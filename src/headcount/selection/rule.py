"""The one-standard-error rule, by which classifiers and methods are selected."""

from __future__ import annotations

import numpy as np

from headcount._core.types import Floats, Ints


def one_standard_error_rule(errors: Floats, units: Ints, overlap: float = 0.0) -> int:
    """Index of the simplest candidate whose mean error is within one standard error of the best.

    The standard error is that of the paired difference to the best candidate, over independent
    units. A more complex candidate is selected only if the data can tell that it is better.

    Parameters
    ----------
    errors : array of shape (n_candidates, n_observations)
        Candidates are ordered from the simplest, or most preferred, to the most complex. The row
        of a candidate that failed is not finite; it is never selected.
    units : array of shape (n_observations,)
        Independent unit of each observation. Bags of different items are units of their own; bags
        drawn from the same held-out items are one unit, because they share its sampling noise.
    overlap : float, default 0
        Items held out per item learned from, where units are the splits of one cross-validation.
        Their training sets overlap, so that the variance of their mean is
        (1 / n_units + overlap) times the variance between units (Nadeau and Bengio 2003).

    References
    ----------
    Breiman, Friedman, Olshen and Stone (1984), Classification and Regression Trees, section 3.4.3.
    Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52.

    Examples
    --------
    >>> errors = np.array([[0.30, 0.28, 0.32, 0.30], [0.29, 0.29, 0.30, 0.31]])
    >>> one_standard_error_rule(errors, np.arange(4))  # the second is better by less than noise
    0
    >>> one_standard_error_rule(errors + [[0.1], [0.0]], np.arange(4))
    1
    """
    valid = np.flatnonzero(np.isfinite(errors).all(axis=1))
    if not len(valid):
        raise ValueError("every candidate failed.")
    _, unit, counts = np.unique(units, return_inverse=True, return_counts=True)
    means = np.array([np.bincount(unit, row) / counts for row in errors[valid]])
    differences = means - means[means.mean(axis=1).argmin()]
    variances = differences.var(axis=1, ddof=1) if len(counts) > 1 else np.zeros(len(valid))
    standard_errors = np.sqrt(variances * (1 / len(counts) + overlap))
    # Candidates that give equal estimates may differ in the last digits.
    within = differences.mean(axis=1) <= standard_errors + 1e-12
    return int(valid[within.argmax()])
