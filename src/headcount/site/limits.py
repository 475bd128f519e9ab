"""Rate limits that count across processes, and limits on the body of a request."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

from headcount.site.database import Database
from headcount.site.errors import TooManyError
from headcount.site.models import Hit

FORM_BYTES = 200_000
HEADER_BYTES = 32_000
KEEP_MINUTES = 5


def hit(database: Database, key: str, limit: int, at: datetime) -> None:
    """Count one try; an error with the seconds to wait if there were too many this minute."""
    minute, second = divmod(int(at.timestamp()), 60)
    insert: Any = sqlite_insert if database.is_sqlite else postgres_insert
    with database.writing() as session:
        count = session.scalar(
            insert(Hit)
            .values(key=key[:100], minute=minute, count=1)
            .on_conflict_do_update(index_elements=["key", "minute"], set_={"count": Hit.count + 1})
            .returning(Hit.count)
        )
        if count == 1:
            session.execute(delete(Hit).where(Hit.minute < minute - KEEP_MINUTES))
    if count is not None and count > limit:
        raise TooManyError(
            f"too many tries: at most {limit} a minute. Wait {60 - second} seconds.",
            wait=60 - second,
        )


class BodyLimit:
    """ASGI middleware that stops reading a body that is too long or too slow.

    Bodies are counted while they are read, so that neither a wrong length nor none at all helps.

    Parameters
    ----------
    app : ASGI application
    large : int
        Bytes that an upload may have; every other request may have `FORM_BYTES`.
    seconds : float
        Time within which the whole body has to arrive.
    """

    def __init__(self, app: Any, large: int, seconds: float):
        self.app = app
        self.large = large
        self.seconds = seconds

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Hand the request on with a `receive` that counts."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        head = sum(len(name) + len(value) for name, value in scope["headers"])
        if head + len(scope["raw_path"]) + len(scope["query_string"]) > HEADER_BYTES:
            refusal = PlainTextResponse("the headers of the request are too large.", 431)
            await refusal(scope, receive, send)
            return
        limit = self.large + FORM_BYTES if takes_files(scope["path"]) else FORM_BYTES
        too_large = HTTPException(413, f"the request is larger than {limit:,} bytes.")
        loop = asyncio.get_running_loop()
        start, seen, done = loop.time(), 0, False

        async def counted() -> Any:
            nonlocal seen, done
            if done:
                return await receive()
            try:
                left = start + self.seconds - loop.time()
                message = await asyncio.wait_for(receive(), max(left, 0.001))
            except TimeoutError:
                raise HTTPException(
                    408, f"the request did not arrive within {self.seconds:g} seconds."
                ) from None
            seen += len(message.get("body", b""))
            if seen > limit:
                raise too_large
            done = not message.get("more_body", False)
            return message

        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > limit:
            seen = limit  # one byte more is too many
        await self.app(scope, counted, send)


def takes_files(path: str) -> bool:
    """Whether a path takes uploads: runs, and corrected golds."""
    return path.endswith(("/runs", "/gold"))
