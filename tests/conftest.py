"""Shared material of the tests."""

import os
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from headcount.testing.quantifiers import make_items
from tests.commands import fill_folder

threadpool_limits(1)  # two test workers on two cores: more threads only get in the way
SHARED = Path(os.environ.get("HEADCOUNT_SHARED_DATA", "../shared/data"))


@pytest.fixture(scope="session")
def shared_data():
    """Folder of the real data sets, for tests that need them."""
    if not SHARED.is_dir():
        pytest.skip(f"real data not found at {SHARED}: set HEADCOUNT_SHARED_DATA")
    return SHARED


@pytest.fixture(scope="session", params=[2, 4], ids=["binary", "four classes"])
def scored(request):
    """Training scores and labels, pool scores, and bags with truth of a small problem."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    from headcount import UniformPrevalence

    k = request.param
    X, y = make_items(k, n=600, seed=0)
    pool, y_pool = make_items(k, n=3000, seed=1)
    classifier = LogisticRegression().fit(X, y)
    held_out = cross_val_predict(LogisticRegression(), X, y, cv=5, method="predict_proba")
    bags = UniformPrevalence(n_bags=60, size=120, random_state=0).draw(y_pool)
    return held_out, y, classifier.predict_proba(pool), bags


@pytest.fixture
def rng():
    """Random numbers that are the same in every run."""
    return np.random.default_rng(12345)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Labelled rows, unlabelled months whose share of pos falls, and models of texts and scores."""
    path = tmp_path_factory.mktemp("commands")
    fill_folder(path)
    return path
