"""Figures of a board as SVG files of their own: the page's policy forbids styles in its text."""

from __future__ import annotations

import re
import threading
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata
from sqlalchemy.orm import Session

from headcount._core.frame import Frame
from headcount._core.types import Floats
from headcount.inference.significance import Nemenyi, critical_distance
from headcount.report import figures
from headcount.site.boards import Board, Row, load_errors, remember
from headcount.site.errors import ForbiddenError, NotFoundError
from headcount.site.golds import current_gold
from headcount.site.models import Run
from headcount.site.runs import get_task
from headcount.site.scoring import run_estimates, truth_of

if TYPE_CHECKING:
    from headcount.site.context import Site

KINDS = ("ranks", "shift", "diagonal")
MAX_RUNS_PER_PLOT = 6  # side by side
_drawing = threading.Lock()  # matplotlib has global state
_STYLE = (
    "<style>svg{color:#1b1d21}svg text{fill:currentColor}"
    "@media(prefers-color-scheme:dark){svg{color:#e6e6e6}}</style>"
)


@dataclass(frozen=True)
class Drawing:
    """An SVG file and its size in pixels, so that a page can keep its place."""

    svg: str
    width: int
    height: int


def draw(
    site: Site,
    session: Session,
    board: Board,
    kind: str,
    run_ids: tuple[int, ...] = (),
    label: int = 0,
) -> Drawing:
    """A figure of a board: average ranks, error by shift or the diagonal of one class.

    Parameters
    ----------
    kind : 'ranks', 'shift' or 'diagonal'
    run_ids : tuple of int
        Rows that are drawn side by side; the best ones by default. All are in 'ranks'.
    label : int
        Class of the diagonal.
    """
    if kind not in KINDS:
        raise NotFoundError("there is no such figure.")
    if kind != "ranks" and not board.details:
        raise ForbiddenError("this phase does not show errors of single samples yet.")
    chosen = board.rows if kind == "ranks" else _chosen(board, run_ids)
    if not chosen or (kind == "ranks" and len(chosen) < 2):
        raise NotFoundError("there are too few runs to draw.")
    if not 0 <= label < site.task(board.task).task.n_classes:
        raise NotFoundError("there is no such class.")
    names = tuple((row.run_id, row.name) for row in chosen)
    key = (kind, board.task, board.phase.id, board.gold_version, names, label)
    drawing: Drawing = remember(site, key, lambda: _draw(site, session, board, kind, chosen, label))
    return drawing


def _chosen(board: Board, run_ids: tuple[int, ...]) -> tuple[Row, ...]:
    found = tuple(row for row in board.rows if row.run_id in run_ids)
    return (found or board.rows)[:MAX_RUNS_PER_PLOT]


def _draw(
    site: Site, session: Session, board: Board, kind: str, rows: tuple[Row, ...], label: int
) -> Drawing:
    if kind == "ranks":
        made: Any = _ranks(session, board)
        return _as_svg(lambda: figures.critical_difference(made))
    frame = _frame(site, session, board, rows)
    if kind == "diagonal":
        return _as_svg(lambda: figures.diagonal(frame, str(label)))
    y = site.task(board.task).task.train.y
    training = np.bincount(y, minlength=site.task(board.task).task.n_classes) / len(y)
    measure = board.measures[0]
    return _as_svg(lambda: figures.error_by_shift(frame, measure, training))


def _ranks(session: Session, board: Board) -> Nemenyi:
    """Average ranks over samples; the test of every pair, which takes long, is not needed here."""
    gold = current_gold(session, get_task(session, board.task), board.phase.split)
    errors = load_errors(session, gold, tuple(row.run_id for row in board.rows))
    mine = errors[board.measures[0]]
    table = np.column_stack([mine[row.run_id] for row in board.rows])
    ranks = np.asarray(rankdata(table, axis=1).mean(axis=0))
    names = [_plain(row.name) for row in board.rows]
    distance = critical_distance(len(names), len(table))
    return Nemenyi(names, ranks, float("nan"), distance, np.empty((0, 0)))


def _frame(site: Site, session: Session, board: Board, rows: tuple[Row, ...]) -> Frame:
    """Truth, estimates and errors of runs as one tidy frame."""
    lab_task = site.task(board.task)
    gold = current_gold(session, get_task(session, board.task), board.phase.split)
    truth = truth_of(site, gold, lab_task)
    errors = load_errors(session, gold, tuple(row.run_id for row in rows))[board.measures[0]]
    estimates: list[Floats] = [
        run_estimates(site, session, session.get_one(Run, row.run_id)) for row in rows
    ]
    columns: dict[str, Any] = {
        "method": np.repeat([_plain(row.name) for row in rows], len(truth)),
        board.measures[0]: np.concatenate([errors[row.run_id] for row in rows]),
    }
    for c in range(lab_task.task.n_classes):
        columns[f"true:{c}"] = np.tile(truth[:, c], len(rows))
        columns[f"estimate:{c}"] = np.concatenate([each[:, c] for each in estimates])
    return Frame(columns)


def _plain(name: str) -> str:
    """A name that matplotlib does not take for a formula."""
    return name.replace("\\", "/").replace("$", r"\$")


def _as_svg(make: Any) -> Drawing:
    with _drawing, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the measuring font lacks are drawn anyway
        svg = figures.to_svg(make())
    svg = svg.replace("#000000", "currentColor").replace("<defs>", f"{_STYLE}<defs>", 1)
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    width, height = (round(float(n) * 4 / 3) for n in size.groups()) if size else (700, 420)
    return Drawing(svg, width, height)
