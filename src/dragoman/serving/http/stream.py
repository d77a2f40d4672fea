"""Answers that are sent in parts as soon as they are known: server-sent events.

https://html.spec.whatwg.org/multipage/server-sent-events.html. Each event has a name and one line
of JSON. If the client disconnects, the work for the stream is cancelled.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.base.errors import SearchError
from dragoman.serving.http.connection import while_connected
from dragoman.serving.http.refusals import FAILED, Refusal, unsearchable

logger = logging.getLogger("dragoman")

Part = TypeVar("Part")

HEARTBEAT_SECONDS = 15.0
"""While there is no event to send, the server sends a comment at this interval, because proxies
close silent connections."""


def event(name: str, data: str) -> bytes:
    """Encode one event; ``data`` is JSON without a line break."""
    return f"event: {name}\ndata: {data}\n\n".encode()


def event_of(name: str, values: dict[str, Any]) -> bytes:
    return event(name, json.dumps(values, ensure_ascii=False, allow_nan=False))


def error_event(_: int, body: dict[str, Any]) -> bytes:
    """Encode the error event that ends a stream."""
    return event_of("error", body)


async def until(seconds: float, parts: AsyncGenerator[Part, None]) -> AsyncGenerator[Part, None]:
    """Yield from ``parts`` until a time limit is over, counted in seconds from the first call.
    Raises TimeoutError.

    ``asyncio.timeout`` around the whole loop would not work: it would apply only to the task that
    takes the first part.
    """
    deadline = asyncio.get_running_loop().time() + seconds
    try:
        while True:
            async with asyncio.timeout_at(deadline):
                try:
                    part = await anext(parts)
                except StopAsyncIteration:
                    return
            yield part
    finally:
        await parts.aclose()


class EventStream(Response):
    """A response that sends the items of ``parts`` until they end or the client disconnects."""

    def __init__(
        self,
        parts: AsyncGenerator[bytes, None],
        at_end: Callable[[], Awaitable[None]],
        seconds: float,
        error: Callable[[int, dict[str, Any]], bytes] = error_event,
    ) -> None:
        """``at_end`` is called once, however the stream ends. ``seconds``: the time limit; after
        twice that time, the connection of a client that has not read everything is closed.
        ``error``: a function that makes the event of an error from its status and its body."""
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(headers=headers, media_type="text/event-stream")
        del self.headers["content-length"]
        self._parts = _event_stream(parts, seconds, error)
        self._at_end = at_end
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events; the framework calls this method."""
        try:
            async with asyncio.timeout(2 * self._seconds):
                await while_connected(receive, self._send(send))
        except TimeoutError:
            logger.warning("a client read its stream too slowly and was cut off")
        except ClientDisconnect:
            pass
        finally:
            await self._at_end()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        following = asyncio.ensure_future(anext(self._parts, None))
        try:
            while True:
                done, _ = await asyncio.wait({following}, timeout=HEARTBEAT_SECONDS)
                if not done:
                    await send(_body(b": still here\n\n"))
                    continue
                part = following.result()
                if part is None:
                    break
                await send(_body(part))
                following = asyncio.ensure_future(anext(self._parts, None))
        finally:
            if not following.done():
                following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await self._parts.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _event_stream(
    parts: AsyncGenerator[bytes, None],
    seconds: float,
    error_event: Callable[[int, dict[str, Any]], bytes],
) -> AsyncGenerator[bytes, None]:
    """Yield the parts of a stream. A failure is reported as an event, because the status of the
    response has already been sent."""
    try:
        async with aclosing(until(seconds, parts)) as timed:
            async for part in timed:
                yield part
    except TimeoutError:
        refusal = Refusal("too_slow", seconds=seconds)
        yield error_event(refusal.status, refusal.body)
    except Refusal as refusal:
        yield error_event(refusal.status, refusal.body)
    except SearchError as error:
        yield error_event(400, unsearchable(error).body)
    except Exception:
        logger.exception("a stream failed")
        yield error_event(500, FAILED)


def _body(part: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": part, "more_body": True}
