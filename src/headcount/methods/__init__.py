"""Quantifiers: scores and bags in, prevalence estimates out, all bags at once."""

from headcount.methods.adjusting import ACC, BBSE, FM, PACC, RLLS, BBSESoft
from headcount.methods.base import Quantifier, ScoreQuantifier
from headcount.methods.bayes import BayesQuantifier
from headcount.methods.binary import BinaryQuantifier, OneVsAll
from headcount.methods.blend import Blend
from headcount.methods.bounded import WithIntervals
from headcount.methods.counting import CC, MLPE, PCC
from headcount.methods.density import KDEyCS, KDEyHD, KDEyML
from headcount.methods.distances import MMD, CvMy, EDy
from headcount.methods.efficient import ELSA
from headcount.methods.ensembles import Ensemble, MedianOf
from headcount.methods.features import DMx, EDx, FeatureQuantifier, HDx, ReadMe
from headcount.methods.histograms import DMy, DyS, HDy
from headcount.methods.likelihood import EMQ, MLLS, RML, SLD
from headcount.methods.structured import SVMAE, SVMKLD, SVMNKLD, SVMQ, SVMRAE
from headcount.methods.thresholds import MAX, MS, MS2, SMM, SORD, T50, ContinuousSweep, X

__all__ = [
    "ACC",
    "BBSE",
    "CC",
    "ELSA",
    "EMQ",
    "FM",
    "MAX",
    "MLLS",
    "MLPE",
    "MMD",
    "MS",
    "MS2",
    "PACC",
    "PCC",
    "RLLS",
    "RML",
    "SLD",
    "SMM",
    "SORD",
    "SVMAE",
    "SVMKLD",
    "SVMNKLD",
    "SVMQ",
    "SVMRAE",
    "T50",
    "BBSESoft",
    "BayesQuantifier",
    "BinaryQuantifier",
    "Blend",
    "ContinuousSweep",
    "CvMy",
    "DMx",
    "DMy",
    "DyS",
    "EDx",
    "EDy",
    "Ensemble",
    "FeatureQuantifier",
    "HDx",
    "HDy",
    "KDEyCS",
    "KDEyHD",
    "KDEyML",
    "MedianOf",
    "OneVsAll",
    "Quantifier",
    "ReadMe",
    "ScoreQuantifier",
    "WithIntervals",
    "X",
]
