"""The middleware around every request: limit of the body's size, failures, metrics, request ID,
security headers, and access log.

It is plain ASGI, so that streams are not held back and a closed connection is noticed.
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
"""The path of downloads; the rest of such a path is the key to a client's document."""

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
"""The Content-Security-Policy: only own files, nothing inline, no frames, and no string becomes
HTML except the page's own templates. A ``blob:`` is a file that a user gave to the page."""

HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(self), microphone=(self), geolocation=()"),
)


def shown_path(path: str) -> str:
    """A path as the log shows it."""
    return quote(f"{DOWNLOADS}-" if path.startswith(DOWNLOADS) else path, safe="/")[:200]


class BodyLimit:
    """Refuses a body that is too large, without reading it if Content-Length gives its size."""

    def __init__(self, app: ASGIApp, most_bytes: int, of_paths: Mapping[str, int]) -> None:
        """``of_paths`` are the limits of single paths, in bytes."""
        self.app = app
        self._most_bytes = most_bytes
        self._of_paths = of_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection; the framework calls this method."""
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
    """Answers an unexpected exception as JSON, and logs it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection; the framework calls this method."""
        began = False

        async def noted(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except Exception:  # an endpoint may fail with any exception
            if began or scope["type"] != "http":
                raise  # Half an answer is sent already: the server closes the connection.
            logger.exception("%s %s failed", scope["method"], shown_path(scope["path"]))
            await JSONResponse(shaped(scope["path"], 500, FAILED), 500)(scope, receive, send)


HEAD = "dragoman.head"
"""A key that marks a HEAD request in its scope, although its method says GET."""

_ID = re.compile(r"[\w.:+/=-]{1,100}", re.ASCII)


class MeteredRequests:
    """Counts and times requests by the path of their endpoint; adds an ID and security headers to
    each, and writes the access log. During shutdown it tells clients that the connection ends. HEAD
    is answered as GET (RFC 9110, section 9.3.2); uvicorn leaves the body out."""

    def __init__(
        self,
        app: ASGIApp,
        meters: Meters,
        is_closing: Callable[[], bool],
        proxies: Networks,
        *,
        access_log: bool,
    ) -> None:
        """``is_closing``: returns True while the server stops. ``proxies``: the addresses whose
        request IDs are accepted. uvicorn's ``ProxyHeadersMiddleware`` runs inside of this one, and
        puts the client's own address into the scope."""
        self.app = app
        self._proxies = proxies
        self._meters = meters
        self._is_closing = is_closing
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection; the framework calls this method."""
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
            # The endpoint's path, not the requested one: the number of endpoints is limited.
            path = getattr(scope.get("route"), "path", "other")
            meters.requests.labels(path, str(status)).inc()
            meters.seconds.labels(path).observe(seconds)
            if self._access_log:
                _log(scope, given, status, size, seconds)

    def _id_of(self, scope: Scope) -> str:
        """The ID that a trusted proxy gave the request, or a new one."""
        given = Headers(scope=scope).get("x-request-id", "")
        host, _ = scope.get("client") or ("unknown", 0)
        is_taken = _ID.fullmatch(given) and host in self._proxies
        return given if is_taken else secrets.token_hex(8)


def _log(scope: Scope, given: str, status: int, size: int, seconds: float) -> None:
    """Write the access log, without the query string, which may contain text."""
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
