"""What the HTTP processes of a server have in common: translated files, and the metrics of each."""

import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from secrets import token_urlsafe
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

FILE_SECONDS = 1800.0  # after which a file is gone, as in LibreTranslate
_BYTES = 64 << 20  # of all files; the oldest go first

Shared = Callable[..., Awaitable[Any]]  # calls a method of `State` with arguments, in whichever process the state is


class _File(NamedTuple):
    content: bytes
    until: float  # s, of time.monotonic


class State:
    """The state itself. It is in the main process, where one thread for each HTTP process may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, _File] = {}
        self._timer: threading.Timer | None = None  # drops the oldest files in time, as long as there are any
        self._metrics: dict[int, Sequence[Metric]] = {}

    def keep_file(self, name: str, content: bytes) -> str:
        """Keeps a file; returns the name to get it by: a secret, a dot, and its name."""
        key = f"{token_urlsafe(24)}.{name}"
        with self._lock:
            self._files[key] = _File(content, time.monotonic() + FILE_SECONDS)
            self._drop_old()
            while sum(len(file.content) for file in self._files.values()) > _BYTES and len(self._files) > 1:
                self._files.pop(next(iter(self._files)))
        return key

    def file(self, key: str) -> bytes | None:
        """Returns a file, to whoever knows its name; None if it is too old, or there are too many."""
        with self._lock:
            self._drop_old()
            return self._files[key].content if key in self._files else None

    def _drop_old(self) -> None:
        now = time.monotonic()
        self._files = {key: file for key, file in self._files.items() if file.until > now}
        if self._timer is None and (oldest := next(iter(self._files.values()), None)):
            self._timer = threading.Timer(oldest.until - now, self._on_time)
            self._timer.daemon = True  # it does not keep the process alive
            self._timer.start()

    def _on_time(self) -> None:
        with self._lock:
            self._timer = None
            self._drop_old()

    def report(self, process: int, metrics: Sequence[Metric]) -> None:
        """Sets the metrics of a process."""
        with self._lock:
            self._metrics[process] = metrics

    def forget(self, process: int) -> None:
        """Drops the metrics of a process that has ended."""
        with self._lock:
            self._metrics.pop(process, None)

    def all_metrics(self, process: int, metrics: Sequence[Metric]) -> bytes:
        """Returns the metrics of all processes, these of one of them being new, in the format of Prometheus."""
        self.report(process, metrics)
        merged: dict[str, Metric] = {}
        with self._lock:
            for _, families in sorted(self._metrics.items()):
                for family in families:
                    empty = Metric(family.name, family.documentation, family.type)
                    merged.setdefault(family.name, empty).samples += family.samples
        registry = CollectorRegistry()
        registry.register(_Found([*merged.values()]))
        return generate_latest(registry)


class _Found(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Sequence[Metric]:
        """Returns the metrics for a registry."""
        return self._families


def of_this_process(state: State) -> Shared:
    """Returns the caller of a state in the same process."""

    async def call(method: Callable[..., Any], *arguments: Any) -> Any:
        return method(state, *arguments)

    return call
