"""What the API answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from headcount.site import phases
from headcount.site.boards import Board
from headcount.site.export import board_rows
from headcount.site.models import Phase
from headcount.site.runs import RunView


class Error(BaseModel):
    """What went wrong."""

    code: str
    message: str
    faults: list[str] = []


class ErrorOut(BaseModel):
    """Every error has this shape."""

    error: Error


class Plain(BaseModel):
    """Base of answers that are read from a table's row."""

    model_config = ConfigDict(from_attributes=True)


class UserOut(Plain):
    """A user."""

    id: int
    name: str
    email: str | None
    role: str
    state: str
    team_id: int | None


class TeamOut(Plain):
    """A team."""

    id: int
    name: str
    kind: str
    state: str


class OwnTeamOut(TeamOut):
    """One's own team."""

    members: list[str]


class TokenOut(Plain):
    """A token, without its secret."""

    id: int
    name: str
    scopes: str
    created_at: datetime
    expires_at: datetime


class NewTokenOut(TokenOut):
    """A new token; its secret is shown this once."""

    token: str


class CodeOut(BaseModel):
    """A code that is shown this once."""

    code: str


class FileOut(Plain):
    """A file to download."""

    name: str
    part: str
    size: int
    sha256: str


class TaskOut(BaseModel):
    """A task."""

    name: str
    form: str
    ordinal: bool
    classes: list[str]
    sample_size: int
    samples: dict[str, int]
    measures: list[str]
    files: list[FileOut]


class PhaseOut(Plain):
    """A phase."""

    id: int
    name: str
    split: str
    opens_at: datetime
    closes_at: datetime | None
    hidden: bool
    publish_at: datetime | None
    published_at: datetime | None
    frozen_at: datetime | None
    details: bool
    quota_day: int | None
    quota_total: int | None
    counts: str
    is_open: bool = False
    is_published: bool = False


class ScoreOut(BaseModel):
    """Mean and deviation by one measure."""

    mean: float
    sd: float


class RunOut(BaseModel):
    """A run; without scores where the phase hides them."""

    id: int
    task: str
    phase: str
    phase_id: int
    team: str
    submitted_at: datetime
    file_name: str
    description: str
    tags: list[str]
    sha256: str
    size: int
    withdrawn: bool
    counts: bool | None
    scores: dict[str, ScoreOut] | None
    url: str


class PlacedRunOut(RunOut):
    """A run with its place on the board and its worst samples, as far as the phase allows."""

    rank: int | None = None
    out_of: int | None = None
    marks: dict[str, str] | None = None
    worst: list[tuple[int, float]] = []


class BoardOut(BaseModel):
    """A board."""

    task: str
    phase: str
    measures: list[str]
    gold_version: int
    gold_note: str
    rows: list[dict[str, Any]]


class AnnouncementOut(Plain):
    """An announcement."""

    id: int
    at: datetime
    text: str


class LabOut(Plain):
    """The lab and its rules."""

    title: str
    about: str
    registration: str
    approval: bool
    anonymous: bool
    timezone: str
    contact: str


class DeedOut(Plain):
    """A line of the audit log."""

    id: int
    at: datetime
    who: str
    action: str
    subject: str


class GoldOut(BaseModel):
    """A version of the gold; never its content."""

    task: str
    split: str
    version: int
    sha256: str
    note: str
    runs_scored: int


def phase_out(phase: Phase, at: datetime) -> PhaseOut:
    """A phase as the API shows it."""
    found = PhaseOut.model_validate(phase)
    found.is_open = phases.is_open(phase, at)
    found.is_published = phases.is_published(phase, at)
    return found


def run_values(view: RunView, url: str) -> dict[str, Any]:
    """A run as the API shows it."""
    run = view.run
    scores = {m: ScoreOut(mean=mean, sd=sd) for m, (mean, sd) in view.scores.items()}
    return {
        "id": run.id,
        "task": view.task,
        "phase": view.phase.name,
        "phase_id": view.phase.id,
        "team": view.team.name,
        "submitted_at": run.submitted_at,
        "file_name": run.file_name,
        "description": run.description,
        "tags": [tag for tag in run.tags.split(", ") if tag],
        "sha256": run.sha256,
        "size": run.size,
        "withdrawn": run.withdrawn_at is not None,
        "counts": view.counts,
        "scores": scores if view.visible else None,
        "url": f"{url}/runs/{run.id}",
    }


def board_out(board: Board) -> BoardOut:
    """A board as the API shows it."""
    return BoardOut(
        task=board.task,
        phase=board.phase.name,
        measures=list(board.measures),
        gold_version=board.gold_version,
        gold_note=board.gold_note,
        rows=board_rows(board),
    )
