"""The warning of a solver that stopped early; apart, because it takes scikit-learn to say it."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning

from headcount.exceptions import HeadcountWarning


class ConvergenceWarning(HeadcountWarning, SklearnConvergenceWarning):
    """An iterative solver stopped before it reached its tolerance."""
