"""Every request: counted and timed for the meters, with an id, the headers of every answer and a
line in the log."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serving.http.addresses import Networks
from dragoman.serving.http.middleware import HEADERS, shown_path
from dragoman.serving.operate.log import ACCESS, request_id
from dragoman.serving.operate.meters import Meters

_ID = re.compile(r"[\w.:+/=-]{1,100}", re.ASCII)


class MeteredRequests:
    """Counts requests and times them, by the path of their endpoint; gives each an id, the headers
    of every answer, and a line in the log if wanted. While the server stops it tells clients that
    the connection ends."""

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
