"""Wording of the flags of a diagnosis."""

from __future__ import annotations

from collections.abc import Sequence

from headcount._core.types import Floats, Ints

SMALLEST_POINTS = 0.5  # percentage points below which a size is not mentioned (layout)

MISFIT = (
    "the scores of this bag cannot be explained by a change of class shares alone; treat the "
    "estimate as unreliable"
)
DRIFT = (
    "the items themselves look different from the labelled ones, beyond what a change of class "
    "shares does; the scores may no longer mean the same, so label some of them to be sure"
)


def sentence(flag: str, n: Ints, off: Floats, strange: Floats, alike: Sequence[str]) -> str:
    """What a flag means for the bags that carry it.

    Parameters
    ----------
    n, off, strange : as in `Diagnosis`, of these bags; `off` is that of the worst class
    alike : classes that are hardest to tell apart
    """
    points = 100 * off
    size = f"; it may be off by about {_span(points)} points beyond what chance does"
    pair = " and ".join(alike) if len(alike) else "the classes"
    few = f"only {n[0]}" if len(n) == 1 else "few"
    return {
        "misfit": MISFIT + (size if points.max() >= SMALLEST_POINTS else ""),
        "drift": DRIFT,
        "strange": f"at least {_span(100 * strange)} % of the items look like no known class",
        "few": f"{few} items: read the interval, not the share",
        "weak": f"the classifier hardly tells {pair} apart; label more of their items, or better "
        "features are needed",
    }[flag]


def _span(values: Floats) -> str:
    """Least and largest of several values, or the one."""
    low, high = f"{values.min():.0f}", f"{values.max():.0f}"
    return low if low == high else f"{low} to {high}"
