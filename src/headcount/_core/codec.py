"""Dataclasses as plain values (for JSON) and back, checked against their types."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

Record = TypeVar("Record")


def encode(value: Any) -> Any:
    """Plain values of a dataclass, an array or a container of these."""
    if is_dataclass(value):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    return [encode(item) for item in value] if isinstance(value, (list, tuple)) else value


def decode(record: type[Record], plain: Any) -> Record:
    """Dataclass of plain values, which must be of the annotated types.

    Raises
    ------
    ValueError
        With the path of the first value that is missing, unknown or of another type.
    """
    decoded: Record = _decode(record, plain, record.__name__)
    return decoded


def _decode(kind: Any, plain: Any, path: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if plain is None and type(None) in arguments:
            return None
        return _decode(next(a for a in arguments if a is not type(None)), plain, path)
    if is_dataclass(kind):
        return _decode_record(kind, plain, path)
    if origin is np.ndarray:
        return np.array(_expect(list, plain, path), dtype=get_args(arguments[1])[0])
    if origin in (list, tuple):
        items = _expect(list, plain, path)
        each = [arguments[0]] * len(items)
        if origin is tuple and arguments[-1] is not Ellipsis:
            each = list(arguments)
        pairs = zip(each, items, strict=True)
        return origin(_decode(a, item, f"{path}[{i}]") for i, (a, item) in enumerate(pairs))
    if origin is dict:
        values = _expect(dict, plain, path)
        return {k: _decode(arguments[1], v, f"{path}.{k}") for k, v in values.items()}
    if kind is float and type(plain) is int:
        return float(plain)
    return _expect(kind, plain, path)


def _decode_record(kind: Any, plain: Any, path: str) -> Any:
    values = _expect(dict, plain, path)
    hints = get_type_hints(kind)
    required = {f.name for f in fields(kind) if f.default is f.default_factory is MISSING}
    wrong = sorted((set(values) - set(hints)) | (required - set(values)))
    if wrong:
        raise ValueError(f"{path}: unknown or missing {', '.join(wrong)}")
    return kind(**{k: _decode(hints[k], v, f"{path}.{k}") for k, v in values.items()})


def _expect(kind: type, plain: Any, path: str) -> Any:
    if type(plain) is not kind:
        raise ValueError(f"{path}: {kind.__name__} expected, got {type(plain).__name__}")
    return plain
