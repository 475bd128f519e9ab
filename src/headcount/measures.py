"""Measures of quantification error, as values that print, parse and compare.

A measure compares true with estimated prevalences, all bags at once. Those that would divide by
a share of zero smooth both sides first, ``(p + eps) / (1 + K eps)`` with eps = 1 / (2 m) and m
the bag's own size, unless `eps` is given.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import spearmanr

from headcount._core import validation as check
from headcount._core.types import Floats
from headcount.exceptions import InputError, UndefinedMeasureWarning, choose

Kernel = Callable[[Floats, Floats], Any]


@dataclass(frozen=True)
class Measure:
    """A measure with its settings; get one by `measure`.

    Call it with the true and the estimated prevalences (a vector, or a matrix with a row a bag)
    and, for a measure that smooths, the sizes of the bags.

    Examples
    --------
    >>> rae = measure("rae")
    >>> rae([0.5, 0.5], [0.6, 0.4], sizes=100)
    0.198...
    >>> rae([[0.5, 0.5], [1.0, 0.0]], [[0.6, 0.4], [0.9, 0.1]], sizes=[100, 100]).round(3)
    array([ 0.198, 10.05 ])
    >>> str(measure("rae( eps = 0.002)"))
    'rae(eps=0.002)'
    >>> measure("rae(eps=0.002)") == replace(rae, eps=0.002)
    True
    """

    name: str
    eps: float | None = None
    beta: float | None = None

    def __post_init__(self) -> None:
        definition = DEFINITIONS[choose("measure", self.name, DEFINITIONS)]
        if self.eps is not None and not definition.smooths:
            raise InputError(f"{self.name} is not smoothed and takes no eps.")
        if self.eps is not None and not 0 <= self.eps < 1:
            raise InputError(f"eps must be at least 0 and below 1, got {self.eps}.")
        if self.beta is not None and (self.name != "q" or not 0 < self.beta < np.inf):
            raise InputError("only q takes a beta, and it must be positive and finite.")

    def __str__(self) -> str:
        options = {"eps": self.eps, "beta": self.beta}
        inside = ", ".join(f"{k}={v!r}" for k, v in options.items() if v is not None)
        return f"{self.name}({inside})" if inside else self.name

    @property
    def over_bags(self) -> bool:
        """Whether the measure gives one number for all bags together."""
        return DEFINITIONS[self.name].over_bags

    @property
    def smooths(self) -> bool:
        """Whether the measure smooths prevalences first."""
        return DEFINITIONS[self.name].smooths

    def badness(self, values: ArrayLike) -> Floats:
        """Numbers that are smaller the better the values are; infinite for undefined ones.

        Examples
        --------
        >>> measure("carc").badness([0.9, 0.2]).tolist(), measure("bias").badness([-0.1]).tolist()
        ([-0.9, -0.2], [0.1])
        """
        array = np.asarray(values, dtype=float)
        definition = DEFINITIONS[self.name]
        if definition.larger_is_better:
            array = -array
        elif definition.signed:
            array = np.abs(array)
        return np.where(np.isnan(array), np.inf, array)

    @property
    def is_error(self) -> bool:
        """Whether it is the error of a single bag, of which less is better."""
        own = DEFINITIONS[self.name]
        return not (own.over_bags or own.larger_is_better or own.signed)

    @property
    def doc(self) -> str:
        """What the measure is, in a line."""
        return DEFINITIONS[self.name].doc

    def __call__(
        self,
        true: ArrayLike,
        estimated: ArrayLike,
        *,
        sizes: ArrayLike | None = None,
        recall: ArrayLike | None = None,
    ) -> Any:
        """Error of each bag; a plain number if `true` is a vector or the measure is over bags."""
        p, q = _pair(true, estimated)
        definition = DEFINITIONS[self.name]
        if definition.smooths:
            p, q = self._smoothed(p, q, sizes)
        if self.name == "q":
            values = _q(p, q, recall, self.beta or 1.0)
        else:
            values = definition.kernel(p, q)
        if definition.over_bags:
            return float(values)
        return float(values[0]) if np.ndim(true) == 1 else values

    def _smoothed(self, p: Floats, q: Floats, sizes: ArrayLike | None) -> tuple[Floats, Floats]:
        if self.eps is not None:
            eps = np.full(len(p), self.eps)
        elif sizes is None:
            raise InputError(
                f"{self.name} smooths by 1 / (2 x size of the bag): pass sizes=..., or fix it "
                f"with {self.name}(eps=...)."
            )
        else:
            m = check.per_bag("sizes", sizes, len(p))
            if not (m > 0).all():
                raise InputError("sizes must be positive.")
            eps = 1 / (2 * m)
        if (eps == 0).any() and (p[eps == 0] <= 0).any():
            raise InputError(
                f"{self.name} without smoothing is undefined where a true share is zero. "
                "Leave eps out, or give a positive one."
            )
        k, eps = p.shape[1], eps[:, None]
        return (p + eps) / (1 + k * eps), (q + eps) / (1 + k * eps)


def measure(spec: str | Measure) -> Measure:
    """Measure from its text form, such as ``"ae"`` or ``"rae(eps=0.002)"``."""
    if isinstance(spec, Measure):
        return spec
    found = re.fullmatch(r"\s*([a-z_-]+)\s*(?:\(\s*(.*?)\s*\))?\s*", str(spec).lower())
    if not found:
        raise InputError(f"cannot read measure {spec!r}. Expected a form like 'rae(eps=0.002)'.")
    result = Measure(choose("measure", found[1].replace("-", "_"), DEFINITIONS))
    for part in filter(None, (found[2] or "").split(",")):
        key, _, value = (piece.strip() for piece in part.partition("="))
        try:
            option: dict[str, Any] = {choose("option", key, ["eps", "beta"]): float(value)}
            result = replace(result, **option)
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{key} of measure {spec!r} must be a number.") from None
    return result


def measures(specs: str | Measure | Iterable[str | Measure]) -> list[Measure]:
    """Several measures from their text forms, each once."""
    several = [specs] if isinstance(specs, (str, Measure)) else list(specs)
    return list(dict.fromkeys(measure(s) for s in several))


@dataclass(frozen=True)
class _Definition:
    kernel: Kernel
    doc: str
    smooths: bool = False
    over_bags: bool = False
    larger_is_better: bool = False
    signed: bool = False


def _relative(p: Floats, q: Floats) -> Floats:
    return np.asarray((np.abs(p - q) / p).sum(axis=1))


def _nrae(p: Floats, q: Floats) -> Floats:
    lowest = p.min(axis=1)
    return np.asarray(_relative(p, q) / (p.shape[1] - 1 + (1 - lowest) / lowest))


def _kld(p: Floats, q: Floats) -> Floats:
    if (q <= 0).any():
        raise InputError("kld without smoothing is undefined where an estimate is zero.")
    return np.asarray((p * np.log(p / q)).sum(axis=1))


def _nmd(p: Floats, q: Floats) -> Floats:
    return np.asarray(np.abs(np.cumsum(p - q, axis=1)[:, :-1]).sum(axis=1) / (p.shape[1] - 1))


def _rnod(p: Floats, q: Floats) -> Floats:
    """Root normalised order-aware divergence: squared errors weighted by the class distance."""
    k = np.arange(p.shape[1])
    by_class = (p - q) ** 2 @ np.abs(k[:, None] - k)
    present = p > 0
    divergence = (by_class * present).sum(axis=1) / present.sum(axis=1)
    return np.asarray(np.sqrt(divergence / (p.shape[1] - 1)))


def _macro_nmd(p: Floats, q: Floats) -> float:
    """Mean over the intervals of the true mean class, so that rare regions count as much."""
    k = p.shape[1]
    interval = np.clip(np.floor(p @ np.arange(k) + 1e-12).astype(int), 0, k - 2)
    totals = np.bincount(interval, _nmd(p, q), k - 1)
    counts = np.bincount(interval, minlength=k - 1)
    return float((totals[counts > 0] / counts[counts > 0]).mean())


def _carc(p: Floats, q: Floats) -> float:
    """Mean over classes of the rank correlation across bags; NaN where a series is constant."""
    for series, whose in ((p, "true"), (q, "estimated")):
        flat = np.flatnonzero(np.ptp(series, axis=0) <= 1e-12)
        if len(flat) or len(p) < 2:
            reason = (
                f"the {whose} share of class number {flat[0]} never changes" if len(flat) else ""
            )
            warnings.warn(
                f"carc is undefined: {reason or 'there is only one bag'}.",
                UndefinedMeasureWarning,
                stacklevel=3,
            )
            return float("nan")
    return float(rank_correlations(p, q).mean())


def rank_correlations(true: Floats, estimated: Floats) -> Floats:
    """Rank correlation across bags for each class; NaN where one of the two never changes.

    Examples
    --------
    >>> rank_correlations(np.array([[0.1, 0.9], [0.2, 0.8]]), np.array([[0.3, 0.7], [0.6, 0.4]]))
    array([1., 1.])
    """
    varied = (np.ptp(true, axis=0) > 1e-12) & (np.ptp(estimated, axis=0) > 1e-12)
    found = [
        spearmanr(true[:, c], estimated[:, c])[0] if varied[c] else np.nan
        for c in range(true.shape[1])
    ]
    return np.array(found, dtype=float)


def _q(p: Floats, q: Floats, recall: ArrayLike | None, beta: float) -> Floats:
    """Barranquero, Diez and del Coz (2015): classification and quantification in one number."""
    if p.shape[1] != 2:
        raise InputError(f"q is defined for two classes, got {p.shape[1]}.")
    if recall is None:
        raise InputError(
            "q needs recall=...: the share of the second class's items that the classifier finds."
        )
    found = check.per_bag("recall", recall, len(p))
    if not ((found >= 0) & (found <= 1)).all():
        raise InputError("recall must lie between 0 and 1.")
    agreement = 1 - np.abs(p[:, 1] - q[:, 1]) / p.max(axis=1)
    below = beta**2 * found + agreement
    value = (1 + beta**2) * agreement * found / np.where(below > 0, below, 1)
    return np.asarray(np.where(below > 0, value, 0.0))


def _bias(p: Floats, q: Floats) -> Floats:
    """Signed error of the last class, the positive one of two."""
    return np.asarray(q[:, -1] - p[:, -1])


def signed_errors(true: ArrayLike, estimated: ArrayLike) -> Floats:
    """Estimate minus truth for every bag and class."""
    p, q = _pair(true, estimated)
    return q - p


def _pair(true: ArrayLike, estimated: ArrayLike) -> tuple[Floats, Floats]:
    p = check.prevalences(true, "true prevalences")
    q = check.prevalences(estimated, "estimates")
    if p.shape != q.shape:
        raise InputError(f"shapes differ: true prevalences {p.shape}, estimates {q.shape}.")
    return p, q


DEFINITIONS: dict[str, _Definition] = {
    "ae": _Definition(lambda p, q: np.abs(p - q).mean(axis=1), "mean absolute error of the shares"),
    "nae": _Definition(
        lambda p, q: np.abs(p - q).sum(axis=1) / (2 * (1 - p.min(axis=1))),
        "absolute error over the largest that is possible",
    ),
    "rae": _Definition(
        lambda p, q: _relative(p, q) / p.shape[1],
        "mean absolute error relative to the true share",
        smooths=True,
    ),
    "nrae": _Definition(_nrae, "relative absolute error over its largest value", smooths=True),
    "se": _Definition(lambda p, q: ((p - q) ** 2).mean(axis=1), "mean squared error of the shares"),
    "kld": _Definition(_kld, "Kullback-Leibler divergence, natural logarithm", smooths=True),
    "nkld": _Definition(
        lambda p, q: np.tanh(_kld(p, q) / 2), "KLD squeezed into [0, 1)", smooths=True
    ),
    "nmd": _Definition(_nmd, "normalised match distance (ordered classes)"),
    "rnod": _Definition(_rnod, "root normalised order-aware divergence (ordered classes)"),
    "macro_nmd": _Definition(
        _macro_nmd, "NMD averaged over intervals of the true mean class", over_bags=True
    ),
    "carc": _Definition(
        _carc,
        "rank correlation of true and estimated shares across bags",
        over_bags=True,
        larger_is_better=True,
    ),
    "q": _Definition(
        lambda p, _: p,
        "harmonic mean of recall and quantification accuracy",
        larger_is_better=True,
    ),
    "bias": _Definition(_bias, "estimate minus truth for the last class", signed=True),
}
