"""What the site refuses, each with the status that a browser or a program gets."""

from __future__ import annotations

from headcount.exceptions import HeadcountError


class SiteError(HeadcountError):
    """Something that a visitor asked for and cannot have; the message says why."""

    status = 400
    code = "bad_request"

    def __init__(self, message: str, faults: list[str] | None = None, wait: int | None = None):
        super().__init__("\n".join([message, *(faults or [])]))
        self.message = message
        self.faults = faults or []
        self.wait = wait


class NotLoggedInError(SiteError):
    """Nobody is logged in, or the token is not valid."""

    status, code = 401, "not_logged_in"


class ForbiddenError(SiteError):
    """Whoever asks may not do this."""

    status, code = 403, "forbidden"


class NotFoundError(SiteError):
    """There is no such thing, or it is another team's: nobody can tell which."""

    status, code = 404, "not_found"


class ConflictError(SiteError):
    """It does not fit what is there: a name that is taken, a phase that is closed."""

    status, code = 409, "conflict"


class TooLargeError(SiteError):
    """More bytes than are taken."""

    status, code = 413, "too_large"


class FaultyError(SiteError):
    """A run or a form with faults, all of them listed."""

    status, code = 422, "faulty"


class TooManyError(SiteError):
    """A rate limit or a quota is used up."""

    status, code = 429, "too_many"


class FullError(SiteError):
    """The disk is full."""

    status, code = 507, "disk_full"
