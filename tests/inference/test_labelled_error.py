"""The error that all bags share: that of the labelled items."""

import numpy as np
import pytest

from headcount import PACC, SLD
from headcount.bags import Bags
from headcount.inference.labelled_error import labelled_error
from headcount.inference.sampling import DrawSettings
from headcount.inference.simulation import make_simulator
from tests.tables.simulated import fitted, scores_of


def test_the_labelled_error_is_that_of_other_labelled_items():
    """Against brute force: how far estimates of very large bags vary with the labelled items."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(20_000) % 2)
    pool = scores_of(y, 2, rng)
    quantifiers = [fitted(PACC(calibrate_width=False), 2, 200, rng) for _ in range(60)]
    for share in (0.2, 0.7):
        rows = np.r_[np.flatnonzero(y == 1)[: int(8000 * share)],
                     np.flatnonzero(y == 0)[: int(8000 * (1 - share))]]  # fmt: skip
        real = np.var([q.predict_scores(pool[rows])[1] for q in quantifiers])
        at = np.array([[1 - share, share]])
        errors = [labelled_error(make_simulator(q)) for q in quantifiers[:6]]
        expected = np.mean([error.variance(at)[0, 1] for error in errors])
        assert 0.6 < expected / real < 1.7


def test_sampling_variance_shrinks_with_the_rows_and_the_labelled_error_does_not():
    rng = np.random.default_rng(1)
    q = fitted(SLD(calibrator="bcts", calibrate_width=False), 2, 400, rng)
    pool = scores_of((rng.random(800) < 0.3).astype(int), 2, rng)
    views = [(pool, Bags.single(800))]
    few, many = (q.draw(views, np.array([n]), DrawSettings()) for n in (200, 2000))
    by_row = [(d.variance * (1 - d.labelled_share) * d.sizes)[0, 1] for d in (few, many)]
    assert by_row[0] == pytest.approx(by_row[1], rel=0.5)
    ours, theirs = ((d.variance * d.labelled_share)[0, 1] for d in (few, many))
    assert ours == pytest.approx(theirs, rel=0.2)
    assert few.labelled.variance(np.zeros((1, 2))).max() == 0  # between equal shares it cancels
