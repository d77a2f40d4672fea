"""The middleware around every request (it limits the size of the body, answers failures, counts
requests, adds the request ID and security headers, and writes the access log), and the metrics for
Prometheus at ``/metrics``: requests, latency, queues, batches, tokens.

The middleware is written directly for ASGI instead of with Starlette's ``BaseHTTPMiddleware``, so
that streams are not buffered and closed connections are noticed. The numbers of the queues are read
only when Prometheus requests ``/metrics``, so they cost the search no time.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from urllib.parse import quote

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serving.http.clients import KEY, Networks
from dragoman.serving.http.connection_limits import Guard
from dragoman.serving.http.messages import error_at
from dragoman.serving.http.refusals import FAILED, Refusal
from dragoman.serving.operate.log import ACCESS, request_id
from dragoman.serving.queue.queue import SearchQueue
from dragoman.serving.queue.worker import COUNTED

logger = logging.getLogger("dragoman")

DOWNLOADS = "/download_file/"
"""The beginning of the path of every download. The rest of such a path is secret: whoever knows it
can download the document."""

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
"""The Content-Security-Policy of the page. It allows only the server's own files, no inline scripts
and no frames, and no string may become HTML except the page's own templates. A ``blob:`` is a file
that the user gave to the page."""

HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(self), microphone=(self), geolocation=()"),
)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)


class Meters(Collector):
    """The metrics of one server for Prometheus."""

    def __init__(self, queues: Callable[[], Sequence[SearchQueue]]) -> None:
        """``queues``: a function that returns the queues of the runs that are being served."""
        self._queues = queues
        self._guard: Guard | None = None
        self._registry = CollectorRegistry()
        self._registry.register(self)
        counter = partial(Counter, registry=self._registry)
        self.requests = counter(
            "dragoman_requests_total", "Requests answered, by path and status.", ("path", "status")
        )
        self.seconds = Histogram(
            "dragoman_request_seconds",
            "Time from a request to the end of its answer.",
            ("path",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self.characters = counter(
            "dragoman_characters_total", "Characters of text that were translated.", ("run",)
        )
        self._key_requests = counter(
            "dragoman_key_requests_total",
            "Requests taken, by the holder of the API key.",
            ("holder",),
        )
        self._key_characters = counter(
            "dragoman_key_characters_total",
            "Characters of text that were translated, by the holder of the API key.",
            ("holder",),
        )
        self.under_way = Gauge(
            "dragoman_requests_under_way",
            "Requests that are being answered.",
            registry=self._registry,
        )
        self.gone = counter(
            "dragoman_clients_gone_total", "Requests whose client went away before the answer."
        )

    def count_request(self, client: str) -> None:
        """Count an accepted request of a client with a key. Clients without a key are not counted
        one by one, because the number of addresses has no limit."""
        if client.startswith(KEY):
            self._key_requests.labels(client.removeprefix(KEY)).inc()

    def count_characters(self, run: str, client: str, count: int) -> None:
        """Count characters of a client's text that a run translated."""
        self.characters.labels(run).inc(count)
        if client.startswith(KEY):
            self._key_characters.labels(client.removeprefix(KEY)).inc(count)

    def watch(self, guard: Guard) -> None:
        """Add the metrics of a server's connections."""
        self._guard = guard

    def text(self) -> bytes:
        """Return all metrics in the format of Prometheus."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Collect the metrics of each run's queue, and of connections that are not from proxies."""
        queues = self._queues()
        waiting = GaugeMetricFamily(
            "dragoman_waiting_sentences", "Sentences that wait.", labels=["run"]
        )
        rows = GaugeMetricFamily("dragoman_batch_rows", "Hypotheses under way now.", labels=["run"])
        for queue in queues:
            waiting.add_metric([queue.name], queue.waiting)
            rows.add_metric([queue.name], queue.rows)
        yield from (waiting, rows)
        for name, meaning in COUNTED.items():
            counter = CounterMetricFamily(f"dragoman_{name}", meaning, labels=["run"])
            for queue in queues:
                counter.add_metric([queue.name], queue.counters[name])
            yield counter
        if self._guard is None:
            return
        yield GaugeMetricFamily(
            "dragoman_connections", "Connections, those of proxies left out.", self._guard.open
        )
        closed = CounterMetricFamily(
            "dragoman_connections_closed", "Connections that the server cut.", labels=["reason"]
        )
        for reason, count in self._guard.closed.items():
            closed.add_metric([reason], count)
        yield closed


