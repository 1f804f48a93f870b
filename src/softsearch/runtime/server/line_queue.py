"""Requests, and the queue of their lines that wait: its limits, and the choice of lines that share a batch."""

import asyncio
import math
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from softsearch.errors import ConfigError, SoftsearchError

Kind = Literal["translate", "score"]


@dataclass(frozen=True)
class Group:
    """What lines have in common that may share a batch."""

    key: str  # equal if and only if the rest is
    kind: Kind
    model: str
    options: dict[str, Any]  # keywords of Translator.translate
    batch_tokens: int  # the most of a batch, padding included


class Request:
    """The lines of a call and the results that are known."""

    __slots__ = ("future", "lines", "missing", "results")

    def __init__(
        self,
        group: Group,
        texts: Sequence[str],
        others: Sequence[str] | None,
        tokens: Sequence[int],
        future: "asyncio.Future[list[Any]]",
        now: float,
    ) -> None:
        self.future, self.missing = future, len(texts)
        self.results: list[Any] = [None] * len(texts)
        self.lines = [
            Line(group, self, index, text, None if others is None else others[index], tokens[index], now)
            for index, text in enumerate(texts)
        ]

    def fail(self, error: SoftsearchError) -> None:
        """Ends the request with an error, unless it has ended."""
        if not self.future.done():
            self.future.set_exception(error)

    def answer(self, index: int, result: Any) -> None:
        """Takes the result of a line; the last one ends the request."""
        self.results[index] = result
        self.missing -= 1
        if not self.missing and not self.future.done():
            self.future.set_result(self.results)


@dataclass(slots=True, eq=False)
class Line:
    """A line of a request; ``other`` is its target prefix, or the translation to score."""

    group: Group
    request: Request
    index: int  # in the request
    text: str
    other: str | None
    tokens: int  # EOS included
    arrived: float  # seconds, on any clock
    begun: bool = False  # a worker has it, or has answered it
    tries: int = 0  # of workers that died
    number: int = field(default=0, init=False)  # in the queue


class Batch(NamedTuple):
    """Lines of one group; ``full`` if no other waiting line fits."""

    lines: list[Line]
    full: bool


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a dispatcher.

    Args:
        workers: processes, each of one thread; by default one for each core that this process may use.
        queue: lines that may wait.
        delay: seconds that a worker waits for a fuller batch after it has answered one.
        deadline: seconds after which a request fails if a line of it has not begun.
        batch: seconds after which a worker that has not answered is killed and replaced.

    Raises:
        ConfigError: a limit is out of range.
    """

    workers: int = 0
    queue: int = 2000
    delay: float = 0.005
    deadline: float = 30.0
    batch: float = 60.0

    def __post_init__(self) -> None:
        for name, least in (("workers", 0), ("queue", 1), ("delay", 0.0), ("deadline", 0.0), ("batch", 0.0)):
            value = getattr(self, name)
            if not least <= value < float("inf"):
                raise ConfigError(f"{name} is {value}, expected at least {least}; change {name}")


class LineQueue:
    """Lines in the order of their arrival, and by group in the order of their length."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[Line, None] = OrderedDict()
        self._by_length: dict[str, list[tuple[int, int, Line]]] = {}  # tokens, number, line
        self._last = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, line: Line) -> bool:
        return line in self._waiting

    def push(self, lines: Iterable[Line]) -> None:
        """Adds lines at the end."""
        for line in lines:
            self._last += 1
            line.number = self._last
            self._waiting[line] = None
            insort(self._by_length.setdefault(line.group.key, []), (line.tokens, line.number, line))

    def remove(self, lines: Iterable[Line]) -> None:
        """Takes lines out, which must be waiting."""
        for line in lines:
            del self._waiting[line]
            group = self._by_length[line.group.key]
            del group[bisect_left(group, (line.tokens, line.number))]
            if not group:
                del self._by_length[line.group.key]

    def plan(self, workers: int) -> Batch:
        """The lines that should be translated next; they stay in the queue, which must not be empty.

        The oldest line is among them, so that none waits for ever and groups take turns. Those next to it in length
        join it while the group's ``batch_tokens`` allow, whichever side adds less padding first. If several workers
        are idle, they share the group's lines.
        """
        oldest = next(iter(self._waiting))
        lines = self._by_length[oldest.group.key]
        most, batch_tokens = math.ceil(len(lines) / workers), oldest.group.batch_tokens
        low = bisect_left(lines, (oldest.tokens, oldest.number))
        high = low + 1
        full = False
        while high - low < most:
            size, longest = high - low, lines[high - 1][0]
            grows = high < len(lines) and (size + 1) * lines[high][0] <= batch_tokens
            if low and (size + 1) * longest <= batch_tokens:
                # A longer line pads all others, a shorter one only itself.
                if grows and (lines[high][0] - longest) * size <= longest - lines[low - 1][0]:
                    high += 1
                else:
                    low -= 1
            elif grows:
                high += 1
            else:
                full = True
                break
        return Batch([line for _, _, line in lines[low:high]], full)
