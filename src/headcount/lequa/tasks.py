"""The tasks of LeQua 2022 and 2024: sizes, measures and official names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Spec:
    """Sizes and rules of an official task."""

    name: str
    year: int
    n_classes: int
    form: str  # vector or text
    size: int  # items a sample
    n_dev: int = 1000
    n_test: int = 5000
    ordinal: bool = False


SPECS = {
    spec.name: spec
    for spec in (
        Spec("T1A", 2022, 2, "vector", 250),
        Spec("T1B", 2022, 28, "vector", 1000),
        Spec("T2A", 2022, 2, "text", 250),
        Spec("T2B", 2022, 28, "text", 1000),
        Spec("T1", 2024, 2, "vector", 250),
        Spec("T2", 2024, 28, "vector", 1000),
        Spec("T3", 2024, 5, "vector", 200, ordinal=True),
        Spec("T4", 2024, 2, "vector", 250),
    )
}

BASELINES = ("MLPE", "CC", "PCC", "ACC", "PACC", "SLD", "HDy", "QuaNet")


def is_baseline(run: str) -> bool:
    """Whether a run is one of the organisers' own, such as SLD or SLD-tfidf.

    Examples
    --------
    >>> is_baseline("SLD-tfidf"), is_baseline("KULeuven")
    (True, False)
    """
    return run.partition("-")[0] in BASELINES