def path_for_log(path: str) -> str:
    """Return a path as the log shows it, without the secret part of a download."""
    return quote(f"{DOWNLOADS}-" if path.startswith(DOWNLOADS) else path, safe="/")[:200]


class BodyLimit:
    """Refuses a body that is too large. If Content-Length already shows this, the body is not read
    at all."""

    def __init__(self, app: ASGIApp, most_bytes: int, of_paths: Mapping[str, int]) -> None:
        """``most_bytes``: the limit in bytes. ``of_paths``: other limits for single paths."""
        self.app = app
        self._most_bytes = most_bytes
        self._of_paths = of_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection; the framework calls this method."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        size, length = 0, Headers(scope=scope).get("content-length", "0")
        most = self._of_paths.get(scope["path"], self._most_bytes)
        is_too_large = length.isdecimal() and int(length) > most

        async def count_bytes() -> Message:
            nonlocal size
            if is_too_large:
                raise Refusal("body_too_large", most=most)
            message = await receive()
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                if size > most:
                    raise Refusal("body_too_large", most=most)
            return message

        await self.app(scope, count_bytes, send)


class Failures:
    """Answers an unexpected exception as JSON, and logs it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection; the framework calls this method."""
        began = False

        async def send_noting(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            await self.app(scope, receive, send_noting)
        except Exception:  # an endpoint may fail with any exception
            if began or scope["type"] != "http":
                raise  # Half an answer is sent already: the server closes the connection.
            logger.exception("%s %s failed", scope["method"], path_for_log(scope["path"]))
            await JSONResponse(error_at(scope["path"], 500, FAILED), 500)(scope, receive, send)


HEAD = "dragoman.head"
"""The key in the scope that marks a HEAD request, which is passed on as GET."""

_ID = re.compile(r"[\w.:+/=-]{1,100}", re.ASCII)


class MeteredRequests:
    """Counts and times requests by the path of their endpoint, adds an ID and security headers to
    each response, and writes the access log. During shutdown, its responses announce that the
    server closes the connection. A HEAD request is answered like GET (RFC 9110, section 9.3.2), and
    uvicorn leaves out the body."""

    def __init__(
        self,
        app: ASGIApp,
        meters: Meters,
        is_closing: Callable[[], bool],
        proxies: Networks,
        *,
        access_log: bool,
    ) -> None:
        """``is_closing``: a function that returns True while the server is shutting down.
        ``proxies``: the addresses whose request IDs are accepted. uvicorn's
        ``ProxyHeadersMiddleware`` runs inside this middleware, and puts the client's own address
        into the scope."""
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
        host, _ = scope.get("client") or ("unknown", 0)
        identifier = Headers(scope=scope).get("x-request-id", "")
        if not (_ID.fullmatch(identifier) and host in self._proxies):
            identifier = secrets.token_hex(8)
        scope.setdefault("state", {})
        meters.under_way.inc()
        context = request_id.set(identifier)

        async def send_with_headers(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*HEADERS, (b"x-request-id", identifier.encode())]
                if self._is_closing():
                    headers.append((b"connection", b"close"))
                message = {**message, "headers": [*message.get("headers", ()), *headers]}
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - began
            request_id.reset(context)
            meters.under_way.dec()
            # The endpoint's path, not the requested one: the number of endpoints is limited.
            path = getattr(scope.get("route"), "path", "other")
            meters.requests.labels(path, str(status)).inc()
            meters.seconds.labels(path).observe(seconds)
            if self._access_log:
                _log(scope, identifier, status, size, seconds)


def _log(scope: Scope, given: str, status: int, size: int, seconds: float) -> None:
    """Write a line of the access log, without the query string of the request, which may contain
    text."""
    host, _ = scope.get("client") or ("unknown", 0)
    fields = {
        "request": given,
        "client": scope["state"].get("client", host),
        "address": host,
        "method": scope["method"],
        "path": path_for_log(scope["path"]),
        "status": status,
        "bytes": size,
        "seconds": round(seconds, 4),
    }
    ACCESS.info("request", extra={"fields": fields})
