"""Results that can be pickled and compared."""

import pickle

import numpy as np
import pytest

from headcount import tables
from headcount._core.frame import Frame
from headcount.exceptions import InputError
from headcount.tables.estimation import join_groups
from headcount.tables.settings import EstimateSettings, ReadSettings, collect
from tests.commands import messages


def copy_of(value):
    return pickle.loads(pickle.dumps(value))


def test_a_count_survives_pickling(model):
    count = model.estimate(messages(900, 0.3, np.random.default_rng(2)), "month:date", truth="kind")
    again = copy_of(count)
    assert again == count and type(again) is tables.Count
    assert again.to_frame().to_csv() == count.to_frame().to_csv()
    assert again.monitor().to_csv() == count.monitor().to_csv()
    assert again.report("x").html == count.report("x").html
    assert again.of_population == count.of_population != count
    assert repr(again) == repr(count)
    assert copy_of(again.of_population).monitor().to_csv() == count.monitor().to_csv()


def test_a_count_with_large_and_small_groups_survives_pickling(scored):
    fitted, rows = scored
    count = fitted.estimate(rows, "shop")
    assert copy_of(count).of_population == count.of_population
    owner = np.array([0, 1, 1])
    assert join_groups(copy_of(count), owner).low.tolist() == join_groups(count, owner).low.tolist()


def test_asking_twice_changes_nothing(scored):
    fitted, rows = scored
    count = fitted.estimate(rows, "shop")
    before = pickle.dumps(count.rows.scores)
    first = join_groups(count, np.zeros(3, dtype=np.int64)).low.tolist()
    assert join_groups(count, np.zeros(3, dtype=np.int64)).low.tolist() == first
    assert pickle.dumps(count.rows.scores) == before


def test_counts_of_other_rows_are_not_equal(scored):
    fitted, rows = scored
    assert fitted.estimate(rows, "shop") != fitted.estimate(rows[:11_500], "shop")
    assert fitted.estimate(rows, "shop") != "a count"


def test_settings_are_collected_and_unknown_ones_refused(model):
    what, how = collect({"level": 0.9, "encoding": "latin-1"}, EstimateSettings, ReadSettings)
    assert (what.level, how.encoding) == (0.9, "latin-1")
    with pytest.raises(InputError, match="Did you mean 'level'"):
        model.estimate(messages(10, 0.5, np.random.default_rng(0)), levle=0.9)
    with pytest.raises(InputError, match="unknown setting 'metod'"):
        tables.fit(Frame({"x": [1.0], "y": ["a"]}).to_arrow(), features="x", label="y", metod="SLD")
