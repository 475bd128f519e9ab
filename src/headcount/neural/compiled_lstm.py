"""What an LSTM does between its matrix products, for 32-bit numbers on a CPU, in one pass each.

Torch needs a dozen passes over the gates for it, and its hyperbolic tangent is slow. Here that is a
quotient of polynomials (the one of Eigen), right to about 1e-7.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = Any  # of 32-bit floats, in C order

FLAT = np.float32(7.905311)  # beyond this the tangent is one to all digits
HALF, ONE = np.float32(0.5), np.float32(1)
A1, A3, A5, A7 = (
    np.float32(a)
    for a in (
        4.89352455891786e-03,
        6.37261928875436e-04,
        1.48572235717979e-05,
        5.12229709037114e-08,
    )
)
A9, A11, A13 = (
    np.float32(a) for a in (-8.60467152213735e-11, 2.00018790482477e-13, -2.76076847742355e-16)
)
B0, B2, B4, B6 = (
    np.float32(b)
    for b in (
        4.89352518554385e-03,
        2.26843463243900e-03,
        1.18534705686654e-04,
        1.19825839466702e-06,
    )
)


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def tanh(x: Any) -> Any:
    """Hyperbolic tangent; what is not a number stays so."""
    if x > FLAT:
        x = FLAT
    if x < -FLAT:
        x = -FLAT
    z = x * x
    top = x * (A1 + z * (A3 + z * (A5 + z * (A7 + z * (A9 + z * (A11 + z * A13))))))
    return top / (B0 + z * (B2 + z * (B4 + z * B6)))


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def step(
    gates: Array, before: Array, alive: Array, after: Array, bent: Array, states: Array
) -> None:
    """Open the gates (rows, 4 x hidden) in place; set cells, their tangents and states after it.

    Nothing is taken into the cells of rows that are not `alive`.
    """
    hidden = before.shape[1]
    for r in range(len(gates)):
        live = alive[r % len(alive)]
        opened, candidate = gates[r, : 3 * hidden], gates[r, 3 * hidden :]
        for j in range(3 * hidden):
            opened[j] = HALF + HALF * tanh(HALF * opened[j])
        for j in range(hidden):
            candidate[j] = tanh(candidate[j])
        take, keep, show = opened[:hidden], opened[hidden : 2 * hidden], opened[2 * hidden :]
        for j in range(hidden):
            take[j] *= live
        for j in range(hidden):
            after[r, j] = keep[j] * before[r, j] + take[j] * candidate[j]
        for j in range(hidden):
            bent[r, j] = tanh(after[r, j])
        for j in range(hidden):
            states[r, j] = show[j] * bent[r, j]


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def step_back(
    gates: Array, before: Array, bent: Array, by_state: Array, by_cell: Array, out: Array
) -> None:
    """Set the derivatives by the inputs of the gates, and move those by the cells a step back.

    A gate that was closed because its bag had not started has the derivative zero, as it should.
    """
    hidden = before.shape[1]
    for r in range(len(gates)):
        for j in range(hidden):
            take, keep = gates[r, j], gates[r, hidden + j]
            show, candidate = gates[r, 2 * hidden + j], gates[r, 3 * hidden + j]
            shown, by_shown = bent[r, j], by_state[r, j]
            cell = by_cell[r, j] + by_shown * show * (ONE - shown * shown)
            out[r, j] = cell * candidate * take * (ONE - take)
            out[r, hidden + j] = cell * before[r, j] * keep * (ONE - keep)
            out[r, 2 * hidden + j] = by_shown * shown * show * (ONE - show)
            out[r, 3 * hidden + j] = cell * take * (ONE - candidate * candidate)
            by_cell[r, j] = cell * keep
