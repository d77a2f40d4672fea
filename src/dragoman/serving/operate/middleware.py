"""The layers around every request: its greatest size, failures, its count and time for the meters,
its id, the headers of every answer, and a line in the log.

Plain ASGI, so that streams are not held back and a client's leaving is seen.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable, Mapping
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serving.http.clients import Networks
from dragoman.serving.http.messages import shaped
from dragoman.serving.http.refusals import FAILED, body_too_large
from dragoman.serving.operate.log import ACCESS, request_id
from dragoman.serving.operate.meters import Meters

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

_ID = re.compile(r"[\w.:+/=-]{1,100}", re.ASCII)


class MeteredRequests:
    """Counts requests and times them, by the path of their endpoint; gives each an id, the headers
    of every answer, and a line in the log if wanted. While the server stops it tells clients that
    the connection ends. HEAD is answered as GET (RFC 9110, section 9.3.2); uvicorn leaves the body
    out."""

    def __init__(
        self,
        app: ASGIApp,
        meters: Meters,
        is_closing: Callable[[], bool],
        proxies: Networks,
        *,
        access_log: bool,
    ) -> None:
        """``is_closing``: whether the server stops. ``proxies``: whose ids of requests are taken
        over, and nobody else's. uvicorn's ``ProxyHeadersMiddleware`` stands below, and puts the
        client's own address into the scope."""
        self.app = app
        self._proxies = proxies
        self._meters = meters
        self._is_closing = is_closing
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Called by the framework."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET", HEAD: True}
        meters = self._meters
        began, status, size = time.perf_counter(), 0, 0
        given = self._id_of(scope)
        scope.setdefault("state", {})
        meters.under_way.inc()
        context = request_id.set(given)

        async def noted(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                told = [*HEADERS, (b"x-request-id", given.encode())]
                if self._is_closing():
                    told.append((b"connection", b"close"))
                message = {**message, "headers": [*message.get("headers", ()), *told]}
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            seconds = time.perf_counter() - began
            request_id.reset(context)
            meters.under_way.dec()
            # The endpoint's path, not the one asked for: there are only so many of them.
            path = getattr(scope.get("route"), "path", "other")
            meters.requests.labels(path, str(status)).inc()
            meters.seconds.labels(path).observe(seconds)
            if self._access_log:
                _log(scope, given, status, size, seconds)

    def _id_of(self, scope: Scope) -> str:
        """The id that a trusted proxy gave the request, or a new one."""
        host, _ = scope.get("client") or ("unknown", 0)
        given = Headers(scope=scope).get("x-request-id", "")
        is_taken = host in self._proxies and _ID.fullmatch(given)
        return given if is_taken else secrets.token_hex(8)


def _log(scope: Scope, given: str, status: int, size: int, seconds: float) -> None:
    """Never what stands behind a question mark: it may be text."""
    host, _ = scope.get("client") or ("unknown", 0)
    fields = {
        "request": given,
        "client": scope["state"].get("client", host),
        "address": host,
        "method": scope["method"],
        "path": shown_path(scope["path"]),
        "status": status,
        "bytes": size,
        "seconds": round(seconds, 4),
    }
    ACCESS.info("request", extra={"fields": fields})
