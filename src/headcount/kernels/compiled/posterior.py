"""The posterior of a bag's realised class shares, by exact sums for two classes, else by sampling.

The prior over how many items of each class a bag holds is a mixture of Dirichlet-multinomials:
the components are rows of `alpha`, their weights are given as logarithms.
"""

from __future__ import annotations

from math import lgamma

import numpy as np
from numba import njit
from numpy.typing import NDArray

from headcount._core.types import Floats, Ints
from headcount.kernels.compiled.blocks import B
from headcount.kernels.random import GAMMA, MIX1, MIX2

Draws = NDArray[np.float32]
Seeds = NDArray[np.uint64]
Singles = NDArray[np.float32]
Labels = NDArray[np.int32]


@njit(cache=True, nogil=True)
def _log_dirichlet_multinomial(counts: Floats, alpha: Floats, weights: Floats, out: Floats) -> None:
    """Log of weight times probability of the counts under each component, up to a constant."""
    m = counts.sum()
    for c in range(len(alpha)):
        total, value = 0.0, weights[c]
        for k in range(len(counts)):
            a = alpha[c, k]
            total += a
            if counts[k] > 0.0:
                value += lgamma(counts[k] + a) - lgamma(a)
        out[c] = value + lgamma(total) - lgamma(total + m)


