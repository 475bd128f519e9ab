"""Models of the tests of tables."""

import numpy as np
import pandas as pd
import pytest

from headcount import tables
from tests.commands import messages


@pytest.fixture(scope="module")
def model():
    rows = messages(600, 0.5, np.random.default_rng(0))
    return tables.fit(rows, text="text", label="kind", method="SLD")


@pytest.fixture(scope="module")
def scored():
    """A model of scores, and rows of three shops of which one is large."""
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=400)
    labelled = pd.DataFrame({"p": rng.beta(2 + 2 * y, 4 - 2 * y), "y": np.array(["n", "y"])[y]})
    fitted = tables.fit(labelled, scores="p", label="y", method="PACC")
    rows = pd.DataFrame(
        {"p": rng.random(12_000), "shop": ["a"] * 11_000 + ["b"] * 990 + ["c"] * 10}
    )
    return fitted, rows
