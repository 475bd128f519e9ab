"""When a phase takes runs, what it shows, and how many runs a team has left."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from headcount.site.clock import day_start, spoken
from headcount.site.errors import ConflictError, NotFoundError, TooManyError
from headcount.site.models import Lab, Phase, Run, Task, Team


def is_open(phase: Phase, at: datetime) -> bool:
    """Whether runs are taken: from the opening on, and before the deadline, not at it."""
    return (
        phase.opens_at <= at
        and (phase.closes_at is None or at < phase.closes_at)
        and phase.frozen_at is None
    )


def is_published(phase: Phase, at: datetime) -> bool:
    """Whether everyone may see the scores."""
    return (
        not phase.hidden
        or phase.published_at is not None
        or (phase.publish_at is not None and phase.publish_at <= at)
    )


def shows_details(phase: Phase, at: datetime) -> bool:
    """Whether errors of single samples may be shown; they tell about the gold."""
    closed = phase.closes_at is not None and phase.closes_at <= at
    over = closed or phase.published_at is not None
    return is_published(phase, at) and (phase.split == "dev" or phase.details or over)


def names_are_hidden(lab: Lab, phase: Phase, at: datetime) -> bool:
    """Whether boards show numbers for teams: until the phase has ended, if the lab wants it."""
    ended = phase.published_at is not None or (
        phase.closes_at is not None and phase.closes_at <= at and is_published(phase, at)
    )
    return lab.anonymous and not ended


def state_text(phase: Phase, at: datetime, zone: str) -> str:
    """What a page says about a phase."""
    if at < phase.opens_at:
        return f"opens {spoken(phase.opens_at, zone)}"
    if is_open(phase, at):
        return f"open until {spoken(phase.closes_at, zone)}" if phase.closes_at else "open"
    return "frozen" if phase.frozen_at and not phase.published_at else "closed"


def list_phases(session: Session) -> list[Phase]:
    """All phases, the first to open first."""
    return list(session.scalars(select(Phase).order_by(Phase.opens_at, Phase.id)))


def get_phase(session: Session, phase_id: int) -> Phase:
    """A phase by its number."""
    phase = session.get(Phase, phase_id)
    if phase is None:
        raise NotFoundError("there is no such phase.")
    return phase


def current_phase(session: Session, at: datetime, phase_id: int | None = None) -> Phase:
    """The open phase that an upload is for; an error says which are open."""
    if phase_id is not None:
        phase = get_phase(session, phase_id)
        if is_open(phase, at):
            return phase
        lab = session.get_one(Lab, 1)
        raise ConflictError(
            f"the phase {phase.name} takes no runs: {state_text(phase, at, lab.timezone)}."
        )
    found = [phase for phase in list_phases(session) if is_open(phase, at)]
    if not found:
        raise ConflictError("no phase is open now.")
    if len(found) > 1:
        names = ", ".join(f"{phase.name} ({phase.id})" for phase in found)
        raise ConflictError(f"several phases are open, say which: {names}.")
    return found[0]


@dataclass(frozen=True)
class Quota:
    """Runs that a team has left; None where there is no limit."""

    today: int | None
    total: int | None

    @property
    def left(self) -> int | None:
        """Runs that may be sent now."""
        limits = [n for n in (self.today, self.total) if n is not None]
        return min(limits) if limits else None


def quota_left(session: Session, phase: Phase, task: Task, team: Team, at: datetime) -> Quota:
    """What is left; withdrawn runs count, faulty ones never."""
    if team.kind == "baseline":
        return Quota(None, None)
    lab = session.get_one(Lab, 1)
    mine = (Run.phase_id == phase.id) & (Run.task_id == task.id) & (Run.team_id == team.id)
    query = select(func.count()).select_from(Run).where(mine)
    today = total = None
    if phase.quota_day is not None:
        since = day_start(at, lab.timezone)
        used = session.scalar(query.where(Run.submitted_at >= since)) or 0
        today = max(phase.quota_day - used, 0)
    if phase.quota_total is not None:
        total = max(phase.quota_total - (session.scalar(query) or 0), 0)
    return Quota(today, total)


def require_quota(session: Session, phase: Phase, task: Task, team: Team, at: datetime) -> None:
    """Refuse a run for which there is no room."""
    quota = quota_left(session, phase, task, team, at)
    if quota.total == 0:
        raise TooManyError(
            f"all {phase.quota_total} runs of {task.name} in the phase {phase.name} are used."
        )
    if quota.today == 0:
        raise TooManyError(
            f"all {phase.quota_day} runs of {task.name} of this day are used; try tomorrow."
        )
