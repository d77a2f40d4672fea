"""What surrounds every request: its greatest size, its end, failures, and the headers that
keep a browser from fetching anything else.

Plain ASGI, so that streams are not held back and a client's leaving is seen.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serving.http.messages import shaped
from dragoman.serving.http.refusals import FAILED, body_too_large

logger = logging.getLogger("dragoman")

DOWNLOADS = "/download_file/"
"""What stands behind it in a path is the key to somebody's document."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "media-src 'self' blob:",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types svelte-trusted-html",
    )
)
"""Nothing from outside, nothing inline, nothing framed, and no string becomes HTML but the page's
own templates. A ``blob:`` is a file that a person gave to the page."""

HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(self), microphone=(self), geolocation=()"),
)


def shown_path(path: str) -> str:
    """A path as the log has it."""
    return quote(f"{DOWNLOADS}-" if path.startswith(DOWNLOADS) else path, safe="/")[:200]


class BodyLimit:
    """Refuses a body that is larger than allowed: unread, where its length is told before it."""

    def __init__(self, app: ASGIApp, most_bytes: int, of_paths: Mapping[str, int]) -> None:
        """``of_paths``: other limits, of some paths."""
        self.app = app
        self._most_bytes = most_bytes
        self._of_paths = of_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Called by the framework."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        size, told = 0, Headers(scope=scope).get("content-length", "0")
        most = self._of_paths.get(scope["path"], self._most_bytes)
        is_too_large = told.isdecimal() and int(told) > most

        async def counted() -> Message:
            nonlocal size
            if is_too_large:
                raise body_too_large(most)
            message = await receive()
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                if size > most:
                    raise body_too_large(most)
            return message

        await self.app(scope, counted, send)


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
            logger.exception("%s %s failed", scope["method"], shown_path(scope["path"]))
            await JSONResponse(shaped(scope["path"], 500, FAILED), 500)(scope, receive, send)


HEAD = "dragoman.head"
"""Stands in the scope of a request that is HEAD, though its method says GET."""


class HeadAsGet:
    """Answers HEAD as GET (RFC 9110, section 9.3.2); uvicorn leaves the body out."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Called by the framework."""
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET", HEAD: True}
        await self.app(scope, receive, send)
