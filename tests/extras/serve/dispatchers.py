"""What tests of the dispatcher need: a log of what happened, and hands on the worker processes."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any

from softsearch.extras.serve.dispatcher import Dispatcher
from softsearch.extras.serve.monitoring import Metrics
from tests.support.serving import stopped

LINES = ["one two three", "ten", "two cats", "four five six"]
Open = Callable[..., AbstractAsyncContextManager[Dispatcher]]


class Log(Metrics):
    """Remembers what happened."""

    def __init__(self) -> None:
        self.batches: list[int] = []  # lines
        self.tokens: list[int] = []
        self.waited: list[float] = []
        self.lines: dict[str, int] = {}
        self.deaths = 0

    def on_batch(self, model: str, waited: Any, tokens: int, seconds: float) -> None:
        assert model == "small"
        assert seconds > 0
        self.batches.append(len(waited))
        self.tokens.append(tokens)
        self.waited += waited

    def on_lines(self, model: str, outcome: str, count: int) -> None:
        assert model == "small"
        self.lines[outcome] = self.lines.get(outcome, 0) + count

    def on_death(self) -> None:
        self.deaths += 1


def pids(dispatcher: Dispatcher) -> list[int]:
    """The process ids of the warm workers."""
    return [worker.pid for worker in dispatcher._pool.workers if worker.pid is not None]


@contextmanager
def frozen(dispatcher: Dispatcher) -> Iterator[None]:
    """Stops the worker processes for a while, so that they are busy as soon as they get a batch."""
    with stopped(pids(dispatcher)):
        yield


async def until(condition: Callable[[], object]) -> None:
    """Waits until a condition holds; the test's time limit ends it if it never does."""
    while not condition():
        await asyncio.sleep(0.01)


def exists(pid: int) -> bool:
    """Whether there is such a process; a zombie is one, too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def text_of(dispatcher: Dispatcher, line: str) -> str:
    """The translation of a line by the bundle ``small``."""
    (found,) = await dispatcher.translate("small", [line])
    return found.text
