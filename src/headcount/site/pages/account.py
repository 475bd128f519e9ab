"""Pages of a person: registration, log-in, new password, team, tokens."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from headcount.site import accounts, limits, teams
from headcount.site.answers import check_credentials
from headcount.site.errors import SiteError
from headcount.site.forms import (
    Code,
    Credentials,
    NewPassword,
    Registration,
    TeamName,
    TokenRequest,
    parse,
)
from headcount.site.models import User
from headcount.site.web import (
    SESSION,
    VISITOR,
    Visitor,
    VisitorHere,
    go,
    local_path,
    render,
    set_cookie,
)

router = APIRouter(include_in_schema=False)
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


def address_of(visitor: Visitor) -> str:
    """Where a request comes from."""
    return visitor.request.client.host if visitor.request.client else "unknown"


@router.get("/login")
def login_page(visitor: VisitorHere, next: str = "/") -> Response:
    """The log-in."""
    return render(visitor, "login.html", next=local_path(next), error=None, name="")


@router.post("/login")
async def login(visitor: VisitorHere) -> Response:
    """Log in; the cookie is always a new one."""
    fields = await visitor.fields()
    where = local_path(fields.pop("next", "/"))

    def work() -> Response:
        try:
            given = parse(Credentials, fields)
            user = check_credentials(visitor.site, given.name, given.password, address_of(visitor))
        except SiteError as error:
            name = fields.get("name", "")
            return render(visitor, "login.html", error.status, next=where, error=error, name=name)
        return enter(visitor, user, where)

    return await run_in_threadpool(work)


def enter(visitor: Visitor, user: User, where: str) -> Response:
    """Start a session and lead on."""
    site = visitor.site
    with site.database.writing() as session:
        if SESSION in visitor.request.cookies:
            accounts.log_out(session, visitor.request.cookies[SESSION])
        secret = accounts.log_in(session, user, site.clock(), site.settings.session_hours)
    response = go(where)
    set_cookie(response, site, SESSION, secret, int(site.settings.session_hours * 3600))
    response.delete_cookie(VISITOR)
    return response


@router.post("/logout")
async def logout(visitor: VisitorHere) -> Response:
    """Log out."""
    await visitor.fields()

    def work() -> Response:
        with visitor.site.database.writing() as session:
            accounts.log_out(session, visitor.cookie)
        response = go("/")
        response.delete_cookie(SESSION)
        return response

    return await run_in_threadpool(work)


@router.get("/register")
def register_page(visitor: VisitorHere, code: str = "") -> Response:
    """Registration."""
    return render(visitor, "register.html", error=None, values={"invitation": code})


@router.post("/register")
async def register(visitor: VisitorHere) -> Response:
    """Register, and log in."""
    fields = await visitor.fields()

    def work() -> Response:
        site = visitor.site
        try:
            limit = site.settings.logins_per_minute
            limits.hit(site.database, f"register:{address_of(visitor)}", limit, site.clock())
            given = parse(Registration, fields)
            with site.database.writing() as session:
                user = accounts.register(session, site.clock(), **given.model_dump())
        except SiteError as error:
            return render(visitor, "register.html", error.status, error=error, values=fields)
        return enter(visitor, user, "/organise" if user.role == "organiser" else "/team")

    return await run_in_threadpool(work)


@router.get("/reset")
def reset_page(visitor: VisitorHere, code: str = "") -> Response:
    """A new password."""
    return render(visitor, "reset.html", error=None, code=code)


@router.post("/reset")
async def reset(visitor: VisitorHere) -> Response:
    """Set a new password by a code."""
    fields = await visitor.fields()

    def work() -> Response:
        site = visitor.site
        try:
            limit = site.settings.logins_per_minute
            limits.hit(site.database, f"reset:{address_of(visitor)}", limit, site.clock())
            given = parse(NewPassword, fields)
            with site.database.writing() as session:
                user = accounts.reset_password(session, site.clock(), **given.model_dump())
        except SiteError as error:
            code = fields.get("code", "")
            return render(visitor, "reset.html", error.status, error=error, code=code)
        return enter(visitor, user, "/")

    return await run_in_threadpool(work)


@router.get("/team")
def team_page(visitor: VisitorHere) -> Response:
    """The visitor's team, or how to get one."""
    visitor.require()
    return _team(visitor)


