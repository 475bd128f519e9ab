"""Scores of several classifier passes joined into one, by a model of their logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from headcount._core.types import Floats, Ints
from headcount.exceptions import InputError
from headcount.scores.joined import StackedClassifier, add_logits, blurred_logits
from headcount.scores.scorer import Scorer

BLURS = (1e-6, 1e-3, 1e-2)  # of posteriors, the one with the best likelihood is taken
# How strongly weights are held at equal shares, and a class's weights at the common ones, in items.
STRENGTHS = ((100.0, np.inf), (10.0, np.inf), (10.0, 100.0), (10.0, 10.0))
SCALE = 1.0, np.inf  # the same where there is one classifier
BIAS = 0.01  # of the first, that holds biases at 0

Model = tuple[Floats, Floats]  # weights of shape (m, k), bias of shape (k,)


def stack(scorers: Sequence[Scorer]) -> Scorer:
    """One scorer of several classifier passes over the same folds.

    A multinomial model gives each pass a weight, the same for all classes or with a deviation for
    every class, as the likelihood of held-out items prefers. One model, of all held-out items,
    joins the classifiers of every fold: models of their own, each learnt without its fold, would
    lean against the luck of that fold, and a calibrator would take that for what scores mean.

    Parameters
    ----------
    scorers : two or more, from `cross_fit` with the same items, folds and seed

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from headcount.scores import cross_fit, stack
    >>> X, y = load_iris(return_X_y=True)
    >>> several = (LogisticRegression(max_iter=1000), GaussianNB())
    >>> both = stack([cross_fit(c, X, y, random_state=0) for c in several])
    >>> both.scores.shape, len(both.folds)
    ((150, 3), 5)
    """
    return stack_with_losses(scorers)[0]


def stack_with_losses(scorers: Sequence[Scorer]) -> tuple[Scorer, Floats]:
    """The stack, and the negative log-likelihood of each held-out item.

    The latter by a model of the other folds' items, or the stack would judge itself.
    """
    first, fold = _check(scorers)
    kinds = [s.kind for s in scorers]
    blurs = [_likeliest_blur(s) for s in scorers]
    logits = np.stack(
        [blurred_logits(s.scores, s.kind, blur) for s, blur in zip(scorers, blurs, strict=True)]
    )
    strength, losses = _likeliest(logits, first.codes, fold)
    model = _fit(logits, first.codes, strength)
    folds = tuple(
        StackedClassifier([s.folds[f] for s in scorers], kinds, blurs, *model, first.classes)
        for f in range(len(first.folds))
    )
    scores = np.asarray(softmax(add_logits(logits, *model), axis=1))  # type: ignore[arg-type]
    joined = replace(
        first, scores=scores, kind="posterior", folds=folds, whole=None, predicts_best=True
    )
    return joined, losses


def held_out_losses(scorer: Scorer) -> Floats:
    """Negative log-likelihood of each held-out item, once scale and bias of scores are right.

    Both are learnt from the other folds.
    """
    return min((_losses_with(scorer, blur) for blur in _blurs(scorer)), key=np.mean)


def _blurs(scorer: Scorer) -> tuple[float, ...]:
    return (0.0,) if scorer.kind == "decision" else BLURS


def _likeliest_blur(scorer: Scorer) -> float:
    return min(_blurs(scorer), key=lambda blur: _losses_with(scorer, blur).mean())


def _losses_with(scorer: Scorer, blur: float) -> Floats:
    fold = np.arange(len(scorer.codes)) % 2 if scorer.fold is None else scorer.fold
    logits = blurred_logits(scorer.scores, scorer.kind, blur)[None]
    return _losses(_cross_joined(logits, scorer.codes, fold, SCALE), scorer.codes)


def _check(scorers: Sequence[Scorer]) -> tuple[Scorer, Ints]:
    if len(scorers) < 2:
        raise InputError("stacking joins two passes or more.")
    first = scorers[0]
    for other in scorers:
        known = other.fold is not None and first.fold is not None and len(other.folds) > 1
        same = known and np.array_equal(other.fold, first.fold)  # type: ignore[arg-type]
        if not same or not np.array_equal(other.codes, first.codes):
            raise InputError(
                "stacking joins passes over the same items and folds, at least two: run "
                "cross_fit with the same cv, groups and random_state."
            )
    assert first.fold is not None
    return first, first.fold


def _losses(values: Floats, codes: Ints) -> Floats:
    return np.asarray(-log_softmax(values, axis=1)[np.arange(len(codes)), codes])


def _likeliest(logits: Floats, codes: Ints, fold: Ints) -> tuple[tuple[float, float], Floats]:
    """The strength that held-out items prefer, and their losses with it."""
    best = STRENGTHS[0], _losses(_cross_joined(logits, codes, fold, STRENGTHS[0]), codes)
    for strength in STRENGTHS[1:]:
        losses = _losses(_cross_joined(logits, codes, fold, strength), codes)
        if losses.mean() >= best[1].mean():
            break
        best = strength, losses
    return best


def _cross_joined(logits: Floats, codes: Ints, fold: Ints, strength: tuple[float, float]) -> Floats:
    """Joined logits of every fold's items, by a model of the other items."""
    values = np.empty(logits.shape[1:])
    for f in range(int(fold.max()) + 1):
        own = fold == f
        model = _fit(logits[:, ~own], codes[~own], strength)
        values[own] = add_logits(logits[:, own], *model)  # type: ignore[arg-type]
    return values


def _fit(logits: Floats, codes: Ints, strength: tuple[float, float]) -> Model:
    """Weights and bias with the largest penalised likelihood.

    The common weights are held at 1 / m, and a class's deviations from them at 0, by `strength`.
    Weights may be negative: what a poor classifier sees too, a good one may count less.
    """
    m, n, k = logits.shape
    (equal, close), rows = strength, np.arange(n)
    free = np.isfinite(close)

    def parts(theta: Floats) -> tuple[Floats, Floats, Floats]:
        off = theta[m + k :].reshape(m, k) if free else np.zeros((m, k))
        return theta[:m], theta[m : m + k], off

    def objective(theta: Floats) -> tuple[float, Floats]:
        common, bias, off = parts(theta)
        values = log_softmax(add_logits(logits, common[:, None] + off, bias), axis=1)  # type: ignore[arg-type]
        loss = -float(values[rows, codes].sum())
        rest = np.exp(values)
        rest[rows, codes] -= 1.0
        slope = np.einsum("mnk,nk->mk", logits, rest)
        away = common - 1 / m
        loss += 0.5 * equal * float(away @ away + BIAS * bias @ bias)
        slopes = [slope.sum(axis=1) + equal * away, rest.sum(axis=0) + BIAS * equal * bias]
        if free:
            loss += 0.5 * close * float(np.sum(off**2))
            slopes.append((slope + close * off).ravel())
        return loss / n, np.concatenate(slopes) / n

    start = np.zeros(m + k + (m * k if free else 0))
    start[:m] = 1 / m
    found = minimize(objective, start, jac=True, method="L-BFGS-B")
    common, bias, off = parts(found.x)
    return common[:, None] + off, bias
