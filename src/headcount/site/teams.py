"""Teams: a person belongs to one, and no two have the same name."""

from __future__ import annotations

import secrets
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from headcount.site import secrecy
from headcount.site.audit import record
from headcount.site.errors import ConflictError, ForbiddenError, NotFoundError
from headcount.site.models import Lab, Team, User
from headcount.site.texts import name_key


def create_team(session: Session, user: User, name: str, at: datetime) -> Team:
    """Found a team and join it."""
    _require_no_team(user)
    lab = session.get_one(Lab, 1)
    team = _add(session, name, name_key(name), "team", "pending" if lab.approval else "active", at)
    session.merge(user).team_id = team.id
    record(session, at, user, "create team", team.name)
    return team


def baseline_team(session: Session, name: str, at: datetime) -> Team:
    """The baseline of this name, made if it is new; it cannot clash with a team."""
    key = f"baseline:{name_key(name)}"
    team = session.scalar(select(Team).where(Team.key == key))
    return team or _add(session, name, key, "baseline", "active", at)


def make_join_code(session: Session, user: User, at: datetime) -> str:
    """A code that lets others join; it replaces the one before."""
    team = own_team(session, user)
    secret = secrecy.make_secret("hcj_")
    team.join_hash = secrecy.hash_secret(secret)
    record(session, at, user, "make join code", team.name)
    return secret


def join_team(session: Session, user: User, code: str, at: datetime) -> Team:
    """Join the team that gave the code."""
    _require_no_team(user)
    team = session.scalar(select(Team).where(Team.join_hash == secrecy.hash_secret(code)))
    if team is None or team.state == "removed":
        raise ForbiddenError("the code is not valid: ask your team for a new one.")
    session.merge(user).team_id = team.id
    record(session, at, user, "join team", team.name)
    return team


def own_team(session: Session, user: User) -> Team:
    """The user's team."""
    team = session.get(Team, user.team_id) if user.team_id is not None else None
    if team is None:
        raise ConflictError("you are in no team yet: create one or join one first.")
    return team


def active_team(session: Session, user: User, *, lock: bool = False) -> Team:
    """The user's team, if it and the user may take part; locked against other uploads."""
    team = own_team(session, user)
    if lock:
        team = session.get_one(Team, team.id, with_for_update=True, populate_existing=True)
    if user.state == "pending" or team.state == "pending":
        raise ForbiddenError("an organiser has to approve you and your team first.")
    if team.state == "removed":
        raise ForbiddenError("your team was removed from the lab by the organisers.")
    return team


def members(session: Session, team: Team) -> list[User]:
    """Who is in a team."""
    return list(session.scalars(select(User).where(User.team_id == team.id).order_by(User.id)))


def list_teams(session: Session) -> list[Team]:
    """All teams and baselines."""
    return list(session.scalars(select(Team).order_by(Team.kind.desc(), Team.id)))


def set_team_state(
    session: Session, by: User | None, team_id: int, state: str, at: datetime
) -> Team:
    """Approve, remove or bring back a team; its runs leave the boards and return with it."""
    team = session.get(Team, team_id)
    if team is None:
        raise NotFoundError("there is no such team.")
    team.state = state
    record(session, at, by, f"team {state}", team.name)
    return team


def set_user_state(
    session: Session, by: User | None, user_id: int, state: str, at: datetime
) -> User:
    """Approve, remove or bring back a user."""
    from headcount.site.accounts import end_access

    user = session.get(User, user_id)
    if user is None:
        raise NotFoundError("there is no such user.")
    if by is not None and user.id == by.id:
        raise ConflictError("you cannot change your own state.")
    user.state = state
    if state == "removed":
        end_access(session, user, at)
    record(session, at, by, f"user {state}", user.name)
    return user


def list_users(session: Session) -> list[User]:
    """All users."""
    return list(session.scalars(select(User).order_by(User.id)))


def _require_no_team(user: User) -> None:
    if user.team_id is not None:
        raise ConflictError("you are in a team already.")


def _add(session: Session, name: str, key: str, kind: str, state: str, at: datetime) -> Team:
    team = Team(name=name, key=key, kind=kind, state=state, created_at=at)
    team.alias = secrets.randbelow(2**31 - 1000) + 1000
    try:
        with session.begin_nested():
            session.add(team)
            session.flush()
    except IntegrityError:
        raise ConflictError(f"there is a team called {name!r} already.") from None
    return team
