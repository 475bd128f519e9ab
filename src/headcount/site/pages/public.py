"""Pages that everyone may see: the lab, its tasks, data and boards."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query
from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from headcount.site import boards, drawings, phases, runs
from headcount.site.accounts import Actor
from headcount.site.answers import archive_response, open_archives
from headcount.site.context import Site
from headcount.site.errors import ForbiddenError, NotFoundError
from headcount.site.export import board_rows, rows_to_csv
from headcount.site.models import Gold, Lab, Team
from headcount.site.organise import list_announcements
from headcount.site.secrecy import make_secret
from headcount.site.teams import own_team
from headcount.site.web import VisitorHere, render

router = APIRouter(include_in_schema=False)
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
Picked = Annotated[list[int] | None, Query(max_length=50)]


@router.get("/")
def home(visitor: VisitorHere) -> Response:
    """The lab: phases, tasks, announcements."""
    site, at = visitor.site, visitor.site.clock()
    with site.database.reading() as session:
        lab = session.get_one(Lab, 1)
        listed = [
            (phase, phases.state_text(phase, at, lab.timezone), phases.is_published(phase, at))
            for phase in phases.list_phases(session)
        ]
        news = list_announcements(session, 10)
    return render(visitor, "home.html", tasks=site.tasks, phases=listed, announcements=news)


@router.get("/tasks/{task}")
def task_page(visitor: VisitorHere, task: str) -> Response:
    """A task: what it is, its data, how to send a run, its boards."""
    return render(visitor, "task.html", **task_values(visitor.site, visitor.actor, task))


def task_values(site: Site, actor: Actor | None, name: str) -> dict[str, Any]:
    """What the page of a task shows."""
    lab_task, at = site.task(name), site.clock()
    with site.database.reading() as session:
        row = runs.get_task(session, name)
        lab = session.get_one(Lab, 1)
        team = own_team(session, actor.user) if actor and actor.user.team_id else None
        listed: list[dict[str, Any]] = []
        for phase in phases.list_phases(session):
            if phase.split not in lab_task.counts:
                continue
            is_open = phases.is_open(phase, at)
            left = None
            if team is not None and is_open:
                left = phases.quota_left(session, phase, row, team, at).left
            listed.append(
                {
                    "phase": phase,
                    "state": phases.state_text(phase, at, lab.timezone),
                    "open": is_open,
                    "published": phases.is_published(phase, at),
                    "left": left,
                }
            )
        golds = session.query(Gold).where(Gold.task_id == row.id, Gold.version > 1).all()
        corrected = [g for g in golds if g.current]
        reference = row.reference
    return {
        "task": lab_task,
        "team": team,
        "phases": listed,
        "archives": open_archives(site, lab_task, actor),
        "corrected": corrected,
        "reference": reference,
        "client_key": make_secret()[:32],
        "url": site.settings.url,
        "error": None,
        "values": {},
    }


@router.get("/tasks/{task}/files/{name}")
@router.head("/tasks/{task}/files/{name}")
def download(visitor: VisitorHere, task: str, name: str) -> Response:
    """An archive of the task's data; parts of it by range requests."""
    return archive_response(visitor.site, visitor.actor, task, name)


@router.get("/tasks/{task}/SHA256SUMS")
def checksums(visitor: VisitorHere, task: str) -> Response:
    """Checksums of the archives, for `sha256sum -c`."""
    listed = open_archives(visitor.site, visitor.site.task(task), visitor.actor)
    return PlainTextResponse("".join(f"{a.sha256}  {a.name}\n" for a in listed))


