"""One classifier pass: cross-fitted scores and calibration, shared by every method."""

from headcount.classify.calibration import (
    Calibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    SoftmaxCalibrator,
    make_calibrator,
)
from headcount.classify.crossfit import ScorePass, cross_fit, score_pass

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
