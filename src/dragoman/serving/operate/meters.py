"""What Prometheus reads at ``/metrics``: requests, latency, queues, batches, tokens.

Queues are read when Prometheus asks, so counting costs the search nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dragoman.serving.http.api_keys import KEY
from dragoman.serving.http.connection_limits import Guard
from dragoman.serving.queue.queue import SearchQueue

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)


class Meters:
    """The metrics of one server."""

    def __init__(self, queues: Callable[[], Sequence[SearchQueue]]) -> None:
        """``queues``: those of the runs that are served now."""
        self._registry = CollectorRegistry()
        self._registry.register(_Queues(queues))
        self.requests = Counter(
            "dragoman_requests_total",
            "Requests answered, by path and status.",
            ("path", "status"),
            registry=self._registry,
        )
        self.seconds = Histogram(
            "dragoman_request_seconds",
            "Time from a request to the end of its answer.",
            ("path",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self.characters = Counter(
            "dragoman_characters_total",
            "Characters of text that were translated.",
            ("run",),
            registry=self._registry,
        )
        self._key_requests = Counter(
            "dragoman_key_requests_total",
            "Requests taken, by the holder of the API key.",
            ("holder",),
            registry=self._registry,
        )
        self._key_characters = Counter(
            "dragoman_key_characters_total",
            "Characters of text that were translated, by the holder of the API key.",
            ("holder",),
            registry=self._registry,
        )
        self.under_way = Gauge(
            "dragoman_requests_under_way",
            "Requests that are being answered.",
            registry=self._registry,
        )
        self.gone = Counter(
            "dragoman_clients_gone_total",
            "Requests whose client went away before the answer.",
            registry=self._registry,
        )

    def count_request(self, client: str) -> None:
        """A request was taken. Addresses are not told apart: there is no end of them."""
        if client.startswith(KEY):
            self._key_requests.labels(client.removeprefix(KEY)).inc()

    def count_characters(self, run: str, client: str, count: int) -> None:
        """So many characters of a client's text were translated by a run."""
        self.characters.labels(run).inc(count)
        if client.startswith(KEY):
            self._key_characters.labels(client.removeprefix(KEY)).inc(count)

    def watch(self, guard: Guard) -> None:
        """Tell of a server's connections too."""
        self._registry.register(_Connections(guard))

    def text(self) -> bytes:
        """All metrics as Prometheus reads them."""
        return generate_latest(self._registry)


class _Connections(Collector):
    """Those of strangers, read when asked."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "dragoman_connections", "Connections, those of proxies left out.", self._guard.open
        )
        closed = CounterMetricFamily(
            "dragoman_connections_closed", "Connections that the server cut.", labels=["reason"]
        )
        for reason, count in self._guard.closed.items():
            closed.add_metric([reason], count)
        yield closed


class _Queues(Collector):
    """The queue of each run, read when asked."""

    def __init__(self, queues: Callable[[], Sequence[SearchQueue]]) -> None:
        self._queues = queues

    def collect(self) -> Iterator[Metric]:
        gauges: list[tuple[str, str, Callable[[SearchQueue], float]]] = [
            ("waiting_sentences", "Sentences that wait.", lambda queue: queue.waiting),
            ("batch_rows", "Hypotheses under way now.", lambda queue: queue.rows),
        ]
        counters: list[tuple[str, str, Callable[[SearchQueue], float]]] = [
            ("sentences", "Sentences translated.", lambda queue: queue.counters.sentences),
            ("tokens", "Tokens of translations given.", lambda queue: queue.counters.tokens),
            ("steps", "Steps of the search.", lambda queue: queue.counters.steps),
            (
                "step_rows",
                "Hypotheses, summed over the steps: over steps, the mean batch.",
                lambda queue: queue.counters.rows,
            ),
            (
                "given_up_sentences",
                "Sentences under way whose client went away.",
                lambda queue: queue.counters.given_up,
            ),
            ("model_failures", "Failures of a model.", lambda queue: queue.counters.failures),
        ]
        for name, meaning, value in gauges:
            gauge = GaugeMetricFamily(f"dragoman_{name}", meaning, labels=["run"])
            for queue in self._queues():
                gauge.add_metric([queue.name], value(queue))
            yield gauge
        for name, meaning, value in counters:
            counter = CounterMetricFamily(f"dragoman_{name}", meaning, labels=["run"])
            for queue in self._queues():
                counter.add_metric([queue.name], value(queue))
            yield counter
