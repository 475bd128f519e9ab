"""Pages of a team's runs: send, look at, describe, choose, withdraw, download."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from headcount.site import runs, uploading
from headcount.site.answers import file_response, run_values
from headcount.site.errors import SiteError
from headcount.site.forms import Describing, parse
from headcount.site.models import Run
from headcount.site.pages.public import task_values
from headcount.site.web import Visitor, VisitorHere, go, render

router = APIRouter(include_in_schema=False)
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


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
        shown: dict[str, Any] = {"error": error, "values": fields}

        def work() -> Response:
            values = task_values(site, actor, task) | shown
            return render(visitor, "task.html", shown["error"].status, **values)

        return await run_in_threadpool(work)
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


@router.get("/runs/{run}/file")
def run_file(visitor: VisitorHere, run: Number) -> Response:
    """The bytes that were uploaded."""
    return file_response(visitor.site, visitor.require(), run)


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
