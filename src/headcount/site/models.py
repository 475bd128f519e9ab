"""The tables of the site."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, ForeignKey, LargeBinary, MetaData, String, Text, UniqueConstraint
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator


class Moment(TypeDecorator[datetime]):
    """A moment in UTC; SQLite keeps no time zones, so none is stored anywhere."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:  # noqa: ARG002
        """Drop the zone after turning to UTC."""
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Put the zone back."""
        return None if value is None else value.replace(tzinfo=UTC)


class Base(DeclarativeBase):
    """Base of all tables; constraints have names, so that migrations can speak of them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: Moment, bytes: LargeBinary}  # noqa: RUF012


class Lab(Base):
    """Rules that organisers set; one row."""

    __tablename__ = "lab"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(String(200))
    about: Mapped[str] = mapped_column(Text)
    registration: Mapped[str] = mapped_column(String(20))  # open, invitation, closed
    approval: Mapped[bool]
    anonymous: Mapped[bool]
    timezone: Mapped[str] = mapped_column(String(60))
    contact: Mapped[str] = mapped_column(String(200), default="")


class Team(Base):
    """Who is ranked: a team of participants, or a baseline."""

    __tablename__ = "teams"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(60))
    key: Mapped[str] = mapped_column(String(200), unique=True)
    kind: Mapped[str] = mapped_column(String(20))  # team, baseline
    state: Mapped[str] = mapped_column(String(20))  # active, pending, removed
    alias: Mapped[int] = mapped_column(unique=True)
    join_hash: Mapped[str | None] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]


class User(Base):
    """A person with a log-in."""

    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(60))
    key: Mapped[str] = mapped_column(String(200), unique=True)
    email: Mapped[str | None] = mapped_column(String(200))
    password: Mapped[str] = mapped_column(String(200))
    role: Mapped[str] = mapped_column(String(20))  # participant, organiser
    state: Mapped[str] = mapped_column(String(20))  # active, pending, removed
    team_id: Mapped[int | None] = mapped_column(ForeignKey("teams.id"), index=True)
    created_at: Mapped[datetime]


class LogIn(Base):
    """A session of a browser; its cookie is kept as a hash."""

    __tablename__ = "logins"
    hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    expires_at: Mapped[datetime]


class Token(Base):
    """A key to the API, kept as a hash."""

    __tablename__ = "tokens"
    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    name: Mapped[str] = mapped_column(String(60))
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    scopes: Mapped[str] = mapped_column(String(100))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class Invitation(Base):
    """A code that lets someone register, or set a new password (then it names the user)."""

    __tablename__ = "invitations"
    id: Mapped[int] = mapped_column(primary_key=True)
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[str] = mapped_column(String(20))
    uses_left: Mapped[int]
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    note: Mapped[str] = mapped_column(String(200))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class Task(Base):
    """A task of the lab; what it is stands in its folder."""

    __tablename__ = "tasks"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(60), unique=True)
    measure: Mapped[str] = mapped_column(String(20))  # that ranks
    reference: Mapped[str | None] = mapped_column(String(60))  # task whose published results show


class Phase(Base):
    """A stretch of the lab, for all tasks: when it is open, what is shown, how many runs."""

    __tablename__ = "phases"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(60), unique=True)
    split: Mapped[str] = mapped_column(String(10))  # dev, test
    opens_at: Mapped[datetime]
    closes_at: Mapped[datetime | None]
    hidden: Mapped[bool]  # scores and board, until publication
    publish_at: Mapped[datetime | None]
    published_at: Mapped[datetime | None]
    frozen_at: Mapped[datetime | None]
    details: Mapped[bool]  # errors of single samples are shown with the scores
    quota_day: Mapped[int | None]
    quota_total: Mapped[int | None]
    counts: Mapped[str] = mapped_column(String(10))  # last, best, chosen


class Gold(Base):
    """A version of the true prevalences of a task's samples."""

    __tablename__ = "golds"
    id: Mapped[int] = mapped_column(primary_key=True)
    task_id: Mapped[int] = mapped_column(ForeignKey("tasks.id"))
    split: Mapped[str] = mapped_column(String(10))
    version: Mapped[int]
    current: Mapped[bool]
    sha256: Mapped[str] = mapped_column(String(64))
    note: Mapped[str] = mapped_column(String(500))
    content: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    created_at: Mapped[datetime]
    __table_args__ = (UniqueConstraint("task_id", "split", "version", name="uq_golds_version"),)


class Run(Base):
    """A valid run; faulty ones are never kept."""

    __tablename__ = "runs"
    id: Mapped[int] = mapped_column(primary_key=True)
    task_id: Mapped[int] = mapped_column(ForeignKey("tasks.id"), index=True)
    phase_id: Mapped[int] = mapped_column(ForeignKey("phases.id"), index=True)
    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id"), index=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    submitted_at: Mapped[datetime]
    file_name: Mapped[str] = mapped_column(String(200))
    description: Mapped[str] = mapped_column(Text)
    tags: Mapped[str] = mapped_column(String(400))
    sha256: Mapped[str] = mapped_column(String(64))
    size: Mapped[int]
    withdrawn_at: Mapped[datetime | None]
    chosen: Mapped[bool]
    client_key: Mapped[str | None] = mapped_column(String(64))
    __table_args__ = (UniqueConstraint("team_id", "client_key", name="uq_runs_client_key"),)


class RunFile(Base):
    """Bytes of a run as they came, compressed; apart, so that lists of runs stay light."""

    __tablename__ = "run_files"
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    content: Mapped[bytes]


class Score(Base):
    """A run's mean, deviation and errors by one measure against one version of the gold."""

    __tablename__ = "scores"
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    gold_id: Mapped[int] = mapped_column(ForeignKey("golds.id"), primary_key=True)
    measure: Mapped[str] = mapped_column(String(20), primary_key=True)
    mean: Mapped[float]
    sd: Mapped[float]
    errors: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)


class Announcement(Base):
    """What organisers tell everyone."""

    __tablename__ = "announcements"
    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    text: Mapped[str] = mapped_column(Text)


class Deed(Base):
    """A line of the audit log: who did what to whom."""

    __tablename__ = "audit"
    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    who: Mapped[str] = mapped_column(String(60))
    action: Mapped[str] = mapped_column(String(60))
    subject: Mapped[str] = mapped_column(String(200))


class Hit(Base):
    """How often something was tried in a minute; rate limits count across processes here."""

    __tablename__ = "hits"
    key: Mapped[str] = mapped_column(String(100), primary_key=True)
    minute: Mapped[int] = mapped_column(primary_key=True)
    count: Mapped[int]
