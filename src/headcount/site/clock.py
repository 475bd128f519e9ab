"""Moments: now, in the zone of the lab, and back from what a form says."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def now() -> datetime:
    """The present moment."""
    return datetime.now(UTC)


def zone(name: str) -> ZoneInfo:
    """A time zone by its name, such as 'Europe/Rome'."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"unknown time zone {name!r}: use a name such as 'Europe/Rome' or 'UTC'"
        ) from None


def parse_local(text: str, name: str) -> datetime | None:
    """The moment that a form's text means in a zone; None for no text.

    Examples
    --------
    >>> parse_local("2026-07-01T12:00", "Europe/Rome").isoformat()
    '2026-07-01T10:00:00+00:00'
    >>> parse_local("2026-03-29T02:30", "Europe/Rome")
    Traceback (most recent call last):
        ...
    ValueError: 2026-03-29T02:30 is skipped by the clocks of Europe/Rome
    """
    if not text.strip():
        return None
    try:
        local = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not a date and time such as 2026-07-01T12:00") from None
    place = zone(name)
    if local.tzinfo is not None:
        return local.astimezone(UTC)
    moment = local.replace(tzinfo=place).astimezone(UTC)
    if moment.astimezone(place).replace(tzinfo=None) != local:
        raise ValueError(f"{text} is skipped by the clocks of {name}")
    return moment


def local_text(moment: datetime | None, name: str) -> str:
    """How a form shows a moment in a zone."""
    return "" if moment is None else moment.astimezone(zone(name)).strftime("%Y-%m-%dT%H:%M:%S")


def spoken(moment: datetime | None, name: str) -> str:
    """How a page shows a moment in a zone."""
    return "" if moment is None else moment.astimezone(zone(name)).strftime("%Y-%m-%d %H:%M %Z")


def day_start(moment: datetime, name: str) -> datetime:
    """When the day of a moment began in a zone; quotas a day count from there."""
    local = moment.astimezone(zone(name))
    return local.replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)
