"""Pages of a team's runs: send, look at, describe, choose, withdraw, download."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from headcount.site import boards, phases, runs, uploading
from headcount.site.accounts import Actor
from headcount.site.context import Site
from headcount.site.errors import SiteError
from headcount.site.forms import Describing, parse
from headcount.site.golds import current_gold, run_content
from headcount.site.models import Run
from headcount.site.pages.public import task_values
from headcount.site.runs import RunView
from headcount.site.web import Visitor, VisitorHere, go, render

router = APIRouter(include_in_schema=False)
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
WORST = 10  # samples that a run's page names


@router.post("/tasks/{task}/runs")
async def upload(visitor: VisitorHere, task: str) -> Response:
    """Take a run: on to its page, or back to the form with all faults."""
    actor = visitor.require()
    form = await visitor.form()
    fields = {k: v for k, v in form.items() if isinstance(v, str) and k != "form_token"}
    site = visitor.site
    try:
        content, name = await uploading.read_file(site, form.get("file"))
        run = await uploading.take(site, actor, task, content, name, fields)
    except SiteError as error:
        values = await run_in_threadpool(task_values, site, actor, task)
        values |= {"error": error, "values": fields}
        return render(visitor, "task.html", error.status, **values)
    return go(f"/runs/{run.id}")


@router.get("/runs")
def runs_page(visitor: VisitorHere) -> Response:
    """All runs of the visitor's team."""
    actor, site = visitor.require(), visitor.site
    with site.database.reading() as session:
        found = runs.team_runs(session, actor.user.team_id) if actor.user.team_id else []
        views = runs.view_runs(session, found, site.clock())
    return render(visitor, "runs.html", views=views)


@router.get("/runs/{run}")
def run_page(visitor: VisitorHere, run: Number) -> Response:
    """One run: rank, measures, where it is worst."""
    return _run(visitor, run)


def _run(visitor: Visitor, run_id: int, error: SiteError | None = None) -> Response:
    actor, site = visitor.require(), visitor.site
    with site.database.reading() as session:
        values = run_values(site, session, actor, run_id)
    return render(visitor, "run.html", error.status if error else 200, error=error, **values)


def run_values(site: Site, session: Session, actor: Actor, run_id: int) -> dict[str, Any]:
    """What may be told of a run to its team: scores, place, marks, worst samples."""
    at = site.clock()
    run = runs.own_run(session, actor, run_id)
    view = runs.view_run(session, run, at, organiser=actor.is_organiser)
    place = marks = board = None
    worst: list[tuple[int, float]] = []
    if view.visible:
        board = boards.make_board(site, session, view.task, view.phase, actor, at)
        first = view.scores[board.measures[0]][0]
        place = boards.would_rank(board, run.team_id, first)
        row = next((row for row in board.rows if row.run_id == run.id), None)
        marks = row.marks if row else None
    if view.visible and view.details and board is not None:
        worst = worst_samples(session, view, board.measures[0])
    return {
        "view": view,
        "task": site.task(view.task),
        "place": place,
        "marks": marks,
        "worst": worst,
        "changeable": run.withdrawn_at is None and phases.is_open(view.phase, at),
    }


def worst_samples(session: Session, view: RunView, measure: str) -> list[tuple[int, float]]:
    """Numbers and errors of the samples with the largest errors."""
    task = runs.get_task(session, view.task)
    gold = current_gold(session, task, view.phase.split)
    errors = boards.load_errors(session, gold, (view.run.id,))[measure][view.run.id]
    order = np.argsort(-errors, kind="stable")[:WORST]
    return [(int(i), float(errors[i])) for i in order]


@router.get("/runs/{run}/file")
def run_file(visitor: VisitorHere, run: Number) -> Response:
    """The bytes that were uploaded."""
    return file_response(visitor.site, visitor.require(), run)


def file_response(site: Site, actor: Actor, run_id: int) -> Response:
    """The bytes of a run of one's own."""
    with site.database.reading() as session:
        found = runs.own_run(session, actor, run_id)
        view = runs.view_run(session, found, site.clock())
        content = run_content(session, found)
    headers = {"content-disposition": f'attachment; filename="{view.download_name}"'}
    return Response(content, media_type="application/octet-stream", headers=headers)


@router.post("/runs/{run}/describe")
async def describe(visitor: VisitorHere, run: Number) -> Response:
    """Change description and tags."""
    actor, fields = visitor.require(), await visitor.fields()

    def work() -> Response:
        try:
            given = parse(Describing, fields)
            with visitor.site.database.writing() as session:
                at = visitor.site.clock()
                runs.describe(session, actor, run, given.description, given.tags, at)
        except SiteError as error:
            return _run(visitor, run, error)
        return go(f"/runs/{run}")

    return await run_in_threadpool(work)


@router.post("/runs/{run}/withdraw")
async def withdraw(visitor: VisitorHere, run: Number) -> Response:
    """Take a run off the board."""
    return await _change(visitor, run, runs.withdraw)


@router.post("/runs/{run}/choose")
async def choose(visitor: VisitorHere, run: Number) -> Response:
    """Let a run count."""
    return await _change(visitor, run, runs.choose_run)


async def _change(visitor: Visitor, run: int, deed: Any) -> Response:
    actor = visitor.require()
    await visitor.fields()

    def work() -> Run:
        with visitor.site.database.writing() as session:
            found: Run = deed(session, actor, run, visitor.site.clock())
            return found

    await run_in_threadpool(work)
    return go(f"/runs/{run}")
