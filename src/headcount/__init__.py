"""Headcount: not which, but how many. Class shares of unlabelled data when the world has moved.

Names are loaded when first used, so that `import headcount` costs next to nothing: scikit-learn
alone takes a second, and imports pandas where it finds it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headcount.auto import AutoQuantifier
    from headcount.bags import Bags
    from headcount.evaluation import evaluate, evaluate_many, leaderboard
    from headcount.exceptions import HeadcountError, HeadcountWarning, InputError
    from headcount.frame import Frame
    from headcount.measures import Measure, measure, signed_errors
    from headcount.methods import (
        ACC,
        BBSE,
        CC,
        ELSA,
        EMQ,
        FM,
        MAX,
        MLLS,
        MLPE,
        MMD,
        MS,
        MS2,
        PACC,
        PCC,
        RLLS,
        RML,
        SLD,
        SMM,
        SORD,
        SVMAE,
        SVMKLD,
        SVMNKLD,
        SVMQ,
        SVMRAE,
        T50,
        BayesQuantifier,
        BBSESoft,
        BinaryQuantifier,
        Blend,
        ContinuousSweep,
        CvMy,
        DMx,
        DMy,
        DyS,
        EDx,
        EDy,
        Ensemble,
        FeatureQuantifier,
        HDx,
        HDy,
        KDEyCS,
        KDEyHD,
        KDEyML,
        MedianOf,
        OneVsAll,
        Quantifier,
        ReadMe,
        ScoreQuantifier,
        WithIntervals,
        X,
    )
    from headcount.protocols import (
        ByGroup,
        ByTime,
        DirichletPrevalence,
        NaturalPrevalence,
        PrevalenceGrid,
        UniformPrevalence,
    )
    from headcount.selection import GridSearch, RandomSearch

__version__ = "0.1.0"

_HOMES = {
    "auto": ["AutoQuantifier"],
    "bags": ["Bags"],
    "evaluation": ["evaluate", "evaluate_many", "leaderboard"],
    "exceptions": ["HeadcountError", "HeadcountWarning", "InputError"],
    "frame": ["Frame"],
    "measures": ["Measure", "measure", "signed_errors"],
    "methods": [
        "ACC",
        "BBSE",
        "BBSESoft",
        "BayesQuantifier",
        "BinaryQuantifier",
        "Blend",
        "CC",
        "ContinuousSweep",
        "CvMy",
        "DMx",
        "DMy",
        "DyS",
        "EDx",
        "EDy",
        "ELSA",
        "EMQ",
        "Ensemble",
        "FM",
        "FeatureQuantifier",
        "HDx",
        "HDy",
        "KDEyCS",
        "KDEyHD",
        "KDEyML",
        "MAX",
        "MLLS",
        "MLPE",
        "MMD",
        "MS",
        "MS2",
        "MedianOf",
        "OneVsAll",
        "PACC",
        "PCC",
        "Quantifier",
        "RLLS",
        "RML",
        "ReadMe",
        "SLD",
        "SMM",
        "SORD",
        "SVMAE",
        "SVMKLD",
        "SVMNKLD",
        "SVMQ",
        "SVMRAE",
        "ScoreQuantifier",
        "T50",
        "WithIntervals",
        "X",
    ],
    "protocols": [
        "ByGroup",
        "ByTime",
        "DirichletPrevalence",
        "NaturalPrevalence",
        "PrevalenceGrid",
        "UniformPrevalence",
    ],
    "selection": ["GridSearch", "RandomSearch"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'headcount' has no attribute {name!r}")
    value = getattr(import_module(f"headcount.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
