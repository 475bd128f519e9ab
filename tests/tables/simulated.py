"""Simulated scores of labelled items and of groups, and their estimates."""

from dataclasses import replace

import numpy as np

from headcount.data.groups import Grouping
from headcount.inference.diagnosis import Diagnosis
from headcount.tables import Count, Inputs, Model
from headcount.tables.accumulator import Accumulator
from headcount.tables.estimation import estimate_groups
from headcount.tables.result import GroupRows


def scores_of(y, k, rng):
    """Posteriors of Gaussian classes."""
    z = 1.2 * rng.normal(size=(len(y), k)) + 1.8 * np.eye(k)[y]
    p = np.exp(z)
    return p / p.sum(axis=1, keepdims=True)


def judged(y, k, rng, top):
    """Whole numbers from 1 to `top` for each class, such as a judge gives."""
    x = np.round(1 + (top - 1) * scores_of(y, k, rng))
    return np.column_stack([1 - x[:, 1], x[:, 1]]) if k == 2 else x


def fitted(method, k, n_labelled, rng):
    """A quantifier fitted to scores of equally frequent classes."""
    y = rng.permutation(np.arange(n_labelled) % k)
    return method.fit_scores(scores_of(y, k, rng), y)


def quiet(sizes, k):
    """A diagnosis that flags no group."""
    n = len(sizes)
    return Diagnosis(np.arange(n), sizes, np.ones(n), np.zeros(n), 1.0, off=np.zeros((n, k)))


def estimated(quantifier, groups, order=None, target="bag"):
    """Count of groups of scores, each an array (rows, classes), in this order."""
    columns = tuple(f"s{c}" for c in range(groups[0].shape[1]))
    model = Model(quantifier, Inputs("scores", columns), "label")
    accumulator = Accumulator(model.layout)
    for g, group in enumerate(groups):
        accumulator.add(*model.score(group), np.full(len(group), g))
    scores = accumulator.finish(order)
    names = [str(g) for g in (range(len(groups)) if order is None else order)]
    rows = GroupRows(names, Grouping(), scores.rows, scores.effective, scores)
    return Count(model, rows, estimate_groups(model, rows, target=target), target)


def unflagged(count):
    """The same count without a warning."""
    k = count.interval.prevalence.shape[1]
    return replace(count, estimates=replace(count.estimates, diagnosis=quiet(count.sizes, k)))


def counted(quantifier, shares, size, rng, target="bag"):
    """A count of groups drawn with these shares and without warnings, and its true shares."""
    k = shares.shape[1]
    labels = [rng.choice(k, size, p=share) for share in shares]
    groups = [scores_of(y, k, rng) for y in labels]
    truth = np.stack([np.bincount(y, minlength=k) / size for y in labels])
    return unflagged(estimated(quantifier, groups, target=target)), truth
