"""Cells of tables as numbers, texts and names that do not depend on how a file stores them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headcount._core.dates import is_text
from headcount.exceptions import InputError


def cast_cells(
    batch: pa.RecordBatch, columns: Mapping[str, str], name_of_file: str, *, commas: bool = False
) -> pa.RecordBatch:
    """Columns as numbers or texts where that is asked for; cells that are neither are missing."""
    arrays = []
    for name, kind in columns.items():
        array = batch.column(name)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pa.types.is_nested(array.type):
            raise InputError(f"column {name!r} of {name_of_file} holds lists, not single values.")
        if kind == "number" and not pa.types.is_floating(array.type):
            try:
                array = pc.cast(array, pa.float64())
            except pa.ArrowInvalid as error:
                raise InputError(
                    f"column {name!r} of {name_of_file} must hold numbers: {error}"
                ) from None
        elif kind == "text" or (kind == "date" and is_text(array.type)):
            array = pc.cast(array, pa.string())
        elif kind == "any" and commas and is_text(array.type):
            array = pc.replace_substring_regex(array, r"^(-?[0-9]*),([0-9]+)$", r"\1.\2")
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def names_of(array: Any) -> Any:
    """Values as texts that do not depend on how a file stores them: 1, not 1.0; true, not True."""
    text = pc.cast(array, pa.string())
    text = pc.replace_substring_regex(text, r"^(-?[0-9]+)[.]0+$", r"\1")
    lower = pc.utf8_lower(text)
    truth = pc.is_in(lower, pa.array(["true", "false"]))
    return pc.if_else(truth, lower, text)
