"""Around every request: security headers, a number for the log, a line in it, metrics."""

from __future__ import annotations

import json
import logging
import time
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from headcount.site import metrics

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
SVG_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
log = logging.getLogger("headcount.site")


class Guard:
    """ASGI middleware around the whole application.

    Parameters
    ----------
    app : ASGI application
    secure : bool
        Whether the site is reached by https, and browsers should insist on it.
    """

    def __init__(self, app: Any, secure: bool):
        self.app = app
        self.fixed = dict(HEADERS)
        if secure:
            self.fixed["strict-transport-security"] = "max-age=31536000"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, with headers, and write it down."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        number, start = token_hex(8), time.perf_counter()
        status, started = 500, False
        scope.setdefault("state", {})["request_id"] = number

        async def send_with_headers(message: Any) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                message["headers"] = self._headers(message["headers"], number)
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception as error:
            log.error("unforeseen error", exc_info=error, extra={"fields": {"request": number}})
            if started:
                raise
            await _apology(scope["path"], number)(scope, receive, send_with_headers)
        finally:
            self._note(scope, number, status, time.perf_counter() - start)

    def _headers(self, given: Any, number: str) -> list[tuple[bytes, bytes]]:
        present = {name.lower(): value for name, value in given}
        added = {**self.fixed, "x-request-id": number}
        svg = present.get(b"content-type", b"").startswith(b"image/svg+xml")
        added["content-security-policy"] = SVG_POLICY if svg else POLICY
        if b"cache-control" not in present:
            added["cache-control"] = "no-store"
        return [*given, *((k.encode(), v.encode()) for k, v in added.items())]

    def _note(self, scope: Any, number: str, status: int, took: float) -> None:
        """One line of the log: the route, never the query, headers or body, which hold secrets."""
        route = getattr(scope.get("route"), "path", "unmatched")
        metrics.requests.labels(scope["method"], route, str(status)).inc()
        metrics.seconds.labels(route).observe(took)
        log.info(
            "request",
            extra={
                "fields": {
                    "request": number,
                    "method": scope["method"],
                    "route": route,
                    "status": status,
                    "ms": round(1000 * took, 1),
                }
            },
        )


def _apology(path: str, number: str) -> Response:
    """A fault of ours, told in one sentence; the log has the rest."""
    text = f"something went wrong here; the organisers find it under number {number}."
    if path.startswith("/api/"):
        body = {"code": "internal", "message": text, "faults": []}
        return JSONResponse({"error": body}, status_code=500)
    return PlainTextResponse(text, status_code=500)


class JsonLines(logging.Formatter):
    """Log records as JSON, a line each."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "process": record.process,
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def start_logging(level: str) -> None:
    """Write the log of the site and of the server to standard error, as JSON lines."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in ("headcount.site", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.propagate = name == "uvicorn.error"
        logger.setLevel(level.upper())
