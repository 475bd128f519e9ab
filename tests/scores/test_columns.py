"""Numbers and categories as vectors."""

import numpy as np
import pytest

from headcount import InputError
from headcount.scores.columns import column_encoder


def test_column_encoder_by_hand():
    X = np.array([[1, "a"], [2, "b"], [3, None]], dtype=object)
    encoder = column_encoder([True, False]).fit(X)
    new = np.asarray(encoder.transform(np.array([["", "c"], [3, "b"]], dtype=object)))
    assert new.tolist() == [[0, 0, 0, 0], [pytest.approx(np.sqrt(1.5)), 0, 0, 1]]
    with pytest.raises(InputError, match="held numbers when the model was fitted"):
        encoder.transform(np.array([["x", "a"]], dtype=object))
