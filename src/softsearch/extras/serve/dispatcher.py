"""The dispatcher turns requests into results; the lines of all clients are translated in common batches.

A batch starts as soon as a worker is idle, so a single line never waits, and larger batches form under load. There is
one exception: clients that have just received answers often send the next lines within milliseconds, and if a worker
started with the first of these, the others would have to wait. So a worker that has answered N lines waits for N lines,
or a full batch, but at most for ``delay``.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from softsearch.errors import InputError, traceback_of
from softsearch.extras.serve.line_queue import (
    Line,
    LineQueue,
    Request,
    RequestError,
    deadline_error,
    error_of,
    for_model,
    why_not_again,
)
from softsearch.extras.serve.models import EncodedLine, Group, Model, ModelFacts, encode_lines
from softsearch.extras.serve.monitoring import Metrics
from softsearch.extras.serve.pool import Pool
from softsearch.extras.serve.settings import Settings
from softsearch.extras.serve.workers import Failure, Job, Worker, WorkerDiedError
from softsearch.runtime import Translation
from softsearch.runtime.parts import NO_STAGES, Stages
from softsearch.search import PairScore
from softsearch.text.parts import Tags

_RETRY_AFTER = {"Retry-After": "5"}  # seconds, if the queue gives no estimate
INLINE = 2000  # largest request, in characters, that this process splits and encodes itself, in a few milliseconds
_SMOOTHING = 0.1  # weight of the last batch in the mean speed
_log = logging.getLogger(__name__)


class Dispatcher:
    """Translates for many clients at once; belongs to one event loop.

    Args:
        bundles: the folder of each model, by the name that clients use.
        settings: workers, the limits of the queue and of batches.
        metrics: counts events.
    """

    def __init__(self, bundles: Mapping[str, Path], settings: Settings, metrics: Metrics) -> None:
        self.settings, self._metrics = settings, metrics
        self.draining = False  # the server is stopping: it answers open requests and accepts no more
        self._pool = Pool(bundles, settings, self._wake, metrics.on_death)
        self._queue = LineQueue()
        self._retries: deque[list[Line]] = deque()  # lines of one request each, whose worker died
        self._requests: set[Request] = set()
        self._running: set[asyncio.Task[None]] = set()
        self._woken = False  # batches start in the next turn of the event loop
        self._timer: asyncio.TimerHandle | None = None  # for batches after the delay
        self._seconds_per_line = 0.0  # over all workers, smoothed
        self._open = False

    @property
    def models(self) -> dict[str, ModelFacts]:
        """Returns facts about each served model, by name; empty before the start."""
        return {name: model.facts for name, model in self._pool.models.items()}

    @property
    def ready(self) -> bool:
        """Tells whether requests are accepted and a worker is ready."""
        return self._open and not self.draining and bool(self._pool.workers)

    def check_ready(self) -> None:
        """Refuses requests while models are loading and when the server is stopping.

        Raises:
            RequestError: with status 503.
        """
        if not self.ready:
            state = "stopping" if self.draining else "loading its models"
            raise RequestError(503, f"the server is {state}; try again later", _RETRY_AFTER)

    @property
    def workers(self) -> int:
        """Returns the number of warm worker processes."""
        return len(self._pool.workers)

    @property
    def waiting(self) -> int:
        """Returns the number of waiting lines."""
        return len(self._queue)

    async def load(self) -> None:
        """Reloads the bundles from disk; no request is lost.

        New worker processes replace the old ones when all are warm, so both are in memory for a while.

        Raises:
            BundleError: a bundle cannot be opened; the old workers stay.
            WorkerDiedError: a new worker process died, for example of lack of memory; the old workers stay.
        """
        await self._pool.load()
        self._open = True

    async def stop(self) -> None:
        """Refuses new requests, waits for open ones, and ends the worker processes.

        It takes at most as long as a request may take, because a worker may hang.
        """
        self._open = False
        if self._requests:
            limit = self.settings.deadline + self.settings.batch_timeout
            await asyncio.wait([request.future for request in self._requests], timeout=limit)
        self.abandon()
        await self._pool.close()
        await asyncio.gather(*self._running)  # batches of clients that have left, or whose workers were killed
        if self._timer is not None:
            self._timer.cancel()

    def abandon(self) -> None:
        """Refuses new requests and fails the open ones."""
        self._open = False
        for request in self._requests:
            request.fail(
                RequestError(
                    503, "the server is stopping before it has an answer; send the request again later", _RETRY_AFTER
                )
            )

    async def translate(
        self,
        model: str,
        lines: Sequence[str],
        stages: Stages = NO_STAGES,
        *,
        prefixes: Sequence[str] | None = None,
        tags: Tags = (),
        **options: Any,
    ) -> list[Translation]:
        """Translates lines like ``Translator.translate``, in batches with the lines of other requests.

        Cancelling it drops the lines that have not begun.

        Args:
            model: name of the model.
            lines: the text, which has passed ``before`` of the stages.
            stages: the stages of the translation; ``after`` is left to the caller.
            prefixes: prefixes of the translations, one per line; "" for none.
            tags: of lines that are sentences of markup: places of these come back instead of alignments.
            options: ``search``, by name, and its options.

        Raises:
            ConfigError: an option is wrong.
            InputError: a line cannot be encoded.
            RequestError: too many lines wait, the deadline passed, a line cannot be translated, the request killed two
                workers, a worker raised an unexpected exception, or the dispatcher has not started or is stopping.
        """
        group = self.model(model).translation_group(options, stages, prefixes=prefixes is not None)
        return await self._run(group, lines, prefixes, tags)

    async def score(self, model: str, src: Sequence[str], tgt: Sequence[str]) -> list[PairScore]:
        """Scores translations like ``Translator.score``, in batches with the pairs of other requests.

        Raises:
            SoftsearchError: see ``translate``.
        """
        return await self._run(self.model(model).score_group(), src, tgt)

    async def prepare(self, model: Model, work: Callable[..., Any], *arguments: Any) -> Any:
        """Lets a worker call a function of a `LineEncoder`, in the order of all lines; raises as ``translate``."""
        loop, group = asyncio.get_running_loop(), Group(model, None, 1, pairs=False, prepare=work)
        request = Request(group, [""], None, loop.create_future(), loop.time(), [EncodedLine(arguments, None, 1)])
        (found,) = await self._answers(request)
        return found

    def model(self, name: str) -> Model:
        """Returns the model with this name; raises RequestError while the server starts or stops."""
        if not self._open:
            raise RequestError(503, "the server is starting or stopping; try again later", _RETRY_AFTER)
        return self._pool.models[name]

    async def _run(
        self, group: Group, texts: Sequence[str], others: Sequence[str] | None, tags: Tags = ()
    ) -> list[Any]:
        if not texts:
            return []
        self.check_room(len(texts))
        loop = asyncio.get_running_loop()
        began, encoded = loop.time(), None
        if sum(map(len, (*texts, *(others or ())))) > INLINE or group.finders is not None:
            work = partial(encode_lines, are_pairs=group.search is None)
            encoded = await self.prepare(group.model, work, texts, others or [None] * len(texts), group.finders)
            self.check_room(len(texts))
        return await self._answers(Request(group, texts, others, loop.create_future(), began, encoded, tags))

    async def _answers(self, request: Request) -> list[Any]:
        """Returns the results of a request's lines when all are available."""
        self._queue.push(request.lines)
        self._requests.add(request)
        timer = asyncio.get_running_loop().call_at(request.arrived + self.settings.deadline, self._expire, request)
        self._wake()
        try:
            return await request.future
        finally:
            timer.cancel()
            self._requests.discard(request)
            self._drop(request)
            # Reference cycles would keep texts and results until garbage collection: lines refer to their request, and
            # an exception to this frame, which refers to the future with the exception.
            request.lines.clear()
            del request

    def check_room(self, lines: int) -> None:
        """Refuses lines if the queue has no room for them; raises RequestError or InputError."""
        most, waiting = self.settings.queue, len(self._queue)
        if lines > most:
            raise InputError(f"the request has {lines} lines, expected at most {most}; split it")
        if waiting + lines > most:
            retry_after = max(1, math.ceil(waiting * self._seconds_per_line))
            raise RequestError(
                503,
                f"{waiting} lines are waiting, and {lines} more would exceed the limit of {most}; try again later",
                {"Retry-After": str(retry_after)},
            )

    def _drop(self, request: Request) -> None:
        """Removes the lines of an ended request from the queue; some may still be in a worker."""
        if request.missing and (waiting := [line for line in request.lines if line in self._queue]):
            self._queue.remove(waiting)
            self._count(waiting[0].group, "dropped", len(waiting))

    def _count(self, group: Group, outcome: str, lines: int) -> None:
        if lines and group.prepare is None:
            self._metrics.on_lines(group.model.facts.name, outcome, lines)

    def _expire(self, request: Request) -> None:
        if error := deadline_error(request, self.settings):
            request.fail(error)

    def _wake(self) -> None:
        """Starts batches in the next iteration of the event loop, after all requests that arrive in this one."""
        if not self._woken:
            self._woken = True
            asyncio.get_running_loop().call_soon(self._start_batches)

    def _start_batches(self) -> None:
        self._woken = False
        if self._timer is not None:
            self._timer.cancel()
        idle = self._pool.idle
        while idle and (lines := self._next_lines(idle[0], len(idle))):
            self._start(idle.pop(0), lines)

    def _next_lines(self, worker: Worker, idle: int) -> list[Line]:
        """Returns the next batch for one of ``idle`` workers; empty if it should wait for more lines."""
        while self._retries:
            if lines := [line for line in self._retries.popleft() if not line.request.future.done()]:
                return lines
        if not self._queue:
            return []
        batch, loop = self._queue.plan(idle), asyncio.get_running_loop()
        patience = worker.freed + self.settings.delay - loop.time()
        if len(self._queue) < worker.answered and not batch.full and patience > 0:
            self._timer = loop.call_later(patience, self._start_batches)
            return []
        self._queue.begin(batch.lines)
        return batch.lines

    def _start(self, worker: Worker, lines: list[Line]) -> None:
        """Sends a batch to a worker."""
        lines = for_model(lines, self._pool.models[lines[0].group.model.facts.name])
        if not lines:
            self._pool.release(worker)
            return
        loop, group = asyncio.get_running_loop(), lines[0].group
        for line in lines:
            line.begun = True
        sources, targets = [line.source for line in lines], [line.target for line in lines] if group.pairs else None
        tags = [line.tags for line in lines]
        job = Job(group.model.facts.name, group.search, sources, targets, tags, group.stages, group.prepare)
        # Sent here, not in the task, which would run after the clients with new answers while the worker is idle.
        self._running.add(task := loop.create_task(self._finish(worker, lines, worker.call(job), loop.time())))
        task.add_done_callback(self._running.discard)

    async def _finish(
        self, worker: Worker, lines: list[Line], answer: "asyncio.Future[list[Any]]", began: float
    ) -> None:
        """Waits for a worker's answers and passes them to their requests."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.settings.batch_timeout):
                answers = await answer
        except WorkerDiedError:
            self._try_again(lines)
            return
        except TimeoutError:
            _log.error("a worker process did not finish a batch within %g s and is killed", self.settings.batch_timeout)
            worker.kill()
            self._try_again(lines, hung=True)
            return
        except Exception as error:  # noqa: BLE001 - no client may wait forever
            answers = [Failure(traceback_of(error), expected=False)] * len(lines)
        seconds, group = loop.time() - began, lines[0].group
        worker.freed, worker.answered = loop.time(), 0
        if group.prepare is not None:
            self._pool.release(worker)
            self._answer(lines, answers)
            return
        own = seconds / len(lines) / self._pool.size
        self._seconds_per_line += (own - self._seconds_per_line) * (_SMOOTHING if self._seconds_per_line else 1.0)
        worker.answered = len(lines)
        self._pool.release(worker)
        self._answer(lines, answers)
        tokens = len(lines) * max(line.tokens for line in lines)
        self._metrics.on_batch(group.model.facts.name, [began - line.arrived for line in lines], tokens, seconds)

    def _answer(self, lines: list[Line], answers: list[Any]) -> None:
        failed = 0
        for line, answer in zip(lines, answers, strict=True):
            if isinstance(answer, Failure):
                failed += 1
                line.request.fail(error_of(line, answer))
            else:
                line.request.answer(line.index, answer)
        for outcome, count in (("done", len(lines) - failed), ("failed", failed)):
            self._count(lines[0].group, outcome, count)

    def _try_again(self, lines: list[Line], *, hung: bool = False) -> None:
        """Runs the lines of a dead worker again, in one batch per request, because one may have caused the crash.

        Lines are not tried again after their deadline, when nothing would end them, or after a hang that they may have
        caused.
        """
        now = asyncio.get_running_loop().time()
        requests: dict[Request, list[Line]] = {}
        for line in lines:
            line.begun, line.tries = False, line.tries + 1
            requests.setdefault(line.request, []).append(line)
        for request, own in requests.items():
            if error := why_not_again(own[0], self.settings, now, hung=hung):
                request.fail(error)
                self._count(own[0].group, "lost", len(own))
            else:
                self._retries.append(own)
        self._wake()
