"""Records of groups in memory, on disk and in pickles."""

import pickle

import numpy as np

from headcount.tables.store import Store


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


def test_a_store_on_disk_survives_pickling():
    kind = np.dtype([("group", np.int32), ("value", np.float64)])
    rng = np.random.default_rng(0)
    store = Store(kind, memory=300)
    for _ in range(20):
        batch = np.empty(30, dtype=kind)
        batch["group"], batch["value"] = rng.integers(40, size=30), rng.random(30)
        store.add(batch)
    assert store.files
    for mine, theirs in zip(pickle.loads(pickle.dumps(store)).parts(), store.parts(), strict=True):
        assert (mine == theirs).all()
