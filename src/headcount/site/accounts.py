"""People: registration, log-in, tokens, invitations, new passwords."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from headcount.site import secrecy
from headcount.site.audit import record
from headcount.site.errors import ConflictError, ForbiddenError, NotFoundError, NotLoggedInError
from headcount.site.models import Invitation, Lab, LogIn, Token, User
from headcount.site.texts import name_key

SCOPES = ("read", "submit", "organise")
TOKEN_PREFIX = "hct_"


@dataclass(frozen=True)
class Actor:
    """Who asks, and what they may do: a user by a browser, or by a token with scopes."""

    user: User
    scopes: frozenset[str]

    @property
    def is_organiser(self) -> bool:
        """Whether this is an organiser who may act as one."""
        return self.user.role == "organiser" and "organise" in self.scopes

    def require(self, scope: str) -> None:
        """Refuse what the token was not made for."""
        if scope not in self.scopes:
            raise ForbiddenError(f"this token has no scope {scope!r}.")

    def require_organiser(self) -> None:
        """Refuse everyone but organisers."""
        if not self.is_organiser:
            raise ForbiddenError("only organisers may do this.")


def register(
    session: Session,
    at: datetime,
    *,
    name: str,
    password: str,
    email: str = "",
    invitation: str = "",
) -> User:
    """Add a user, as the lab's rules allow."""
    lab = session.get_one(Lab, 1)
    role = "participant"
    if invitation:
        role = _use_invitation(session, invitation, at).role
    elif lab.registration == "invitation":
        raise ForbiddenError("registration needs an invitation: ask the organisers for a code.")
    elif lab.registration == "closed":
        raise ForbiddenError("registration is closed.")
    state = "pending" if lab.approval and not invitation else "active"
    user = add_user(session, at, name=name, password=password, email=email, role=role, state=state)
    record(session, at, user, "register", user.name)
    return user


def add_user(
    session: Session,
    at: datetime,
    *,
    name: str,
    password: str,
    email: str = "",
    role: str = "participant",
    state: str = "active",
) -> User:
    """Add a user, whatever the rules say."""
    user = User(
        name=name,
        key=name_key(name),
        email=email or None,
        password=secrecy.hash_password(password),
        role=role,
        state=state,
        created_at=at,
    )
    try:
        with session.begin_nested():
            session.add(user)
            session.flush()
    except IntegrityError:
        raise ConflictError(f"the name {name!r} is taken.") from None
    return user


def find_user(session: Session, name: str) -> User | None:
    """A user by name, if there is one who may log in."""
    user = session.scalar(select(User).where(User.key == name_key(name)))
    return user if user is not None and user.state != "removed" else None


def log_in(session: Session, user: User, at: datetime, hours: float) -> str:
    """Start a session of a browser; gives the value of its cookie, which is always a new one."""
    secret = secrecy.make_secret()
    session.execute(delete(LogIn).where(LogIn.expires_at <= at))
    session.add(
        LogIn(
            hash=secrecy.hash_secret(secret),
            user_id=user.id,
            expires_at=at + timedelta(hours=hours),
        )
    )
    return secret


def log_out(session: Session, cookie: str) -> None:
    """End a session of a browser."""
    session.execute(delete(LogIn).where(LogIn.hash == secrecy.hash_secret(cookie)))


def by_cookie(session: Session, cookie: str, at: datetime) -> Actor | None:
    """Who a cookie stands for, if it is valid."""
    query = select(User).join(LogIn, LogIn.user_id == User.id)
    user = session.scalar(
        query.where(LogIn.hash == secrecy.hash_secret(cookie), LogIn.expires_at > at)
    )
    if user is None or user.state == "removed":
        return None
    return Actor(user, frozenset(SCOPES))