def _team(visitor: Visitor, error: SiteError | None = None, code: str | None = None) -> Response:
    actor = visitor.require()
    with visitor.site.database.reading() as session:
        user = session.get_one(User, actor.user.id)
        team = teams.own_team(session, user) if user.team_id else None
        people = teams.members(session, team) if team else []
    values: dict[str, Any] = {"team": team, "people": people, "error": error, "code": code}
    return render(visitor, "team.html", error.status if error else 200, **values)


@router.post("/team")
async def create_team(visitor: VisitorHere) -> Response:
    """Found a team."""
    actor, fields = visitor.require(), await visitor.fields()

    def work() -> Response:
        try:
            given = parse(TeamName, fields)
            with visitor.site.database.writing() as session:
                user = session.get_one(User, actor.user.id, with_for_update=True)
                teams.create_team(session, user, given.name, visitor.site.clock())
        except SiteError as error:
            return _team(visitor, error)
        return go("/team")

    return await run_in_threadpool(work)


@router.post("/team/join")
async def join_team(visitor: VisitorHere) -> Response:
    """Join a team."""
    actor, fields = visitor.require(), await visitor.fields()

    def work() -> Response:
        site = visitor.site
        try:
            limit = site.settings.logins_per_minute
            limits.hit(site.database, f"join:{actor.user.id}", limit, site.clock())
            given = parse(Code, fields)
            with site.database.writing() as session:
                user = session.get_one(User, actor.user.id, with_for_update=True)
                teams.join_team(session, user, given.code, site.clock())
        except SiteError as error:
            return _team(visitor, error)
        return go("/team")

    return await run_in_threadpool(work)


@router.post("/team/code")
async def join_code(visitor: VisitorHere) -> Response:
    """A code for others to join, shown once."""
    actor = visitor.require()
    await visitor.fields()

    def work() -> Response:
        with visitor.site.database.writing() as session:
            user = session.get_one(User, actor.user.id)
            code = teams.make_join_code(session, user, visitor.site.clock())
        return _team(visitor, code=code)

    return await run_in_threadpool(work)


@router.get("/tokens")
def tokens_page(visitor: VisitorHere) -> Response:
    """The visitor's tokens."""
    return _tokens(visitor)


def _tokens(
    visitor: Visitor, secret: str | None = None, error: SiteError | None = None
) -> Response:
    actor = visitor.require()
    with visitor.site.database.reading() as session:
        found = accounts.list_tokens(session, actor.user, visitor.site.clock())
    status = error.status if error else 200
    return render(visitor, "tokens.html", status, tokens=found, secret=secret, error=error)


@router.post("/tokens")
async def make_token(visitor: VisitorHere) -> Response:
    """A new token, shown once."""
    actor, form = visitor.require(), await visitor.form()
    raw: dict[str, Any] = {k: form.get(k) for k in ("name", "days") if form.get(k)}
    raw["scopes"] = form.getlist("scopes")

    def work() -> Response:
        try:
            given = parse(TokenRequest, raw)
            with visitor.site.database.writing() as session:
                at = visitor.site.clock()
                _, secret = accounts.make_token(session, actor, at, **given.model_dump())
        except SiteError as error:
            return _tokens(visitor, error=error)
        return _tokens(visitor, secret)

    return await run_in_threadpool(work)


@router.post("/tokens/{token}/revoke")
async def revoke_token(visitor: VisitorHere, token: Number) -> Response:
    """End a token."""
    actor = visitor.require()
    await visitor.fields()

    def work() -> Response:
        with visitor.site.database.writing() as session:
            accounts.revoke_token(session, actor.user, token, visitor.site.clock())
        return go("/tokens")

    return await run_in_threadpool(work)
