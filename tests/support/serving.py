"""The server as users run it: `softsearch serve` in a process of its own, read by its log."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden"
BUNDLE = GOLDEN / "bundle"
SECONDS = 60  # that a test waits for what must happen


class Served:
    """A running server."""

    def __init__(self, *arguments: object) -> None:
        self.events: list[dict[str, Any]] = []  # the lines of the log
        self._news = threading.Condition()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "softsearch", "serve", "--port", "0", *map(str, arguments)],
            stderr=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", int(self.wait("listening")["port"])

    @property
    def url(self) -> str:
        return "http://{}:{}".format(*self.address)

    def wait(self, event: str, count: int = 1, **facts: object) -> dict[str, Any]:
        """The log line of an event with these facts, of the ``count``-th one, when there is one."""
        wanted = {"event": event, **facts}

        def found() -> list[dict[str, Any]]:
            return [line for line in self.events if wanted.items() <= line.items()]

        with self._news:
            assert self._news.wait_for(lambda: len(found()) >= count, SECONDS), (wanted, self.events[-20:])
            return found()[count - 1]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends a signal, and returns the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(SECONDS)
        self._reader.join(SECONDS)
        return code

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            for line in stream:
                with self._news:
                    self.events.append(json.loads(line) if line.startswith(b"{") else {"event": line.decode()})
                    self._news.notify_all()


@contextmanager
def serving(*arguments: object) -> Iterator[Served]:
    """A server that is ready; it ends with the block."""
    served = Served(*arguments)
    try:
        served.wait("ready")
        yield served
    finally:
        served.stop(signal.SIGKILL)


def eventually(check: Any) -> None:
    """Waits until a check holds."""
    end = time.monotonic() + SECONDS
    while not check():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextmanager
def stopped(pids: Sequence[int], end: signal.Signals = signal.SIGCONT) -> Iterator[None]:
    """Processes do nothing until the end of the block, and go on or are killed then."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):  # it has been killed
                os.kill(pid, end)
