"""What organisers do: rules of the lab, phases, publication, announcements, references."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from headcount.site.audit import record
from headcount.site.boards import references
from headcount.site.errors import ConflictError, FaultyError, NotFoundError
from headcount.site.models import Announcement, Lab, Phase, Run, User
from headcount.site.phases import get_phase
from headcount.site.runs import get_task


def change_lab(session: Session, by: User | None, values: dict[str, Any], at: datetime) -> Lab:
    """Set rules of the lab."""
    lab = session.get_one(Lab, 1)
    changed = [name for name, value in values.items() if getattr(lab, name) != value]
    for name in changed:
        setattr(lab, name, values[name])
    if changed:
        record(session, at, by, "change lab", ", ".join(changed))
    return lab


def save_phase(
    session: Session, by: User | None, values: dict[str, Any], at: datetime, phase_id: int | None
) -> Phase:
    """Add a phase, or change one; its split stays once there are runs."""
    _require_order(values)
    if phase_id is None:
        phase = Phase(**values)
    else:
        phase = get_phase(session, phase_id)
        if values["split"] != phase.split and _has_runs(session, phase):
            raise ConflictError(f"the phase {phase.name} has runs: its split cannot change.")
    try:
        with session.begin_nested():
            for name, value in values.items():
                setattr(phase, name, value)
            session.add(phase)
            session.flush()
    except IntegrityError:
        raise ConflictError(f"there is a phase called {values['name']!r} already.") from None
    record(session, at, by, "change phase" if phase_id else "add phase", phase.name)
    return phase


def delete_phase(session: Session, by: User | None, phase_id: int, at: datetime) -> None:
    """Delete a phase that has no runs."""
    phase = get_phase(session, phase_id)
    if _has_runs(session, phase):
        raise ConflictError(f"the phase {phase.name} has runs and cannot be deleted.")
    session.delete(phase)
    record(session, at, by, "delete phase", phase.name)


def freeze(session: Session, by: User | None, phase_id: int, at: datetime) -> Phase:
    """Stop a phase: no run comes, goes or is chosen any more."""
    phase = get_phase(session, phase_id)
    if phase.frozen_at is None:
        phase.frozen_at = at
        record(session, at, by, "freeze", phase.name)
    return phase


def thaw(session: Session, by: User | None, phase_id: int, at: datetime) -> Phase:
    """Take a freeze back."""
    phase = get_phase(session, phase_id)
    if phase.published_at is not None:
        raise ConflictError("the phase is published; its board stays as it is.")
    phase.frozen_at = None
    record(session, at, by, "thaw", phase.name)
    return phase


def publish(session: Session, by: User | None, phase_id: int, at: datetime) -> Phase:
    """Show scores, board and names of a phase to everyone, and freeze it."""
    phase = get_phase(session, phase_id)
    if phase.published_at is None:
        freeze(session, by, phase_id, at)
        phase.published_at = at
        record(session, at, by, "publish", phase.name)
        session.add(Announcement(at=at, text=f"The results of {phase.name} are published."))
    return phase


def announce(session: Session, by: User | None, text: str, at: datetime) -> Announcement:
    """Tell everyone something."""
    announcement = Announcement(at=at, text=text)
    session.add(announcement)
    session.flush()
    record(session, at, by, "announce", text.split("\n")[0])
    return announcement


def list_announcements(session: Session, limit: int = 50) -> list[Announcement]:
    """The latest announcements, newest first."""
    query = select(Announcement).order_by(Announcement.id.desc()).limit(limit)
    return list(session.scalars(query))


def delete_announcement(session: Session, by: User, announcement_id: int, at: datetime) -> None:
    """Take an announcement back."""
    found = session.get(Announcement, announcement_id)
    if found is None:
        raise NotFoundError("there is no such announcement.")
    session.delete(found)
    record(session, at, by, "delete announcement", found.text.split("\n")[0])


def set_reference(
    session: Session, by: User | None, task_name: str, reference: str | None, at: datetime
) -> None:
    """Show published results of LeQua 2022 beside a task's board."""
    if reference is not None and reference not in references():
        raise FaultyError(f"published results there are for {', '.join(references())}.")
    get_task(session, task_name).reference = reference
    record(session, at, by, "set reference", f"{task_name}: {reference}")


def _has_runs(session: Session, phase: Phase) -> bool:
    query = select(func.count()).select_from(Run).where(Run.phase_id == phase.id)
    return bool(session.scalar(query))


def _require_order(values: dict[str, Any]) -> None:
    closes, publishes = values["closes_at"], values["publish_at"]
    faults = []
    if closes is not None and closes <= values["opens_at"]:
        faults.append("the phase closes before it opens.")
    if publishes is not None and values["hidden"] and closes is not None and publishes < closes:
        faults.append("the scores would be published before the phase closes.")
    if faults:
        raise FaultyError("the phase cannot be like this.", faults)