@router.get("/tasks/{task}/boards/{phase}")
def board_page(
    visitor: VisitorHere,
    request: Request,
    task: str,
    phase: Number,
    run: Picked = None,
    sort: str = "rank",
    down: bool = False,
    label: int = 0,
) -> Response:
    """The board of a task in a phase."""
    site, at = visitor.site, visitor.site.clock()
    with site.database.reading() as session:
        board = boards.make_board(
            site, session, task, phases.get_phase(session, phase), visitor.actor, at
        )
        if sort not in ("rank", "name", "submitted", *board.measures):
            raise NotFoundError("there is no such column.")
        picked = tuple(run or ())
        pictures = _pictures(site, session, board, picked, label)
        reference = boards.reference_rows(runs.get_task(session, task))
    columns = [("rank", "Rank"), ("name", "Team")]
    columns += [(m, m.upper()) for m in board.measures] + [("submitted", "Submitted")]
    return render(
        visitor,
        "board.html",
        task=site.task(task),
        board=board,
        rows=board.sorted_by(sort, down),
        columns=columns,
        sort=sort,
        down=down,
        picked=picked,
        label=label,
        pictures=pictures,
        reference=reference,
        sort_link=lambda key: _sort_link(request, key, sort, down),
    )


def _pictures(
    site: Site, session: Session, board: boards.Board, picked: tuple[int, ...], label: int
) -> list[dict[str, Any]]:
    """The figures that may be drawn, with their sizes, so that the page does not move."""
    query = urlencode([*(("run", i) for i in picked), ("label", label)])
    found = []
    for kind in drawings.KINDS:
        try:
            drawing = drawings.draw(site, session, board, kind, picked, label)
        except (NotFoundError, ForbiddenError):
            continue
        found.append({"kind": kind, "drawing": drawing, "query": query})
    return found


def _sort_link(request: Request, key: str, sort: str, down: bool) -> str:
    kept = [(k, v) for k, v in request.query_params.multi_items() if k in ("run", "label")]
    turned = key == sort and not down
    return "?" + urlencode([*kept, ("sort", key), *([("down", "true")] if turned else [])])


@router.get("/tasks/{task}/boards/{phase}/board.json")
def board_json(visitor: VisitorHere, task: str, phase: Number) -> Response:
    """The board as JSON."""
    return JSONResponse(board_rows(_board(visitor, task, phase)))


@router.get("/tasks/{task}/boards/{phase}/board.csv")
def board_csv(visitor: VisitorHere, task: str, phase: Number) -> Response:
    """The board as CSV."""
    text = rows_to_csv(board_rows(_board(visitor, task, phase)))
    headers = {"content-disposition": f'attachment; filename="{task}-board.csv"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


@router.get("/tasks/{task}/boards/{phase}/{kind}.svg")
def figure(
    visitor: VisitorHere, task: str, phase: Number, kind: str, run: Picked = None, label: int = 0
) -> Response:
    """A figure of the board."""
    site = visitor.site
    with site.database.reading() as session:
        board = boards.make_board(
            site,
            session,
            task,
            phases.get_phase(session, phase),
            visitor.actor,
            site.clock(),
        )
        drawing = drawings.draw(site, session, board, kind, tuple(run or ()), label)
    return Response(drawing.svg, media_type="image/svg+xml")


@router.get("/tasks/{task}/boards/{phase}/teams/{team}")
def history(visitor: VisitorHere, task: str, phase: Number, team: Number) -> Response:
    """All runs of a team behind its row of the board."""
    board = _board(visitor, task, phase)
    row = next((row for row in board.rows if row.team_id == team), None)
    if row is None:
        raise NotFoundError("there is no such row.")
    site, at = visitor.site, visitor.site.clock()
    with site.database.reading() as session:
        found = [
            run
            for run in runs.team_runs(session, team, runs.get_task(session, task))
            if run.phase_id == phase and run.withdrawn_at is None
        ]
        masked = row.name != session.get_one(Team, team).name
        views = runs.view_runs(session, found, at, organiser=visitor_organises(visitor))
    return render(
        visitor, "history.html", board=board, row=row, views=views, masked=masked, task=task
    )


def visitor_organises(visitor: VisitorHere) -> bool:
    """Whether the visitor is an organiser."""
    return visitor.actor is not None and visitor.actor.is_organiser


def _board(visitor: VisitorHere, task: str, phase: int) -> boards.Board:
    site = visitor.site
    with site.database.reading() as session:
        found = phases.get_phase(session, phase)
        return boards.make_board(site, session, task, found, visitor.actor, site.clock())
