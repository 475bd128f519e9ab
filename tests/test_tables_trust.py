"""Answers of tables that can be trusted: alarms, small groups, odd labelled rows."""

import numpy as np
import pytest

from headcount import PACC, SLD
from headcount.inference.diagnostics import LEVEL, edges_between
from headcount.inference.spread import Request
from headcount.tables import Inputs, Model
from headcount.tables.answer import bound_groups, diagnose_groups
from headcount.tables.kept import Kept
from headcount.tables.store import Store


def judged(y, k, rng, top):
    """A judge's whole numbers from 1 to `top` for each class."""
    clear = 1.2 * rng.normal(size=(len(y), k)) + 1.8 * np.eye(k)[y]
    p = np.exp(clear) / np.exp(clear).sum(axis=1, keepdims=True)
    x = np.round(1 + (top - 1) * p)
    return np.column_stack([1 - x[:, 1], x[:, 1]]) if k == 2 else x


def kept_of(quantifier, k):
    columns = tuple(f"s{c}" for c in range(k))
    return Kept(Model(quantifier, Inputs("scores", columns), "label"))


@pytest.mark.parametrize(("k", "top"), [(2, 5), (2, 100), (4, 5)])
def test_tied_scores_raise_no_false_alarm(k, top):
    alarms = []
    for seed in range(6):
        rng = np.random.default_rng([seed, k, top])
        y = rng.integers(k, size=500)
        kept = kept_of(PACC(calibrator="platt").fit_scores(judged(y, k, rng, top), y), k)
        for g in range(8):
            labels = rng.choice(k, 300, p=rng.dirichlet(np.ones(k)))
            kept.add(judged(labels, k, rng, top), np.full(300, g))
        alarms.append(diagnose_groups(kept, range(8)).fit < LEVEL)
    assert np.mean(alarms) <= 0.11  # of 48 groups; 0.05 is expected


def test_cells_lie_between_values():
    values = np.repeat([1.0, 2.0, 3.0, 4.0], [500, 3, 2, 495])
    assert edges_between(values, 4).tolist() == [1.5, 3.5]
    even = np.arange(100.0)
    assert edges_between(even, 4).tolist() == [24.5, 49.5, 74.5]


def test_large_decision_values_keep_their_order():
    """Scores of 0 to 100 in groups that are summed up give the same as all of them at once."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=800)
    q = SLD(calibrator="platt").fit_scores(judged(y, 2, rng, 100), y)
    heap = judged((rng.random(30_000) < 0.3).astype(int), 2, rng, 100)
    kept = kept_of(q, 2)
    kept.add(heap, np.zeros(len(heap), dtype=int))
    found = bound_groups(kept, [0], Request(n_draws=50))[0]
    np.testing.assert_allclose(found.prevalence[0], q.predict_scores(heap), atol=1e-3)


def test_records_come_back_by_group_whether_in_memory_or_not():
    kind = np.dtype([("group", np.int32), ("value", np.float64)])
    rng = np.random.default_rng(0)
    records = np.empty(1000, dtype=kind)
    records["group"], records["value"] = rng.integers(90, size=1000), rng.random(1000)
    for memory in (1 << 20, 200):
        store = Store(kind, memory)
        for part in np.array_split(records, 13):
            store.add(part)
        parts = list(store.parts())
        owners = [set(part["group"].tolist()) for part in parts]
        assert sum(map(len, owners)) == len(set().union(*owners)) == 90
        back = np.sort(np.concatenate(parts), order=["group", "value"])
        assert (back == np.sort(records, order=["group", "value"])).all()
