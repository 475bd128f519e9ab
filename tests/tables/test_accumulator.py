"""Scores of groups in the order that is asked for."""

import numpy as np
import pytest

from headcount.exceptions import InputError
from headcount.tables import Model
from headcount.tables.accumulator import Accumulator


def test_too_many_groups(folder, monkeypatch):
    accumulator = Accumulator(Model.load(folder / "s.hc").layout)
    monkeypatch.setattr(Accumulator, "max_groups", 20)
    with pytest.raises(InputError, match="more than 20 groups"):
        accumulator.add(np.array([[[0.5, 0.5]]]), np.zeros((1, 0)), np.array([20]))


def test_the_order_of_groups_is_that_of_finish(scored):
    fitted, _ = scored
    sizes = [50, 9000, 20]

    def scores(order):
        accumulator = Accumulator(fitted.layout)
        draw = np.random.default_rng(7)
        for g, n in enumerate(sizes):
            p = draw.random(n)
            accumulator.add(*fitted.score(np.column_stack([1 - p, p])), np.full(n, g))
        return accumulator.finish(order)

    plain, turned = scores([0, 1, 2]), scores([2, 0, 1])
    assert turned.rows.tolist() == [20, 50, 9000]
    share = {}
    for state, order in ((plain, [0, 1, 2]), (turned, [2, 0, 1])):
        for part in state.parts():
            for g, value in zip(part.groups, part.mixed[1].histograms(
                (part.mixed[0][:, 1:] > 0.5).astype(int), 2)[:, 1], strict=True):  # fmt: skip
                share.setdefault(order[g], []).append(value)
    assert all(first == second for first, second in share.values())
    assert plain.effective.tolist() == sizes
