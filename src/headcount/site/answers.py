"""What pages and API answer alike: log-in, files, a run with its place, the export."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy.orm import Session
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from headcount.site import accounts, boards, limits, phases, runs, secrecy
from headcount.site.accounts import Actor
from headcount.site.context import Site
from headcount.site.errors import NotFoundError, NotLoggedInError
from headcount.site.export import write_export
from headcount.site.golds import current_gold
from headcount.site.lab import Archive, LabTask
from headcount.site.models import User
from headcount.site.runs import RunView
from headcount.site.scoring import run_content

WORST = 10  # samples that a run's page names


def check_credentials(site: Site, name: str, password: str, address: str) -> User:
    """The user with this name and password; tries are limited by name and by address."""
    at, limit = site.clock(), site.settings.logins_per_minute
    limits.hit(site.database, f"login:{secrecy.hash_secret(name.casefold())}", limit, at)
    limits.hit(site.database, f"login:{address}", 3 * limit, at)
    with site.database.reading() as session:
        user = accounts.find_user(session, name)
    if not secrecy.check_password(user.password if user else None, password) or user is None:
        raise NotLoggedInError("the name or the password is wrong.")
    return user


def open_archives(site: Site, lab_task: LabTask, actor: Actor | None) -> list[Archive]:
    """Archives that may be downloaded: the test samples only once a phase on them has opened."""
    at = site.clock()
    with site.database.reading() as session:
        started = {p.split for p in phases.list_phases(session) if p.opens_at <= at}
    organiser = actor is not None and actor.is_organiser
    return [a for a in lab_task.archives if a.part != "test" or organiser or "test" in started]


def archive_response(site: Site, actor: Actor | None, task: str, name: str) -> Response:
    """An archive by its name among those that are open; a path is never made from a request."""
    for archive in open_archives(site, site.task(task), actor):
        if archive.name == name:
            headers = {"x-checksum-sha256": archive.sha256, "cache-control": "no-cache"}
            return FileResponse(
                archive.path, filename=name, media_type="application/zip", headers=headers
            )
    raise NotFoundError("there is no such file, or its phase has not opened.")


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


def file_response(site: Site, actor: Actor, run_id: int) -> Response:
    """The bytes of a run of one's own."""
    with site.database.reading() as session:
        found = runs.own_run(session, actor, run_id)
        view = runs.view_run(session, found, site.clock())
        content = run_content(session, found)
    headers = {"content-disposition": f'attachment; filename="{view.download_name}"'}
    return Response(content, media_type="application/octet-stream", headers=headers)


def export_response(site: Site) -> Response:
    """The export as a file that is deleted once it was sent."""
    folder = site.settings.data / "tmp"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".zip", delete=False) as file:
        path = Path(file.name)
    try:
        with site.database.reading() as session:
            write_export(session, path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return FileResponse(
        path,
        filename="export.zip",
        media_type="application/zip",
        background=BackgroundTask(path.unlink, missing_ok=True),
    )
