"""One classifier pass: cross-fitted scores and calibration, shared by every method."""

from headcount.scores.calibration import (
    Calibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    SoftmaxCalibrator,
    make_calibrator,
)
from headcount.scores.crossfit import ScorePass, cross_fit, score_pass

__all__ = [
    "Calibrator",
    "IsotonicCalibrator",
    "PlattCalibrator",
    "ScorePass",
    "SoftmaxCalibrator",
    "cross_fit",
    "make_calibrator",
    "score_pass",
]
