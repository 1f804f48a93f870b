"""The main process of a server with several HTTP processes, as each of these knows it."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum, auto
from multiprocessing.connection import Connection
from socket import socket
from typing import Any, NamedTuple

from softsearch.extras.serve.channel import Channel
from softsearch.extras.serve.monitoring import Metrics
from softsearch.extras.serve.shared_state import State

_REPORT_SECONDS = 1.0  # between two reports of metrics


class Order(Enum):
    """What the main process orders after a signal, which only it obeys."""

    RELOAD = auto()
    STOP = auto()
    HURRY = auto()  # after STOP: answer 503 to what is not done


class Call(NamedTuple):
    """A call of the shared state; the answer comes back in order, as `Answer`."""

    method: Callable[..., Any]
    arguments: tuple[Any, ...]


class Answer(NamedTuple):
    """What the call returned."""

    value: Any


class Ready(NamedTuple):
    """The models are open; with facts for the log."""

    facts: Mapping[str, Any]


class Failed(NamedTuple):
    """The process cannot serve."""

    error: Exception


class MainProcess:
    """The main process, from one of its HTTP processes; belongs to the running event loop.

    Args:
        pipe: leads to the main process.
        number: of this process, from 1.
        listener: the socket of this process.
        replaces: whether this process replaces one that died.
    """

    def __init__(self, pipe: Connection, number: int, listener: socket, *, replaces: bool) -> None:
        self.number, self.listener, self.replaces = number, listener, replaces
        self._loop = asyncio.get_running_loop()
        self._obey: Callable[[Order], None] | None = None
        self._early: list[Order] = []  # orders before this process can obey
        self._waiting: deque[asyncio.Future[Any]] = deque()

        def receive(message: Order | Answer) -> None:
            with suppress(RuntimeError):  # the event loop is closed
                self._loop.call_soon_threadsafe(self._take, message)

        self._channel = Channel(pipe, receive, lambda: receive(Order.STOP))

    def begin(self, obey: Callable[[Order], None], metrics: Metrics) -> None:
        """Obeys orders from now on, and reports metrics; if the main process dies, that is an order to stop."""
        self._obey = obey
        for order in self._early:
            obey(order)
        self._reports = self._loop.create_task(self._report(metrics))

    def tell(self, message: Ready | Failed) -> None:
        """Tells the main process something."""
        self._channel.send(message)

    async def call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a method of the shared state."""
        future = self._loop.create_future()
        self._waiting.append(future)
        self._channel.send(Call(method, arguments))
        return await future

    def close(self) -> None:
        """Waits until the main process has been told everything."""
        self._channel.close()

    def _take(self, message: Order | Answer) -> None:
        if isinstance(message, Answer):
            if not (future := self._waiting.popleft()).done():  # done: its client has left
                future.set_result(message.value)
        elif self._obey:
            self._obey(message)
        else:
            self._early.append(message)

    async def _report(self, metrics: Metrics) -> None:
        while True:
            await self.call(State.report, self.number, metrics.collected())
            await asyncio.sleep(_REPORT_SECONDS)
