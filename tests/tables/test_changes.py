"""Groups compared with a reference: few false alarms, and changes that are there are found."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from headcount import PACC
from headcount.exceptions import InputError
from headcount.tables import changes, first_group
from headcount.tables.changes import reference_groups
from tests.tables.simulated import counted, estimated, fitted, scores_of

SHARES = np.array([[0.7, 0.3], [0.7, 0.3], [0.65, 0.35]])


def test_references_are_names_lists_and_spans():
    groups = ["a", "b", "c", "d..e"]
    assert reference_groups("b", groups) == ["b"]
    assert reference_groups("a, c", groups) == ["a", "c"]
    assert reference_groups("c..a", groups) == ["a", "b", "c"]
    assert reference_groups("d..e", groups) == ["d..e"]
    with pytest.raises(InputError, match="unknown group"):
        reference_groups("a..x", groups)


def test_twelve_equal_groups_raise_few_alarms():
    """Twelve months of the same share: one year in twenty has an alarm."""
    alarms = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        count, _ = counted(fitted(PACC(), 2, 1000, rng), np.tile([0.7, 0.3], (12, 1)), 300, rng)
        alarms.append(changes(count)["changed"].any())
    assert np.mean(alarms) <= 0.125  # 0.05 is expected, with a standard error of 0.034


def test_changes_alarm_as_often_as_they_should_and_see_what_is_there():
    """Groups by the same labelled rows: few false alarms, and a real change is found.

    If the error due to the labelled rows did not cancel, it would hide the change.
    """
    false, seen, hidden = [], [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        count, _ = counted(fitted(PACC(), 2, 200, rng), SHARES, 4000, rng)
        changed = changes(count, ["0"])["changed"]
        false.append(changed[0])
        seen.append(changed[2])
        draws = replace(count.estimates.draws, labelled=None)
        apart = replace(count, estimates=replace(count.estimates, draws=draws))
        hidden.append(not changes(apart, ["0"])["changed"][2])
    assert np.mean(false) <= 0.15
    assert np.mean(seen) >= 0.75 and np.mean(hidden) >= 0.5


def test_groups_with_equal_shares_have_no_labelled_error_between_them():
    rng = np.random.default_rng(5)
    count, _ = counted(fitted(PACC(), 2, 200, rng), np.tile([0.7, 0.3], (2, 1)), 20_000, rng)
    draws = count.estimates.draws
    _, variance = draws.changes(np.array([1.0, 0.0]))
    assert (variance[1] < 0.2 * draws.variance.sum(axis=0)).all()


def test_small_groups_are_not_tested():
    """A thousand groups of three rows do not hide a change among the large ones."""
    rng = np.random.default_rng(3)
    q = fitted(PACC(), 2, 500, rng)
    labels = [rng.random(n) < share for n, share in ((500, 0.3), (500, 0.45))]
    large = [scores_of(y.astype(int), 2, rng) for y in labels]
    small = [scores_of((rng.random(3) < 0.3).astype(int), 2, rng) for _ in range(998)]
    alone, among = changes(estimated(q, large), ["0"]), changes(estimated(q, large + small), ["0"])
    away = norm.isf(np.array([among["p"][0], alone["p"][0]]) / 2)
    assert away[0] == pytest.approx(away[1]) and among["changed"][0]
    assert (among["p"][2:] == 1).all() and not among["changed"][2:].any()


def test_the_first_large_group_is_the_reference():
    rng = np.random.default_rng(6)
    q = fitted(PACC(), 2, 300, rng)
    groups = [scores_of(rng.integers(2, size=n), 2, rng) for n in (5, 60, 80)]
    count = estimated(q, groups)
    assert first_group(count) == "1"
    assert sorted(set(changes(count)["group"].tolist())) == ["0", "2"]
    with pytest.raises(InputError, match="nothing to compare with"):
        first_group(estimated(q, groups[:1]))
    with pytest.raises(InputError, match="all groups are in the reference"):
        changes(count, "0..2")
