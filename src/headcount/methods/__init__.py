"""Quantifiers: scores and bags in, prevalence estimates out, all bags at once."""

from headcount.methods.adjusting import ACC, BBSE, PACC, RLLS, BBSESoft
from headcount.methods.base import Quantifier, ScoreQuantifier
from headcount.methods.counting import CC, MLPE, PCC
from headcount.methods.likelihood import EMQ, MLLS, SLD

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
    "Quantifier",
    "ScoreQuantifier",
]
