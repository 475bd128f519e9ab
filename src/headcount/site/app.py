"""The application: routes, guards, and what happens to errors."""

from __future__ import annotations

import errno
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles

from headcount import __version__
from headcount.site import metrics, secrecy
from headcount.site.api import account as account_api
from headcount.site.api import organiser as organiser_api
from headcount.site.api import participant as participant_api
from headcount.site.context import Site
from headcount.site.database import is_full
from headcount.site.errors import FaultyError, FullError, NotLoggedInError, SiteError
from headcount.site.forms import fault_text
from headcount.site.guard import Guard
from headcount.site.limits import BodyLimit
from headcount.site.pages import account, organiser, participant, public
from headcount.site.web import HERE, Visitor, VisitorHere, get_visitor, go, render

log = logging.getLogger("headcount.site")


def create_app(site: Site) -> FastAPI:
    """The application that serves a site."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:  # noqa: ARG001
        yield
        site.close()

    app = FastAPI(
        title="Headcount lab",
        version=__version__,
        description="The API of a quantification lab; tokens go into the Authorization header.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.site = site
    for room in (account_api, participant_api, organiser_api):
        app.include_router(room.router)
    for page in (account, participant, organiser, public):
        app.include_router(page.router)
    _add_operations(app)
    app.mount("/static", CachedStatic(directory=HERE / "static"), name="static")
    _add_handlers(app)
    app.add_middleware(Compress)
    app.add_middleware(
        BodyLimit, large=site.settings.upload_bytes, seconds=site.settings.body_seconds
    )
    app.add_middleware(Guard, secure=site.settings.secure)
    return app


def _add_handlers(app: FastAPI) -> None:
    handlers: dict[Any, Any] = {
        SiteError: _site_error,
        HTTPException: _http_error,
        RequestValidationError: _validation_error,
        DBAPIError: _database_error,
        OSError: _system_error,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


class Compress:
    """ASGI middleware that compresses what holds no secret: static files and figures.

    A compressed page would tell by its length whether a guess at its form's token is right.
    """

    def __init__(self, app: Any):
        self.app = app
        self.squeezed = GZipMiddleware(app, minimum_size=1000)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Hand the request on, through the compressor or past it."""
        path = scope.get("path", "")
        plain = not (path.startswith("/static/") or path.endswith(".svg"))
        await (self.app if plain else self.squeezed)(scope, receive, send)


class CachedStatic(StaticFiles):
    """Static files, whose addresses change with their content."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """A file that a browser may keep."""
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response


def _add_operations(app: FastAPI) -> None:
    @app.get("/healthz", include_in_schema=False)
    def healthz(request: Request) -> Response:
        """Whether the site and its database answer."""
        with request.app.state.site.database.reading() as session:
            session.execute(text("SELECT 1 FROM lab"))
        return JSONResponse({"status": "ok", "version": __version__})

    @app.get("/metrics", include_in_schema=False)
    def show_metrics(request: Request) -> Response:
        """Numbers for Prometheus: from this machine, or with the token of the settings."""
        site: Site = request.app.state.site
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        token = site.settings.metrics_token
        local = request.client is not None and request.client.host in ("127.0.0.1", "::1")
        near = local and "x-forwarded-for" not in request.headers
        if not near and not (token and secrecy.same_text(given, token)):
            raise HTTPException(404, "there is no such page.")
        return PlainTextResponse(metrics.exposition(), media_type="text/plain; version=0.0.4")

    @app.get("/api", include_in_schema=False)
    def api_page(visitor: VisitorHere) -> Response:
        """The API in words, from its OpenAPI description."""
        return render(visitor, "api.html", schema=app.openapi(), url=visitor.site.settings.url)


def _site_error(request: Request, error: SiteError) -> Response:
    headers = {"retry-after": str(error.wait)} if error.wait else {}
    if request.url.path.startswith("/api/"):
        body = {"code": error.code, "message": error.message, "faults": error.faults}
        if isinstance(error, NotLoggedInError):
            headers["www-authenticate"] = "Bearer"
        return JSONResponse({"error": body}, status_code=error.status, headers=headers)
    visitor = _visitor(request)
    if isinstance(error, NotLoggedInError) and request.method == "GET":
        return go(f"/login?next={request.url.path}")
    response = render(visitor, "error.html", error.status, error=error)
    response.headers.update(headers)
    return response


def _visitor(request: Request) -> Visitor:
    return get_visitor(request, request.app.state.site)


def _http_error(request: Request, error: HTTPException) -> Response:
    known = SiteError(str(error.detail))
    known.status = error.status_code
    codes = {404: "not_found", 405: "method_not_allowed", 408: "too_slow", 413: "too_large"}
    known.code = codes.get(error.status_code, "bad_request")
    response = _site_error(request, known)
    response.headers.update(error.headers or {})
    if error.status_code in (408, 413):
        response.headers["connection"] = "close"  # the rest of the body is not wanted
    return response


def _validation_error(request: Request, error: RequestValidationError) -> Response:
    faults = [fault_text(each) for each in error.errors()]
    return _site_error(request, FaultyError("please mend this and send it again.", faults))


def _database_error(request: Request, error: DBAPIError) -> Response:
    if not is_full(error):
        raise error
    return _full(request)


def _system_error(request: Request, error: OSError) -> Response:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        raise error
    return _full(request)


def _full(request: Request) -> Response:
    log.error("the disk is full")
    return _site_error(
        request, FullError("the server's disk is full: nothing was kept. Tell the organisers.")
    )
