"""Tables as plain text: the one place that pads cells to aligned columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,)
) -> str:
    """Align columns with two spaces between them; those in `left` to the left, others right.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    rows : sequence of sequences of str
        Cells; every row is as long as the header.
    left : collection of int, default (0,)
        Numbers of the columns that are aligned to the left.

    Examples
    --------
    >>> print(text_table(["method", "ae"], [["CC", "0.25"], ["SLD", "0.5"]]))
    method    ae
    CC      0.25
    SLD      0.5
    """
    table = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[c]) for row in table) for c in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if c in left else cell.rjust(width)
            for c, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    )
