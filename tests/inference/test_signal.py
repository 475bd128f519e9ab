"""Scores that carry no signal."""

import numpy as np

from headcount import BayesQuantifier
from headcount.inference.signal import has_signal


def test_noise_gives_intervals_from_0_to_1():
    """A model bends to noise, and bags made of the same items are estimated well."""
    rng = np.random.default_rng(4)
    trivial = 0
    for _ in range(6):
        s, y = rng.random(400), rng.integers(2, size=400)
        q = BayesQuantifier(n_worlds=2, n_draws=60).fit_scores(s, y)
        interval = q.predict_interval(rng.random(500))
        trivial += interval.low.tolist() == [0, 0] and interval.high.tolist() == [1, 1]
    assert trivial >= 5


def test_signal_and_too_few_items_to_say():
    rng = np.random.default_rng(4)
    y = rng.integers(2, size=400)
    s = np.where(y == 1, rng.beta(3, 2, 400), rng.beta(2, 3, 400))
    assert has_signal(np.column_stack([1 - s, s]), y)
    assert has_signal(rng.random((12, 2)), np.repeat([0, 1], [9, 3]))
