"""The API of organisers, under ``/api/v1/organise``."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from headcount.site import accounts, organise, phases, teams, uploading
from headcount.site.accounts import Actor
from headcount.site.answers import export_response
from headcount.site.api import outputs
from headcount.site.api.account import ERRORS, Number
from headcount.site.api.participant import UPLOAD, TaskName
from headcount.site.audit import read_log
from headcount.site.errors import FaultyError
from headcount.site.forms import (
    InvitationRequest,
    LabRules,
    PhaseRules,
    Reference,
    State,
    Text,
    parse,
)
from headcount.site.scoring import correct_gold
from headcount.site.web import Caller, SiteHere


def get_organiser(caller: Caller) -> Actor:
    """An organiser with a token that may organise."""
    caller.require_organiser()
    return caller


Organiser = Annotated[Actor, Depends(get_organiser)]
router = APIRouter(prefix="/api/v1/organise", responses=ERRORS, tags=["organise"])


@router.put("/lab")
def change_lab(site: SiteHere, by: Organiser, form: LabRules) -> outputs.LabOut:
    """Set the rules of the lab."""
    with site.database.writing() as session:
        lab = organise.change_lab(session, by.user, form.model_dump(), site.clock())
    return outputs.LabOut.model_validate(lab)


@router.post("/phases", status_code=201)
def add_phase(site: SiteHere, by: Organiser, form: PhaseRules) -> outputs.PhaseOut:
    """Add a phase."""
    with site.database.writing() as session:
        phase = organise.save_phase(session, by.user, form.model_dump(), site.clock(), None)
    return outputs.phase_out(phase, site.clock())


@router.put("/phases/{phase}")
def change_phase(
    site: SiteHere, by: Organiser, phase: Number, form: PhaseRules
) -> outputs.PhaseOut:
    """Change a phase."""
    with site.database.writing() as session:
        found = organise.save_phase(session, by.user, form.model_dump(), site.clock(), phase)
    return outputs.phase_out(found, site.clock())


@router.delete("/phases/{phase}", status_code=204)
def delete_phase(site: SiteHere, by: Organiser, phase: Number) -> None:
    """Delete a phase without runs."""
    with site.database.writing() as session:
        organise.delete_phase(session, by.user, phase, site.clock())


@router.post("/phases/{phase}/freeze")
def freeze(site: SiteHere, by: Organiser, phase: Number) -> outputs.PhaseOut:
    """Stop a phase."""
    with site.database.writing() as session:
        found = organise.freeze(session, by.user, phase, site.clock())
    return outputs.phase_out(found, site.clock())


@router.post("/phases/{phase}/thaw")
def thaw(site: SiteHere, by: Organiser, phase: Number) -> outputs.PhaseOut:
    """Take a freeze back."""
    with site.database.writing() as session:
        found = organise.thaw(session, by.user, phase, site.clock())
    return outputs.phase_out(found, site.clock())


@router.post("/phases/{phase}/publish")
def publish(site: SiteHere, by: Organiser, phase: Number) -> outputs.PhaseOut:
    """Publish the scores of a phase, and freeze it."""
    with site.database.writing() as session:
        found = organise.publish(session, by.user, phase, site.clock())
    return outputs.phase_out(found, site.clock())


@router.get("/teams")
def get_teams(site: SiteHere, by: Organiser) -> list[outputs.TeamOut]:  # noqa: ARG001
    """All teams."""
    with site.database.reading() as session:
        found = teams.list_teams(session)
    return [outputs.TeamOut.model_validate(team) for team in found]


@router.put("/teams/{team}/state")
def change_team(site: SiteHere, by: Organiser, team: Number, form: State) -> outputs.TeamOut:
    """Approve, remove or bring back a team."""
    with site.database.writing() as session:
        found = teams.set_team_state(session, by.user, team, form.state, site.clock())
    return outputs.TeamOut.model_validate(found)


@router.get("/users")
def get_users(site: SiteHere, by: Organiser) -> list[outputs.UserOut]:  # noqa: ARG001
    """All users."""
    with site.database.reading() as session:
        found = teams.list_users(session)
    return [outputs.UserOut.model_validate(user) for user in found]


@router.put("/users/{user}/state")
def change_user(site: SiteHere, by: Organiser, user: Number, form: State) -> outputs.UserOut:
    """Approve, remove or bring back a user."""
    with site.database.writing() as session:
        found = teams.set_user_state(session, by.user, user, form.state, site.clock())
    return outputs.UserOut.model_validate(found)


@router.post("/invitations", status_code=201)
def invite(site: SiteHere, by: Organiser, form: InvitationRequest) -> outputs.CodeOut:
    """An invitation."""
    with site.database.writing() as session:
        code = accounts.invite(session, site.clock(), by=by.user, **form.model_dump())
    return outputs.CodeOut(code=code)


@router.post("/announcements", status_code=201)
def announce(site: SiteHere, by: Organiser, form: Text) -> outputs.AnnouncementOut:
    """Tell everyone something."""
    with site.database.writing() as session:
        found = organise.announce(session, by.user, form.text, site.clock())
    return outputs.AnnouncementOut.model_validate(found)


@router.delete("/announcements/{announcement}", status_code=204)
def delete_announcement(site: SiteHere, by: Organiser, announcement: Number) -> None:
    """Take an announcement back."""
    with site.database.writing() as session:
        organise.delete_announcement(session, by.user, announcement, site.clock())


@router.put("/tasks/{task}/reference")
def set_reference(site: SiteHere, by: Organiser, task: TaskName, form: Reference) -> Reference:
    """Show published results of LeQua 2022 beside a board."""
    with site.database.writing() as session:
        organise.set_reference(session, by.user, task, form.reference, site.clock())
    return form


@router.post("/tasks/{task}/gold", status_code=201, openapi_extra=UPLOAD)
async def new_gold(
    site: SiteHere,
    by: Organiser,
    request: Request,
    task: TaskName,
    note: Annotated[str, Query(max_length=500)],
    split: str = "test",
) -> outputs.GoldOut:
    """A corrected gold as the body: all runs are scored again, then it takes its place."""
    content = uploading.refuse_large(site, await request.body())
    said = parse(Text, {"text": note}).text
    if split not in ("dev", "test"):
        raise FaultyError("there is no such split.", ["split: dev or test"])
    gold, count = await run_in_threadpool(correct_gold, site, by.user, task, split, content, said)
    return outputs.GoldOut(
        task=task,
        split=split,
        version=gold.version,
        sha256=gold.sha256,
        note=gold.note,
        runs_scored=count,
    )


@router.get("/export", response_class=Response)
def export(site: SiteHere, by: Organiser) -> Response:  # noqa: ARG001
    """Everything as a zip."""
    return export_response(site)


@router.get("/log")
def get_log(site: SiteHere, by: Organiser) -> list[outputs.DeedOut]:  # noqa: ARG001
    """The audit log, newest first."""
    with site.database.reading() as session:
        return [outputs.DeedOut.model_validate(deed) for deed in read_log(session)]


@router.get("/phases/{phase}")
def get_phase(site: SiteHere, by: Organiser, phase: Number) -> outputs.PhaseOut:  # noqa: ARG001
    """A phase."""
    with site.database.reading() as session:
        return outputs.phase_out(phases.get_phase(session, phase), site.clock())
