"""What a study is: data sets, methods with their grids, protocols, measures and seeds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import ParameterGrid

from headcount.exceptions import InputError
from headcount.measures import measures as parse_measures
from headcount.methods.base import Quantifier, check_quantifier_type
from headcount.methods.scored import ScoreQuantifier
from headcount.protocols import UniformPrevalence
from headcount.selection.search import configured

EXTRAS = ("balances", "intervals", "groups")  # of a method, told where they are used


@dataclass(frozen=True, eq=False)
class Method:
    """A named quantifier, what to search for it, and the measures that it is run for.

    Parameters
    ----------
    name : str
        As it shall stand in the tables.
    quantifier : quantifier
    grid : mapping of parameter to values, optional
        As in `GridSearch`; each measure of the study gets its own winner.
    only : measures, optional
        Those that this method is made for, such as SVM(AE) for 'ae'; all by default.
    balances : str, optional
        Name of the method whose twin with balanced training this is.
    intervals : bool, default False
        Whether the results tell intervals and flags of every bag.
    groups : bool, default False
        Whether it is fitted with ``groups=``, the periods of a temporal data set.
    """

    name: str
    quantifier: Quantifier
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    only: Sequence[str] = ()
    balances: str = ""
    intervals: bool = False
    groups: bool = False

    def settings(self) -> list[dict[str, Any]]:
        """All settings to try; one empty setting without a grid."""
        return list(ParameterGrid(dict(self.grid)))


@dataclass(frozen=True, eq=False)
class Study:
    """Data sets x methods x bags.

    Parameters
    ----------
    name : str
    datasets : list of Dataset
        Or of other objects with the same methods, such as `headcount.lequa.TaskData`.
    methods : list of Method, or mapping of name to quantifier
    protocol : protocol
        Draws the test bags; its seed is replaced by those of the study.
    selection : protocol, optional
        Draws the bags that settings are selected on; like `protocol` by default.
    measures : list of str
        A setting is selected by each of them, and judged by that measure.
    seeds : list of int
        Everything is repeated with each of them.
    published : str, optional
        Published results to put beside ours in the report: 'tweets' or 'temporal'.
    notes : list of str
        What a reader of the report should know, such as a method that could not be run.

    Examples
    --------
    >>> from headcount import CC, SLD
    >>> from headcount.data import Dataset
    >>> from sklearn.datasets import load_iris
    >>> data = Dataset.split("iris", *load_iris(return_X_y=True))
    >>> Study("small", [data], {"CC": CC(), "SLD": SLD()}).name
    'small'
    """

    name: str
    datasets: Sequence[Any]
    methods: Any
    protocol: Any = field(default_factory=lambda: UniformPrevalence(n_bags=1000, size=100))
    selection: Any = None
    measures: Sequence[str] = ("ae", "rae")
    seeds: Sequence[int] = (0,)
    published: str | None = None
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        given = self.methods
        if isinstance(given, Mapping):
            given = [Method(str(name), q) for name, q in given.items()]
        names = [str(each) for each in parse_measures(self.measures)]
        object.__setattr__(self, "methods", list(given))
        object.__setattr__(self, "measures", names)
        object.__setattr__(self, "selection", self.selection or self.protocol)
        faults = list(self.faults())
        if faults:
            raise InputError("\n".join(["the study cannot be run:", *faults]))

    def faults(self) -> list[str]:
        """What is wrong with it, before any work is done."""
        found = []
        if not self.datasets:
            found.append("datasets: there are none.")
        if not self.methods:
            found.append("methods: there are none.")
        plain_seeds = all(type(s) is int and 0 <= s < 2**32 for s in self.seeds)
        if not self.seeds or not plain_seeds or len(set(self.seeds)) < len(self.seeds):
            found.append(
                f"seeds: different whole numbers from 0 are expected, got {list(self.seeds)!r}."
            )
        names = [data.name for data in self.datasets]
        found += [f"datasets: {n!r} is there twice." for n in _repeated(names)]
        pairs = [f"{m.name} ({s or 'all'})" for m in self.methods for s in self.labels(m)]
        found += [f"methods: {n!r} is there twice." for n in _repeated(pairs)]
        for each in self.measures:
            kind = each.partition("(")[0]
            if kind in ("q", "carc"):
                found.append(f"measures: {each} is not a measure of single bags.")
        for method in self.methods:
            found += _method_faults(method, self.measures)
        selection = self.selection if any(m.grid for m in self.methods) else None
        grouped = [m.name for m in self.methods if m.groups]
        for data in self.datasets:
            if grouped and not hasattr(data, "groups"):
                found.append(f"methods, {grouped[0]!r}: {data.name!r} has no periods for groups.")
            found += data.faults(self.protocol, selection)
        return found

    def labels(self, method: Method) -> list[str]:
        """Measures that a method's settings are selected by; '' where nothing is selected."""
        wanted = list(method.only) or list(self.measures)
        return wanted if method.grid or method.only else [""]

    def description(self, prints: Mapping[str, str]) -> dict[str, Any]:
        """Everything that decides the results, as plain data; `prints` are hashes of the data."""
        return {
            "name": self.name,
            "datasets": dict(prints),
            "methods": [
                {
                    "name": m.name,
                    "quantifier": plain(m.quantifier),
                    "grid": plain(dict(m.grid)),
                    "only": list(m.only),
                    **{k: getattr(m, k) for k in EXTRAS if getattr(m, k)},
                }
                for m in self.methods
            ],
            "protocol": plain(self.protocol),
            "selection": plain(self.selection),
            "measures": list(self.measures),
            "seeds": list(self.seeds),
        }


