"""The metrics for Prometheus at ``/metrics``: requests, latency, queues, batches, tokens.

The numbers of the queues are read only when Prometheus requests ``/metrics``, so they cost the
search no time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dragoman.serving.http.clients import KEY
from dragoman.serving.http.connection_limits import Guard
from dragoman.serving.queue.queue import SearchQueue
from dragoman.serving.queue.worker import COUNTED

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
