"""Limits on connections: their number, in total and from one address, and the time that a
connection may keep the server waiting.

uvicorn limits only the time that a connection may stay open between two requests. It would keep a
connection open for ever if its headers never end, or if its client does not read the answer. This
module adds these rules:

- a connection without a request, or whose headers do not end, is closed after a time limit;
- if there are too many connections, from one address or in total, a new one replaces the one that
  has waited longest without a request; a connection with a request in progress is not closed;
- the connection of a client that reads an answer too slowly, or leaves too much of it unread, is
  closed.

Measured with at most 1,024 open files: while one address opened 1,500 connections whose headers did
not end, the 99th percentile of ``/health`` over new connections from another address was 42 ms;
uvicorn alone answered none of these requests.

Trusted proxies have no limits: they hold the connections of many clients, and must limit such
clients themselves. Everything runs in the event loop; ``sweep`` is called every second.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import resource
import struct
import termios
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from dragoman.serving.http.clients import Networks, holder, plain
from dragoman.serving.http.limits import BACKLOG, LimitSettings
from dragoman.serving.http.refusals import Refusal

READING_SECONDS = 20.0
"""The number of seconds over which the reading rate of a client is measured. It is long, because
the operating system sends data in bursts."""
HEAD_BYTES = 16_384
"""The largest number of bytes in the headers of a request. Headers are read in the event loop, even
if the request is then refused; 12,000 headers in 60 kB took 24 ms."""
OWN_FILES = 32
"""The number of open files that are reserved for other uses than connections: libraries, listening
sockets, files of the page."""

LATE = "a request did not arrive in time"
CROWDED = "another connection needed the slot"
FULL = "there was no free slot"
UNREAD = "the answer was not read in time"


class Guard:
    """Counts all connections of a server, and closes those that break a limit."""

    def __init__(
        self,
        limits: LimitSettings,
        proxies: Networks,
        files: int = 1 << 20,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``files``: the number of files that this process may have open."""
        room = max(8, (files - OWN_FILES) // 2)
        self.most = min(limits.connections, room)
        self.most_each = min(limits.connections_each, max(1, self.most // 2))
        self.most_accepted = min(BACKLOG, room)
        self.limits = limits
        self.proxies = proxies
        self.clock = clock
        self.closed: Counter[str] = Counter()
        """The number of connections that were closed, by reason."""
        self._open: dict[str, dict[GuardedConnection, None]] = {}
        """Open connections by the holder of their address, or by the address of a proxy."""
        self.open = 0
        """The number of open connections of clients that are not proxies."""

    def protocol(self, **given: Any) -> GuardedConnection:
        """Make the protocol of a new connection; uvicorn calls this method."""
        return GuardedConnection(self, **given)

    def enters(self, connection: GuardedConnection) -> bool:
        """Register a new connection. Returns False if the server has too many connections and none
        of them can be closed for it."""
        own = self._open.get(connection.holder, {})
        if not connection.is_proxy:
            if len(own) >= self.most_each and not self._make_room(own):
                return False
            if self.open >= self.most and not self._make_room(self._strangers()):
                return False
            self.open += 1
        self._open.setdefault(connection.holder, {})[connection] = None
        return True

    def waits(self, connection: GuardedConnection) -> None:
        """Record that a connection has no request in progress."""
        connection.waits_since, connection.began_at = self.clock(), None

    def asks(self, connection: GuardedConnection) -> None:
        """Record that a connection has a request in progress, and that no more data is expected."""
        connection.waits_since = connection.began_at = None

    def leaves(self, connection: GuardedConnection) -> None:
        """Stop counting a connection that is closed or will be closed at once."""
        own = self._open.get(connection.holder, {})
        if connection in own:
            del own[connection]
            self.open -= not connection.is_proxy
            if not own:
                del self._open[connection.holder]

    def sweep(self) -> None:
        """Close connections whose request is late, or whose client reads its answer too slowly.
        Call this about every second."""
        now = self.clock()
        for own in list(self._open.values()):
            unread = []
            for connection in list(own):
                if connection.is_late(now):
                    self.close(connection, LATE)
                elif connection.is_unread(now):
                    self.close(connection, UNREAD)
                elif not connection.is_proxy:
                    unread.append(connection)
            self._cut(unread, self.limits.unread_bytes)
        self._cut(self._strangers(), 4 * self.limits.unread_bytes)

    # ---- inside

    def _strangers(self) -> list[GuardedConnection]:
        return [peer for peers in self._open.values() for peer in peers if not peer.is_proxy]

    def _make_room(self, connections: Iterable[GuardedConnection]) -> bool:
        """Close the connection that has waited longest for a request. Returns False if every
        connection has a request in progress."""
        waiting = [(since, peer) for peer in connections if (since := peer.waits_since) is not None]
        if not waiting:
            return False
        self.close(min(waiting, key=lambda both: both[0])[1], CROWDED)
        return True

    def close(self, connection: GuardedConnection, reason: str) -> None:
        """Close a connection, for one of the reasons at the top of this module (``LATE`` …)."""
        self.closed[reason] += 1
        if reason is LATE:  # The client gets a moment to read the reason.
            connection.end_politely()
            self.asks(connection)
        else:
            self.leaves(connection)
            connection.transport.abort()

    def _cut(self, connections: list[GuardedConnection], most: int) -> None:
        """Close connections, those with the most unread bytes first, until the ``connections`` have
        no more than ``most`` unread bytes in all."""
        sizes = {connection: connection.buffered for connection in connections}
        total = sum(sizes.values())
        for connection in sorted(sizes, key=lambda peer: -sizes[peer]):
            if total <= most:
                return
            total -= sizes[connection]
            self.close(connection, UNREAD)


class GuardedConnection(H11Protocol):
    """A connection with uvicorn's protocol that reports to the guard."""

    def __init__(
        self,
        guard: Guard,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._guard = guard
        self.holder = "unknown"
        self.is_proxy = False
        self.waits_since: float | None = None
        """The time since which it has no request; None while a request is in progress."""
        self.began_at: float | None = None
        """The time at which the first byte of a request arrived whose headers are not complete
        yet."""
        self._unread: tuple[float, int] | None = None
        """The time of the last measurement of its reading, and the unread bytes at that time."""

    # ---- called by asyncio and uvicorn

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.client is not None:
            self.client = (plain(self.client[0]), self.client[1])
            self.holder = holder(self.client[0])
            self.is_proxy = self.client[0] in self._guard.proxies
        if self._guard.enters(self):
            self._guard.waits(self)
        else:
            self._guard.close(self, FULL)

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.leaves(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.waits_since is not None and self.began_at is None:
            self.began_at = self._guard.clock()
        # uvicorn refuses long headers only if it gets them in pieces.
        for begin in range(0, len(data), HEAD_BYTES):
            if not self.transport.is_closing():
                super().data_received(data[begin : begin + HEAD_BYTES])
                self._note_request()

    def on_response_complete(self) -> None:
        self._guard.waits(self)
        super().on_response_complete()
        self._note_request()  # a request that came before the answer was complete

    # ---- called by the guard

    def is_late(self, now: float) -> bool:
        """Return True if the time limit for a request or its headers is over. Proxies have no time
        limit."""
        if self.is_proxy or self.waits_since is None or self.buffered:
            return False
        limits = self._guard.limits
        if self.began_at is not None:
            return now - self.began_at > limits.head_seconds
        return now - self.waits_since > limits.idle_seconds

    def is_unread(self, now: float) -> bool:
        """Return True if the client reads its answer too slowly.

        The rate is measured only while the server adds nothing to the unread bytes: while uvicorn
        waits for the client to read, or after the answer is complete.
        """
        is_fixed = self.flow.write_paused or self.waits_since is not None
        if not (self.buffered and (is_fixed or self.transport.is_closing())):
            self._unread = None
            return False
        unread = self.buffered + self._in_kernel()
        if self._unread is None:
            self._unread = now, unread
        since, before = self._unread
        if now - since < READING_SECONDS:
            return False
        self._unread = now, unread
        return before - unread < (now - since) * self._guard.limits.reading_rate

    @property
    def buffered(self) -> int:
        """The number of bytes of answers that wait in this process."""
        return self.transport.get_write_buffer_size()

    def end_politely(self) -> None:
        """Answer an incomplete request with the reason for its refusal, and close the
        connection."""
        sends_body = self.cycle is not None and self.cycle.more_body
        if self.began_at is not None and not sends_body:
            seconds = self._guard.limits.head_seconds
            refusal = Refusal("late_headers", seconds=seconds)
            body = json.dumps(refusal.body).encode()
            self.transport.write(
                b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n"
                b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
                % (len(body), body)
            )
        self.transport.close()

    # ---- inside

    def _note_request(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._guard.asks(self)

    def _in_kernel(self) -> int:
        """Return the number of bytes that the operating system has accepted and the client has not
        received."""
        number = self.transport.get_extra_info("socket").fileno()
        with contextlib.suppress(OSError):
            said = fcntl.ioctl(number, termios.TIOCOUTQ, struct.pack("i", 0))
            return int(struct.unpack("i", said)[0])
        return 0


def open_files() -> int:
    """Raise the limit on open files of this process as far as the system allows, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft
