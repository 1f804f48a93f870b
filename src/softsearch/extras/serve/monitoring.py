"""Monitoring: a log of JSON lines without the text of requests, and metrics for Prometheus."""

import json
import logging
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, PlatformCollector, ProcessCollector

from softsearch.errors import traceback_of

LOGGER = logging.getLogger("softsearch.server")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class JsonLines(logging.Formatter):
    """Formats a record and its ``facts`` as printable ASCII, whatever a client sent.

    Args:
        process: the number of an HTTP process, a fact of all its records; 0 for the only one.
    """

    def __init__(self, process: int = 0) -> None:
        super().__init__()
        self._facts = {"process": process} if process else {}

    def format(self, record: logging.LogRecord) -> str:
        """Formats a record as one line of JSON."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **self._facts,
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[1]:
            line["traceback"] = traceback_of(record.exc_info[1])
        # JSON escapes everything except ASCII, and all control characters except DEL.
        return json.dumps(line, default=str).replace("\x7f", "\\u007f")


class Seldom(logging.Filter):
    """Passes messages of asyncio at most once per second: without file handles it logs thousands of them."""

    _last = ("", 0.0)

    def filter(self, record: logging.LogRecord) -> bool:
        """Tells whether to pass a message."""
        if record.name != "asyncio":
            return True
        message, (before, when) = record.getMessage().partition("\n")[0], self._last
        passes = message != before or record.created - when >= 1
        if passes:
            self._last = message, record.created
        return passes


def log_to_stderr(process: int = 0) -> None:
    """Writes all records of this process as JSON lines, including those of uvicorn and Python warnings.

    Args:
        process: the number of an HTTP process; 0 for the only one.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(process))
    handler.addFilter(Seldom())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    logging.captureWarnings(capture=True)
    logging.raiseExceptions = False  # a closed standard error must not stop the server
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # we log start and stop ourselves


def log_event(event: str, *, level: int = logging.INFO, exc_info: BaseException | None = None, **facts: object) -> None:
    """Logs an event and facts about it."""
    LOGGER.log(level, event, extra={"facts": facts}, exc_info=exc_info)


class Metrics:
    """An HTTP process's counters, in a separate registry; clients cannot add values to labels.

    Args:
        process: the number of the process, a label of all its metrics; 0 for the only one, whose metrics lack it.
    """

    def __init__(self, process: int = 0) -> None:
        self.process = process
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"softsearch_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, label: str, buckets: Sequence[float] = _SECONDS) -> Histogram:
            return Histogram(f"softsearch_{name}", text, [label], buckets=buckets, registry=registry)

        self._requests = counter("requests", "Answered requests", "route", "status")
        self._request_seconds = histogram("request_seconds", "Time of requests", "route")
        self._characters = counter("characters", "Characters sent in requests", "model")
        self._lines = counter("lines", "Sentences by outcome: done, failed, dropped or lost", "model", "outcome")
        self._waiting_seconds = histogram("waiting_seconds", "Time of sentences in the queue", "model")
        self._batch_seconds = histogram("batch_seconds", "Time of batches in a worker", "model")
        self._batch_lines = histogram("batch_lines", "Sentences of batches", "model", _SIZES)
        self._batch_tokens = counter("batch_tokens", "Source tokens of batches, padding included", "model")
        self._restarts = counter("worker_restarts", "Worker processes that died and were replaced")

    def watch(self, name: str, text: str, read: Callable[[], int]) -> None:
        """Adds a number that is read whenever metrics are requested."""
        Gauge(f"softsearch_{name}", text, registry=self._registry).set_function(read)

    def on_request(self, route: str, status: int, seconds: float) -> None:
        """Counts an answered request; ``route`` is its template."""
        self._requests.labels(route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def on_text(self, model: str, characters: int) -> None:
        """Counts the text of a request."""
        self._characters.labels(model).inc(characters)

    def on_batch(self, model: str, waited: Sequence[float], tokens: int, seconds: float) -> None:
        """Counts an answered batch: waiting times of its lines, tokens with padding, and its own time."""
        for wait in waited:
            self._waiting_seconds.labels(model).observe(wait)
        self._batch_seconds.labels(model).observe(seconds)
        self._batch_lines.labels(model).observe(len(waited))
        self._batch_tokens.labels(model).inc(tokens)

    def on_lines(self, model: str, outcome: str, count: int) -> None:
        """Counts ended lines: ``done``, ``failed``, ``dropped`` before they began (deadline, client left), ``lost``."""
        self._lines.labels(model, outcome).inc(count)

    def on_death(self) -> None:
        """Counts a worker process that died and is replaced."""
        self._restarts.inc()

    def collected(self) -> list[Metric]:
        """Returns all metrics as they are now."""
        families = [*self._registry.collect()]
        if self.process:
            label = {"process": str(self.process)}
            for family in families:
                family.samples = [sample._replace(labels=sample.labels | label) for sample in family.samples]
        return families
