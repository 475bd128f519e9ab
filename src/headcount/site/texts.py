"""Texts that visitors send: what they may hold, and when two names are the same."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator, Field

NAME_LENGTH = 40
MAX_TEXT_CHARACTERS = 5000
_TAG = re.compile(r"[\w.+-]{1,30}")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def plain_text(text: str) -> str:
    r"""The text without blanks at its ends; an error if a database or a page could not show it.

    Examples
    --------
    >>> plain_text("  two lines\r\n of text ").split("\n")
    ['two lines', ' of text']
    >>> plain_text("a\x00b")
    Traceback (most recent call last):
        ...
    ValueError: holds a character that cannot be shown (number 0)
    """
    text = text.replace("\r\n", "\n").strip()
    for ch in text:
        kind = unicodedata.category(ch)
        if kind in ("Cc", "Cs") and ch not in "\n\t":
            raise ValueError(f"holds a character that cannot be shown (number {ord(ch)})")
    return text


def one_line(text: str) -> str:
    """The text with its runs of white space as single blanks."""
    text = " ".join(plain_text(text).split())
    if any(unicodedata.category(ch) == "Cf" for ch in text):
        raise ValueError("holds an invisible character")
    return text


def display_name(text: str) -> str:
    """A name that tells people apart: one line, not empty, with a letter or digit in it."""
    text = one_line(text)
    if not any(ch.isalnum() for ch in text):
        raise ValueError("must hold a letter or a digit")
    return text


def name_key(name: str) -> str:
    """What names are compared by: case, accents of width and blanks make no difference.

    Examples
    --------
    >>> name_key("The  Team") == name_key("the team")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def split_tags(text: str) -> list[str]:
    """Tags from a text with commas or blanks between them; an error names a bad one.

    Examples
    --------
    >>> split_tags("SLD, bcts  logistic-regression, SLD")
    ['SLD', 'bcts', 'logistic-regression']
    """
    found = list(dict.fromkeys(re.split(r"[\s,]+", text.strip()))) if text.strip(" ,\n\t") else []
    found = [tag for tag in found if tag]
    for tag in found:
        if not _TAG.fullmatch(tag):
            raise ValueError(f"a tag has up to 30 letters, digits, '.', '+', '-' or '_': {tag!r}")
    if len(found) > 10:
        raise ValueError(f"at most ten tags, got {len(found)}")
    return found


def safe_cell(value: object) -> object:
    """A cell of a CSV file that no spreadsheet takes for a formula.

    Examples
    --------
    >>> safe_cell("=1+1"), safe_cell(-0.5), safe_cell("team")
    ("'=1+1", -0.5, 'team')
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def file_stem(text: str) -> str:
    r"""A name as part of a path in an archive or a header: letters, digits, '-' and '_' only.

    Examples
    --------
    >>> file_stem("../Équipe 1\r\n")
    'Equipe_1'
    """
    ascii_only = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9-]+", "_", ascii_only).strip("_")[:60] or "unnamed"


Name = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH), AfterValidator(display_name)]
Line = Annotated[str, Field(max_length=200), AfterValidator(one_line)]
LongText = Annotated[str, Field(max_length=MAX_TEXT_CHARACTERS), AfterValidator(plain_text)]
Tags = Annotated[
    str,
    Field(max_length=400),
    AfterValidator(one_line),
    AfterValidator(lambda text: ", ".join(split_tags(text))),
]
Email = Annotated[
    str,
    Field(max_length=200, pattern=r"^$|^[^@\s]+@[^@\s]+\.[^@\s]+$"),
    AfterValidator(one_line),
]
Password = Annotated[str, Field(min_length=10, max_length=200)]
Secret = Annotated[str, Field(max_length=200), AfterValidator(one_line)]
