"""The figure of the README: true, counted and estimated shares of complaints, month by month.

Run ``make figure``: it fits the default to the example corpus and writes ``docs/months.svg``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from headcount import tables
from headcount.report import figures
from headcount.tables.example import make_example

PLACE = Path(__file__).parent.parent / "docs" / "months.svg"


def main() -> None:
    labelled, messages = make_example()
    model = tables.fit(labelled, text="message", label="kind")
    found = model.estimate(messages, by="month:date", truth="kind")
    c = found.interval.classes.tolist().index("complaint")
    figure = figures.trend(
        found.groups,
        found.interval.prevalence[:, c],
        found.interval.low[:, c],
        found.interval.high[:, c],
        flagged=np.zeros(len(found.groups), dtype=bool),
        counted=found.counted[:, c],
        truth=found.truth[:, c],
    )
    axes = figure.axes[0]
    axes.set_ylim(0, 60)
    axes.set_ylabel("complaints, % of messages")
    svg = figures.to_svg(figure)
    # Readers with a dark screen get the same picture: black on white.
    start = svg.index(">") + 1
    PLACE.write_text(svg[:start] + '<rect width="100%" height="100%" fill="white"/>' + svg[start:])
    print(f"wrote {PLACE}\n{found}")


if __name__ == "__main__":
    main()
