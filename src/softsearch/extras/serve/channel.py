"""Messages between two processes over a pipe; threads read and write it, so neither process waits for the other."""

import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

_END = object()


class Channel:
    """One end of a pipe.

    Args:
        pipe: the end.
        receive: called with each message of the other process, in a thread.
        ended: called in this thread when the other process has ended.
    """

    def __init__(self, pipe: Connection, receive: Callable[[Any], None], ended: Callable[[], None]) -> None:
        self._pipe, self._receive, self._ended = pipe, receive, ended
        self._outbox: SimpleQueue[Any] = SimpleQueue()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: Any) -> None:
        """Sends a message; one to a process that has ended is lost."""
        self._outbox.put(message)

    def close(self) -> None:
        """Waits until all messages are sent."""
        self._outbox.put(_END)
        self._writer.join()

    def _write(self) -> None:
        with suppress(OSError):
            while (message := self._outbox.get()) is not _END:
                self._pipe.send(message)

    def _read(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._receive(self._pipe.recv())
        self._outbox.put(_END)
        self._ended()
