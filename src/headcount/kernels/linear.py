"""Factors of matrices that are positive definite but for rounding."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor

from headcount._core.types import Floats
from headcount.exceptions import InputError


def factored(matrix: Floats) -> tuple[Floats, bool]:
    """Cholesky factor for `scipy.linalg.cho_solve`, with as small a ridge as is needed."""
    ridge = 0.0
    for _ in range(30):
        try:
            factor, lower = cho_factor(matrix + ridge * np.eye(len(matrix)))
        except LinAlgError:
            ridge = max(10 * ridge, 1e-12 * float(np.abs(matrix).max()))
        else:
            return factor, lower
    raise InputError("the likelihood is flat: the scores tell nothing about the classes.")
