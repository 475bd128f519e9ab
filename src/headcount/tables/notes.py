"""Notes about tables: small records, worded where they are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headcount.data.stream import Reading


@dataclass(frozen=True)
class Note:
    """An observation about a table.

    Attributes
    ----------
    kind : one of `TEMPLATES`
    count : number of rows
    subject : column, class or kind of input
    names : values, groups or columns
    """

    kind: str
    count: int = 0
    subject: str = ""
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        listed, rest = self.names[:30], len(self.names) - 30
        return TEMPLATES[self.kind].format(
            count=f"{self.count:,}",
            subject=self.subject,
            bare=", ".join(self.names),
            names=", ".join(map(repr, listed)) + (f" and {rest} more" if rest > 0 else ""),
        )


Notify = Callable[[Note], None]


def reading_notes(reading: Reading) -> list[Note]:
    """Notes about doubtful content of files."""
    return [
        *(Note("bad lines", n, name) for name, n in reading.bad_lines.items()),
        *(Note("bad rows", n, name) for name, n in reading.bad_rows.items()),
        *(Note("swallowed", n, name) for name, n in reading.swallowed.items() if n),
        *(Note("sheet", subject=name, names=(title,)) for name, title in reading.sheets.items()),
    ]


# The library's own wording; commands add the option that would help.
TEMPLATES = {
    "no item": "{count} rows without {subject} were left out.",
    "no label": "{count} rows without a label were left out.",
    "no weight": "{count} rows without a weight above 0 were left out.",
    "no date": (
        "{count} rows have no readable date in '{subject}' (such as {names}); they are a group of "
        "their own, '(no date)'."
    ),
    "empty date": "{count} rows have no date in '{subject}'; they are a group '(no date)'.",
    "no group": "rows without '{subject}' are a group of their own, '(missing)'.",
    "unknown truth": (
        "'{subject}' holds {names}, which the model never saw: such rows are counted among the "
        "known classes, and left out of the true shares."
    ),
    "truth is there": "the column '{subject}' is there: the estimates can be compared with it.",
    "too few to compare": (
        "'{subject}' has fewer than {count} rows, too few to compare methods: SLD is used."
    ),
    "score of": "'{subject}' is taken as the score of {names}.",
    "score of neither": (
        "the rows of both classes score about the same in '{subject}': is it a score of them?"
    ),
    "score against name": (
        "'{subject}' is named after the other class, but rows of {names} score higher in it: what "
        "the labels say counts."
    ),
    "label of none": "{names} in '{subject}' is taken as no label: such rows were left out.",
    "copies": (
        "{count} of {bare} labelled rows are copies of others, label and all; each counts once."
    ),
    "alike labels": (
        "{names} in '{subject}' differ only in capitals, and are classes of their own."
    ),
    "maybe no label": (
        "{names} in '{subject}' is taken as a class: leave such rows empty if they have no label."
    ),
    "rare joined": "too few rows: {names}; joined into '{subject}' ({count} rows).",
    "rare dropped": (
        "too few rows: {names}; left out ({count} rows), so that rows of them in other tables are "
        "counted among the remaining classes."
    ),
    "groups at fitting": (
        "'{subject}' is in the labelled rows too, but the model was fitted without knowing the "
        "groups: if the rows reveal their group (names, places), these answers can be far off. Fit "
        "it by '{subject}' to have the labelled rows of each group used, and honest intervals."
    ),
    "few groups": "'{subject}' has {count} groups: with fewer than 5 nothing is learnt from them.",
    "scores against names": (
        "rows of {names} score higher in other columns than in those of their names: are these the "
        "scores of the right classes?"
    ),
    "scores by labels": (
        "the names do not tell which score is of which class; by the labels: {bare}."
    ),
    "bad lines": "{count} lines of {subject} are not UTF-8 and were read as Windows-1252.",
    "bad rows": ("{count} rows of {subject} have too many or too few columns and were left out."),
    "swallowed": (
        "{count} lines of {subject} are inside of a cell where rows should be, and lost: a quote "
        "before them does not end. Close it, or double quotes inside of texts."
    ),
    "sheet": "of the sheets of {subject}, {names} was read.",
    "dates": "the dates in '{subject}' are read {bare}.",
    "warning": "{subject}",
}