def by_token(session: Session, secret: str, at: datetime) -> Actor:
    """Who a token stands for; one error for unknown, expired and revoked ones."""
    token = session.scalar(select(Token).where(Token.hash == secrecy.hash_secret(secret)))
    valid = token is not None and token.revoked_at is None and token.expires_at > at
    user = session.get(User, token.user_id) if valid and token is not None else None
    if token is None or user is None or user.state == "removed":
        raise NotLoggedInError("the token is not valid: it is unknown, has expired or was revoked.")
    return Actor(user, frozenset(token.scopes.split()))


def make_token(
    session: Session, actor: Actor, at: datetime, *, name: str, scopes: list[str], days: int
) -> tuple[Token, str]:
    """A new token, and its secret, which is shown once; never more than its maker may do."""
    beyond = set(scopes) - actor.scopes
    if beyond:
        raise ForbiddenError(f"you cannot give the scope {sorted(beyond)[0]!r}.")
    if "organise" in scopes and actor.user.role != "organiser":
        raise ForbiddenError("only organisers can have tokens that organise.")
    secret = secrecy.make_secret(TOKEN_PREFIX)
    token = Token(
        user_id=actor.user.id,
        name=name,
        hash=secrecy.hash_secret(secret),
        scopes=" ".join(s for s in SCOPES if s in scopes),
        created_at=at,
        expires_at=at + timedelta(days=days),
    )
    session.add(token)
    session.flush()
    record(session, at, actor.user, "make token", f"{name} ({token.scopes})")
    return token, secret


def list_tokens(session: Session, user: User, at: datetime) -> list[Token]:
    """The tokens of a user that still work."""
    query = select(Token).where(Token.user_id == user.id, Token.revoked_at.is_(None))
    return list(session.scalars(query.where(Token.expires_at > at).order_by(Token.id)))


def revoke_token(session: Session, user: User, token_id: int, at: datetime) -> None:
    """End one of the user's own tokens."""
    token = session.get(Token, token_id)
    if token is None or token.user_id != user.id or token.revoked_at is not None:
        raise NotFoundError("there is no such token.")
    token.revoked_at = at
    record(session, at, user, "revoke token", token.name)


def invite(
    session: Session,
    at: datetime,
    *,
    by: User | None,
    role: str = "participant",
    uses: int = 1,
    days: int = 30,
    note: str = "",
    resets: User | None = None,
) -> str:
    """A code that lets someone register or, for `resets`, set a new password."""
    secret = secrecy.make_secret("hci_")
    session.add(
        Invitation(
            hash=secrecy.hash_secret(secret),
            role=role,
            uses_left=uses,
            user_id=resets.id if resets else None,
            note=note,
            created_at=at,
            expires_at=at + timedelta(days=days),
        )
    )
    what = f"new password for {resets.name}" if resets else f"{uses} x {role} {note}".strip()
    record(session, at, by, "invite", what)
    return secret


def reset_password(session: Session, at: datetime, *, code: str, password: str) -> User:
    """Set a new password by a code; every session and token of the user ends."""
    invitation = _use_invitation(session, code, at, reset=True)
    user = session.get_one(User, invitation.user_id)
    user.password = secrecy.hash_password(password)
    end_access(session, user, at)
    record(session, at, user, "new password", user.name)
    return user


def end_access(session: Session, user: User, at: datetime) -> None:
    """End every session and token of a user."""
    session.execute(delete(LogIn).where(LogIn.user_id == user.id))
    session.execute(
        update(Token)
        .where(Token.user_id == user.id, Token.revoked_at.is_(None))
        .values(revoked_at=at)
    )


def _use_invitation(
    session: Session, code: str, at: datetime, *, reset: bool = False
) -> Invitation:
    kind = Invitation.user_id.is_not(None) if reset else Invitation.user_id.is_(None)
    found = session.scalar(
        select(Invitation)
        .where(Invitation.hash == secrecy.hash_secret(code), kind)
        .where(Invitation.uses_left > 0, Invitation.expires_at > at)
        .with_for_update()
    )
    if found is None:
        raise ForbiddenError("the code is not valid: it is unknown, has expired or was used.")
    found.uses_left -= 1
    return found
