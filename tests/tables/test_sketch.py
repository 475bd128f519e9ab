"""Sketches of scores: bounded memory, and estimates that hardly move."""

import numpy as np
import pytest

from headcount import ACC, PACC, SLD, KDEyML
from headcount.tables.sketch import Sketch, _ManyClasses


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("make", [lambda: SLD(calibrator="bcts"), PACC, ACC, KDEyML])
def test_the_sketch_hardly_moves_an_estimate(k, make):
    """A group of many more rows than are kept, against all of them."""
    rng = np.random.default_rng(k)
    centres = 1.3 * np.eye(k)

    def scores(y):
        z = rng.normal(size=(len(y), k)) + centres[y]
        e = np.exp(z)
        return e / e.sum(axis=1, keepdims=True)

    y = rng.integers(k, size=1500)
    q = make().fit_scores(scores(y), y)
    heap = scores(rng.choice(k, 500_000, p=rng.dirichlet(np.ones(k))))
    sketch = Sketch.of(k, "posterior")
    for part in np.array_split(heap, 23):
        sketch.add(part, np.zeros(len(part), dtype=np.int64))
    pool, bags = sketch.points()
    assert len(pool) <= 8 * _ManyClasses.rows_per_level
    off = np.abs(q.estimate([(pool, bags)])[0] - q.predict_scores(heap))
    assert off.max() < (5e-4 if k == 2 else 0.001)


def test_small_groups_are_kept_exactly():
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(3), 500)
    groups = rng.integers(4, size=500)
    sketch = Sketch.of(3, "posterior")
    for part in np.array_split(np.arange(500), 7):
        sketch.add(scores[part], groups[part])
    pool, bags = sketch.points()
    for g in range(4):
        assert np.allclose(
            np.sort(pool[bags.items(g)], axis=0), np.sort(scores[groups == g], axis=0), atol=1e-6
        )


def test_decision_values_go_through_the_sketch():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=600)
    values = rng.normal(2.0 * y - 1)
    both = np.column_stack([-values / 2, values / 2])
    q = SLD(calibrator="platt").fit_scores(both, y)
    heap = rng.normal(np.where(rng.random(50_000) < 0.2, 1.0, -1.0))
    heap = np.column_stack([-heap / 2, heap / 2])
    sketch = Sketch.of(2, "decision")
    sketch.add(heap, np.zeros(len(heap), dtype=np.int64))
    pool, bags = sketch.points()
    assert np.abs(q.estimate([(pool, bags)])[0] - q.predict_scores(heap)).max() < 1e-3


def test_memory_does_not_grow_with_the_rows(tmp_path):
    """The same part again and again: what is kept stays the same size."""
    rng = np.random.default_rng(0)
    sketch = Sketch.of(4, "posterior")
    sizes = []
    for _ in range(60):
        sketch.add(rng.dirichlet(np.ones(4), 20_000), np.zeros(20_000, dtype=np.int64))
        sizes.append(sum(len(p) for level in sketch.levels[0] for p in level))
    assert max(sizes) < 12 * _ManyClasses.rows_per_level
    assert sizes[-1] < 2 * max(sizes[:10]) + 6 * _ManyClasses.rows_per_level
