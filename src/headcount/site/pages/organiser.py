"""Pages of organisers: rules, phases, people, golds, announcements, export, log."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from headcount.site import accounts, organise, phases, teams, uploading
from headcount.site.answers import export_response
from headcount.site.audit import read_log
from headcount.site.boards import references
from headcount.site.errors import NotFoundError, SiteError
from headcount.site.forms import InvitationRequest, LabRules, State, Text, parse, parse_phase
from headcount.site.models import Gold, Lab, Phase, Task
from headcount.site.scoring import correct_gold
from headcount.site.web import Visitor, VisitorHere, go, render

router = APIRouter(include_in_schema=False, prefix="/organise")
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


@router.get("")
def overview(visitor: VisitorHere) -> Response:
    """Everything at a glance."""
    visitor.require_organiser()
    return _overview(visitor)


def _overview(
    visitor: Visitor, error: SiteError | None = None, code: str | None = None
) -> Response:
    site, at = visitor.site, visitor.site.clock()
    with site.database.reading() as session:
        lab = session.get_one(Lab, 1)
        listed = [
            (phase, phases.state_text(phase, at, lab.timezone), phases.is_published(phase, at))
            for phase in phases.list_phases(session)
        ]
        golds = session.execute(
            select(Gold, Task.name).join(Task, Task.id == Gold.task_id).order_by(Task.name, Gold.id)
        ).all()
        tasks = session.scalars(select(Task).order_by(Task.name)).all()
        waiting = [u for u in teams.list_users(session) if u.state == "pending"]
        waiting_teams = [t for t in teams.list_teams(session) if t.state == "pending"]
        news = organise.list_announcements(session)
    return render(
        visitor,
        "organise.html",
        error.status if error else 200,
        error=error,
        code=code,
        url=site.settings.url,
        phases=listed,
        golds=golds,
        tasks=tasks,
        references=references(),
        waiting=waiting,
        waiting_teams=waiting_teams,
        announcements=news,
    )


async def _do(visitor: Visitor, work: Any, where: str = "/organise") -> Response:
    """Run a deed in a thread and lead on; an error is shown on the overview."""

    def safely() -> Response:
        try:
            work()
        except SiteError as error:
            return _overview(visitor, error)
        return go(where)

    return await run_in_threadpool(safely)


@router.post("/lab")
async def change_lab(visitor: VisitorHere) -> Response:
    """Set rules of the lab."""
    actor, fields = visitor.require_organiser(), await visitor.fields()

    def work() -> None:
        given = parse(LabRules, fields).model_dump()
        with visitor.site.database.writing() as session:
            organise.change_lab(session, actor.user, given, visitor.site.clock())

    return await _do(visitor, work)


@router.get("/phases/new")
def new_phase(visitor: VisitorHere) -> Response:
    """The form of a new phase."""
    visitor.require_organiser()
    return render(visitor, "phase.html", phase=None, values={}, error=None)


@router.get("/phases/{phase}")
def phase_page(visitor: VisitorHere, phase: Number) -> Response:
    """The form of a phase."""
    visitor.require_organiser()
    with visitor.site.database.reading() as session:
        found = phases.get_phase(session, phase)
    return render(visitor, "phase.html", phase=found, values={}, error=None)


@router.post("/phases/new")
async def add_phase(visitor: VisitorHere) -> Response:
    """Add a phase."""
    return await _save_phase(visitor, None)


@router.post("/phases/{phase}")
async def change_phase(visitor: VisitorHere, phase: Number) -> Response:
    """Change a phase."""
    return await _save_phase(visitor, phase)


async def _save_phase(visitor: Visitor, phase_id: int | None) -> Response:
    actor, fields = visitor.require_organiser(), await visitor.fields()

    def work() -> Response:
        site, found = visitor.site, None
        try:
            with site.database.writing() as session:
                found = session.get(Phase, phase_id) if phase_id else None
                values = parse_phase(fields, session.get_one(Lab, 1).timezone)
                organise.save_phase(session, actor.user, values, site.clock(), phase_id)
        except NotFoundError:
            raise
        except SiteError as error:
            status = error.status
            return render(visitor, "phase.html", status, phase=found, values=fields, error=error)
        return go("/organise")

    return await run_in_threadpool(work)


@router.post("/phases/{phase}/{deed}")
async def phase_deed(visitor: VisitorHere, phase: Number, deed: str) -> Response:
    """Freeze, thaw, publish or delete a phase."""
    actor = visitor.require_organiser()
    await visitor.fields()
    deeds: dict[str, Any] = {
        "freeze": organise.freeze,
        "thaw": organise.thaw,
        "publish": organise.publish,
        "delete": organise.delete_phase,
    }
    if deed not in deeds:
        raise NotFoundError("there is no such thing to do.")

    def work() -> None:
        with visitor.site.database.writing() as session:
            deeds[deed](session, actor.user, phase, visitor.site.clock())

    return await _do(visitor, work)


@router.get("/people")
def people(visitor: VisitorHere) -> Response:
    """Teams and users."""
    visitor.require_organiser()
    with visitor.site.database.reading() as session:
        found, users = teams.list_teams(session), teams.list_users(session)
    names = {team.id: team.name for team in found}
    return render(visitor, "people.html", teams=found, users=users, names=names)


@router.post("/teams/{team}")
async def change_team(visitor: VisitorHere, team: Number) -> Response:
    """Approve, remove or bring back a team."""
    actor, fields = visitor.require_organiser(), await visitor.fields()

    def work() -> None:
        state = parse(State, fields).state
        with visitor.site.database.writing() as session:
            teams.set_team_state(session, actor.user, team, state, visitor.site.clock())

    return await _do(visitor, work, "/organise/people")


@router.post("/users/{user}")
async def change_user(visitor: VisitorHere, user: Number) -> Response:
    """Approve, remove or bring back a user."""
    actor, fields = visitor.require_organiser(), await visitor.fields()

    def work() -> None:
        state = parse(State, fields).state
        with visitor.site.database.writing() as session:
            teams.set_user_state(session, actor.user, user, state, visitor.site.clock())

    return await _do(visitor, work, "/organise/people")


@router.post("/invitations")
async def invite(visitor: VisitorHere) -> Response:
    """An invitation, whose code is shown once."""
    actor, fields = visitor.require_organiser(), await visitor.fields()

    def work() -> Response:
        try:
            given = parse(InvitationRequest, fields).model_dump()
            with visitor.site.database.writing() as session:
                code = accounts.invite(session, visitor.site.clock(), by=actor.user, **given)
        except SiteError as error:
            return _overview(visitor, error)
        return _overview(visitor, code=code)

    return await run_in_threadpool(work)


@router.post("/announcements")
async def announce(visitor: VisitorHere) -> Response:
    """Tell everyone something."""
    actor, fields = visitor.require_organiser(), await visitor.fields()

    def work() -> None:
        text = parse(Text, fields).text
        with visitor.site.database.writing() as session:
            organise.announce(session, actor.user, text, visitor.site.clock())

    return await _do(visitor, work)


@router.post("/announcements/{announcement}/delete")
async def delete_announcement(visitor: VisitorHere, announcement: Number) -> Response:
    """Take an announcement back."""
    actor = visitor.require_organiser()
    await visitor.fields()

    def work() -> None:
        with visitor.site.database.writing() as session:
            organise.delete_announcement(session, actor.user, announcement, visitor.site.clock())

    return await _do(visitor, work)


@router.post("/tasks/{task}/reference")
async def set_reference(visitor: VisitorHere, task: str) -> Response:
    """Published results beside a board."""
    actor, fields = visitor.require_organiser(), await visitor.fields()

    def work() -> None:
        chosen = fields.get("reference") or None
        with visitor.site.database.writing() as session:
            organise.set_reference(session, actor.user, task, chosen, visitor.site.clock())

    return await _do(visitor, work)


@router.post("/tasks/{task}/gold")
async def new_gold(visitor: VisitorHere, task: str) -> Response:
    """A corrected gold: all runs are scored again."""
    actor, form = visitor.require_organiser(), await visitor.form()
    note, split = str(form.get("note", "")), str(form.get("split", "test"))
    site = visitor.site
    try:
        content, _ = await uploading.read_file(site, form.get("file"))
    except SiteError as error:
        return await run_in_threadpool(_overview, visitor, error)

    def work() -> None:
        correct_gold(site, actor.user, task, split, content, parse(Text, {"text": note}).text[:500])

    return await _do(visitor, work)


@router.get("/export.zip")
def export(visitor: VisitorHere) -> Response:
    """Everything as one download."""
    visitor.require_organiser()
    return export_response(visitor.site)


@router.get("/log")
def audit_log(visitor: VisitorHere) -> Response:
    """The audit log."""
    visitor.require_organiser()
    with visitor.site.database.reading() as session:
        deeds = read_log(session)
    return render(visitor, "log.html", deeds=deeds)
