"""Checks that every measure must pass."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np

from headcount.exceptions import UndefinedMeasureWarning
from headcount.measures import Measure, measure


def check_measure(spec: str | Measure) -> None:
    """Run every check on a measure."""
    each = measure(spec)
    assert measure(str(each)) == each, "the text form does not parse back"
    assert pickle.loads(pickle.dumps(each)) == each
    assert hash(each) == hash(measure(str(each)))
    rng = np.random.default_rng(0)
    k = 2 if each.name == "q" else 4
    true, off = rng.dirichlet(np.ones(k), 30), rng.dirichlet(np.ones(k), 30)
    more: dict[str, Any] = {"sizes": 50}
    if each.name == "q":
        more["recall"] = 0.9
    perfect, poor = each(true, true, **more), each(true, off, **more)
    if each.over_bags:
        assert isinstance(poor, float), "a measure over bags must be one number"
    else:
        assert poor.shape == (30,), "one value a bag is expected"
        assert isinstance(each(true[0], off[0], **more), float)
        np.testing.assert_allclose(
            [each(t, o, **more) for t, o in zip(true, off, strict=True)], poor
        )
    if each.name not in ("carc", "q"):
        np.testing.assert_allclose(perfect, 0, atol=1e-12, err_msg="a perfect answer has an error")
    elif each.name == "carc":
        np.testing.assert_allclose(perfect, 1)
    _check_refusals(each, true, more)


def _check_refusals(each: Measure, true: Any, more: dict[str, Any]) -> None:
    broken = true.copy()
    broken[3, 0] = np.nan
    cases = {
        "NaN": (true, broken),
        "another shape": (true, true[:, :1]),
        "fewer bags": (true, true[:-1]),
        "off the simplex": (true, true * 1.01),
        "negative": (true, true - np.eye(true.shape[1])[0] + np.eye(true.shape[1])[1]),
    }
    for what, (p, q) in cases.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMeasureWarning)
            try:
                each(p, q, **more)
            except ValueError:
                continue
        raise AssertionError(f"{each} accepts {what}")
