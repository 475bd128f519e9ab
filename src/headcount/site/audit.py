"""The audit log: who did what, and when."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from headcount.site.models import Deed, User


def record(session: Session, at: datetime, user: User | None, action: str, subject: str) -> None:
    """Add a line; it is kept if and only if the deed itself is."""
    session.add(
        Deed(
            at=at,
            user_id=user.id if user else None,
            who=user.name if user else "command line",
            action=action,
            subject=subject[:200],
        )
    )


def read_log(session: Session, limit: int = 500) -> list[Deed]:
    """The latest lines, newest first."""
    return list(session.scalars(select(Deed).order_by(Deed.id.desc()).limit(limit)))
