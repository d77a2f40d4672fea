"""What surrounds every request: its greatest size, failures, time and status for the meters.

Plain ASGI, so that streams are not held back and a client's leaving is seen.
"""

from __future__ import annotations

import logging
import time

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serving.meters import Meters
from dragoman.serving.refusals import Refusal

logger = logging.getLogger("dragoman")

FAILED = "The server failed at this; its log says why."


class BodyLimit:
    """Refuses a body as soon as it is larger than allowed."""

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self.app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Called by the framework."""
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                if size > self._most_bytes:
                    raise Refusal(
                        413,
                        f"The request is larger than {self._most_bytes:,} bytes, the most that "
                        "this server takes.",
                    )
            return message

        await self.app(scope, counted if scope["type"] == "http" else receive, send)


class Failures:
    """Answers what nobody foresaw as JSON too; the log says what it was."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Called by the framework."""
        began = False

        async def noted(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except Exception:  # whatever an endpoint fails with
            if began or scope["type"] != "http":
                raise  # half an answer is out: the server closes the connection
            logger.exception("%s %s failed", scope["method"], scope["path"])
            await JSONResponse({"error": FAILED}, 500)(scope, receive, send)


class HeadAsGet:
    """Answers HEAD as GET, without the body (RFC 9110, section 9.3.2)."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Called by the framework."""

        async def bare(message: Message) -> None:
            is_body = message["type"] == "http.response.body"
            await send({**message, "body": b""} if is_body else message)

        if scope["type"] == "http" and scope["method"] == "HEAD":
            await self.app({**scope, "method": "GET"}, receive, bare)
        else:
            await self.app(scope, receive, send)


class Measured:
    """Counts requests and times them, by the path of their endpoint."""

    def __init__(self, app: ASGIApp, meters: Meters) -> None:
        self.app = app
        self._meters = meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Called by the framework."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        self._meters.under_way.inc()

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            self._meters.under_way.dec()
            # The endpoint's path, not the one asked for: there are only so many of them.
            path = getattr(scope.get("route"), "path", "other")
            self._meters.requests.labels(path, str(status)).inc()
            self._meters.seconds.labels(path).observe(time.perf_counter() - began)
