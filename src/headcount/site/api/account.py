"""The API of a person: register, tokens, team."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request

from headcount.site import accounts, limits, teams
from headcount.site.accounts import Actor
from headcount.site.answers import check_credentials
from headcount.site.api import outputs
from headcount.site.context import Site
from headcount.site.forms import Code, Registration, TeamName, TokenByPassword, TokenRequest
from headcount.site.models import User
from headcount.site.web import Caller, SiteHere

ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": outputs.ErrorOut}
    for code in (400, 401, 403, 404, 405, 408, 409, 413, 422, 429, 507)
}
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
router = APIRouter(prefix="/api/v1", responses=ERRORS)


def _address(request: Request) -> str:
    return request.client.host if request.client else "unknown"


@router.post("/register", status_code=201, tags=["account"])
def register(site: SiteHere, request: Request, form: Registration) -> outputs.UserOut:
    """Register, as the lab's rules allow."""
    limit = site.settings.logins_per_minute
    limits.hit(site.database, f"register:{_address(request)}", limit, site.clock())
    with site.database.writing() as session:
        user = accounts.register(session, site.clock(), **form.model_dump())
    return outputs.UserOut.model_validate(user)


@router.post("/tokens/by-password", status_code=201, tags=["account"])
def token_by_password(
    site: SiteHere, request: Request, form: TokenByPassword
) -> outputs.NewTokenOut:
    """A token for a name and a password."""
    user = check_credentials(site, form.name, form.password, _address(request))
    actor = Actor(user, frozenset(accounts.SCOPES))
    return _make_token(site, actor, form.label, list(form.scopes), form.days)


@router.post("/tokens", status_code=201, tags=["account"])
def make_token(site: SiteHere, caller: Caller, form: TokenRequest) -> outputs.NewTokenOut:
    """Another token, with no more scopes than this one has."""
    return _make_token(site, caller, form.name, list(form.scopes), form.days)


def _make_token(
    site: Site, actor: Actor, name: str, scopes: list[str], days: int
) -> outputs.NewTokenOut:
    with site.database.writing() as session:
        token, secret = accounts.make_token(
            session, actor, site.clock(), name=name, scopes=scopes, days=days
        )
    shown = outputs.TokenOut.model_validate(token)
    return outputs.NewTokenOut(**shown.model_dump(), token=secret)


@router.get("/tokens", tags=["account"])
def get_tokens(site: SiteHere, caller: Caller) -> list[outputs.TokenOut]:
    """One's own tokens."""
    caller.require("read")
    with site.database.reading() as session:
        found = accounts.list_tokens(session, caller.user, site.clock())
    return [outputs.TokenOut.model_validate(token) for token in found]


@router.delete("/tokens/{token}", status_code=204, tags=["account"])
def revoke_token(site: SiteHere, caller: Caller, token: Number) -> None:
    """End a token."""
    with site.database.writing() as session:
        accounts.revoke_token(session, caller.user, token, site.clock())


@router.get("/me", tags=["account"])
def get_me(site: SiteHere, caller: Caller) -> outputs.UserOut:  # noqa: ARG001
    """Whose token this is."""
    return outputs.UserOut.model_validate(caller.user)


@router.get("/team", tags=["team"])
def get_team(site: SiteHere, caller: Caller) -> outputs.OwnTeamOut:
    """One's own team."""
    caller.require("read")
    with site.database.reading() as session:
        team = teams.own_team(session, caller.user)
        names = [user.name for user in teams.members(session, team)]
    shown = outputs.TeamOut.model_validate(team)
    return outputs.OwnTeamOut(**shown.model_dump(), members=names)


@router.post("/team", status_code=201, tags=["team"])
def create_team(site: SiteHere, caller: Caller, form: TeamName) -> outputs.TeamOut:
    """Found a team."""
    caller.require("submit")
    with site.database.writing() as session:
        user = session.get_one(User, caller.user.id, with_for_update=True)
        team = teams.create_team(session, user, form.name, site.clock())
    return outputs.TeamOut.model_validate(team)


@router.post("/team/join", tags=["team"])
def join_team(site: SiteHere, caller: Caller, form: Code) -> outputs.TeamOut:
    """Join the team that gave the code."""
    caller.require("submit")
    limit = site.settings.logins_per_minute
    limits.hit(site.database, f"join:{caller.user.id}", limit, site.clock())
    with site.database.writing() as session:
        user = session.get_one(User, caller.user.id, with_for_update=True)
        team = teams.join_team(session, user, form.code, site.clock())
    return outputs.TeamOut.model_validate(team)


@router.post("/team/code", status_code=201, tags=["team"])
def make_join_code(site: SiteHere, caller: Caller) -> outputs.CodeOut:
    """A new code by which others join the team."""
    caller.require("submit")
    with site.database.writing() as session:
        user = session.get_one(User, caller.user.id)
        return outputs.CodeOut(code=teams.make_join_code(session, user, site.clock()))
