"""Requests, the queue of waiting lines, the choice of lines for a batch, and failed lines."""

import asyncio
import logging
import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from softsearch.errors import SoftsearchError, printable
from softsearch.extras.serve.models import EncodedLine, Group, Model
from softsearch.extras.serve.settings import Settings
from softsearch.extras.serve.workers import Failure
from softsearch.text.parts import SentenceTags, Tags

_MAX_TRIES = 2  # for lines whose worker dies
_log = logging.getLogger(__name__)


class RequestError(SoftsearchError):
    """A request that the server refuses or cannot answer.

    Args:
        status: status of the HTTP response.
        message: what is wrong, found and expected, and what to do.
        headers: headers of the response.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


class Request:
    """The lines of a call and the available results; ``encoded`` are the lines if a worker has encoded them.

    Raises:
        InputError: a line cannot be encoded.
    """

    __slots__ = ("arrived", "future", "lines", "missing", "results")

    def __init__(
        self,
        group: Group,
        texts: Sequence[str],
        others: Sequence[str] | None,
        future: "asyncio.Future[list[Any]]",
        now: float,
        encoded: Sequence[EncodedLine] | None = None,
        tags: Tags = (),
    ) -> None:
        self.future, self.missing, self.arrived = future, len(texts), now
        self.results: list[Any] = [None] * len(texts)
        self.lines = []
        for index, text in enumerate(texts):
            other = None if others is None else others[index]
            line = group.model.encode(group, text, other, index + 1) if encoded is None else encoded[index]
            own = tags[index] if tags else None
            self.lines.append(Line(group.for_line(line), self, index, text, other, now, *line, tags=own))

    def fail(self, error: SoftsearchError) -> None:
        """Ends the request with an error, unless it has already ended."""
        if not self.future.done():
            self.future.set_exception(error)

    def answer(self, index: int, result: Any) -> None:
        """Stores the result of a line; the last result ends the request."""
        self.results[index] = result
        self.missing -= 1
        if not self.missing and not self.future.done():
            self.future.set_result(self.results)


@dataclass(slots=True, eq=False)
class Line:
    """A line of a request; ``other`` is its target prefix, or the translation to score."""

    group: Group
    request: Request
    index: int  # index in the request
    text: str
    other: str | None
    arrived: float  # time in seconds, on any clock
    source: Any  # source and target are encoded
    target: Any
    tokens: int  # EOS included
    tags: SentenceTags | None = None  # those whose places to return instead of alignments
    begun: bool = field(default=False, init=False)  # whether a worker has received it
    tries: int = field(default=0, init=False)  # number of workers that died with it
    number: int = field(default=0, init=False)  # number in the queue
    cost: float = field(default=0.0, init=False)  # in batches
    turn: float = field(default=0.0, init=False)  # the cost at which a fair share would have paid for it

    def join(self, group: Group) -> None:
        """Adds the line to a group, whose model encodes it again; preparations and terms are not changed."""
        self.group, wanted = group, {part.text: part.wanted for part in self.source} if group.finders else {}
        if group.prepare is None:
            self.source, self.target, self.tokens = group.model.encode(group, self.text, self.other, self.index + 1)
        if group.finders:
            if any(part.text not in wanted for part in self.source):
                raise RequestError(503, "the model was replaced by one that splits the text differently; try again")
            self.source = [part._replace(wanted=wanted[part.text]) for part in self.source]


class Batch(NamedTuple):
    """Lines of one group; ``full`` if no other waiting line fits."""

    lines: list[Line]
    full: bool


class LineQueue:
    """Waiting lines in the order of their turns, and by group in the order of their length.

    Requests take turns, so that one with much work does not hold up one with little (fair queueing): the next line is
    the one that would be done first if all waiting requests were worked on at once, at equal speeds. No line waits
    forever: its turn does not change, whatever arrives later.
    """

    def __init__(self) -> None:
        self._waiting: set[Line] = set()
        self._turns: list[tuple[float, int, Line]] = []  # turn, number, line
        self._requests: Counter[Request] = Counter()  # waiting lines
        self._by_length: dict[Group, list[tuple[int, int, Line]]] = {}  # tokens, number, line
        self._last, self._now = 0, 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, line: Line) -> bool:
        return line in self._waiting

    def push(self, lines: Iterable[Line]) -> None:
        """Adds the lines of a request."""
        turn = self._now
        for line in lines:
            self._last += 1
            # Any batch costs as much as another one; lines with terms have batches of their own.
            line.number, line.cost = self._last, line.tokens / line.group.batch_tokens
            line.turn = turn = turn + line.cost
            self._waiting.add(line)
            self._requests[line.request] += 1
            insort(self._turns, (line.turn, line.number, line))
            insort(self._by_length.setdefault(line.group, []), (line.tokens, line.number, line))

    def remove(self, lines: Iterable[Line]) -> None:
        """Removes waiting lines."""
        for line in lines:
            self._waiting.remove(line)
            self._requests[line.request] -= 1
            if not self._requests[line.request]:
                del self._requests[line.request]
            del self._turns[bisect_left(self._turns, (line.turn, line.number))]
            group = self._by_length[line.group]
            del group[bisect_left(group, (line.tokens, line.number))]
            if not group:
                del self._by_length[line.group]

    def begin(self, lines: Sequence[Line]) -> None:
        """Removes lines that a worker begins."""
        self._now += sum(line.cost for line in lines) / len(self._requests)
        self.remove(lines)

    def plan(self, workers: int) -> Batch:
        """Returns the lines to translate next, without removing them; the queue must not be empty.

        The line whose turn it is is one of them. Lines of similar length are added within the group's
        ``batch_tokens``, first those that need less padding. If several workers are idle, they share the group's lines.
        """
        _, _, first = self._turns[0]
        lines = self._by_length[first.group]
        most, batch_tokens = math.ceil(len(lines) / workers), first.group.batch_tokens
        low = bisect_left(lines, (first.tokens, first.number))
        high = low + 1
        full = False
        while high - low < most:
            size, longest = high - low, lines[high - 1][0]
            grows = high < len(lines) and (size + 1) * lines[high][0] <= batch_tokens
            if low and (size + 1) * longest <= batch_tokens:
                # A longer line adds padding to all others, a shorter one only to itself.
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


def for_model(lines: list[Line], model: Model) -> list[Line]:
    """Returns the lines of a batch, encoded again if their model was reloaded; refused lines fail."""
    old = lines[0].group
    if model is old.model:
        return lines
    kept = []
    for line in lines:
        try:
            line.join(old.of(model))
            kept.append(line)
        except SoftsearchError as error:
            line.request.fail(error)
    return kept


def deadline_error(request: Request, settings: Settings) -> RequestError | None:
    """Returns the error of a request at its deadline; None if all its lines have begun."""
    waiting = sum(not line.begun for line in request.lines)
    if request.lines[0].group.prepare is not None:
        what = "the text was not split and encoded within"
    elif waiting:
        what = f"{waiting} of {len(request.lines)} lines had not begun after"
    else:
        return None
    return RequestError(
        504, f"{what} {settings.deadline:g} s, because the server is busy; try again later, or send less text"
    )


def why_not_again(line: Line, settings: Settings, now: float, *, hung: bool) -> RequestError | None:
    """Returns why a line whose worker died or hung is not tried again; None if it is."""
    if hung:
        return RequestError(504, f"a batch took more than {settings.batch_timeout:g} s; send fewer or shorter lines")
    if line.tries == _MAX_TRIES:
        return RequestError(500, f"{_MAX_TRIES} worker processes died on this request; send fewer or shorter lines")
    if line.arrived < now - settings.deadline:
        return RequestError(504, f"a worker process died after {settings.deadline:g} s; try again later")
    return None


def error_of(line: Line, failure: Failure) -> RequestError:
    """Returns the error for the client who sent the line; logs the traceback."""
    where = f"line {line.index + 1}"
    if failure.expected:
        return RequestError(422, failure.reason if line.group.prepare is not None else f"{where}: {failure.reason}")
    _log.error("%s of a request failed\n%s", where, printable(failure.reason, keep="\n"))
    return RequestError(500, f"{where} failed; the server's log has the reason")
