"""What runs on a task: the lab's baselines with its settings, participants' systems, defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression

from headcount.lequa.task import Task
from headcount.methods import ACC, CC, MLPE, PACC, PCC, SLD, BayesQuantifier, HDy
from headcount.selection.auto import AutoQuantifier
from headcount.study import Method
from headcount.systems import lequa2022

GRID: dict[str, list[Any]] = {
    "classifier__C": [10.0**i for i in range(-3, 4)],
    "classifier__class_weight": [None, "balanced"],
}
FINE: dict[str, list[Any]] = {
    "classifier__C": [10.0 ** (i / 2) for i in range(-6, 7)],
    "classifier__class_weight": [None, "balanced"],
}

STRENGTHS = [0.01, 0.1, 1.0]  # for BayesQuantifier, which learns the rest
# Units of work that AutoQuantifier may do: ten times its default.
LEQUA_BUDGET = 1200.0


def lab_entries(
    task: Task,
    *,
    systems: bool = True,
    defaults: bool = True,
    vectorizer: str = "tfidf",
    encoder: str | None = None,
) -> dict[str, list[Method]]:
    """Baselines and systems for a task, and our defaults, by what turns its texts into vectors.

    Vectors, and texts as they are, have the key ''. In tasks of texts every baseline is run on
    `vectorizer` and, if one is given, on `encoder`, and called so: SLD-tfidf, SLD-RoBERTa.
    """
    by = (task.measures[0],)
    mlpe = Method("MLPE", MLPE())
    if task.form == "vector":
        more = _vector_systems(task, by) if systems else []
        own = [_bayes(by), _automatic(by)] if defaults else []
        return {"": [mlpe, *_baselines(task, by), *more, *own]}
    suffix = f"-{short_name(vectorizer)}"
    found = {vectorizer: [mlpe, *_baselines(task, by, suffix)]}
    if encoder is not None and encoder != vectorizer:
        found[encoder] = _baselines(task, by, f"-{short_name(encoder)}")
    if defaults:
        found[vectorizer].append(_bayes(by, suffix))
        found[""] = [_automatic(by)]  # it looks at the texts in its own ways
    if systems and task.n_classes == 2:  # it took part in T2A alone
        found[""] = [*found.get("", []), Method("UniPadova", lequa2022.uni_padova())]
    return found


def _bayes(by: tuple[str, ...], suffix: str = "") -> Method:
    lr = LogisticRegression(max_iter=1000)
    told = BayesQuantifier(lr, measure=by[0], expect="any shift")
    return Method(f"BayesQuantifier{suffix}", told, {"classifier__C": STRENGTHS}, by)


def _automatic(by: tuple[str, ...]) -> Method:
    return Method(
        "AutoQuantifier",
        AutoQuantifier(measure=by[0], expect="any shift", budget=LEQUA_BUDGET),
    )


def short_name(vectorizer: str) -> str:
    """Name of a vectorizer in the names of runs.

    Examples
    --------
    >>> short_name("tfidf"), short_name("models/roberta-base-tuned")
    ('tfidf', 'RoBERTa')
    """
    name = Path(vectorizer).name
    return "RoBERTa" if "roberta" in name.lower() else name


def _baselines(task: Task, by: tuple[str, ...], suffix: str = "") -> list[Method]:
    """Baselines with the settings of LeQua 2022.

    Logistic regression, C from 1e-3 to 1e3, class weights balanced or not, chosen by the ranking
    measure on the dev samples. CC and PCC learn from all labelled items; ACC, PACC and HDy hold
    out 40 %; ACC and PACC invert their matrix, clip and normalise, as the lab did; SLD has its
    classifier calibrated in five folds and stops iterating early. The order of the paper hangs on
    this: with the constrained solution PACC can overtake that SLD.
    """
    lr = LogisticRegression()
    deeper = {name.replace("__", "__estimator__"): values for name, values in GRID.items()}
    calibrated = CalibratedClassifierCV(lr, cv=5)
    found = [
        Method(f"CC{suffix}", CC(lr, cv=None), GRID, by),
        Method(f"PCC{suffix}", PCC(lr, cv=None), GRID, by),
        Method(f"ACC{suffix}", ACC(lr, cv=0.4, solver="inverse"), GRID, by),
        Method(f"PACC{suffix}", PACC(lr, cv=0.4, solver="inverse"), GRID, by),
        Method(f"SLD{suffix}", SLD(calibrated, cv=None, solver="em"), deeper, by),
    ]
    if task.n_classes == 2:  # HDy is a binary method
        found.append(Method(f"HDy{suffix}", HDy(lr, cv=0.4), GRID, by))
    return found


def _vector_systems(task: Task, by: tuple[str, ...]) -> list[Method]:
    """Participants' systems, tuned on the dev samples as they were."""
    width = 1.0 / task.columns  # scikit-learn's default for standardised columns
    svm: dict[str, list[Any]] = {
        "classifier__svc__C": [1.0, 10.0, 100.0],
        "classifier__svc__gamma": [width / 4, width],
        "classifier__svc__class_weight": [None, "balanced"],
    }
    found = [
        Method("UniDortmund", lequa2022.dortmund_ai(cv=None), FINE, by),
        Method("KULeuven", lequa2022.ku_leuven(), svm, by),
    ]
    if task.n_classes == 2:
        bins: dict[str, list[Any]] = {
            "classifier__C": GRID["classifier__C"],
            "n_bins": [8, 16, 32],
            "divergence": ["hd", "topsoe"],
            "binning": ["equal_width", "equal_count"],
        }
        found += [
            Method("UniLeiden", lequa2022.uni_leiden(), GRID, by),
            Method("UniOviedo(Team2)", lequa2022.uni_oviedo2_binary(), bins, by),
        ]
    else:
        found.append(Method("UniOviedo(Team2)", lequa2022.uni_oviedo2_multiclass(), GRID, by))
    return found
