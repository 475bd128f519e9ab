"""Read an upload from a request: a form with a file, or the file as the body itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request

from headcount.site import limits, metrics, runs
from headcount.site.accounts import Actor
from headcount.site.context import Site
from headcount.site.errors import FaultyError, SiteError, TooLargeError
from headcount.site.forms import UploadFields, parse
from headcount.site.models import Run
from headcount.site.texts import one_line


async def read_file(site: Site, found: Any) -> tuple[bytes, str]:
    """Content and name of the file of a form."""
    if not isinstance(found, UploadFile) or not found.filename:
        raise FaultyError("choose a file.", ["file: there is none."])
    content = await found.read()
    await found.close()
    return refuse_large(site, content), clean_file_name(found.filename)


def refuse_large(site: Site, content: bytes) -> bytes:
    """The content, unless there is too much of it."""
    if len(content) > site.settings.upload_bytes:
        raise TooLargeError(
            f"the file has {len(content):,} bytes, and at most {site.settings.upload_bytes:,} "
            "are taken."
        )
    return content


async def read_body(site: Site, request: Request) -> tuple[bytes, str, dict[str, str]]:
    """Content, file name and fields of an upload by API."""
    fields = dict(parse_qsl(request.url.query, keep_blank_values=True))
    key = request.headers.get("idempotency-key")
    if key is not None:
        fields["key"] = key
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        form = await request.form(max_files=1, max_fields=20, max_part_size=100_000)
        content, name = await read_file(site, form.get("file"))
        fields |= {k: v for k, v in form.items() if isinstance(v, str)}
        return content, name, fields
    content = refuse_large(site, await request.body())
    return content, clean_file_name(fields.pop("file_name", "run.csv")), fields


def clean_file_name(name: str) -> str:
    """The last part of a file's name, if it can be shown; it is only ever shown."""
    last = name.replace("\\", "/").rpartition("/")[2]
    try:
        return one_line(last)[:100] or "run.csv"
    except ValueError:
        return "run.csv"


async def take(
    site: Site,
    actor: Actor,
    task: str,
    content: bytes,
    file_name: str,
    fields: Mapping[str, Any],
) -> Run:
    """Submit what was read, in a thread, under the rate limit of the team."""
    return await run_in_threadpool(_take, site, actor, task, content, file_name, fields)


def _take(
    site: Site, actor: Actor, task: str, content: bytes, file_name: str, fields: Mapping[str, Any]
) -> Run:
    given = parse(UploadFields, {k: v for k, v in fields.items() if v != ""})
    upload = runs.Upload(
        content=content,
        file_name=file_name,
        description=given.description,
        tags=given.tags,
        phase_id=given.phase,
        client_key=given.key,
        baseline=given.baseline,
    )
    if not actor.is_organiser:
        who = f"team:{actor.user.team_id}" if actor.user.team_id else f"user:{actor.user.id}"
        limits.hit(site.database, f"upload:{who}", site.settings.uploads_per_minute, site.clock())
    try:
        run = runs.submit(site, actor, task, upload)
    except SiteError as error:
        metrics.uploads.labels(error.code).inc()
        raise
    metrics.uploads.labels("scored").inc()
    return run
