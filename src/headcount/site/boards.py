"""The board of a task in a phase: who is ranked, by which run, and how sure the order is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata
from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from headcount._core.types import Floats
from headcount.exceptions import choose
from headcount.lequa.board import Scores
from headcount.report.page import published
from headcount.site import phases
from headcount.site.accounts import Actor
from headcount.site.errors import ForbiddenError
from headcount.site.golds import current_gold, unpack_array
from headcount.site.models import Gold, Lab, Phase, Run, Score, Task, Team
from headcount.site.runs import counted_runs, get_task

if TYPE_CHECKING:
    from headcount.site.context import Site

Scored = tuple[int, bool, dict[str, float], dict[str, float], dict[str, str]]
MAX_REMEMBERED_BOARDS = 64  # boards and figures, per process


@dataclass(frozen=True)
class Row:
    """A line of the board."""

    rank: int
    tied: bool
    team_id: int
    name: str
    kind: str
    run_id: int
    submitted_at: datetime
    tags: str
    means: dict[str, float]
    sds: dict[str, float]
    marks: dict[str, str]


@dataclass(frozen=True)
class Board:
    """Rows, best first, and what they stand on."""

    task: str
    phase: Phase
    measures: tuple[str, ...]
    rows: tuple[Row, ...]
    gold_version: int
    gold_note: str
    details: bool
    anonymous: bool

    def sorted_by(self, key: str, down: bool = False) -> tuple[Row, ...]:
        """The rows in another order; their ranks stay what they are."""
        options = ["rank", "name", "submitted", *self.measures]
        choose("column to sort by", key, options)

        def value(row: Row) -> Any:
            if key in row.means:
                return (row.means[key], row.rank)
            if key == "submitted":
                return (row.submitted_at, row.rank)
            return (row.name.casefold(), row.rank) if key == "name" else (row.rank, row.name)

        return tuple(sorted(self.rows, key=value, reverse=down))


def make_board(
    site: Site, session: Session, task_name: str, phase: Phase, actor: Actor | None, at: datetime
) -> Board:
    """The board as the actor may see it; refused where the phase hides it."""
    organiser = actor is not None and actor.is_organiser
    if not organiser and not phases.is_published(phase, at):
        raise ForbiddenError(f"the scores of the phase {phase.name} are not published yet.")
    lab_task = site.task(task_name)
    if phase.split not in lab_task.counts:
        raise ForbiddenError(f"{task_name} has no {phase.split} samples.")
    task = get_task(session, task_name)
    gold = current_gold(session, task, phase.split)
    counted = counted_runs(session, task, phase)
    hidden = not organiser and phases.names_are_hidden(session.get_one(Lab, 1), phase, at)
    own = actor.user.team_id if actor else None
    scored = _scored(site, session, gold, tuple(sorted(counted.values())), lab_task.measures)
    runs = session.execute(
        select(Run, Team).join(Team, Team.id == Run.team_id).where(Run.id.in_(counted.values()))
    )
    rows = []
    for run, team in runs:
        masked = hidden and team.kind == "team" and team.id != own
        rows.append(_row(run, team, scored[run.id], masked))
    rows.sort(key=lambda row: (row.rank, row.name.casefold()))
    details = organiser or phases.shows_details(phase, at)
    return Board(
        task_name,
        phase,
        lab_task.measures,
        tuple(rows),
        gold.version,
        gold.note,
        details,
        hidden,
    )


def _row(run: Run, team: Team, scored: Scored, masked: bool) -> Row:
    rank, tied, means, sds, marks = scored
    return Row(
        rank=rank,
        tied=tied,
        team_id=team.id,
        name=f"Team {team.alias}" if masked else team.name,
        kind=team.kind,
        run_id=run.id,
        submitted_at=run.submitted_at,
        tags="" if masked else run.tags,
        means=means,
        sds=sds,
        marks=marks,
    )


def _scored(
    site: Site, session: Session, gold: Gold, run_ids: tuple[int, ...], measures: tuple[str, ...]
) -> dict[int, Scored]:
    """Rank, means, deviations and marks of runs; worked out once for the same runs and gold."""

    def work() -> Any:
        if not run_ids:
            return {}
        errors = load_errors(session, gold, run_ids)
        table = Scores({m: {str(i): errors[m][i] for i in run_ids} for m in measures}).table()
        order = [int(name) for name in table["run"].tolist()]
        ranks = rankdata(np.round(table[measures[0]], 12), method="min").astype(int).tolist()
        found = {}
        for place, run_id in enumerate(order):
            found[run_id] = (
                ranks[place],
                ranks.count(ranks[place]) > 1,
                {m: float(table[m][place]) for m in measures},
                {m: float(table[f"sd({m})"][place]) for m in measures},
                {m: str(table[f"mark({m})"][place]) for m in measures},
            )
        return found

    found: dict[int, Scored] = remember(site, ("scored", gold.id, gold.sha256, run_ids), work)
    return found


def load_errors(
    session: Session, gold: Gold, run_ids: tuple[int, ...]
) -> dict[str, dict[int, Floats]]:
    """Errors of runs by measure and run."""
    rows = session.scalars(
        select(Score)
        .options(undefer(Score.errors))
        .where(Score.gold_id == gold.id, Score.run_id.in_(run_ids))
    )
    found: dict[str, dict[int, Floats]] = {}
    for row in rows:
        found.setdefault(row.measure, {})[row.run_id] = unpack_array(row.errors)
    return found


def remember(site: Site, key: Any, work: Any) -> Any:
    """The result of `work`, from memory if this process has worked it out before."""
    if key in site.boards:
        return site.boards[key]
    result = work()
    while len(site.boards) >= MAX_REMEMBERED_BOARDS:
        site.boards.pop(next(iter(site.boards)), None)
    site.boards[key] = result
    return result


def would_rank(board: Board, team_id: int, mean: float) -> tuple[int, int]:
    """Place of a run among the runs of the other teams, and how many places there are."""
    others = [row.means[board.measures[0]] for row in board.rows if row.team_id != team_id]
    better = sum(round(other, 12) < round(mean, 12) for other in others)
    return better + 1, len(others) + 1


def reference_rows(task: Task) -> list[dict[str, Any]]:
    """Published results of LeQua 2022 that the organisers set beside the board."""
    table = published("lequa2022") if task.reference else None
    if table is None:
        return []
    mine = table.rows(table["task"] == task.reference)
    columns = {name: mine[name].tolist() for name in mine}
    return [{name: columns[name][i] for name in columns} for i in range(mine.n_rows)]


def references() -> list[str]:
    """Tasks that have published results."""
    table = published("lequa2022")
    return [] if table is None else list(dict.fromkeys(table["task"].tolist()))
