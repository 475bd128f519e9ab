"""Cells of histograms, and classes that are hard to tell apart."""

import numpy as np

from headcount import PACC
from headcount.inference.goodness_of_fit import edges_between


def test_cells_lie_between_values():
    values = np.repeat([1.0, 2.0, 3.0, 4.0], [500, 3, 2, 495])
    assert edges_between(values, 4).tolist() == [1.5, 3.5]
    even = np.arange(100.0)
    assert edges_between(even, 4).tolist() == [24.5, 49.5, 74.5]


def test_weak_names_the_classes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 200)
    z = rng.normal(size=(600, 3)) + 3 * np.eye(3)[np.minimum(y, 1)]
    scores = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    found = PACC().fit_scores(scores, np.array(["ape", "bee", "cat"])[y]).diagnose(scores)
    assert found.flags(0) == ["weak"]
    assert "hardly tells bee and cat apart" in found.messages(0)[0]
