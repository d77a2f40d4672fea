"""Answers as gzip for clients that take it (RFC 9110, section 8.4.1); not events or small ones.

Large answers are compressed in a thread, so that the event loop goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import zlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SMALLEST = 1_000
"""Bytes; less fits into one packet as it is."""
LARGE = 64_000
"""Bytes; more takes longer than a millisecond."""
LEVEL = 5
"""More takes twice the time for some percent."""

_TYPES = (
    "application/javascript",
    "application/json",
    "application/manifest+json",
    "image/svg+xml",
    "text/css",
    "text/html",
    "text/javascript",
    "text/plain",
)


class Rendered:
    """An answer that stays the same: its bytes are compressed once, whoever asks."""

    def __init__(
        self, body: bytes, media_type: str = "application/json", cache_control: str = "no-cache"
    ) -> None:
        """``cache_control``: the header that tells browsers how long they may keep it. Making one
        takes a moment, so make it beside the event loop."""
        self._media_type = media_type
        self._headers = {
            "etag": f'"{hashlib.sha256(body).hexdigest()[:32]}"',
            "cache-control": cache_control,
        }
        self._body = body
        is_packed = media_type in _TYPES and len(body) >= SMALLEST
        self._packed = gzip.compress(body, LEVEL) if is_packed else None

    def to(self, http: Request) -> Response:
        """The answer to a request: as gzip where its client takes that."""
        body, headers = self._body, self._headers
        if self._packed is not None and _takes_gzip(http.headers.get("accept-encoding", "")):
            etag = f"W/{headers['etag']}"  # the same text in other bytes
            packed = {"etag": etag, "content-encoding": "gzip", "vary": "accept-encoding"}
            body, headers = self._packed, headers | packed
        return Response(body, media_type=self._media_type, headers=headers)


class Compressed:
    """Compresses what a client takes compressed."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Called by the framework."""
        if scope["type"] == "http":
            takes = _takes_gzip(Headers(scope=scope).get("accept-encoding", ""))
            await self.app(scope, receive, _Answer(send, takes).send)
        else:
            await self.app(scope, receive, send)


class _Answer:
    """One answer on its way out."""

    def __init__(self, send: Send, takes_gzip: bool) -> None:
        self._send = send
        self._takes_gzip = takes_gzip
        self._start: Message | None = None
        """Held back until it is known how long the body is."""
        self._stream: zlib._Compress | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            if not _is_text(headers):
                await self._send(message)
                return
            headers.add_vary_header("accept-encoding")
            small = int(headers.get("content-length", SMALLEST)) < SMALLEST
            if self._takes_gzip and message["status"] in (200, 400) and not small:
                self._start = message
            else:
                await self._send(message)
        elif self._start is not None:
            await self._begin(self._start, message)
            self._start = None
        elif self._stream is not None:
            await self._send({**message, "body": self._next(message)})
        else:
            await self._send(message)

    async def _begin(self, start: Message, first: Message) -> None:
        headers = MutableHeaders(raw=start["headers"])
        headers["content-encoding"] = "gzip"
        if (etag := headers.get("etag", "")).startswith('"'):
            headers["etag"] = f"W/{etag}"  # the same text in other bytes
        if first.get("more_body", False):
            del headers["content-length"]
            self._stream = zlib.compressobj(LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
            body = self._next(first)
        else:
            body = first.get("body", b"")
            if len(body) > LARGE:
                body = await asyncio.to_thread(gzip.compress, body, LEVEL)
            else:
                body = gzip.compress(body, LEVEL)
            headers["content-length"] = str(len(body))
        await self._send(start)
        await self._send({**first, "body": body})

    def _next(self, message: Message) -> bytes:
        assert self._stream is not None
        body = self._stream.compress(message.get("body", b""))
        return body if message.get("more_body", False) else body + self._stream.flush()


def _is_text(headers: Headers) -> bool:
    kind = headers.get("content-type", "").partition(";")[0].strip()
    return kind in _TYPES and "content-encoding" not in headers


def _takes_gzip(accepted: str) -> bool:
    """Whether a header Accept-Encoding names gzip, and not with weight 0."""
    for word in accepted.lower().split(","):
        name, _, weight = word.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
