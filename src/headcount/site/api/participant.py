"""The API of participants: register, tokens, team, tasks, data, runs, boards."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from headcount.site import (
    boards,
    drawings,
    organise,
    phases,
    runs,
    uploading,
)
from headcount.site.accounts import Actor
from headcount.site.answers import (
    archive_response,
    file_response,
    open_archives,
    run_values,
)
from headcount.site.api import outputs
from headcount.site.api.account import ERRORS, Number
from headcount.site.context import Site
from headcount.site.errors import NotFoundError
from headcount.site.export import board_rows, rows_to_csv
from headcount.site.forms import (
    Describing,
)
from headcount.site.models import Lab
from headcount.site.web import AnyCaller, Caller, SiteHere

router = APIRouter(prefix="/api/v1", responses=ERRORS)
TaskName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$")]
UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/zip": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "description": {"type": "string"},
                        "tags": {"type": "string"},
                    },
                }
            },
        },
    },
}


@router.get("/lab", tags=["lab"])
def get_lab(site: SiteHere) -> outputs.LabOut:
    """The lab and its rules."""
    with site.database.reading() as session:
        return outputs.LabOut.model_validate(session.get_one(Lab, 1))


@router.get("/announcements", tags=["lab"])
def get_announcements(site: SiteHere) -> list[outputs.AnnouncementOut]:
    """The latest announcements."""
    with site.database.reading() as session:
        found = organise.list_announcements(session)
    return [outputs.AnnouncementOut.model_validate(each) for each in found]


@router.get("/phases", tags=["lab"])
def get_phases(site: SiteHere) -> list[outputs.PhaseOut]:
    """All phases."""
    at = site.clock()
    with site.database.reading() as session:
        return [outputs.phase_out(phase, at) for phase in phases.list_phases(session)]


@router.get("/tasks", tags=["tasks"])
def get_tasks(site: SiteHere, caller: AnyCaller) -> list[outputs.TaskOut]:
    """All tasks."""
    return [_task_out(site, caller, name) for name in site.tasks]


@router.get("/tasks/{task}", tags=["tasks"])
def get_task(site: SiteHere, caller: AnyCaller, task: TaskName) -> outputs.TaskOut:
    """A task and its files."""
    return _task_out(site, caller, task)


def _task_out(site: Site, caller: Actor | None, name: str) -> outputs.TaskOut:
    lab_task = site.task(name)
    task = lab_task.task
    return outputs.TaskOut(
        name=name,
        form=task.form,
        ordinal=task.ordinal,
        classes=task.classes,
        sample_size=task.size,
        samples=lab_task.counts,
        measures=list(lab_task.measures),
        files=[outputs.FileOut.model_validate(a) for a in open_archives(site, lab_task, caller)],
    )


@router.get("/tasks/{task}/files/{name}", tags=["tasks"], response_class=Response)
def get_file(site: SiteHere, caller: AnyCaller, task: TaskName, name: str) -> Response:
    """A file of the task's data; parts of it by range requests."""
    return archive_response(site, caller, task, name)


@router.post(
    "/tasks/{task}/runs",
    status_code=201,
    tags=["runs"],
    openapi_extra=UPLOAD,
    response_model=outputs.PlacedRunOut,
)
async def post_run(site: SiteHere, caller: Caller, request: Request, task: TaskName) -> Any:
    """Send a run: as the body, or as the file of a form.

    `description`, `tags`, `phase` and `file_name` may be in the query. With an `Idempotency-Key`
    the same upload can be sent again after a broken line and is kept once. Organisers post a
    `baseline` by giving its name.
    """
    caller.require("submit")
    content, name, fields = await uploading.read_body(site, request)
    run = await uploading.take(site, caller, task, content, name, fields)
    return await run_in_threadpool(_placed_run, site, caller, run.id)


@router.get("/tasks/{task}/runs", tags=["runs"])
def get_runs(site: SiteHere, caller: Caller, task: TaskName) -> list[outputs.RunOut]:
    """The runs of one's own team, newest first."""
    caller.require("read")
    with site.database.reading() as session:
        row = runs.get_task(session, task)
        team = caller.user.team_id
        found = runs.team_runs(session, team, row) if team is not None else []
        views = runs.view_runs(session, found, site.clock())
    return [outputs.RunOut(**outputs.run_values(view, site.settings.url)) for view in views]


