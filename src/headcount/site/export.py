"""Everything as one download: runs as files, and tables as Parquet and CSV."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from headcount.site.boards import Board
from headcount.site.errors import NotFoundError
from headcount.site.golds import current_gold
from headcount.site.models import Gold, Phase, Run, Score, Task, Team, User
from headcount.site.runs import counted_runs
from headcount.site.scoring import run_content
from headcount.site.texts import file_stem, safe_cell


def write_export(session: Session, path: Path) -> None:
    """Write a zip of all runs, scores, teams and users (without passwords)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = {"runs": _run_rows(session), "scores": _score_rows(session), "teams": _teams(session)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, rows in tables.items():
            archive.writestr(f"{name}.csv", rows_to_csv(rows))
            out = io.BytesIO()
            pq.write_table(pa.Table.from_pylist(rows), out, compression="zstd")
            archive.writestr(f"{name}.parquet", out.getvalue())
        for row in tables["runs"]:
            run = session.get_one(Run, row["run"])
            archive.writestr(str(row["file"]), run_content(session, run))


def rows_to_csv(rows: list[dict[str, Any]]) -> str:
    """A CSV file of rows with the same keys; no cell can be taken for a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
        writer.writerows([safe_cell(value) for value in row.values()] for row in rows)
    return out.getvalue()


def board_rows(board: Board) -> list[dict[str, Any]]:
    """A board as plain rows."""
    return [
        {
            "rank": row.rank,
            "team": row.name,
            "kind": row.kind,
            "run": row.run_id,
            "submitted_at": row.submitted_at.isoformat(),
            "tags": row.tags,
            **{m: row.means[m] for m in board.measures},
            **{f"sd_{m}": row.sds[m] for m in board.measures},
            **{f"mark_{m}": row.marks[m] for m in board.measures},
        }
        for row in board.rows
    ]


def _run_rows(session: Session) -> list[dict[str, Any]]:
    counted = {
        run_id
        for task in session.scalars(select(Task))
        for phase in session.scalars(select(Phase))
        if _has_gold(session, task, phase)
        for run_id in counted_runs(session, task, phase).values()
    }
    query = (
        select(Run, Task.name, Phase.name, Team.name, User.name)
        .join(Task, Task.id == Run.task_id)
        .join(Phase, Phase.id == Run.phase_id)
        .join(Team, Team.id == Run.team_id)
        .join(User, User.id == Run.user_id)
        .order_by(Run.id)
    )
    return [
        {
            "run": run.id,
            "task": task,
            "phase": phase,
            "team": team,
            "user": user,
            "submitted_at": run.submitted_at.isoformat(),
            "withdrawn_at": run.withdrawn_at.isoformat() if run.withdrawn_at else "",
            "counts": run.id in counted,
            "description": run.description,
            "tags": run.tags,
            "file_name": run.file_name,
            "sha256": run.sha256,
            "file": f"runs/{task}/{file_stem(phase)}/{run.team_id}-{file_stem(team)}/{run.id}.csv",
        }
        for run, task, phase, team, user in session.execute(query)
    ]


def _has_gold(session: Session, task: Task, phase: Phase) -> bool:
    try:
        current_gold(session, task, phase.split)
    except NotFoundError:
        return False
    return True


def _score_rows(session: Session) -> list[dict[str, Any]]:
    query = select(Score, Gold.version, Gold.current).join(Gold, Gold.id == Score.gold_id)
    return [
        {
            "run": score.run_id,
            "measure": score.measure,
            "mean": score.mean,
            "sd": score.sd,
            "gold_version": version,
            "gold_is_current": current,
        }
        for score, version, current in session.execute(
            query.order_by(Score.run_id, Score.measure, Gold.version)
        )
    ]


def _teams(session: Session) -> list[dict[str, Any]]:
    rows = []
    for team in session.scalars(select(Team).order_by(Team.id)):
        people = session.scalars(select(User).where(User.team_id == team.id).order_by(User.id))
        found = list(people)
        rows.append(
            {
                "team": team.name,
                "kind": team.kind,
                "state": team.state,
                "created_at": team.created_at.isoformat(),
                "members": ", ".join(user.name for user in found),
                "emails": ", ".join(user.email for user in found if user.email),
            }
        )
    return rows
