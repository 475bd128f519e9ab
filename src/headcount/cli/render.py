"""Frames as CSV, JSON and Parquet."""

from __future__ import annotations

import json
from pathlib import Path

from headcount._core.files import write_parquet, write_text
from headcount._core.frame import Frame


def as_json(frame: Frame) -> str:
    """A frame as a list of rows in JSON; what is undefined is null."""
    lists = {name: frame[name].tolist() for name in frame.columns}
    rows = [
        {name: None if values[i] != values[i] else values[i] for name, values in lists.items()}
        for i in range(frame.n_rows)
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def write_frame(frame: Frame, path: Path) -> None:
    """Write a frame as CSV, JSON or Parquet, as the name of the file says."""
    if path.suffix == ".parquet":
        write_parquet(path, frame)
    else:
        write_text(path, frame.to_csv() if path.suffix == ".csv" else as_json(frame))
