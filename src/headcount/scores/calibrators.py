"""The calibrators by name."""

from __future__ import annotations

from sklearn.base import clone

from headcount.exceptions import InputError, choose
from headcount.scores.calibration import (
    Calibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    SoftmaxCalibrator,
)
from headcount.scores.curves import CurveCalibrator

CALIBRATORS: dict[str, Calibrator] = {
    "platt": PlattCalibrator(),
    "isotonic": IsotonicCalibrator(),
    "temperature": SoftmaxCalibrator(),
    "ts": SoftmaxCalibrator(),
    "bcts": SoftmaxCalibrator(bias=True),
    "vs": SoftmaxCalibrator(per_class=True, bias=True),
    "nbvs": SoftmaxCalibrator(per_class=True),
    "curves": CurveCalibrator(),
}


def make_calibrator(spec: str | Calibrator | None) -> Calibrator | None:
    """Fresh calibrator from a name, another calibrator, or None for no calibration."""
    if spec is None or spec == "none":
        return None
    if isinstance(spec, str):
        spec = CALIBRATORS[choose("calibrator", spec, [*CALIBRATORS, "none"])]
    elif not (hasattr(spec, "fit") and hasattr(spec, "transform")):
        raise InputError(
            f"calibrator must be a name ({', '.join(CALIBRATORS)}), None, or an object "
            f"with fit and transform, got {spec!r}."
        )
    fresh: Calibrator = clone(spec, safe=False)
    return fresh
