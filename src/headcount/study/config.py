"""Studies written as TOML: typed, checked as a whole, every fault reported at once."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headcount.data.dataset import Dataset
from headcount.exceptions import HeadcountError, InputError, choose
from headcount.study.build import Fault, check_measures, classifier, methods, protocol
from headcount.study.lines import Lines
from headcount.study.sources import anchor, read_source
from headcount.study.specs import (
    ClassifierSpec,
    DatasetSpec,
    MethodSpec,
    Spec,
    StudySpec,
    TemporalSpec,
)
from headcount.study.study import Method, Study

PUBLISHED = ["tweets", "temporal"]
EXAMPLES = ["tweets", "temporal", "small"]


def load(path: str | Path) -> Study:
    """Read a study from TOML; the data are read too, so that nothing can be missing later.

    Raises
    ------
    InputError
        That lists every fault with its key and line.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(
            f"there is no file {str(path)!r}. 'headcount study new' writes one to start from."
        )
    values, lines = _read(path)
    faults = _Faults(path, lines)
    try:
        spec = StudySpec.model_validate(values)
    except ValidationError as error:
        for each in error.errors():
            known = _known(each["loc"]) if each["type"] == "extra_forbidden" else None
            faults.add(each["loc"], _words(each, known))
        spec = None
    parts = _Parts(values, path.parent, faults)
    if spec is not None:
        parts.build(spec)
    else:
        parts.salvage(values)
    faults.raise_if_any()
    assert spec is not None
    try:
        return Study(
            spec.name,
            parts.datasets,
            parts.methods,
            parts.protocol,
            parts.selection,
            spec.measures,
            spec.seeds,
            spec.published,
            parts.notes,
        )
    except InputError as error:
        # Faults of the study as a whole name their table; its line is the best there is.
        for sentence in str(error).splitlines()[1:] or [str(error)]:
            key, _, rest = sentence.partition(":")
            faults.add((key.partition(",")[0],), rest.strip() if rest else sentence, about=key)
        faults.raise_if_any()
        raise


def example(name: str) -> str:
    """Text of a study that comes with the package: 'tweets', 'temporal' or 'small'."""
    choose("study", name, EXAMPLES)
    home = resources.files("headcount.study") / "configs" / f"{name}.toml"
    return home.read_text(encoding="utf-8")


class _Faults:
    """Faults by key, with the line of the file where the key stands."""

    def __init__(self, path: Path, lines: Lines):
        self.path, self.lines = path, lines
        self.found: list[str] = []

    def add(self, loc: tuple[Any, ...], message: str, about: str | None = None) -> None:
        key = "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in loc).lstrip(".")
        line = self.lines.of(loc)
        where = f"line {line}, " if line else ""
        self.found.append(f"  {where}{about or key}: {message}")

    def raise_if_any(self) -> None:
        if self.found:
            unique = list(dict.fromkeys(self.found))
            many = "a fault" if len(unique) == 1 else f"{len(unique)} faults"
            raise InputError("\n".join([f"{self.path.name} has {many}:", *unique]))


class _Parts:
    """Objects of a study from its specification; what cannot be built is a fault."""

    def __init__(self, values: dict[str, Any], home: Path, faults: _Faults):
        self.values, self.home, self.faults = values, home, faults
        self.datasets: list[Dataset] = []
        self.methods: list[Method] = []
        self.protocol: Any = None
        self.selection: Any = None
        self.notes: list[str] = []

    def build(self, spec: StudySpec) -> None:
        self._try(("measures",), lambda: check_measures(spec.measures))
        self.protocol = self._try(("protocol",), lambda: protocol(spec.protocol))
        if spec.selection is not None:
            given = spec.selection
            self.selection = self._try(("selection",), lambda: protocol(given))
        if spec.published is not None:
            name = spec.published
            self._try(("published",), lambda: choose("published results", name, PUBLISHED))
        classifiers = spec.classifiers
        for name, each in classifiers.items():
            self._try(("classifiers", name), partial(classifier, each))
        for i, method in enumerate(spec.methods):
            if _is_missing(method.needs):
                name = method.name or method.quantifier
                self.notes.append(f"{name} is left out: it needs {method.needs}.")
                continue
            how = partial(methods, method, classifiers, spec.measures)
            made = self._try(("methods", i), how)
            self.methods += made or []
        for i, data in enumerate(spec.datasets):
            read = self._try(("datasets", i), partial(read_source, data, self.home))
            if read is not None:
                self.datasets.append(read)

    def salvage(self, values: dict[str, Any]) -> None:
        """Check the parts that are well-formed although others are not."""
        classifiers = {}
        for name, each in _items(values.get("classifiers")):
            spec = _valid(ClassifierSpec, each)
            if spec is not None:
                classifiers[name] = spec
                self._try(("classifiers", name), partial(classifier, spec))
        for i, each in enumerate(_listed(values.get("methods"))):
            spec = _valid(MethodSpec, each)
            if spec is not None and not _is_missing(spec.needs):
                self._try(("methods", i), partial(methods, spec, classifiers))
        for i, each in enumerate(_listed(values.get("datasets"))):
            spec = _valid(DatasetSpec, each)
            if spec is not None:
                self._try(("datasets", i), partial(read_source, spec, self.home))
        for key in ("protocol", "selection"):
            if isinstance(values.get(key), dict):
                self._try((key,), partial(protocol, values[key]))

    def _try(self, loc: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        try:
            return make()
        except Fault as fault:
            for below, message in fault.found:
                self.faults.add((*loc, *below), message)
        except HeadcountError as error:
            self.faults.add(loc, str(error))
        return None


def _is_missing(package: str | None) -> bool:
    return package is not None and find_spec(package) is None


def _read(path: Path, seen: tuple[Path, ...] = ()) -> tuple[dict[str, Any], Lines]:
    if path.resolve() in seen:
        raise InputError(f"{path.name} extends itself.")
    try:
        text = path.read_text(encoding="utf-8-sig")
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name} is no TOML: {error}") from None
    base = values.pop("extends", None)
    if base is None:
        return values, Lines(text)
    near = path.parent / str(base)
    if near.is_file():
        below, _ = _read(near, (*seen, path.resolve()))
        anchor(below, near.parent.resolve())
    else:
        choose("study to extend", base, EXAMPLES)
        below = tomllib.loads(example(base))
    return {**below, **values}, Lines(text)


def _known(loc: tuple[Any, ...]) -> list[str]:
    models: dict[str, type[Spec]] = {
        "datasets": DatasetSpec,
        "methods": MethodSpec,
        "classifiers": ClassifierSpec,
    }
    model = StudySpec if len(loc) == 1 else models.get(str(loc[0]), StudySpec)
    return list((TemporalSpec if "temporal" in loc[:-1] else model).model_fields)


def _words(error: Any, known: list[str] | None) -> str:
    """One error of pydantic's in our words."""
    if known is not None:
        try:
            choose("key", error["loc"][-1], known)
        except InputError as unknown:
            return str(unknown)
    if error["type"] == "missing":
        return "is missing."
    got = repr(error["input"])
    return f"{error['msg']}; got {got if len(got) < 60 else got[:57] + '...'}."


def _valid(model: type[Any], value: Any) -> Any:
    try:
        return model.model_validate(value)
    except ValidationError:
        return None


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    yield from value.items() if isinstance(value, dict) else ()


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
