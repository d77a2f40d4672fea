"""What surrounds every request: its greatest size, its time and status for the meters.

Plain ASGI, so that streams are not held back and a client's leaving is seen.
"""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serving.meters import Meters
from dragoman.serving.refusals import Refusal


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

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            # The endpoint's path, not the one asked for: there are only so many of them.
            path = getattr(scope.get("route"), "path", "other")
            self._meters.requests.labels(path, str(status)).inc()
            self._meters.seconds.labels(path).observe(time.perf_counter() - began)
