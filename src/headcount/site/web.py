"""Requests and answers: who visits, forms that only our pages can send, pages from templates."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.datastructures import FormData
from starlette.responses import HTMLResponse, RedirectResponse, Response

from headcount.site import secrecy
from headcount.site.accounts import Actor, by_cookie, by_token
from headcount.site.clock import local_text, spoken
from headcount.site.context import Site
from headcount.site.errors import ForbiddenError, NotLoggedInError
from headcount.site.models import Lab

SESSION, VISITOR = "headcount_session", "headcount_visitor"
HERE = Path(__file__).parent


def get_site(request: Request) -> Site:
    """The site that a request came to."""
    site: Site = request.app.state.site
    return site


SiteHere = Annotated[Site, Depends(get_site)]


@dataclass
class Visitor:
    """Who a page is for: perhaps nobody who is logged in."""

    request: Request
    site: Site
    actor: Actor | None
    cookie: str
    fresh: bool = False  # the cookie is new and must be set, if a form was shown

    @property
    def form_token(self) -> str:
        """What forms on the page bring back."""
        return secrecy.form_token(self.site.key, self.cookie)

    def require(self) -> Actor:
        """Whoever is logged in, or an error that leads to the log-in."""
        if self.actor is None:
            raise NotLoggedInError("please log in first.")
        return self.actor

    def require_organiser(self) -> Actor:
        """An organiser who is logged in."""
        actor = self.require()
        actor.require_organiser()
        return actor

    async def form(self) -> FormData:
        """The form of the request, once it is sure that a page of ours made it."""
        form = await self.request.form(max_files=1, max_fields=40, max_part_size=100_000)
        token = form.get("form_token")
        foreign = self.request.headers.get("sec-fetch-site", "same-origin") == "cross-site"
        valid = isinstance(token, str) and secrecy.same_text(token, self.form_token)
        if foreign or not valid or self.fresh:
            await form.close()
            raise ForbiddenError(
                "the form is too old or from elsewhere: go back, reload, send again."
            )
        return form

    async def fields(self) -> dict[str, str]:
        """Texts of the form, without its token."""
        form = await self.form()
        await form.close()
        return {k: v for k, v in form.items() if isinstance(v, str) and k != "form_token"}


def get_visitor(request: Request, site: SiteHere) -> Visitor:
    """The visitor of a page, by cookie."""
    cookie = request.cookies.get(SESSION)
    if cookie:
        with site.database.reading() as session:
            actor = by_cookie(session, cookie, site.clock())
        if actor is not None:
            return Visitor(request, site, actor, cookie)
    cookie = request.cookies.get(VISITOR)
    if cookie:
        return Visitor(request, site, None, cookie)
    return Visitor(request, site, None, secrecy.make_secret(), fresh=True)


VisitorHere = Annotated[Visitor, Depends(get_visitor)]


def get_token_actor(request: Request, site: SiteHere) -> Actor:
    """Who calls the API, by the token in the Authorization header; cookies do not count there."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise NotLoggedInError("send a token: Authorization: Bearer hct_...")
    with site.database.reading() as session:
        return by_token(session, secret.strip(), site.clock())


def get_optional_actor(request: Request, site: SiteHere) -> Actor | None:
    """Who calls the API, where nobody need be known; a bad token is an error still."""
    return get_token_actor(request, site) if "authorization" in request.headers else None


Caller = Annotated[Actor, Depends(get_token_actor)]
AnyCaller = Annotated[Actor | None, Depends(get_optional_actor)]


@lru_cache(maxsize=1)
def templates() -> Environment:
    """The templates; everything that is put into them is escaped."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["asset"] = asset
    return made


@lru_cache(maxsize=16)
def asset(name: str) -> str:
    """Address of a static file, which changes with its content so that it can be cached."""
    digest = hashlib.sha256((HERE / "static" / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?v={digest}"


def render(visitor: Visitor, template: str, status: int = 200, **values: Any) -> Response:
    """A page for a visitor."""
    site = visitor.site
    with site.database.reading() as session:
        lab = session.get_one(Lab, 1)
    text = (
        templates()
        .get_template(template)
        .render(
            lab=lab,
            visitor=visitor,
            actor=visitor.actor,
            organiser=visitor.actor is not None and visitor.actor.is_organiser,
            form_token=visitor.form_token,
            when=lambda moment: spoken(moment, lab.timezone),
            field_time=lambda moment: local_text(moment, lab.timezone),
            **values,
        )
    )
    response = HTMLResponse(text, status_code=status)
    if visitor.fresh and 'name="form_token"' in text:
        set_cookie(response, site, VISITOR, visitor.cookie, None)
    return response


def set_cookie(response: Response, site: Site, name: str, value: str, age: int | None) -> None:
    """Set a cookie that no script reads and no other site's form sends along."""
    response.set_cookie(
        name, value, max_age=age, httponly=True, samesite="lax", secure=site.settings.secure
    )


def go(path: str) -> Response:
    """Lead the browser on after a form."""
    return RedirectResponse(path, status_code=303)


def local_path(path: str) -> str:
    """The path if it is one of ours, else the start page: no leading others astray."""
    plain = path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if plain and path.isprintable() and "\\" not in path else "/"
