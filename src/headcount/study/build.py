"""Make quantifiers, classifiers and protocols from their names and settings."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from importlib.util import find_spec
from typing import Any, cast

from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import ParameterGrid

from headcount import protocols
from headcount.data.temporal import Periods
from headcount.exceptions import HeadcountError, InputError, choose
from headcount.measures import measure
from headcount.methods.base import Quantifier
from headcount.methods.registry import named_methods
from headcount.selection.auto import AutoQuantifier
from headcount.selection.search import GridSearch, configured
from headcount.study.specs import ClassifierSpec, MethodSpec
from headcount.study.study import Method

PROTOCOLS: dict[str, Any] = {
    "uniform": protocols.UniformPrevalence,
    "dirichlet": protocols.DirichletPrevalence,
    "grid": protocols.PrevalenceGrid,
    "natural": protocols.NaturalPrevalence,
    "periods": Periods,  # of data that are cut by time
}
CLASSIFIERS = {
    "logistic": "sklearn.linear_model.LogisticRegression",
    "svm": "sklearn.svm.LinearSVC",
    "naive-bayes": "sklearn.naive_bayes.MultinomialNB",
    "gaussian-nb": "sklearn.naive_bayes.GaussianNB",
    "forest": "sklearn.ensemble.RandomForestClassifier",
    "boosting": "sklearn.ensemble.HistGradientBoostingClassifier",
    "fine-tuned": "headcount.text.finetune.FineTuned",
    "given": "headcount.scores.given.GivenScores",
}
# How a classifier is told to train as if classes were equally frequent, by its own parameter.
BALANCED = {"class_weight": "balanced", "balanced": True}


class Fault(HeadcountError):
    """Several things that are wrong with one part, each with the keys that lead to it."""

    def __init__(self, found: list[tuple[tuple[Any, ...], str]]):
        super().__init__("; ".join(message for _, message in found))
        self.found = found


def check_measures(names: list[str]) -> None:
    """Refuse unknown measures, all at once."""
    found: list[tuple[tuple[Any, ...], str]] = []
    for i, name in enumerate(names):
        try:
            measure(name)
        except HeadcountError as error:
            found.append(((i,), str(error)))
    if found:
        raise Fault(found)


def protocol(values: Mapping[str, Any]) -> Any:
    """Protocol from its kind and settings."""
    given = dict(values)
    kind = given.pop("kind", None)
    if kind is None:
        raise InputError(f"kind is missing: one of {', '.join(PROTOCOLS)}.")
    cls = PROTOCOLS[choose("kind of protocol", kind, PROTOCOLS)]
    known = [f.name for f in fields(cls) if f.name != "random_state"]
    _refuse_unknown(given, known, f"setting of {kind}")
    return cls(**given)


def classifier(spec: ClassifierSpec) -> Any:
    """Classifier from a short name, or from the import path of a scikit-learn-like class."""
    path = CLASSIFIERS.get(spec.kind, spec.kind)
    module, _, name = path.rpartition(".")
    if not module:
        choose("classifier", spec.kind, [*CLASSIFIERS, "an import path such as sklearn.svm.SVC"])
    try:
        cls = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise InputError(f"there is no classifier {path!r} to import.") from None
    if not (isinstance(cls, type) and issubclass(cls, BaseEstimator)):
        raise InputError(f"{path!r} is not a scikit-learn estimator.")
    try:
        known = list(cls().get_params(deep=False))
    except TypeError as error:
        raise InputError(f"{path!r} cannot be made from settings alone: {error}.") from None
    _refuse_unknown(spec.parameters, known, f"parameter of {name}", ("parameters",))
    _refuse_unknown(spec.grid, known, f"parameter of {name}", ("grid",))
    settings = dict(spec.parameters)
    if path == CLASSIFIERS["logistic"]:
        settings.setdefault("max_iter", 1000)
    made = cls(**settings)
    if not hasattr(made, "fit") or not (hasattr(made, "predict") and is_classifier(made)):
        raise InputError(f"{path!r} is not a classifier.")
    checks = hasattr(made, "_parameter_constraints")
    for setting in ParameterGrid(spec.grid) if checks else []:
        try:
            clone(made).set_params(**setting)._validate_params()
        except ValueError as error:
            raise InputError(str(error)) from None
    return made


def methods(
    spec: MethodSpec, classifiers: Mapping[str, ClassifierSpec], measures: Sequence[str] = ()
) -> list[Method]:
    """Named method with its grid and its classifier's; and its twin with balanced training.

    Where it is asked for, there is one for each of the measures of the study, under one name.
    """
    name = spec.name or spec.quantifier
    quantifier, grid = _quantifier(
        spec.quantifier, spec.classifier, spec.parameters, spec.grid, classifiers
    )
    options: dict[str, Any] = {"intervals": spec.intervals, "groups": spec.groups}
    found = [Method(name, quantifier, grid, spec.only, **options)]
    if spec.by_measure:
        wanted = spec.only or measures
        found = [replace(found[0], quantifier=_told(quantifier, m), only=[m]) for m in wanted]
    if spec.balanced:
        for one in list(found):
            twin = replace(one, name=f"{name}, balanced", quantifier=_balanced(one.quantifier))
            found.append(replace(twin, balances=name, intervals=False))
    return found


def _told(quantifier: Quantifier, name: str) -> Quantifier:
    """Same quantifier, told what it is judged by; as it is where it cannot aim at that."""
    if "measure" not in quantifier.get_params(deep=False):
        message = f"{type(quantifier).__name__} has no parameter measure to be told."
        raise Fault([(("by_measure",), message)])
    told: Any = configured(quantifier, {"measure": name})
    try:
        told.check_params()
    except InputError:
        told = quantifier
    return cast(Quantifier, told)


def _balanced(quantifier: Quantifier) -> Quantifier:
    """Same quantifier, on a classifier that is trained as if classes were equally frequent."""
    known = quantifier.get_params(deep=True)
    for name, value in BALANCED.items():
        if f"classifier__{name}" in known:
            return configured(quantifier, {f"classifier__{name}": value})
    what = "a classifier of [classifiers] that has" if known.get("classifier") is None else "one of"
    raise Fault(
        [(("balanced",), f"balanced training needs {what} the parameters {', '.join(BALANCED)}.")]
    )


def quantifier_classes() -> dict[str, Any]:
    """Every quantifier that can be named."""
    found: dict[str, Any] = {**named_methods(), "AutoQuantifier": AutoQuantifier}
    if find_spec("torch") is not None:
        from headcount import neural

        found |= {name: getattr(neural, name) for name in neural.__all__}
    return found


def _quantifier(
    name: str,
    on: str | None,
    parameters: Mapping[str, Any],
    own: Mapping[str, list[Any]],
    classifiers: Mapping[str, ClassifierSpec],
) -> tuple[Quantifier, dict[str, list[Any]]]:
    """Quantifier and its grid; quantifiers inside its parameters are built the same way."""
    known = quantifier_classes()
    try:
        cls = known[choose("quantifier", name, known)]
    except InputError as error:
        raise Fault([(("quantifier",), str(error))]) from None
    names = list(cls().get_params(deep=False))
    found: list[tuple[tuple[Any, ...], str]] = []
    settings: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}
    if on is not None:
        try:
            if "classifier" not in names:
                raise InputError(f"{name} takes no classifier.")
            if not classifiers:
                raise InputError(f"there is no [classifiers.{on}].")
            spec = classifiers[choose("classifier", on, classifiers)]
            settings["classifier"] = classifier(spec)
            grid |= {f"classifier__{k}": v for k, v in spec.grid.items()}
        except HeadcountError as error:
            found.append((("classifier",), str(error)))
    if not isinstance(parameters, Mapping) or not isinstance(own, Mapping):
        raise Fault([((), "parameters and grid must be tables of names and values.")])
    if "classifier" in parameters or "classifier" in own:
        found.append((("parameters", "classifier"), "name it by classifier = ..., not here."))
        parameters = {k: v for k, v in parameters.items() if k != "classifier"}
    for key, value in parameters.items():
        try:
            settings[choose(f"parameter of {name}", key, names)] = _value(value, classifiers)
        except Fault as fault:
            found += [(("parameters", key, *below), message) for below, message in fault.found]
        except HeadcountError as error:
            found.append((("parameters", key), str(error)))
    if found:
        raise Fault(found)
    made = cls(**settings)
    deep = made.get_params(deep=True)
    _refuse_unknown(own, list(deep), f"parameter of {name}", ("grid",))
    return made, {**grid, **own}


def _value(value: Any, classifiers: Mapping[str, ClassifierSpec]) -> Any:
    """A plain value, or the quantifier that a table with the key 'quantifier' describes."""
    if not (isinstance(value, Mapping) and "quantifier" in value):
        return value
    given = dict(value)
    name, on = given.pop("quantifier"), given.pop("classifier", None)
    parameters, grid = given.pop("parameters", {}), given.pop("grid", {})
    by = given.pop("measure", "ae")
    _refuse_unknown(given, ["quantifier", "classifier", "parameters", "grid", "measure"], "key")
    made, searched = _quantifier(str(name), on, parameters, grid, classifiers)
    return GridSearch(made, searched, measure=by) if searched else made


def _refuse_unknown(
    given: Mapping[str, Any], known: list[str], what: str, below: tuple[str, ...] = ()
) -> None:
    found: list[tuple[tuple[Any, ...], str]] = []
    for key in given:
        try:
            choose(what, key, known)
        except InputError as error:
            found.append(((*below, key), str(error)))
    if found:
        raise Fault(found)