@njit(cache=True, nogil=True)
def _priors_two(m: int, alpha: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Log prior of one way to have 0, ..., m items of the second class; parts of components."""
    out, parts = np.empty(m + 1), np.empty((m + 1, len(alpha)))
    counts = np.empty(2)
    for n in range(m + 1):
        counts[0], counts[1] = m - n, n
        _log_dirichlet_multinomial(counts, alpha, weights, parts[n])
        top = parts[n].max()
        parts[n] = np.exp(parts[n] - top)
        total = parts[n].sum()
        out[n] = top + np.log(total)
        parts[n] /= total
    return out, parts


@njit(cache=True, nogil=True, fastmath=True)
def _spread_out(
    old: Floats, new: Floats, w0: float, w1: float, w2: float, w3: float, w4: float
) -> None:
    """new[n] = sum_i w_i old[n - i], where old starts four places earlier."""
    for n in range(len(new)):
        new[n] = w0 * old[n + 4] + w1 * old[n + 3] + w2 * old[n + 2] + w3 * old[n + 1] + w4 * old[n]


@njit(cache=True, nogil=True, fastmath=True)
def _number_of_positives(share: Floats, m: int, old: Floats, new: Floats) -> Floats:
    """Probabilities of 0, ..., m positives among independent items: a Poisson-binomial.

    Both arrays are work space, with four zeros before what counts; four items are taken at a time.
    """
    old[: m + 9] = 0.0
    old[4] = 1.0
    j = 0
    while j < m:
        a = share[j]
        b = share[j + 1] if j + 1 < m else 0.0
        c = share[j + 2] if j + 2 < m else 0.0
        d = share[j + 3] if j + 3 < m else 0.0
        x0, x2 = (1.0 - a) * (1.0 - b), a * b
        x1 = a + b - 2.0 * x2
        y0, y2 = (1.0 - c) * (1.0 - d), c * d
        y1 = c + d - 2.0 * y2
        w0, w1, w2 = x0 * y0, x0 * y1 + x1 * y0, x0 * y2 + x1 * y1 + x2 * y0
        w3, w4 = x1 * y2 + x2 * y1, x2 * y2
        last = min(j + 5, m + 1)
        _spread_out(old[: last + 4], new[4 : last + 4], w0, w1, w2, w3, w4)
        new[4 + last : min(8 + last, m + 9)] = 0.0
        old, new = new, old
        old[:4] = 0.0
        j += 4
    return old[4 : m + 5]


@njit(cache=True, nogil=True)
def exact_two(
    likelihood: Floats,
    indptr: Ints,
    indices: Ints,
    pivots: Floats,
    alpha: Floats,
    weights: Floats,
    out: Draws,
    mix: Floats,
    start: int,
    stop: int,
) -> None:
    """Evenly spaced quantiles of the exact posterior of two classes' shares, as if drawn.

    Given a share p, the number of positives is a Poisson-binomial; the posterior is that at any
    pivot, times prior(n) ((1 - p) / p)^n. The pivot, near the mode, only keeps numbers in range.
    """
    widest = 1
    for s in range(start, stop):
        widest = max(widest, indptr[s + 1] - indptr[s])
    share = np.empty(widest)
    one, other = np.zeros(widest + 16), np.zeros(widest + 16)
    prior, parts = _priors_two(1, alpha, weights)
    prior_of = 1
    n_draws = out.shape[1]
    for s in range(start, stop):
        m = indptr[s + 1] - indptr[s]
        if m != prior_of:
            prior, parts = _priors_two(m, alpha, weights)
            prior_of = m
        p = min(max(pivots[s, 1], 0.25 / m), 1.0 - 0.25 / m)
        for j in range(m):
            item = likelihood[indices[indptr[s] + j]]
            positive, negative = p * item[1], (1.0 - p) * item[0]
            share[j] = positive / (positive + negative)
        mass = _number_of_positives(share, m, one, other)
        tilt, base, top = np.log(p), np.log(1.0 - p), -np.inf
        for n in range(m + 1):
            if mass[n] > 0.0:
                mass[n] = np.log(mass[n]) + prior[n] - n * tilt - (m - n) * base
                top = max(top, mass[n])
            else:
                mass[n] = -np.inf
        total = 0.0
        for n in range(m + 1):
            mass[n] = np.exp(mass[n] - top)
            total += mass[n]
        for c in range(len(alpha)):
            mix[s, c] = 0.0
            for n in range(m + 1):
                mix[s, c] += mass[n] * parts[n, c] / total
        n, below = 0, mass[0]
        for t in range(n_draws):
            target = (t + 0.5) / n_draws * total
            while below < target and n < m:
                n += 1
                below += mass[n]
            # Within a step of the staircase quantiles move on, so that they never jump.
            step = n - 0.5 + min(max((target - below) / mass[n] + 1.0, 0.0), 1.0)
            found = min(max(step, 0.0), 1.0 * m) / m
            out[s, t, 1] = found
            out[s, t, 0] = 1.0 - found


@njit(cache=True, nogil=True, inline="always")
def _bits(state: np.uint64) -> np.uint64:
    """Splitmix64's 24 random bits at a state, as many as single precision holds."""
    z = state
    z = (z ^ (z >> np.uint64(30))) * MIX1
    z = (z ^ (z >> np.uint64(27))) * MIX2
    return (z ^ (z >> np.uint64(31))) >> np.uint64(40)


@njit(cache=True, nogil=True, fastmath=True)
def _draw_block(rows: Singles, p: Singles, state: np.uint64, left: Singles, label: Labels) -> None:
    """Draw a class for each of a block's items: all classes at once, item after item.

    A random part of the item's density is left; classes take theirs from it, one after the other,
    and the item's class is the one with which nothing is left.
    """
    n_classes = len(p)
    for j in range(B):
        left[j] = np.float32(0)
        label[j] = np.int32(0)
    for k in range(n_classes):
        share = p[k]
        for j in range(B):
            left[j] += share * rows[k, j]
    for j in range(B):
        part = np.int32(_bits(state + np.uint64(j + 1) * GAMMA))
        left[j] *= np.float32(part) * np.float32(1 / 16777216)
    for k in range(n_classes - 1):
        share = p[k]
        for j in range(B):
            rest = left[j] - share * rows[k, j]
            left[j] = rest
            label[j] += np.int32(1) if rest > 0 else np.int32(0)


@njit(cache=True, nogil=True)
def log_likelihoods(
    likelihood: Floats, indptr: Ints, indices: Ints, p: Floats, out: Floats, start: int, stop: int
) -> None:
    """Log-likelihood of every bag at its own shares."""
    for s in range(start, stop):
        total = 0.0
        for j in range(indptr[s], indptr[s + 1]):
            item = likelihood[indices[j]]
            density = 0.0
            for k in range(p.shape[1]):
                density += p[s, k] * item[k]
            total += np.log(density)
        out[s] = total


@njit(cache=True, nogil=True)
def gibbs(
    likelihood: Floats,
    indptr: Ints,
    indices: Ints,
    starts: Floats,
    alpha: Floats,
    weights: Floats,
    seeds: Seeds,
    worth: Floats,
    burn: int,
    out: Draws,
    mix: Floats,
    start: int,
    stop: int,
) -> None:
    """Draws of the realised shares by turns: classes of items, component of the prior, shares.

    `starts` is where each chain starts, and in the end where it is. `worth` is the part of an item
    that each item of a bag counts for when shares are drawn.
    """
    n_classes = likelihood.shape[1]
    widest = 1
    for s in range(start, stop):
        widest = max(widest, indptr[s + 1] - indptr[s])
    rows = np.ones(((widest + B - 1) // B, n_classes, B), dtype=np.float32)
    left, label = np.empty(B, dtype=np.float32), np.empty(B, dtype=np.int32)
    counts, told = np.empty(n_classes), np.empty(n_classes)
    each = np.ones(len(alpha))
    n_draws = out.shape[1]
    for s in range(start, stop):
        m = indptr[s + 1] - indptr[s]
        for j in range(m):
            item = likelihood[indices[indptr[s] + j]]
            for k in range(n_classes):
                rows[j // B, k, j % B] = item[k]
        state = seeds[s]
        np.random.seed(int(state >> np.uint64(32)))  # noqa: NPY002 - all that numba has
        p = starts[s].copy()
        mix[s] = 0.0
        for sweep in range(burn + n_draws):
            shares = p.astype(np.float32)
            counts[:] = 0.0
            for block in range((m + B - 1) // B):
                _draw_block(rows[block], shares, state, left, label)
                state += np.uint64(B) * GAMMA
                for j in range(min(B, m - block * B)):
                    counts[label[j]] += 1.0
            for k in range(n_classes):
                told[k] = worth[s] * counts[k]
            component = 0
            if len(alpha) > 1:
                _log_dirichlet_multinomial(told, alpha, weights, each)
                each[:] = np.exp(each - each.max())
                each /= each.sum()
                state += GAMMA
                at = _bits(state) / 16777216.0
                while component < len(alpha) - 1 and at > each[component]:
                    at -= each[component]
                    component += 1
            for k in range(n_classes):
                p[k] = np.random.standard_gamma(told[k] + alpha[component, k])  # noqa: NPY002
            p /= p.sum()
            if sweep >= burn:
                mix[s] += each / n_draws
                for k in range(n_classes):
                    out[s, sweep - burn, k] = counts[k] / m
        starts[s] = p
