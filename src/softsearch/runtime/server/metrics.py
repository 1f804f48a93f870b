"""Metrics in Prometheus' format; labels have few values, none of which a client can invent."""

from collections.abc import Callable, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from softsearch.runtime.server.observer import Observer

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics(Observer):
    """The server's counters, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"softsearch_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
            return Histogram(f"softsearch_{name}", text, labels, buckets=buckets, registry=registry)

        self._requests = counter("requests", "Requests that have been answered", "route", "status")
        self._request_seconds = histogram("request_seconds", "Time of requests", _SECONDS, "route")
        self._characters = counter("characters", "Characters that requests sent", "model")
        self._lines = counter(
            "lines", "Sentences, by how they ended: done, failed, dropped or lost", "model", "outcome"
        )
        self._waiting_seconds = histogram("waiting_seconds", "Time of sentences in the queue", _SECONDS, "model")
        self._batch_seconds = histogram("batch_seconds", "Time of batches in a worker", _SECONDS, "model")
        self._batch_lines = histogram("batch_lines", "Sentences of batches", _SIZES, "model")
        self._batch_tokens = counter("batch_tokens", "Source tokens of batches, padding included", "model")
        self._restarts = counter("worker_restarts", "Worker processes that died and were replaced")

    def watch(self, *, queue: Callable[[], int], workers: Callable[[], int]) -> None:
        """Reads the numbers of sentences that wait and of workers that are warm whenever metrics are asked for."""
        for name, text, read in (("queue_lines", "Sentences that wait", queue), ("workers", "Warm workers", workers)):
            Gauge(f"softsearch_{name}", text, registry=self.registry).set_function(read)

    def on_request(self, route: str, status: int, seconds: float) -> None:
        """A request has been answered; ``route`` is its template."""
        self._requests.labels(route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def on_text(self, model: str, characters: int) -> None:
        """A request has sent text."""
        self._characters.labels(model).inc(characters)

    def on_batch(self, model: str, waited: Sequence[float], tokens: int, seconds: float) -> None:
        """See :class:`Observer`."""
        for wait in waited:
            self._waiting_seconds.labels(model).observe(wait)
        self._batch_seconds.labels(model).observe(seconds)
        self._batch_lines.labels(model).observe(len(waited))
        self._batch_tokens.labels(model).inc(tokens)

    def on_lines(self, model: str, outcome: str, count: int) -> None:
        """See :class:`Observer`."""
        self._lines.labels(model, outcome).inc(count)

    def on_death(self) -> None:
        """See :class:`Observer`."""
        self._restarts.inc()

    def text(self) -> bytes:
        """All metrics as Prometheus reads them."""
        return generate_latest(self.registry)
