"""Protocols: how samples are drawn from a labelled pool to test a quantifier."""

from headcount.protocols.artificial import (
    ArtificialProtocol,
    DirichletPrevalence,
    PrevalenceGrid,
    UniformPrevalence,
)
from headcount.protocols.natural import ByGroup, ByTime, NaturalPrevalence

__all__ = [
    "ArtificialProtocol",
    "ByGroup",
    "ByTime",
    "DirichletPrevalence",
    "NaturalPrevalence",
    "PrevalenceGrid",
    "UniformPrevalence",
]