@router.get("/runs/{run}", tags=["runs"])
def get_run(site: SiteHere, caller: Caller, run: Number) -> outputs.PlacedRunOut:
    """One of one's own runs, with its place and its worst samples as far as may be told."""
    caller.require("read")
    return _placed_run(site, caller, run)


def _placed_run(site: Site, caller: Actor, run_id: int) -> outputs.PlacedRunOut:
    with site.database.reading() as session:
        if caller.is_organiser or caller.user.team_id is not None:
            values = run_values(site, session, caller, run_id)
        else:
            raise NotFoundError("there is no such run.")
    rank, out_of = values["place"] or (None, None)
    return outputs.PlacedRunOut(
        **outputs.run_values(values["view"], site.settings.url),
        rank=rank,
        out_of=out_of,
        marks=values["marks"],
        worst=values["worst"],
    )


@router.get("/runs/{run}/file", tags=["runs"], response_class=Response)
def get_run_file(site: SiteHere, caller: Caller, run: Number) -> Response:
    """The bytes of one of one's own runs."""
    caller.require("read")
    return file_response(site, caller, run)


@router.patch("/runs/{run}", tags=["runs"])
def describe(site: SiteHere, caller: Caller, run: Number, form: Describing) -> outputs.RunOut:
    """Change description and tags."""
    caller.require("submit")
    with site.database.writing() as session:
        runs.describe(session, caller, run, form.description, form.tags, site.clock())
    return _placed_run(site, caller, run)


@router.post("/runs/{run}/withdraw", tags=["runs"])
def withdraw(site: SiteHere, caller: Caller, run: Number) -> outputs.RunOut:
    """Take a run off the board; the team's next one takes its place."""
    caller.require("submit")
    with site.database.writing() as session:
        runs.withdraw(session, caller, run, site.clock())
    return _placed_run(site, caller, run)


@router.post("/runs/{run}/choose", tags=["runs"])
def choose(site: SiteHere, caller: Caller, run: Number) -> outputs.RunOut:
    """Let a run count, where the phase leaves the choice to the team."""
    caller.require("submit")
    with site.database.writing() as session:
        runs.choose_run(session, caller, run, site.clock())
    return _placed_run(site, caller, run)


@router.get("/tasks/{task}/boards/{phase}", tags=["boards"])
def get_board(site: SiteHere, caller: AnyCaller, task: TaskName, phase: Number) -> outputs.BoardOut:
    """A board, if its phase is published."""
    with site.database.reading() as session:
        found = phases.get_phase(session, phase)
        board = boards.make_board(site, session, task, found, caller, site.clock())
    return outputs.board_out(board)


@router.get("/tasks/{task}/boards/{phase}/csv", tags=["boards"], response_class=Response)
def get_board_csv(site: SiteHere, caller: AnyCaller, task: TaskName, phase: Number) -> Response:
    """A board as CSV."""
    with site.database.reading() as session:
        found = phases.get_phase(session, phase)
        board = boards.make_board(site, session, task, found, caller, site.clock())
    return Response(rows_to_csv(board_rows(board)), media_type="text/csv; charset=utf-8")


@router.get("/tasks/{task}/boards/{phase}/figures/{kind}", tags=["boards"], response_class=Response)
def get_figure(
    site: SiteHere,
    caller: AnyCaller,
    task: TaskName,
    phase: Number,
    kind: str,
    run: Annotated[list[int] | None, Query(max_length=50)] = None,
    label: int = 0,
) -> Response:
    """A figure of a board as SVG: ranks, shift or diagonal."""
    with site.database.reading() as session:
        found = phases.get_phase(session, phase)
        board = boards.make_board(site, session, task, found, caller, site.clock())
        drawing = drawings.draw(site, session, board, kind, tuple(run or ()), label)
    return Response(drawing.svg, media_type="image/svg+xml")


@router.get("/tasks/{task}/reference", tags=["boards"])
def get_reference(site: SiteHere, task: TaskName) -> list[dict[str, Any]]:
    """Published results that the organisers set beside the board."""
    with site.database.reading() as session:
        return boards.reference_rows(runs.get_task(session, task))
