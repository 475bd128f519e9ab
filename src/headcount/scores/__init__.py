"""Items to scores: cross-fitting, calibration, and the one rule by which new items are scored."""

from headcount.scores.calibration import (
    Calibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    SoftmaxCalibrator,
)
from headcount.scores.calibrators import make_calibrator
from headcount.scores.crossfit import cross_fit
from headcount.scores.scorer import Held, Scorer
from headcount.scores.stacking import stack

__all__ = [
    "Calibrator",
    "Held",
    "IsotonicCalibrator",
    "PlattCalibrator",
    "Scorer",
    "SoftmaxCalibrator",
    "cross_fit",
    "make_calibrator",
    "stack",
]