def plain(value: Any) -> Any:
    """Plain data that tells a value from others, the same on every machine."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return {"array": hashlib.sha256(value.tobytes()).hexdigest(), "shape": list(value.shape)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, BaseEstimator):
        return {"type": name, **plain(value.get_params(deep=False))}
    if is_dataclass(value) and not isinstance(value, type):
        return {"type": name, **{f.name: plain(getattr(value, f.name)) for f in fields(value)}}
    return {"type": name, "text": repr(value)}


def digest(value: Any) -> str:
    """Hash of plain data."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _check_settings(quantifier: Quantifier) -> None:
    """Refuse impossible settings as far as they can be told without data."""
    if isinstance(quantifier, ScoreQuantifier):
        quantifier.check_params()
        cv = quantifier.cv
        whole = isinstance(cv, (int, float)) and not isinstance(cv, bool)
        if cv is not None and not (whole and (cv >= 2 or 0 < cv < 1)):
            raise InputError(f"cv must be at least 2 folds, or a share to hold out, got {cv!r}.")
        classifier = quantifier.classifier
        if classifier is not None and not (
            hasattr(classifier, "fit") and (is_classifier(classifier) or has_predict(classifier))
        ):
            raise InputError(f"{classifier!r} is not a classifier.")
        if hasattr(classifier, "_parameter_constraints"):
            classifier._validate_params()


def has_predict(classifier: Any) -> bool:
    """Whether a pipeline or a wrapper can score items."""
    return any(hasattr(classifier, n) for n in ("predict_proba", "decision_function"))


def _repeated(names: list[str]) -> list[str]:
    return sorted({n for n in names if names.count(n) > 1})


def _method_faults(method: Method, measures: Sequence[str]) -> list[str]:
    where = f"methods, {method.name!r}"
    if method.groups and "groups" not in signature(method.quantifier.fit).parameters:
        return [f"{where}: {type(method.quantifier).__name__} is not fitted with groups."]
    try:
        check_quantifier_type(method.quantifier)
        for setting in method.settings():
            _check_settings(configured(method.quantifier, setting))
    except InputError as error:
        return [f"{where}: {error}"]
    except (TypeError, ValueError) as error:
        return [f"{where}: the grid cannot be read: {error}"]
    wrong = [m for m in method.only if m not in measures]
    return [f"{where}: only={m!r} is not among the measures {list(measures)}." for m in wrong]
