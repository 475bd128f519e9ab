"""The errors and warnings of Headcount: one base for each, so that callers can catch them all."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class HeadcountError(Exception):
    """Base of every error that Headcount raises on purpose."""


class InputError(HeadcountError, ValueError):
    """The input cannot give a trustworthy answer; the message says what to do.

    Parameters
    ----------
    message : str
    setting : str, optional
        The setting that would help; commands name the option of that name.
    """

    def __init__(self, message: str = "", *, setting: str | None = None):
        super().__init__(message)
        self.setting = setting


class HeadcountWarning(UserWarning):
    """Base of every warning: the answer is given, but read this first."""


class UnreliableWarning(HeadcountWarning):
    """The estimate rests on something that does not hold well here."""


class UndefinedMeasureWarning(HeadcountWarning):
    """A measure has no value for this input, and NaN stands in its place."""


def choose(what: str, got: object, options: Iterable[str]) -> str:
    """Return `got` if it is one of the options, else raise an error that names the nearest."""
    names = list(options)
    if isinstance(got, str) and got in names:
        return got
    near = get_close_matches(str(got), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise InputError(
        f"unknown {what} {got!r}.{hint} Expected one of: {', '.join(map(repr, names))}."
    )
