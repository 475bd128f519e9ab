"""Headcount: not which, but how many. Class shares of unlabelled data when the world has moved."""

from headcount.bags import Bags
from headcount.evaluation import evaluate, evaluate_many, leaderboard
from headcount.exceptions import HeadcountError, HeadcountWarning, InputError
from headcount.frame import Frame
from headcount.measures import Measure, measure, signed_errors
from headcount.methods import (
    ACC,
    BBSE,
    CC,
    EMQ,
    MLLS,
    MLPE,
    PACC,
    PCC,
    RLLS,
    SLD,
    BBSESoft,
    Quantifier,
    ScoreQuantifier,
)
from headcount.protocols import (
    ByGroup,
    ByTime,
    DirichletPrevalence,
    NaturalPrevalence,
    PrevalenceGrid,
    UniformPrevalence,
)

__version__ = "0.1.0"

__all__ = [
    "ACC",
    "BBSE",
    "CC",
    "EMQ",
    "MLLS",
    "MLPE",
    "PACC",
    "PCC",
    "RLLS",
    "SLD",
    "BBSESoft",
    "Bags",
    "ByGroup",
    "ByTime",
    "DirichletPrevalence",
    "Frame",
    "HeadcountError",
    "HeadcountWarning",
    "InputError",
    "Measure",
    "NaturalPrevalence",
    "PrevalenceGrid",
    "Quantifier",
    "ScoreQuantifier",
    "UniformPrevalence",
    "evaluate",
    "evaluate_many",
    "leaderboard",
    "measure",
    "signed_errors",
]
